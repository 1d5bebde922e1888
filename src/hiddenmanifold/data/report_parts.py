"""The sentences and tables of a report: each function answers one question of its reader."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.checks import Task
from hiddenmanifold.data.class_heads import FEW_ERRORS
from hiddenmanifold.data.extrapolation import CAP
from hiddenmanifold.data.learning_curve import ENDS, Support
from hiddenmanifold.data.planning import LIMITS, answer, changed, faultless, fell, limiting, needed
from hiddenmanifold.data.sample import Data
from hiddenmanifold.data.sklearn_conventions import counterpart
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.results.schema import ERROR_MEASURES

if TYPE_CHECKING:
    import xarray as xr

NAMES = {0.5: "N/2", 1: "N", 2: "2N", 4: "4N", 8: "8N"}
ERROR = "generalisation_error"
NONE = "—"
"""A cell without a number."""
MOST_CLASSES = 20
"""Most classes in a table."""
LONG = 1e7
"""From here on numbers have powers of ten."""


@dataclass(frozen=True)
class Table:
    """Cells in words; a table without a header has names and values."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    here: int = -1
    """The row of the sample at hand."""


@dataclass(frozen=True)
class Remarks:
    """Sentences under a title."""

    title: str
    sentences: tuple[str, ...]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _measure(data: Data) -> str:
    return ERROR_MEASURES[data.task]


def _at(errors: xr.Dataset, n: float) -> int:
    return int(np.flatnonzero(errors.n.values == n)[0])


def headline(data: Data, errors: xr.Dataset) -> str:
    """By how much the error falls with twice the rows."""
    if none := faultless(errors):
        return none
    here, there = _at(errors, data.N), _at(errors, 2 * data.N)
    now, then = (_shown(errors[ERROR].values[i]) for i in (here, there))
    way = fell(errors, there).split()[0]
    way = "stays at" if now == then or way == "changes" else f"{way} from {now} to"
    return f"With twice the rows the {_measure(data)} {way} {then} ({changed(errors, there)})."


def known(data: Data, errors: xr.Dataset) -> str:
    """What is known of a sample that is refused."""
    value, interval = _interval(errors, _at(errors, data.N))
    return (
        f"Nothing is predicted beyond these {data.N} rows, with which the {_measure(data)} is "
        f"{value} ({interval})."
    )


def outlook(
    data: Data, errors: xr.Dataset, lam: float, loss: ConvexLoss, goal: tuple[float, bool] | None
) -> tuple[str, ...]:
    """How many rows the goal needs, and what limits the task."""
    said, none = [], faultless(errors)
    if goal is not None and not (none and goal[1]):
        ends = needed(data, lam, loss, goal[0], relative=goal[1])
        said.append(answer(data.N, ends, goal[0], relative=goal[1]))
    if not none:
        said.append(LIMITS[limiting(data, lam, loss)].format(fell(errors, -1)))
    return tuple(said)


def refusals(data: Data) -> tuple[str, ...]:
    """Why nothing is predicted beyond the sample."""
    return tuple(_sentence(finding.meaning) for finding in data.diagnosis.refusals)


def warnings(data: Data, errors: xr.Dataset) -> tuple[str, ...]:
    """What calls for caution; what is resolved is judged by these predictions themselves."""
    found = [_sentence(f.meaning) for f in data.diagnosis.warnings if f.question != "resolution"]
    n, faint = errors.n.values, errors["status"].values == Support.UNRESOLVED
    if faint[n > data.N].any():
        found.append(
            f"From {n[faint & (n > data.N)][0]:g} rows on the prediction is the end of what this "
            "sample resolves: the error may fall further."
        )
    if data.classes and 0 < round(float(errors[f"{ERROR}_leave_one_out"]) * data.N) < FEW_ERRORS:
        found.append(
            f"Fewer than {FEW_ERRORS} rows are predicted wrongly: how many of others would be is "
            "known to some 40 %."
        )
    return tuple(found)


def _shown(error: float) -> str:
    """An error to three digits, of which its interval leaves one or two."""
    return _digits(error, 3)


