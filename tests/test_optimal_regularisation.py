"""The best λ against scans, and derivatives against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hiddenmanifold as hm
from hiddenmanifold.teachers import Linear, Logistic, Sign
from seeds import some_slow

LAMS = np.logspace(-9, 7, 321)


def random_model(rng):
    linear = rng.random() < 0.35
    teachers = [
        Linear(noise=rng.choice([0.0, 0.1, 1.0]), rho=rng.uniform(0.4, 2.5)),
        Sign(),
        Sign(noise=rng.uniform(0, 1), rho=rng.uniform(0.4, 2.5)),
        Sign(flip=rng.uniform(0, 0.3), threshold=rng.uniform(0, 1)),
        Logistic(slope=rng.uniform(0.5, 4)),
    ]
    losses = ["square", "huber", "absolute"]
    if not linear:
        losses += ["logistic", "logistic", "hinge", "squared_hinge", "smoothed_hinge"]
    return hm.Model(
        activation=str(rng.choice(["sign", "erf", "relu", "tanh", "identity"])),
        projection=str(rng.choice(["gaussian", "orthogonal"])),
        teacher=teachers[0] if linear else teachers[rng.integers(1, 5)],
        loss=str(rng.choice(losses)),
        intercept=bool(rng.integers(2)),
    )


def random_ratios(rng):
    return {"n_over_d": 10 ** rng.uniform(-0.7, 1.3), "p_over_n": 10 ** rng.uniform(-1, 1)}


@pytest.mark.parametrize("seed", some_slow(50))
def test_no_scanned_regularisation_is_better(seed):
    rng = np.random.default_rng(seed)
    model, ratios = random_model(rng), random_ratios(rng)
    best = hm.predict(model, regularisation="optimal", **ratios)
    scan = hm.predict(model, regularisation=LAMS, on_failure="keep", **ratios)
    error = scan.generalisation_error
    assert np.mean(np.isnan(error)) < 0.05
    least = float(error.min())
    assert float(best.generalisation_error) <= least * (1 + 1e-9)
    lam = float(best.optimal_regularisation)
    if LAMS[0] <= lam <= LAMS[-1]:  # then the scan comes close, too
        assert_allclose(best.generalisation_error, least, rtol=2e-4)
        again = hm.predict(model, regularisation=lam, **ratios)
        assert_allclose(again.generalisation_error, best.generalisation_error, rtol=1e-9)
        slope = hm.sensitivity(model, regularisation=lam, **ratios)
        relative = slope.generalisation_error_by_log_regularisation / best.generalisation_error
        assert abs(float(relative)) < 1e-7
    fine = lam * np.linspace(0.99, 1.01, 21) if 0 < lam < np.inf else LAMS[:1]
    near = hm.predict(model, regularisation=fine, **ratios).generalisation_error
    assert np.all(near >= best.generalisation_error * (1 - 1e-9))


def test_optimum_of_ridge_regression_is_known():
    """Isotropic features and a teacher they represent: λ* = γ times noise over signal."""
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=Linear(noise=0.6, rho=1.5),
        loss="square",
    )
    ds = hm.predict(model, p_over_d=1.0, n_over_p=[0.3, 1.0, 4.0], regularisation="optimal")
    assert_allclose(ds.optimal_regularisation, 0.6 / 1.5, rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-8, 1e4, 1e8])
def test_optimum_follows_the_unit_of_the_features(unit):
    """Features in another unit are fitted by weights in its inverse: λ goes with its square."""
    teacher = Linear(noise=0.6, rho=1.5)
    model = hm.Model(
        activation=lambda x: unit * x, projection="orthogonal", teacher=teacher, loss="square"
    )
    ds = hm.predict(model, p_over_d=1.0, n_over_p=2.0, regularisation="optimal")
    assert_allclose(ds.optimal_regularisation, unit**2 * 0.6 / 1.5, rtol=1e-5)


def test_optimum_in_a_limit_is_said_to_be_there():
    noiseless = hm.Model(
        activation="identity", projection="orthogonal", teacher="linear", loss="square"
    )
    ds = hm.predict(noiseless, p_over_d=1.0, n_over_p=0.5, regularisation="optimal")
    assert ds.optimal_regularisation == 0
    assert_allclose(ds.generalisation_error, 0.5, rtol=1e-12)
    blind = hm.Model(
        activation="sign",
        projection="gaussian",
        teacher=Linear(noise=50.0, rho=1e-3),
        loss="square",
    )
    ds = hm.predict(blind, n_over_d=0.01, p_over_n=1.0, regularisation="optimal")
    assert ds.optimal_regularisation > 1e2
    assert ds.generalisation_error <= 50.001


def test_bounds_restrict_the_search():
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    ratios = {"n_over_d": 3.0, "p_over_n": [0.3, 1.0, 3.0]}
    free = hm.predict(model, regularisation="optimal", **ratios).optimal_regularisation.values
    low = hm.predict(model, regularisation=hm.Optimal(bounds=(0, free.min() / 2)), **ratios)
    assert_allclose(low.optimal_regularisation, free.min() / 2)
    high = hm.predict(model, regularisation=hm.Optimal(bounds=(2 * free.max(), np.inf)), **ratios)
    assert_allclose(high.optimal_regularisation, 2 * free.max())
    around = hm.predict(
        model, regularisation=hm.Optimal(bounds=(free.min() / 2, 2 * free.max())), **ratios
    )
    assert_allclose(around.optimal_regularisation, free, rtol=1e-4)


@pytest.mark.slow
def test_the_clean_error_has_an_optimum_of_its_own():
    teacher = Sign(noise=0.5, threshold=0.5)
    model = hm.Model(
        activation="relu", projection="gaussian", teacher=teacher, loss="logistic", intercept=True
    )
    ratios = {"n_over_d": 4.0, "p_over_n": 1.0}
    noisy = hm.predict(model, regularisation="optimal", **ratios)
    clean = hm.predict(model, regularisation=hm.Optimal("clean_error"), **ratios)
    scan = hm.predict(model, regularisation=LAMS, **ratios)
    assert_allclose(clean.clean_error, scan.clean_error.min(), rtol=1e-4)
    assert clean.clean_error <= noisy.clean_error
    assert noisy.generalisation_error <= clean.generalisation_error


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"regularisation": "best"}, "regularisation"),
        ({"regularisation": {"minimise": "training_loss"}}, "minimise"),
        ({"regularisation": {"bounds": (1.0, 0.1)}}, "bounds"),
        ({"regularisation": {"bounds": (-1.0, 1.0)}}, "bounds"),
        ({"regularisation": {"bounds": 3.0}}, "bounds"),
        ({"regularisation": {"bounds": (0.1, np.nan)}}, "bounds"),
        ({"regularisation": 0.1, "bounds": (5, 1), "minimise": "nonsense"}, "bounds, minimise"),
        ({"regularisation": "optimal", "bounds": (0.1, 1)}, "bounds"),
    ],
)
def test_nonsense_is_refused_by_name(arguments, named):
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    with pytest.raises(hm.InvalidArgumentError) as caught:
        if isinstance(arguments["regularisation"], dict):
            arguments = {"regularisation": hm.Optimal(**arguments["regularisation"])}
        hm.predict(model, n_over_d=3.0, p_over_n=1.0, **arguments)
    assert caught.value.argument == named


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: hm.Optimal("auc"), "more of it is better, and no λ is sought for it"),
        (lambda: hm.Optimal("r2"), "minimise 'brier_score' for labels ±1"),
        (lambda: hm.Optimal("calibration_slope"), "best at 1"),
        (lambda: hm.Optimal("net_benefit"), "depends on a threshold"),
    ],
)
def test_what_no_regularisation_makes_least_is_told(ask, words):
    with pytest.raises(hm.InvalidArgumentError, match=words):
        ask()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sensitivity", r"give decision_thresholds=\[…\] and read 'true_positive_rate'"),
        ("net_benefit", "and read 'net_benefit'"),
        ("C_statistic", "did you mean 'auc'"),
        ("deviance", "needs labels that are numbers"),
    ],
)
def test_observables_of_other_names_are_pointed_to(name, words):
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    with pytest.raises(hm.InvalidArgumentError, match=words):
        hm.predict(model, n_over_d=3.0, p_over_n=1.0, regularisation=1.0, observables=name)


def test_optimal_is_the_short_form_of_its_options():
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    ratios = {"n_over_d": 3.0, "p_over_n": [0.5, 2.0]}
    short = hm.predict(model, regularisation="optimal", **ratios)
    assert short.identical(hm.predict(model, regularisation=hm.Optimal(), **ratios))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_derivatives_are_those_of_differences(seed):
    rng = np.random.default_rng(seed)
    model, (delta, psi) = random_model(rng), random_ratios(rng).values()
    lam, h = 10 ** rng.uniform(-4, 2), 1e-3
    ds = hm.sensitivity(model, n_over_d=delta, p_over_n=psi, regularisation=lam)
    moves = {"regularisation": (0, 0, 1), "n": (1, -1, 0), "p": (0, 1, 0)}
    for parameter, (to_delta, to_psi, to_lam) in moves.items():
        t = h * np.array([-2, -1, 1, 2])
        errors = [
            hm.predict(
                model,
                n_over_d=delta * np.exp(to_delta * s),
                p_over_n=psi * np.exp(to_psi * s),
                regularisation=lam * np.exp(to_lam * s),
            )
            for s in t
        ]
        for name in ("generalisation_error", "clean_error"):
            a, b, c, d = (float(e[name]) for e in errors)
            expected = (a - 8 * b + 8 * c - d) / (12 * h)
            got = ds[f"{name}_by_log_{parameter}"]
            assert_allclose(got, expected, rtol=1e-6, atol=1e-8, err_msg=parameter)


def test_derivatives_without_regularisation():
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
    for psi in (0.2, 2.0):
        ds = hm.sensitivity(model, n_over_d=3.0, p_over_n=psi, regularisation=0)
        assert_allclose(ds.generalisation_error_by_log_regularisation, 0.0, atol=1e-12)
        h = 1e-4
        ends = hm.predict(
            model, n_over_d=3.0, p_over_n=psi * np.exp([-h, h]), regularisation=0
        ).generalisation_error
        difference = float(ends[1] - ends[0]) / (2 * h)
        assert_allclose(ds.generalisation_error_by_log_p, difference, rtol=1e-5)


def test_dips_beside_plateaus_are_found():
    hinge = hm.Model(activation="identity", projection="gaussian", teacher="sign", loss="hinge")
    ds = hm.predict(hinge, n_over_d=43.772, p_over_n=32.178, regularisation="optimal")
    assert ds.generalisation_error < 0.011132
    absolute = hm.Model(
        activation="erf",
        projection="orthogonal",
        teacher=Linear(noise=0.001, rho=1.232138),
        loss="absolute",
    )
    ds = hm.predict(
        absolute,
        n_over_d=7.964816,
        p_over_n=4.125381,
        regularisation=hm.Optimal("clean_error", (0.00261786, 126.7)),
    )
    assert ds.clean_error < 0.005298


@pytest.mark.parametrize(
    ("loss", "n_over_p", "lam", "error"),
    [
        ("square", 0.575, 2.414, 0.341367),
        ("square", 2.54, 1.426, 0.320576),
        ("logistic", 0.575, 0.5729, 0.341391),
        ("huber", 2.54, 1.0517, 0.321047),
    ],
)
def test_the_plateau_of_constant_predictions_hides_no_better_one(loss, n_over_p, lam, error):
    """With a free intercept and unbalanced labels the error is flat from moderate λ on."""
    model = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=Sign(threshold=0.7, noise=2.0),
        loss=loss,
        intercept=True,
    )
    ds = hm.predict(model, d_over_p=0.5, n_over_p=n_over_p, regularisation="optimal")
    assert_allclose(ds.optimal_regularisation, lam, rtol=1e-3)
    assert_allclose(ds.generalisation_error, error, atol=1e-6)


def test_a_dip_of_a_millionth_beside_the_plateau_is_found():
    """The curve is concave between the dip and the plateau, so that no parabola leads back."""
    model = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=Sign(threshold=1.1, noise=3.0),
        loss="square",
        intercept=True,
    )
    place = {"d_over_p": 0.5, "n_over_p": 0.39600247411650824}
    best = hm.predict(model, regularisation="optimal", **place)
    scan = hm.predict(model, regularisation=np.geomspace(3, 5, 101), **place)
    assert best.generalisation_error <= scan.generalisation_error.min() * (1 + 1e-10)


def test_a_dip_of_a_fifth_of_a_decade_between_a_plateau_and_a_rise_is_found():
    """Its bottom is a ten-thousandth below the plateau of all smaller λ."""
    m = hm.Model(
        activation="sign",
        projection="orthogonal",
        teacher=Sign(threshold=0.44165622329255333),
        loss="hinge",
        intercept=True,
    )
    ratios = {"n_over_d": 3.27227, "p_over_n": 3.41929}
    best = hm.predict(m, regularisation="optimal", **ratios)
    near = hm.predict(m, regularisation=np.exp(-1.34), **ratios)
    assert best.generalisation_error <= near.generalisation_error
    assert best.optimal_regularisation == pytest.approx(np.exp(-1.3373), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "threshold", "d_over_p"), [("sign", 0.5, 0.25), ("identity", 0.0, 0.07)]
)
def test_dips_between_two_plateaus_are_found_where_samples_are_few(activation, threshold, d_over_p):
    # all margins meet the corner of the hinge at almost the same λ, about the features' variance
    model = hm.Model(
        activation=activation,
        projection="orthogonal",
        teacher=Sign(threshold=threshold),
        loss="hinge",
    )
    ratios = {"n_over_p": [0.001, 0.005, 0.02, 0.1], "d_over_p": d_over_p}
    best = hm.predict(model, regularisation="optimal", **ratios).generalisation_error
    scan = hm.predict(model, regularisation=np.geomspace(0.1, 10.0, 200), **ratios)
    least = scan.generalisation_error.min("regularisation")
    assert (best <= least * (1.0 + 1e-9)).all()


@pytest.mark.slow
def test_the_lower_of_two_minima_is_found_that_are_almost_equal():
    m = hm.Model(
        activation="tanh",
        projection="orthogonal",
        teacher=Sign(flip=0.20570503372631746, threshold=0.970721662724, rho=1.606776203572),
        loss="smoothed_hinge",
        intercept=True,
    )
    wanted, target = hm.Optimal("calibration_error"), {"observables": "calibration_error"}
    ratios = {"n_over_d": 9.87581, "p_over_n": 2.83871}
    best = hm.predict(m, regularisation=wanted, **ratios)
    both = hm.predict(m, regularisation=[0.04172, 0.1032], **target, **ratios).calibration_error
    assert 0.9999 < both[1] / both[0] < 1.0
    assert best.calibration_error <= both[1]


def test_an_error_whose_law_is_not_reached_at_the_bottom_is_searched_further_down():
    teacher = hm.teachers.Logistic(slope=3.81, threshold=0.612)
    model = hm.Model(
        activation="tanh",
        projection="gaussian",
        teacher=teacher,
        loss="smoothed_hinge",
        intercept=True,
    )
    ratios = {"n_over_d": 0.2, "p_over_n": 11.8}
    best = hm.predict(model, regularisation="optimal", **ratios)
    scan = hm.predict(model, regularisation=[0, *np.logspace(-20, 3, 47)], **ratios)
    assert best.generalisation_error <= scan.generalisation_error.min() * (1 + 1e-9)


def test_derivatives_by_features_stay_on_their_side_of_a_corner():
    model = hm.Model(
        activation="erf", projection="orthogonal", teacher=Sign(noise=0.3), loss="square"
    )
    places = np.array([0.9999, 1.0, 1.0001])
    ds = hm.sensitivity(model, n_over_d=3.0, p_over_d=places, regularisation=0.1)
    left, corner, right = ds.generalisation_error_by_log_p.values
    assert np.isnan(corner)
    for slope, place, h in ((left, 0.9999, -1e-5), (right, 1.0001, 1e-5)):
        ends = hm.predict(model, n_over_d=3.0, p_over_d=place * np.exp([0, h]), regularisation=0.1)
        difference = float(np.diff(ends.generalisation_error)[0]) / h
        assert_allclose(slope, difference, rtol=1e-3)


def test_no_derivative_by_features_if_the_projection_fixes_their_number():
    spectrum = hm.projections.Spectrum((0.0, 2.0), d_over_p=0.5)
    model = hm.Model(activation="erf", projection=spectrum, teacher="sign", loss="square")
    ds = hm.sensitivity(model, n_over_p=2.0, regularisation=0.1)
    assert np.isnan(ds.generalisation_error_by_log_p)
    assert np.isfinite(ds.generalisation_error_by_log_n)
