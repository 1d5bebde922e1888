"""Sums over the spectrum of a projection: integrals, eigenvalues of real matrices, identities."""

from dataclasses import fields

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct
from scipy.linalg import hadamard

from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.features.projections import (
    DCT,
    REGISTRY,
    Gaussian,
    Hadamard,
    Matrix,
    Orthogonal,
    Spectrum,
)
from hiddenmanifold.features.spectral_sums import Sums

PROPERTY = settings(max_examples=60)
SUMS = ("D20", "D02", "D21", "D12", "T20", "T02", "T21", "T12", "W")
ALL = (*SUMS, "dW", "B", "A", "S", "left")
FULL_PRECISION = 1e-12

DECADES = 10.0 ** np.arange(-8, 13)
# p/d from 1e-4 to 1e4, with neighbours of the singular point 1 that are exact in binary
P_OVER_D = (1e-4, 0.01, 0.3, 1 - 2.0**-8, 1 - 2.0**-20, 1.0, 1 + 2.0**-20, 1 + 2.0**-8, 3.0, 1e4)

every_projection = pytest.mark.parametrize("name", REGISTRY)
orthogonal_law = pytest.mark.parametrize("projection", [Orthogonal(), Hadamard(), DCT()])


def sums(s, weight, y, X, *, zeros, zeros_d):
    """Every sum at k = 1/X, as sums of positive terms over positive eigenvalues.

    `s` and `weight` have shape (eigenvalues, 1) and X (points,); `weight` and `zeros` are
    fractions of the p eigenvalues, `zeros_d` of the d; y = p/d.
    """
    q = 1.0 / (1.0 + X * s)
    r = X * s * q

    def mean(values):
        return (weight * values).sum(0)

    # deviations of r from its d-side mean, by 1 - r where r hardly varies
    mean_r, mean_q = y * mean(r), y * mean(q) + zeros_d
    away = np.where(X * s < 1.0, r - mean_r, mean_q - q)
    W = y * mean(away**2) + zeros_d * mean_r**2
    powers = {"20": r * r, "02": q * q, "21": r * r * q, "12": r * q * q}
    out = {f"D{ab}": mean(values) for ab, values in powers.items()}
    out |= {f"T{ab}": y * mean(values) for ab, values in powers.items()}
    out["D02"] += zeros
    out["T02"] += zeros_d
    third = y * mean(away**2 * (r + mean_r)) + zeros_d * mean_r**3
    # linear features of brighter data are those of a smaller k
    bright = {"B": mean(r * q), "A": y * mean(r * q), "S": out["T20"]}
    return {**out, "W": W, "dW": 2 * third - 2 * W, **bright, "left": mean(q)}


def marchenko_pastur(y, X):
    """Every sum by Gauss-Legendre integration of the Marchenko-Pastur density.

    With s = (1 - sqrt y)^2 + 4 sqrt(y) sin^2(theta/2) the continuous part has the density
    (2/pi) sin^2(theta)/s in theta; panels shrink geometrically towards the edge of the spectrum,
    below the smallest 1 - y that is not zero.
    """
    node, w = np.polynomial.legendre.leggauss(20)
    edges = np.append(0.0, np.pi * 2.0 ** np.arange(-60, 1))
    theta = (edges[:-1, None] + np.diff(edges)[:, None] * (node + 1) / 2).ravel()
    width = (np.diff(edges)[:, None] * w / 2).ravel()
    edge = (1.0 - y) / (1.0 + np.sqrt(y))
    s = edge**2 + 4.0 * np.sqrt(y) * np.sin(theta / 2) ** 2
    weight = width * (2 / np.pi) * np.sin(theta) ** 2 / s
    zeros, zeros_d = max((y - 1.0) / y, 0.0), max(1.0 - y, 0.0)
    return sums(s[:, None], weight[:, None], y, X, zeros=zeros, zeros_d=zeros_d)