def _with_bar(value: float, error: float) -> str:
    """An error with its standard error to two digits, both with powers of ten or neither."""
    bar = f"{error:#.2g}" if value >= LONG else _digits(error, 2)
    return f"{_shown(value)} ± {bar}"


def _digits(value: float, count: int) -> str:
    if not value:
        return "0"
    plain = 10.0 ** (count - 1) <= value < LONG
    return f"{float(f'{value:.{count}g}'):.0f}" if plain else f"{value:#.{count}g}"


def _interval(errors: xr.Dataset, i: int) -> tuple[str, str]:
    """An error, and its interval, as words."""
    value, low, high = (float(errors[f"{ERROR}{end}"].values[i]) for end in ENDS)
    if math.isnan(value):
        return NONE, NONE
    return _shown(value), f"{_shown(low)} to {_shown(high)}"


def errors_table(data: Data, errors: xr.Dataset) -> Table:
    """A row for each number of samples."""
    names = {round(m * data.N): name for m, name in NAMES.items()}
    rows = []
    for i, n in enumerate(errors.n.values.tolist()):
        value, interval = _interval(errors, i)
        known = n != data.N and value != NONE and not faultless(errors)
        change = changed(errors, i) if known else NONE
        rows.append((f"{n:.0f} = {names[n]}", value, change, interval))
    header = ("rows", "error", "change from N", "± one standard deviation")
    title = _sentence(f"{_measure(data)}, by the number of rows")[:-1]
    return Table(title, header, tuple(rows), _at(errors, data.N))


def class_tables(data: Data, errors: xr.Dataset) -> tuple[Table, ...]:
    """A row for each of several classes, or for those of which most rows are predicted wrongly."""
    if data.task is not Task.CLASSES:
        return ()
    assert data.classes is not None
    at = errors.isel(n=_at(errors, data.N))
    rate, low, high = (at[f"class_error{end}"].values for end in ENDS)
    taken = at["confusion"].values.copy()
    np.fill_diagonal(taken, 0.0)
    far = float(errors.n[-1])
    then = errors["class_error"].values[-1]
    shown = np.sort(np.argsort(-rate)[:MOST_CLASSES])
    rows = [
        (
            str(data.classes[k]),
            f"{data.rows_of_classes[k]}",
            _shown(rate[k]),
            f"{_shown(low[k])} to {_shown(high[k])}",
            *((_shown(then[k]),) if far > data.N else ()),
            NONE
            if data.rows_of_classes[k] * rate[k] < 1.0
            else f"{data.classes[int(taken[k].argmax())]} ({100 * taken[k].max() / rate[k]:.0f} %)",
        )
        for k in shown.tolist()
    ]
    ahead = (f"with {far:.0f} rows",) if far > data.N else ()
    header = (
        "class",
        "rows",
        "error",
        "± one standard deviation",
        *ahead,
        "if wrong, most often taken for",
    )
    title = f"Misclassification rate by class, with {data.N} rows"
    if len(rows) < len(data.classes):
        title += f": the {len(rows)} largest of {len(data.classes)}"
    return (Table(title, header, tuple(rows)),)


def model_table(data: Data, curve: xr.Dataset, lam: float, chosen: str) -> Table:
    """What is predicted, and how to fit it."""
    loss = str(curve.attrs["loss"])
    options = [f"{k.removeprefix('loss_')}={v}" for k, v in curve.attrs.items() if "loss_" in k]
    named = f"{loss} ({', '.join(options)})" if options else loss
    ridge = ", which is ridge regression," if loss == "square" else ""
    scores = ", a score for each class" if data.task is Task.CLASSES else ""
    scores += " against all others" if "scheme" in curve.attrs else ""
    rows = [
        ("data", data.description),
        ("model", f"linear, of {named} loss{ridge} with an intercept{scores}"),
        ("regularisation", f"λ = {lam:.4g}, {chosen}"),
    ]
    if (model := counterpart(loss, data.task, lam, data.p)) and not options:
        rows.append(("in scikit-learn", _pipeline(data, model)))
    return Table("Model", (), (*rows, _baseline(data)))


