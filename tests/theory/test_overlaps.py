"""The features' side: overlaps against the ten equations as the paper prints them."""

from dataclasses import dataclass
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest

from given import random_features
from hiddenmanifold.features import projections
from hiddenmanifold.theory.features_side import overlaps as overlaps_at
from hiddenmanifold.theory.features_side import spectral_arguments
from hiddenmanifold.theory.points import Points

DIGITS = 60


@dataclass(frozen=True)
class Case:
    """Features and the variance of the teacher's field."""

    projection: projections.Projection
    kappa_1: float
    kappa_star: float
    rho: float

    @property
    def features(self):
        return random_features(self.projection, self.kappa_1, self.kappa_star)


def overlaps(case, points, e):
    """All overlaps, with those of random features."""
    at = spectral_arguments(points, e, case.rho)
    with np.errstate(all="ignore"):
        found = vars(overlaps_at(case.features, at)) | case.features.further_overlaps(at)
    return SimpleNamespace(**found)


SIGN = (np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi))
ERF = (2 / np.sqrt(3 * np.pi), 0.20036)
IDENTITY = (1.0, 0.0)
NO_SIGNAL = (0.0, 0.7)

SPECTRUM = projections.Spectrum((0.0, 0.5, 1.7, 2.8), (0.4, 0.2, 0.2, 0.2), d_over_p=0.8)


def random_matrix(d, p, seed):
    """A d x p matrix whose columns have squared norm d."""
    F = np.random.default_rng(seed).normal(size=(d, p))
    return F * np.sqrt(d / (F**2).sum(0))


MATRIX = projections.Matrix(random_matrix(12, 20, seed=1))
PROJECTIONS = {
    "gaussian": projections.Gaussian(),
    "orthogonal": projections.Orthogonal(),
    "spectrum": SPECTRUM,
    "matrix": MATRIX,
}
every_projection = pytest.mark.parametrize("projection", PROJECTIONS.values(), ids=PROJECTIONS)


def stieltjes(projection, z, gamma):
    """g(-z) and g'(-z) of the d eigenvalues of F F^T/p, at the working precision of mpmath."""
    if isinstance(projection, projections.Gaussian):
        # Marchenko-Pastur of ratio gamma: gamma z g^2 + (z + 1 - gamma) g - 1 = 0
        g = (mp.sqrt((z + 1 - gamma) ** 2 + 4 * gamma * z) - (z + 1 - gamma)) / (2 * gamma * z)
        return g, g * (1 + gamma * g) / (2 * gamma * z * g + z + 1 - gamma)
    if isinstance(projection, projections.Orthogonal):
        # F = U^T D V sqrt(p) with d_k = max(sqrt(gamma), 1), of rank min(d, p)
        eigenvalue, mass = max(gamma, mp.mpf(1)), min(1 / gamma, mp.mpf(1))
        eigenvalues, masses = [eigenvalue, mp.mpf(0)], [mass, 1 - mass]
    elif isinstance(projection, projections.Spectrum):
        eigenvalues = [gamma * mp.mpf(s) for s in projection.eigenvalues]
        masses = [mp.mpf(w) / gamma for w in projection.weights]
        masses[0] += 1 - mp.fsum(masses)  # the d x d matrix has fewer zeros than the p x p one
    else:
        d, p = projection.F.shape
        eigenvalues = [mp.mpf(s) for s in np.linalg.eigvalsh(projection.F @ projection.F.T / p)]
        masses = [mp.mpf(1) / d] * d
    terms = list(zip(eigenvalues, masses, strict=True))
    return (
        mp.fsum(m / (s + z) for s, m in terms),
        mp.fsum(m / (s + z) ** 2 for s, m in terms),
    )


