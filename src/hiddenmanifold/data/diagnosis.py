"""Whether a sample can be trusted to speak for more of its kind, each reason in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.data import validation
from hiddenmanifold.numerics.threads import one_thread

if TYPE_CHECKING:
    from hiddenmanifold.data.sample import Data

Verdict = Literal["pass", "warn", "refuse"]
FEWEST_CARRIERS = 0.05
"""Least part of the rows that must carry a fit, for others to be like it."""
DECIDED = (
    "no few rows decide the fit: look for outliers, columns of quite different scales "
    "(scale='standard'), or columns that are zero but for a few rows"
)
COLUMNS = ("question", "value", "allowed", "verdict", "meaning")


@dataclass(frozen=True)
class Finding:
    """One row: what was asked, its value, what is allowed, the verdict, and what it means."""

    question: str
    value: float
    allowed: str
    verdict: Verdict
    meaning: str

    @classmethod
    def judged(
        cls, question: str, value: float, most: float, verdict: Verdict, meanings: tuple[str, str]
    ) -> Finding:
        """A value that should be at most so much, and what it means if it is and if it is not."""
        good = abs(value) <= most  # NaN is not
        return cls(
            question, value, f"at most {most:.3g}", "pass" if good else verdict, meanings[not good]
        )


@dataclass(frozen=True)
class Diagnosis:
    """The findings about a sample; a refusal among them says not to extrapolate."""

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
        """Whether nothing speaks against predictions for other sizes."""
        return not self.refusals

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """What speaks against."""
        return tuple(f for f in self.findings if f.verdict == "refuse")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What calls for care."""
        return tuple(f for f in self.findings if f.verdict == "warn")

    def to_dict(self) -> dict[str, list[object]]:
        """Columns of the table, as `pandas.DataFrame` takes them."""
        return {name: [getattr(f, name) for f in self.findings] for name in COLUMNS}

    def __str__(self) -> str:
        wide = max(len(f.question) for f in self.findings)
        lines = [
            f"{f.verdict:7} {f.question:{wide}} {f.value:9.3g}  ({f.allowed}) {f.meaning}"
            for f in self.findings
        ]
        word = "usable" if self.usable else "not usable beyond the sample"
        return "\n".join([*lines, f"→ {word}"])

    __repr__ = __str__


@one_thread
def diagnose(data: Data) -> Diagnosis:
    """Ask all questions; if the spectrum cannot be read, only the one that says so."""
    readable = data.ridge.whole_path.trusted.any()
    return Diagnosis(tuple(ask(data) for ask in (QUESTIONS if readable else (_carriers,))))


# the questions of a diagnosis; those that refuse had their limits set on real data


def _backtest(data: Data) -> Finding:
    return Finding.judged(
        "backtest",
        data.backtest,
        0.15,
        "refuse",
        (
            "half of the sample predicts the error of the whole",
            "half of the sample does not predict the error of the whole: rows are unlike one "
            "another, or few of them decide",
        ),
    )


def _heavy_tails(data: Data) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    left_out = path.left_out[:, 0]
    square = left_out**2
    value = float(square.std() / square.mean()) if square.any() else 0.0
    if data.classes:  # the errors of a rare class are large, by no fault of any row
        value /= max(1.0, _spread_of_classes(data.y, left_out) / np.sqrt(2.0))
    return Finding.judged(
        "heavy tails",
        value,
        1.8,
        "refuse",
        (
            "squared errors spread about as those of a normal law do (1.41)",
            "a few rows make much of the error (a normal law has 1.41): look at the largest",
        ),
    )


def _spread_of_classes(y: Array, error: Array) -> float:
    """Deviation of squared errors over their mean, if they were normal within classes."""
    parts = [error[y == label] for label in (-1.0, 1.0)]
    share = np.array([len(part) for part in parts]) / len(y)
    mean = np.array([part.mean() for part in parts]) ** 2
    spread = share @ np.array([part.var() for part in parts])
    second = share @ (mean + spread)
    fourth = share @ (mean**2 + 6.0 * mean * spread + 3.0 * spread**2)
    return float(np.sqrt(max(fourth / second**2 - 1.0, 0.0))) if second else 0.0


