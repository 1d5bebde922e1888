"""Corners where double precision is short of digits, judged by solutions in eighty of them."""

import math
from dataclasses import replace

import corners
import pytest
from corners import KINDS, LINEAR, WHITE, Case, hiding
from mpmath import mp, mpf

import multiprecision
import spectral_oracle

KNOWN = [
    Case("A", LINEAR, "logistic", math.inf, 1e-3, noise=1e-10),
    Case("A", LINEAR, "logistic", 1e10, 1e-3, noise=1e-10),
    Case("B", WHITE, "square", 1.0, 1e-25, sign=False, noise=0.1),
    Case("B", WHITE, "absolute", 1.0, 1e-20, sign=False, noise=0.1),
    Case("C", WHITE, "hinge", 1e5, 1e-12),
    Case("D", hiding(2.0**-40), "square", math.inf, 1e-3),
]
SAMPLE = [*KNOWN, *corners.drawn(5, 2)[1:], *corners.drawn(5, 3), *corners.drawn(5, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_a_converged_point_is_as_right_as_it_claims(case):
    found = {}
    for name in {"numpy", corners.compiled.engine()}:
        with corners.engine(name):
            found[name] = case.predicted()
    truth = case.solved(found["numpy"])
    for name, answer in found.items():
        off = corners.errors(answer, truth)
        assert answer["status"] or not corners.wrong(answer, truth), f"{name}: {off}"


# the reference itself

MILD = {
    "hinge": Case("", KINDS[0], "hinge", 2.0, 0.01, noise=0.1),
    "logistic": Case("", LINEAR, "logistic", 2.0, 0.01, noise=0.1),
    "huber": Case("", KINDS[3], "huber", 0.7, 1e-6, noise=0.1),
    "absolute": Case("", KINDS[8], "absolute", 1.0, 1e-12, sign=False, noise=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MILD.values(), ids=MILD)
def test_the_training_loss_of_the_reference_obeys_the_envelope_theorem(case):
    """Its derivative by lambda is q_w/(2 alpha): all averages and sums take part."""
    start = case.start(case.predicted())
    with mp.workdps(50):
        lam = [case.regularisation * mp.exp(step) for step in (mpf(-1e-6), mpf(1e-6))]
        low, high = (
            multiprecision.solve(replace(case.problem, regularisation=at), start) for at in lam
        )
        slope = (high.training_loss - low.training_loss) / (lam[1] - lam[0])
        assert abs(slope / ((low.q_w + high.q_w) / (4 * case.n_over_p)) - 1) < 1e-10


@pytest.mark.slow
def test_the_reference_finds_one_solution_from_afar_and_from_nearby():
    case = MILD["hinge"]
    nearby, afar = case.solved(case.predicted()), case.solved()
    assert max(corners.errors(nearby, afar).values()) < 1e-15


def test_infinite_data_are_the_limit_of_many_in_the_reference():
    many = Case("", hiding(2.0**-20), "hinge", 1e20, 1e-3)
    limit = replace(many, n_over_p=math.inf).solved()
    found = corners.errors(many.solved(many.predicted()), limit)
    assert max(error for name, error in found.items() if name != "V") < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("sign", [True, False])
def test_the_reference_solves_ridge_regression_in_closed_form(sign):
    """The equation k (alpha - D1) = lambda, and the test mean square that follows."""
    alpha, lam, noise, features = 1.0, 1e-20, 0.25, KINDS[0].reference
    problem = multiprecision.Problem(features, "square", alpha, lam, sign=sign, noise=noise)
    found = multiprecision.solve(problem)

    def excess(log_k):
        k = mp.exp(log_k)
        return mp.log(k * (alpha - features(k)[0]) / lam)

    with mp.workdps(80):
        D1, D2, T1, T2 = features(mp.exp(mp.findroot(excess, mp.log(lam) / 2)))
        c, square = (mp.sqrt(2 / mp.pi / (1 + noise)), 1) if sign else (1, 1 + noise)
        mean_square = (square - c * c * (2 * T1 - T2)) / (1 - D2 / alpha)
        expected = {"V": D1 / (alpha - D1), "M": c * T1, "Q": c * c * T2 + mean_square * D2 / alpha}
        for name, value in expected.items():
            assert abs(getattr(found, name) / value - 1) < 1e-40


@pytest.mark.slow
@pytest.mark.parametrize(("h", "a"), [(0.3, 0.7), (1.1, 1.0), (2.5, 40.0), (-4.0, 3.0)])
def test_the_function_of_owen_is_its_integral(h, a):
    def integrand(t):
        return mp.exp(-(mpf(h) ** 2) * (1 + t * t) / 2) / (1 + t * t) / (2 * mp.pi)

    with mp.workdps(40):
        expected = mp.quad(integrand, mp.linspace(0, a, 20))
        assert abs(multiprecision.owens_t(mpf(h), mpf(a)) / expected - 1) < 1e-30


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal"])
def test_the_sums_of_deep_features_are_those_of_the_chain(kind):
    stages = [
        spectral_oracle.Stage("gaussian", 0.75, 0.5, 1.5),
        spectral_oracle.Stage(kind, 0.875, 0.25, 1.0),
    ]
    expected = spectral_oracle.Chain(0.75, stages)(0.01)
    with mp.workdps(60):
        found = corners.deep(kind).reference(mpf(0.01))
        for name, value in zip(("D1", "D20", "T1", "T20"), found, strict=True):
            assert abs(value / expected[name] - 1) < 1e-40
