"""The compiled twin of ``theory/labels_side/averages``, if there is one, and how it is called.

The module ``_extension`` is built with the package where a compiler is found. Whatever it computes
NumPy computes too, more slowly; the tests compare the two. ``HIDDENMANIFOLD_ENGINE=numpy`` in the
environment switches it off.
"""

from __future__ import annotations

import dataclasses
import os
from importlib import import_module
from typing import Any, Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError

VARIABLE = "HIDDENMANIFOLD_ENGINE"
ENGINES = ("compiled", "numpy")
AVERAGES = 22
"""Numbers per point that `averages` returns."""


def _loaded() -> Any:
    """The compiled module, or None if there is none or the environment asks for NumPy."""
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", *ENGINES):
        raise InvalidArgumentError(VARIABLE, asked, f"one of {', '.join(ENGINES)}")
    if asked == "numpy":
        return None
    try:
        return import_module("hiddenmanifold.compiled._extension")
    except ImportError:
        if asked:
            raise InvalidArgumentError(
                VARIABLE, asked, "'numpy', because the package was installed without a compiler"
            ) from None
        return None


_extension = _loaded()


def engine() -> Literal["compiled", "numpy"]:
    """What computes: compiled code, or NumPy."""
    return "numpy" if _extension is None else "compiled"


@dataclasses.dataclass(frozen=True)
class Law:
    """A label law as compiled code takes it: a sum of probits, or polynomials on cells.

    Attributes
    ----------
    offset, terms : float, array (3, terms)
        Offset, and weights, thresholds along the label and variances of probits.
    cells : array (cells, 3)
        Right end, middle and inverse half width of each.
    polynomials : array (points, cells * 12 * 4)
        Twelve coefficients of the law, its two derivatives and nothing, on each cell.
    """

    offset: float = 0.0
    terms: Array = dataclasses.field(default_factory=lambda: np.empty((3, 0)))
    cells: Array = dataclasses.field(default_factory=lambda: np.empty((0, 3)))
    polynomials: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))


def averages(
    field: Array,
    marks: Array,
    law: Law,
    rule: Array,
    loss: tuple[Array, Array, Array, float, float, float],
    *,
    y: int,
    with_loss: bool,
) -> Array:
    """Averages of one label (points, 22): e (4), their derivatives (4, 4), data loss and norm.

    Parameters
    ----------
    field : array (6, points)
        V, mean and deviation of the shortfall, slope k and variance V0 of the teacher's field, β.
    marks : array (points, marks)
        Where the label law bends.
    law : Law
        The label law.
    rule : array (2, nodes)
        Nodes and weights of the quadrature on [0, 1].
    loss : tuple
        Knots (5, knots), the table and bins of its cells, and their scale.
    y : {1, -1}
        The label.
    with_loss : bool
        Whether to average the loss, too.
    """
    out = np.empty((field.shape[1], AVERAGES))
    knots, cells, first, *rest = loss
    numbers = np.array([[law.offset, *rest, y, with_loss]])
    field, marks = np.ascontiguousarray(field), np.ascontiguousarray(marks)
    form = (law.terms, rule, law.cells, law.polynomials)
    _extension.averages(out, field, marks, *form, knots, cells, first, numbers)
    return out


def shares(field: Array, edges: Array, law: Law, rule: Array) -> Array:
    """Average of the label law at fields kξ over the panels between each point's edges.

    `field` (2, points) has k and V0.
    """
    out = np.empty(len(edges))
    field, edges = np.ascontiguousarray(field), np.ascontiguousarray(edges)
    form = (law.terms, rule, law.cells, law.polynomials)
    _extension.shares(out[None], field, edges, *form, np.array([[law.offset]]))
    return out


def newton_step(matrix: Array, residual: Array) -> Array | None:
    """Solutions of small linear systems (points, n), or the residual where there is no finite one.

    None if a matrix is singular.
    """
    out = np.empty(residual.shape)
    points, n = residual.shape
    matrix = np.ascontiguousarray(matrix).reshape(points, n * n)
    return out if _extension.newton_step(out, matrix, np.ascontiguousarray(residual)) else None


def normal_law(t: Array) -> tuple[Array, Array]:
    """The normal density and distribution function, as compiled code computes them."""
    out = np.empty((2, t.size))
    _extension.normal(out, np.ascontiguousarray(t, dtype=float).reshape(1, -1))
    density, cumulative = out.reshape(2, *t.shape)
    return density, cumulative
