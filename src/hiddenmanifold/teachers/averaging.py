r"""Averages of a label law over a normal prediction: panels that resolve both.

Along a label the standardised prediction is :math:`\xi`, and the mean of the teacher's field given
it is x = slope ξ. An average of :math:`Z_y(x)` is cut into panels at a fan of standard deviations
and where the label law bends, and the panels are halved until it settles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.numerics.panels import FAN, FAR, NEAR, REACH, Panels, fanned
from hiddenmanifold.teachers.base import BinaryTeacher, LabelLaw, Law

ORDER = 20
"""Gauss–Legendre nodes of a panel, to begin with."""
FINEST = 9
"""How often panels are halved, at most: an average that has not settled by then, because the law
bends within a thousandth of a panel without a landmark there, is NaN."""
SETTLED = 1e-11
"""Relative change under halving at which an average is known; rounding of its thousand terms is a
hundred times smaller."""
RARE = 1e-5
"""A label less probable than this needs the far tail of the normal law, where its mass may lie. The
usual panels leave out 1e-18, which is 1e-13 of such a label; with twice this it would be half."""
TAIL = 6.0
"""How far below a cut the normal law counts. The usual panels end at -9; below a cut at -3 or less
the law falls by 1e-15 over this distance, below one at -9 by 1e-31."""
LOWEST_CUT = -37.0
"""Cuts farther out are moved here: less than 1e-299 of the normal law lies below."""
DOWNWARDS = (LOWEST_CUT - TAIL, *FAN, REACH)
"""Panel boundaries of the part below a cut, before `below_cut` trims them."""


def fan_of(teacher: BinaryTeacher) -> Sequence[float]:
    """Panel boundaries of the normal law that miss nothing of either label."""
    far = min(teacher.label_marginals[:2]) < RARE or teacher.displaces
    return FAR if far else NEAR


def edges_along(
    law: LabelLaw, y: int, slope: Array, V0: Array, fan: Sequence[float], *marks: Array
) -> Array:
    """Panel boundaries in ξ of each row: the fan, where the law bends, and further marks in it."""
    with np.errstate(all="ignore"):  # what is not finite cuts nothing
        bends = law.landmarks(y, V0) / slope[:, None]
    return fanned(fan, np.concatenate([bends, *marks], axis=1))


def law_on_panels(
    law: LabelLaw, y: int, slope: Array, V0: Array, edges: Array, *, rule: tuple[int, int]
) -> tuple[Panels, Law]:
    """Panels between edges along the label y, and the law and its derivatives on their nodes."""
    panels = Panels.between(edges, rule)
    at = panels.row[:, None]
    return panels, law.label_law(y, slope[at] * panels.nodes, V0[at])


def below_cut(cut: Array) -> tuple[Array, Array]:
    """Where the part of the normal law below each cut begins and ends, columns (rows, 1)."""
    high = np.clip(cut, LOWEST_CUT, REACH)[:, None]
    return np.minimum(-REACH, high - TAIL), high
