"""How many samples a prediction model needs to meet its targets, before there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Literal

import numpy as np

from hiddenmanifold import losses
from hiddenmanifold.api.arguments import Optimal
from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import check_count, check_number, knows_penalty
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.model import Model
from hiddenmanifold.studies.assurance import Assured, assured_size
from hiddenmanifold.studies.best_penalty import (
    FEWEST,
    bayesian_penalty,
    best_penalty,
    penalty_between,
    ridge_size,
)
from hiddenmanifold.studies.least_size import Curve, is_least, least_size
from hiddenmanifold.studies.performance import (
    Simulated,
    drawn,
    expected,
    ideal,
    may_deviate,
    seconds_of,
)
from hiddenmanifold.studies.population import Population
from hiddenmanifold.studies.sample_size_report import SampleSize
from hiddenmanifold.studies.targets import QUANTITIES, Target, checked_targets
from hiddenmanifold.studies.textbook import textbook_criteria

DRAWS = 500
"""Simulated studies of each size, unless a number is given: means are known within half a percent,
and sizes for an assurance within some percent."""
UNASKED, FEWEST_DRAWS = 3.0, 100
"""Estimated seconds on one core that studies may take unasked, and the fewest worth a look."""


@knows_penalty()
def sample_size(
    population: Population,
    *,
    target: Mapping[str, Target],
    loss: str | losses.ConvexLoss | None = None,
    regularisation: float | Literal["optimal"] = 0.0,
    assurance: float | None = None,
    n: int | None = None,
    finite_size: bool | None = None,
    draws: int | None = None,
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
        log-loss, square error or deviance at each n, which takes some seconds.
    assurance : float, optional
        The probability with which a single study is to meet each target. By default the limit
        n, p → ∞ at the ratio n/p meets it, which is a typical (median) study.
    n : int, optional
        A number of samples whose performance is to be reported besides: those that you have.
    finite_size : bool, optional
        Whether to simulate studies of the size that is found, too: the report then has the mean and
        the median of each quantity beside the limit, says where the mean deviates by more than one
        percent, and at which n it meets the target. By default if there are so few predictors that
        a target may deviate as much, no assurance is asked for, and it takes a few seconds only.
    draws : int, optional
        Simulated studies of each size, by default 500, or fewer large ones that nobody asked for:
        for an assurance of some sizes, for `finite_size` of the one that is found.
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

    needed, curve = sizes_needed(population, model, penalty, targets)
    assured = None
    how = {"seed": seed, "workers": workers, "progress": progress}
    if draws is not None:
        check_count("draws", draws, 20)
    if assurance is not None:
        assert not isinstance(penalty, Optimal)

        def fits(sizes: list[int], seeds: int) -> tuple[dict[str, Array], Booleans]:
            return drawn(population, model, sizes, penalty, tuple(targets), seeds=seeds, **how)

        assured = assured_size(fits, targets, needed, assurance, draws or DRAWS)
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
        curve=curve,
    )
    seeds = draws or DRAWS
    if finite_size is None:
        finite_size = assurance is None and may_deviate(population.predictors, targets)
        if finite_size and draws is None:
            each = seconds_of(model, report.n)
            seeds = min(DRAWS, int(UNASKED / each))
            if seeds < FEWEST_DRAWS:
                return replace(report, left_out=DRAWS * each)
    return _with_studies(report, model, seeds=seeds, **how) if finite_size else report


def sizes_needed(
    population: Population,
    model: Model,
    penalty: float | Optimal,
    targets: Mapping[str, Target],
) -> tuple[dict[str, int], Curve]:
    """Samples that each target needs in the limit, and the function that found them.

    If the best λ is sought, then at few sizes around those that a good one needs; the sizes found
    with λ between these are checked, and sought anew if that was not good enough.
    """
    p = population.predictors
    curve = partial(expected, population, model, penalty)
    if not isinstance(penalty, Optimal):
        usual = penalty == 0.0 and model.loss == population.model().loss
        best = ideal(population, tuple(targets)) if usual else None
        return {k: least_size(p, curve, k, goal, best) for k, goal in targets.items()}, curve
    good = partial(expected, population, model, bayesian_penalty(population))
    rough = [least_size(p, good, k, goal) for k, goal in targets.items()]
    between = penalty_between(population, model, 0.5 * min(rough), 2.0 * max(rough))
    near, needed = partial(expected, population, model, between), {}
    for name, goal in targets.items():
        needed[name] = least_size(p, near, name, goal)
        if not is_least(needed[name], curve, name, goal):
            needed[name] = least_size(p, curve, name, goal)
    return needed, curve


def _with_studies(report: SampleSize, model: Model, **how: Any) -> SampleSize:
    """The report with every quantity of simulated studies of the size that was found."""
    began = perf_counter()
    names = QUANTITIES[report.population.outcome]
    if model.loss != losses.Logistic():
        names = tuple(name for name in names if name != "test_loss")
    at, lam = report.curve.sel(n=report.n), report.regularisation
    lam = float(at.optimal_regularisation if lam == "optimal" else lam)
    found, separable = drawn(report.population, model, [report.n], lam, names, **how)
    simulated = {name: Simulated.of(values[0], separable[0]) for name, values in found.items()}
    return replace(report, simulated=simulated, seconds=perf_counter() - began)


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
    curve: Curve,
) -> SampleSize:
    """What is worth knowing at the n that was found, and at the one that is at hand."""
    least = max(needed.values())
    around = np.unique(np.round(least * np.geomspace(0.25, 4.0, 13)))
    sizes = np.unique([*around[around >= FEWEST], least, *([] if n is None else [n])]).astype(int)
    ridge = ridge_size(population, model, least) if penalty == 0.0 else None
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
        curve=curve(sizes, QUANTITIES[population.outcome]),
        at_hand=n,
        ridge_n=ridge,
        textbook=textbook,
        assurance=assurance,
        assured=assured,
    )
