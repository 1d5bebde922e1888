"""Training time: nodes against filters, sums against spectra, limits, and other papers' results."""

import numpy as np
import pytest

import hiddenmanifold as hm
from given import EXAMPLES, power_law
from hiddenmanifold import IncompatibleIngredientsError, InvalidArgumentError, Status
from hiddenmanifold.features import Covariance, Deep, Layer, Projected, RandomFeatures
from hiddenmanifold.theory.training.largest_eigenvalue import largest_eigenvalue
from hiddenmanifold.theory.training.ridge_sums import Labels
from hiddenmanifold.theory.training.rules import Descent, Flow, beyond

SPECTRUM = np.concatenate([10.0 ** np.linspace(-9.0, 0.0, 60), np.linspace(1.0, 1.9, 30)])


def filters(rule, time, lam=0.0):
    """The φ(x) of a rule on the spectrum, from its ridge fits; one row for each time."""
    time = np.array(time, dtype=float)
    found = np.empty((len(time), len(SPECTRUM)))
    for nodes in rule.nodes(time, np.full(len(time), lam)):
        terms = nodes.b[..., None] / (SPECTRUM + nodes.z[..., None])
        found[nodes.index] = 2.0 * terms.sum(1).real
    return found


def weights_after(steps, step, momentum, nesterov, lam):
    """The same by running the method on one direction of each eigenvalue, for y = 1."""
    w = before = np.zeros_like(SPECTRUM)
    for _ in range(steps):
        ahead = w + momentum * (w - before) * nesterov
        gradient = (SPECTRUM + lam) * ahead - 1.0
        w, before = w + momentum * (w - before) - step * gradient, w
    return w


# the nodes


def test_contours_hold_for_every_time():
    time = 10.0 ** np.arange(-6.0, 14.0)
    x = np.outer(time, SPECTRUM)
    np.testing.assert_allclose(filters(Flow(), time), -np.expm1(-x) / SPECTRUM, rtol=5e-14)


@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_contours_hold_for_any_number_of_steps(lam):
    time = np.array([1.0, 2.0, 7.0, 15.0, 16.0, 17.0, 100.0, 10001.0])
    x, steps = SPECTRUM + lam, time[:, None]
    fallen = -np.expm1(steps * np.log1p(-np.minimum(x, 0.99)))  # to rounding, for small x
    expected = np.where(x < 0.99, fallen, 1.0 - (1.0 - x) ** steps) / x
    found = filters(Descent(np.ones(len(time))), time, lam)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=2e-12)


def test_a_million_steps_are_those_of_the_flow():
    found = filters(Descent(np.full(1, 1e-6)), [1e6])
    np.testing.assert_allclose(found, filters(Flow(), [1.0]), rtol=2e-6)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize(("momentum", "step"), [(0.5, 0.6), (0.9, 0.4)])
def test_circles_hold_with_momentum(nesterov, momentum, step):
    for steps in (1, 2, 3, 20, 100):
        rule = Descent(np.full(1, step), momentum, nesterov)
        expected = weights_after(steps, step, momentum, nesterov, 0.01)
        np.testing.assert_allclose(filters(rule, [steps], 0.01)[0], expected, rtol=1e-10)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum", [0.3, 0.9, 0.99])
def test_momentum_that_is_forgotten_needs_no_circle(momentum, nesterov):
    """Against powers of the roots of the recursion, up to a thousand times as many steps."""
    step = 0.99 * (1.0 + momentum) / (1.0 + 2.0 * momentum * nesterov)
    rule, x, lam = Descent(np.full(1, step), momentum, nesterov), SPECTRUM + 0.1, 0.1
    slowed = 1.0 - step * x if nesterov else np.ones_like(x)
    a = (1.0 + momentum) * slowed - (0.0 if nesterov else step * x)
    roots = 0.5 * (a + np.array([[1], [-1]]) * np.sqrt(a**2 - 4.0 * momentum * slowed + 0j))
    first = a - momentum * slowed  # what is left after a step, of one before
    share = (first - roots[::-1]) / (roots - roots[::-1])
    for steps in np.ceil(beyond(momentum) * np.array([1.0, 1.7, 1000.0])).tolist():
        (nodes,) = rule.nodes(np.array([steps]), np.array([lam]))
        assert nodes.z.shape == (1, 28)
        expected = (1.0 - (share * roots**steps).sum(0).real) / x
        found = filters(rule, [steps], lam)[0]
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11)


# the spectrum

