"""The layout of the page: three areas, which are curves, the plan of a study, and your own data."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from hiddenmanifold.explorer.controls import HELD, page_fields
from hiddenmanifold.explorer.fields_layout import choice, group, identity, row
from hiddenmanifold.explorer.presets import GROUPS
from hiddenmanifold.explorer.study_panel import FIELDS as OF_STUDY
from hiddenmanifold.explorer.upload import (
    KINDS,
    LOSSES,
    MOST_BYTES,
    MOST_COLUMNS,
    MOST_ROWS,
    TOO_MUCH,
)
from hiddenmanifold.plotting.style import COLOURS

STORES = (
    "marks",
    "visited",
    "study",
    "drawing",
    "references",
    "dots",
    "pins",
    "address",
    "theme",
    "simulable",
    "learning",
)
AREAS = {"explore": "Explore", "study": "Plan a study", "data": "Your data"}
TASKS = {"": "detect", "regression": "regression", "classification": "classification"}
CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "plotlyServerURL": "",
    # an explicit list, because one of plotly's default buttons uploads the figure
    "modeBarButtons": [
        ["toImage"],
        ["zoom2d", "pan2d"],
        ["zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d"],
    ],
}
POLITE = {"aria-live": "polite"}


def layout() -> Any:
    """The whole page."""
    controls = [
        group("What varies", "regularisation", "x", "hold", *HELD),
        group("Features", "features", "activation", "projection"),
        group("Labels and loss", "teacher", "loss", "intercept", "prediction"),
        group(
            "Axes", "mode", "low", "high", "y", "y_low", "y_high", "log_x", "log_y", opened=False
        ),
        group("Lines and points", "threshold", "kernel", "bayes", "points", opened=False),
    ]
    explore = [
        html.Div(controls, className="controls", role="group", **{"aria-label": "controls"}),
        html.Div(_shown(), className="shown"),
    ]
    areas = {"explore": explore, "study": _study(), "data": _own_data()}
    return html.Div(
        [
            *(dcc.Store(id=name) for name in STORES),
            dcc.Download(id="download"),
            _header(),
            html.Main([_area(name, parts) for name, parts in areas.items()]),
        ],
        id="page",
        className="page",
        style={f"--colour-{k}": colour for k, colour in enumerate(COLOURS)},
    )


def _area(name: str, parts: list[Any]) -> Any:
    return html.Section(parts, id=f"area-{name}", className="area", **{"aria-label": AREAS[name]})


def _header() -> Any:
    groups = []
    for title, presets in GROUPS.items():
        links = [
            html.A(
                [html.B(one.title), html.Span(one.about)], href=f"?{one.query}", className="preset"
            )
            for one in presets
        ]
        groups.append(html.Section([html.H2(title), *links]))
    links = [
        html.A(title, href=f"#{name}", className="area-link", **{"data-area": name})
        for name, title in AREAS.items()
    ]
    return html.Header(
        [
            html.H1("hiddenmanifold"),
            html.P("Exact learning curves in high dimensions", className="tagline"),
            html.Nav(links, **{"aria-label": "areas"}),
            html.Details(
                [html.Summary("Presets"), html.Div(html.Div(groups), className="presets")],
                className="menu",
            ),
            html.Button("Light / dark", id="toggle-theme", title="switch the colours"),
        ]
    )


def _graph(name: str) -> Any:
    return dcc.Graph(id=name, responsive=True, config=CONFIG)


def _shown() -> list[Any]:
    known = page_fields()
    questions = known["quantity"]
    return [
        html.Div(
            choice("quantity", questions.label, questions.options or {}, "radio"), className="tabs"
        ),
        html.Div(
            [
                row(known["time"]),
                html.Button("▶ Play", id="play", className="strong"),
            ],
            className="bar playing",
        ),
        html.Div(row(known["independent"]), className="bar"),
        html.Div(_graph("graph"), className="graph"),
        html.P(id="trouble", className="error", role="alert"),
        html.P(id="sentence", className="sentence", **POLITE),
        html.Div(
            [
                html.Button(
                    "Pin this curve", id="pin", title="keep this curve to compare it with others"
                ),
                html.Div(id="pinned", className="pinned"),
            ],
            className="bar",
        ),
        html.Div(
            [
                html.Button("Simulate", id="simulate", className="strong"),
                *(row(known[name]) for name in ("d", "seeds", "dots")),
                html.Button("Cancel", id="cancel"),
                html.Progress(id="progress", value="0", max="1", **{"aria-label": "points done"}),
                html.Span(id="told", **POLITE),
            ],
            className="bar",
            id="simulation",
        ),
        _exports(),
    ]


def _study() -> list[Any]:
    typed = [_typed(f"study-{name}", words, value, "") for name, (words, value) in OF_STUDY.items()]
    files = [
        html.Button(words, id=identity("study-file", kind))
        for kind, words in (("html", "Save as a page"), ("md", "Save as Markdown"))
    ]
    return [
        html.H2("Plan a study: how many samples, before there are data"),
        html.P(
            "For a logistic regression that predicts an event from candidate predictors: the "
            "number of samples with which a typical study reaches the calibration slope.",
            className="hint",
        ),
        html.Div(
            [
                *typed,
                html.Button("Calculate", id="plan-study", className="strong"),
                html.Span(id="study-told", className="error", role="alert"),
            ],
            className="bar",
        ),
        html.Div(
            [
                html.P(id="study-sentence", className="headline", **POLITE),
                html.Div(_graph("study-graph"), className="graph"),
                html.Div(files, className="bar"),
                _folded("The whole report", html.Div(id="study-report", className="report")),
                _folded("Python", *_program("study-python")),
                _folded("Command line", *_program("study-command")),
            ],
            id="studied",
            className="found",
            hidden=True,
        ),
    ]


def _own_data() -> list[Any]:
    return [
        html.H2("Your own data: the error with more samples"),
        html.P(
            f"Upload a {' or '.join(KINDS)} file of at most {MOST_BYTES / 1e6:g} MB, "
            f"{MOST_ROWS} rows and {MOST_COLUMNS} columns, with a label column that "
            "holds numbers or classes. The model is linear in the standardised "
            "columns. The file stays on this machine and is not stored.",
            className="hint",
        ),
        html.Div(
            [
                html.Label("your table", htmlFor="field-upload"),
                html.Span(id="upload", **{"data-kinds": ",".join(KINDS)}),
                _typed("label", "label column", "", "detect"),
                _typed("positive", "one class against the others", "", "all classes"),
                _chosen("task", TASKS),
                _chosen("fit", LOSSES, "loss"),
                _typed("gain", "target: error lower by (%)", "10", ""),
                html.Span(id="learning-told", **POLITE),
            ],
            className="bar",
            id="uploading",
            **{"data-most": MOST_BYTES, "data-more": TOO_MUCH},  # before a larger file is sent
        ),
        html.Div(
            [
                html.P(
                    [html.B(id="learning-number"), html.Span(id="learning-words")],
                    className="number",
                ),
                html.P(id="learning-sentence", className="headline", **POLITE),
                html.P(id="learning-loss", className="told"),
                html.Div(_graph("learning-graph"), className="graph"),
                html.Div(html.Button("Save this report", id="save-report"), className="bar"),
                _folded("The whole report", html.Div(id="learning-report", className="report")),
                _folded("Python", *_program("learning-python")),
            ],
            id="learned",
            className="found",
            hidden=True,
        ),
    ]


def _folded(title: str, *parts: Any) -> Any:
    return html.Details([html.Summary(title), *parts])


def _typed(name: str, words: str, value: str, placeholder: str) -> Any:
    options = {"debounce": True, "maxLength": 100, "autoComplete": "off"}
    typed = dcc.Input(id=name, type="text", value=value, placeholder=placeholder, **options)
    label = html.Label(words, htmlFor=name)
    return html.Span([label, html.Span(typed, className="typed")], className="labelled")


def _chosen(name: str, options: dict[str, str], words: str = "") -> Any:
    label = html.Label(words or name, htmlFor=f"field-{name}")
    parts = choice(name, words or name, options, "select", plain=name)
    return html.Span([label, *parts], className="labelled")


def _exports() -> Any:
    pictures = [html.Button(k.upper(), id=identity("image", k)) for k in ("png", "svg")]
    return _folded(
        "Export",
        html.Div([*pictures, html.Button("CSV", id="csv")], className="bar"),
        html.H2("Python"),
        *_program("python"),
        html.H2("Command line"),
        *_program("commands"),
    )


def _program(name: str) -> list[Any]:
    """A text to copy."""
    copy = html.Button("Copy", className="copy", **{"data-copy": name})
    return [html.Pre(id=name, tabIndex=0), copy]
