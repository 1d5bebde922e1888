"""How many samples a target needs, and whether samples or features limit a task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import PENALTIES, Task, check_number, knows_penalty
from hiddenmanifold.data.learning_curve import ENDS, learning_curve
from hiddenmanifold.data.sample import Data
from hiddenmanifold.data.target_plan import TargetPlan, target_plan
from hiddenmanifold.errors import InvalidArgumentError, UnusableDataError
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.notebooks import columns
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.results.schema import ERROR_MEASURES
from hiddenmanifold.studies.targets import Target

if TYPE_CHECKING:
    import xarray as xr

CHOSEN = "a plan is for the λ that leave-one-out selects; learning_curve takes regularisation="
REACH = np.geomspace(0.25, 1024.0, 17)
"""Numbers of samples among which a target is sought, in units of those at hand."""
WORTHWHILE = 0.1
"""A task is limited by samples if 8 times as many would lower its error by this part."""


@dataclass(frozen=True)
class SamplePlan:
    """The effect of more samples, see `plan`.

    Attributes
    ----------
    curve : xarray.Dataset
        The learning curve at 1, 2, 4 and 8 times the samples at hand.
    n, n_low, n_high : float
        Samples that the target needs, and the interval of one standard deviation; inf where the
        curve does not come down to it, and N/4 where this many or fewer do.
    regularisation : float
        The λ of least leave-one-out loss, which hardly depends on n.
    limited_by : {"samples", "features"}
        The resource of which more would lower the error; "features" includes noise, which
        nothing lowers.
    sentence : str
        A summary in words.
    """

    curve: xr.Dataset
    n: float
    n_low: float
    n_high: float
    regularisation: float
    limited_by: Literal["samples", "features"]
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    __repr__ = __str__

    def _repr_html_(self) -> str:
        ends = (self.curve[f"generalisation_error{end}"].values for end in ENDS)
        rows = [
            (f"{n:.0f}", _digits(mean), f"{_digits(low)} to {_digits(high)}")
            for n, mean, low, high in zip(self.curve["n"].values, *ends, strict=True)
        ]
        names = (
            "samples",
            ERROR_MEASURES[Task(self.curve.attrs["task"])],
            "± one standard deviation",
        )
        return columns("Plan", names, rows, self.sentence)


@knows_penalty(CHOSEN, (*PENALTIES, "regularisation"))
@one_thread
def plan(
    data: Data,
    *,
    target_error: float | None = None,
    target_gain: float | None = None,
    target: Mapping[str, Target] | None = None,
    assurance: float | None = None,
    loss: str | ConvexLoss = "square",
    on_refusal: Literal["raise", "keep"] = "raise",
) -> SamplePlan | TargetPlan:
    """Predict the effect of 2, 4 and 8 times the samples, and how many a target needs.

    Parameters
    ----------
    data : Data
        The sample at hand.
    target_error : float
        The error to reach: mean square for regression, misclassification for classes.
    target_gain : float
        Instead, the part between 0 and 1 by which it is to fall below that at hand. Much of the
        uncertainty is shared by both errors, so that this is better known.
    target : mapping
        Instead, targets of regression without a penalty, as in `sample_size`:
        ``{"calibration_slope": 0.9, "auc": 0.8}``. The regression is logistic for two classes, and
        linear for numbers. The strength of the signal is that for which the theory predicts the
        left-out AUC, or R², of the sample; features are taken to be normal.
    assurance : float, optional
        With `target`: the probability with which a single study meets each target, as in
        `sample_size`.
    loss, on_refusal
        As in `learning_curve`.

    Returns
    -------
    SamplePlan or TargetPlan
        Numbers of samples and a sentence; with `target`, the report of `sample_size`, too.

    Raises
    ------
    UnusableDataError
        If the diagnosis refuses predictions beyond the sample, or the sample has no regression
        without a penalty.
    InvalidArgumentError
        Unless exactly one target is given, and makes sense.
    """
    if not isinstance(data, Data):
        raise InvalidArgumentError("data", data, "a hiddenmanifold.Data")
    _check_one(target_error, target_gain, target)
    if target is not None:
        _check_of_targets(data, loss, on_refusal)
        return target_plan(data, target, assurance=assurance)
    if assurance is not None:
        raise InvalidArgumentError.because("assurance", "needs target=", "give target={…}, too")
    goal, relative = goal_of(data, target_error, target_gain)
    loss = data.accepted(loss)
    lam = data.best_for(loss)
    sizes = [m * data.N for m in (1, 2, 4, 8)]
    curve = learning_curve(data, n=sizes, regularisation=lam, loss=loss, on_refusal=on_refusal)
    n, low, high = needed(data, lam, loss, goal, relative=relative)
    limited, none = limiting(data, lam, loss), bool(faultless(curve))
    words = [faultless(curve) or _outlook(data, curve)]
    words += [answer(data.N, (n, low, high), goal, relative=relative)] * (not (relative and none))
    words += [f"Leave-one-out selects the regularisation λ = {lam:.3g}."]
    words += [] if none else [LIMITS[limited].format(fell(curve, -1))]
    return SamplePlan(curve, n, low, high, lam, limited, " ".join(words))


def _check_one(*given: object) -> None:
    """Raise unless exactly one target is given."""
    if sum(one is not None for one in given) != 1:
        raise InvalidArgumentError.because(
            "target_error, target_gain and target",
            "are all missing" if not any(one is not None for one in given) else "are several",
            "give exactly one of them",
        )


def _check_of_targets(data: Data, loss: str | ConvexLoss, on_refusal: str) -> None:
    """Raise unless targets of regression without a penalty can be planned."""
    if loss not in ("square", {Task.CLASSIFICATION: "logistic"}.get(data.task)):
        raise InvalidArgumentError.because(
            "loss",
            "cannot be chosen with target=",
            "leave it out: the regression is logistic for two classes, and linear for numbers",
        )
    if on_refusal not in ("raise", "keep"):
        raise InvalidArgumentError("on_refusal", on_refusal, "'raise' or 'keep'")
    if on_refusal == "raise" and not data.usable:
        raise UnusableDataError(
            f"{data!r} does not allow predictions beyond the sample: {data.diagnosis.reasons}. "
            "on_refusal='keep' gives them all the same"
        )


def goal_of(data: Data, error: float | None, gain: float | None) -> tuple[float, bool]:
    """The goal, and whether it is a part of the error at hand; raise unless it makes sense."""
    _check_one(error, gain)
    if error is not None:
        check_number("target_error", error, 0.0, open_low=True)
        if data.classes and error >= 1.0:
            raise InvalidArgumentError.because(
                "target_error",
                f"= {error:g} is no misclassification rate",
                "give a number below 1, as 0.1 for 10 %",
            )
        return float(error), False
    check_number("target_gain", gain, 0.0, 1.0, open_low=True)
    return 1.0 - float(gain or 0.0), True


def needed(
    data: Data, lam: float, loss: ConvexLoss, goal: float, *, relative: bool
) -> tuple[float, float, float]:
    """Samples at which the prediction, and its lower and upper ends, come down to the goal."""
    from scipy import interpolate

    sizes = np.maximum(REACH * data.N, 3.0)
    found = data.predicted(sizes, np.full(len(sizes), lam), loss=loss)
    ends = found.interval("generalisation_error", fall=relative)
    fine = np.geomspace(sizes[0], sizes[-1], 1000)
    smooth = interpolate.PchipInterpolator(np.log(sizes), np.array(ends), axis=1)
    n, low, high = (crossing(fine, end, goal) for end in smooth(np.log(fine)))
    return n, min(n, low), max(n, high)


def crossing(sizes: Array, values: Array, goal: float) -> float:
    """The first size from which on values are at most the goal, between sizes by logarithms."""
    above = np.flatnonzero(values > goal)
    last = above[-1] if above.size else -1
    if last == len(sizes) - 1:
        return math.inf
    if last < 0:
        return float(sizes[0])
    pair = slice(last, last + 2)
    return float(np.exp(np.interp(-goal, -values[pair], np.log(sizes[pair]))))


def limiting(data: Data, lam: float, loss: ConvexLoss) -> Literal["samples", "features"]:
    """The resource of which more would lower the error."""
    far = data.predicted(8.0 * data.N, np.array([lam]), loss=loss)
    if data.random_features:
        wider = data.predicted(float(data.N), np.array([lam]), 8.0 * data.p, loss=loss)
        if wider.value[0, 0] < far.value[0, 0]:
            return "features"
    return "samples" if far.fall[0, 0] < 1.0 - WORTHWHILE else "features"


LIMITS = {
    "samples": "The number of samples limits this task: with 8N the error {}.",
    "features": "The features or noise limit this task: with 8N samples the error {}.",
}


def faultless(curve: xr.Dataset) -> str:
    """What a sample shows if none of its rows, left out, is predicted wrongly; else nothing."""
    N, name = int(curve.attrs["N"]), "generalisation_error"
    if Task(curve.attrs["task"]) is Task.REGRESSION or float(curve[f"{name}_leave_one_out"]):
        return ""
    return (
        f"None of the {N} rows is predicted wrongly when it is left out: the misclassification "
        f"rate is below about {_digits(3 / N)}, and the sample does not show how it falls."
    )


def fell(curve: xr.Dataset, i: int) -> str:
    """By how much the error changes from N samples on, as part of a sentence."""
    change, bar = _change(curve, i)
    part = _part(abs(change), bar)
    way = "changes" if not float(part) else "rises" if change > 0 else "falls"
    return f"{way} by {part} ± {_part(bar, bar)} %"


def changed(curve: xr.Dataset, i: int) -> str:
    """The same as a number with its sign."""
    change, bar = _change(curve, i)
    part = _part(abs(change), bar)
    sign = "" if not float(part) else "−" if change < 0 else "+"
    return f"{sign}{part} ± {_part(bar, bar)} %"


def _change(curve: xr.Dataset, i: int) -> tuple[float, float]:
    """By how many per cent the error changes from N samples on, and the bar of this."""
    fall, low, high = (float(curve[f"generalisation_error_fall{e}"][i]) for e in ENDS)
    return 100 * (fall - 1.0), 50 * (high - low)


def _part(value: float, bar: float) -> str:
    """Per cents to the first digit of the bar, and to the fourth at most."""
    digits = min(max(-math.floor(math.log10(bar)), 0), 4) if 0 < bar < math.inf else 2
    return f"{value:.{digits}f}"


def _outlook(data: Data, curve: xr.Dataset) -> str:
    kind = "mean square error" if data.task is Task.REGRESSION else "misclassification rate"
    columns = ([_digits(v) for v in curve[f"generalisation_error{end}"].values] for end in ENDS)
    now, *_ = (f"{mean} ({low} to {high})" for mean, low, high in zip(*columns, strict=True))
    means = [_digits(value) for value in curve.generalisation_error.values]
    times = "; ".join(
        f"with {m}N it {fell(curve, i)}, to {means[i]}" for i, m in ((1, 2), (2, 4), (3, 8))
    )
    guess = ""
    if data.classes:  # what a rare class makes look good
        largest, error = data.most_frequent
        guess = f"; always predicting {largest} gives {_digits(error)}"
    return f"The {kind} is {now} with the N = {data.N} samples given{guess}; {times}."


def answer(N: int, ends: tuple[float, float, float], goal: float, *, relative: bool) -> str:
    """How many samples a goal needs, with its interval, as a sentence."""
    n, low, high = ends
    aim = f"An error lower by {100 * (1 - goal):.3g} %" if relative else f"An error of {goal:.4g}"
    if math.isinf(low):
        return f"{aim} cannot be reached with more samples alone."
    if math.isinf(n):
        return f"{aim} needs at least {_count(low)} samples and may be out of reach."
    if math.isinf(high):
        return (
            f"{aim} needs at least {_count(low)} samples, most likely about {_count(n)}; "
            "the upper end is not determined."
        )
    if n <= REACH[0] * N:
        return f"{aim} needs at most {_count(high)} samples."
    return f"{aim} needs about {_count(n)} samples ({_count(low)} to {_count(high)})."


def _digits(error: float) -> str:
    """An error to three digits, of which its interval leaves one or two."""
    return f"{float(f'{error:.3g}'):g}"


def _count(n: float) -> str:
    """A number of samples to two digits, as whole number."""
    digits = max(0, int(math.floor(math.log10(n))) - 1)
    return f"{int(round(n, -digits))}"
