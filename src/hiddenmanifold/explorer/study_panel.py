"""A study that is planned on the page: how many samples, a picture of it, and its report."""

from __future__ import annotations

from typing import Any

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.explorer.elements import element, listed, table
from hiddenmanifold.explorer.plots import GREY, LAYOUT, axis, scatter, vertical_line
from hiddenmanifold.explorer.worker_pool import elsewhere
from hiddenmanifold.plotting.style import COLOURS

FIELDS = {
    "prevalence": ("prevalence of the event", "0.2"),
    "auc": ("AUC of the true model", "0.85"),
    "predictors": ("candidate predictors", "10"),
    "slope": ("calibration slope to reach", "0.9"),
}
"""What is asked for: its words, and a value to begin with."""
MOST_PREDICTORS = 1000
MOST_SECONDS = 60.0
"""When a calculation is ended; only simulated studies of many samples take so long."""
SHOWN = {"calibration_slope": "calibration slope", "auc": "AUC"}
HOVER = "n = %{x:.4g}: %{y:.4g}"


def planned(texts: dict[str, str]) -> dict[str, Any]:
    """The study of some typed numbers: a figure, what stands below it, files and programs.

    Raises
    ------
    HiddenManifoldError
        If a number makes no sense, or the target cannot be reached.
    """
    given = {name: _number(name, text) for name, text in texts.items()}
    if not 1 <= given["predictors"] <= MOST_PREDICTORS or given["predictors"] % 1:
        raise hm.InvalidArgumentError(
            "predictors", given["predictors"], f"a whole number from 1 to {MOST_PREDICTORS}"
        )
    *_, report = elsewhere(_sample_size, given, seconds=MOST_SECONDS)
    assert report is not None
    return {
        **_figure(report, given["slope"]),
        "sentence": report.sentence,
        "report": _below(report),
        "files": {"html": report.to_html(), "md": report.to_markdown()},
        "python": _program(given),
        "command": _command(given),
    }


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise hm.InvalidArgumentError(name, text, "a number") from None


def _sample_size(given: dict[str, float]) -> Any:
    population = hm.Population(
        prevalence=given["prevalence"], auc=given["auc"], predictors=int(given["predictors"])
    )
    target = {"calibration_slope": given["slope"]}
    return hm.sample_size(population, target=target, workers=1, progress=False)


def _figure(report: Any, slope: float) -> dict[str, Any]:
    """Slope and AUC along n, the target, the n found, and what simulated studies reach."""
    curve, traces = report.curve, []
    ends = np.array([float(curve.n.min()), float(curve.n.max())])
    for k, (name, words) in enumerate(SHOWN.items()):
        line = {"color": COLOURS[k], "width": 2.5, "shape": "spline"}
        values = curve.n.values, curve[name].values
        traces.append(scatter(*values, words, line=line, hovertemplate=HOVER))
    line = {"color": GREY, "width": 1.5, "dash": "dash"}
    traces.append(scatter(ends, np.full(2, slope), f"target: {slope:g}", line=line))
    if report.simulated is not None:
        one = report.simulated["calibration_slope"]
        traces.append(
            scatter(
                np.array([report.n]),
                np.array([one.mean]),
                "simulated studies, ± deviation",
                mode="markers",
                marker={"size": 9, "color": COLOURS[0]},
                error_y={"type": "data", "array": [one.deviation], "color": COLOURS[0]},
                hovertemplate=HOVER,
            )
        )
    words = f" n = {report.n} "
    return {
        "data": traces,
        "layout": LAYOUT
        | {
            "xaxis": axis("number of samples, n", True, np.log10(ends).tolist()),
            "yaxis": axis("calibration slope, AUC", False, None),
        },
        **vertical_line(report.n, words, "left", logarithmic=True),
    }


def _below(report: Any) -> list[Any]:
    """Tables and notes as components of the page."""
    parts = []
    for title, header, rows in report.tables:
        parts += [element("H2", title), table(header, rows)]
    parts += [element("H2", "Notes"), listed(report.notes)]
    return [*parts, element("H2", "For the paper"), element("P", report.paragraph)]


def _program(given: dict[str, float]) -> str:
    """A Python program that makes the same report."""
    return (
        "import hiddenmanifold as hm\n\n"
        f"population = hm.Population(prevalence={given['prevalence']:g}, auc={given['auc']:g}, "
        f"predictors={given['predictors']:g})\n"
        f'report = hm.sample_size(population, target={{"calibration_slope": {given["slope"]:g}}})\n'
        "print(report)\n"
    )


def _command(given: dict[str, float]) -> str:
    """The command that prints it."""
    options = " ".join(f"--{name} {value:g}" for name, value in given.items())
    return f"hiddenmanifold sample-size {options}\n"
