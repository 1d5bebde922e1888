"""Penalties of scikit-learn and ours, for features of any scale."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.svm import SVC, SVR

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.data.sklearn_conventions import from_glm_alpha, objective, to_glm_alpha
from hiddenmanifold.losses import (
    Absolute,
    Gamma,
    Hinge,
    Insensitive,
    Logistic,
    Poisson,
    Square,
)
from hiddenmanifold.simulation.fit import fit_path

N, P, LAM = 120, 64, 0.3
CONVERSIONS = (
    *(hm.to_sklearn_C, hm.from_sklearn_C, hm.to_ridge_alpha, hm.from_ridge_alpha),
    *(to_glm_alpha, from_glm_alpha),
)


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(3)
    data = rng.standard_normal((N, 10))
    return data, np.sign(data[:, 0] + 0.3 * rng.standard_normal(N))


def mapped(kind, data):
    """Features as scikit-learn is given them, and the model's own, of order one."""
    if kind == "raw":
        X = np.tanh(data @ np.random.default_rng(4).standard_normal((10, P)))
        return X, X
    sampler = {"RBFSampler": RBFSampler, "Nystroem": Nystroem}[kind]
    X = sampler(gamma=0.02, n_components=P, random_state=0).fit_transform(data)
    return X, np.sqrt(P) * X


@pytest.mark.parametrize("kind", ["raw", "RBFSampler", "Nystroem"])
def test_fits_agree_whatever_the_scale_of_the_features(inputs, kind):
    data, y = inputs
    X, x = mapped(kind, data)
    ours = fit_path(Logistic(), Task.CLASSIFICATION, x, y, np.array([LAM]))[0]
    C = hm.to_sklearn_C(LAM, features=X)
    theirs = LogisticRegression(C=C, tol=1e-12, solver="newton-cholesky", fit_intercept=False)
    assert_allclose(X @ theirs.fit(X, y).coef_[0], x @ ours.w / np.sqrt(P), rtol=1e-6, atol=1e-8)
    ours = fit_path(Square(), Task.REGRESSION, x, y, np.array([LAM]))[0]
    theirs = Ridge(alpha=hm.to_ridge_alpha(LAM, features=X), fit_intercept=False).fit(X, y)
    assert_allclose(X @ theirs.coef_, x @ ours.w / np.sqrt(P), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["raw", "RBFSampler", "Nystroem"])
