"""Callbacks of the page: fields are read, a view is drawn, pinned, described and exported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from dash import (
    ALL,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    html,
    no_update,
    set_props,
)
from dash.exceptions import PreventUpdate

import hiddenmanifold as hm
from hiddenmanifold.explorer import exports, plots, study_panel
from hiddenmanifold.explorer.adapt import adapted
from hiddenmanifold.explorer.controls import page_fields
from hiddenmanifold.explorer.fields_layout import identity
from hiddenmanifold.explorer.parse import read, views_of
from hiddenmanifold.explorer.presets import OPENING
from hiddenmanifold.explorer.view import (
    MOST_PINS,
    View,
    possible_holds,
    relevant,
    texts_of,
)

FIELDS = identity("field", ALL)
STUDIED = ("sentence", "report", "python", "command")
"""Parts of the plan of a study below its fields."""


def register(app: Dash) -> None:
    """Connect the page with what it shows."""

    def on(*parts: Any, **options: Any) -> Callable[..., Any]:
        return app.callback(*parts, **options)  # type: ignore[no-any-return]

    on(
        Output(FIELDS, "value"),
        Output("pins", "data"),
        Input("visited", "data"),
    )(fill)
    on(
        Output("drawing", "data"),
        Output("address", "data"),
        Output("trouble", "children"),
        Output("marks", "data"),
        Output("pinned", "children"),
        Output("simulation", "hidden"),
        Output("pin", "hidden"),
        Input(FIELDS, "value"),
        Input("pins", "data"),
        State(FIELDS, "id"),
    )(redraw)
    on(
        Output("python", "children"),
        Output("commands", "children"),
        Input("address", "data"),
        Input("simulable", "data"),
    )(reproduce)
    on(
        Output("pins", "data", allow_duplicate=True),
        Input("pin", "n_clicks"),
        Input(identity("unpin", ALL), "n_clicks"),
        State("address", "data"),
        prevent_initial_call=True,
    )(pin)
    on(
        Output("download", "data"),
        Input("csv", "n_clicks"),
        State("address", "data"),
        State("dots", "data"),
        prevent_initial_call=True,
    )(save_csv)
    on(
        Output("study", "data"),
        Output("study-told", "children"),
        Output("studied", "hidden"),
        *(Output(f"study-{part}", "children") for part in STUDIED),
        Input("plan-study", "n_clicks"),
        *(Input(f"study-{name}", "n_submit") for name in study_panel.FIELDS),
        *(State(f"study-{name}", "value") for name in study_panel.FIELDS),
        prevent_initial_call=True,
    )(plan_study)
    _in_the_browser(app)


def _in_the_browser(app: Dash) -> None:
    """What needs no server: sliders, colours, pictures, and the stream of dots."""

    def here(name: str, *parts: Any, **options: Any) -> None:
        file, _, function = name.rpartition(".")
        own = ClientsideFunction(file or "explorer", function)
        app.clientside_callback(own, *parts, **options)

    theme = Input("theme", "data")
    stores = [Input(n, "data") for n in ("drawing", "references", "dots")]
    here("draw", Output("graph", "figure"), *stores, theme)
    here("arrive", Output("visited", "data"), Input("page", "id"))
    here("remember", Input("address", "data"))
    later = {"prevent_initial_call": True}
    here("controls.follow", Input(FIELDS, "value"), State(FIELDS, "id"))
    here("controls.mark", Input("marks", "data"))
    here("controls.limit", Input(identity("lam", ALL), "n_clicks"), **later)
    here("theme", Output("theme", "data"), Input("toggle-theme", "n_clicks"))
    here("picture", Input(identity("image", ALL), "n_clicks"), **later)
    asked = [Input(name, "value") for name in ("label", "task", "gain", "positive", "fit")]
    here("learn", *asked)
    here("saveReport", Input("save-report", "n_clicks"), State("learning", "data"), **later)
    here("drawLearning", Output("learning-graph", "figure"), Input("learning", "data"), theme)
    here("drawLearning", Output("study-graph", "figure"), Input("study", "data"), theme)
    files = Input(identity("study-file", ALL), "n_clicks")
    here("saveStudy", files, State("study", "data"), **later)
    here("simulate", Input("simulate", "n_clicks"), State("address", "data"), **later)
    here("cancel", Input("cancel", "n_clicks"), **later)


def fill(visited: str | None) -> Any:
    """The values of all fields from an address; the usual first view if it is empty."""
    texts, pins = texts_of((visited or "").lstrip("?") or OPENING.query)
    wanted = [output["id"]["name"] for output in ctx.outputs_list[0]]
    return [texts[name] for name in wanted], pins


def redraw(values: list[Any], pins: list[str] | None, ids: list[dict[str, str]]) -> Any:
    """The figure and the address of what the fields say, or what is allowed in them."""
    given = {one["name"]: "" if v is None else str(v) for one, v in zip(ids, values, strict=True)}
    texts = adapted(given, [one["name"] for one in _triggered()])
    for name, text in texts.items():
        if text != given[name]:
            set_props(identity("field", name), {"value": text})
    reading, matters = read(texts), relevant(texts)
    # the browser marks the rows: an output for each of them costs Dash seconds on opening
    marks = {"errors": reading.complaints, "matters": sorted(matters)}
    view, trouble = reading.view, _trouble(reading.complaints)
    if view is not None:
        beside = views_of(urlencode([("pin", query) for query in pins or []]))[1]
        try:
            figure = {**plots.figure(view, beside), "holds": possible_holds(texts)}
            after = _chips(view, beside), not view.simulable, not plots.comparable(view, view)
            return figure, figure["address"], "", marks, *after
        except hm.HiddenManifoldError as error:
            trouble = f"{error}."
        except Exception as error:  # the page says so, and goes on
            logging.getLogger(__name__).exception("a view could not be drawn")
            trouble = f"This should not happen, please report it: {type(error).__name__}: {error}"
    return no_update, no_update, trouble, marks, *[no_update] * 3


def _trouble(complaints: Mapping[str, str]) -> str:
    """Why the last view that made sense is still shown."""
    known = page_fields()
    said = [f"{known[name].label} must be {allowed}" for name, allowed in complaints.items()]
    return f"Not drawn: {'; '.join(said)}." if said else ""


def _triggered() -> list[dict[str, Any]]:
    found = [ctx.triggered_prop_ids[prop] for prop in ctx.triggered_prop_ids]
    return [one for one in found if isinstance(one, dict)]


def _shown(address: str | None) -> tuple[View, list[View]]:
    """The view of an address, and those pinned beside it."""
    view, pins = views_of(address or "")
    if view is None:
        raise PreventUpdate
    return view, pins


def _chips(view: View, pins: list[View]) -> Any:
    names = plots.names([view, *pins])[1:]
    return [
        html.Button(
            f"{name if plots.comparable(one, view) else name + ' (not drawn in this view)'} ✕",
            id=identity("unpin", k),
            title="remove this curve",
            className="chip",
        )
        for k, (one, name) in enumerate(zip(pins, names, strict=True))
    ]


def pin(_: Any, __: Any, address: str | None) -> Any:
    """Keep the curve of the view, or forget a kept one."""
    texts, pins = texts_of(address or "")
    if not any(trigger["value"] for trigger in ctx.triggered):  # a button that was just made
        raise PreventUpdate
    if isinstance(ctx.triggered_id, dict):
        return [query for k, query in enumerate(pins) if k != ctx.triggered_id["name"]]
    view = read(texts).view
    if view is None or not plots.comparable(view, view):
        raise PreventUpdate
    if len(pins) == MOST_PINS:
        set_props("trouble", {"children": f"No more than {MOST_PINS} curves can be pinned."})
        raise PreventUpdate
    return [*pins, view.query]


def reproduce(address: str | None, dots: Any) -> tuple[str, str]:
    """The program and the commands that reproduce the view."""
    view, pins = _shown(address)
    simulated = dots == view.setting
    return (
        exports.python(view, pins, dots=simulated),
        exports.commands(view, pins, dots=simulated),
    )


def save_csv(_: Any, address: str | None, dots: Any) -> Any:
    """The numbers of the view as a file."""
    view, pins = _shown(address)
    own = dots if dots and dots.get("setting") == view.setting else None
    return {"content": exports.csv(view, pins, own), "filename": "view.csv", "type": "text/csv"}


def plan_study(*given: Any) -> Any:
    """The plan of a study, or why there is none."""
    typed = given[-len(study_panel.FIELDS) :]  # after what was pressed
    texts = {name: text or "" for name, text in zip(study_panel.FIELDS, typed, strict=True)}
    try:
        found = study_panel.planned(texts)
    except hm.HiddenManifoldError as error:
        return no_update, f"{error}.", no_update, *[no_update] * len(STUDIED)
    parts = [found.pop(part) for part in STUDIED]
    return found, "", False, *parts
