"""How many samples like those at hand meet targets of prediction models, as calibration slopes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiddenmanifold.checks import Task
from hiddenmanifold.data.sample import Data
from hiddenmanifold.data.signal import (
    LEAST_AUC,
    MEASURED,
    MOST_AUCS,
    Signal,
    population_of,
    predictors,
    signal_of,
)
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.notebooks import columns
from hiddenmanifold.studies.population import Population
from hiddenmanifold.studies.sample_size import sample_size, sizes_needed
from hiddenmanifold.studies.sample_size_report import WORDS, SampleSize, goal_in_words, with_article
from hiddenmanifold.studies.targets import Target, checked_targets

R2S = 1e-4, 0.99999
"""Least and largest R² of a population whose sizes are sought."""
Interval = tuple[float, float, float]


@dataclass(frozen=True)
class TargetPlan:
    """How many samples meet targets of regression without a penalty, see `plan`.

    Attributes
    ----------
    n, n_low, n_high : float
        Samples that meet every target, and the interval of one standard deviation; inf where a
        target is out of reach.
    needed : dict
        The same three numbers of each target.
    signal : Signal
        The left-out AUC or R² of the sample, and what it says of the true model.
    population : Population
        The one of which the sample seems to be drawn.
    report : SampleSize, optional
        What `sample_size` answers for that population, with the performance at the number of
        samples at hand; None if it cannot reach the targets. Its outcome, if it is continuous, has
        the variance one.
    sentence : str
        A summary in words.
    """

    n: float
    n_low: float
    n_high: float
    needed: Mapping[str, Interval]
    signal: Signal
    population: Population
    report: SampleSize | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (WORDS[name], *("∞" if math.isinf(end) else _count(end) for end in ends))
            for name, ends in self.needed.items()
        ]
        return columns("Plan", ("target", "n", "from", "to"), rows, self.sentence)


def target_plan(
    data: Data, target: Mapping[str, Target], *, assurance: float | None = None, **how: Any
) -> TargetPlan:
    """The plan for targets of `sample_size`, by the signal that the sample shows.

    Further arguments are those of `sample_size`.
    """
    outcome = "continuous" if data.task is Task.REGRESSION else "binary"
    given = checked_targets(outcome, target)
    goals = {name: _in_units(goal, 1.0 / _unit(data, name)) for name, goal in given.items()}
    signal = signal_of(data)
    population = population_of(data, signal.true)
    needed = {name: _needed(data, signal, name, goal) for name, goal in goals.items()}
    report = None
    if all(math.isfinite(n) for n, _, _ in needed.values()):
        report = sample_size(population, target=goals, n=data.N, assurance=assurance, **how)
        for name, (n, low, high) in needed.items():  # the intervals are those of the limit
            found = float(report.needed[name])
            needed[name] = found, low * found / n, high * found / n
    n, low, high = (max(ends) for ends in zip(*needed.values(), strict=True))
    words = [_shown(data, signal), *(_answer(k, given[k], needed[k], assurance) for k in goals)]
    words += [] if report is None else [_at_hand(data, report)]
    return TargetPlan(n, low, high, needed, signal, population, report, " ".join(words))


def _unit(data: Data, name: str) -> float:
    """The unit of a quantity: a population's outcome has the variance one."""
    return float(data.y.var(ddof=1)) if name == "generalisation_error" else 1.0


def _in_units(goal: Target, unit: float) -> Target:
    return (goal[0] * unit, goal[1] * unit) if isinstance(goal, tuple) else goal * unit


def _needed(data: Data, signal: Signal, name: str, goal: Target) -> Interval:
    """Samples for a target, and those with less and with more signal or events."""
    n = _size(data, signal.true, name, goal)
    ends = [_size(data, end, name, goal) for end in (signal.low, signal.high)]
    low, high = min(n, *ends), max(n, *ends)
    if data.task is Task.CLASSIFICATION and math.isfinite(n):
        # n is in proportion to the rarer class, whose share is known this well
        rare = math.sqrt((1.0 - data.rows_of_classes.min() / data.N) / data.rows_of_classes.min())
        low = n * math.exp(-math.hypot(math.log(n / low), rare))
        high = n * math.exp(math.hypot(math.log(high / n), rare)) if math.isfinite(high) else high
    return float(n), float(low), float(high)


def _size(data: Data, strength: float, name: str, goal: Target) -> float:
    """Samples for a target at a strength of the signal; inf if it is out of reach."""
    ends = R2S if data.task is Task.REGRESSION else (LEAST_AUC, MOST_AUCS[0])
    population = population_of(data, float(np.clip(np.nan_to_num(strength, nan=1.0), *ends)))
    try:
        found, _ = sizes_needed(population, population.model(), 0.0, {name: goal})
    except InvalidArgumentError:
        return math.inf
    return float(found[name])


def _shown(data: Data, signal: Signal) -> str:
    """What was measured, and what it says of the true model."""
    ends = [f"{end:.3g}" for end in (signal.low, signal.high) if not math.isnan(end)]
    return (
        f"{'Logistic' if signal.name == 'auc' else 'Linear'} regression without a penalty has an "
        f"{MEASURED[signal.name]} of {signal.measured:.3g} ± {signal.stderr:.1g} for rows left out "
        f"of the N = {data.N} samples of {predictors(data)} features given, as if the true model "
        f"had {signal.true:.3g} ({' to '.join(ends) if len(ends) == 2 else f'at least {ends[0]}'})."
    )


def _answer(name: str, goal: Target, needed: Interval, assurance: float | None) -> str:
    """How many samples a target needs, as a sentence."""
    n, low, high = needed
    aim = with_article(goal_in_words(name, goal))
    aim = f"{aim[0].upper()}{aim[1:]}"
    if assurance is not None:
        aim += f" with probability {assurance:g}"
    if math.isinf(low):
        return f"{aim} is out of reach with more samples alone."
    if math.isinf(n):
        return f"{aim} needs at least {_count(low)} samples and may be out of reach."
    if math.isinf(high):
        return f"{aim} needs about {_count(n)} samples, and at least {_count(low)}."
    return f"{aim} needs about {_count(n)} samples ({_count(low)} to {_count(high)})."


def _at_hand(data: Data, report: SampleSize) -> str:
    """What a typical sample of this size reaches."""
    at = report.curve.sel(n=data.N)
    values = {name: float(at[name]) * _unit(data, name) for name in report.targets}
    told = (f"{with_article(WORDS[k])} of {float(f'{v:.3g}'):g}" for k, v in values.items())
    return f"A typical sample of {data.N} reaches {' and '.join(told)}."


def _count(n: float) -> str:
    """A number of samples to two digits."""
    return f"{float(f'{n:.2g}'):.0f}"
