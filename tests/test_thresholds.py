"""The separability threshold: against a slow solver, linear programmes, limits and `predict`."""

import linear_programmes
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, ndtr
from scipy.stats import norm

import hiddenmanifold as hm
from hiddenmanifold import teachers
from hiddenmanifold.features import projections
from hiddenmanifold.theory.separability.direction import separating_direction


def model(activation="sign", projection="gaussian", teacher="sign", **kwargs):
    return hm.Model(
        activation=activation, projection=projection, teacher=teacher, loss="logistic", **kwargs
    )


def separable_from(model, **ratios):
    """The ratio that `separability_threshold` answers with."""
    ds = hm.separability_threshold(model, **ratios)
    (name,) = set(ds.data_vars) - {"status"}
    return ds[name]


BIASED = teachers.Sign(threshold=0.6)

# at n/d = 3, to four digits; linear programmes at d = 200 agree within two standard errors
KNOWN = {
    "gaussian": (model(), 0.3677),
    "orthogonal": (model(projection="orthogonal"), 0.3261),
    "flips": (model(teacher=teachers.Sign(flip=0.1)), 0.4174),
    "noise": (model(teacher=teachers.Sign(noise=0.5)), 0.4126),
    "logistic": (model(projection="orthogonal", teacher=teachers.Logistic(slope=2.0)), 0.4050),
    "threshold": (model(teacher=BIASED), 0.4082),
    "threshold and intercept": (model(teacher=BIASED, intercept=True), 0.3244),
    "threshold and relu": (model("relu", teacher=BIASED), 0.3081),
}


@pytest.mark.parametrize(("model", "threshold"), KNOWN.values(), ids=KNOWN)
def test_known_thresholds(model, threshold):
    assert float(separable_from(model, n_over_d=3.0)) == pytest.approx(threshold, abs=5e-5)


# ---------------------------------------------------------------- a slow solver of its own
ACTIVATIONS = {"sign": np.sign, "tanh": np.tanh, "relu": lambda z: max(z, 0.0), "identity": float}


def signal_to_noise(activation):
    """κ1²/κ⋆², by adaptive quadrature on either side of zero."""

    def mean(f):
        return sum(
            quad(lambda z: f(z) * norm.pdf(z), *e, epsabs=1e-13)[0] for e in ((-9, 0), (0, 9))
        )

    sigma = ACTIVATIONS[activation]
    k0, k1 = mean(sigma), mean(lambda z: z * sigma(z))
    return k1**2, mean(lambda z: (sigma(z) - k0 - k1 * z) ** 2)


def slow_visible(kappas, projection, gamma):
    """The visible fraction, by quadrature over the Marchenko–Pastur law of the d eigenvalues."""
    k1, ks = kappas
    if projection == "orthogonal":
        s = max(1.0, 1 / gamma)
        return min(1.0, 1 / gamma) * k1 * s / (k1 * s + ks)
    edges = [(1 - gamma**-0.5) ** 2, (1 + gamma**-0.5) ** 2]
    centre, half = sum(edges) / 2, (edges[1] - edges[0]) / 2

    def integrand(angle):  # density sqrt((s - s1)(s2 - s))/(2 pi s), s = centre - half cos
        s = centre - half * np.cos(angle)
        return (half * np.sin(angle)) ** 2 * k1 / (2 * np.pi * (k1 * s + ks))

    return quad(integrand, 0, np.pi, epsabs=1e-14, epsrel=1e-13, limit=500)[0]