def of_eigenvalues(s, d, p, X):
    """Every sum of the positive eigenvalues of one d by p matrix."""
    weight = np.full((len(s), 1), 1.0 / p)
    zeros, zeros_d = 1.0 - len(s) / p, 1.0 - len(s) / d
    return sums(s[:, None], weight, p / d, X, zeros=zeros, zeros_d=zeros_d)


def assert_sums(found, expected, X, tolerance):
    """Every sum to a relative tolerance; the slope of W, which changes sign, relative to W."""
    for name in (*ALL,):
        unit = expected["W" if name == "dW" else name]
        error = np.abs(getattr(found, name) - expected[name]) / unit
        assert np.all(error <= tolerance), f"{name}: {error.max():.2g} at X = {X[error.argmax()]}"


def sums_at(projection, X, gamma):
    return projection.linear(1.0 / X, np.full_like(X, gamma))


def test_all_sums_are_compared():
    assert {f.name for f in fields(Sums)} == set(ALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "X"), [(0.3, 0.7), (1.0, 1e5), (1 - 1e-12, 1e10), (1.01, 1e8), (50.0, 1e12)]
)
def test_reference_integral_agrees_with_thirty_digits(y, X):
    found = marchenko_pastur(y, np.array([X]))
    with mp.workdps(60):
        y, X, root = mp.mpf(y), mp.mpf(X), mp.sqrt(mp.mpf(y))
        cuts = [0, *(mp.pi * mp.mpf(10) ** -k for k in range(15, -1, -1))]

        def s(theta):
            return (1 - root) ** 2 + 4 * root * mp.sin(theta / 2) ** 2

        def mean(power, r_power):
            return mp.quad(
                lambda t: (
                    mp.sin(t) ** 2 * s(t) ** (power - 1) / (1 + X * s(t)) ** r_power * 2 / mp.pi
                ),
                cuts,
                method="gauss-legendre",
                maxdegree=5,
            )

        D20, D1, zeros, zeros_d = (
            X**2 * mean(2, 2),
            X * mean(1, 1),
            max(1 - 1 / y, 0),
            max(1 - y, 0),
        )
        expected = {
            "D20": D20,
            "D02": mean(0, 2) + zeros,
            "D21": X**2 * mean(2, 3),
            "D12": X * mean(1, 3),
            "T20": y * D20,
            "T02": y * mean(0, 2) + zeros_d,
            "T21": y * X**2 * mean(2, 3),
            "T12": y * X * mean(1, 3),
            "W": y * D20 - (y * D1) ** 2,
        }
    for name, value in expected.items():
        assert found[name][0] == pytest.approx(float(value), rel=FULL_PRECISION, abs=0.0), name


@pytest.mark.parametrize("y", P_OVER_D)
def test_gaussian_sums_are_those_of_marchenko_and_pastur(y):
    gamma = 1.0 / y
    assert 1.0 / gamma == y  # so that only the formulas are judged, not the rounding of d/p
    found = sums_at(Gaussian(), DECADES, gamma)
    assert_sums(found, marchenko_pastur(y, DECADES), DECADES, FULL_PRECISION)


@PROPERTY
@given(log_gamma=st.floats(-4, 4), log_X=st.floats(-8, 12))
def test_gaussian_sums_keep_twelve_digits_everywhere(log_gamma, log_X):
    gamma, X = 10.0**log_gamma, np.array([10.0**log_X])
    found = sums_at(Gaussian(), X, gamma)
    assert_sums(found, marchenko_pastur(1.0 / gamma, X), X, FULL_PRECISION)


