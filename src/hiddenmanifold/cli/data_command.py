"""The command that estimates what more rows of a data set would bring."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer

from hiddenmanifold.checks import check_count
from hiddenmanifold.cli.app import command
from hiddenmanifold.cli.exit_codes import Code, stop
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import Loss, OutputOptions, file, regularisation
from hiddenmanifold.cli.values import values
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from hiddenmanifold.arrays import Array
    from hiddenmanifold.data.sample import Data

QUESTION = "Question"
of_sample = partial(typer.Option, rich_help_panel="Sample")
of_question = partial(typer.Option, rich_help_panel=QUESTION)
FINE = 24
"""Sizes at which the line of a picture is computed."""
REPORTS = (".html", ".md")
COSTLY = "the analysis of this sample needs"
"""How the warning of a long analysis begins."""


@dataclass(frozen=True)
class SampleOptions:
    """The data."""

    label: Annotated[
        str | None,
        of_sample(
            metavar="COLUMN",
            help="Column of the labels, by name or number from 0; or another file of them, as "
            "labels.npy or table.csv:COLUMN.",
        ),
    ] = None
    task: Annotated[
        str | None,
        of_sample(
            metavar="TASK",
            help="regression or classification; by default as the labels look, and asked for if "
            "they are 3 to 10 different whole numbers.",
        ),
    ] = None
    positive: Annotated[
        str | None,
        of_sample(
            metavar="CLASS", help="The class to tell from all others, if there are more than two."
        ),
    ] = None
    scale: Annotated[
        str | None,
        of_sample(metavar="KIND", help="standard: divide columns by their deviations first."),
    ] = None
    random_features: Annotated[
        bool,
        of_sample("--random-features", help="The columns are random features of some kernel."),
    ] = False

    def sample(self, path: Path) -> Data:
        """The sample of a file."""
        from hiddenmanifold.cli.label_files import table_and_labels
        from hiddenmanifold.data.sample import Data

        X, y = table_and_labels(path, self.label)
        made = Data(
            X,
            y,
            self.task,
            random_features=self.random_features,
            scale=self.scale,
            positive=self.positive,
        )
        if made.hint:
            warnings.warn(made.hint.replace("scale='standard'", "--scale standard"), stacklevel=1)
        return made


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked about them."""

    n: Annotated[
        Any,
        of_question(
            metavar="VALUES",
            help="Numbers of samples to predict for, beside those that are measured; by default "
            "1/2, 1, 2, 4 and 8 times the rows.",
            parser=values,
        ),
    ] = None
    regularisation: Annotated[
        Any,
        regularisation("or the word loo: that of least leave-one-out error", "loo", panel=QUESTION),
    ] = "loo"
    target_error: Annotated[
        float | None, of_question(metavar="ERROR", help="An error to reach: how many samples?")
    ] = None
    target_gain: Annotated[
        float | None,
        of_question(
            metavar="SHARE",
            help="Instead, the fraction by which the error is to fall; 0.1 by default.",
        ),
    ] = None
    seeds: Annotated[
        int,
        of_question(metavar="N", help="Random splits that measure held-out errors; 0 for none."),
    ] = 8
    keep: Annotated[bool, of_question("--keep", help="Predict even if the diagnosis refuses.")] = (
        False
    )

    @property
    def several(self) -> bool:
        """Whether there are several regularisations."""
        return not isinstance(self.regularisation, str) and np.size(self.regularisation) > 1

    def sizes(self, sample: Data, most: float) -> Array:
        """Numbers of samples to predict for, those that are measured among them."""
        from hiddenmanifold.data.backtest import halvings
        from hiddenmanifold.data.learning_curve import MULTIPLES

        N = sample.N
        asked = np.round(np.array(MULTIPLES) * N) if self.n is None else self.n
        held = halvings(sample) if self.seeds else []
        every = np.unique([*np.atleast_1d(asked), *held, N])
        return every[every <= most]

    def held_out(self, sample: Data, **given: Any) -> xr.Dataset | None:
        """What is measured on rows held out at several regularisations, if there are enough."""
        from hiddenmanifold.data.backtest import backtest, halvings

        sizes = halvings(sample)
        if not (self.seeds and sizes):
            return None
        try:
            return backtest(sample, n=sizes, seeds=self.seeds, **given)
        except InvalidArgumentError as error:
            warnings.warn(f"no rows were held out: {error}", stacklevel=1)
            return None

    def target(self) -> dict[str, Any]:
        """What to reach, as `plan` takes it."""
        given = {"target_error": self.target_error, "target_gain": self.target_gain}
        chosen = {name: value for name, value in given.items() if value is not None}
        if len(chosen) > 1:
            raise InvalidArgumentError.because(
                "--target-gain", "cannot be combined with --target-error", "leave one of them out"
            )
        return chosen or {"target_gain": 0.1}


