"""Can this sample be extrapolated to more rows? Questions, each answered with a sentence.

Three refuse, the others warn: on real data nothing else told bad predictions from good ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task
from hiddenmanifold.data import validation
from hiddenmanifold.data.analysis import Analysis
from hiddenmanifold.data.misclassification import classes_of
from hiddenmanifold.errors import plural
from hiddenmanifold.notebooks import columns
from hiddenmanifold.numerics.threads import one_thread

Verdict = Literal["pass", "warn", "refuse"]
MIN_EFFECTIVE_ROWS = 0.05
"""Smallest effective number of rows, as a fraction of N, for which the fit is representative."""
REMEDIES = (
    "remove outliers, standardise columns of different scales (scale='standard'), or drop columns "
    "that are zero in almost every row",
    "remove outliers, or drop columns that are zero in almost every row",
)
"""Advice for a sample in which a few rows determine the fit, and for one with scaled columns."""
FAR = 8
"""Predictions are judged at so many times the samples at hand."""
MULTIPLES = (1, 2, 4, 8)
"""Numbers of samples, in units of those at hand, at which resolution is checked."""
EXACT = 1e-6
"""Part of the labels' variance below which what is left unexplained is no noise."""
ROWS_PER_CLASS = 25
"""Fewest rows of each of several classes that need no warning."""
SPLITS = 2
"""Times that the sample is halved at random, for the backtest."""
COLUMNS = ("question", "value", "allowed", "verdict", "meaning")


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: its value, the allowed range, the verdict and its meaning."""

    question: str
    value: float
    allowed: str
    verdict: Verdict
    meaning: str

    @classmethod
    def judged(
        cls, question: str, value: float, most: float, *, verdict: Verdict, good: str, bad: str
    ) -> Finding:
        """Compare a value with a limit; `good` and `bad` are sentences for success and failure."""
        passed = abs(value) <= most  # False for NaN
        outcome: tuple[Verdict, str] = ("pass", good) if passed else (verdict, bad)
        return cls(question, value, f"at most {most:.3g}", *outcome)


@dataclass(frozen=True)
class Diagnosis:
    """The findings about a sample; a single refusal forbids extrapolation."""

    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __getitem__(self, question: str) -> Finding:
        for finding in self.findings:
            if finding.question == question:
                return finding
        raise KeyError(question)

    @property
    def usable(self) -> bool:
        """Whether predictions at other sizes are allowed: no check refused."""
        return not self.refusals

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Findings that forbid predictions beyond the sample."""
        return tuple(f for f in self.findings if f.verdict == "refuse")

    @property
    def reasons(self) -> str:
        """The refusals in words."""
        return "; ".join(f"{f.question}: {f.meaning}" for f in self.refusals)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that call for caution."""
        return tuple(f for f in self.findings if f.verdict == "warn")

    def to_dict(self) -> dict[str, list[object]]:
        """The findings as columns, for `pandas.DataFrame`."""
        return {name: [getattr(f, name) for f in self.findings] for name in COLUMNS}

    def __str__(self) -> str:
        wide = max(len(f.question) for f in self.findings)
        lines = [
            f"{f.verdict:7} {f.question:{wide}} {f.value:9.3g}  ({f.allowed}) {f.meaning}"
            for f in self.findings
        ]
        word = "usable" if self.usable else "cannot be extrapolated beyond the sample"
        return "\n".join([*lines, f"→ {word}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(f.verdict, f.question, f.meaning) for f in self.findings]
        word = "usable" if self.usable else "cannot be extrapolated beyond the sample"
        return columns(f"Diagnosis: {word}", ("verdict", "question", "meaning"), rows)


@one_thread
def diagnose(data: Analysis) -> Diagnosis:
    """Ask all questions."""
    of_classes = (_rows_per_class,) if data.task is Task.CLASSES else ()
    return Diagnosis(tuple(ask(data) for ask in (*QUESTIONS, *of_classes)))


# Questions that refuse; their limits were set on real data.


def _leverage(data: Analysis) -> Finding:
    path = data.best_fit
    value = float(1.0 - path.generalised[0] / path.error[0]) if path.error[0] else 0.0
    return Finding.judged(
        "leverage",
        value,
        0.12,
        verdict="refuse" if value > 0 else "warn",
        good="leave-one-out and generalised cross-validation agree",
        bad=f"leave-one-out and generalised cross-validation differ by {_percent(abs(value))}: "
        "rows of high leverage have errors unlike the others', as outliers or rows of a rare kind "
        "do",
    )


def _precision(data: Analysis) -> Finding:
    n, lam = np.array([float(FAR * data.N)]), np.array([data.best_regularisation])
    exact = _unexplained(data) <= EXACT  # what is left is rounding, of any size
    value = 0.0 if exact else float(data.predicted(n, lam).deviation[1, 0])
    outcome = (
        f"the mean square error with {FAR} times the rows is known to ± {_percent(np.expm1(value))}"
    )
    return Finding.judged(
        "precision",
        value,
        0.45,
        verdict="refuse",
        good=outcome,
        bad=f"{outcome} only: a few rows make up most of it, or there are too few",
    )


def _duplicate_rows(data: Analysis) -> Finding:
    share = validation.duplicate_rows(data.X, data.y) / data.N
    refused = share >= 0.3
    return Finding.judged(
        "duplicate rows",
        share,
        0.1,
        verdict="refuse" if refused else "warn",
        good=f"{_percent(share)} of the rows repeat another one",
        bad=f"{_percent(share)} of the rows repeat another one: when one is left out its copy "
        "stays, so that leave-one-out errors are too small",
    )


# Questions that warn.


def _backtest(data: Analysis) -> Finding:
    off = _halves(data)
    if np.isnan(off):
        unlike = "halves of the sample have no features or labels that vary: few rows are different"
        return Finding("backtest", off, "at most 0.15", "warn", unlike)
    word = "above" if off > 0 else "below"
    outcome = f"predictions from half of the rows are {_percent(abs(off))} {word} the error of all"
    return Finding.judged(
        "backtest",
        off,
        0.15,
        verdict="warn",
        good=outcome,
        bad=f"{outcome}: the rows are of several kinds, or a few dominate",
    )


def _halves(data: Analysis) -> float:
    """Relative error of the prediction, from halves, of the leave-one-out error of all."""
    lam, rng = np.array([data.best_regularisation]), np.random.default_rng(1)
    orders = [rng.permutation(data.N) for _ in range(SPLITS)]
    parts = [data.part(half) for order in orders for half in np.array_split(order, 2)]
    n = np.array([float(data.N)])
    # the rest of a linear map to fewer columns: λ belongs to the features of the whole sample
    shown = [part for part in parts if part.p and np.ptp(part.y) > 0]
    if not shown:
        return np.nan
    error = data.measured(lam)[0][1, 0]
    guesses = [part.predicted(n, lam).value[1, 0] for part in shown]
    return float(np.mean(guesses) / error - 1.0) if error else 0.0


def _heavy_tails(data: Analysis) -> Finding:
    path = data.best_fit
    square = path.square[:, 0]
    value = float(square.std() / square.mean()) if square.any() else 0.0
    if data.classified:  # a rare class has large errors without any outlier
        expected = _spread_of_classes(classes_of(data.y), path.left_out[:, 0])
        value /= max(1.0, expected / np.sqrt(2.0))
    few = max(1, data.N // 100)
    share = float(np.sort(square)[-few:].sum() / square.sum()) if square.any() else 0.0
    outcome = f"{plural(few, 'row')} of {data.N} make up {_percent(share)} of the square error"
    return Finding.judged(
        "heavy tails",
        value,
        1.8,
        verdict="warn",
        good=outcome,
        bad=f"{outcome}: look at the rows with the largest residuals",
    )


def _spread_of_classes(own: Integers, error: Array) -> float:
    """Coefficient of variation of squared errors (N, columns) that are normal within classes."""
    mean, away = _around_classes(own, error)
    S = away.T @ away / len(own)
    size = np.sum(mean**2, axis=1) + np.trace(S)
    variance = 2.0 * np.sum(S**2) + 4.0 * np.sum(mean @ S * mean, axis=1)
    if not (second := float(size.mean())):
        return 0.0
    return float(np.sqrt(max(np.mean(size**2 + variance) / second**2 - 1.0, 0.0)))


def _around_classes(own: Integers, values: Array) -> tuple[Array, Array]:
    """Means of the class of each row, and the rows' deviations from them."""
    member = np.eye(int(own.max()) + 1)[own]
    mean = (member.T @ values / np.maximum(member.sum(0), 1.0)[:, None])[own]
    return mean, values - mean