@orthogonal_law
@pytest.mark.parametrize("gamma", [1e-4, 0.3, 1 - 2.0**-20, 1.0, 1 + 2.0**-20, 3.0, 1e4])
def test_orthogonal_sums_are_those_of_one_atom(projection, gamma):
    g = mp.mpf(min(gamma, 1.0))
    with mp.workdps(50):
        for X in DECADES:
            found = sums_at(projection, np.array([X]), gamma)
            s, y = 1 / g, 1 / mp.mpf(gamma)
            q = 1 / (1 + mp.mpf(X) * s)
            r, seen = mp.mpf(X) * s * q, y * g
            powers = {"20": r * r, "02": q * q, "21": r * r * q, "12": r * q * q}
            expected = {f"D{ab}": g * value for ab, value in powers.items()}
            expected |= {f"T{ab}": seen * value for ab, value in powers.items()}
            expected["D02"] += 1 - g
            expected["T02"] += 1 - seen
            expected["W"] = seen * (1 - seen) * r**2
            expected["dW"] = -2 * seen * (1 - seen) * r**2 * q
            for name, value in expected.items():
                slack = FULL_PRECISION * float(expected["W"]) if name == "dW" else 0.0
                assert getattr(found, name)[0] == pytest.approx(
                    float(value), rel=FULL_PRECISION, abs=slack
                ), f"{name} at X = {X}"


def frame(rng, kind, d, p):
    """A d by p matrix with FᵀF = d or FFᵀ = p, cut out of an orthogonal matrix."""
    size, small = max(d, p), min(d, p)
    if kind == "orthogonal":
        tall = np.linalg.qr(rng.standard_normal((size, small)))[0]
    else:
        square = dct(np.eye(size), norm="ortho") if kind == "dct" else hadamard(size) / size**0.5
        columns = rng.permutation(size)[:small]
        tall = rng.choice([-1.0, 1.0], (size, 1)) * square[:, columns]
    return np.sqrt(size) * (tall if d >= p else tall.T)


@pytest.mark.parametrize(("d", "p"), [(256, 96), (96, 256), (128, 128)])
@pytest.mark.parametrize(
    "name", [name for name, kind in REGISTRY.items() if issubclass(kind, Orthogonal)]
)
def test_sums_are_those_of_a_drawn_orthogonal_matrix(name, d, p):
    F = frame(np.random.default_rng(1), name, d, p)
    s = np.linalg.svd(F, compute_uv=False) ** 2 / d
    X = np.array([0.1, 1.0, 30.0])
    found, expected = sums_at(REGISTRY[name](), X, d / p), of_eigenvalues(s, d, p, X)
    for name_ in ALL:
        assert getattr(found, name_) == pytest.approx(expected[name_], rel=1e-11, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "p"), [(1500, 500), (500, 1500), (1000, 1000)])
def test_sums_are_those_of_a_large_gaussian_matrix(d, p):
    F = np.random.default_rng(2).standard_normal((d, p))
    gram = F.T @ F if p <= d else F @ F.T
    X = np.array([0.1, 1.0, 30.0])
    expected = of_eigenvalues(np.linalg.eigvalsh(gram / d), d, p, X)
    found = sums_at(Gaussian(), X, d / p)
    for name in ALL:  # averages over eigenvalues fluctuate like 1/p
        assert getattr(found, name) == pytest.approx(expected[name], rel=10 / min(d, p)), name


def spectrum(rng, d, p):
    """Eigenvalues, weights and the projection of an uneven spectrum with rank min(d, p)."""
    s = np.append(rng.gamma(0.5, size=min(d, p)), np.zeros(max(p - d, 0)))
    s /= s.mean()
    return s, Spectrum(s, d_over_p=d / p)


@pytest.mark.parametrize(("d", "p"), [(40, 15), (15, 40), (20, 20)])
def test_given_spectrum_keeps_twelve_digits_of_every_sum(d, p):
    s, projection = spectrum(np.random.default_rng(3), d, p)
    found = sums_at(projection, DECADES, d / p)
    assert_sums(found, of_eigenvalues(s[s > 0], d, p, DECADES), DECADES, FULL_PRECISION)