@command()
@spread
def data(
    *,
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .tsv, .npy, .npz or .parquet file.")
    ],
    chosen: SampleOptions,
    question: QuestionOptions,
    loss: Loss = "square",
    report: Annotated[
        Path | None, file(help="Write the report as .html, or as .md with a picture beside.")
    ] = None,
    output: OutputOptions,
) -> None:
    """Estimate by how much additional samples would lower the error on your data, with error bars.

    If the data do not allow it, the command says why.

    For example: hiddenmanifold data table.csv --label price --scale standard --report out.html
    """
    from hiddenmanifold.cli.ingredient_options import ingredient
    from hiddenmanifold.cli.output import check, deliver
    from hiddenmanifold.cli.output_files import STANDARD_OUTPUT
    from hiddenmanifold.data.learning_curve import learning_curve
    from hiddenmanifold.data.predicted_errors import QUANTITIES
    from hiddenmanifold.data.report import report as reported

    lam, target = question.regularisation, question.target()
    grid = {"n": (1, 2), "regularisation": 1.0 if isinstance(lam, str) else lam}
    check(output, grid, lambda: (*QUANTITIES, "kappa"))
    _check_report(report)
    if question.seeds:
        check_count("--seeds", question.seeds, 2)
    of_loss = {} if loss == "square" else {"loss": ingredient("loss", loss)}
    talks = not output.quiet and STANDARD_OUTPUT not in (output.csv, output.json)
    with warnings.catch_warnings():
        if talks:  # the report has what was done to the table
            warnings.simplefilter("ignore")
            warnings.filterwarnings("default", COSTLY)
        sample = chosen.sample(path)
    made = reported(
        sample,
        **target,
        **of_loss,
        regularisation="loo" if question.several else lam,
        seeds=0 if question.several else question.seeds,
        on_refusal="keep" if question.keep else "explain",
        title=f"{path.name}: {chosen.label}",
    )
    if report is not None:
        (made.to_html if report.suffix.lower() == ".html" else made.to_markdown)(report)
    refused = not (sample.usable or question.keep)
    curve = partial(learning_curve, sample, regularisation=lam, on_refusal="keep", **of_loss)
    ds = curve(n=question.sizes(sample, sample.N if refused else np.inf))
    held = made.backtest
    if question.several:
        held = question.held_out(sample, regularisation=ds.regularisation.values, **of_loss)
    ds = _with_measured(ds, held)
    if talks:
        typer.echo(made)
    special = question.several or question.n is not None or output.quantities()
    if talks and special:
        typer.echo()
    quietly = output if special else replace(output, quiet=True)
    deliver(ds, quietly, draw=lambda: _drawn(ds, held, curve, output))
    if refused:
        _refuse(sample)


def _check_report(path: Path | None) -> None:
    """Raise before a long computation if the report could not be written."""
    from hiddenmanifold.cli.output import check_writable

    if path is None:
        return
    if path.suffix.lower() not in REPORTS:
        raise InvalidArgumentError(
            "--report", str(path), f"a file name ending in {' or '.join(REPORTS)}"
        )
    check_writable(path)
    if path.suffix.lower() == ".md":
        check_writable(path.with_suffix(".svg"))


def _with_measured(ds: xr.Dataset, held: xr.Dataset | None) -> xr.Dataset:
    """The curve with what was measured: by leave-one-out, and of fewer on rows held out."""
    from hiddenmanifold.results.datasets import with_schema
    from hiddenmanifold.results.schema import Kind

    name = "generalisation_error"
    for end in ("", "_stderr"):
        found = ds[f"{name}_leave_one_out{end}"].where(ds.n == ds.attrs["N"])
        if held is not None:
            fewer = held[f"{name}{end}"].reindex(n=ds.n)
            single = "regularisation" not in ds.dims
            found = found.fillna(fewer.isel(regularisation=0, drop=True) if single else fewer)
        ds[f"{name}_measured{end}"] = found.drop_attrs()
    return with_schema(ds, Kind.LEARNING_CURVE)


def _drawn(
    ds: xr.Dataset, held: xr.Dataset | None, curve: Callable[..., xr.Dataset], output: OutputOptions
) -> Figure:
    """The curve through many sizes, with what was measured if that is what is shown."""
    from hiddenmanifold import plotting

    quantities = output.quantities() or None
    if output.x not in (None, "n"):
        return plotting.plot(ds, output.x, quantities)
    n = ds.n.values
    fine = curve(n=np.union1d(n, np.geomspace(n.min(), n.max(), FINE)))
    measured = fine if quantities not in (None, ["generalisation_error"]) else held
    return plotting.plot(fine if measured is None else measured, "n", quantities, theory=fine)


def _refuse(sample: Data) -> NoReturn:
    stop(
        Code.INCOMPLETE,
        f"nothing is predicted beyond these {sample.N} samples: {sample.diagnosis.reasons}. "
        "--keep predicts it all the same",
    )
