"""Can this sample be extrapolated to more rows? Ten checks, each with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.data import validation
from hiddenmanifold.data.analysis import REMEDY, Analysis
from hiddenmanifold.numerics.threads import one_thread

Verdict = Literal["pass", "warn", "refuse"]
MIN_EFFECTIVE_ROWS = 0.05
"""Smallest effective number of rows, as a fraction of N, for which the fit is representative."""
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


@one_thread
def diagnose(data: Analysis) -> Diagnosis:
    """Run all checks; if no spectrum can be estimated, only the check that explains why."""
    readable = data.ridge.whole_path.trusted.any()
    return Diagnosis(tuple(ask(data) for ask in (QUESTIONS if readable else (_effective_rows,))))


# The checks of a diagnosis; the limits of those that refuse were set on real data.


def _backtest(data: Analysis) -> Finding:
    return Finding.judged(
        "backtest",
        data.backtest,
        0.15,
        verdict="refuse",
        good="predictions from half of the sample agree with the error of the whole sample",
        bad="predictions from half of the sample disagree with the error of the whole sample: the "
        "rows are heterogeneous, or a few of them dominate",
    )


def _heavy_tails(data: Analysis) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    left_out = path.left_out[:, 0]
    square = left_out**2
    value = float(square.std() / square.mean()) if square.any() else 0.0
    if data.task is Task.CLASSIFICATION:  # a rare class has large errors without any outlier
        value /= max(1.0, _spread_of_classes(data.y, left_out) / np.sqrt(2.0))
    return Finding.judged(
        "heavy tails",
        value,
        1.8,
        verdict="refuse",
        good="squared errors vary about as much as those of normal residuals (1.41)",
        bad="a few rows make up much of the error (normal residuals have 1.41): inspect the rows "
        "with the largest residuals",
    )


def _spread_of_classes(y: Array, error: Array) -> float:
    """Coefficient of variation of squared errors that are normal within each class."""
    parts = [error[y == label] for label in (-1.0, 1.0)]
    share = np.array([len(part) for part in parts]) / len(y)
    mean = np.array([part.mean() for part in parts]) ** 2
    spread = share @ np.array([part.var() for part in parts])
    second = share @ (mean + spread)
    fourth = share @ (mean**2 + 6.0 * mean * spread + 3.0 * spread**2)
    return float(np.sqrt(max(fourth / second**2 - 1.0, 0.0))) if second else 0.0


def _leverage(data: Analysis) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    return Finding.judged(
        "leverage",
        float(1.0 - path.generalised[0] / path.error[0]) if path.error[0] else 0.0,
        0.12,
        verdict="refuse",
        good="leave-one-out and generalised cross-validation agree",
        bad="rows of high leverage have large errors: they are outliers, or there are too few rows "
        "like them",
    )


def _effective_rows(data: Analysis) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    share = float(path.even[0]) if path.D2[0] > 0 else 0.0
    good = share >= MIN_EFFECTIVE_ROWS and data.ridge.whole_path.trusted.any()
    return Finding(
        "effective rows",
        share,
        f"at least {MIN_EFFECTIVE_ROWS}",
        "pass" if good else "refuse",
        "many rows contribute to the fit" if good else f"a few rows determine the fit: {REMEDY}",
    )


def _duplicate_rows(data: Analysis) -> Finding:
    found = validation.duplicate_rows(data.X, data.y)
    return Finding.judged(
        "duplicate rows",
        found,
        max(3, data.N // 100),
        verdict="refuse",
        good="few rows are duplicates",
        bad="some rows are duplicates: when one is left out its copy stays in the training set, "
        "and leave-one-out errors are too small",
    )


def _leverage_correction(data: Analysis) -> Finding:
    point = data.forecast.at(4 * data.N, np.array([data.best_regularisation]))
    return Finding.judged(
        "leverage correction",
        float(2.0 * point.halved[1, 0] / point.value[1, 0]) if point.value[1, 0] else 0.0,
        0.10,
        verdict="warn",
        good="correcting for unequal leverage changes the prediction at 4N little",
        bad="correcting for unequal leverage changes the prediction at 4N; the error bars include "
        "the difference",
    )


def _training_loss(data: Analysis) -> Finding:
    lam = np.array([data.best_regularisation])
    fitted = data.measured(lam)[0][2, 0]
    return Finding.judged(
        "training loss",
        float(data.forecast.at(data.N, lam).value[2, 0] / fitted - 1.0) if fitted else 0.0,
        0.10,
        verdict="warn",
        good="the training loss agrees with the prediction",
        bad="the training loss disagrees with the prediction: the features are far from Gaussian",
    )


def _spectral_tail(data: Analysis) -> Finding:
    point = data.forecast.at(4 * data.N, np.array([data.best_regularisation]))
    return Finding.judged(
        "spectral tail",
        float(data.forecast.plain.resolved / point.kappa[0]),
        1.0 + 1e-9,
        verdict="warn",
        good="the spectrum that matters at 4N is resolved by this sample",
        bad="the spectrum that matters at 4N is not resolved by this sample: predictions there "
        "assume a power-law tail",
    )


def _signal(data: Analysis) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    alone = path.y**2 * (data.N / (data.N - 1.0)) ** 2  # the mean of the others as prediction
    gain = alone - path.left_out[:, 0] ** 2
    share = float(gain.mean() / alone.mean())
    sure = float(gain.mean()) > 2.0 * float(gain.std()) / np.sqrt(data.N)
    return Finding(
        "signal",
        share,
        "above 0 by 2 standard errors",
        "pass" if sure else "warn",
        f"the features explain {100 * max(share, 0):.0f} % of the labels' variance"
        if sure
        else "the features do not explain a significant part of the labels' variance",
    )


def _misclassification(data: Analysis) -> Finding:
    lam = np.array([data.best_regularisation])
    if data.task is Task.REGRESSION:
        return Finding(
            "misclassification", 0.0, "classification only", "pass", "not applicable to regression"
        )
    wrong, expected = data.measured(lam)[0][0, 0], data.forecast.at(data.N, lam).value[0, 0]
    return Finding.judged(
        "misclassification",
        float((wrong - expected) / np.sqrt(max(expected * (1.0 - expected), 1e-9) / data.N)),
        2.0,
        verdict="warn",
        good="the leave-one-out misclassification rate agrees with the prediction",
        bad="the leave-one-out misclassification rate is more than 2 standard errors from the "
        "prediction: treat predicted misclassification rates with caution",
    )


QUESTIONS: tuple[Callable[[Analysis], Finding], ...] = (
    _backtest,
    _heavy_tails,
    _leverage,
    _effective_rows,
    _duplicate_rows,
    _spectral_tail,
    _leverage_correction,
    _training_loss,
    _misclassification,
    _signal,
)