def slow_value(teacher, chi, free):
    """The least average, by the trapezoidal rule over X and over the hidden part of the field."""
    x, z, step = np.arange(-12, 12, 0.01), np.arange(-12, 12, 0.02), 0.01
    field, hidden = np.sqrt(teacher.rho * chi) * x, teacher.rho * (1 - chi)
    if isinstance(teacher, teachers.Sign):
        plus = ndtr((field + teacher.threshold) / np.sqrt(hidden + teacher.noise))
    else:
        nu = field[:, None] + np.sqrt(hidden) * z + teacher.threshold
        plus = expit(teacher.slope * nu) @ norm.pdf(z) * 0.02
    plus = teacher.flip + (1 - 2 * teacher.flip) * plus

    def average(t0, t):
        a = t0 + t * x
        up, down = ((1 + b * b) * norm.cdf(b) + b * norm.pdf(b) for b in (a, -a))
        return norm.pdf(x) @ (plus * up + (1 - plus) * down) * step

    if not free:
        return minimize_scalar(lambda t: average(0.0, t), (-1.0, 0.0), tol=1e-8).fun
    options = {"xatol": 1e-7, "fatol": 1e-14}
    return minimize(lambda v: average(*v), (0.0, -0.3), method="Nelder-Mead", options=options).fun


def slow_threshold(activation, projection, teacher, free, n_over_d):
    kappas = signal_to_noise(activation)

    def excess(r):
        chi = slow_visible(kappas, projection, 1 / (n_over_d * r))
        return r - slow_value(teacher, chi, free)

    return brentq(excess, 1e-3, 0.6, xtol=1e-13)


SLOW = [
    ("sign", "gaussian", teachers.Sign(), False, 0.3),
    ("sign", "gaussian", teachers.Sign(), False, 30.0),
    ("sign", "orthogonal", teachers.Sign(rho=4.0), False, 2.0),
    ("tanh", "gaussian", teachers.Sign(flip=0.05, noise=0.2, rho=0.5), False, 5.0),
    ("tanh", "orthogonal", teachers.Logistic(slope=2.0), False, 10.0),
    ("relu", "gaussian", teachers.Sign(threshold=0.5, flip=0.1), True, 4.0),
    ("relu", "orthogonal", teachers.Logistic(slope=3.0, threshold=-0.4, rho=2.0), True, 1.0),
    ("sign", "gaussian", teachers.Sign(threshold=-1.0, rho=2.0), True, 20.0),
    ("sign", "orthogonal", teachers.Sign(threshold=-1.0, noise=0.1), False, 6.0),
    ("identity", "gaussian", teachers.Sign(), False, 1.5),
    ("identity", "gaussian", teachers.Logistic(slope=2.0, threshold=0.3), False, 0.9),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=str)
def test_threshold_is_that_of_a_slow_solver(case):
    activation, projection, teacher, free, n_over_d = case
    chosen = model(activation, projection, teacher, intercept=free)
    found = separable_from(chosen, n_over_d=n_over_d)
    assert float(found) == pytest.approx(slow_threshold(*case), rel=1e-9)


# ---------------------------------------------------------------- limits and order
@pytest.mark.parametrize("projection", list(projections.REGISTRY))
@pytest.mark.parametrize("activation", ["sign", "erf", "identity"])
def test_blind_features_separate_twice_as_many_samples(projection, activation):
    found = separable_from(model(activation, projection), n_over_d=[1e-20, 1e-9, 1e-3])
    np.testing.assert_allclose(found[:2], 0.5, atol=1e-9)
    assert 0.499 < found[2] < 0.5 - 1e-5


def test_blind_features_with_an_intercept_profit_from_a_rare_label():
    found = separable_from(model(teacher=BIASED, intercept=True), n_over_d=1e-12)

    def average(t0):  # P(+) = Phi(0.6)
        up, down = ((1 + b * b) * norm.cdf(b) + b * norm.pdf(b) for b in (t0, -t0))
        return norm.cdf(0.6) * up + norm.cdf(-0.6) * down

    assert float(found) == pytest.approx(minimize_scalar(average).fun, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["sign", "erf", "relu", np.tanh])
@pytest.mark.parametrize(
    "teacher", [teachers.Sign(), BIASED, teachers.Logistic(flip=0.05)], ids=str
)
def test_orthogonal_features_separate_earlier_than_gaussian_ones(activation, teacher):
    n_over_d = np.geomspace(0.05, 1e4, 25)
    gaussian, orthogonal = (
        separable_from(model(activation, projection, teacher), n_over_d=n_over_d)
        for projection in ("gaussian", "orthogonal")
    )
    assert np.all(orthogonal < gaussian * (1 - 1e-10))
    for found in (gaussian, orthogonal):
        assert np.all(np.diff(found) < 0)


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_noiseless_thresholds_fall_like_a_cube_root(projection):
    # p/n ~ sqrt(d/p): (p/n)^3 ~ d/n
    n_over_d = np.array([1e18, 1e21, 1e30])
    found = separable_from(model("erf", projection), n_over_d=n_over_d)
    np.testing.assert_allclose(found * np.cbrt(n_over_d), found[2] * 1e10, rtol=1e-5)