def ten_equations(features, alpha, gamma, lam, e):
    """Overlaps by eq. (saddle_point) of the paper, with rho in m_s, q_s and q_w (section 6)."""
    alpha, gamma, lam, e1, e2, e3 = (mp.mpf(float(v)) for v in (alpha, gamma, lam, *e))
    k1, ks, rho = (mp.mpf(v) for v in (features.kappa_1, features.kappa_star, features.rho))
    V_s_hat = alpha * k1**2 / gamma * e1
    q_s_hat = alpha * k1**2 / gamma * e2
    m_s_hat = alpha * k1 / gamma * e3
    V_w_hat = alpha * ks**2 * e1
    q_w_hat = alpha * ks**2 * e2
    L = lam + V_w_hat
    z = L / V_s_hat
    g, dg = stieltjes(features.projection, z, gamma)
    signal = rho * m_s_hat**2 + q_s_hat
    cross = -z * g + z**2 * dg
    V_s = (1 - z * g) / V_s_hat
    q_s = signal / V_s_hat**2 * (1 - 2 * z * g + z**2 * dg) - q_w_hat / (L * V_s_hat) * cross
    m_s = rho * m_s_hat / V_s_hat * (1 - z * g)
    V_w = gamma / L * (1 / gamma - 1 + z * g)
    q_w = gamma * q_w_hat / L**2 * (1 / gamma - 1 + z**2 * dg)
    q_w -= gamma * signal / (L * V_s_hat) * cross
    M, Q = k1 * m_s, k1**2 * q_s + ks**2 * q_w
    return {
        "V": k1**2 * V_s + ks**2 * V_w,
        "V_s": V_s,
        "V_w": V_w,
        "Q": Q,
        "q_s": q_s,
        "q_w": q_w,
        "M": M,
        "m_s": m_s,
        "deficit": rho * Q - M**2,
        "excess": rho + Q - 2 * M,
    }


def random_batch(projection, points, rng, *, decades=2.0):
    """Ratios and channel averages within so many decades of 1; linear labels have e3 = e1."""
    alpha, gamma, lam = 10 ** rng.uniform(-decades, decades, (3, points))
    if projection.fixed_ratio is not None:
        gamma = np.full(points, projection.fixed_ratio)
    e = 10 ** rng.uniform(-decades, 0.3, (points, 3))
    return Points.of(alpha, gamma, lam), e


def worst_error(features, points, e, names):
    """Largest relative error of the named overlaps against the literal equations."""
    found = overlaps(features, points, e)
    with mp.workdps(DIGITS):
        expected = [
            ten_equations(features, *point)
            for point in zip(points.alpha, points.gamma, points.lam, e, strict=True)
        ]
        return {
            name: max(
                float(abs(mp.mpf(float(value)) / exact[name] - 1))
                for value, exact in zip(getattr(found, name), expected, strict=True)
            )
            for name in names
        }


@pytest.mark.parametrize("kappas", [SIGN, ERF, IDENTITY], ids=["sign", "erf", "identity"])
@every_projection
def test_overlaps_solve_the_ten_equations_of_the_paper(projection, kappas):
    rng = np.random.default_rng(0)
    features = Case(projection, *kappas, rho=1.6)
    points, e = random_batch(projection, 25, rng)
    names = ("V", "V_s", "V_w", "Q", "q_s", "q_w", "M", "m_s")
    errors = worst_error(features, points, e, names)
    assert max(errors.values()) < 1e-12, errors


# where the teacher is almost learned: (alpha, gamma, lambda, e); a float subtraction has no digit
LEARNED = [
    (1e6, 0.3, 1e-6, (1.0, 1e-9)),
    (1e8, 0.6, 1e-3, (0.5, 1e-14)),
    (1e4, 0.02, 1e-10, (2.0, 1e-12)),
    (1e9, 0.9, 1e-9, (1.0, 1e-16)),
]


@pytest.mark.parametrize(("alpha", "gamma", "lam", "e"), LEARNED)
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_a_recovered_teacher_keeps_the_digits_of_its_error(projection, alpha, gamma, lam, e):
    features = Case(PROJECTIONS[projection], 1.0, 1e-9, rho=2.3)
    points = Points.of(*(np.array([v]) for v in (alpha, gamma, lam)))
    averages = np.array([[e[0], e[1], e[0]]])
    found = overlaps(features, points, averages)
    naive = features.rho + found.Q - 2 * found.M
    lost = abs(naive - found.excess) / found.excess
    assert lost.max() > 1e-4, "the subtraction would do: the case tests nothing"
    errors = worst_error(features, points, averages, ("deficit", "excess"))
    assert max(errors.values()) < 1e-11, errors


