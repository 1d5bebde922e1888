"""Populations have the prevalence, AUC and R² that were asked for, by integrals of scipy."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit, ndtr
from scipy.stats import norm

import hiddenmanifold as hm
from hiddenmanifold.simulation.samples import Sizes, World

Population = hm.Population
CASES = [(0.2, 0.85), (0.02, 0.95), (0.5, 0.6), (0.174, 0.99), (0.9, 0.51)]


def binary(prevalence, auc, **more):
    return Population(outcome="binary", prevalence=prevalence, auc=auc, predictors=5, **more)


def integral(function, kink=0.0):
    edges = np.unique(np.clip([-12, -6, kink - 1, kink, kink + 1, 6, 12], -12, 12))
    parts = zip(edges[:-1], edges[1:], strict=True)
    return sum(integrate.quad(function, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in parts)


@pytest.mark.parametrize(("prevalence", "auc"), CASES)
def test_logistic_rules_have_the_prevalence_and_auc_asked_for(prevalence, auc):
    teacher = binary(prevalence, auc).teacher
    s, a = np.sqrt(teacher.rho), teacher.threshold
    kink = -a / s

    def p(z):
        return expit(a + s * z)

    assert integral(lambda z: p(z) * norm.pdf(z), kink) == pytest.approx(prevalence, rel=1e-10)
    # P(a case is above a control): a trapezoidal sum over both, with the first correction
    z, h = np.linspace(-10.0, 10.0, 40_001, retstep=True)
    cases, controls = (law * norm.pdf(z) for law in (p(z), expit(-a - s * z)))
    below = h * (np.cumsum(controls) - 0.5 * controls) - h**2 / 12 * np.gradient(controls, h)
    assert h * cases @ below / (prevalence * (1 - prevalence)) == pytest.approx(auc, abs=1e-10)


@pytest.mark.parametrize(("prevalence", "auc"), CASES)
def test_binormal_classes_have_the_auc_asked_for(prevalence, auc):
    teacher = binary(prevalence, auc, law="binormal").teacher
    assert teacher.prior == prevalence
    # linear predictors of cases and controls differ by 2 rho and have variance rho
    assert ndtr(2 * teacher.rho / np.sqrt(2 * teacher.rho)) == pytest.approx(auc, rel=1e-12)


@pytest.mark.parametrize("law", ["logistic", "binormal"])
def test_r2_of_cox_and_snell_is_an_entropy(law):
    one = binary(0.174, 0.8, law=law)
    if law == "logistic":
        s, a = np.sqrt(one.teacher.rho), one.teacher.threshold

        def loss(z):
            g = a + s * z
            mean = expit(g) * np.logaddexp(0, -g) + expit(-g) * np.logaddexp(0, g)
            return mean * norm.pdf(z)

        mean = integral(loss)
    else:
        r, offset = one.teacher.rho, np.log(0.174 / 0.826)
        mean = sum(
            share
            * integral(
                lambda z, y=y: (
                    np.logaddexp(0, -(2 * r + y * offset + 2 * np.sqrt(r) * z)) * norm.pdf(z)
                )
            )
            for share, y in ((0.174, 1), (0.826, -1))
        )
    null = -(0.174 * np.log(0.174) + 0.826 * np.log(0.826))
    assert one.true_r2 == pytest.approx(1 - np.exp(2 * (mean - null)), rel=1e-10)
    again = Population(prevalence=0.174, cox_snell_r2=one.true_r2, predictors=5, law=law)
    assert again.teacher.rho == pytest.approx(one.teacher.rho, rel=1e-9)


def test_continuous_outcomes_and_counts_have_the_r2_asked_for():
    linear = Population(outcome="continuous", r2=0.3, predictors=4).teacher
    assert linear.rho / (linear.rho + linear.noise) == pytest.approx(0.3, rel=1e-14)
    counts = Population(outcome="count", rate=1.7, r2=0.3, predictors=4).teacher
    mean, second = (
        integral(
            lambda z, k=k: np.exp(k * (counts.intercept + np.sqrt(counts.rho) * z)) * norm.pdf(z)
        )
        for k in (1, 2)
    )
    assert mean == pytest.approx(1.7, rel=1e-10)
    explained = second - mean**2
    assert explained / (explained + mean) == pytest.approx(0.3, rel=1e-10)


def test_predictors_have_the_covariance_given_and_some_no_signal():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    covariance = A @ A.T + np.eye(4)
    some = Population(
        prevalence=0.3, auc=0.8, predictors=4, without_signal=1, covariance=covariance
    )
    w, t = np.array(some.features.eigenvalues), np.array(some.features.teacher_weights)
    np.testing.assert_allclose(np.sort(4 * w), np.linalg.eigvalsh(covariance), rtol=1e-12)
    theta = np.array([1.0, 1.0, 1.0, 0.0])
    theta *= np.sqrt(some.teacher.rho / (theta @ covariance @ theta))
    assert (t / w).sum() == pytest.approx(some.teacher.rho, rel=1e-12)
    # E[nu x] = covariance theta: all moments of it with the covariance agree
    for k in range(4):
        expected = (
            (covariance @ theta) @ np.linalg.matrix_power(covariance, k) @ (covariance @ theta)
        )
        assert 4 * t @ (4 * w) ** k == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_samples_have_the_prevalence_and_auc():
    model = binary(0.3, 0.8).model()
    rng = np.random.default_rng(1)
    sample = World.draw(model, Sizes(10, 5, 5), rng).sample(200_000, rng)
    assert (sample.y > 0).mean() == pytest.approx(0.3, abs=0.005)
    order = np.argsort(np.argsort(sample.nu))
    positive = sample.y > 0
    n1, n0 = positive.sum(), (~positive).sum()
    auc = (order[positive].sum() - n1 * (n1 - 1) / 2) / (n1 * n0)
    assert auc == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prevalence": 0.2, "auc": 0.4}, "auc = 0.4 is not between 1/2 and 1"),
        ({"prevalence": 0.0, "auc": 0.8}, "prevalence = 0.0 is not between 0 and 1: with no ev"),
        ({"prevalence": 20, "auc": 0.8}, "write 20 % as 0.2"),
        ({"prevalence": 0.2, "auc": 1 - 1e-9}, "auc = 0.999999999 cannot be reached"),
        ({"outcome": "count", "rate": 0.001, "r2": 0.5}, "choose r2 below 0.051"),
        ({"prevalence": 1.0, "auc": 0.8}, "prevalence = 1.0"),
        ({"auc": 0.8}, "prevalence is missing"),
        ({"prevalence": 0.2}, "auc is missing"),
        ({"prevalence": 0.2, "auc": 0.8, "r2": 0.1}, "r2 cannot be given for a binary outcome"),
        ({"prevalence": 0.2, "cox_snell_r2": 0.7}, "cannot be reached with a prevalence of 0.2"),
        ({"outcome": "count", "r2": 0.2}, "rate is missing"),
        ({"outcome": "continuous", "r2": 1.0}, "r2 = 1.0"),
        ({"outcome": "survival", "r2": 0.2}, "outcome = 'survival'"),
        ({"outcome": "continuous", "r2": 0.2, "without_signal": 3}, "without_signal = 3"),
        ({"outcome": "continuous", "r2": 0.2, "covariance": np.eye(2)}, r"shape \(2, 2\)"),
        ({"outcome": "continuous", "r2": 0.2, "covariance": np.ones((3, 3))}, "eigenvalue"),
        ({"prevalence": 0.2, "auc": 0.8, "law": "probit"}, "law = 'probit'"),
    ],
)
def test_impossible_populations_are_refused(given, message):
    with pytest.raises(hm.InvalidArgumentError, match=message):
        Population(**given, predictors=3)
