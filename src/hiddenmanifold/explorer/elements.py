"""Words, lists and tables as components of the page, which are text to a browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def element(kind: str, children: Any, **properties: str) -> dict[str, Any]:
    """An element as Dash sends it to the browser, in plain JSON."""
    props = {"children": children, **properties}
    return {"namespace": "dash_html_components", "type": kind, "props": props}


def listed(sentences: Iterable[str]) -> dict[str, Any]:
    """Sentences as a list."""
    return element("Ul", [element("Li", sentence) for sentence in sentences])


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], here: int | None = None
) -> dict[str, Any]:
    """A table, one row of which may stand out."""
    head = [element("Thead", _row("Th", header))] if header else []
    marked = [_row("Td", row, className="here" if i == here else "") for i, row in enumerate(rows)]
    made = element("Table", [*head, element("Tbody", marked)], className="numbers" if head else "")
    wide = {"tabIndex": "0", "role": "group", "aria-label": "table"}  # scrolled by keys
    return element("Div", made, className="table", **wide)


def _row(kind: str, cells: Sequence[str], **properties: str) -> dict[str, Any]:
    return element("Tr", [element(kind, cell) for cell in cells], **properties)
