"""What is measured of scores, against scikit-learn, scipy and frequencies."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit
from sklearn import metrics
from sklearn.metrics import log_loss, roc_auc_score

import hiddenmanifold as hm
from hiddenmanifold.results.observables import DECISIONS, REGISTRY
from hiddenmanifold.simulation import test_scores
from hiddenmanifold.simulation.test_scores import Scored

TEACHER = hm.teachers.Logistic(slope=2.0, threshold=0.3)


def model(loss="logistic", teacher=TEACHER):
    return hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)


def drawn(rows=2000, seed=0, *, Q=2.5, M=0.9, mean=0.4, **more):
    """Scores and labels of a joint normal law of field and score."""
    rng = np.random.default_rng(seed)
    nu, z = rng.standard_normal((2, rows))
    f = mean + M * nu + np.sqrt(Q - M**2) * z
    y = np.where(rng.random(rows) < expit(2.0 * (nu + 0.3)), 1.0, -1.0)
    return Scored(model(**more), f, y, f, y, intercept=mean, Q=Q, M=M)


def test_auc_is_that_of_sklearn_ties_included():
    scored = drawn()
    assert test_scores.auc(scored) == pytest.approx(roc_auc_score(scored.y, scored.f), rel=1e-13)
    rounded = replace(scored, f=scored.f.round())
    assert test_scores.auc(rounded) == pytest.approx(
        roc_auc_score(scored.y, scored.f.round()), rel=1e-13
    )
    constant = replace(scored, f=np.ones_like(scored.f), intercept=1.0, Q=0.0, M=0.0)
    assert test_scores.auc(constant) == 0.5
    alone = replace(scored, y=np.ones_like(scored.y))
    assert np.isnan(test_scores.auc(alone))


def test_loss_is_that_of_sklearn():
    scored = drawn()
    expected = log_loss(scored.y, expit(scored.f))
    assert test_scores.test_loss(scored) == pytest.approx(expected, rel=1e-12)
    hinge = drawn(loss="hinge")
    expected = np.maximum(0.0, 1.0 - hinge.y * hinge.f).mean()
    assert test_scores.test_loss(hinge) == pytest.approx(expected, rel=1e-13)
    linear = replace(scored, model=model("square", "linear"))
    expected = 0.5 * np.mean((scored.y - scored.f) ** 2)
    assert test_scores.test_loss(linear) == pytest.approx(expected, rel=1e-13)


def of_amounts(loss, counts=False):
    """Scores of positive labels, or of counts, of which the exponential is the mean."""
    rng = np.random.default_rng(2)
    f = 0.5 * rng.standard_normal(500) + 0.3
    y = rng.poisson(np.exp(f)).astype(float) if counts else np.exp(f) * rng.exponential(size=500)
    teacher = hm.teachers.Poisson() if counts else hm.teachers.Gamma()
    return Scored(model(loss, teacher), f, y, f, y, intercept=0.3, Q=0.25, M=0.2)


def test_deviances_are_those_of_sklearn():
    counts, amounts = of_amounts("poisson", counts=True), of_amounts("gamma")
    for scored, theirs in (
        (counts, metrics.mean_poisson_deviance),
        (amounts, metrics.mean_gamma_deviance),
    ):
        expected = theirs(scored.y, np.exp(scored.f))
        assert test_scores.deviance(scored) == pytest.approx(expected, rel=1e-12)
    expected = np.mean(np.exp(counts.f) - counts.y * counts.f)
    assert test_scores.test_loss(counts) == pytest.approx(expected, rel=1e-12)
    square = of_amounts("square")
    expected = metrics.mean_squared_error(square.y, square.f)
    assert test_scores.deviance(square) == pytest.approx(expected, rel=1e-12)
    logistic = drawn()  # its loss is only approached
    assert test_scores.deviance(logistic) == 2 * test_scores.test_loss(logistic)
    shifted = hm.losses.Custom(
        lambda r: r**2 + 7.0, lambda r: 2 * r, lambda r: 2 + 0 * r, of="residual"
    )
    scored = of_amounts(shifted)
    assert test_scores.deviance(scored) == pytest.approx(2 * np.mean((scored.y - scored.f) ** 2))


@pytest.mark.parametrize("loss", ["poisson", "gamma", "absolute", hm.losses.Quantile(0.8)])
def test_errors_of_predictions_are_those_of_sklearn(loss):
    scored = of_amounts(loss)
    predicted = np.exp(scored.f) if loss in ("poisson", "gamma") else scored.f
    np.testing.assert_array_equal(scored.predicted, predicted)
    expected = metrics.mean_absolute_error(scored.y, predicted)
    assert test_scores.mean_absolute_error(scored) == pytest.approx(expected, rel=1e-13)
    expected = metrics.r2_score(scored.y, predicted)
    assert test_scores.r2(scored) == pytest.approx(expected, rel=1e-12)
    assert test_scores.coverage(scored) == np.mean(scored.y <= predicted)
    assert np.isnan(test_scores.r2(replace(scored, y=np.ones_like(scored.y))))


def test_the_loss_of_quantiles_is_that_of_sklearn():
    scored = of_amounts(hm.losses.Quantile(0.8))
    expected = metrics.mean_pinball_loss(scored.y, scored.f, alpha=0.8)
    assert test_scores.test_loss(scored) == pytest.approx(expected, rel=1e-12)


def test_scores_whose_exponential_overflows_are_infinitely_wrong_without_a_warning():
    scored = replace(of_amounts("poisson"), f=np.full(500, 1e3))
    for measure in (test_scores.test_loss, test_scores.deviance, test_scores.mean_absolute_error):
        assert measure(scored) == np.inf
    assert test_scores.r2(scored) == -np.inf
    assert test_scores.coverage(scored) == 1.0


def test_temperature_minimises_the_log_loss():
    scored = drawn()

    def mean(log_T):
        return np.logaddexp(0.0, -scored.y * scored.f * np.exp(-log_T)).mean()

    expected = optimize.minimize_scalar(mean, bracket=(-1.0, 1.0), tol=1e-10).x
    assert np.log(test_scores.best_temperature(scored)) == pytest.approx(expected, abs=1e-6)


def test_temperature_of_scores_that_mislead_or_separate():
    scored = drawn()
    misled = replace(scored, f=-scored.f, intercept=-0.4, M=-0.9)
    assert test_scores.best_temperature(misled) == np.inf
    certain = replace(scored, f=scored.y * np.abs(scored.f))
    assert test_scores.best_temperature(certain) == 0.0


@pytest.mark.slow
def test_calibration_error_is_the_distance_from_frequencies():
    scored = drawn(rows=400_000, seed=1)
    bins = np.array_split(np.argsort(scored.f), 200)
    gaps = [abs(expit(scored.f[i]).mean() - (scored.y[i] > 0).mean()) for i in bins]
    assert test_scores.calibration_error(scored) == pytest.approx(np.mean(gaps), abs=0.003)
    few = drawn(rows=2000)  # and needs no bins
    assert test_scores.calibration_error(few) == pytest.approx(np.mean(gaps), abs=0.02)


def test_calibration_error_of_a_constant():
    same = (np.full(50, 0.7), np.ones(50))
    constant = Scored(model(), *same, *same, 0.7, 0.0, 0.0)
    plus = (drawn(rows=400_000).y > 0).mean()
    assert test_scores.calibration_error(constant) == pytest.approx(
        abs(expit(0.7) - plus), abs=0.003
    )


SCORES = {
    "classes": model(),
    "numbers": model("square", hm.teachers.Linear(noise=0.3)),
    "counts": model("poisson", hm.teachers.Poisson(slope=0.4)),
    "quantiles": model(hm.losses.Quantile(0.8), hm.teachers.Linear(noise=0.3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
def test_simulations_measure_observables_and_draw_the_same_samples(name):
    some = SCORES[name]
    names = tuple(n for n, observable in REGISTRY.items() if some.task in observable.tasks)
    where = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": [0.1, 1.0]}
    how = {"d": 40, "seeds": 3, "n_test": 300, "workers": 1}
    bare = hm.simulate(some, **where, **how)
    full = hm.simulate(some, **where, **how, observables=names)
    assert set(full.data_vars) - set(bare.data_vars) == set(names)
    dropped = full.drop_vars([*names, "seconds"])
    assert dropped.identical(bare.drop_vars("seconds"))
    assert full.test_loss.dims == ("regularisation", "seed")
    assert np.isfinite([full[name] for name in names]).all()
    mean = hm.summary(full)
    assert {"test_loss", "test_loss_stderr"} <= set(mean.data_vars)


def test_real_labels_are_refused_what_only_two_classes_have():
    linear = model("square", "linear")
    how = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": 0.1, "d": 30, "seeds": 2}
    ds = hm.simulate(linear, **how, observables="test_loss", workers=1)
    np.testing.assert_allclose(ds.test_loss, 0.5 * ds.generalisation_error, rtol=1e-12)
    with pytest.raises(hm.InvalidArgumentError, match="real labels"):
        hm.simulate(linear, **how, observables="auc")


def test_scores_that_are_kept_count_as_memory():
    how = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": [0.1, 1.0], "d": 30, "seeds": 2}
    with pytest.raises(hm.InvalidArgumentError, match="GB"):
        hm.simulate(model(), **how, n_test=10**9, observables="auc", workers=1)


def test_probabilities_are_judged_as_by_sklearn():
    scored = drawn()
    p, y = expit(scored.f), (scored.y > 0).astype(float)
    expected = metrics.brier_score_loss(y, p)
    assert test_scores.brier_score(scored) == pytest.approx(expected, rel=1e-12)
    assert test_scores.r2(scored) == pytest.approx(metrics.r2_score(y, p), rel=1e-12)
    share = np.full(len(y), y.mean())
    ratio = 2 * (metrics.log_loss(y, p) - metrics.log_loss(y, share))
    expected = (1 - np.exp(ratio)) / (1 - np.exp(-2 * metrics.log_loss(y, share)))
    assert test_scores.nagelkerke_r2(scored) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(test_scores.nagelkerke_r2(replace(scored, y=np.ones(len(y)))))


def test_the_line_of_recalibration_minimises_the_log_loss():
    scored = drawn()

    def mean(line):
        return np.logaddexp(0.0, -scored.y * (line[0] + line[1] * scored.f)).mean()

    found = optimize.minimize(mean, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9}).x
    line = test_scores.calibration_intercept(scored), test_scores.calibration_slope(scored)
    assert line == pytest.approx(found, abs=1e-6)
    for useless in (np.zeros_like(scored.f), scored.y):  # constant, or separating the labels
        assert np.isnan(test_scores.calibration_slope(replace(scored, f=useless)))


def test_decisions_count_samples():
    scored = drawn()
    at, p, y = (0.2, 0.5), expit(scored.f), scored.y > 0
    for name, quantity in DECISIONS.items():
        found = test_scores.Decisions(quantity.of_counts, at)(scored)
        for value, t in zip(found, at, strict=True):
            true, false = (y & (p >= t)).sum(), (~y & (p >= t)).sum()
            expected = {
                "true_positive_rate": true / y.sum(),
                "true_negative_rate": 1 - false / (~y).sum(),
                "net_benefit": (true - false * t / (1 - t)) / len(y),
            }
            assert value == pytest.approx(expected[name], rel=1e-12)