def test_noisy_thresholds_end_at_that_of_a_visible_field():
    teacher = teachers.Sign(flip=0.1)
    found = separable_from(model(teacher=teacher), n_over_d=[1e6, 1e12])
    limit = separating_direction(teacher, np.ones(1), False).value[0]
    assert limit < found[1] < found[0]
    assert float(found[1]) == pytest.approx(limit, rel=1e-9)


# ---------------------------------------------------------------- the other way round
INVERTED = {
    "gaussian": model(),
    "orthogonal": model("tanh", "orthogonal", teachers.Logistic(slope=3.0)),
    "intercept": model("relu", "gaussian", teachers.Sign(threshold=0.4, noise=0.1)),
    "linear": model("identity"),
}


@pytest.mark.slow
@pytest.mark.parametrize("chosen", INVERTED.values(), ids=INVERTED)
def test_the_two_directions_invert_each_other(chosen):
    n_over_d = np.array([0.1, 0.5, 1.0, 1.9, 3.0, 30.0, 1e3])
    p_over_n = separable_from(chosen, n_over_d=n_over_d)
    back = separable_from(chosen, p_over_n=p_over_n.values)
    np.testing.assert_allclose(back, n_over_d, rtol=1e-10)
    np.testing.assert_allclose(separable_from(chosen, n_over_p=1 / p_over_n.values), back)
    gamma = 1 / (n_over_d * p_over_n)
    across = separable_from(chosen, d_over_p=gamma.values)
    np.testing.assert_allclose(across, p_over_n, rtol=1e-10)
    np.testing.assert_allclose(separable_from(chosen, p_over_d=1 / gamma.values), across)
    np.testing.assert_allclose(separable_from(chosen, d_over_n=1 / n_over_d), p_over_n)


@pytest.mark.slow
def test_a_rule_learned_to_its_last_digits_has_a_threshold():
    """Rounding hides more of a change of label away from zero than of one at zero."""
    biased, p_over_n = model("erf", teacher=BIASED, intercept=True), np.array([1e-7, 1e-6])
    n_over_d = separable_from(biased, p_over_n=p_over_n)
    np.testing.assert_allclose(*n_over_d * p_over_n**3, rtol=1e-5)
    back = separable_from(biased, d_over_p=1 / (n_over_d.values * p_over_n))
    np.testing.assert_allclose(back, p_over_n, rtol=1e-7)


def test_enough_features_separate_at_every_n_over_d():
    found = separable_from(model(), p_over_n=[0.4, 0.5, 3.0])
    assert 0 < found[0] < np.inf
    assert found[1:].values.tolist() == [0.0, 0.0]


def test_too_few_features_separate_noisy_labels_at_no_n_over_d():
    teacher = teachers.Sign(flip=0.1)
    limit = separating_direction(teacher, np.ones(1), False).value[0]
    found = separable_from(model(teacher=teacher), p_over_n=[0.9 * limit, 1.1 * limit])
    assert found[0] == np.inf
    assert 0 < found[1] < np.inf


@pytest.mark.filterwarnings("ignore::hiddenmanifold.BlindFeaturesWarning")
def test_even_activations_make_labels_random():
    even = model(hm.activations.Custom(np.cos))
    assert separable_from(even, n_over_d=[0.1, 1e6]).values == pytest.approx([0.5, 0.5])
    found = separable_from(even, p_over_n=[0.49, 0.51])
    assert found.values.tolist() == [np.inf, 0.0]


