"""Observables of scores and the law of margins, as users ask for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, ndtr

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.results.observables import REGISTRY

ALL = tuple(name for name, of in REGISTRY.items() if Task.CLASSIFICATION in of.tasks)
OF_NUMBERS = tuple(name for name, of in REGISTRY.items() if Task.REGRESSION in of.tasks)
RATIOS = {"n_over_d": 2.0, "p_over_n": [0.4, 2.0]}


def model(loss="logistic", teacher="sign", **more):
    return hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss, **more)


def test_observables_are_added_and_nothing_else_changes():
    bare = hm.predict(model(), **RATIOS, regularisation=[0.01, 1.0])
    full = hm.predict(model(), **RATIOS, regularisation=[0.01, 1.0], observables=ALL)
    assert set(full.data_vars) - set(bare.data_vars) == set(ALL)
    assert full.drop_vars(ALL).identical(bare)
    for name in ALL:
        assert full[name].attrs["long_name"] == REGISTRY[name].long_name
    one = hm.predict(model(), **RATIOS, regularisation=[0.01, 1.0], observables="auc")
    assert one.auc.identical(full.auc) and "test_loss" not in one


@pytest.mark.slow
def test_values_follow_from_the_predicted_overlaps():
    """By Monte Carlo over field, label and score."""
    teacher = hm.teachers.Logistic(slope=3.0, threshold=0.5)
    ds = hm.predict(
        model("hinge", teacher, intercept=True),
        n_over_d=2.0,
        p_over_n=1.0,
        regularisation=0.3,
        observables=ALL,
    )
    Q, M, b = float(ds.Q), float(ds.M), float(ds.intercept)
    rng = np.random.default_rng(0)
    nu, z = rng.standard_normal((2, 400_000))
    f = b + M * nu + np.sqrt(Q - M**2) * z
    y = np.where(rng.random(nu.shape) < expit(3.0 * (nu + 0.5)), 1.0, -1.0)
    loss = np.maximum(0.0, 1.0 - y * f)
    assert float(ds.test_loss) == pytest.approx(loss.mean(), abs=4 * loss.std() / len(f) ** 0.5)
    pairs = rng.choice(f[y > 0], 400_000) > rng.choice(f[y < 0], 400_000)
    assert float(ds.auc) == pytest.approx(pairs.mean(), abs=4 * 0.5 / len(f) ** 0.5)
    order = np.argsort(f)
    bins = np.array_split(order, 200)
    gap = [abs(expit(f[i]).mean() - (y[i] > 0).mean()) for i in bins]
    assert float(ds.calibration_error) == pytest.approx(np.mean(gap), abs=0.003)

    def log_loss(T):
        return np.logaddexp(0.0, -y * f / T).mean()

    best = float(ds.best_temperature)
    assert log_loss(best) < min(log_loss(0.9 * best), log_loss(1.1 * best))


def test_real_labels_have_a_loss_and_nothing_of_two_classes():
    linear = model("square", hm.teachers.Linear(noise=0.3))
    ds = hm.predict(linear, **RATIOS, regularisation=[0, 0.1, np.inf], observables="test_loss")
    assert_allclose(ds.test_loss, 0.5 * ds.generalisation_error, rtol=1e-12)
    absolute = model("absolute", hm.teachers.Linear(noise=0.3))
    ds = hm.predict(absolute, **RATIOS, regularisation=0.1, observables="test_loss")
    assert_allclose(ds.test_loss, np.sqrt(2 / np.pi * ds.generalisation_error), rtol=1e-10)
    for name in set(ALL) - set(OF_NUMBERS):
        with pytest.raises(hm.InvalidArgumentError, match="real labels") as caught:
            hm.predict(linear, **RATIOS, regularisation=0.1, observables=name)
        assert caught.value.argument == "observables"
    with pytest.raises(hm.InvalidArgumentError, match="real labels"):
        hm.predict(linear, **RATIOS, regularisation=hm.Optimal("calibration_error"))


@pytest.mark.parametrize("name", sorted(set(OF_NUMBERS) - set(ALL)))
def test_two_classes_have_no_observable_of_numbers(name):
    with pytest.raises(hm.InvalidArgumentError, match="needs labels that are numbers") as caught:
        hm.predict(model(), **RATIOS, regularisation=0.1, observables=name)
    assert caught.value.argument == "observables"


@pytest.mark.parametrize("name", ["deviance", "mean_absolute_error"])
def test_two_classes_have_no_best_regularisation_of_numbers(name):
    with pytest.raises(hm.InvalidArgumentError, match="needs labels that are numbers"):
        hm.predict(model(), **RATIOS, regularisation=hm.Optimal(name))


@pytest.mark.parametrize(
    ("names", "hint"), [("acu", "did you mean 'auc'"), (["auc", "roc"], "'roc'"), (3, "sequence")]
)
def test_unknown_names_are_refused(names, hint):
    for function in (hm.predict, hm.sensitivity, hm.simulate, hm.compare):
        with pytest.raises(hm.InvalidArgumentError, match=hint) as caught:
            function(model(), **RATIOS, regularisation=0.1, observables=names)
        assert caught.value.argument == "observables"


# ---------------------------------------------------------------- limits


def test_scores_without_bound_are_certain_and_as_wrong_as_they_err():
    ds = hm.predict(model(), n_over_d=2.0, p_over_n=3.0, regularisation=0, observables=ALL)
    assert ds.q_w == np.inf  # the data are separable
    assert ds.test_loss == np.inf and ds.best_temperature == np.inf
    for name in ("calibration_error", "brier_score"):
        assert_allclose(ds[name], ds.generalisation_error, rtol=1e-9)
    assert ds.calibration_slope < 1e-100 and ds.nagelkerke_r2 == -np.inf
    hinge = hm.predict(
        model("hinge"), n_over_d=2.0, p_over_n=3.0, regularisation=0, observables=ALL
    )
    assert_allclose(ds.auc, hinge.auc, rtol=1e-12)  # the same direction
    assert np.isfinite([hinge[name] for name in ALL]).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber", "square"])
def test_values_at_vanishing_regularisation_are_limits(loss):
    where = {"n_over_d": 2.0, "p_over_n": [0.2, 2.0], "observables": ALL}
    limit = hm.predict(model(loss), **where, regularisation=0)
    near = hm.predict(model(loss), **where, regularisation=1e-9)
    for name in ALL:
        assert_allclose(limit[name], near[name], rtol=1e-6, err_msg=name)


def test_a_loss_that_rests_elsewhere_is_that_of_the_model_not_of_its_stand_in():
    """At λ → 0⁺ samples are fitted at margin 2, whatever the loss."""
    square = hm.losses.Custom(
        lambda m: 2.0 * (m - 2.0) ** 2, lambda m: 4.0 * (m - 2.0), lambda m: np.full_like(m, 4.0)
    )
    where = {"n_over_d": 2.0, "p_over_n": 2.0, "observables": ALL}
    limit = hm.predict(model(square), **where, regularisation=0)
    near = hm.predict(model(square), **where, regularisation=1e-8)
    for name in ("Q", *ALL):
        assert_allclose(limit[name], near[name], rtol=1e-6, err_msg=name)
    law = hm.margins(
        model(square), n_over_d=2.0, p_over_n=2.0, regularisation=0, at=[1.9, 2.0, 2.1]
    )
    assert_allclose(law.train_cdf, [0.0, 1.0, 1.0], atol=1e-14)


def test_values_at_infinite_regularisation_are_limits():
    where = {"n_over_d": 2.0, "p_over_n": 2.0, "observables": ALL}
    limit = hm.predict(model(), **where, regularisation=np.inf)
    near = hm.predict(model(), **where, regularisation=1e9)
    for name in ("auc", "calibration_error", "test_loss"):
        assert_allclose(limit[name], near[name], rtol=1e-7, err_msg=name)
    assert float(limit.test_loss) == pytest.approx(np.log(2.0), rel=1e-15)
    assert limit.best_temperature == 0 < near.best_temperature < 1e-6


def test_kernels_are_the_limit_of_many_features():
    where = {"n_over_d": 2.0, "regularisation": 0.1, "observables": ALL}
    kernel = hm.predict(model(), **where, p_over_n=np.inf)
    wide = hm.predict(model(), **where, p_over_n=1e7)
    for name in ALL:
        assert_allclose(kernel[name], wide[name], rtol=1e-5, err_msg=name)


def test_logistic_regression_with_infinite_data_is_calibrated():
    teacher = hm.teachers.Logistic(slope=2.0)
    true = hm.Model(activation="identity", projection="gaussian", teacher=teacher, loss="logistic")
    ds = hm.predict(true, n_over_p=np.inf, d_over_p=0.5, regularisation=0.1, observables=ALL)
    assert float(ds.calibration_error) == pytest.approx(0.0, abs=1e-9)
    assert float(ds.best_temperature) == pytest.approx(1.0, rel=1e-9)
    assert float(ds.calibration_slope) == pytest.approx(1.0, rel=1e-9)
    assert float(ds.probability_error) == pytest.approx(0.0, abs=1e-9)
    nu = np.linspace(-12.0, 12.0, 4001)
    p = expit(2.0 * nu)
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p))
    density = np.exp(-0.5 * nu**2) / np.sqrt(2 * np.pi)
    assert float(ds.test_loss) == pytest.approx(np.trapezoid(density * entropy, nu), rel=1e-8)


def test_a_predictor_that_is_constant_ranks_nothing():
    teacher = hm.teachers.Sign(threshold=1.5, noise=3.0)
    ds = hm.predict(
        model("hinge", teacher, intercept=True),
        n_over_d=50.0,
        p_over_n=0.01,
        regularisation=1.0,
        observables=ALL,
    )
    assert ds.Q < 1e-90 and float(ds.intercept) == pytest.approx(1.0)
    plus = ndtr(1.5 / 2.0)
    assert float(ds.auc) == pytest.approx(0.5, rel=1e-12)
    assert float(ds.test_loss) == pytest.approx(2.0 * (1.0 - plus), rel=1e-10)
    assert float(ds.calibration_error) == pytest.approx(abs(expit(1.0) - plus), rel=1e-10)
    assert expit(1.0 / float(ds.best_temperature)) == pytest.approx(plus, rel=1e-9)
    assert (float(ds.calibration_slope), float(ds.r2) < 0) == (0.0, True)
    assert float(ds.calibration_intercept) == pytest.approx(np.log(plus / (1 - plus)), rel=1e-9)


def test_a_loss_too_steep_to_average_is_said_not_guessed():
    steep = hm.losses.Custom(lambda m: np.exp(-m), lambda m: -np.exp(-m), lambda m: np.exp(-m))
    noisy = model(steep, hm.teachers.Sign(noise=0.5))
    # hardly regularised, short of separable: the scores vary by some hundred
    where = {"n_over_d": 2.0, "p_over_n": 2.0, "regularisation": 1e-30}
    plain = hm.predict(noisy, **where)
    assert np.sqrt(plain.Q) > 25
    with pytest.raises(hm.ConvergenceError, match="did not settle"):
        hm.predict(noisy, **where, observables="test_loss")


# ---------------------------------------------------------------- derivatives and optima


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_derivatives_are_those_of_differences(loss):
    problem = model(loss, hm.teachers.Sign(noise=0.3, threshold=0.4), intercept=True)
    ds = hm.sensitivity(
        problem, n_over_d=2.0, p_over_n=1.5, regularisation=0.1, observables=ALL, workers=1
    )
    h = 1e-3
    t = h * np.array([-2, -1, 1, 2])
    for parameter, (to_n, to_p, to_lam) in {
        "regularisation": (0, 0, 1),
        "n": (1, 0, 0),
        "p": (0, 1, 0),
    }.items():
        around = [
            hm.predict(
                problem,
                n_over_d=2.0 * np.exp(to_n * s),
                p_over_d=3.0 * np.exp(to_p * s),
                regularisation=0.1 * np.exp(to_lam * s),
                observables=ALL,
            )
            for s in t
        ]
        for name in ALL:
            values = np.array([float(a[name]) for a in around])
            slope = np.array([1, -8, 8, -1]) @ values / (12 * h)
            found = ds[f"{name}_by_log_{parameter}"]
            assert float(found) == pytest.approx(slope, rel=1e-6, abs=1e-9), (name, parameter)
            assert found.attrs["long_name"].startswith("derivative of")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["test_loss", "calibration_error"])
def test_an_observable_can_be_what_the_best_regularisation_makes_least(target):
    for loss in ("logistic", "hinge"):
        problem = model(loss, hm.teachers.Sign(noise=0.3))
        ratios = {"n_over_d": 2.0, "p_over_n": 0.4}
        best = hm.predict(problem, **ratios, regularisation=hm.Optimal(target), observables="auc")
        lam, least = float(best.optimal_regularisation), float(best[target])
        lams = lam * np.exp([*np.linspace(-7.0, 7.0, 43), *np.linspace(-0.01, 0.01, 5)])
        scan = hm.predict(
            problem, **ratios, regularisation=np.unique(lams), observables=(target, "auc")
        )
        assert (scan[target] >= least * (1 - 1e-9)).all()
        at_best = scan.sel(regularisation=lam, method="nearest")
        assert float(at_best[target]) == pytest.approx(least, rel=1e-9)
        assert float(at_best.auc) == pytest.approx(float(best.auc), rel=1e-9)


NOT_MINIMISED = {
    "auc": "more of it is better",
    "best_temperature": "it is best at 1",
    "training_loss": "an observable of which less is better",
}


@pytest.mark.parametrize("name", NOT_MINIMISED)
def test_what_more_of_is_better_is_not_minimised(name):
    with pytest.raises(hm.InvalidArgumentError, match=NOT_MINIMISED[name]) as caught:
        hm.Optimal(name)
    assert caught.value.argument == "minimise"


# ---------------------------------------------------------------- margins

AT = np.array([-2.0, -0.5, 0.0, 0.7, 0.999999, 1.0, 1.5, 4.0])


@pytest.mark.parametrize("loss", ["logistic", "hinge", "square"])
def test_margins_below_zero_are_the_errors(loss):
    problem = model(loss, hm.teachers.Sign(noise=0.3, threshold=0.5), intercept=True)
    where = {**RATIOS, "regularisation": [0.05, 1.0]}
    law, ds = hm.margins(problem, **where, at=AT), hm.predict(problem, **where)
    assert law.train_cdf.dims == ("p_over_n", "regularisation", "y_f")
    assert set(law.data_vars) == {"test_cdf", "train_cdf", *hm.errors.CERTIFICATES}
    assert_allclose(law.test_cdf.sel(y_f=0), ds.generalisation_error, rtol=1e-10)
    assert_allclose(law.train_cdf.sel(y_f=0), ds.training_error, rtol=1e-10)
    for cdf in (law.test_cdf, law.train_cdf):
        assert (cdf.diff("y_f") >= -1e-15).all() and (cdf >= 0).all() and (cdf <= 1 + 1e-12).all()
    mass = law.train_cdf.sel(y_f=1.0) - law.train_cdf.sel(y_f=0.999999)
    assert (mass > 0.05).all() if loss == "hinge" else (mass < 1e-5).all()


def test_margins_in_the_limits():
    where = {"n_over_d": 2.0, "p_over_n": 3.0, "regularisation": 0}
    hinge, logistic, square = (
        hm.margins(model(loss), **where, at=AT) for loss in ("hinge", "logistic", "square")
    )
    assert (hinge.train_cdf.sel(y_f=slice(None, 0.99999999)) == 0).all()
    assert 0.3 < hinge.train_cdf.sel(y_f=1.0) < 1  # support vectors
    assert (logistic.train_cdf == 0).all()  # no margin is finite
    error = hm.predict(model(), **where).generalisation_error
    assert_allclose(logistic.test_cdf, np.full(len(AT), error), rtol=1e-10)
    assert_allclose(square.train_cdf, AT >= 1, atol=1e-14)
    far = hm.margins(model(), n_over_d=2.0, p_over_n=3.0, regularisation=np.inf, at=AT)
    assert_allclose(far.train_cdf.sel(y_f=[-0.5, 0.7]), [0.0, 1.0], atol=1e-14)


def test_margins_refuse_what_has_none():
    where = {"n_over_d": 2.0, "p_over_n": 3.0, "regularisation": 0.1}
    with pytest.raises(hm.InvalidArgumentError, match="real labels have no margins"):
        hm.margins(model("square", "linear"), **where, at=[0.0])
    for at in ([], [np.nan], "wide"):
        with pytest.raises(hm.InvalidArgumentError) as caught:
            hm.margins(model(), **where, at=at)
        assert caught.value.argument == "at"


def test_margins_know_what_becomes_of_failures():
    with pytest.raises(hm.InvalidArgumentError, match="on_failure"):
        hm.margins(
            model("hinge"), n_over_d=1.0, p_over_n=1.0, regularisation=1.0, at=AT, on_failure="hush"
        )