ANY = {
    **{name: cls() for name, cls in REGISTRY.items()},
    "spectrum, d > p": spectrum(np.random.default_rng(4), 30, 12)[1],
    "spectrum, d < p": spectrum(np.random.default_rng(4), 12, 30)[1],
    "matrix, d > p": Matrix(np.random.default_rng(5).standard_normal((60, 20))),
    "matrix, d < p": Matrix(np.random.default_rng(5).standard_normal((20, 60))),
}
any_projection = pytest.mark.parametrize("kind", ANY)


def some_gammas(projection):
    fixed = projection.fixed_ratio
    return [0.01, 0.4, 1.0, 2.5, 100.0] if fixed is None else [fixed]


@any_projection
def test_slopes_are_the_differences_of_the_sums(kind):
    X, h = 10.0 ** np.arange(-4, 7), 1e-4
    for gamma in some_gammas(ANY[kind]):
        at = sums_at(ANY[kind], X, gamma)
        shifted = {k: sums_at(ANY[kind], X / np.exp(k * h), gamma) for k in (-2, -1, 1, 2)}
        slopes = {
            "D20": -2 * at.D21,
            "D02": 2 * at.D12,
            "D11": at.D21 - at.D12,
            "T20": -2 * at.T21,
            "T02": 2 * at.T12,
            "T11": at.T21 - at.T12,
            "W": at.dW,
            "D1": -at.B,
        }
        for name, slope in slopes.items():
            f = {k: getattr(m, name) for k, m in shifted.items()}
            difference = (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * h)
            assert np.all(np.abs(slope - difference) <= 1e-10 * getattr(at, name)), (
                f"{name}, {gamma}"
            )


@any_projection
def test_sums_add_up(kind):
    for gamma in some_gammas(ANY[kind]):
        m = sums_at(ANY[kind], DECADES, gamma)
        assert m.D1 + m.unlearned == pytest.approx(1.0, rel=1e-13)
        assert pytest.approx(1.0, rel=1e-13) == m.T1 + m.U1


@any_projection
def test_both_sides_of_the_matrix_share_their_eigenvalues(kind):
    X = np.array([1e-3, 0.1, 1.0, 10.0])
    for gamma in some_gammas(ANY[kind]):
        m = sums_at(ANY[kind], X, gamma)
        assert gamma * (1 - m.T02) == pytest.approx(1 - m.D02, rel=1e-10, abs=0.0)
        for ab in ("20", "21", "12"):
            D, T = (getattr(m, side + ab) for side in "DT")
            assert gamma * T == pytest.approx(D, rel=1e-12, abs=0.0)
        assert pytest.approx(m.T20, rel=1e-12, abs=0.0) == m.W + m.T1**2


@any_projection
def test_sums_without_data_are_those_of_the_bare_spectrum(kind):
    for gamma in some_gammas(ANY[kind]):
        m = sums_at(ANY[kind], np.array([1e-80]), gamma)
        assert (m.unlearned, m.D02, m.T02) == pytest.approx((1, 1, 1), abs=1e-14)
        assert pytest.approx(1, abs=0.1) == 1e80 * m.D11  # a single matrix is roughly normalised


@every_projection
def test_a_batch_is_the_points_one_by_one(name):
    X, gamma = np.array([1e-6, 0.3, 7.0, 1e9]), np.array([0.2, 1.0, 5.0, 0.9])
    together = REGISTRY[name]().linear(1 / X, gamma)
    for i in range(len(X)):
        alone = REGISTRY[name]().linear(1 / X[i : i + 1], gamma[i : i + 1])
        for sum_ in ALL:
            assert getattr(together, sum_)[i] == getattr(alone, sum_)[0]


@every_projection
def test_random_projection_leaves_the_ratio_free(name):
    assert REGISTRY[name]().fixed_ratio is None