def _effective_rows(data: Analysis) -> Finding:
    path = data.best_fit
    odds = path.leverage[:, 0] / path.free[:, 0]
    share = float(odds.mean() ** 2 / np.mean(odds**2))
    good = share >= MIN_EFFECTIVE_ROWS
    outcome = f"the fit depends on the rows as on {round(share * data.N)} of equal weight"
    remedy = REMEDIES[getattr(data, "scale", None) is not None]
    return Finding(
        "effective rows",
        share,
        f"at least {MIN_EFFECTIVE_ROWS}",
        "pass" if good else "warn",
        outcome if good else f"{outcome}, of {data.N}: {remedy}",
    )


def _order_of_rows(data: Analysis) -> Finding:
    error = data.best_fit.left_out[:, 0]
    if _sorted_by_class(data):
        error = _around_classes(classes_of(data.y), error)[1]
    error = _without_outliers(error)
    second = error.T @ error
    total = float(np.trace(second))
    correlation = float(np.sum(error[1:] * error[:-1])) / total if total else 0.0
    if _sorted_by_class(data):  # deviations from a mean of few rows repel each other
        correlation = max(correlation, 0.0)
    columns = total**2 / float(np.sum(second**2)) if total else 1.0  # as many of one variance
    outcome = f"errors of neighbouring rows have correlation {correlation:.2f}"
    return Finding.judged(
        "order of rows",
        correlation * np.sqrt(data.N * columns),
        4.0,
        verdict="warn",
        good=outcome,
        bad=f"{outcome}: the rows follow time or come in groups, and new times or groups may be "
        "harder than predicted",
    )