LINEAR = Labels(1.0, 1.0, 1.0)
WHITE = Covariance((1.0,), (1.0,))


def test_largest_eigenvalue_of_white_data_is_that_of_marchenko_and_pastur():
    alpha = np.array([0.5, 2.0, 1.0])
    found = largest_eigenvalue(WHITE, LINEAR, alpha, np.ones(3))
    np.testing.assert_allclose(found, (1.0 + np.sqrt(alpha)) ** 2, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "deep"])
def test_largest_eigenvalue_is_that_of_drawn_samples(name):
    features, rng = EXAMPLES[name], np.random.default_rng(2)
    d, p, n = 300, 375, 300
    found = largest_eigenvalue(features, LINEAR, np.array([n / p]), np.array([d / p]))
    drawn = []
    for _ in range(4):
        X, _ = features.draw(d, p, 1.0, rng).sample(n, rng)
        drawn.append(np.linalg.norm(X, 2) ** 2 / p)
    assert abs(np.mean(drawn) / found[0] - 1) < 0.3 * n**-0.333


def test_largest_eigenvalue_of_projected_white_covariates_is_that_of_random_features():
    white, alpha, gamma = Covariance((0.25,) * 4, (0.0625,) * 4), np.array([0.7]), np.array([1.6])
    for projection in ("gaussian", "orthogonal"):
        found, expected = (
            largest_eigenvalue(features, LINEAR, alpha, gamma)
            for features in (
                Projected(white, "tanh", projection),
                RandomFeatures("tanh", projection),
            )
        )
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_the_direction_of_classes_may_lie_beyond_the_edge():
    """A spike of the covariance, in closed form (Baik, Ben Arous and Péché 2005)."""
    alpha, rho = np.array([0.05, 0.5, 2.0]), 3.0
    for slope in (1.0, 0.64):
        spike = 1.0 + slope * rho
        beyond = spike - 1.0 > alpha**-0.5
        expected = np.where(beyond, spike * (alpha + 1 / (spike - 1)), (1 + alpha**0.5) ** 2)
        found = largest_eigenvalue(WHITE, Labels(rho, slope, slope, True), alpha, np.ones(3))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_steps_that_diverge_along_the_direction_of_classes_are_refused():
    teacher = hm.teachers.Mixture(0.5, rho=30.0)
    model = hm.Model(features=EXAMPLES["random"], teacher=teacher, loss="square", intercept=True)
    linear = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square")
    at = {"n_over_d": 1.0, "p_over_n": 0.7, "times": [20]}
    step = 0.6 * float(hm.training(linear, **at, step=0.1).largest_step[0])
    with pytest.raises(InvalidArgumentError, match="use less than"):
        hm.training(model, **at, step=step)


# errors


def model_of(features):
    return hm.Model(features=features, teacher=hm.teachers.Linear(0.3), loss="square")


def training_of(features, **options):
    return hm.training(model_of(features), **options)


def training(features, times, *, n_over_p, noise=0.3, **options):
    model = hm.Model(features=features, teacher=hm.teachers.Linear(noise), loss="square")
    return hm.training(model, n_over_p=n_over_p, times=times, **options)


@pytest.mark.parametrize("n_over_p", [0.1, 0.5, 2.0, 10.0])
def test_white_data_follow_advani_and_saxe(n_over_p):
    """The average of both parts of the error over the law of Marchenko and Pastur."""
    times, noise = 10.0 ** np.arange(-3.0, 7.0), 0.3
    angle = (np.arange(20_000) + 0.5) * np.pi / 20_000
    low, high = (1 - n_over_p**-0.5) ** 2, (1 + n_over_p**-0.5) ** 2
    s = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)
    density = np.sqrt((high - s) * (s - low)) * np.sin(angle) * (high - low) / 2
    density *= n_over_p / (2 * s) / 20_000
    x = np.outer(times, n_over_p * s)
    lost = np.exp(-2 * x) + noise * times[:, None] / x * np.expm1(-x) ** 2
    expected = noise + lost @ density + max(0.0, 1 - n_over_p)
    ds = training(Covariance((1.0,), (1.0,)), times, n_over_p=n_over_p, noise=noise)
    np.testing.assert_allclose(ds.generalisation_error, expected, rtol=1e-11)


