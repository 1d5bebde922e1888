"""What more rows would bring, as a report: one for Python, the command line and the page.

Everything in it is computed by `learning_curve`, `planning` and `backtest`; here it is put into
sentences and tables (`report_parts`), which `report_formats` writes as text, Markdown and HTML.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hiddenmanifold.api.arguments import labelled
from hiddenmanifold.checks import check_count, check_number, knows_penalty
from hiddenmanifold.data import report_formats
from hiddenmanifold.data import report_parts as parts
from hiddenmanifold.data.backtest import backtest, halvings
from hiddenmanifold.data.learning_curve import MULTIPLES, learning_curve
from hiddenmanifold.data.planning import goal_of
from hiddenmanifold.data.report_parts import Remarks, Table
from hiddenmanifold.data.report_picture import drawn
from hiddenmanifold.data.sample import Data
from hiddenmanifold.data.validation import Cost
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.numerics.threads import one_thread

if TYPE_CHECKING:
    import xarray as xr

TITLE = "What more rows would bring"
LINE = np.geomspace(1 / 8, 8, 25)
"""Sizes at which the line of the picture is computed, in units of N."""
UNCHECKED = "The checks of the sample would take longer than the time allowed."


@dataclass(frozen=True, repr=False)
class Report:
    """What more rows would bring, see `report`; `print` it, or show it in a notebook.

    Attributes
    ----------
    title, headline : str
        The answer is in the headline.
    outlook : tuple of str
        What limits the task, and how many rows the target needs.
    refusals, warnings : tuple of str
        Why nothing is predicted beyond the sample, and what calls for caution.
    tables : tuple of Table
        Errors at N/2 to 8N, the model, and the backtest if there is one.
    remarks : tuple of Remarks
        What was done to the table, and how errors were measured.
    curve : xarray.Dataset
        The `learning_curve`.
    backtest : xarray.Dataset or None
        Measurements on rows held out.
    """

    title: str
    headline: str
    outlook: tuple[str, ...]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    tables: tuple[Table, ...]
    remarks: tuple[Remarks, ...]
    curve: xr.Dataset
    backtest: xr.Dataset | None

    def __str__(self) -> str:
        return report_formats.text(self)

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return report_formats.markdown(self)

    def _repr_html_(self) -> str:
        return report_formats.fragment(self)

    @cached_property
    def picture(self) -> str:
        """The learning curve as SVG, whose letters and axes have the colour of the text around."""
        return drawn(self.curve, self.backtest)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The report as Markdown; with a path it is written, and the picture beside it as SVG."""
        if path is None:
            return report_formats.markdown(self)
        path = Path(path)
        beside = path.with_suffix(".svg")
        text = report_formats.markdown(self, beside.name)
        picture = report_formats.alone(self.picture)
        beside.write_text(picture, encoding="utf-8", newline="\n")
        path.write_text(text, encoding="utf-8", newline="\n")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as a page of HTML that loads nothing; with a path it is written."""
        page = report_formats.page(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8", newline="\n")
        return page


@knows_penalty()
@one_thread
def report(
    data: Data,
    *,
    loss: str | ConvexLoss = "square",
    regularisation: float | Literal["loo"] = "loo",
    target_error: float | None = None,
    target_gain: float | None = None,
    seeds: int = 0,
    deadline: float | None = None,
    on_refusal: Literal["explain", "keep"] = "explain",
    title: str = TITLE,
) -> Report:
    """Report what more rows would bring, on what this rests, and what calls for caution.

    Parameters
    ----------
    data : Data
        The sample at hand, usable or not.
    loss : str or Loss
        As in `learning_curve`.
    regularisation : float or "loo"
        The λ of the objective, or the one of least leave-one-out loss.
    target_error, target_gain : float, optional
        An error to reach, or a part between 0 and 1 by which it is to fall: how many rows?
    seeds : int
        Random splits of a `backtest`, which measures errors on rows held out; 0 for none.
    deadline : float, optional
        Seconds after which nothing more is begun: the backtest has fewer splits or is left out,
        and a sample that could not be checked in time is reported as one that is refused.
    on_refusal : {"explain", "keep"}
        Whether the report of a refused sample ends at its N rows and says why, or predicts all
        the same.
    title : str
        A title, as the name of a file.

    Returns
    -------
    Report
        It has the methods `to_html` and `to_markdown`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> from sklearn.datasets import load_diabetes
    >>> report = hm.report(hm.Data(*load_diabetes(return_X_y=True), scale="standard"))
    >>> report.headline
    'With twice the rows the mean square error falls from 3000 to 2960 (−1.20 ± 0.09 %).'
    """
    end = math.inf if deadline is None else time.monotonic() + deadline
    _check(data, seeds, deadline, on_refusal)
    asked = target_error is not None or target_gain is not None
    goal = goal_of(data, target_error, target_gain) if asked else None
    loss = data.accepted(loss)
    lam = _one_regularisation(data, loss, regularisation)
    keep = on_refusal == "keep"
    checked = keep or Cost.of_diagnosis(data.N, data.p) < end - time.monotonic()
    goes_on = keep or (checked and data.usable)
    multiples = [round(m * data.N) for m in MULTIPLES]
    n = np.union1d(multiples, np.round(LINE * data.N))
    n = n if goes_on else n[n <= data.N]
    curve = learning_curve(data, n=n, regularisation=lam, loss=loss, on_refusal="keep")
    held, why = _held_out(data, lam, loss, seeds=seeds, end=end)
    errors = curve.sel(n=np.intersect1d(multiples, n))
    chosen = "chosen by leave-one-out" if isinstance(regularisation, str) else "as given"
    return Report(
        title=title,
        headline=parts.headline(data, errors) if goes_on else parts.known(data, errors),
        outlook=parts.outlook(data, errors, lam, loss, goal) if goes_on else (),
        refusals=parts.refusals(data) if checked else (UNCHECKED,),
        warnings=(*(parts.warnings(data, errors) if checked else ()), *why),
        tables=(
            parts.errors_table(data, errors),
            *parts.class_tables(data, errors),
            parts.model_table(data, curve, lam, chosen),
            *parts.backtest_tables(held),
        ),
        remarks=(
            parts.preparation(data),
            parts.measurement(data, curve, loss),
            *((parts.checks(data),) if checked else ()),
        ),
        curve=curve,
        backtest=held,
    )


def _check(data: Any, seeds: Any, deadline: Any, on_refusal: Any) -> None:
    """Raise unless these make sense."""
    if not isinstance(data, Data):
        raise InvalidArgumentError("data", data, "a hiddenmanifold.Data")
    if on_refusal not in ("explain", "keep"):
        raise InvalidArgumentError("on_refusal", on_refusal, "'explain' or 'keep'")
    if check_count("seeds", seeds, 0) == 1:
        raise InvalidArgumentError("seeds", seeds, "0, or 2 and more")
    if deadline is not None:
        check_number("deadline", deadline, 0.0)


def _one_regularisation(data: Data, loss: ConvexLoss, given: Any) -> float:
    if isinstance(given, str) and given == "loo":
        return data.best_for(loss)
    array = (
        None if isinstance(given, str) else labelled("regularisation", given, zero=loss.quadratic)
    )
    if array is None or array.size != 1:
        raise InvalidArgumentError("regularisation", given, "one number or 'loo'")
    return float(array)


def _held_out(
    data: Data, lam: float, loss: ConvexLoss, *, seeds: int, end: float
) -> tuple[xr.Dataset | None, tuple[str, ...]]:
    """What is measured on rows held out, or why nothing is."""
    if not seeds:
        return None, ()
    sizes = halvings(data)
    if not sizes:
        return None, (f"No rows were held out for a backtest: {data.N} are too few.",)
    left = end - time.monotonic()
    if left < Cost.of_cuts(2, data.own_rows, data.p):
        return None, ("The backtest was left out, because the time allowed was over.",)
    try:
        held = backtest(data, n=sizes, regularisation=lam, loss=loss, seeds=seeds, deadline=left)
    except InvalidArgumentError as error:  # a rare class
        return None, (f"No rows were held out for a backtest: {error}.",)
    return held, ()