@pytest.mark.parametrize("kappas", [SIGN, ERF, IDENTITY], ids=["sign", "erf", "identity"])
@every_projection
def test_deficit_and_excess_are_the_differences_they_stand_for(projection, kappas):
    rng = np.random.default_rng(3)
    features = Case(projection, *kappas, rho=0.7)
    points, e = random_batch(projection, 25, rng, decades=4.0)
    e[:, 2] = e[:, 0]
    errors = worst_error(features, points, e, ("deficit", "excess"))
    assert max(errors.values()) < 1e-11, errors


@pytest.mark.parametrize(
    "kappas", [SIGN, ERF, IDENTITY, NO_SIGNAL], ids=["sign", "erf", "identity", "no signal"]
)
@every_projection
def test_derivatives_of_the_overlaps_are_those_of_their_values(projection, kappas):
    rng = np.random.default_rng(5)
    features = Case(projection, *kappas, rho=1.6)
    points, e = random_batch(projection, 30, rng)

    def values(shift):
        moved = e * (1 + shift)
        o = overlaps(features, points, moved)
        tied = overlaps(features, points, moved[:, [0, 1, 0]])  # the excess is that of e3 = e1
        return np.stack([o.V, o.Q, o.M, o.deficit, tied.excess])

    o = overlaps(features, points, e)
    tied = overlaps(features, points, e[:, [0, 1, 0]])
    gradient = np.stack([o.dV, o.dQ, o.dM, o.ddeficit, tied.dexcess])
    step = 1e-3
    for which, shift in enumerate(step * np.eye(3)):
        near, far = (values(s * shift) - values(-s * shift) for s in (1, 2))
        expected = (8 * near - far) / (12 * step)
        error = np.abs(gradient[..., which] * e[:, which] - expected)
        assert (error <= 1e-9 * np.abs(values(0.0))).all()


@every_projection
def test_overlaps_are_finite_where_the_response_vanishes(projection):
    features = Case(projection, *SIGN, rho=1.0)
    gamma = projection.fixed_ratio or 0.5
    points = Points.of(np.array([2.0]), np.array([gamma]), np.array([3.0]))
    zero, tiny = (overlaps(features, points, np.array([[e1, 0.8, 0.4]])) for e1 in (0.0, 1e-13))
    for name in vars(zero):
        one, other = getattr(zero, name), getattr(tiny, name)
        if one.ndim > 1:  # what the derivative by e1 changes is nothing, to rounding
            np.testing.assert_allclose(one[:, 0] * 0.0, other[:, 0] * 1e-13, atol=1e-12)
            one, other = one[:, 1:], other[:, 1:]
        np.testing.assert_allclose(one, other, rtol=1e-11)
    np.testing.assert_allclose(zero.V_w, 1 / 3.0, rtol=1e-14)
    np.testing.assert_allclose(zero.V_s, _mean_eigenvalue(projection) / 3.0, rtol=1e-14)


def _mean_eigenvalue(projection):
    """Trace of F^T F/d per feature: 1, up to the fluctuations of a given matrix."""
    if isinstance(projection, projections.Matrix):
        return (projection.F**2).sum() / projection.F.size
    if isinstance(projection, projections.Spectrum):
        return np.dot(projection.eigenvalues, projection.weights)
    return 1.0


def test_features_without_signal_carry_no_overlap_with_the_teacher():
    features = Case(projections.Gaussian(), *NO_SIGNAL, rho=1.0)
    points = Points.of(np.array([2.0]), np.array([0.5]), np.array([0.1]))
    o = overlaps(features, points, np.array([[0.3, 0.4, 0.5]]))
    assert o.M == 0.0
    L = 0.1 + 2.0 * 0.3 * 0.49
    np.testing.assert_allclose(o.Q, 2.0 * 0.4 * 0.49**2 / L**2, rtol=1e-14)
    np.testing.assert_allclose(o.V, 0.49 / L, rtol=1e-14)


def test_identical_spectra_give_identical_overlaps_however_they_are_given():
    rng = np.random.default_rng(2)
    matrix = random_matrix(15, 10, seed=2)
    given = projections.Matrix(matrix)
    listed = projections.Spectrum(
        tuple(np.linalg.eigvalsh(matrix.T @ matrix / 15)), d_over_p=given.fixed_ratio
    )
    points, e = random_batch(given, 10, rng)
    one, other = (overlaps(Case(p, *SIGN, rho=1.0), points, e) for p in (given, listed))
    for name in vars(one):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11)
