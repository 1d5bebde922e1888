"""Kernels: coefficients, recursions over layers, machines at finite size, and what is refused."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import erf, ndtr

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold import IncompatibleIngredientsError, InvalidArgumentError, kernels
from hiddenmanifold.features import Kernel
from hiddenmanifold.features.activations import REGISTRY, Custom
from hiddenmanifold.features.gaussian_averages import dual_by_series
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.samples import Sizes, World
from hiddenmanifold.teachers import Linear, Mixture, Sign

EXAMPLES = {
    "ntk": kernels.NTK("tanh", hidden_layers=2),
    "nngp": kernels.NNGP("relu", weight_variance=1.5, bias_variance=0.2),
    "rbf": kernels.RBF(0.8),
    "laplace": kernels.Laplace(1.3),
    "polynomial": kernels.Polynomial(3, 0.5, 1.2),
}
every_kernel = pytest.mark.parametrize("kernel", EXAMPLES.values(), ids=EXAMPLES)


def test_every_kernel_has_an_example():
    assert {name: type(kernel) for name, kernel in EXAMPLES.items()} == kernels.REGISTRY


def gelu(z):
    return z * ndtr(z)


# dual activations


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "erf", "sign", "identity"])
@pytest.mark.parametrize("variance", [0.3, 1.0, 4.0])
def test_a_dual_in_closed_form_is_its_hermite_series(name, variance):
    activation = REGISTRY[name]()
    s = variance * np.array([-0.95, -0.5, 0.0, 0.3, 0.7, 0.9, 1.0])
    closed, series = activation.dual(s, variance), dual_by_series(activation, s, variance)
    for one, other in zip(closed[:2], series[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(closed.bend[:-1], series.bend[:-1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("variance", [0.5, 2.0])
@pytest.mark.parametrize("function", [np.tanh, gelu, np.sin], ids=["tanh", "gelu", "sine"])
def test_a_dual_is_an_average_over_two_correlated_inputs(function, variance):
    """Against the trapezoidal rule, which is exact to rounding for smooth functions."""
    z, r = np.linspace(-10.0, 10.0, 401), 0.6
    weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    u, v = np.sqrt(variance) * z, np.sqrt(variance) * (r * z[:, None] + 0.8 * z)
    expected = (weights * function(u)) @ function(v) @ weights
    found = Custom(function).dual(np.array([r * variance]), variance).value[0]
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_the_dual_of_an_activation_with_a_corner():
    """That of |z| is known, and a leaky relu is a sum of |z| and z."""
    s = np.array([-0.5, 0.0, 0.6, 0.9])
    expected = 2 / np.pi * (np.sqrt(1 - s**2) + s * np.arcsin(s))
    slope = 2 / np.pi * np.arcsin(s)
    found = Custom(np.abs, (0.0,)).dual(s)
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    np.testing.assert_allclose(found.slope, slope, rtol=1e-12, atol=1e-12)
    leaky = Custom(lambda z: np.where(z > 0, z, 0.1 * z), (0.0,)).dual(s)
    np.testing.assert_allclose(leaky.value, 0.45**2 * expected + 0.55**2 * s, rtol=1e-12)
    at_one = Custom(lambda z: np.where(z > 0, z, 0.1 * z), (0.0,)).dual(np.ones(1))
    assert at_one.slope[0] == pytest.approx(0.5 * (1 + 0.01), rel=1e-12)


@pytest.mark.slow
def test_the_dual_of_corners_is_refused_where_it_is_not_resolved():
    with pytest.raises(InvalidArgumentError, match="not resolved at a correlation of 0.9999"):
        Custom(np.abs, (0.0,)).dual(np.array([0.9999]), 1.0)
    assert np.isfinite(Custom(gelu).dual(np.array([0.9999]), 1.0).slope).all()


@pytest.mark.slow
@pytest.mark.parametrize("frequency", [3.0, 15.0, 30.0])
def test_a_series_does_not_end_in_a_gap(frequency):
    """The coefficients of sin(az) are largest at order a²; its dual is exp(-a²) sinh(a² s)."""
    s, a2 = np.array([0.3, 0.99, 0.999]), frequency**2
    found = Custom(lambda z: np.sin(frequency * z)).dual(s)
    expected = 0.5 * (np.exp(a2 * (s - 1)) - np.exp(-a2 * (s + 1)))
    np.testing.assert_allclose(found.value, expected, atol=1e-13)
    slopes = 0.5 * a2 * (np.exp(a2 * (s - 1)) + np.exp(-a2 * (s + 1)))
    np.testing.assert_allclose(found.slope, slopes, atol=1e-13 * a2)


@pytest.mark.slow
def test_a_cusp_has_a_kernel_but_no_tangent_kernel():
    cusp = Custom(lambda z: np.sign(z) * np.abs(z) ** 0.9, (0.0,))
    kappas = np.square(cusp.kappas)
    found = kernels.NNGP(cusp, weight_variance=1.0).coefficients
    np.testing.assert_allclose(found, kappas, rtol=1e-10, atol=1e-12)
    with pytest.raises(InvalidArgumentError, match="has a cusp"):
        kernels.NTK(cusp)


@pytest.mark.slow
def test_a_series_that_is_too_short_is_refused():
    with pytest.raises(InvalidArgumentError, match="not resolved at a correlation"):
        Custom(lambda z: np.sin(60.0 * z)).dual(np.array([0.9999]))


# networks

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(180)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
SMOOTH = {
    "tanh": (np.tanh, lambda z: 1.0 / np.cosh(z) ** 2),
    "erf": (erf, lambda z: 2.0 / np.sqrt(np.pi) * np.exp(-(z**2))),
}


def by_product_rule(name, s):
    """E[σ(u)σ(v)] and E[σ'(u)σ'(v)] at correlation s, on a grid of Gauss–Hermite nodes."""
    u, v = NODES[:, None], s * NODES[:, None] + math.sqrt(max(0.0, 1.0 - s * s)) * NODES
    return tuple(WEIGHTS @ (g(u) * g(v)) @ WEIGHTS for g in SMOOTH[name])


def by_angle(s):
    """The same for relu, in polar coordinates: an integral over the directions of (u, v)."""
    angle = mp.acos(s)
    overlap = [angle - mp.pi / 2, mp.pi / 2]
    value = mp.quad(lambda phi: mp.cos(phi) * mp.cos(phi - angle), overlap) / mp.pi
    return value, mp.quad(lambda phi: 1, overlap) / (2 * mp.pi)


def tangent_kernel(average, depth, t):
    """The recursion as Jacot et al. write it, with layers of unit variance."""
    norm = average(1.0)[0]
    sigma = theta = t
    for _ in range(depth):
        value, slope = average(sigma)
        sigma, theta = value / norm, value / norm + theta * slope / norm
    return sigma, theta


@pytest.mark.parametrize("depth", range(1, 6))
@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
def test_coefficients_of_networks_are_those_of_an_independent_recursion(name, depth):
    def average(s):
        return by_angle(s) if name == "relu" else by_product_rule(name, s)

    with mp.workdps(25):
        one = 1.0 if name != "relu" else mp.mpf(1)
        at = {t: tangent_kernel(average, depth, t * one) for t in (0, 1)}
        step = one / (50 if name != "relu" else 10**6)
        weights = ((1, 672), (2, -168), (3, 32), (4, -3))  # differences of eighth order
        slopes = [0, 0]
        for k, weight in weights:
            up, down = (tangent_kernel(average, depth, sign * k * step) for sign in (1, -1))
            slopes = [
                slope + weight * (a - b) / (840 * step)
                for slope, a, b in zip(slopes, up, down, strict=True)
            ]
    for which, kind in enumerate((kernels.NNGP, kernels.NTK)):
        found = kind(name, hidden_layers=depth).coefficients
        constant, total = float(at[0][which]), float(at[1][which])
        assert found.constant == pytest.approx(constant, abs=1e-10)
        assert found.linear == pytest.approx(float(slopes[which]), abs=1e-10)
        expected = total - constant - float(slopes[which])
        assert found.nonlinear == pytest.approx(expected, abs=1e-10)


def test_relu_networks_have_arc_cosine_kernels():
    t = np.linspace(-1.0, 1.0, 41)
    angle = np.pi - np.arccos(t)
    k0, k1 = angle / np.pi, (np.sqrt(1 - t**2) + t * angle) / np.pi
    np.testing.assert_allclose(kernels.NTK("relu")(t), t * k0 + k1, atol=1e-14)
    np.testing.assert_allclose(kernels.NNGP("relu")(t), k1, atol=1e-14)
    for depth in (1, 2, 5):
        assert kernels.NTK("relu", depth)(np.ones(1))[0] == pytest.approx(depth + 1, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", gelu])
def test_weights_and_biases_of_given_variance(activation):
    """A layer is S -> w E[σσ] + b, from the inputs to the output (as in libraries of networks)."""
    w, b, t = 1.7, 0.3, np.array([-0.4, 0.0, 0.5, 1.0])
    network = kernels.NTK(activation, 2, weight_variance=w, bias_variance=b)
    sigma = network.sigma
    S, q = w * t + b, w + b
    theta = S
    for _ in range(2):
        # Monte Carlo would be too rough: the dual is tested on its own
        dual = sigma.dual(S, q)
        S, q = w * dual.value + b, w * sigma.dual(np.array([q]), q).value[0] + b
        theta = S + w * dual.slope * theta
    np.testing.assert_allclose(network(t), theta, rtol=1e-12)


@every_kernel
def test_coefficients_are_those_of_the_function(kernel):
    generic, own = kernels.Custom(kernel.__call__).coefficients, kernel.coefficients
    np.testing.assert_allclose(own, generic, rtol=1e-11, atol=1e-13)


def test_kernels_of_extreme_scales_keep_their_digits():
    with mp.workdps(60):
        for scale in (0.2, 1.0, 30.0, 1e5):
            x = mp.mpf(scale) ** -2
            a = mp.sqrt(2) / scale
            expected = {
                kernels.RBF(scale): (mp.exp(-x), x * mp.exp(-x), 1 - mp.exp(-x) * (1 + x)),
                kernels.Laplace(scale): (
                    mp.exp(-a),
                    a / 2 * mp.exp(-a),
                    1 - mp.exp(-a) * (1 + a / 2),
                ),
                kernels.Polynomial(4, 1.0, scale): (1, 4 * x, (1 + x) ** 4 - 1 - 4 * x),
            }
            for kernel, values in expected.items():
                np.testing.assert_allclose(
                    kernel.coefficients, [float(v) for v in values], rtol=1e-13
                )


# predictions


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", "sign", "hard_tanh"])
@pytest.mark.parametrize(
    ("teacher", "loss"),
    [
        (Linear(noise=0.2), "square"),
        ("sign", "logistic"),
        ("sign", "hinge"),
        (Sign(noise=0.3, threshold=0.4), "logistic"),
        (Linear(noise=0.2), "absolute"),
    ],
)
def test_one_hidden_layer_is_the_limit_of_many_random_features(activation, teacher, loss):
    kernel = hm.Model(
        kernel=kernels.NNGP(activation, weight_variance=1.0), teacher=teacher, loss=loss
    )
    features = plain_model(activation=activation, teacher=teacher, loss=loss)
    at = {"n_over_d": [0.3, 1.1, 5.0], "on_failure": "keep"}
    for lam in (0.0, 1e-6, 0.1, 10.0, np.inf):
        one = hm.predict(kernel, **at, regularisation=lam)
        other = hm.predict(features, **at, p_over_n=np.inf, regularisation=lam)
        np.testing.assert_array_equal(one.status, other.status)
        for name in ("generalisation_error", "clean_error", "training_loss", "Q", "M", "V"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("teacher", "loss"), [(Linear(noise=0.2), "square"), (Sign(flip=0.1), "logistic")]
)
def test_a_linear_kernel_predicts_as_white_covariates(teacher, loss):
    d = 50
    white = hm.features.Covariance(np.full(d, 1 / d), np.full(d, 1 / d**2))
    covariates = hm.Model(features=white, teacher=teacher, loss=loss)
    kernel = hm.Model(kernel=kernels.Polynomial(1, 0.0), teacher=teacher, loss=loss)
    alpha = [0.3, 0.9, 1.1, 5.0, 20.0]
    for lam in (0.0, 1e-6, 0.1, 10.0):
        one = hm.predict(kernel, n_over_d=alpha, regularisation=lam)
        other = hm.predict(covariates, n_over_p=alpha, regularisation=lam)
        for name in ("generalisation_error", "training_loss", "Q", "q_w"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-10, err_msg=name)


@pytest.mark.parametrize(
    ("teacher", "loss", "linear_loss"),
    [
        (Linear(noise=0.2), "square", lambda _: "square"),
        ("sign", "square", lambda _: "square"),
        ("sign", "hinge", hm.losses.SmoothedHinge),
        (Sign(flip=0.1), "hinge", hm.losses.SmoothedHinge),
        (Linear(noise=0.2), "absolute", hm.losses.Huber),
    ],
)
@pytest.mark.parametrize("kernel", [kernels.NTK("tanh", 2), kernels.NNGP("erf", 3)])
def test_the_nonlinear_part_smooths_the_loss(kernel, teacher, loss, linear_loss):
    """A fit is a linear one, of the Moreau envelope of the loss with parameter κ⋆²/λ.

    That of the hinge is the smoothed hinge, that of the absolute loss is Huber's over its width,
    and that of the square loss a square with another penalty.
    """
    d, (_, linear, rest) = 50, kernel.coefficients
    white = hm.features.Covariance(np.full(d, linear / d), np.full(d, linear / d**2))
    alpha, machine = [0.3, 1.0, 4.0], hm.Model(kernel=kernel, teacher=teacher, loss=loss)
    for lam in (0.03, 1.0):
        width = rest / lam
        scale = {"square": 1.0 + width, "absolute": width}.get(loss, 1.0)
        fitted = hm.Model(features=white, teacher=teacher, loss=linear_loss(width))
        one = hm.predict(machine, n_over_d=alpha, regularisation=lam)
        other = hm.predict(fitted, n_over_p=alpha, regularisation=lam * scale)
        for name in ("generalisation_error", "Q", "M"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9, err_msg=name)


@pytest.mark.slow
def test_best_penalty_and_best_guess_are_those_of_many_random_features():
    kernel = hm.Model(kernel=kernels.NNGP("erf", weight_variance=1.0), teacher="sign", loss="hinge")
    features = plain_model(loss="hinge")
    at, many = {"n_over_d": [0.5, 3.0]}, {"p_over_n": np.inf}
    one = hm.predict(kernel, **at, regularisation="optimal")
    other = hm.predict(features, **at, **many, regularisation="optimal")
    np.testing.assert_allclose(one.generalisation_error, other.generalisation_error, rtol=1e-11)
    one, other = hm.bayes_optimal(kernel, **at), hm.bayes_optimal(features, **at, **many)
    np.testing.assert_allclose(one.generalisation_error, other.generalisation_error, rtol=1e-11)
    needed = hm.samples_needed(kernel, target_error=0.2).n_over_d
    there = hm.predict(kernel, n_over_d=float(needed), regularisation="optimal")
    assert float(there.generalisation_error) == pytest.approx(0.2, rel=1e-8)


def test_numbers_that_were_simulated_independently():
    """Theory as it was found by 20 lines of their own, with their simulations (see the docs)."""
    labels = {"teacher": Linear(noise=0.2), "loss": "square", "intercept": True}
    known = [
        (kernels.NTK("relu"), labels, 0.1, 0.4169),
        (kernels.NTK("relu"), labels | {"teacher": "sign"}, 0.05, 0.1864),
        (kernels.NTK("relu"), labels, 1e-8, 0.4022),
        (kernels.NTK("relu", hidden_layers=2), labels, 0.1, 0.5167),
        (kernels.RBF(), labels, 0.1, 0.4471),
        (kernels.Laplace(), labels, 0.1, 0.7236),
    ]
    for kernel, others, lam, expected in known:
        model = hm.Model(kernel=kernel, **others)
        found = hm.predict(model, n_over_d=2.0, regularisation=lam).generalisation_error
        assert round(float(found), 4) == expected


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "logistic"])
@pytest.mark.parametrize("kernel", [kernels.RBF(0.2), kernels.RBF(0.4), lambda t: 1 + t**3])
@pytest.mark.filterwarnings("ignore::hiddenmanifold.BlindFeaturesWarning")
def test_weak_linear_parts_and_biased_labels(kernel, loss):
    """Predictions hardly vary, and the intercept is that of the smoothed loss."""
    model = hm.Model(kernel=kernel, teacher=Sign(threshold=0.7), loss=loss, intercept=True)
    ds = hm.predict(model, n_over_d=[1e-3, 1.0, 30.0], regularisation=[1e-3, 0.1, 10.0])
    assert np.isfinite(ds.generalisation_error).all()
    if loss == "hinge" and not isinstance(kernel, kernels.KernelFunction):
        rare = ndtr(-0.7)
        for lam in (0.1, 10.0):
            at = ds.sel(regularisation=lam)
            # p_- slope_- = p_+ slope_+: those of the rarer label are all 1 if 1 + b is beyond 1/lam
            b = 1 - rare / (1 - rare) / lam if lam > 1 else 1 - 2 * rare
            np.testing.assert_allclose(np.abs(at.intercept), b, rtol=1e-9)
            np.testing.assert_allclose(at.generalisation_error, rare, rtol=1e-9)


def test_sizes_and_ratios_of_a_kernel():
    model = hm.Model(kernel="ntk", teacher="sign", loss="logistic")
    by_ratio = hm.predict(model, n_over_d=[1.5, 3.0], regularisation=0.1)
    by_size = hm.predict(model, n=[300, 600], d=200, regularisation=0.1)
    inverse = hm.predict(model, d_over_n=[2 / 3, 1 / 3], regularisation=0.1)
    for other in (by_size, inverse):
        np.testing.assert_allclose(
            by_ratio.generalisation_error, other.generalisation_error, rtol=1e-12
        )
    assert "p" not in by_size.coords
    ds = hm.simulate(model, n=60, d=30, regularisation=0.1, seeds=2)
    assert "p" not in ds.coords
    assert {"n", "d"} <= set(ds.coords)


@pytest.mark.parametrize(
    "wrong",
    [
        {"p_over_n": 2.0},
        {"n_over_p": 2.0},
        {"n_over_d": 2.0, "p_over_n": np.inf},
        {"n": 20, "p": 30, "d": 10},
    ],
)
def test_a_kernel_has_no_number_of_features(wrong):
    model = hm.Model(kernel="rbf", teacher="sign", loss="logistic")
    with pytest.raises(InvalidArgumentError, match="p is infinite for a kernel"):
        hm.predict(model, **wrong, regularisation=0.1)


@pytest.mark.parametrize(
    "search",
    [
        lambda model: hm.separability_threshold(model, n_over_d=2.0),
        hm.separability_threshold,
        lambda model: hm.existence_threshold(model, n_over_d=2.0),
        lambda model: hm.interpolation_peak(model, regularisation=0.1),
        lambda model: hm.features_needed(model, n_over_d=2.0),
    ],
)
def test_no_number_of_features_is_sought_for_a_kernel(search):
    model = hm.Model(kernel="rbf", teacher="sign", loss="logistic")
    with pytest.raises(InvalidArgumentError, match="has infinitely many features"):
        search(model)


# machines


@every_kernel
@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_a_machine_minimises_the_objective_over_its_coefficients(kernel, loss):
    """Its fit is the kernel machine Σ a_i k(c, c_i) + b, whose coefficients are dual variables."""
    model = hm.Model(kernel=kernel, teacher=Sign(noise=0.3), loss=loss, intercept=True)
    world = World.draw(model, Sizes(40, 20, 20), np.random.default_rng(1))
    machine, train = world.training(40, np.random.default_rng(2))
    lam = 0.3
    (fit,) = fit_path(model.loss, model.task, train.X, train.y, np.array([lam]), intercept=True)
    c = machine.features.centres / np.linalg.norm(machine.features.centres, axis=1)[:, None]
    gram = kernel(np.clip(c @ c.T, -1, 1) * (1 - np.eye(40)) + np.eye(40))
    a = machine.features.inverse @ fit.w
    f = gram @ a + fit.b
    np.testing.assert_allclose(train.X @ fit.w / np.sqrt(train.X.shape[1]) + fit.b, f, atol=1e-9)
    assert fit.w @ fit.w == pytest.approx(a @ gram @ a, rel=1e-9)
    assert abs(a.sum()) < 1e-7 * np.abs(a).sum()
    margin = train.y * f
    dual = lam * train.y * a  # minus the slope of the loss
    if loss == "square":
        np.testing.assert_allclose(dual, 1 - margin, atol=1e-8)
    elif loss == "logistic":
        np.testing.assert_allclose(dual, 1 / (1 + np.exp(margin)), atol=1e-6)
    else:
        assert (dual > -1e-6).all()
        assert (dual < 1 + 1e-6).all()
        assert dual[margin > 1 + 1e-6] == pytest.approx(0.0, abs=1e-6)
        assert dual[margin < 1 - 1e-6] == pytest.approx(1.0, abs=1e-6)
    fresh = machine.sample(5, np.random.default_rng(3))
    other, _ = machine.features.inputs.sample(5, np.random.default_rng(3))
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    np.testing.assert_allclose(
        fresh.X @ fit.w / np.sqrt(fresh.X.shape[1]), kernel(other @ c.T) @ a, atol=1e-9
    )


def test_a_linear_kernel_is_a_linear_model():
    """Its Gram matrix is singular: the machine has as many features as there are dimensions."""
    model = hm.Model(kernel=kernels.NNGP("identity"), teacher=Linear(noise=0.1), loss="square")
    world = World.draw(model, Sizes(50, 20, 20), np.random.default_rng(1))
    machine, train = world.training(50, np.random.default_rng(2))
    assert train.X.shape == (50, 20)
    (fit,) = fit_path(model.loss, model.task, train.X, train.y, np.array([0.5]))
    c = machine.features.centres / np.linalg.norm(machine.features.centres, axis=1)[:, None]
    w = np.linalg.solve(c.T @ c + 0.5 * np.eye(20), c.T @ train.y)
    np.testing.assert_allclose(train.X @ fit.w / np.sqrt(20), c @ w, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("equivalent", [False, True])
def test_overlaps_are_the_moments_of_fresh_scores(equivalent):
    d, n = 300, 200
    model = hm.Model(kernel="ntk", teacher=Mixture(0.3), loss="logistic")
    world = World.draw(model, Sizes(n, d, d), np.random.default_rng(1), equivalent=equivalent)
    world, train = world.training(n, np.random.default_rng(2))
    (fit,) = fit_path(model.loss, model.task, train.X, train.y, np.array([0.05]))
    fresh = world.sample(20_000, np.random.default_rng(3))
    f = fresh.X @ fit.w / np.sqrt(fresh.X.shape[1])
    overlaps, constant = world.features.overlaps(fit.w), world.features.constant(fit.w)
    means = {y: f[fresh.y == y].mean() for y in (1, -1)}
    spread = np.sqrt(overlaps["Q"])
    assert abs((means[1] - means[-1]) / 2 - overlaps["M"]) < 0.05 * spread
    assert abs((means[1] + means[-1]) / 2 - constant) < 0.05 * spread
    assert f[fresh.y == -1].var() == pytest.approx(overlaps["Q"], rel=0.05)


def test_rounding_of_a_nearly_singular_gram_matrix_is_reported():
    """In three dimensions a wide kernel has eigenvalues far below rounding."""
    model = hm.Model(kernel=kernels.RBF(3.0), teacher=Linear(noise=0.2), loss="square")
    at = {"n": 200, "d": 3, "seeds": 2, "n_test": 10, "regularisation": [0.0, 1e-12, 1e-2]}
    optimality = hm.simulate(model, **at).optimality.max("seed").values
    assert (optimality[:2] > 1e-3).all()
    assert optimality[2] < 1e-7
    exact = hm.Model(kernel=kernels.Polynomial(1, 0.0), teacher=Linear(noise=0.2), loss="square")
    assert hm.simulate(exact, **at).optimality.max() < 1e-10


def test_a_kernel_without_training_samples_has_no_features():
    drawn = Kernel("rbf").draw(10, 10, 1.0, np.random.default_rng(0))
    with pytest.raises(TypeError, match="draw these first"):
        drawn.sample(3, np.random.default_rng(1))


@pytest.mark.slow
def test_a_store_keeps_fits_of_kernels(tmp_path):
    model = hm.Model(kernel=lambda t: np.exp(2 * (t - 1)), teacher="sign", loss="square")
    at = {"n_over_d": 2.0, "regularisation": 0.1, "d": 20, "seeds": 2, "store": tmp_path / "s.db"}
    first, second = hm.simulate(model, **at), hm.simulate(model, **at)
    assert (first.computed, second.reused) == (2, 2)
    np.testing.assert_array_equal(first.generalisation_error, second.generalisation_error)


# what is refused


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda t: 1 + t - 0.1 * t**2, "not positive definite in 2 dimensions"),
        (np.cos, "not positive definite"),
        (lambda t: 1 - t, "h\\(1\\) = 0"),
        (lambda t: 1.1 - t, "not positive definite"),
        (lambda t: 2 + t + 0.3 * t**9 - 0.2 * t**11, "not positive definite in 2 dimensions"),
        (np.abs, "not positive definite"),
        (lambda t: t + 1j, "complex numbers"),
        (lambda t: t - 0.5 * t**6 + 3 * t**8 + t**10, "not positive definite in 100 dimensions"),
        (lambda t: 1 / t, "is not finite at a cosine of 0"),
        (lambda t: 1.0, "vectorised"),
        (lambda t: 1 + t + 1e-8 * t**2, "lost to rounding"),
    ],
)
def test_what_is_no_kernel_is_refused(function, problem):
    with np.errstate(divide="ignore"), pytest.raises(InvalidArgumentError, match=problem) as caught:
        Kernel(function)
    assert caught.value.argument == "function"


@pytest.mark.slow
def test_a_constant_kernel_is_refused():
    with pytest.raises(InvalidArgumentError, match="is constant"):
        hm.Model(kernel=np.ones_like, teacher="sign", loss="square")


def test_a_derivative_may_be_given():
    given = Kernel(np.exp, derivative_at_zero=1.0)
    assert given.function.coefficients.linear == 1.0
    with pytest.raises(InvalidArgumentError, match="contradicts the function"):
        Kernel(np.exp, derivative_at_zero=1.1)
    with pytest.raises(InvalidArgumentError, match="only with a function of your own"):
        Kernel("rbf", derivative_at_zero=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: kernels.RBF(0.0), "scale"),
        (lambda: kernels.Laplace(-1.0), "scale"),
        (lambda: kernels.Polynomial(0), "degree"),
        (lambda: kernels.Polynomial(2.5), "degree"),
        (lambda: kernels.Polynomial(2, -0.1), "offset"),
        (lambda: kernels.NTK("sign"), "activation"),
        (lambda: kernels.NTK("sine"), "activation"),
        (lambda: kernels.NTK(hidden_layers=0), "hidden_layers"),
        (lambda: kernels.NNGP(bias_variance=1.0), "bias_variance"),
        (lambda: kernels.NNGP(bias_variance=-0.1), "bias_variance"),
        (lambda: kernels.NNGP(weight_variance=0.0), "weight_variance"),
        (lambda: kernels.NNGP(bias_variance=1e300, weight_variance=1.0), "bias_variance"),
        (lambda: kernels.NTK(Custom(lambda z: np.exp(2 * z) + np.sign(z), (0.0,))), "activation"),
        (lambda: kernels.NTK(Custom(lambda z: np.sqrt(np.abs(z)), (0.0,))), "activation"),
        (lambda: Kernel(REGISTRY["relu"]()), "kernel"),
        (lambda: Kernel("rbf").kappas and Kernel(kernels.Polynomial(2000)).kappas, "kernel"),
        (lambda: Kernel("rfb"), "kernel"),
        (lambda: Kernel(3.0), "kernel"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, argument):
    with pytest.raises(InvalidArgumentError) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.slow
def test_an_intercept_whose_penalty_remains_is_refused():
    """A kernel with h(0) = 0 and h''(0) > 0 provides one, of which biased labels make use."""

    def bent(t):
        return t + t**2

    for teacher, loss in (
        (Sign(threshold=0.5), "logistic"),
        (hm.teachers.Real("relu"), "square"),
        (Linear(), hm.losses.Quantile(0.7)),
        (hm.teachers.Poisson(), "poisson"),
    ):
        with pytest.raises(IncompatibleIngredientsError, match="intercept=True"):
            hm.Model(kernel=bent, teacher=teacher, loss=loss)
        hm.Model(kernel=bent, teacher=teacher, loss=loss, intercept=True)
        hm.Model(kernel=lambda t: 0.1 + bent(t), teacher=teacher, loss=loss)
        hm.Model(kernel=lambda t: t + t**3, teacher=teacher, loss=loss)
    hm.Model(kernel=bent, teacher="sign", loss="hinge")
    hm.Model(kernel=bent, teacher=Linear(noise=0.1), loss="huber")


@pytest.mark.slow
def test_a_kernel_without_a_linear_part_sees_nothing():
    with pytest.warns(hm.BlindFeaturesWarning, match="h'\\(0\\) = 0 of a kernel"):
        model = hm.Model(kernel=lambda t: 1 + t**2, teacher=Linear(noise=0.5), loss="square")
    ds = hm.predict(model, n_over_d=2.0, regularisation=0.1)
    assert float(ds.generalisation_error) == pytest.approx(1.5)


def test_kernel_and_random_features_are_not_given_both():
    for also in ({"activation": "erf"}, {"projection": "gaussian"}):
        with pytest.raises(InvalidArgumentError, match="cannot be combined with activation"):
            hm.Model(kernel="ntk", **also, teacher="sign", loss="square")
    with pytest.raises(InvalidArgumentError, match="cannot be combined with kernel"):
        hm.Model(kernel="ntk", features=Kernel("rbf"), teacher="sign", loss="square")
