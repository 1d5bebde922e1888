"""What the paper's text says, number by number and statement by statement, and what is computed."""

from __future__ import annotations

from collections.abc import Callable

from hiddenmanifold.figures.claims import double_descent, equivalence, features, manifold
from hiddenmanifold.figures.claims.judgement import COLOURS, DIFFERS, HOLDS, REMARK, Row

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
    if not progress:
        return [one() for one in CHECKS]
    from rich.progress import Progress

    with Progress(auto_refresh=False, transient=True) as bar:  # no thread, so that work can fork
        return [one() for one in bar.track(CHECKS, description="checking the claims")]
