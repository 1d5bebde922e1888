"""What is measured of scores, against scikit-learn, scipy and frequencies."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

import hiddenmanifold as hm
from hiddenmanifold.results.observables import REGISTRY
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


def test_simulations_measure_observables_and_draw_the_same_samples():
    where = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": [0.1, 1.0]}
    how = {"d": 40, "seeds": 3, "n_test": 300, "workers": 1}
    bare = hm.simulate(model(), **where, **how)
    full = hm.simulate(model(), **where, **how, observables=tuple(REGISTRY))
    assert set(full.data_vars) - set(bare.data_vars) == set(REGISTRY)
    dropped = full.drop_vars([*REGISTRY, "seconds"])
    assert dropped.identical(bare.drop_vars("seconds"))
    assert full.auc.dims == ("regularisation", "seed")
    assert np.isfinite([full[name] for name in REGISTRY]).all()
    mean = hm.summary(full)
    assert {"auc", "auc_stderr"} <= set(mean.data_vars)


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
