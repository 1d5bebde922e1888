"""The layout of the page: controls, plot, simulation, export and data panel."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from hiddenmanifold.explorer.controls import CLASSES, HELD, Field, page_fields
from hiddenmanifold.explorer.presets import PRESETS
from hiddenmanifold.explorer.study_panel import FIELDS as OF_STUDY
from hiddenmanifold.explorer.upload import KINDS, MOST_BYTES, MOST_COLUMNS, MOST_ROWS, TOO_MUCH
from hiddenmanifold.plotting.style import COLOURS

STORES = (
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


def identity(role: str, name: str | int) -> dict[str, Any]:
    """The identity of a component in the page."""
    return {"role": role, "name": name}


def as_text(value: Any) -> str:
    """The text of a field from the value of its component."""
    if isinstance(value, list):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def as_value(name: str, text: str) -> Any:
    """The value of the component of a field from its text."""
    if is_flag(page_fields()[name]):
        return ["yes"] if text == "yes" else []
    return text


def is_flag(field: Field) -> bool:
    """Whether a field is a box to tick."""
    return field.options is not None and set(field.options) == {"no", "yes"}


def layout() -> Any:
    """The whole page."""
    controls = [
        _group("Regularisation and ratios", "regularisation", "hold", *HELD),
        _group("Axes", "mode", "x", "low", "high", "y", "y_low", "y_high", "log_x", "log_y"),
        _group("Features", "features", "activation", "projection"),
        _group("Labels and loss", "teacher", "loss", "intercept", "prediction"),
        _group("Reference lines", "threshold", "kernel", "bayes", "points"),
    ]
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            *(dcc.Store(id=name) for name in STORES),
            dcc.Download(id="download"),
            _header(),
            html.Main(
                [
                    html.Div(controls, className="controls", **{"aria-label": "controls"}),
                    html.Div(_shown(), className="shown"),
                ]
            ),
        ],
        className="page",
        style={f"--colour-{k}": colour for k, colour in enumerate(COLOURS)},
    )


def _header() -> Any:
    buttons = [
        html.Button(preset.title, id=identity("preset", k), title=preset.about, className="preset")
        for k, preset in enumerate(PRESETS)
    ]
    return html.Header(
        [
            html.H1("hiddenmanifold"),
            html.P(
                "Learning curves of random features and kernels, from high-dimensional theory",
                className="tagline",
            ),
            html.Details([html.Summary("Presets"), html.Div(buttons, className="presets")]),
            html.Button(
                "Plan a study", id="open-study", title="how many samples a study without data needs"
            ),
            html.Button("Light / dark", id="toggle-theme", title="switch the colours"),
        ]
    )


def _group(title: str, *names: str) -> Any:
    rows = []
    for name in names:
        rows.append(_row(page_fields()[name]))
        if name in CLASSES:
            inner = [f for f in page_fields().values() if f.name.startswith(f"{name}.")]
            rows += [_row(field) for field in inner]
    return html.Fieldset([html.Legend(title), *rows])


def _row(field: Field) -> Any:
    """A field with its label, its slider, and a place for error messages."""
    shape = "nested" if "." in field.name else "row"
    parts = [_component(field)]
    if not is_flag(field):
        parts.insert(0, html.Label(field.label, htmlFor=_flat(field)))
    if field.decades is not None:
        parts.append(_slider(field))
    if field.name == "regularisation":
        parts.append(_lam_buttons())
    parts.append(html.Span(id=identity("error", field.name), className="error", role="alert"))
    return html.Div(parts, id=identity("row", field.name), className=shape)


def _flat(field: Field) -> str:
    return f"field-{field.name.replace('.', '-')}"


def _component(field: Field) -> Any:
    name = identity("field", field.name)
    if is_flag(field):
        ticked = as_value(field.name, field.default)
        return dcc.Checklist([{"label": field.label, "value": "yes"}], ticked, id=name)
    if field.options is None:
        return html.Span(
            dcc.Input(
                id=name,
                type="text",
                value=field.default,
                debounce=0.4,
                autoComplete="off",
                spellCheck=False,
                maxLength=40,
            ),
            id=_flat(field),
            className="typed",
            **{"data-field": field.name},
        )
    options = [{"label": label, "value": value} for value, label in field.options.items()]
    if field.name not in (*CLASSES, "prediction") and "." not in field.name:
        few = dcc.RadioItems(options, field.default, id=name, className="radio")
        return html.Div(few, id=_flat(field), **{"data-field": field.name})
    chosen = dcc.Dropdown(options, field.default, id=name, clearable=False, searchable=False)
    return html.Div(chosen, id=_flat(field), **{"data-field": field.name})


def _slider(field: Field) -> Any:
    """A placeholder for a slider, which the browser creates."""
    assert field.decades is not None
    low, high = field.decades
    ends = {"data-low": low, "data-high": high, "data-label": field.label}
    return html.Span(className="slider", **{"data-field": field.name}, **ends)


def _lam_buttons() -> Any:
    return html.Span(
        [
            html.Button("0⁺", id=identity("lam", "0⁺"), title="the limit λ → 0⁺"),
            html.Button(
                "optimal", id=identity("lam", "optimal"), title="the λ with the smallest test error"
            ),
        ],
        className="buttons",
    )


def _shown() -> list[Any]:
    known = page_fields()
    graph = dcc.Graph(
        id="graph",
        responsive=True,
        config=CONFIG,
    )
    return [
        html.Div(_row(known["quantity"]), className="tabs"),
        html.Div(graph, className="graph"),
        html.P(id="sentence", className="sentence", **{"aria-live": "polite"}),
        html.P(id="trouble", className="error", role="alert"),
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
                html.Button("Cancel", id="cancel"),
                *(_row(known[name]) for name in ("d", "seeds", "dots")),
                html.Progress(id="progress", value="0", max="1"),
                html.Span(id="told", **{"aria-live": "polite"}),
            ],
            className="bar",
            id="simulation",
        ),
        _exports(),
        _study(),
        _own_data(),
    ]


def _study() -> Any:
    graph = dcc.Graph(id="study-graph", responsive=True, config=CONFIG)
    typed = [
        part
        for name, (words, value) in OF_STUDY.items()
        for part in _typed(f"study-{name}", words, value, "")
    ]
    files = [
        html.Button(words, id=identity("study-file", kind))
        for kind, words in (("html", "Save as a page"), ("md", "Save as Markdown"))
    ]
    return html.Details(
        [
            html.Summary("Plan a study: how many samples, before there are data"),
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
                    html.P(id="study-sentence", className="sentence", **{"aria-live": "polite"}),
                    html.Div(graph, className="graph"),
                    html.Div(files, className="bar"),
                    html.Div(id="study-report", className="report"),
                    html.H2("Python"),
                    html.Pre(id="study-python", tabIndex=0),
                    html.H2("Command line"),
                    html.Pre(id="study-command", tabIndex=0),
                ],
                id="studied",
                hidden=True,
            ),
        ],
        className="study",
    )


def _own_data() -> Any:
    graph = dcc.Graph(id="learning-graph", responsive=True, config=CONFIG)
    return html.Details(
        [
            html.Summary("Your own data: the error with more samples"),
            html.P(
                f"Upload a {' or '.join(KINDS)} file of at most {MOST_BYTES / 1e6:g} MB, "
                f"{MOST_ROWS} rows and {MOST_COLUMNS} columns, with a label column that "
                "holds numbers or classes. The model is ridge regression on standardised "
                "columns. The file stays on this machine and is not stored.",
                className="hint",
            ),
            html.Div(
                [
                    dcc.Upload(html.Button("Choose a file"), id="upload", multiple=False),
                    *_typed("label", "label column", "", "detect"),
                    *_typed("positive", "one class against the others", "", "all classes"),
                    html.Label("task", htmlFor="task"),
                    dcc.RadioItems(TASKS, "", id="task", className="radio"),
                    *_typed("gain", "target: error lower by (%)", "10", ""),
                    html.Span(id="learning-told", **{"aria-live": "polite"}),
                ],
                className="bar",
            ),
            html.Div(
                [
                    html.Div(graph, className="graph"),
                    html.P(id="learning-sentence", className="sentence", **{"aria-live": "polite"}),
                    html.Div(html.Button("Save this report", id="save-report"), className="bar"),
                    html.Div(id="learning-report", className="report"),
                    html.Pre(id="learning-python", tabIndex=0),
                ],
                id="learned",
                hidden=True,
            ),
        ],
        className="own",
        **{"data-most": MOST_BYTES, "data-more": TOO_MUCH},  # before a larger file is sent
    )


def _typed(name: str, words: str, value: str, placeholder: str) -> list[Any]:
    options = {"debounce": True, "maxLength": 100, "autoComplete": "off"}
    typed = dcc.Input(id=name, type="text", value=value, placeholder=placeholder, **options)
    return [html.Label(words, htmlFor=name), html.Span(typed, className="typed")]


def _exports() -> Any:
    return html.Details(
        [
            html.Summary("Export"),
            html.Div(
                [
                    *(html.Button(k.upper(), id=identity("image", k)) for k in ("png", "svg")),
                    html.Button("CSV", id="csv"),
                ],
                className="bar",
            ),
            html.H2("Python"),
            html.Pre(id="python", tabIndex=0),
            dcc.Clipboard(target_id="python", title="copy the program", className="copy"),
            html.H2("Command line"),
            html.Pre(id="commands", tabIndex=0),
            dcc.Clipboard(target_id="commands", title="copy the commands", className="copy"),
        ],
        className="exports",
    )