LABELS = {
    "linear": {"teacher": hm.teachers.Linear(0.3)},
    "threshold": {"teacher": hm.teachers.Sign(noise=0.2, threshold=0.3), "intercept": True},
    "counts": {"teacher": hm.teachers.Poisson()},
    "classes": {"teacher": hm.teachers.Mixture(0.3), "intercept": True},
    "equal classes": {"teacher": hm.teachers.Mixture()},
}
SHARED = ("generalisation_error", "clean_error", "training_loss", "Q", "M", "q_w", "alignment")


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", ["random", "covariance", "kernel"])
def test_late_flow_is_ridge_regression_and_early_flow_that_of_large_penalties(labels, name):
    model = hm.Model(features=EXAMPLES[name], loss="square", **labels)
    ratios = {"n_over_d": 1.5} | ({"p_over_d": 0.7} if name == "random" else {})
    lam = 0.05
    late = hm.training(model, **ratios, times=[1e5, 1e9, np.inf], regularisation=lam)
    ridge = hm.predict(model, **ratios, regularisation=lam)
    for quantity in (*SHARED, "intercept"):
        np.testing.assert_allclose(late[quantity], ridge[quantity], rtol=1e-9, atol=1e-12)
    early = hm.training(model, **ratios, times=[0.0, 1e-9])
    first = hm.predict(model, **ratios, regularisation=1e9)
    for quantity in ("generalisation_error", "clean_error", "alignment", "intercept"):
        np.testing.assert_allclose(early[quantity], first[quantity], rtol=1e-6, err_msg=quantity)
    for quantity in ("Q", "q_w", "M"):
        value = early[quantity].values
        assert value[0] == 0.0
        np.testing.assert_allclose(value[1], first[quantity], rtol=1e-6, err_msg=quantity)