@pytest.mark.parametrize(("d", "p"), [(80, 30), (30, 80), (50, 50)])
def test_matrix_and_the_spectrum_of_the_same_matrix_agree(d, p):
    F = np.random.default_rng(6).standard_normal((d, p))
    matrix = Matrix(F)
    as_spectrum = Spectrum(np.linalg.eigvalsh(F.T @ F / d), d_over_p=d / p)
    assert matrix.fixed_ratio == as_spectrum.fixed_ratio == d / p
    X = 10.0 ** np.arange(-6, 5)
    one, other = sums_at(matrix, X, d / p), sums_at(as_spectrum, X, d / p)
    for name in ALL:
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-15)


def test_matrix_of_lower_rank_counts_its_missing_eigenvalues_as_zeros():
    rng = np.random.default_rng(7)
    F = rng.standard_normal((60, 10)) @ rng.standard_normal((10, 40)) / np.sqrt(10)
    F *= np.sqrt(60 / (F**2).sum(0))
    m = sums_at(Matrix(F), np.array([1e9]), 1.5)
    assert m.unlearned[0] == pytest.approx(1 - 10 / 40, abs=1e-6)
    assert m.T02[0] == pytest.approx(1 - 10 / 60, abs=1e-6)


def test_matrix_does_not_share_memory_with_the_array_it_was_given():
    F = np.random.default_rng(8).standard_normal((30, 20))
    matrix = Matrix(F)
    before = sums_at(matrix, np.ones(1), 1.5)
    F[:] = 0.0
    assert np.any(matrix.F)
    assert sums_at(matrix, np.ones(1), 1.5).D20 == before.D20
    assert sums_at(Matrix(matrix.F), np.ones(1), 1.5).D20 == before.D20


@pytest.mark.slow
@PROPERTY
@given(counts=st.lists(st.integers(1, 5), min_size=2, max_size=5), unit=st.floats(1e-3, 1e3))
def test_weights_count_repeated_eigenvalues(counts, unit):
    s = np.arange(1.0, len(counts) + 1)
    s *= sum(counts) / (s @ counts)
    repeated = Spectrum(np.repeat(s, counts), d_over_p=2.0)
    weighted = Spectrum(s, [unit * c for c in counts], d_over_p=2.0)  # weights of any unit
    X = np.array([0.01, 1.0, 1e4])
    one, other = sums_at(repeated, X, 2.0), sums_at(weighted, X, 2.0)
    assert_sums(one, vars(other), X, FULL_PRECISION)


def test_one_atom_is_the_orthogonal_law():
    X = np.array([1e-3, 1.0, 1e3])
    for gamma in (0.25, 1.0, 4.0):
        mass = min(gamma, 1.0)
        atom = Spectrum([0.0, 1 / mass], [1 - mass, mass], d_over_p=gamma)
        one, other = sums_at(atom, X, gamma), sums_at(Orthogonal(), X, gamma)
        for name in ALL:
            expected = getattr(other, name)
            slack = 1e-13 * other.W.max() if name == "dW" else 0.0  # it changes sign
            assert getattr(one, name) == pytest.approx(expected, rel=1e-13, abs=slack), name


def test_spectrum_is_a_value():
    one = Spectrum(np.array([0.5, 1.5]), d_over_p=2.0)
    assert one == Spectrum([0.5, 1.5], [3.0, 3.0], d_over_p=2.0)
    assert one != Spectrum([0.5, 1.5], d_over_p=3.0)
    assert hash(one) == hash(Spectrum((0.5, 1.5), d_over_p=2.0))
    assert "0.5" in repr(one)


def with_nan(F):
    F = F.copy()
    F[3, 2] = np.nan
    return F


