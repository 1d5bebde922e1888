"""Sample sizes against other programs, textbook formulas and brute-force regressions."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import optimize
from scipy.special import expit
from scipy.stats import chi2, norm

import hiddenmanifold as hm
from hiddenmanifold.results.observables import REGISTRY
from hiddenmanifold.studies.assurance import Assured, assured_size
from hiddenmanifold.studies.least_size import FEWEST, least_size
from hiddenmanifold.studies.performance import Simulated, drawn, expected, ideal
from hiddenmanifold.studies.single_fits import binary_performance
from hiddenmanifold.studies.targets import QUANTITIES, met
from hiddenmanifold.studies.textbook import textbook_criteria
from hiddenmanifold.theory.scores.distribution import Scores, observe

BINARY = hm.Population(outcome="binary", prevalence=0.2, auc=0.85, predictors=10)
LINEAR = hm.Population(outcome="continuous", r2=0.5, predictors=15)
COUNT = hm.Population(outcome="count", rate=1.2, r2=0.3, predictors=8)


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ((24, 0.288, 0.174, 0.9), (623, 662, 221)),
        ((24, 0.55, 0.174, 0.9), (255, 532, 221)),
        ((36, 0.288, 0.174, 0.9), (934, 992, 221)),
        ((24, 0.288, 0.25, 0.9), (623, 590, 289)),
        ((25, 0.2, None, 0.9), (918, 401, 259)),
        ((25, 0.3, None, 0.9), (574, 351, 259)),
        ((50, 0.2, None, 0.9), (1924, 801, 284)),
        ((100, 0.5, None, 0.9), (1264, 1001, 334)),
        ((30, 0.89, None, 0.84), (32, 67, 264)),
    ],
)
def test_textbook_criteria_are_those_of_pmsampsize(given, printed):
    """Its own tests: tests 4.1 to 4.4 of binary outcomes, and 2.1 to 2.3, 2.6 and 2.7."""
    predictors, r2, prevalence, shrinkage = given
    found = textbook_criteria(
        predictors=predictors, r2=r2, prevalence=prevalence, shrinkage=shrinkage
    )
    assert tuple(found.values()) == printed


def test_textbook_criteria_are_the_least_that_satisfy_their_formulas():
    """Riley et al. (2019), part I: Copas' shrinkage factor, and the law of a variance."""
    p, r2 = 25, 0.2
    found = textbook_criteria(predictors=p, r2=r2)

    def shrinkage(n):  # equation 6 of part I, with the apparent R² of its equation 4
        apparent = r2 + (1 - r2) * p / (n - 1)
        return 1 + (p - 2) / (n * np.log(1 - apparent))

    n = found["shrinkage"]
    assert shrinkage(n - 1) < 0.9 <= shrinkage(n)

    def error(n):  # of a residual deviation, at 95 % confidence
        df = n - p - 1
        low, high = chi2.ppf([0.025, 0.975], df)
        return max(np.sqrt(df / low), np.sqrt(high / df))

    n = found["residual_deviation"]
    assert error(n) <= 1.1 < error(n - 1)
    n = found["optimism"]  # the apparent R² exceeds the adjusted one by (1 - R²) p/(n - 1)
    assert (1 - r2) * p / (n - 1) <= 0.05 < (1 - r2) * p / (n - 2)
    with pytest.raises(hm.InvalidArgumentError, match="prevalence of 0.1"):
        textbook_criteria(predictors=5, r2=0.6, prevalence=0.1)


@pytest.mark.slow
def test_performance_is_that_of_samplesizedev():
    """Medians and means over its simulated studies (samplesizedev, 2026), to its digits."""
    report = hm.sample_size(BINARY, target={"calibration_slope": 0.9}, n=309)
    assert report.n == 554 and report.textbook["overall_risk"] == 246
    at = report.curve.sel(n=309)
    assert float(at.calibration_slope) == pytest.approx(0.831, abs=0.005)  # the median there
    assert float(at.auc) == pytest.approx(0.836, abs=0.003)
    assert float(at.brier_score) == pytest.approx(0.118, abs=0.0006)
    assert float(at.probability_error) == pytest.approx(0.051, abs=0.0015)
    assert report.events_per_predictor == pytest.approx(11.08)
    assert report.ridge_n == 495
    assert "554 samples" in report.sentence and "554" in report.to_markdown()
    assert str(report) == repr(report)
    assert "<table>" in report.to_html() and "Riley" in report.to_html()
    assert "C-statistic 0.85" in report.paragraph


