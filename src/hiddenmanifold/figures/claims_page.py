"""The paper's figures and claims in one page of HTML that needs nothing else."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import chain
from pathlib import Path

from hiddenmanifold.figures import MODULES, stem
from hiddenmanifold.figures.claims.judgement import DIFFERS, HOLDS, REMARK, Row
from hiddenmanifold.versions import version

STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
h1, h2, figcaption, th { font-family: system-ui, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
figure { margin: 2rem 0; text-align: center; } figure img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th { text-align: left; border-bottom: 2px solid #222; } td { border-bottom: 1px solid #ddd; }
th, td { padding: .35rem .5rem; vertical-align: top; }
td.verdict { white-space: nowrap; font-weight: 600; }
.holds { color: #1a7f37; } .remark { color: #9a6700; } .differs { color: #b3261e; }
"""
CLASSES = {HOLDS: "holds", REMARK: "remark", DIFFERS: "differs"}


def write(path: Path | str, rows: Sequence[Row], figures: Path | str) -> Path:
    """Write the claims, as `claims.check` returns them, and the figures as a file of HTML.

    Of the figures that are in their directory as PNG a full one goes before a quick one; those that
    are not there are left out, and named.
    """
    path, figures = Path(path), Path(figures)
    drawn = {n: tuple(_figure(n, figures)) for n in MODULES}
    missing = [str(n) for n, lines in drawn.items() if not lines]
    counts = Counter(row.verdict for row in rows)
    summary = ", ".join(f"{counts[v]} {v}" for v in CLASSES if counts[v])
    page = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>The paper, reproduced</title>",
        f"<style>{STYLE}</style></head><body>",
        "<h1>Generalisation error in learning with random features and the hidden manifold model",
        "</h1><p>The figures and claims of Gerace, Loureiro, Krzakala, Mézard and Zdeborová (ICML",
        f"2020), computed by hiddenmanifold {escape(version('hiddenmanifold'))}. Lines are theory,",
        "points are simulations with their standard errors.</p>",
        f"<h2>Claims of the text</h2><p>{escape(summary)}.</p>",
        *_table(rows),
        "<h2>Figures</h2>",
        *chain.from_iterable(drawn.values()),
    ]
    if missing:
        page.append(f"<p>Not drawn yet: figures {', '.join(missing)}.</p>")
    text = "\n".join([*page, "</body></html>\n"])
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _table(rows: Sequence[Row]) -> Iterable[str]:
    yield "<table><thead><tr><th>claim</th><th>text</th><th>computed</th><th>verdict</th></tr>"
    yield "</thead><tbody>"
    for row in rows:
        note = f"<br><small>{escape(row.note)}</small>" if row.note else ""
        yield (
            f"<tr><td>{escape(row.claim)}</td><td>{escape(row.expected)}</td>"
            f"<td>{escape(row.computed)}{note}</td>"
            f'<td class="verdict {CLASSES[row.verdict]}">{escape(row.verdict)}</td></tr>'
        )
    yield "</tbody></table>"


def _figure(number: int, directory: Path) -> Iterable[str]:
    """The full picture, or else the quick one, or else nothing."""
    for quick in (False, True):
        file = directory / f"{stem(number, quick=quick)}.png"
        if file.exists():
            data = base64.b64encode(file.read_bytes()).decode()
            title = escape(MODULES[number].TITLE)
            size = " (quick)" if quick else ""
            yield f'<figure><img src="data:image/png;base64,{data}" alt="{title}">'
            yield f"<figcaption>Figure {number}. {title}{size}</figcaption></figure>"
            return