@pytest.mark.parametrize(
    ("loss", "theirs"), [(Poisson(), PoissonRegressor), (Gamma(), GammaRegressor)], ids=repr
)
def test_regressions_of_counts_and_amounts_agree_whatever_the_scale(inputs, loss, theirs, kind):
    data, y = inputs
    X, x = mapped(kind, data)
    y = y + 1.5
    ours = fit_path(loss, Task.REGRESSION, x, y, np.array([LAM]), intercept=True)[0]
    alpha = to_glm_alpha(LAM, features=X)
    other = theirs(alpha=alpha, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    scores = x @ ours.w / np.sqrt(P) + ours.b
    assert_allclose(np.log(other.predict(X)), scores, rtol=1e-6, atol=1e-6)
    assert objective(other, P, N) == (type(loss).__name__.lower(), from_glm_alpha(alpha, P, n=N))
    assert objective(other, P) == (type(loss).__name__.lower(), None)


@pytest.mark.parametrize("model", [HuberRegressor(), QuantileRegressor()], ids=repr)
def test_models_with_another_penalty_or_scale_have_no_counterpart(model):
    assert objective(model, P, N) == (None, None)


def test_averaged_losses_need_the_number_of_samples():
    X = np.random.default_rng(5).standard_normal((20, P))
    assert to_glm_alpha(LAM, P, n=20) == to_glm_alpha(LAM, features=X) == LAM * P / 20
    assert to_glm_alpha(LAM, features=X, n=40) == LAM * P / 40
    assert from_glm_alpha(to_glm_alpha([0.3, 4.0], P, n=20), P, n=20) == pytest.approx([0.3, 4.0])
    with pytest.raises(hm.InvalidArgumentError, match="^n is missing: give n or `features`"):
        to_glm_alpha(LAM, P)
    with pytest.raises(hm.InvalidArgumentError, match="^n = 2.5 .*whole"):
        to_glm_alpha(LAM, P, n=2.5)


def test_a_scale_can_be_stated():
    X = np.random.default_rng(5).standard_normal((20, P))
    assert hm.to_ridge_alpha(LAM, P, scale=0.5) == LAM * P / 4
    assert hm.to_ridge_alpha(LAM, features=X, scale=0.5) == LAM * P / 4
    assert hm.to_ridge_alpha(LAM, features=X) == hm.to_ridge_alpha(LAM, P) == LAM * P
    assert hm.to_ridge_alpha(LAM, features=X / np.sqrt(P)) == pytest.approx(LAM)


@pytest.mark.parametrize("there", ["sklearn_C", "ridge_alpha"])
@pytest.mark.parametrize("arguments", [{"p": P}, {"p": P, "scale": 0.2}])
def test_there_and_back(there, arguments):
    to, back = (getattr(hm, f"{way}_{there}") for way in ("to", "from"))
    lam = xr.DataArray([0.1, 2.0], dims="k", coords={"k": ["a", "b"]})
    assert back(to(0.3, **arguments), **arguments) == pytest.approx(0.3)
    assert_allclose(back(to([0.3, 4.0], **arguments), **arguments), [0.3, 4.0])
    xr.testing.assert_allclose(back(to(lam, **arguments), **arguments), lam)
    assert to(lam, **arguments).sel(k="b") == pytest.approx(to(2.0, **arguments))


def test_sizes_of_a_simulation_are_converted_all_at_once():
    p = xr.DataArray([10, 20], dims="p_over_n")
    lam = xr.DataArray([0.1, 1.0, 2.0], dims="regularisation")
    assert hm.to_sklearn_C(lam, p).shape == (3, 2)
    assert hm.to_sklearn_C(lam, p)[1, 1] == pytest.approx(1 / 20)


ONES = np.ones((5, P))
REFUSED = {
    "neither": ({}, "p", "give p or `features`"),
    "part of a feature": ({"p": 2.5}, "p", "whole"),
    "another p": ({"p": 3, "features": ONES}, "p", f"{P} as in"),
    "a vector": ({"features": ONES[0]}, "features", r"matrix \(n, p\)"),
    "not finite": ({"features": ONES * np.nan}, "features", "finite"),
    "masked": ({"features": np.ma.masked_equal(np.eye(5), 1.0)}, "features", "masked"),
    "words": ({"features": [["a"]]}, "features", "finite"),
    "between the two": ({"features": ONES / P**0.25}, "features", "scale=p"),
    "too large": ({"features": 5 * ONES}, "features", "scale=p"),
    "too few": ({"features": np.ones((5, 9))}, "features", "scale=p"),
    "no scale": ({"p": P, "scale": 0.0}, "scale", "above 0"),
}


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_tell_the_scale_is_refused(convert, case):
    arguments, name, sentence = REFUSED[case]
    with pytest.raises(hm.InvalidArgumentError, match=sentence) as caught:
        convert(1.0, **arguments)
    assert caught.value.argument == name


def test_several_numbers_of_features_are_not_those_of_one_matrix():
    X = np.random.default_rng(0).standard_normal((9, 30))
    with pytest.raises(hm.InvalidArgumentError, match="p = .* 30 as in `features`, or left out"):
        hm.to_sklearn_C(0.1, np.array([30, 60]), features=X)


# kernel machines


def white_sample(d, n=60):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, d))
    return X, np.sign(X[:, 0] + 0.5 * rng.standard_normal(n))


@pytest.mark.parametrize(
    ("loss", "intercept"),
    [("square", False), ("hinge", True), ("insensitive", True), ("absolute", True)],
)
@pytest.mark.parametrize(
    "kernel", [hm.kernels.RBF(0.9), hm.kernels.NTK("tanh", 2), hm.kernels.Laplace()]
)
def test_kernel_machines_of_scikit_learn_fit_the_same(loss, intercept, kernel):
    teacher = "linear" if loss in ("insensitive", "absolute") else "sign"
    model = hm.Model(kernel=kernel, teacher=teacher, loss=loss, intercept=intercept)
    X, y = white_sample(20)
    gram = kernel.gram(X)
    theirs = hm.to_kernel_machine(model, LAM)
    if loss != "square":
        theirs.set_params(tol=1e-10)
    theirs.fit(gram, y)
    A = np.linalg.cholesky(gram)
    x = np.sqrt(len(A)) * A
    ours = fit_path(model.loss, model.task, x, y, np.array([LAM]), intercept=intercept)[0]
    scores = theirs.decision_function(gram) if loss == "hinge" else theirs.predict(gram)
    assert_allclose(A @ ours.w + ours.b, scores, atol=1e-5)


D = 30


