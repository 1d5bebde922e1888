"""Random features of any covariance: known special cases, the moves anew, and drawn matrices."""

import numpy as np
import pytest
from scipy.optimize import brentq

import hiddenmanifold as hm
from given import Given, power_law
from hiddenmanifold import IncompatibleIngredientsError, InvalidArgumentError
from hiddenmanifold.features import Covariance, Projected, RandomFeatures
from hiddenmanifold.features.projections import Gaussian, Matrix, Orthogonal, Spectrum
from hiddenmanifold.teachers import Mixture, Sign
from spectral_oracle import NAMES

K = 10.0 ** np.arange(-5.0, 5.1, 1.0)
NOISY = Given((0.0, 0.8, 0.5))
INPUTS = power_law(50, hidden=0.2, decay=0.9)
QUANTITIES = ("generalisation_error", "training_loss", "V", "Q", "M", "q_w")


def white(d):
    """As a covariance."""
    return Covariance(np.full(d, 1 / d), np.full(d, 1 / d**2))


def same(one, other, names=NAMES, rtol=1e-11):
    for name in names:
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-16, err_msg=name
        )


@pytest.mark.parametrize("projection", [Gaussian(), Orthogonal()])
@pytest.mark.parametrize("gamma", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("activation", [NOISY, Given((0.0, 1.3, 0.0))], ids=["noisy", "linear"])
def test_features_of_white_data_are_random_features(projection, gamma, activation):
    at = K, np.full_like(K, gamma)
    names = set(NAMES) - {"left"}  # which counts what is left of the data, not of the features
    one = Projected(white(30), activation, projection).sums(*at)
    same(one, RandomFeatures(activation, projection).sums(*at), names, rtol=1e-9)


@pytest.mark.parametrize("activation", [NOISY, Given()], ids=["noisy", "linear"])
def test_as_many_orthogonal_features_are_the_data_themselves(activation):
    """An activation rescales every eigenvalue and adds to it."""
    w, t = np.array(INPUTS.eigenvalues), np.array(INPUTS.teacher_weights)
    _, k1, ks = activation.kappas
    explicit = Covariance(k1**2 * w + ks**2 / len(w), k1**2 * t, INPUTS.rho)
    projected = Projected(INPUTS, activation, "orthogonal")
    one, other = projected.sums(K, np.ones_like(K)), explicit.sums(K, np.ones_like(K))
    same(one, other, set(NAMES) - {"A", "B", "S"})  # the noise does not get brighter
    for loss in ("logistic", "square"):
        parts = {"teacher": Sign(noise=0.1), "loss": loss}
        at = {"n_over_p": [0.5, 2.0], "regularisation": 0.05}
        near, far = (
            hm.predict(hm.Model(features=features, **parts), **at, **more)
            for features, more in ((projected, {"d_over_p": 1.0}), (explicit, {}))
        )
        for name in QUANTITIES:
            np.testing.assert_allclose(near[name], far[name], rtol=1e-9, err_msg=name)


def test_infinitely_many_features_are_the_kernel():
    parts = {"teacher": Sign(noise=0.1), "loss": "logistic"}
    at = {"regularisation": [0.01, 1.0]}
    many = hm.predict(
        hm.Model(features=Projected(INPUTS), **parts), n_over_d=2.0, p_over_d=np.inf, **at
    )
    kernel = hm.predict(hm.Model(features=INPUTS, **parts), n_over_p=2.0, **at)
    for name in ("generalisation_error", "training_loss", "V", "Q", "M"):
        np.testing.assert_allclose(many[name], kernel[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize(("projection", "p"), [("gaussian", 20), ("gaussian", 90), ("dct", 20)])
def test_only_the_argument_of_the_kernel_is_stretched(projection, p):
    """In units of features counted one by one, by a root sought anew."""
    w, t = np.array(INPUTS.eigenvalues), np.array(INPUTS.teacher_weights)
    d = len(w)

    def D1(u):
        return np.sum(w / (w + u))

    def stretched(u):
        ratio = (1 - D1(u) / p) / (1.0 if projection == "gaussian" else 1 - D1(u) / d)
        return u * ratio if ratio > 0 else -1.0

    found = Projected(INPUTS, Given(), projection).sums(K, np.full_like(K, d / p))
    for i, k in enumerate(K):
        u = brentq(lambda u, k=k: stretched(u) - k / p, 1e-12, 1e9, xtol=1e-18, rtol=1e-14)
        np.testing.assert_allclose(p * found.D1[i], D1(u), rtol=1e-9)
        np.testing.assert_allclose(found.T1[i], np.sum(t / (w + u)) / INPUTS.rho, rtol=1e-9)


def drawn(projection, p, seed):
    """The features that a drawn matrix makes, as a Covariance of their own."""
    w, t = np.array(WIDE.eigenvalues), np.array(WIDE.teacher_weights)
    d, rng = len(w), np.random.default_rng(seed)
    F = projection.sample(d, p, rng).left(np.eye(d))
    g = rng.choice([-1.0, 1.0], d) * np.sqrt(t * d)  # E[νu]
    omega, vectors = np.linalg.eigh(F.T @ (w[:, None] * F))  # of x = Fᵀu/√d
    weights = (vectors.T @ (F.T @ g / np.sqrt(d))) ** 2
    return Covariance(omega / p, weights / p, WIDE.rho)


WIDE = power_law(600, hidden=0.1, decay=0.7)


@pytest.mark.slow
@pytest.mark.parametrize("projection", [Gaussian(), Orthogonal()])
def test_drawn_matrices_give_the_same_sums(projection):
    p, k = 300, np.array([0.01, 0.3, 10.0])
    expected = Projected(WIDE, Given(), projection).sums(k, np.full_like(k, 2.0))
    found = [drawn(projection, p, seed).sums(k, np.ones_like(k)) for seed in range(6)]
    for name in ("D20", "D21", "D12", "T20", "T02", "T21", "T12", "W"):
        values = np.array([getattr(sums, name) for sums in found])
        spread = values.std(0, ddof=1) / np.sqrt(len(found)) + 2e-3 * getattr(expected, name)
        assert (np.abs(values.mean(0) - getattr(expected, name)) < 5 * spread).all(), name


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [Sign(), Mixture(0.3)], ids=["sign", "classes"])
def test_separable_data_are_found_from_every_ratio(teacher):
    """Steep spectra show more of the field than the share p/d of their directions."""
    features = Projected(power_law(20, hidden=0.05, decay=2.5), "erf")
    model = hm.Model(features=features, teacher=teacher, loss="logistic", intercept=True)
    gamma = 4.0
    assert float(features.visible(np.array([gamma])).fraction[0]) > 1.0 / gamma
    p_over_n = float(hm.separability_threshold(model, d_over_p=gamma).p_over_n)
    n_over_d = 1 / (p_over_n * gamma)
    found = float(hm.separability_threshold(model, n_over_d=n_over_d).p_over_n)
    np.testing.assert_allclose(found, p_over_n, rtol=1e-10)
    found = float(hm.separability_threshold(model, p_over_n=p_over_n).n_over_d)
    np.testing.assert_allclose(found, n_over_d, rtol=1e-9)


def test_what_the_data_hide_no_number_of_features_shows():
    """Linear features of data whose own threshold is above d/n never separate them."""
    inputs = power_law(12, hidden=0.5)
    parts = {"teacher": Sign(), "loss": "logistic"}
    own = float(hm.separability_threshold(hm.Model(features=inputs, **parts)).p_over_n)
    model = hm.Model(features=Projected(inputs), **parts)
    assert 0.2 < own < 0.5
    found = hm.separability_threshold(model, n_over_d=[1.01 / own, 0.99 / own])
    never, once = found.p_over_n.values
    assert never == np.inf
    assert own < once < 0.5


# what is refused

REFUSED = {
    "no covariance": (("identity",), "inputs"),
    "eigenvalue zero": ((Covariance([1.0, 0.0], [0.5, 0.0]),), "inputs"),
    "spectrum": ((INPUTS, "erf", Spectrum([1.0], d_over_p=1.0)), "projection"),
    "matrix": ((INPUTS, "erf", Matrix(np.eye(50) * np.sqrt(50))), "projection"),
    "name": ((INPUTS, "erf", "gauss"), "projection"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_features_without_a_theory_are_refused(case):
    arguments, name = REFUSED[case]
    with pytest.raises(InvalidArgumentError) as caught:
        Projected(*arguments)
    assert caught.value.argument == name


def test_the_best_guess_is_refused_in_a_sentence():
    model = hm.Model(features=Projected(INPUTS), teacher="sign", loss="logistic")
    with pytest.raises(IncompatibleIngredientsError, match="not for random features of one"):
        hm.bayes_optimal(model, n_over_d=1.0, p_over_d=1.0)


def test_the_teacher_has_the_variance_that_the_data_say():
    inputs = power_law(20, rho=2.0)
    assert Projected(inputs).rho == 2.0
    with pytest.raises(IncompatibleIngredientsError, match="same rho"):
        hm.Model(features=Projected(inputs), teacher="sign", loss="logistic")