NORMAL = np.random.default_rng(9).standard_normal((200, 50))
ONE_LONG_COLUMN = NORMAL * np.where(np.arange(50) == 7, 2.0, 1.0)
BAD_MATRICES = {
    "NaN": (with_nan(NORMAL), "1 NaN or infinite value"),
    "infinite": (np.where(np.arange(50) < 1, np.inf, NORMAL), "200 NaN or infinite values"),
    "normalised by sqrt d": (NORMAL / np.sqrt(200), "normalise them to ≈ d = 200"),
    "normalised by sqrt p": (NORMAL / np.sqrt(50), "normalise them to ≈ d = 200"),
    "normalised by 2": (2 * NORMAL, "normalise them to ≈ d = 200"),
    "one long column": (ONE_LONG_COLUMN, "normalise them to ≈ d = 200"),
    "one empty column": (NORMAL * (np.arange(50) != 7), "columns of squared norm 0 to"),
    "a vector": (NORMAL[0], r"shape \(50,\)"),
    "a number": (1.0, r"shape \(\)"),
    "three axes": (NORMAL[None], r"shape \(1, 200, 50\)"),
    "no columns": (NORMAL[:, :0], r"shape \(200, 0\)"),
    "no rows": (NORMAL[:0], r"shape \(0, 50\)"),
    "zeros": (np.zeros((4, 4)), "nothing but zeros"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_unusable_matrix_is_refused(case):
    F, sentence = BAD_MATRICES[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        Matrix(F)
    assert caught.value.argument == "F"


def test_normalised_matrix_is_accepted():
    assert Matrix(NORMAL).shape == (200, 50)  # or the cases above would prove nothing


NAN, INF = float("nan"), float("inf")
BAD_SPECTRA = {
    "negative": (([-0.5, 2.5],), 2.0, "eigenvalues", "non-negative"),
    "NaN": (([NAN, 1.0],), 2.0, "eigenvalues", "finite"),
    "infinite": (([INF, 1.0],), 2.0, "eigenvalues", "finite"),
    "empty": (([],), 2.0, "eigenvalues", "non-empty"),
    "a matrix": (([[1.0, 1.0]],), 2.0, "eigenvalues", "sequence"),
    "mean too large": (([1.0, 2.0],), 2.0, "eigenvalues", "have mean 1.5"),
    "mean too small": (([0.1, 0.2],), 2.0, "eigenvalues", "have mean 0.15"),
    "weighted mean wrong": (([0.5, 1.5], [1.0, 9.0]), 2.0, "eigenvalues", "have mean 1.4"),
    "no zeros": (([1.0, 1.0],), 0.5, "eigenvalues", "1 - d/p = 0.5 must be zero"),
    "too few zeros": (([0.0, 1.5, 1.5],), 0.5, "eigenvalues", "1 - d/p = 0.5 must be zero"),
    "too few weights": (([1.0, 1.0], [1.0]), 2.0, "weights", "2 non-negative"),
    "negative weight": (([1.0, 1.0], [2.0, -1.0]), 2.0, "weights", "non-negative"),
    "no weight": (([1.0, 1.0], [0.0, 0.0]), 2.0, "weights", "not all zero"),
    "NaN weight": (([1.0, 1.0], [NAN, 1.0]), 2.0, "weights", "finite"),
    "d_over_p NaN": (([1.0],), NAN, "d_over_p", "finite number above 0"),
    "d_over_p zero": (([1.0],), 0.0, "d_over_p", "finite number above 0"),
    "d_over_p negative": (([1.0],), -1.0, "d_over_p", "finite number above 0"),
    "d_over_p infinite": (([1.0],), INF, "d_over_p", "finite number above 0"),
    "d_over_p a string": (([1.0],), "2", "d_over_p", "finite number above 0"),
}


@pytest.mark.parametrize("case", BAD_SPECTRA)
def test_unusable_spectrum_is_refused(case):
    arguments, gamma, argument, sentence = BAD_SPECTRA[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        Spectrum(*arguments, d_over_p=gamma)
    assert caught.value.argument == argument


def test_spectrum_without_its_ratio_is_refused():
    with pytest.raises(TypeError, match="d_over_p"):
        Spectrum([1.0])


def test_two_matrices_are_not_one():
    first, second = (Matrix(np.random.default_rng(k).standard_normal((40, 30))) for k in (0, 1))
    assert first == first  # noqa: PLR0124
    assert first != second