def test_linear_features_beyond_the_latent_dimensions_do_not_help():
    teacher = teachers.Sign(flip=0.1)
    linear = model("identity", "gaussian", teacher)
    limit = 1 / separating_direction(teacher, np.ones(1), False).value[0]
    found = separable_from(linear, n_over_d=[0.99 * limit, 1.01 * limit])
    assert found[0] * 0.99 * limit < 1  # p < d
    assert found[1] == np.inf
    # with p = 4 d only d features count
    found = separable_from(linear, p_over_d=[1.0, 4.0])
    np.testing.assert_allclose(found, [1 / limit, 4 / limit], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_linear_features_of_a_noiseless_rule_separate_once_they_span_the_field(projection):
    linear = model("identity", projection)
    assert separable_from(linear, p_over_d=[1.0, 2.0, 1e6]).values.tolist() == [0, 0, 0]
    n_over_d = np.array([1e4, 1e10, 1e20, 1e30])
    found = separable_from(linear, n_over_d=n_over_d)  # p just below d
    hidden = 1 - found.values * n_over_d
    assert 1e-8 < hidden[0] < 1e-7
    np.testing.assert_allclose(hidden[1:], 0.0, atol=1e-14)


# ---------------------------------------------------------------- projections that fix d/p
def test_a_spectrum_fixes_the_ratio():
    spectrum = projections.Spectrum((0.0, 2.5), (0.6, 0.4), d_over_p=0.4)
    found = separable_from(model(projection=spectrum))
    expected = separable_from(model(projection="orthogonal"), d_over_p=0.4)
    assert found.dims == ()
    assert found.name == "p_over_n"
    assert float(found) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.slow
def test_a_matrix_has_the_threshold_of_its_law():
    F = np.random.default_rng(5).standard_normal((600, 900))
    found = separable_from(model("erf", projections.Matrix(F)))
    expected = separable_from(model("erf"), p_over_d=1.5)
    assert float(found) == pytest.approx(float(expected), rel=5e-3)  # fluctuations ~ 1/600


# ---------------------------------------------------------------- labels and refusals
@pytest.mark.slow
def test_results_are_labelled_like_predictions():
    n_over_d = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("a", "b"), coords={"a": [10, 20]})
    found = separable_from(model(), n_over_d=n_over_d)
    assert found.dims == ("a", "b")
    xr.testing.assert_equal(found.n_over_d.drop_vars("n_over_d", errors="ignore"), n_over_d)
    single = separable_from(model(), n_over_d=4.0)
    assert (single.dims, float(single.n_over_d)) == ((), 4.0)
    assert float(found.sel(a=20)[1]) == pytest.approx(float(single), rel=1e-13)
    row = separable_from(model(), p_over_n=[0.3, 0.4])
    assert (row.name, row.dims, row.p_over_n.values.tolist()) == (
        "n_over_d",
        ("p_over_n",),
        [0.3, 0.4],
    )
    assert "separable" in row.attrs["long_name"]
    ds = hm.separability_threshold(model(), p_over_n=[0.3, 0.4])
    assert ds.attrs["model"] == repr(model())
    assert (ds.status == hm.Status.CONVERGED).all()


def test_real_labels_are_refused():
    linear = hm.Model(activation="sign", projection="gaussian", teacher="linear", loss="square")
    with pytest.raises(hm.IncompatibleIngredientsError, match=r"Linear.*only labels ±1"):
        separable_from(linear, n_over_d=1.0)


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        ({}, "ratios are missing: give exactly one"),
        ({"n_over_d": 1.0, "p_over_n": 1.0}, "n_over_d, p_over_n"),
        ({"n_over_d": -1.0}, "n_over_d = -1.0"),
        ({"p_over_n": [0.3, np.nan]}, "p_over_n = nan"),
        ({"n_over_d": "three"}, "n_over_d = 'three'"),
    ],
    ids=str,
)
def test_ratios_that_make_no_sense_are_refused(ratios, message):
    with pytest.raises(hm.InvalidArgumentError, match=message):
        separable_from(model(), **ratios)


def test_a_ratio_beside_a_fixed_one_is_refused():
    spectrum = projections.Spectrum((1.0,), d_over_p=2.0)
    with pytest.raises(hm.InvalidArgumentError, match=r"cannot be given: the features fix d/p = 2"):
        separable_from(model(projection=spectrum), n_over_d=1.0)


