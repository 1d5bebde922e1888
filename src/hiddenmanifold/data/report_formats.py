"""A report as text, Markdown and HTML.

Names of columns, classes and files come from users, and some of them from strangers. Nothing of
them but letters reaches a format: control characters are dropped, and what has a meaning in
Markdown or HTML is escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from hiddenmanifold.versions import version

if TYPE_CHECKING:
    from hiddenmanifold.data.report import Report
    from hiddenmanifold.data.report_parts import Table

WIDTH = 88
"""Letters in a line of text."""
REFUSED = "Why nothing is predicted beyond the sample"
KEPT = "Why such predictions are refused, unless they are asked for"
CAUTION = "Caution"
IN_MARKDOWN = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]|~#$^"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}  # no mentions
)
LINKS = (("://", "&#58;//"), ("www.", "www&#46;"))
"""What begins a link in Markdown, and what only looks like it."""
JOINT = "\N{NO-BREAK SPACE}"
ALTERNATIVE = "error against the number of rows"
HERE = ' class="hm-here"'
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What the page may load: nothing."""
ALONE = """
svg { color: #1b1f24; font-family: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { color: #e6e9ed; } }
"""
PAGE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e6e9ed; } }
@media print { :root { --paper: #ffffff; --ink: #000000; } }
body { margin: 0; background: var(--paper); color: var(--ink); }
body > .hm-report { max-width: 44rem; margin: 0 auto; padding: 2.2rem 1.2rem 3rem; }
"""
STYLE = """
.hm-report { font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere; }
.hm-report h1 { font-size: 1rem; font-weight: 500; opacity: .72; margin: 0 0 .5rem; }
.hm-report h2 { font-size: 1rem; font-weight: 650; margin: 2rem 0 .5rem; }
.hm-report .hm-headline { font-size: 1.5rem; line-height: 1.3; font-weight: 650; margin: 0 0 .9rem;
  text-wrap: balance; }
.hm-report p { margin: 0 0 .5rem; }
.hm-report ul { margin: 0; padding-left: 1.1rem; } .hm-report li { margin: .2rem 0; }
.hm-report .hm-caution { border-left: 4px solid #d55e00; padding: .1rem 0 .1rem .9rem;
  margin: 1.2rem 0; }
.hm-report .hm-caution h2 { margin: 0 0 .2rem; }
.hm-report figure { margin: 1.4rem 0 0; max-width: 36rem; }
.hm-report svg { display: block; width: 100%; height: auto; }
.hm-report .hm-scroll { overflow-x: auto; }
.hm-report table { border-collapse: collapse; width: 100%; font-size: .92rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
.hm-report th, .hm-report td { padding: .35rem .8rem .35rem 0; text-align: left;
  vertical-align: top; font-weight: 400; background: none;
  border: 0 solid rgb(128 128 128 / .35); border-bottom-width: 1px; }
.hm-report .hm-numbers { overflow-wrap: normal; } .hm-report .hm-numbers td { white-space: nowrap; }
.hm-report thead th { font-weight: 650; vertical-align: bottom;
  border-bottom-color: rgb(128 128 128 / .9); }
.hm-report tbody th { white-space: nowrap; } .hm-report .hm-here > * { font-weight: 650; }
.hm-report .hm-names th { opacity: .72; width: 1%; padding-right: 1.6rem; }
.hm-report footer { margin-top: 2.2rem; font-size: .85rem; opacity: .72; }
@media (max-width: 30rem) {
  .hm-report { font-size: 15px; } .hm-report .hm-headline { font-size: 1.25rem; }
  .hm-report svg text { font-size: 16px; }
  .hm-report .hm-numbers { font-size: .8rem; }
  .hm-report .hm-numbers th, .hm-report .hm-numbers td { padding-right: .55rem; }
  .hm-report .hm-names tr > * { display: block; width: auto;
    border: 0; padding: 0; white-space: normal; }
  .hm-report .hm-names td { margin-bottom: .5rem; }
}
"""


def plain(words: str) -> str:
    """Words as letters alone: what moves a cursor or turns the order of letters is dropped."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _cautions(report: Report) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a reader must know before any number."""
    refused = KEPT if report.outlook else REFUSED
    for title, sentences in ((refused, report.refusals), (CAUTION, report.warnings)):
        if sentences:
            yield title, sentences


def text(report: Report) -> str:
    """The report for a terminal."""
    title = plain(report.title)
    lines = [title, "=" * min(len(title), WIDTH), "", *_wrapped(report.headline)]
    lines += [line for sentence in report.outlook for line in _wrapped(sentence)]
    for name, sentences in _cautions(report):
        lines += ["", name, *(line for one in sentences for line in _wrapped(one, "- "))]
    for table in report.tables:
        lines += ["", *_wrapped(table.title), *_aligned(table)]
    for part in report.remarks:
        lines += ["", part.title]
        lines += [line for one in part.sentences for line in _wrapped(one, "- ")]
    return "\n".join(lines)


def _joined(words: str) -> str:
    """Letters between which no line ends within a number, its bar and its per cents."""
    return plain(words).replace(" %", f"{JOINT}%").replace(" ± ", f"{JOINT}±{JOINT}")


def _wrapped(sentence: str, mark: str = "") -> list[str]:
    indent = " " * len(mark)
    lines = textwrap.wrap(
        _joined(sentence),
        WIDTH,
        initial_indent=mark,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [line.replace(JOINT, " ") for line in lines]


def _aligned(table: Table) -> Iterator[str]:
    """Cells below each other; numbers, under their headers, to the right."""
    rows = [[plain(cell) for cell in row] for row in (table.header, *table.rows) if row]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if table.header else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        yield f"  {'   '.join(cells)}".rstrip()


def markdown(report: Report, picture: str = "") -> str:
    """The report as Markdown, with a picture if there is a file of it beside."""
    lines = [f"# {_marked(report.title)}", "", f"**{_marked(report.headline)}**", ""]
    lines += [line for sentence in report.outlook for line in (_marked(sentence), "")]
    for name, sentences in _cautions(report):
        lines += [f"> **{name}**", ">", *(f"> - {_marked(one)}" for one in sentences), ""]
    if picture:
        lines += [f"![{ALTERNATIVE}]({quote(picture)})", ""]
    for table in report.tables:
        lines += [f"## {_marked(table.title)}", "", *_piped(table), ""]
    for part in report.remarks:
        lines += [f"## {_marked(part.title)}", "", *(f"- {_marked(s)}" for s in part.sentences), ""]
    return "\n".join([*lines, _made(), ""])


def _marked(words: str) -> str:
    marked = plain(words).translate(IN_MARKDOWN)
    for link, letters in LINKS:
        marked = marked.replace(link, letters)
    return marked


def _piped(table: Table) -> Iterator[str]:
    header = table.header or ("", "")
    align = "---:" if table.header else "---"
    for row in (header, (align,) * len(header), *table.rows):
        cells = row if set(row) == {align} else [_marked(cell) for cell in row]
        yield f"| {' | '.join(cells)} |"


def page(report: Report) -> str:
    """The report as one file of HTML."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_escaped(report.title)}</title><style>{PAGE}</style></head><body>",
            fragment(report),
            "</body></html>\n",
        ]
    )


def fragment(report: Report) -> str:
    """The report as a part of a page, whose colours it takes."""
    parts = [f'<article class="hm-report"><style>{STYLE}</style>']
    parts.append(f"<h1>{_escaped(report.title)}</h1>")
    parts.append(f'<p class="hm-headline">{_escaped(report.headline)}</p>')
    parts += [f"<p>{_escaped(sentence)}</p>" for sentence in report.outlook]
    for title, sentences in _cautions(report):
        parts.append(f'<section class="hm-caution"><h2>{title}</h2>{_list(sentences)}</section>')
    parts.append(f"<figure>{report.picture}</figure>")
    parts += [f"<h2>{_escaped(table.title)}</h2>{_table(table)}" for table in report.tables]
    parts += [f"<h2>{part.title}</h2>{_list(part.sentences)}" for part in report.remarks]
    return "\n".join([*parts, f"<footer>{_escaped(_made())}</footer></article>"])


def _escaped(words: str) -> str:
    return escape(_joined(words))


def _list(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{_escaped(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_escaped(cell)}</th>' for cell in table.header)
    rows = [
        f'<tr{HERE if i == table.here else ""}><th scope="row">{_escaped(row[0])}</th>'
        + "".join(f"<td>{_escaped(cell)}</td>" for cell in row[1:])
        for i, row in enumerate(table.rows)
    ]
    kind = "hm-numbers" if head else "hm-names"
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f'<div class="hm-scroll"><table class="{kind}">{top}{body}</table></div>'


def alone(picture: str) -> str:
    """A picture as a file of its own, which has colours of its own."""
    at = picture.index(">") + 1
    return f"{picture[:at]}<style>{ALONE}</style>{picture[at:]}\n"


def _made() -> str:
    return f"Made by hiddenmanifold {version('hiddenmanifold')}."
