"""Observables of probabilities against sums over a grid of field and score, which share no code.

Given the field nu the score f is normal; both are integrated by the trapezoidal rule, lines are
fitted by scipy, and labels of classes are summed rather than fields.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, ndtr

from hiddenmanifold import losses, teachers
from hiddenmanifold.numerics.logistic_line import logistic_line
from hiddenmanifold.results.observables import DECISIONS
from hiddenmanifold.theory.scores import probabilities
from hiddenmanifold.theory.scores.distribution import Scores, observe

TEACHERS = {
    "probit": teachers.Sign(noise=0.3, flip=0.07, threshold=0.4, rho=1.7),
    "logistic": teachers.Logistic(slope=1.5, threshold=-1.2, rho=1.7),
    "classes": teachers.Mixture(prior=0.3, rho=1.6),
}
# correlation of score and field, deviation and mean of the score
POINTS = np.array([(0.3, 0.2, 0.0), (0.8, 1.5, -0.7), (0.95, 4.0, -2.0), (-0.4, 2.0, 0.5)])


def scores_of(teacher, points=POINTS):
    correlation, deviation, mean = points.T
    k, V0 = np.sqrt(teacher.rho) * correlation, teacher.rho * (1 - correlation**2)
    loss, one = losses.Logistic(), np.ones(len(points))
    return Scores(teacher, loss, loss, 1.0, one, deviation, mean, k, V0)


class Grid:
    """Weights of fields and scores, (fields, scores), and P(+|nu) of each field."""

    def __init__(self, teacher, correlation, deviation, mean, steps=601):
        rho = teacher.rho
        t = np.linspace(-9.0, 9.0, steps)
        density = np.exp(-0.5 * t**2) * (t[1] - t[0]) / np.sqrt(2 * np.pi)
        if isinstance(teacher, teachers.Mixture):  # two normal classes
            t = np.linspace(-9.0 - np.sqrt(rho), 9.0 + np.sqrt(rho), steps)
            each = {y: np.exp(-0.5 * (t - y * np.sqrt(rho)) ** 2) for y in (1, -1)}
            plus, minus = teacher.prior * each[1], (1 - teacher.prior) * each[-1]
            weight, known = (
                (plus + minus) * (t[1] - t[0]) / np.sqrt(2 * np.pi),
                plus / (plus + minus),
            )
        else:
            weight = density
            z = np.sqrt(rho) * t + teacher.threshold
            if isinstance(teacher, teachers.Logistic):
                known = expit(teacher.slope * z)
            else:
                known = teacher.flip + (1 - 2 * teacher.flip) * ndtr(z / np.sqrt(teacher.noise))
        u = np.linspace(-9.0, 9.0, 201)
        inner = np.exp(-0.5 * u**2) * (u[1] - u[0]) / np.sqrt(2 * np.pi)
        self.f = (
            mean + deviation * (correlation * t[:, None] + np.sqrt(1 - correlation**2) * u)
        ).ravel()
        self.weight = (weight[:, None] * inner).ravel()
        self.known = np.broadcast_to(known[:, None], (steps, len(u))).ravel()
        self.prior = float(self.weight @ self.known)

    def mean(self, values):
        return float(self.weight @ values)

    def log_loss(self, f):
        plus = self.known * np.logaddexp(0, -f) + (1 - self.known) * np.logaddexp(0, f)
        return self.mean(plus)


@pytest.fixture(scope="module", params=TEACHERS)
def both(request):
    teacher = TEACHERS[request.param]
    return scores_of(teacher), [Grid(teacher, *point) for point in POINTS]


@pytest.mark.slow
def test_brier_score_and_both_r2_are_sums_over_the_grid(both):
    scores, grids = both
    brier = observe(probabilities.brier_score, scores)
    shares = observe(probabilities.r2, scores)
    nagelkerke = observe(probabilities.nagelkerke_r2, scores)
    for i, grid in enumerate(grids):
        p, q = expit(grid.f), grid.known
        expected = grid.mean(q * (1 - p) ** 2 + (1 - q) * p**2)
        assert brier[i] == pytest.approx(expected, rel=1e-9)
        pi = grid.prior
        assert shares[i] == pytest.approx(1 - expected / (pi * (1 - pi)), rel=1e-8)
        null = -(pi * np.log(pi) + (1 - pi) * np.log(1 - pi))
        cox_snell = 1 - np.exp(2 * (grid.log_loss(grid.f) - null))
        assert nagelkerke[i] == pytest.approx(cox_snell / (1 - np.exp(-2 * null)), rel=1e-8)


@pytest.mark.slow
def test_distance_of_probabilities_is_a_sum_over_the_grid(both):
    scores, grids = both
    found = observe(probabilities.probability_error, scores)
    for value, grid in zip(found, grids, strict=True):
        # the kink costs the trapezoidal rule some digits
        assert value == pytest.approx(grid.mean(np.abs(expit(grid.f) - grid.known)), rel=2e-5)


@pytest.mark.slow
def test_line_of_recalibration_minimises_the_log_loss(both):
    scores, grids = both
    slope = observe(probabilities.calibration_slope, scores)
    intercept = observe(probabilities.calibration_intercept, scores)
    for i in (1, 2):
        grid = grids[i]

        def gradient(line, grid=grid):
            miss = expit(line[0] + line[1] * grid.f) - grid.known
            return [grid.mean(miss), grid.mean(miss * grid.f)]

        a, s = optimize.root(gradient, [intercept[i] + 0.1, slope[i] - 0.1], tol=1e-13).x
        assert (slope[i], intercept[i]) == pytest.approx((s, a), rel=1e-8, abs=1e-9)


def test_decisions_are_probabilities_of_normal_scores(both):
    scores, grids = both
    at = (0.1, 0.5, 0.8)
    found = {
        name: observe(probabilities.Decision(quantity.of_counts, at), scores)
        for name, quantity in DECISIONS.items()
    }
    teacher = scores.teacher
    for i, (correlation, deviation, _) in enumerate(POINTS):
        # given the field the probability of a score above the cut is known
        grid = grids[i]
        nu = grid.f.reshape(601, 201)[:, 100]  # the mean score at each field
        weight = grid.weight.reshape(601, 201).sum(1)
        known = grid.known.reshape(601, 201)[:, 0]
        for j, t in enumerate(at):
            above = ndtr((nu - np.log(t / (1 - t))) / (deviation * np.sqrt(1 - correlation**2)))
            true, false = weight @ (known * above), weight @ ((1 - known) * above)
            plus = teacher.label_marginals[0]
            assert found["true_positive_rate"][i, j] == pytest.approx(true / plus, rel=1e-9)
            expected = 1 - false / (1 - plus)
            assert found["true_negative_rate"][i, j] == pytest.approx(expected, rel=1e-9)
            expected = true - false * t / (1 - t)
            assert found["net_benefit"][i, j] == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_the_true_probability_is_calibrated():
    teacher = TEACHERS["logistic"]
    certain = np.array([(1 - 1e-13, 1.5 * np.sqrt(1.7), -1.2 * 1.5)])
    scores = scores_of(teacher, certain)
    assert observe(probabilities.calibration_slope, scores)[0] == pytest.approx(1.0, rel=1e-6)
    assert observe(probabilities.calibration_intercept, scores)[0] == pytest.approx(0.0, abs=1e-6)
    assert observe(probabilities.probability_error, scores)[0] < 1e-6


def test_a_point_that_failed_spoils_no_other():
    scores = scores_of(TEACHERS["probit"])
    bad = np.arange(4) == 1
    lost = replace(scores, deviation=np.where(bad, np.nan, scores.deviation))
    lost = replace(lost, slope=np.where(bad, np.nan, scores.slope))
    for name in ("brier_score", "calibration_slope", "probability_error", "nagelkerke_r2"):
        observed = getattr(probabilities, name)
        found, expected = observe(observed, lost), observe(observed, scores)
        assert np.isnan(found[1])
        np.testing.assert_allclose(found[~bad], expected[~bad], rtol=1e-12)


def test_lines_of_separated_or_single_labels_are_none():
    x = np.array([[-2.0, -1.0, 1.0, 2.0]] * 3)
    plus = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]], dtype=float)
    intercept, slope = logistic_line(x, plus, 1 - plus)
    assert np.isnan(slope[[0, 2]]).all()
    assert (intercept[1], slope[1] > 0) == (pytest.approx(0.0, abs=1e-12), True)