def _pipeline(data: Data, model: str) -> str:
    """The model after what was done to the table, as code."""
    if data.loss is not None:
        return f"{model} as the last step of the pipeline"
    if data.scale is not None and not isinstance(data.scale, str):
        return f"{model} on data.scaled(X)"
    return f"make_pipeline(data.preparation, {model})"


def _baseline(data: Data) -> tuple[str, str]:
    """What a constant prediction reaches."""
    if data.classes is None:
        return "always predicting the mean", _shown(float(data.y.var(ddof=1)))
    largest, error = data.most_frequent
    return f"always predicting {largest}", _shown(error)


def backtest_tables(held: xr.Dataset | None) -> tuple[Table, ...]:
    """Measurements on rows held out, beside predictions."""
    if held is None:
        return ()
    at = held.isel(regularisation=0)
    rows = []
    for i, n in enumerate(at.n.values.tolist()):
        value, error, theory = (
            float(at[f"{ERROR}{end}"].values[i]) for end in ("", "_stderr", "_theory")
        )
        inside = 100 * float(at["inside_2"].values[i])
        rows.append(
            (
                f"{n}",
                _with_bar(value, error),
                _shown(theory),
                f"{inside:.0f} %",
            )
        )
    seeds, seen = held.attrs["seeds"], held.attrs["rows"]
    title = f"Backtest: {seeds} random splits, predicted from {seen} of the rows"
    header = ("rows fitted", "measured on others", "predicted", "within two deviations")
    return (Table(title, header, tuple(rows)),)


def preparation(data: Data) -> Remarks:
    """What was done to the table."""
    done = [_sentence(note) for note in data.notes]
    if data.scale is not None:
        units = "their standard deviations" if isinstance(data.scale, str) else "units of your own"
        done.append(f"Columns were centred and divided by {units}.")
    if data.hint:
        done.append(f"Columns were not scaled: {data.hint}.")
    return Remarks("What was done to the table", tuple(done) or ("It was taken as it is.",))


def measurement(data: Data, curve: xr.Dataset, loss: ConvexLoss) -> Remarks:
    """Where the numbers come from."""
    heads = data.task is Task.CLASSES and not loss.quadratic
    part = "each tenth of the rows" if loss.has_jumps or heads else "each row"
    cap = f", and at most {CAP} times that of generalised cross-validation" * loss.quadratic
    mean, error = (float(curve[f"{ERROR}_leave_one_out{end}"]) for end in ("", "_stderr"))
    twins = "" if loss.quadratic else "of ridge regression "
    tenths = part != "each row"
    brought = ", brought from nine tenths of N to N rows" * tenths
    name = "ten-fold cross-validation" if tenths else "leave-one-out"
    said = [
        f"The error at N is that of {name}, in which {part} is predicted by a fit to all "
        f"others{cap}{brought}. {_counted(data, loss, mean, error)}",
        f"Errors at other sizes follow from fits {twins}to the sample with other regularisations.",
        "Intervals are one standard deviation to either side; those of changes are smaller, "
        "because errors at two sizes share most of their uncertainty.",
    ]
    return Remarks("How errors were measured", tuple(said))


def checks(data: Data) -> Remarks:
    """What the diagnosis did not object to."""
    passed = [_sentence(f.meaning) for f in data.diagnosis if f.verdict == "pass"]
    return Remarks("Checks that the sample passed, by square errors of ridge", tuple(passed))


def _counted(data: Data, loss: ConvexLoss, mean: float, error: float) -> str:
    """The leave-one-out error as it is counted."""
    if data.task is Task.REGRESSION:
        return f"Leave-one-out alone gives {_with_bar(mean, error)}."
    wrong = round(mean * data.N)
    count = f"{wrong} of {data.N} rows are predicted wrongly"
    if wrong:
        smoothed = "that of smoothed scores, and" if loss.quadratic else "these, and"
        return f"{count}; the rate counts {smoothed} half an error."
    return f"None of {data.N} rows is predicted wrongly, which allows a rate up to about 3/N."
