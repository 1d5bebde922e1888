"""The claims of the paper's text, numbers and statements, each beside the computed result.

Each module holds the claims of one subject; `judgement` says when a claim holds.
"""

from __future__ import annotations

from collections.abc import Callable

from hiddenmanifold.figures.claims import double_descent, equivalence, features, manifold
from hiddenmanifold.figures.claims.judgement import COLOURS, DIFFERS, HOLDS, REMARK, Row
from hiddenmanifold.parallel.progress import Progress

__all__ = ["CHECKS", "COLOURS", "DIFFERS", "HOLDS", "REMARK", "Row", "check"]

CHECKS: tuple[Callable[[], Row], ...] = (
    *equivalence.CLAIMS,
    *double_descent.CLAIMS,
    *features.CLAIMS,
    *manifold.CLAIMS,
)
"""Every check, in the order of the text."""


def check(progress: bool = False) -> list[Row]:
    """Check every claim, in the order of the text, maybe with a progress bar."""
    rows = []
    with Progress(progress, "checking the claims").of([1.0] * len(CHECKS)) as shown:
        for one in CHECKS:
            rows.append(one())
            shown.advance()
    return rows