@pytest.mark.parametrize("p_over_n", [0.3, 3.0])
def test_layers_that_rotate_change_nothing(p_over_n):
    """Not even at late times, where arguments are far smaller than the noise of activations."""
    rotations = [Layer("identity", "orthogonal", width=1.0)] * 4
    at = {"n_over_d": 1.5, "p_over_n": p_over_n, "times": [0.1, 30.0, 1e5, 1e12]}
    plain, deep = (
        training_of(features, **at)
        for features in (RandomFeatures("erf", "gaussian"), Deep([*rotations, Layer("erf")]))
    )
    for quantity in (*SHARED, "largest_eigenvalue"):
        np.testing.assert_allclose(deep[quantity], plain[quantity], rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("p_over_n", [0.3, 3.0])
def test_late_training_of_three_layers_is_ridge_regression(p_over_n):
    layers = [Layer("tanh", width=1.5), Layer("erf", "orthogonal", width=0.8), Layer("tanh")]
    at = {"n_over_d": 1.5, "p_over_n": p_over_n, "regularisation": 1e-3}
    late = training_of(Deep(layers), **at, times=1e9)
    ridge = hm.predict(model_of(Deep(layers)), **at)
    for quantity in SHARED:
        np.testing.assert_allclose(late[quantity], ridge[quantity], rtol=1e-9)


@pytest.mark.slow
def test_errors_are_averages_over_a_large_spectrum():
    """Of the least squares path, by the eigenvectors of one large sample."""
    features, rng, noise = power_law(400, decay=0.6), np.random.default_rng(1), 0.3
    p, n, times, lam = 400, 280, np.array([0.05, 1.0, 20.0, 400.0]), 0.02
    w, t = np.array(features.eigenvalues), np.array(features.teacher_weights)
    theta = np.sqrt(t / p) / w  # of x, along its eigenvectors
    found = []
    for _ in range(6):
        X = np.sqrt(p * w) * rng.standard_normal((n, p))
        y = X @ theta + np.sqrt(noise + 0.2) * rng.standard_normal(n)  # 0.2 is hidden
        U, s, Vt = np.linalg.svd(X / np.sqrt(p), full_matrices=False)
        x = s**2 + lam
        fits = (-np.expm1(-np.outer(times, x)) / x * s * (U.T @ y)) @ Vt
        away = fits / np.sqrt(p) - theta
        found.append((away**2) @ (p * w) + noise + 0.2)
    ds = training(features, times, n_over_p=n / p, noise=noise, regularisation=lam)
    error = np.std(found, axis=0) / np.sqrt(len(found) - 1)
    assert (np.abs(np.mean(found, axis=0) - ds.generalisation_error) < 3.5 * error).all()
    assert (error < 0.03 * ds.generalisation_error.values).all()


@pytest.mark.slow
def test_the_error_may_descend_twice():
    """Most directions are learned fast, and the others carry most of the field."""
    w = np.append(np.full(10, 1.0), np.full(3, 1e-3)) / 13
    share = np.append(np.full(10, 0.3 / 10), np.full(3, 0.7 / 3))
    times = [0.1, 0.38, 3.0, 57.0, 2e3, 2.66e4, np.inf]
    ds = training(Covariance(w, share * w), times, n_over_p=600 / 520, noise=0.05)
    error = ds.generalisation_error.values
    np.testing.assert_allclose(error[1::2], [0.954, 2.127, 0.3385], atol=6e-4)
    assert (np.sign(np.diff(error)) == [-1, 1, 1, -1, -1, 1]).all()
    assert error[-1] == pytest.approx(0.375, abs=1e-4)


@pytest.mark.slow
def test_early_stopping_may_win_and_never_loses_by_much():
    """Fields in the top directions; and the bound of Ali, Kolter and Tibshirani for white ones."""
    i = np.arange(1.0, 401.0)
    w, share = i**-1.0, i**-1.8
    features = Covariance(w, share / share.sum() * w)
    times = np.linspace(0.09, 0.094, 5)
    stopped = training(features, times, n_over_p=0.5).generalisation_error
    model = hm.Model(features=features, teacher=hm.teachers.Linear(0.3), loss="square")
    ridge = hm.predict(model, n_over_p=0.5, regularisation="optimal").generalisation_error
    np.testing.assert_allclose([stopped.min(), ridge], [0.374066, 0.381339], atol=3e-6)
    white = Covariance((1.0,), (1.0,))
    model = hm.Model(features=white, teacher=hm.teachers.Linear(0.3), loss="square")
    times = 10.0 ** np.linspace(-3.0, 3.0, 61)
    for n_over_p in (0.3, 3.0):
        flow = training(white, times, n_over_p=n_over_p).clean_error
        ridge = hm.predict(model, n_over_p=n_over_p, regularisation=1 / times).clean_error
        assert (flow.values / ridge.values).max() < 1.6862
        assert 0.999 < flow.min() / ridge.min() < 1.22


def test_the_peak_of_double_descent_grows_with_time():
    model = hm.Model(
        activation="erf", projection="gaussian", teacher=hm.teachers.Linear(0.2), loss="square"
    )
    ds = hm.training(
        model, n_over_d=1.0, p_over_n=[280 / 300, 1.0, 320 / 300], times=[10.0, 100.0, 1e4, 1e6]
    )
    expected = [
        [1.04, 1.82, 7.24, 7.41],
        [1.01, 1.75, 12.5, 120.0],
        [0.98, 1.66, 7.21, 7.55],
    ]
    np.testing.assert_allclose(ds.generalisation_error, expected, rtol=6e-3)


@pytest.mark.slow
def test_small_steps_are_the_flow_and_momentum_is_faster():
    features = EXAMPLES["random"]
    model = hm.Model(features=features, teacher="linear", loss="square")
    at = {"n_over_d": 1.0, "p_over_n": 2.0}
    flow = hm.training(model, **at, times=[1.0, 3.0])
    steps = hm.training(model, **at, times=[1000, 3000], step=1e-3)
    np.testing.assert_allclose(flow.Q, steps.Q, rtol=2e-3)
    heavy = hm.training(model, **at, times=[0, 200, np.inf], step=0.01, momentum=0.9)
    plain = hm.training(model, **at, times=[0, 200, np.inf], step=0.1)
    np.testing.assert_allclose(heavy.generalisation_error, plain.generalisation_error, rtol=0.02)
    assert heavy.largest_step[0] == pytest.approx(3.8 / plain.largest_eigenvalue[0])


# one pass


def gaussian_recursion(w, theta, noise, step, samples):
    """Mean square errors of one pass on Gaussian data, by the squares of the missing weights."""
    square, found = theta**2, []
    for _ in range(max(samples)):
        error = noise + w @ square
        square = (1 - 2 * step * w + 2 * (step * w) ** 2) * square + step**2 * w * error
        found.append(noise + w @ square)
    return np.array(found)[np.array(samples) - 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decay", "step", "tolerance"), [(0.0, 1.0, 6e-3), (0.4, 0.5, 3e-3), (0.7, 0.4, 3e-3)]
)
def test_one_pass_is_that_of_gaussian_data(decay, step, tolerance):
    p, samples = 400, [20, 200, 800, 2000]
    i = np.arange(1.0, p + 1)
    w, share = i**-decay / np.sum(i**-decay), 0.8 / p
    model = hm.Model(
        features=Covariance(w, share * w), teacher=hm.teachers.Linear(0.1), loss="square"
    )
    ds = hm.training(model, method="one-pass", step=step, n_over_p=np.array(samples) / p)
    expected = gaussian_recursion(w, np.sqrt(share / w), 0.1 + 0.2, step, samples)
    np.testing.assert_allclose(ds.generalisation_error, expected, rtol=tolerance)


def test_one_pass_ends_on_its_plateau_and_begins_with_nothing():
    """What noise leaves in the end: the error times 2/(2 - step) for features of variance 1."""
    w = np.full(300, 1 / 300)
    model = hm.Model(features=Covariance(w, w**2), teacher=hm.teachers.Linear(0.3), loss="square")
    ds = hm.training(model, method="one-pass", step=[0.5, 1.5], n_over_p=[1e-9, 1e4])
    np.testing.assert_allclose(ds.generalisation_error[0], 1.3, rtol=1e-8)
    np.testing.assert_allclose(
        ds.generalisation_error[1], 0.3 * 2 / np.array([1.5, 0.5]), rtol=1e-9
    )
    np.testing.assert_allclose(ds.training_loss[0], 0.65, rtol=1e-8)
    np.testing.assert_allclose(ds.largest_step, 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "step is missing"),
        ({"step": 0.1, "times": [3]}, "numbers of samples"),
        ({"step": 0.1, "momentum": 0.5}, "not known in one pass"),
        ({"step": 0.1, "regularisation": 0.1}, "leave it out"),
        ({"step": 30.0}, "use less than"),
    ],
)
def test_what_one_pass_has_not_is_refused(options, message):
    model = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square")
    with pytest.raises(InvalidArgumentError, match=message):
        hm.training(model, method="one-pass", n_over_d=1.0, p_over_n=2.0, **options)