def test_the_best_ridge_predicts_as_well_with_fewer():
    """By the search for the best regularisation, which the report replaces by a parabola."""
    report = hm.sample_size(LINEAR, target={"r2": 0.46})
    best = hm.predict(
        LINEAR.model(), n_over_p=[report.ridge_n / 15], regularisation="optimal", workers=1
    )
    plain = hm.predict(LINEAR.model(), n_over_p=report.n / 15, regularisation=0.0, workers=1)
    assert float(best.generalisation_error[0]) == pytest.approx(
        float(plain.generalisation_error), rel=2e-3
    )
    # Gaussian least squares: error noise/(1 - p/n)
    assert float(plain.generalisation_error) == pytest.approx(0.5 / (1 - 15 / report.n), rel=1e-9)
    least = 15 / (1 - 0.5 / 0.54)
    assert report.n == int(np.ceil(least))


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "goal"), [("square", 0.46), ("huber", 0.46)])
def test_the_size_for_the_best_penalty_is_the_least_that_the_search_at_every_size_finds(loss, goal):
    report = hm.sample_size(LINEAR, target={"r2": goal}, regularisation="optimal", loss=loss)
    at = np.array([report.n - 1, report.n]) / 15
    how = {"regularisation": "optimal", "observables": "r2", "workers": 1}
    exact = hm.predict(LINEAR.model(loss), n_over_p=at, **how).r2.values
    assert exact[0] < goal <= exact[1]
    assert float(report.curve.r2.sel(n=report.n)) == pytest.approx(exact[1], rel=1e-9)


@pytest.mark.parametrize("goal", [0.9, 0.99, 0.5, (0.85, 1.15)])
@pytest.mark.parametrize("known", [False, True])
def test_least_sizes_are_exact(goal, known):
    """Of a quantity that is not defined for few samples, peaks, falls and then grows."""

    def quantity(n):
        with np.errstate(invalid="ignore", divide="ignore"):
            return (
                1.0 - 30.0 / n + 0.3 * np.exp(-(((n - 35.0) / 4.0) ** 2)) + 0.0 * np.sqrt(n - 9.0)
            )

    def curve(n, names):
        return xr.Dataset({names[0]: ("n", quantity(n))})

    found = least_size(10, curve, "auc", goal, {"auc": 1.0} if known else None)
    n = np.arange(FEWEST, 20_000.0)
    low, high = goal if isinstance(goal, tuple) else (goal, np.inf)
    good = (quantity(n) >= low) & (quantity(n) <= high)
    assert found == n[np.flatnonzero(~good)[-1] + 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "population",
    [BINARY, hm.Population(prevalence=0.2, auc=0.8, predictors=9, law="binormal"), LINEAR, COUNT],
    ids=["logistic", "binormal", "linear", "count"],
)
def test_infinitely_many_samples_reveal_the_true_model(population):
    names = QUANTITIES[population.outcome]
    best = ideal(population, names)
    far = np.array([200, 400]) * population.predictors
    close = expected(population, population.model(), 0.0, far, names)
    for name in names:  # what is missing falls like 1/n, and a distance like its root
        half, whole = close[name].values ** (2 if name == "probability_error" else 1)
        assert best[name] == pytest.approx(2.0 * whole - half, abs=5e-4), name
    if population.outcome == "binary":
        assert best["auc"] == pytest.approx(population.auc, abs=1e-6)
        assert best["calibration_slope"] == pytest.approx(1.0, abs=1e-9)
    else:
        assert best["r2"] == pytest.approx(population.r2, abs=1e-9)


@pytest.mark.slow
def test_long_simulations_are_left_to_those_who_ask_for_them():
    rare = hm.Population(prevalence=0.001, auc=0.8, predictors=6)
    report = hm.sample_size(rare, target={"calibration_slope": 0.9}, workers=1)
    assert report.simulated is None and report.left_out > 3.0
    assert "finite_size=True simulates it" in str(report)


def test_single_fits_have_the_performance_of_the_theory():
    for population in (
        BINARY,
        hm.Population(prevalence=0.2, auc=0.9, predictors=3, law="binormal"),
    ):
        teacher, rng = population.teacher, np.random.default_rng(0)
        alignment, size = rng.uniform(0.6, 0.99, 3), rng.uniform(0.6, 1.8, 3)
        Q, b = teacher.rho * size**2, rng.uniform(-3.0, -1.0, 3)
        M = alignment * np.sqrt(teacher.rho * Q)
        loss, rest = hm.losses.Logistic(), teacher.rho - M**2 / Q
        scores = Scores(teacher, loss, loss, 1.0, np.ones(3), np.sqrt(Q), b, M / np.sqrt(Q), rest)
        found = binary_performance(teacher, QUANTITIES["binary"], Q, M, b)
        for name, values in found.items():
            close = 2e-3 if name == "probability_error" else 1e-7
            np.testing.assert_allclose(values, observe(REGISTRY[name].expected, scores), rtol=close)


