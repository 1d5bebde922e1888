"""Controls as components: a place for each, which the browser fills with native elements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dash import dcc, html

from hiddenmanifold.explorer.controls import CLASSES, Field, page_fields

PLAIN = ("x", "y", "mode", "hold")
"""Choices among a few, all of which are in sight."""


def identity(role: str, name: str | int) -> dict[str, Any]:
    """The identity of a component in the page."""
    return {"role": role, "name": name}


def group(title: str, *names: str, opened: bool = True) -> Any:
    """Controls below a title that folds them."""
    rows: list[Any] = []
    for name in names:
        rows.append(row(page_fields()[name]))
        inner = [f for f in page_fields().values() if f.name.startswith(f"{name}.")]
        if name in CLASSES and inner:
            folded = [html.Summary(f"parameters of the {name}"), *map(row, inner)]
            rows.append(html.Details(folded, className="more"))
    return html.Details([html.Summary(title), *rows], open=opened, className="group")


def row(field: Field) -> Any:
    """A field with its label, help, slider, and a place for error messages."""
    parts = [*_labelled(field)]
    if field.decades is not None:
        parts.append(_slider(field))
    if field.name == "regularisation":
        parts.append(_limits())
    parts.append(html.Span(className="error", role="alert"))
    return html.Div(parts, className="row", **{"data-field": field.name})


def _labelled(field: Field) -> list[Any]:
    helped = [_help(field)] if field.about else []
    if field.options is None:
        return [
            html.Span([html.Label(field.label, htmlFor=_text_id(field)), *helped]),
            _typed(field),
        ]
    if field.flag:
        return [html.Span([*choice(field.name, field.label, field.options, "check"), *helped])]
    radio = field.name in PLAIN
    label = html.Label(
        field.label, id=f"label-{_flat(field)}", htmlFor=None if radio else _flat(field)
    )
    kind = "radio" if radio else "select"
    return [html.Span([label, *helped]), *choice(field.name, field.label, field.options, kind)]


def choice(
    name: str, label: str, options: Mapping[str, str], kind: str, plain: str = ""
) -> list[Any]:
    """The value of a choice, and the place of its native element: check, radio or select.

    With `plain` the value has this identity of its own, beside the fields of a view.
    """
    default = next(iter(options)) if plain else page_fields()[name].default
    told = {
        "data-field": name,
        "data-kind": kind,
        "data-label": label,
        "data-options": json.dumps(list(options.items())),
    }
    value = html.Data(id=plain or identity("field", name), value=default, hidden=True)
    return [value, html.Span(className=f"choice {kind}", **told)]


def _flat(field: Field) -> str:
    return f"field-{field.name.replace('.', '-')}"


def _text_id(field: Field) -> str:
    """The identity as the browser knows it."""
    return json.dumps(identity("field", field.name), sort_keys=True, separators=(",", ":"))


def _typed(field: Field) -> Any:
    typed = dcc.Input(
        id=identity("field", field.name),
        type="text",
        value=field.default,
        debounce=0.4,
        autoComplete="off",
        spellCheck=False,
        maxLength=40,
    )
    told = {"data-field": field.name, "data-default": field.default}
    return html.Span(typed, className="typed", **told)


def _help(field: Field) -> Any:
    about = {"data-about": field.about, "aria-label": f"What is {field.label}?"}
    return html.Button("?", className="help", **about)


def _slider(field: Field) -> Any:
    """A placeholder for a slider, which the browser creates."""
    assert field.decades is not None
    low, high = field.decades
    ends = {"data-low": low, "data-high": high, "data-label": field.label}
    return html.Span(className="slider", **{"data-field": field.name}, **ends)


def _limits() -> Any:
    return html.Span(
        [
            html.Button("0⁺", id=identity("lam", "0⁺"), title="the limit λ → 0⁺"),
            html.Button(
                "optimal", id=identity("lam", "optimal"), title="the λ with the smallest test error"
            ),
        ],
        className="buttons",
    )
