"""The answer of `sample_size`: a report for people, with the numbers inside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.studies.assurance import Assured
from hiddenmanifold.studies.performance import FAR, Simulated
from hiddenmanifold.studies.population import Population
from hiddenmanifold.studies.targets import LESS_IS_BETTER, QUANTITIES, Target
from hiddenmanifold.versions import version

if TYPE_CHECKING:
    import xarray as xr

WORDS = {
    "calibration_slope": "calibration slope",
    "auc": "AUC (C-statistic)",
    "brier_score": "Brier score",
    "probability_error": "mean absolute error of the probabilities",
    "r2": "R²",
    "nagelkerke_r2": "Nagelkerke's R²",
    "test_loss": "mean log-loss",
    "generalisation_error": "mean square error",
    "shrinkage": "expected shrinkage",
    "optimism": "optimism of R² at most 0.05",
    "overall_risk": "overall risk within 0.05",
    "residual_deviation": "residual deviation within 10 %",
}
REGRESSION = {"Logistic": "logistic", "Square": "linear", "Poisson": "Poisson"}
LIMIT = (
    "Predictions are those of the limit of many predictors and samples at this ratio of their "
    "numbers: a typical (median) study, from which single studies deviate."
)
RILEY = (
    "Riley et al., BMJ 368 (2020) m441: averages of regression without a penalty, by formulas for "
    "little overfitting."
)
MOST_SHIFT = 0.5
"""Largest logarithm by which another n is inferred from the slope of the limit."""
Cells = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class SampleSize:
    """How many samples a prediction model needs; see `sample_size`.

    Attributes
    ----------
    n : int
        Samples that meet every target.
    needed : dict
        Samples that each target needs.
    curve : xarray.Dataset
        The expected performance along n, around the n that was found, and at it.
    population, loss, regularisation, targets, assurance
        What was asked.
    at_hand : int, optional
        The number of samples whose performance was asked for besides.
    ridge_n : int, optional
        Samples with which a ridge penalty, with its best λ, predicts as well as regression without
        a penalty with n.
    textbook : dict
        Samples that each criterion of Riley et al. requires, of which the largest counts.
    assured : dict, optional
        With an assurance: what simulated studies say of each target.
    simulated : dict, optional
        With `finite_size`: each quantity over simulated studies of n samples.
    seconds : float
        What simulating these took.
    left_out : float
        What it would take, in seconds, where that was too long to do it unasked; else 0.
    """

    population: Population
    loss: ConvexLoss
    regularisation: float | str
    targets: Mapping[str, Target]
    n: int
    needed: Mapping[str, int]
    curve: xr.Dataset = field(compare=False)
    at_hand: int | None = None
    ridge_n: int | None = None
    textbook: Mapping[str, int] = field(default_factory=dict)
    assurance: float | None = None
    assured: Mapping[str, Assured] | None = None
    simulated: Mapping[str, Simulated] | None = None
    seconds: float = field(default=0.0, compare=False)
    left_out: float = field(default=0.0, compare=False)

    @property
    def stderr(self) -> float:
        """Standard error of n, due to the number of simulated studies; 0 without an assurance."""
        if self.assured is None:
            return 0.0
        return next(one.stderr for one in self.assured.values() if one.n == self.n)

    @property
    def on_average(self) -> tuple[int, float] | None:
        """The size at which the mean over studies meets the target that decides n, ± its error.

        It follows from the deviation of the mean from the limit at n and the slope of the limit
        along log n. None without simulated studies, if some were separable, so that there is no
        mean, and for an interval.
        """
        name = max(self.needed, key=lambda one: self.needed[one])
        if self.simulated is None or isinstance(self.targets[name], tuple):
            return None
        one, limit = self.simulated[name], self.curve[name].dropna("n")
        at = int(np.searchsorted(limit.n.values, self.n))
        near = limit.isel(n=slice(max(at - 1, 0), at + 2))
        if one.separable or near.n.size < 3 or limit.n.values[at] != self.n:
            return None
        log_n = np.log(near.n.values / self.n)
        _, slope, _ = np.polynomial.polynomial.polyfit(log_n, near.values, 2)
        shift = (one.mean - float(limit[at])) / slope
        if abs(shift) > MOST_SHIFT:
            return None
        n = self.n * math.exp(-shift)
        return math.ceil(n), n * one.stderr / abs(float(slope))

    @property
    def events_per_predictor(self) -> float:
        """Samples of the rarer label per predictor; NaN unless the outcome is binary."""
        prevalence = self.population.prevalence
        if prevalence is None:
            return math.nan
        return self.n * min(prevalence, 1.0 - prevalence) / self.population.predictors

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        people, regression = f"{self.n} samples", self._regression
        if self.assured is not None:
            people += f" (± {max(1, round(self.stderr))})"
        goals = " and ".join(with_article(goal_in_words(*one)) for one in self.targets.items())
        events = self.events_per_predictor
        per = "" if math.isnan(events) else f", {events:.3g} events per predictor,"
        how = (
            "a typical study has"
            if self.assurance is None
            else f"a study has with probability {self.assurance:g}"
        )
        return f"With {people}{per} {how} {goals}, by {regression}."

    @property
    def paragraph(self) -> str:
        """A paragraph for a paper or a protocol, with the citation."""
        return (
            f"The sample size was calculated for {_described(self.population)}. {self.sentence} "
            f"{self._basis} The calculation used hiddenmanifold {version('hiddenmanifold')}, which "
            "solves the high-dimensional limit of regularised regression (Gerace et al., ICML "
            "2020; Sur and Candès, PNAS 2019, for logistic regression without a penalty)."
        )

    @property
    def _basis(self) -> str:
        if self.assured is None:
            return LIMIT
        one = next(iter(self.assured.values()))
        return (
            f"The probability was estimated from {one.draws} simulated studies at each of "
            f"{len(one.sizes)} sizes; studies with separable labels count as missing the target."
        )

    @property
    def _regression(self) -> str:
        name = REGRESSION.get(type(self.loss).__name__, f"{self.loss}")
        if self.regularisation == 0.0:
            return f"{name} regression without a penalty"
        if self.regularisation == "optimal":
            return f"{name} regression with the best ridge penalty"
        return f"{name} regression with the ridge penalty λ = {self.regularisation:g}"

    def __str__(self) -> str:
        parts = [self.sentence]
        for title, head, rows in self.tables:
            parts += ["", title, *_aligned([head, *rows])]
        return "\n".join([*parts, "", *self.notes])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """The report in Markdown."""
        parts = ["# Sample size", "", self.sentence]
        for title, head, rows in self.tables:
            lines = [head, ("---",) * len(head), *rows]
            parts += ["", f"## {title}", "", *(f"| {' | '.join(cells)} |" for cells in lines)]
        parts += ["", "## Notes", "", *(f"- {note}" for note in self.notes)]
        return "\n".join([*parts, "", "## For the paper", "", self.paragraph, ""])

    def to_html(self) -> str:
        """The report as a page of HTML that needs nothing else."""
        parts = [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            "<title>Sample size</title><style>body { font: 16px/1.5 system-ui, sans-serif; "
            "max-width: 50rem; margin: 2rem auto; padding: 0 1rem; } table { border-collapse: "
            "collapse; } th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid "
            "#ccc; }</style></head><body>",
            f"<h1>Sample size</h1><p>{escape(self.sentence)}</p>",
        ]
        for title, head, rows in self.tables:
            cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
            body = "".join(
                f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
            )
            parts.append(f"<h2>{escape(title)}</h2><table><tr>{cells}</tr>{body}</table>")
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        parts += [f"<h2>Notes</h2><ul>{notes}</ul>", "<h2>For the paper</h2>"]
        return "\n".join([*parts, f"<p>{escape(self.paragraph)}</p></body></html>"])

    def _repr_html_(self) -> str:
        return self.to_html()

    @property
    def tables(self) -> Sequence[tuple[str, Cells, list[Cells]]]:
        """Title, header and rows of each table."""
        tables: list[tuple[str, Cells, list[Cells]]] = [
            ("Samples needed", *self._needed),
            ("Expected performance", *self._expected),
        ]
        if self.textbook:
            rows: list[Cells] = [(WORDS[name], str(n)) for name, n in self.textbook.items()]
            rows.append(("all of them", str(max(self.textbook.values()))))
            tables.append(("Textbook criteria", ("criterion", "n"), rows))
        if self.simulated is not None:
            tables.append((f"Simulated studies of n = {self.n}", *self._simulated))
        return tables

    @property
    def _simulated(self) -> tuple[Cells, list[Cells]]:
        head = ("quantity", "limit", "mean", "± stderr", "median", "deviation", "separable")
        rows: list[Cells] = []
        for name, one in (self.simulated or {}).items():
            limit = float(self.curve[name].sel(n=self.n))
            numbers = (f"{value:.4g}" for value in (limit, one.mean))
            spread = (f"{one.stderr:.1g}", f"{one.median:.4g}", f"{one.deviation:.2g}")
            rows.append((WORDS[name], *numbers, *spread, f"{100 * one.separable:.3g} %"))
        return head, rows

    @property
    def _far(self) -> list[str]:
        """Quantities whose mean over simulated studies deviates from the limit, in words."""
        found = []
        for name, one in (self.simulated or {}).items():
            limit = float(self.curve[name].sel(n=self.n))
            apart = one.mean / limit - 1.0
            if abs(apart) > FAR and abs(one.mean - limit) > 2.0 * one.stderr:
                error = 100.0 * one.stderr / abs(limit)
                found.append(f"{WORDS[name]} by {100 * apart:+.1f} ± {error:.1f} %")
        return found

    @property
    def _needed(self) -> tuple[Cells, list[Cells]]:
        rows: list[Cells] = []
        if self.assured is None:
            rows += [(goal_in_words(k, self.targets[k]), str(n)) for k, n in self.needed.items()]
            return ("target", "n"), rows
        head = ("target", "n", "± stderr", "mean at n", "deviation at n", "separable")
        for name, one in self.assured.items():
            cells = (str(one.n), f"{one.stderr:.2g}", f"{one.mean:.4g}", f"{one.deviation:.2g}")
            rows.append(
                (goal_in_words(name, self.targets[name]), *cells, f"{100 * one.separable:.3g} %")
            )
        return head, rows

    @property
    def _expected(self) -> tuple[Cells, list[Cells]]:
        sizes = [self.n, *([] if self.at_hand is None else [self.at_hand])]
        head = ("quantity", *(f"n = {n}" for n in sizes))
        rows: list[Cells] = []
        for name in QUANTITIES[self.population.outcome]:
            values = (float(self.curve[name].sel(n=n)) for n in sizes)
            rows.append((WORDS[name], *(f"{value:.4g}" for value in values)))
        return head, rows

    @property
    def notes(self) -> list[str]:
        """What to know of the numbers, as sentences."""
        notes = [LIMIT]
        if self.assured is not None:
            notes.append(self._basis)
            notes += [
                f"The n of {with_article(goal_in_words(name, self.targets[name]))} is extrapolated "
                f"from {one.sizes[0]} to {one.sizes[-1]} samples: choose more draws."
                for name, one in self.assured.items()
                if not one.enclosed
            ]
        if self.simulated is not None:
            draws = next(iter(self.simulated.values())).draws
            far = ", ".join(self._far)
            told = f"deviate from the limit: {far}" if far else "are within 1 % of the limit"
            notes.append(
                f"The means of {draws} simulated studies of this size {told}; with an assurance n "
                "follows from simulated studies alone."
            )
            if far and self.on_average is not None:
                n, error = self.on_average
                notes.append(
                    f"The mean over studies meets the target with {n} (± {max(1, round(error))}) "
                    "samples."
                )
        if self.left_out:
            notes.append(
                "With so few predictors the mean over studies may deviate from the limit by more "
                f"than 1 %: finite_size=True simulates it, in about {self.left_out:.2g} seconds."
            )
        if self.ridge_n is not None:
            notes.append(
                f"With a ridge penalty of the best λ, {self.ridge_n} samples predict as well as "
                f"{self.n} without a penalty."
            )
        if self.textbook:
            notes.append(RILEY)
        return notes


def goal_in_words(name: str, goal: Target) -> str:
    """A target in words."""
    if isinstance(goal, tuple):
        return f"{WORDS[name]} from {goal[0]:g} to {goal[1]:g}"
    return f"{WORDS[name]} of at {'most' if name in LESS_IS_BETTER else 'least'} {goal:g}"


def with_article(words: str) -> str:
    """The words after "a" or "an", as they are pronounced."""
    return f"{'an' if words.startswith(('A', 'R²')) else 'a'} {words}"


def _described(population: Population) -> str:
    """A population in words."""
    outcome = {
        "binary": f"a binary outcome of prevalence {population.prevalence}",
        "continuous": f"a continuous outcome with R² = {population.r2}",
        "count": f"a count of mean {population.rate} with R² = {population.r2}",
    }[population.outcome]
    known = ""
    if population.auc is not None:
        known = f" and C-statistic {population.auc:g}"
    elif population.cox_snell_r2 is not None:
        known = f" and Cox and Snell's R² = {population.cox_snell_r2:g}"
    return f"{outcome}{known}, and {population.predictors} candidate predictors"


def _aligned(rows: Sequence[Cells]) -> list[str]:
    """Rows of a table as lines of text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