@pytest.mark.parametrize(
    ("estimator", "h"),
    [
        (KernelRidge(kernel="rbf", alpha=0.4), lambda t: np.exp(-2 * (1 - t))),
        (KernelRidge(kernel="rbf", gamma=0.1 / D, alpha=0.4), lambda t: np.exp(-0.2 * (1 - t))),
        (KernelRidge(kernel="polynomial", alpha=0.4), lambda t: (1 + t) ** 3),
        (KernelRidge(kernel="linear", alpha=0.4), lambda t: D * t),
        (KernelRidge(kernel="cosine", alpha=0.4), lambda t: t),
        (SVC(C=2.5), lambda t: np.exp(-2 * (1 - t))),
        (SVC(C=2.5, kernel="poly", degree=2, coef0=0.5, gamma=0.2), lambda t: (0.5 + 6 * t) ** 2),
        (SVR(C=2.5, epsilon=0.2, gamma="auto"), lambda t: np.exp(-2 * (1 - t))),
        (SVR(C=2.5, epsilon=0.0), lambda t: np.exp(-2 * (1 - t))),
    ],
    ids=range(9),
)
def test_parameters_of_kernel_machines_are_those_of_a_model(estimator, h):
    found, lam = hm.from_kernel_machine(estimator, D)
    kernel, loss, intercept = found["kernel"], found["loss"], found["intercept"]
    t = np.linspace(-0.9, 1.0, 7)
    assert_allclose(kernel(t), h(t), rtol=1e-12)
    assert lam == pytest.approx(0.4)
    ridge = isinstance(estimator, KernelRidge)
    assert intercept is not ridge
    expected = Square() if ridge else Hinge() if isinstance(estimator, SVC) else Insensitive(0.2)
    if getattr(estimator, "epsilon", None) == 0.0 and isinstance(estimator, SVR):
        expected = Absolute()
    assert loss == expected
    again = kernel.gram(X := white_sample(D)[0])
    if getattr(estimator, "kernel", "") == "cosine":
        assert_allclose(again, cosine_similarity(X), atol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "argument"),
    [
        (KernelRidge(kernel="laplacian"), "kernel"),
        (KernelRidge(kernel="precomputed"), "kernel"),
        (SVC(kernel="sigmoid"), "kernel"),
        (SVC(kernel=lambda X, Y: X @ Y.T), "kernel"),
        (SVC(class_weight="balanced"), "class_weight"),
        (SVC(C=0.0), "C"),
        (SVC(gamma=-1.0), "gamma"),
        (SVC(kernel="poly", coef0=-1.0), "coef0"),
        (SVC(kernel="poly", coef0=None), "coef0"),
        (SVC(gamma=np.array([0.1, 0.2])), "gamma"),
        (SVC, "estimator"),
        (KernelRidge(alpha=[0.1, 0.2], kernel="rbf"), "alpha"),
        (Ridge(), "estimator"),
    ],
    ids=range(13),
)
def test_kernel_machines_without_a_counterpart_are_refused(estimator, argument):
    with pytest.raises(hm.InvalidArgumentError) as caught:
        hm.from_kernel_machine(estimator, D)
    assert caught.value.argument == argument


def test_models_without_a_kernel_machine_are_refused():
    for parts in ({"loss": "logistic"}, {"loss": "square", "intercept": True}, {"loss": "hinge"}):
        with pytest.raises(hm.InvalidArgumentError, match="scikit-learn has no kernel machine"):
            hm.to_kernel_machine(hm.Model(kernel="rbf", teacher="sign", **parts), 0.1)
    random = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    for given in (random, "rbf", hm.kernels.RBF()):
        with pytest.raises(hm.InvalidArgumentError, match="a hiddenmanifold.Model with a kernel"):
            hm.to_kernel_machine(given, 0.1)
    with pytest.raises(hm.InvalidArgumentError) as caught:
        hm.to_kernel_machine(hm.Model(kernel="rbf", teacher="sign", loss="square"), 0.0)
    assert caught.value.argument == "regularisation"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ((np.ones(3),), "of finite numbers"),
        ((np.array([[1.0, np.nan]]),), "of finite numbers"),
        (([["a", "b"]],), "of finite numbers"),
        (([[1.0, 2.0], [1.0]],), "of finite numbers"),
        ((np.ones((2, 2)) * 1j,), "of finite numbers"),
        ((np.ones((2, 0)),), "of finite numbers"),
        ((np.zeros((2, 2)),), "has a row of zeros"),
        ((np.ones((2, 2)), np.ones((2, 3))), "as many as X has"),
    ],
)
def test_inputs_without_a_gram_matrix_are_refused(given, problem):
    with pytest.raises(hm.InvalidArgumentError, match=problem):
        hm.kernels.RBF().gram(*given)


@pytest.mark.parametrize("kernel", [hm.kernels.NTK("hard_tanh", 2), hm.kernels.Laplace()])
def test_lengths_of_inputs_play_no_role_in_a_gram_matrix(kernel):
    X = np.random.default_rng(0).standard_normal((6, 40))
    whole = kernel.gram(X)
    assert_allclose(np.diag(whole), kernel(np.ones(1))[0], rtol=0)
    assert_allclose(kernel.gram(X, X), whole, rtol=1e-14)
    for scale in (1e-200, 1e200, 3.0):
        assert_allclose(kernel.gram(scale * X, X.tolist()), whole, rtol=1e-12)