def test_one_pass_is_refused_where_its_theory_does_not_hold():
    w = np.arange(1.0, 301.0) ** -1.2
    model = hm.Model(features=Covariance(w, 3e-4 * w), teacher="linear", loss="square")
    with pytest.raises(InvalidArgumentError, match=r"use at most 0\.05"):
        hm.training(model, method="one-pass", step=0.2, n_over_p=1.0)
    hm.training(model, method="one-pass", step=0.04, n_over_p=1.0)
    free = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square", intercept=True)
    with pytest.raises(IncompatibleIngredientsError, match="without an intercept"):
        hm.training(free, method="one-pass", step=0.1, n_over_d=1.0, p_over_n=2.0)
    with pytest.raises(InvalidArgumentError, match="has no time"):
        hm.best_time(free, method="one-pass", step=0.1, n_over_d=1.0, p_over_n=2.0)


# refusals


def test_steps_that_diverge_are_refused():
    model = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square")
    at = {"n_over_d": 1.0, "p_over_n": 2.0, "times": [10]}
    largest = float(hm.training(model, **at, step=0.1).largest_step[0])
    with pytest.raises(InvalidArgumentError, match=f"use less than {largest:.6g}"):
        hm.training(model, **at, step=[0.1, 1.01 * largest])
    ds = hm.training(model, **at, step=[0.99 * largest, 1.01 * largest], on_failure="keep")
    assert ds.status.values.tolist() == [[Status.CONVERGED, Status.UNSTABLE]]
    assert np.isnan(ds.generalisation_error.values).tolist() == [[False, True]]
    none = hm.training(model, **at, step=30.0, on_failure="keep")
    assert set(none) == set(ds)
    assert np.isnan(none.generalisation_error).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": [-1.0]}, "time"),
        ({"times": [1.5], "step": 0.1}, "whole numbers"),
        ({"times": [1.0], "momentum": 0.5}, "give a step"),
        ({"times": [1.0], "nesterov": True}, "give a step"),
        ({"times": [1], "step": 0.1, "momentum": 1.0}, "below 1"),
        ({"times": [1000], "step": 0.1, "momentum": 0.99}, "at most 640 or for at least 6368"),
        ({"times": [1.0], "regularisation": np.inf}, "is infinite"),
        ({"times": [1.0], "p_over_n": np.inf}, "is infinite"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    model = hm.Model(features=EXAMPLES["random"], teacher="linear", loss="square")
    with pytest.raises(InvalidArgumentError, match=message):
        hm.training(model, **{"n_over_d": 1.0, "p_over_n": 2.0, **options})


def test_other_losses_are_refused():
    model = hm.Model(features=EXAMPLES["random"], teacher="sign", loss="logistic")
    with pytest.raises(IncompatibleIngredientsError, match="square loss"):
        hm.training(model, n_over_d=1.0, p_over_n=2.0, times=[1.0])


# the best time


@pytest.mark.slow
def test_the_best_time_is_that_of_a_fine_scan():
    model = hm.Model(
        features=EXAMPLES["random"],
        teacher=hm.teachers.Sign(noise=0.1),
        loss="square",
    )
    at = {"n_over_d": 1.0, "p_over_n": 1.3}
    for minimise in ("generalisation_error", "mean_square_error"):
        best = hm.best_time(model, **at, minimise=minimise)
        scan = hm.training(model, **at, times=np.geomspace(0.1, 100.0, 120))
        here = hm.training(model, **at, times=float(best.optimal_time))
        assert best[minimise] <= scan[minimise].min()
        assert best[minimise] == here[minimise]
        near = float(scan.time[int(np.argmin(scan[minimise].values))])
        assert abs(np.log(best.optimal_time / near)) < 0.06


@pytest.mark.slow
def test_the_best_number_of_steps_is_that_of_all_numbers():
    model = hm.Model(features=EXAMPLES["random"], teacher=hm.teachers.Linear(0.3), loss="square")
    at = {"n_over_d": 1.0, "p_over_n": [0.5, 2.0]}
    for rule in ({"step": 0.2}, {"step": 0.2, "momentum": 0.5, "bounds": (1, 25)}):
        best = hm.best_time(model, **at, **rule)
        rule.pop("bounds", None)
        times = np.arange(1, 26 if "momentum" in rule else 61)
        every = hm.training(model, **at, times=times, **rule).generalisation_error
        assert (best.optimal_steps == every.steps[every.argmin("steps")]).all()
        np.testing.assert_allclose(best.generalisation_error, every.min("steps"), rtol=1e-12)
    with pytest.raises(InvalidArgumentError, match="at most 640"):
        hm.best_time(model, **at, step=0.2, momentum=0.95)
    with pytest.raises(InvalidArgumentError, match="use less than"):
        hm.best_time(model, **at, step=20.0)


@pytest.mark.slow
def test_the_best_time_is_global_and_may_be_a_limit():
    w = np.append(np.full(10, 1.0), np.full(3, 1e-3)) / 13
    share = np.append(np.full(10, 0.3 / 10), np.full(3, 0.7 / 3))
    teacher = hm.teachers.Linear(0.05)
    model = hm.Model(features=Covariance(w, share * w), teacher=teacher, loss="square")
    best = hm.best_time(model, n_over_p=600 / 520)
    assert best.generalisation_error == pytest.approx(0.33848, abs=2e-5)
    first = hm.best_time(model, n_over_p=600 / 520, bounds=(0.01, 10.0))
    assert first.generalisation_error == pytest.approx(0.95430, abs=2e-5)
    one = hm.predict(model, n_over_p=600 / 520, regularisation=hm.EarlyStopping(0.38))
    assert one.generalisation_error == pytest.approx(0.9543, abs=1e-4)
    noiseless = hm.Model(
        features=Covariance((1.0,), (1.0,)), teacher=hm.teachers.Linear(0.0), loss="square"
    )
    best = hm.predict(noiseless, n_over_p=2.0, regularisation=hm.EarlyStopping())
    assert (best.optimal_time, best.generalisation_error) == (np.inf, 0.0)
    deaf = hm.Model(
        features=Covariance((1.0,), (1e-9,)), teacher=hm.teachers.Linear(1.0), loss="square"
    )
    assert hm.best_time(deaf, n_over_p=1.5).optimal_time < 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: hm.EarlyStopping(-1.0), "time"),
        (lambda model: hm.EarlyStopping(bounds=(2.0, 1.0)), "bounds"),
        (lambda model: hm.best_time(model, n_over_p=2.0, minimise="mean_square_error"), "minimise"),
        (
            lambda model: hm.predict(
                model, n_over_p=2.0, regularisation=hm.EarlyStopping(), observables="r2"
            ),
            "observables",
        ),
        (
            lambda model: hm.compare(
                model, n_over_p=2.0, regularisation=hm.EarlyStopping(), members=[2]
            ),
            "members",
        ),
    ],
)
def test_stopping_that_makes_no_sense_is_refused(call, message):
    model = hm.Model(features=Covariance((1.0,), (1.0,)), teacher="linear", loss="square")
    with pytest.raises(InvalidArgumentError, match=message):
        call(model)
