"""Interface to the compiled version of ``theory/labels_side/averages``, where it was built.

The module ``_extension`` is built with the package where a compiler is found. NumPy computes the
same quantities, more slowly; the tests compare the two. ``HIDDENMANIFOLD_ENGINE=numpy`` in the
environment switches compiled code off. Where it was not built, one warning says so.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError

VARIABLE = "HIDDENMANIFOLD_ENGINE"
ENGINES = ("compiled", "numpy")
SLOW = (
    "hiddenmanifold was installed where no C compiler was found: predictions take up to ten "
    "times as long. Install a compiler and then the package again, or set "
    f"{VARIABLE}=numpy to read this no more"
)
AVERAGES = ("e1", "e2", "e3", "e0")
"""The averages of a label, in the order of every array of them."""
UNKNOWNS = ("log_V", "log_Q", "tilt", "beta")
"""The unknowns by which they are differentiated, in the order of every array of derivatives."""
E1, E2, E3, E0 = range(len(AVERAGES))
LOG_V, LOG_Q, TILT, BETA = range(len(UNKNOWNS))


def _loaded() -> Any:
    """The compiled module, or None if there is none or the environment asks for NumPy."""
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", *ENGINES):
        raise InvalidArgumentError(VARIABLE, asked, f"one of {', '.join(ENGINES)}")
    if asked == "numpy":
        return None
    try:
        built = import_module("hiddenmanifold.compiled._extension")
    except ImportError:
        if asked:
            raise InvalidArgumentError(
                VARIABLE, asked, "'numpy', because the package was installed without a compiler"
            ) from None
        warnings.warn(SLOW, stacklevel=2)
        os.environ[VARIABLE] = "numpy"  # the processes that are started know it already
        return None
    if (built.AVERAGES, built.UNKNOWNS) != (AVERAGES, UNKNOWNS):
        raise ImportError("the compiled extension was built from other sources: build it again")
    return built


_extension = _loaded()


def engine() -> Literal["compiled", "numpy"]:
    """The engine in use: compiled code, or NumPy."""
    return "numpy" if _extension is None else "compiled"


@dataclasses.dataclass(frozen=True)
class CompiledLaw:
    """A label law as compiled code takes it: a constant and probits, or polynomials on cells.

    The attributes have the names of its arguments.

    Attributes
    ----------
    constant : array (3,)
        Constant part of the law and of its two derivatives.
    terms : array (3, terms)
        Weights, thresholds along the label and variances of probits.
    law_cells : array (cells, 3)
        Right end, middle and inverse half width of each.
    law_polynomials : array (points, cells * 12 * 4)
        Twelve coefficients of the law, its two derivatives and nothing, on each cell.
    """

    constant: Array = dataclasses.field(default_factory=lambda: np.zeros(3))
    terms: Array = dataclasses.field(default_factory=lambda: np.empty((3, 0)))
    law_cells: Array = dataclasses.field(default_factory=lambda: np.empty((0, 3)))
    law_polynomials: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))


@dataclasses.dataclass(frozen=True)
class CompiledLoss:
    """A loss as compiled code takes it: its knots, and polynomials on cells.

    The attributes have the names of its arguments.

    Attributes
    ----------
    knots : array (5, knots)
        The `knots` of a loss, and whether each of them is a kink.
    loss_cells, first, low, per_bin : array (cells, 3 + 3 powers), array (bins,), float, float
        Polynomials, and which of them apply where (`numerics.cells`).
    scale : float
        Length over which the second derivative bends; 0 if it is constant between kinks.
    """

    knots: Array
    loss_cells: Array
    first: Array
    low: float
    per_bin: float
    scale: float


def averages(
    loss: CompiledLoss,
    law: CompiledLaw,
    field: Mapping[str, Array],
    settings: Mapping[str, Any],
    *,
    edges: Array,
    rule: Array,
    y: int,
    share: float,
    with_loss: bool,
) -> tuple[Array, Array, Array, Array]:
    """Averages (points, 4) of one label, their derivatives (points, 4, 4), data loss and norm.

    Parameters
    ----------
    loss, law : CompiledLoss, CompiledLaw
        The loss and the label law.
    field : mapping of arrays (points,)
        ``V``, ``mean``, ``deviation`` of the shortfall, ``slope`` and variance ``V0`` of the
        teacher's field, ``beta``.
    settings : mapping
        The constants of the quadrature, by name.
    edges : array (points, marks)
        Where the label law bends.
    rule : array (2, nodes)
        Nodes and weights of the quadrature on [0, 1].
    y : {1, -1}
        The label.
    share : float
        A factor of all averages.
    with_loss : bool
        Whether to average the loss, too; else the data loss is NaN.
    """
    points = len(edges)
    e, de = np.empty((points, len(AVERAGES))), np.empty((points, len(AVERAGES) * len(UNKNOWNS)))
    data_loss, norm = np.empty(points), np.empty(points)
    _extension.averages(
        e=e,
        de=de,
        data_loss=data_loss,
        norm=norm,
        edges=np.ascontiguousarray(edges),
        rule=rule,
        y=y,
        share=share,
        with_loss=with_loss,
        **{name: np.ascontiguousarray(values) for name, values in field.items()},
        **settings,
        **vars(law),
        **vars(loss),
    )
    return e, de.reshape(points, len(AVERAGES), len(UNKNOWNS)), data_loss, norm


def shares(law: CompiledLaw, slope: Array, V0: Array, edges: Array, rule: Array) -> Array:
    """Average of the label law at the field slope ξ over the panels between each point's edges."""
    norm = np.empty(len(edges))
    slope, V0, edges = (np.ascontiguousarray(values) for values in (slope, V0, edges))
    _extension.shares(norm=norm, slope=slope, V0=V0, edges=edges, rule=rule, **vars(law))
    return norm


def newton_step(matrix: Array, residual: Array) -> Array | None:
    """Solutions of small linear systems (points, n), or the residual where there is no finite one.

    None if a matrix is singular, or if there is no compiled code.
    """
    if _extension is None:
        return None
    step = np.empty(residual.shape)
    points, n = residual.shape
    matrix = np.ascontiguousarray(matrix).reshape(points, n * n)
    residual = np.ascontiguousarray(residual)
    regular = _extension.newton_step(step=step, matrix=matrix, residual=residual)
    return step if regular else None