def _without_outliers(error: Array) -> Array:
    """Errors (N, columns) of at most three times the median size.

    Two large ones in neighbouring rows would make a correlation of their own.
    """
    away = error - np.median(error, axis=0)
    size = np.sqrt(np.sum(away**2, axis=1))
    if most := 3.0 * float(np.median(size)):
        away = away * (most / np.maximum(size, most))[:, None]
    centred: Array = away - away.mean(0)
    return centred


def _sorted_by_class(data: Analysis) -> bool:
    """Whether rows may be sorted by class, which is harmless; two classes are seen to be."""
    if data.task is Task.CLASSIFICATION:
        return int(np.count_nonzero(np.diff(data.y))) <= 2
    return data.task is Task.CLASSES


def _resolution(data: Analysis) -> Finding:
    lam = np.array([data.best_regularisation])
    resolved = [bool(data.predicted(m * data.N, lam).resolved[0]) for m in MULTIPLES]
    reach = MULTIPLES[sum(np.cumprod(resolved)) - 1] if resolved[0] else 1
    return Finding(
        "resolution",
        float(reach),
        "at least 4",
        "pass" if reach >= 4 else "warn",
        f"the spectrum that matters is resolved up to {reach} times the rows"
        if reach >= 4
        else f"the spectrum that matters is resolved up to {reach} times the rows only: beyond, "
        "the error may fall further than predicted",
    )


def _exact_relation(data: Analysis) -> Finding:
    left = _unexplained(data)
    good = left > EXACT
    return Finding(
        "exact relation",
        left,
        f"above {EXACT:g}",
        "pass" if good else "warn",
        "the labels are not an exact function of the features"
        if good
        else f"all but {left:.1g} of the labels' variance is a linear function of the features: a "
        "column may hold the label under another name",
    )


def _unexplained(data: Analysis) -> float:
    """The part of the labels' variance that is left, by leave-one-out."""
    return float(data.best_fit.error[0]) / data.ridge.variance


def _signal(data: Analysis) -> Finding:
    path = data.best_fit
    # the mean of the others
    alone = np.sum(data.ridge.Y**2, axis=1) * (data.N / (data.N - 1.0)) ** 2
    gain = alone - path.square[:, 0]
    share = float(gain.mean() / alone.mean())
    noise = float(gain.std()) / np.sqrt(data.N) / float(alone.mean())
    sure = share > 2.0 * noise
    outcome = f"the features explain {_percent(max(share, 0.0))} of the labels' variance"
    return Finding(
        "signal",
        share,
        "above 0 by 2 standard errors",
        "pass" if sure else "warn",
        outcome if sure else f"{outcome}, ± {_percent(noise)}: there may be nothing to learn",
    )


def _rows_per_class(data: Analysis) -> Finding:
    rare = int(data.rows_of_classes.min())
    good = rare >= ROWS_PER_CLASS
    outcome = f"the rarest class has {plural(rare, 'row')}"
    return Finding(
        "rows per class",
        float(rare),
        f"at least {ROWS_PER_CLASS}",
        "pass" if good else "warn",
        outcome
        if good
        else f"{outcome}, and {_rare_classes(data)} have fewer than {ROWS_PER_CLASS}: how often "
        "such classes are predicted wrongly is known roughly at best",
    )


def _rare_classes(data: Analysis) -> str:
    few = int((data.rows_of_classes < ROWS_PER_CLASS).sum())
    return f"{few} of {len(data.rows_of_classes)} classes"


def _percent(share: float) -> str:
    """A share to a whole per cent, or to its first digit if it is less."""
    return f"{100 * share:.1g} %" if abs(share) < 0.0095 else f"{100 * share:.0f} %"


QUESTIONS: tuple[Callable[[Analysis], Finding], ...] = (
    _leverage,
    _precision,
    _duplicate_rows,
    _backtest,
    _heavy_tails,
    _effective_rows,
    _order_of_rows,
    _resolution,
    _exact_relation,
    _signal,
)