def test_only_a_model_has_a_threshold():
    with pytest.raises(hm.InvalidArgumentError, match=r"model = 'sign'"):
        separable_from("sign", n_over_d=1.0)


def test_a_threshold_that_is_not_found_is_reported():
    with pytest.raises(hm.ConvergenceError, match=r"1 of 2 .* n_over_d = 1e\+200") as caught:
        separable_from(model(), n_over_d=[3.0, 1e200])
    partial = caught.value.partial
    good, bad = partial.p_over_n.values
    assert good == pytest.approx(0.3677, abs=5e-5)
    assert np.isnan(bad)
    assert partial.status.values.tolist() == [hm.Status.CONVERGED, hm.Status.NON_FINITE]
    kept = hm.separability_threshold(model(), n_over_d=[3.0, 1e200], on_failure="keep")
    xr.testing.assert_identical(kept, partial)


# ---------------------------------------------------------------- predictions
SIDES = {
    "sign": model(),
    "flips": model("erf", "orthogonal", teachers.Sign(flip=0.1, rho=2.3)),
    "intercept": model("relu", "gaussian", BIASED),
    "logistic": model("tanh", "orthogonal", teachers.Logistic(slope=2.0, threshold=-0.4, rho=2.0)),
}


@pytest.mark.parametrize("chosen", SIDES.values(), ids=SIDES)
def test_logistic_fits_grow_without_bound_on_the_separable_side_only(chosen):
    r = float(separable_from(chosen, n_over_d=3.0))
    lam = [1e-6, 1e-8]
    below, above = (
        hm.predict(chosen, n_over_d=3.0, p_over_n=r * f, regularisation=lam).Q for f in (0.9, 1.1)
    )
    assert below[1] < 1.01 * below[0]
    assert above[1] > 1.3 * above[0]
    assert above[1] > 100 * below[1]


@pytest.mark.parametrize("chosen", SIDES.values(), ids=SIDES)
def test_direction_at_the_threshold_is_that_of_unpenalised_fits(chosen):
    r = float(separable_from(chosen, n_over_d=3.0))
    visible = chosen.features.visible(np.array([1 / (3 * r)]))
    chi, hidden = visible.fraction, visible.hidden
    direction = separating_direction(chosen.teacher, chi, chosen.free_intercept, hidden)
    distance = np.array([1e-4, 2e-4])
    ds = hm.predict(chosen, n_over_d=3.0, p_over_n=r * (1 - distance), regularisation=1e-16)
    deviation = np.sqrt(ds.Q)
    for fitted, expected in (
        (ds.M / deviation / np.sqrt(chosen.teacher.rho), direction.alignment[0]),
        (ds.intercept / deviation, direction.bias[0]),
    ):
        at_threshold = 2 * fitted.values[0] - fitted.values[1]
        assert at_threshold == pytest.approx(expected, abs=3e-4)
        assert fitted.values[0] == pytest.approx(expected, abs=5e-3)


# ---------------------------------------------------------------- simulation
@pytest.mark.slow
def test_linear_programmes_agree_as_sizes_grow():
    chosen, sizes = model(), {20: 200, 40: 80, 60: 30}  # `make verify` has more, at n/d = 10 too
    theory = float(separable_from(chosen, n_over_d=3))
    limit, deviation = linear_programmes.extrapolated(chosen, 3, sizes, theory)
    assert abs(limit - theory) < 4 * deviation
    assert 0.5 - limit > 7 * deviation  # sharp enough to tell these labels from random ones


def test_a_ratio_and_its_inverse_ask_the_same():
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
    for name, value in (("n_over_d", 3.0), ("p_over_n", 0.4), ("p_over_d", 1.3)):
        inverse = "_over_".join(reversed(name.split("_over_")))
        found = float(separable_from(model, **{name: value}))
        turned = float(separable_from(model, **{inverse: 1.0 / value}))
        assert turned == pytest.approx(found, rel=1e-12)