@pytest.mark.slow
def test_single_fits_are_those_of_a_regression_by_scipy():
    model = hm.Population(prevalence=0.3, auc=0.8, predictors=3).model()
    ds = hm.simulate(model, n=80, regularisation=8e-8, seeds=1, n_test=1, workers=1)
    found, separable = drawn(
        hm.Population(prevalence=0.3, auc=0.8, predictors=3),
        model,
        [80],
        0.0,
        ("calibration_slope", "auc"),
        seeds=1,
        workers=1,
    )
    assert not separable.any()
    # a million new patients of this fit
    rng = np.random.default_rng(0)
    Q, M, b = (float(ds[q].squeeze()) for q in ("Q", "M", "intercept"))
    rho = model.teacher.rho
    nu, z = rng.standard_normal((2, 1_000_000))
    nu *= np.sqrt(rho)
    f = b + M / rho * nu + np.sqrt(Q - M**2 / rho) * z
    y = rng.random(len(nu)) < expit(nu + model.teacher.threshold)

    def gradient(line):
        miss = expit(line[0] + line[1] * f) - y
        return [miss.mean(), (miss * f).mean()]

    slope = optimize.root(gradient, [0.0, 1.0]).x[1]
    assert found["calibration_slope"][0, 0] == pytest.approx(slope, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("population", [LINEAR, COUNT], ids=["linear", "count"])
def test_limits_of_numbers_agree_with_their_draws(population):
    names = QUANTITIES[population.outcome]
    model, n = population.model(), 40 * population.predictors
    limit = expected(population, model, 0.0, np.array([n]), names)
    found, _ = drawn(population, model, [n], 0.0, names, seeds=40, workers=1)
    for name in names:
        values = found[name][0]
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert float(limit[name][0]) == pytest.approx(values.mean(), abs=4 * error + 0.005), name


def test_separable_draws_miss_the_target_and_are_reported():
    tiny = hm.Population(prevalence=0.5, auc=0.95, predictors=6)
    found, separable = drawn(tiny, tiny.model(), [14], 0.0, ("auc",), seeds=12, workers=1)
    assert separable.any()
    assert np.isnan(found["auc"][separable]).all()
    assert not met("auc", 0.5, found["auc"])[separable].any()


@pytest.mark.parametrize("assurance", [0.6, 0.9])
def test_the_size_of_an_assurance_is_where_the_target_is_met_as_often(assurance):
    """Studies whose quantity is normal, of mean 1 - 20/n and variance 1/n."""
    rng = np.random.default_rng(0)

    def fits(sizes, draws):
        n = np.array(sizes, dtype=float)[:, None]
        values = 1 - 20 / n + rng.standard_normal((len(sizes), draws)) / np.sqrt(n)
        return {"auc": values}, np.zeros(values.shape, bool)

    found = assured_size(fits, {"auc": 0.9}, {"auc": 200}, assurance, 4000)["auc"]

    def excess(n):
        return norm.cdf((0.1 - 20 / n) * np.sqrt(n)) - assurance

    exact = optimize.brentq(excess, 150, 2000)
    assert abs(found.n - exact) < 4 * found.stderr
    assert found.stderr < 0.05 * exact and found.enclosed
    assert found.mean == pytest.approx(1 - 20 / found.n, abs=0.003)
    assert found.deviation == pytest.approx(found.n**-0.5, rel=0.05)


def test_each_target_is_sought_around_its_own_size():
    """Of which one needs thirty times as many as the other."""
    rng = np.random.default_rng(0)

    def fits(sizes, draws):
        n = np.array(sizes, dtype=float)[:, None]
        noise = rng.standard_normal((2, len(sizes), draws)) / np.sqrt(n)
        return {"auc": 1 - 20 / n + noise[0], "r2": 1 - 600 / n + noise[1]}, np.zeros(
            noise[0].shape, bool
        )

    found = assured_size(fits, {"auc": 0.9, "r2": 0.9}, {"auc": 200, "r2": 6000}, 0.8, 2000)
    for name, c in (("auc", 20), ("r2", 600)):
        exact = optimize.brentq(lambda n, c=c: (0.1 - c / n) * np.sqrt(n) - norm.ppf(0.8), 50, 1e5)
        assert found[name].enclosed and found[name].n == pytest.approx(exact, rel=0.05)


def test_sizes_beyond_those_simulated_are_told():
    report = hm.sample_size(LINEAR, target={"r2": 0.46}, finite_size=False)
    one = Assured(300, 50.0, (100, 120, 140), (0.5, 0.6, 0.7), 0.46, 0.02, 0.0, 50, enclosed=False)
    one = replace(one, n=report.n)
    told = str(replace(report, assured={"r2": one}, assurance=0.8))
    assert "n of an R² of at least 0.46 is extrapolated from 100 to 140 samples" in told


def test_shares_never_met_are_said():
    def fits(sizes, draws):
        return {"auc": np.zeros((len(sizes), draws))}, np.zeros((len(sizes), draws), bool)

    with pytest.raises(hm.InvalidArgumentError, match="not reached with"):
        assured_size(fits, {"auc": 0.9}, {"auc": 20}, 0.8, 20)


@pytest.mark.slow
def test_an_assurance_needs_more_than_the_typical_study():
    population = hm.Population(outcome="continuous", r2=0.5, predictors=5)
    how = {"target": {"calibration_slope": 0.9}, "workers": 1}
    typical = hm.sample_size(population, **how)
    assured = hm.sample_size(population, **how, assurance=0.8, draws=100)
    assert assured.n > typical.n + 3 * assured.stderr
    assert f"(± {round(assured.stderr)})" in assured.sentence
    assert "simulated studies" in assured.paragraph
    assert "deviation at n" in str(assured)


@pytest.mark.slow
def test_few_predictors_are_simulated_unasked():
    few = hm.Population(outcome="continuous", r2=0.5, predictors=8)
    many = hm.Population(outcome="continuous", r2=0.5, predictors=40)
    slope, how = {"calibration_slope": 0.9}, {"workers": 1}
    report = hm.sample_size(few, target=slope, **how)
    assert report.simulated["calibration_slope"].draws == 500 and report.seconds > 0
    assert "The means of 500 simulated studies of this size" in report.to_markdown()
    assert hm.sample_size(few, target=slope, **how, finite_size=False).simulated is None
    assert hm.sample_size(few, target={"r2": 0.47}, **how).simulated is None
    assert hm.sample_size(many, target=slope, **how).simulated is None
    assert "limit" in report.curve.attrs["sizes"]


@pytest.mark.slow
def test_simulated_studies_of_the_size_found_stand_beside_the_limit():
    population = hm.Population(outcome="continuous", r2=0.5, predictors=5)
    how = {"target": {"calibration_slope": 0.9}, "finite_size": True, "draws": 100, "workers": 1}
    report = hm.sample_size(population, **how)
    # least squares with an intercept: the mean square error is noise (1 + 1/n)(1 + p/(n - p - 2))
    n, one = report.n, report.simulated["generalisation_error"]
    exact = 0.5 * (1 + 1 / n) * (1 + 5 / (n - 5 - 2))
    assert one.mean == pytest.approx(exact, abs=4 * one.stderr)
    assert report.simulated["calibration_slope"].separable == 0.0
    assert f"Simulated studies of n = {n}" in str(report)
    far = {"calibration_slope": Simulated(0.945, 0.001, 0.93, 0.1, 0.0, 100)}
    told = str(replace(report, simulated=far))
    assert "from the limit: calibration slope by +5.0 ± 0.1 %" in told
    # the limit is 1 - p/n here: a mean that is 0.045 above it meets the target with fewer
    fewer, error = replace(report, simulated=far).on_average
    exact = 5 / (1.0 - (0.9 - 0.045))
    assert fewer == pytest.approx(exact, rel=0.15) and error == pytest.approx(0.01 * fewer, rel=0.2)
    assert f"meets the target with {fewer} (± 1) samples" in told
    apart = {"calibration_slope": Simulated(0.945, 0.001, 0.93, 0.1, 0.01, 100)}
    assert replace(report, simulated=apart).on_average is None  # which has no mean
    best = hm.sample_size(population, **{**how, "target": {"r2": 0.47}}, regularisation="optimal")
    assert best.simulated["r2"].mean == pytest.approx(0.47, abs=0.02)


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ({"auc": 0.86}, {}, "cannot be reached: with infinitely many samples it is 0.85"),
        ({"auc": 0.3}, {}, "above 0.5 and below 1"),
        ({"calibration_slope": (0.5, 0.6)}, {}, "with infinitely many samples it is 1"),
        ({"probability_error": 1e-5}, {}, "with 100000 samples per predictor it is"),
        ({"acu": 0.8}, {}, "did you mean 'auc'"),
        ({}, {}, "one target at least"),
        ({"calibration_slope": 1.0}, {}, "infinitely many samples"),
        ({"calibration_slope": (1.1, 0.9)}, {}, "an interval"),
        ({"auc": 0.8}, {"assurance": 0.2}, "assurance = 0.2"),
        ({"auc": 0.8}, {"assurance": 0.8, "regularisation": "optimal"}, "cannot be combined"),
        ({"auc": 0.8}, {"regularisation": -1.0}, "regularisation = -1.0"),
        ({"auc": 0.8}, {"n": 0}, "n = 0"),
    ],
)
def test_impossible_requests_are_refused(target, more, message):
    with pytest.raises(hm.InvalidArgumentError, match=message):
        hm.sample_size(BINARY, target=target, **more)
    with pytest.raises(hm.InvalidArgumentError, match="a hiddenmanifold.Population"):
        hm.sample_size("patients", target=target)
