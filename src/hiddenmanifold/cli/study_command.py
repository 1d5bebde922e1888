"""The command that plans a study before there is data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiddenmanifold.cli.app import command
from hiddenmanifold.cli.option_groups import spread
from hiddenmanifold.cli.options import Debug
from hiddenmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hiddenmanifold.studies.population import Population

of_population = partial(typer.Option, rich_help_panel="Population")
of_targets = partial(typer.Option, rich_help_panel="Targets")
of_report = partial(typer.Option, rich_help_panel="Report")


@dataclass(frozen=True)
class PopulationOptions:
    """What is known of the population."""

    predictors: Annotated[
        int, of_population(metavar="N", min=1, help="Candidate predictors (parameters).")
    ]
    outcome: Annotated[
        str | None,
        of_population(
            metavar="KIND",
            help="binary, continuous or count; by default the one that the other numbers describe.",
        ),
    ] = None
    prevalence: Annotated[
        float | None, of_population(metavar="SHARE", help="Share of events of a binary outcome.")
    ] = None
    auc: Annotated[
        float | None, of_population(metavar="C", help="C-statistic of the true model.")
    ] = None
    cox_snell_r2: Annotated[
        float | None,
        of_population(
            "--cox-snell-r2", metavar="R2", help="Instead, Cox and Snell's R² of the true model."
        ),
    ] = None
    r2: Annotated[
        float | None,
        of_population("--r2", metavar="R2", help="R² of a continuous outcome or a count."),
    ] = None
    rate: Annotated[float | None, of_population(metavar="MEAN", help="Mean of a count.")] = None
    without_signal: Annotated[
        int,
        of_population(
            metavar="N", min=0, help="How many predictors have nothing to do with the outcome."
        ),
    ] = 0
    law: Annotated[
        str,
        of_population(
            metavar="LAW", help="Of a binary outcome: logistic, or binormal for two normal classes."
        ),
    ] = "logistic"

    def population(self) -> Population:
        """The population of these numbers."""
        from hiddenmanifold.studies.population import Population

        given: dict[str, Any] = {k: v for k, v in vars(self).items() if v is not None}
        if self.outcome is None:
            if self.rate is not None:
                given["outcome"] = "count"
            elif self.r2 is not None and self.prevalence is None:
                given["outcome"] = "continuous"
        return Population(**given)


@dataclass(frozen=True)
class TargetOptions:
    """What a study is to reach."""

    slope: Annotated[
        str | None,
        of_targets(
            metavar="SLOPE", help="Calibration slope to reach, as 0.9 or 0.85:1.15: a target, too."
        ),
    ] = None
    target: Annotated[
        list[str] | None,
        of_targets(
            metavar="NAME=VALUE",
            help="What to reach, as auc=0.83, or calibration_slope=0.85:1.15 for an interval; "
            "repeat it for more.",
        ),
    ] = None
    assurance: Annotated[
        float | None,
        of_targets(
            metavar="SHARE",
            help="Probability with which a single study reaches it, from simulated studies.",
        ),
    ] = None
    draws: Annotated[
        int | None,
        of_targets(metavar="N", min=20, help="Simulated studies at each of some sizes."),
    ] = None
    seed: Annotated[int, of_targets(metavar="N", min=0, help="Root of their randomness.")] = 0

    def targets(self) -> dict[str, Any]:
        """The targets by name."""
        found: dict[str, Any] = {}
        if self.slope is not None:
            allowed = "a number, or LOW:HIGH"
            found["calibration_slope"] = _goal("--slope", self.slope, self.slope, allowed)
        for text in self.target or ():
            name, _, goal = text.partition("=")
            allowed = "NAME=VALUE or NAME=LOW:HIGH, as auc=0.83"
            found[name.replace("-", "_")] = _goal("--target", text, goal, allowed)
        return found or {"calibration_slope": 0.9}


def _goal(option: str, text: str, goal: str, allowed: str) -> float | tuple[float, ...]:
    """A value or an interval; raise unless it is one."""
    try:
        ends = tuple(float(end) for end in goal.split(":"))
    except ValueError:
        ends = ()
    if len(ends) not in (1, 2):
        raise InvalidArgumentError(option, text, allowed)
    return ends if len(ends) == 2 else ends[0]


@command("sample-size", epilog=None)
@spread
def sample_size(
    *,
    chosen: PopulationOptions,
    goals: TargetOptions,
    regularisation: Annotated[
        str, typer.Option("--regularisation", "--lam", metavar="VALUE", help="λ, or optimal.")
    ] = "0",
    loss: Annotated[
        str | None,
        typer.Option(metavar="LOSS", help="As huber:delta=0.5; by default that of the outcome."),
    ] = None,
    n: Annotated[
        int | None, of_report("--n", metavar="N", help="A size whose performance to report, too.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes; by default one per core.")
    ] = None,
    finite_size: Annotated[
        bool | None,
        of_report(
            "--finite-size/--no-finite-size",
            help="Simulate studies of the size that is found, too; by default of few predictors.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        of_report(metavar="FILE", help="Write the report as .md or .html, or its curve as .csv."),
    ] = None,
    debug: Debug = False,
) -> None:
    """How many samples a prediction model needs, planned before there is data.

    For example: hiddenmanifold sample-size --prevalence .2 --auc .85 --predictors 10 --slope .9
    """
    from hiddenmanifold.cli.ingredient_options import ingredient
    from hiddenmanifold.cli.output import check_writable
    from hiddenmanifold.cli.work import undivided
    from hiddenmanifold.studies.sample_size import sample_size as needed

    if report is not None:
        if report.suffix not in (".md", ".html", ".csv"):
            raise InvalidArgumentError("--report", str(report), "a file .md, .html or .csv")
        check_writable(report)
    population, target = chosen.population(), goals.targets()
    try:
        penalty = regularisation if regularisation == "optimal" else float(regularisation)
    except ValueError:
        raise InvalidArgumentError(
            "--regularisation", regularisation, "a number or the word optimal"
        ) from None
    how = {"assurance": goals.assurance, "draws": goals.draws, "seed": goals.seed}
    how["finite_size"] = finite_size
    fit = {"loss": None if loss is None else ingredient("loss", loss), "regularisation": penalty}
    call = partial(needed, population, target=target, n=n, **fit)  # type: ignore[arg-type]
    found = undivided(partial(call, **how, workers=workers))
    typer.echo(str(found))
    if report is None:
        return
    if report.suffix == ".csv":
        found.curve.to_dataframe().to_csv(report, lineterminator="\n")
    else:
        text = found.to_html() if report.suffix == ".html" else found.to_markdown()
        report.write_text(text, encoding="utf-8", newline="\n")
