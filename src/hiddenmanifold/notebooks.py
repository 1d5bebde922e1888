"""Small HTML tables by which notebooks show objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from hiddenmanifold.errors import shown

LONGEST = 200
"""Letters of a value that are shown."""
LEFT = 'style="text-align: left"'


def table(title: str, rows: Mapping[str, object], note: str = "") -> str:
    """Named values, one in a row; both are escaped, as they may come from a file."""
    lines = [
        f"<tr><th scope='row' {LEFT}>{escape(name.replace('_', ' '))}</th>"
        f"<td {LEFT}>{escape(_text(value))}</td></tr>"
        for name, value in rows.items()
    ]
    return _whole(title, "", lines, note)


def columns(
    title: str, names: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
) -> str:
    """A table with a row of names above."""
    heads = "".join(f"<th scope='col' {LEFT}>{escape(name)}</th>" for name in names)
    lines = [
        f"<tr>{''.join(f'<td {LEFT}>{escape(_text(value))}</td>' for value in row)}</tr>"
        for row in rows
    ]
    return _whole(title, f"<thead><tr>{heads}</tr></thead>", lines, note)


def _whole(title: str, head: str, lines: Sequence[str], note: str) -> str:
    below = f"<p>{escape(note)}</p>" if note else ""
    body = f"<table>{head}<tbody>{''.join(lines)}</tbody></table>"
    return f"<div><p><strong>{escape(title)}</strong></p>{body}{below}</div>"


def _text(value: object) -> str:
    """A value in one line; sentences and names without the quotes of Python."""
    if isinstance(value, str):
        return value
    return f"{value:.4g}" if isinstance(value, float) else shown(value, LONGEST)
