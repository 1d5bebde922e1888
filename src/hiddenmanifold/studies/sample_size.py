"""How many samples a prediction model needs to meet its targets, before there are any."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hiddenmanifold import losses
from hiddenmanifold.api.arguments import Optimal
from hiddenmanifold.api.predict import predict
from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import check_count, check_number
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.model import Model
from hiddenmanifold.studies.assurance import Assured, assured_size
from hiddenmanifold.studies.performance import (
    TUNED,
    Simulated,
    best_penalty,
    drawn,
    expected,
)
from hiddenmanifold.studies.population import Population
from hiddenmanifold.studies.sample_size_report import SampleSize
from hiddenmanifold.studies.targets import QUANTITIES, Target, checked_targets, met
from hiddenmanifold.studies.textbook import textbook_criteria

if TYPE_CHECKING:
    import xarray as xr

FEWEST = 5
"""Least number of samples that is considered."""
MOST = 1e5
"""Largest number of samples per predictor that is considered."""
SCAN, ROUNDS, FINER = 21, 4, 9
"""Sizes of the first scan, rounds of finer ones within the last gap, and their sizes."""


def sample_size(
    population: Population,
    *,
    target: Mapping[str, Target],
    loss: str | losses.ConvexLoss | None = None,
    regularisation: float | Literal["optimal"] = 0.0,
    assurance: float | None = None,
    n: int | None = None,
    finite_size: bool = False,
    draws: int = 500,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
) -> SampleSize:
    """The least number of samples for which a regression meets targets of its performance.

    It is for studies without data. With a sample at hand `hiddenmanifold.plan` extrapolates that,
    and `samples_needed` answers the question for any model.

    Parameters
    ----------
    population : Population
        Predictors and outcome.
    target : mapping
        The performance on new samples of the population: a value to reach or an interval to be in,
        for each of some quantities. For binary outcomes these are "calibration_slope", "auc",
        "brier_score", "probability_error", "r2" (of the probability), "nagelkerke_r2" and
        "test_loss"; for others "calibration_slope", "r2" and "generalisation_error".
    loss : str or Loss, optional
        By default that of logistic, linear or Poisson regression, as the outcome requires.
    regularisation : float or "optimal"
        The λ of the objective; 0 for regression without a penalty, "optimal" for the λ of least
        log-loss, square error or deviance at each n, which takes a minute for logistic regression.
    assurance : float, optional
        The probability with which a single study is to meet each target. By default the limit
        n, p → ∞ at the ratio n/p meets it, which is a typical (median) study.
    n : int, optional
        A number of samples whose performance is to be reported besides: those that you have.
    finite_size : bool
        Whether to simulate studies of the size that is found, too: the report then has the mean and
        the median of each quantity beside the limit, and says where the mean deviates by more than
        one percent.
    draws : int
        Simulated studies for an assurance, at each of some sizes, and for `finite_size`.
    seed : int
        Root of the randomness of these.
    workers, progress
        As in `simulate`.

    Returns
    -------
    SampleSize
        The report: `n`, the least n for each target, curves, ridge regression with the best λ,
        events per predictor and the textbook criteria.

    Raises
    ------
    InvalidArgumentError
        If a target is unknown, or cannot be reached with any number of samples.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> population = hm.Population(outcome="binary", prevalence=0.2, auc=0.85, predictors=10)
    >>> hm.sample_size(population, target={"calibration_slope": 0.9}).n
    554
    """
    if not isinstance(population, Population):
        raise InvalidArgumentError("population", population, "a hiddenmanifold.Population")
    targets = checked_targets(population.outcome, target)
    penalty = _penalty(population, regularisation, assurance)
    if n is not None:
        check_count("n", n, low=2)
    model = population.model(loss)
    if assurance is not None and "test_loss" in targets and model.loss != losses.Logistic():
        raise InvalidArgumentError.because(
            "target['test_loss']",
            f"with an assurance is that of the logistic loss, not of {model.loss}",
            "leave it out, or give no assurance",
        )

    def curve(sizes: Array, names: tuple[str, ...] = tuple(targets)) -> xr.Dataset:
        return expected(population, model, sizes, penalty, names)

    needed = {name: _least(population, curve, name, goal) for name, goal in targets.items()}
    typical = max(needed.values())
    assured = None
    how = {"seed": seed, "workers": workers, "progress": progress}
    check_count("draws", draws, 20)
    if assurance is not None:
        assert not isinstance(penalty, Optimal)

        def fits(sizes: list[int], seeds: int) -> tuple[dict[str, Array], Booleans]:
            return drawn(population, model, sizes, penalty, tuple(targets), seeds=seeds, **how)

        assured = assured_size(fits, targets, typical, assurance, draws)
        needed = {name: one.n for name, one in assured.items()}
    report = _report(
        population,
        model,
        penalty=penalty,
        targets=targets,
        needed=needed,
        assured=assured,
        n=n,
        assurance=assurance,
    )
    if not finite_size:
        return report
    return replace(report, simulated=_simulated(report, model, seeds=draws, **how))


def _simulated(report: SampleSize, model: Model, **how: Any) -> dict[str, Simulated]:
    """Every quantity of simulated studies of the size that was found."""
    names = QUANTITIES[report.population.outcome]
    if model.loss != losses.Logistic():
        names = tuple(name for name in names if name != "test_loss")
    at, lam = report.curve.sel(n=report.n), report.regularisation
    lam = float(at.optimal_regularisation if lam == "optimal" else lam)
    found, separable = drawn(report.population, model, [report.n], lam, names, **how)
    return {name: Simulated.of(values[0], separable[0]) for name, values in found.items()}


def _penalty(
    population: Population, regularisation: object, assurance: float | None
) -> float | Optimal:
    """The λ that is given, or the search for the best one."""
    if assurance is not None:
        check_number("assurance", assurance, 0.5, 0.99)
    if isinstance(regularisation, str) and regularisation == "optimal":
        if assurance is not None:
            raise InvalidArgumentError.because(
                "assurance",
                "cannot be combined with regularisation='optimal'",
                "give a number for the regularisation: every simulated study has the same λ",
            )
        return best_penalty(population)
    check_number("regularisation", regularisation, 0.0)
    return float(regularisation)  # type: ignore[arg-type]


def _least(
    population: Population,
    curve: Callable[..., xr.Dataset],
    name: str,
    goal: Target,
) -> int:
    """The least n from which on the limit meets a target, among all that are considered."""
    most = MOST * population.predictors

    def meets(sizes: Array) -> Booleans:
        return met(name, goal, curve(sizes, (name,))[name].values)

    sizes = np.unique(np.round(np.geomspace(FEWEST, most, SCAN)))
    good = meets(sizes)
    if not good[-1]:
        reached = float(curve(np.array([most]), (name,))[name][0])
        raise InvalidArgumentError.because(
            f"target[{name!r}]",
            f"= {shown(goal)} cannot be reached",
            f"with {MOST:g} samples per predictor it is {reached:.4g}; choose one between this and "
            "what fewer samples reach",
        )
    for _ in range(ROUNDS):
        if good.all():
            break
        last = np.flatnonzero(~good)[-1]
        if sizes[last + 1] - sizes[last] <= 1:
            break
        sizes = np.unique(np.round(np.geomspace(sizes[last], sizes[last + 1], FINER)))
        good = np.concatenate([[False], meets(sizes[1:-1]), [True]])
    return int(sizes[0] if good.all() else sizes[np.flatnonzero(~good)[-1] + 1])


def _report(
    population: Population,
    model: Model,
    *,
    penalty: float | Optimal,
    targets: dict[str, Target],
    needed: dict[str, int],
    assured: dict[str, Assured] | None,
    n: int | None,
    assurance: float | None,
) -> SampleSize:
    """What is worth knowing at the n that was found, and at the one that is at hand."""
    least = max(needed.values())
    around = np.unique(np.round(least * np.geomspace(0.25, 4.0, 9)))
    sizes = np.unique([*around[around >= FEWEST], least, *([] if n is None else [n])]).astype(int)
    names = QUANTITIES[population.outcome]
    curve = expected(population, model, sizes, penalty, names)
    ridge = None
    if penalty == 0.0:
        ridge = _ridge(population, model, least)
    r2, prevalence = population.true_r2, population.prevalence
    textbook = {}
    if population.outcome != "count":
        slope = targets.get("calibration_slope", 0.9)
        shrinkage = slope if isinstance(slope, float) else slope[0]
        textbook = textbook_criteria(
            predictors=population.predictors, r2=r2, prevalence=prevalence, shrinkage=shrinkage
        )
    return SampleSize(
        population=population,
        loss=model.loss,
        regularisation="optimal" if isinstance(penalty, Optimal) else penalty,
        targets=targets,
        n=least,
        needed=needed,
        curve=curve,
        at_hand=n,
        ridge_n=ridge,
        textbook=textbook,
        assurance=assurance,
        assured=assured,
    )


def _ridge(population: Population, model: Model, n: int) -> int:
    """The n at which ridge with the best λ predicts as well as regression without at `n`.

    The best λ hardly depends on n, and the loss depends on its square: that at `n` is used.
    """
    goal = _tuned(population, model, np.array([float(n)]), np.zeros(1))[0]
    lam = 1.0 / population.mean_square_weight  # of a Bayesian with the right prior
    for spacing in (2.0, 1.2):
        lams = lam * spacing ** np.arange(-2.0, 3.0)
        values = _tuned(population, model, np.full(5, float(n)), lams)
        at = int(np.clip(values.argmin(), 1, 3))
        low, middle, high = values[at - 1 : at + 2]
        lam = lams[at] * spacing ** (0.5 * (low - high) / (low - 2.0 * middle + high))
    sizes = np.geomspace(FEWEST, n, FINER)
    for _ in range(ROUNDS):
        worse = _tuned(population, model, sizes, np.full(FINER, lam)) > goal
        first = int(np.flatnonzero(worse)[-1]) if worse.any() else 0
        sizes = np.geomspace(sizes[first], sizes[min(first + 1, FINER - 1)], FINER)
    return math.ceil(float(sizes[-1]))


def _tuned(population: Population, model: Model, sizes: Array, lams: Array) -> Array:
    """What the best regularisation makes least, at pairs of a size and a λ."""
    name = TUNED[population.outcome]
    ds = predict(
        model,
        n_over_p=_points(sizes / population.predictors),
        regularisation=_points(lams),
        observables=[] if name == "generalisation_error" else [name],
        workers=1,
    )
    values: Array = ds[name].values
    return values


def _points(values: Array) -> xr.DataArray:
    """Values along a dimension of points."""
    import xarray as xr

    return xr.DataArray(values, dims="point")
