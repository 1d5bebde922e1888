"""How much signal a sample shows: the AUC or R² of its true model, from rows that were left out.

Regression without a penalty depends on its features by nothing but their number and the strength of
the signal, if features are normal. The left-out AUC, or R², of that regression on the N rows at
hand grows with the strength, and so determines it: the true model is that for which the limit at
N/p predicts what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.data.sample import Data
from hiddenmanifold.errors import InvalidArgumentError, UnusableDataError
from hiddenmanifold.losses import Logistic
from hiddenmanifold.results.datasets import ACCEPTED
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.studies.performance import VANISHING, expected
from hiddenmanifold.studies.population import Population

LEAST_AUC = 0.501
"""Least true AUC of a sample with a signal."""
MOST_AUCS = tuple(1.0 - np.geomspace(0.002, 0.4, 24))
"""True AUCs below which that of a sample is sought: the largest that has a fit in the limit."""
MEASURED = {"auc": "AUC", "r2": "R²"}
EXACT = 1.0 - 1e-9
"""True R² beyond which the rest is attributed to rounding."""
FEWEST_LEFT = 2
"""Least number of rows beside the features and the intercept."""


class Signal(NamedTuple):
    """What left-out rows show.

    Attributes
    ----------
    name : {"auc", "r2"}
        What was measured, at the number of samples and features at hand.
    measured, stderr : float
        Its value for rows that were left out, and the standard error.
    true, low, high : float
        That of the true model, and the interval of one standard error; 1/2 or 0 where there may be
        no signal, and NaN where there may be more than this many rows can show.
    """

    name: str
    measured: float
    stderr: float
    true: float
    low: float
    high: float


def predictors(data: Data) -> int:
    """Number of features, without those that others determine."""
    return len(data.ridge.k)


def signal_of(data: Data) -> Signal:
    """The strength of the signal of labels that are numbers or of two classes.

    Raises
    ------
    UnusableDataError
        If regression without a penalty does not exist, or shows nothing.
    InvalidArgumentError
        If there are several classes.
    """
    if data.task is Task.CLASSES:
        raise InvalidArgumentError.because(
            "target",
            "is for numbers or two classes",
            "compare one class with the others by Data(..., positive=one), or give target_error",
        )
    if data.ridge.hidden < FEWEST_LEFT:
        raise UnusableDataError(
            f"{data!r} has too few rows for regression without a penalty, which target= plans: "
            "choose fewer features, or plan ridge regression by target_error= or target_gain="
        )
    classes = data.task is Task.CLASSIFICATION
    name, (measured, stderr) = ("auc", _auc(data)) if classes else ("r2", _r2(data))
    true = _inverse_of_limit(data) if classes else partial(_true_r2, data)
    found, low, high = (true(measured + side * stderr) for side in (0.0, -1.0, 1.0))
    if not found > (0.5 if classes else 0.0):
        raise UnusableDataError(
            f"{data!r} shows no signal: regression without a penalty has a left-out "
            f"{MEASURED[name]} of {measured:.3g} ± {stderr:.2g}, no better than without features"
        )
    if not classes and found > EXACT:
        raise UnusableDataError(
            f"{data!r} has numbers that its features determine: regression without a penalty is "
            "exact with more samples than features"
        )
    if np.isnan(found):
        raise UnusableDataError(
            f"{data!r} has classes that are almost separable by its features, so that regression "
            "without a penalty says little: choose fewer features, or give target_error="
        )
    return Signal(name, measured, stderr, found, low, high)


def population_of(data: Data, strength: float) -> Population:
    """The population of which a sample is one, with a true AUC or R² of this value."""
    p = predictors(data)
    if data.task is Task.REGRESSION:
        return Population(outcome="continuous", r2=strength, predictors=p)
    prevalence = float((data.y > 0).mean())
    return Population(prevalence=prevalence, auc=strength, predictors=p)


def _r2(data: Data) -> tuple[float, float]:
    """Left-out R² of least squares, and its standard error."""
    errors = data.ridge.path(np.zeros(1)).square[:, 0]
    spread = np.square(data.y - data.y.mean()) * data.N / (data.N - 1.0)
    ratio = float(errors.mean() / spread.mean())
    each = (errors - ratio * spread) / spread.mean()
    return 1.0 - ratio, float(each.std(ddof=1) / np.sqrt(data.N))


def _true_r2(data: Data, measured: float) -> float:
    """The inverse of the limit: errors are those of the true model over 1 - p/n."""
    return max(0.0, 1.0 - (1.0 - measured) * (1.0 - predictors(data) / data.N))


def _auc(data: Data) -> tuple[float, float]:
    """Left-out AUC of logistic regression, and its standard error (DeLong et al. 1988)."""
    scores, positive = _left_out_scores(data), data.y > 0
    above, below = scores[positive], scores[~positive]
    order = np.sort(below)
    share = 0.5 * (np.searchsorted(order, above, "left") + np.searchsorted(order, above, "right"))
    wins = share / len(below)
    order = np.sort(above)
    share = 0.5 * (np.searchsorted(order, below, "left") + np.searchsorted(order, below, "right"))
    losses = 1.0 - share / len(above)
    variance = wins.var(ddof=1) / len(above) + losses.var(ddof=1) / len(below)
    return float(wins.mean()), float(np.sqrt(variance))


def _left_out_scores(data: Data) -> Array:
    """Scores of rows by logistic regression without them, by a Newton step from the fit to all.

    Intercepts are those of the fit to all: they differ with the class of the row that is left out,
    and would make its score smaller if it is of the rarer one.
    """
    white: Ridge = replace(data.ridge, k=np.full_like(data.ridge.k, float(data.N)))
    C = white.scores / np.sqrt(len(white.k))
    lam = np.array([VANISHING * data.N])
    (fit,) = fit_path(Logistic(), data.task, white.scores, data.y, lam, intercept=True)
    f = C @ fit.w + fit.b
    if (data.y * f > 0).all() or fit.optimality > ACCEPTED:
        raise UnusableDataError(
            f"{data!r} has classes that its features separate, so that logistic regression without "
            "a penalty, which target= plans, does not exist: choose fewer features, or plan a fit "
            "with a penalty by target_error= or target_gain="
        )
    slope = -data.y / (1.0 + np.exp(data.y * f))
    bend = np.abs(slope) * (1.0 - np.abs(slope))
    centred = C - bend @ C / bend.sum()
    inverse = np.linalg.solve(centred.T @ (bend[:, None] * centred), centred.T)
    response = np.sum(centred * inverse.T, axis=1)
    free = np.maximum(1.0 - bend * (response + 1.0 / bend.sum()), 1e-6)
    moved: Array = f + slope * response / free
    return moved


def _inverse_of_limit(data: Data) -> Callable[[float], float]:
    """From a measured AUC to the true one for which the limit predicts it at these samples."""
    from scipy import optimize

    @cache
    def reached(auc: float) -> float:
        population = population_of(data, auc)
        found = expected(population, population.model(), 0.0, np.array([data.N]), ("auc",))
        return float(found["auc"][0])

    def true(measured: float) -> float:
        if reached(LEAST_AUC) >= measured:
            return 0.5
        # where the limit has no fit any more, classes are separable
        most = next((auc for auc in MOST_AUCS if reached(auc) > measured), None)
        if most is None:
            return float("nan")
        return float(optimize.brentq(lambda c: reached(c) - measured, LEAST_AUC, most, xtol=1e-4))

    return true