def _unequal_rows(data: Data) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    return Finding.judged(
        "unequal rows",
        float(1.0 - path.generalised[0] / path.error[0]) if path.error[0] else 0.0,
        0.12,
        "refuse",
        (
            "rows have about the same influence on the fit",
            "rows of large influence have large errors: outliers, or too few of a kind",
        ),
    )


def _carriers(data: Data) -> Finding:
    path = data.ridge.path(np.array([data.best_regularisation]))
    share = float(path.even[0]) if path.D2[0] > 0 else 0.0
    good = share >= FEWEST_CARRIERS and data.ridge.whole_path.trusted.any()
    return Finding(
        "carriers",
        share,
        f"at least {FEWEST_CARRIERS}",
        "pass" if good else "refuse",
        "many rows carry the fit" if good else f"it should be so that {DECIDED}",
    )


def _copies(data: Data) -> Finding:
    found = validation.copies(data.X, data.y)
    return Finding.judged(
        "copies",
        found,
        max(3, data.N // 100),
        "refuse",
        (
            "hardly a row is there twice",
            "rows are there more than once: left out, their copies still tell the answer, and "
            "errors look too small",
        ),
    )


def _readings(data: Data) -> Finding:
    point = data.forecast.at(4 * data.N, np.array([data.best_regularisation]))
    return Finding.judged(
        "two readings",
        float(2.0 * point.halved[1, 0] / point.value[1, 0]) if point.value[1, 0] else 0.0,
        0.10,
        "warn",
        (
            "taking rows for equal or not makes little difference at 4N",
            "taking rows for equal or not makes a difference at 4N, which is in the error bars",
        ),
    )


def _training_loss(data: Data) -> Finding:
    lam = np.array([data.best_regularisation])
    fitted = data.measured(lam)[0][2, 0]
    return Finding.judged(
        "training loss",
        float(data.forecast.at(data.N, lam).value[2, 0] / fitted - 1.0) if fitted else 0.0,
        0.10,
        "warn",
        (
            "the loss of the fit is the predicted one",
            "the loss of the fit is not the predicted one: features are unlike Gaussian ones",
        ),
    )


def _tail(data: Data) -> Finding:
    point = data.forecast.at(4 * data.N, np.array([data.best_regularisation]))
    return Finding.judged(
        "tail",
        float(data.forecast.plain.resolved / point.kappa[0]),
        1.0 + 1e-9,
        "warn",
        (
            "what counts at 4N shows in this sample",
            "what counts at 4N is too faint for this sample: it rests on an assumed tail",
        ),
    )


def _signal(data: Data) -> Finding:
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
        else "the features do not surely explain anything of the labels",
    )


def _misclassified(data: Data) -> Finding:
    lam = np.array([data.best_regularisation])
    if data.task is Task.REGRESSION:
        return Finding("misclassified", 0.0, "classes only", "pass", "labels are no classes")
    wrong, expected = data.measured(lam)[0][0, 0], data.forecast.at(data.N, lam).value[0, 0]
    return Finding.judged(
        "misclassified",
        float((wrong - expected) / np.sqrt(max(expected * (1.0 - expected), 1e-9) / data.N)),
        2.0,
        "warn",
        (
            "the leave-one-out misclassification is the predicted one",
            "the leave-one-out misclassification is more than 2 standard errors off: read "
            "predicted misclassifications with care",
        ),
    )


QUESTIONS: tuple[Callable[[Data], Finding], ...] = (
    _backtest,
    _heavy_tails,
    _unequal_rows,
    _carriers,
    _copies,
    _tail,
    _readings,
    _training_loss,
    _misclassified,
    _signal,
)
