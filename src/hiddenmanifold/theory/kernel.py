"""The compiled kernel, if there is one: what it needs to know, and how it is asked.

The extension ``_kernel`` is built with the package where a compiler is found. Whatever it computes
NumPy computes too (``averages``, ``observables``), more slowly; the tests hold one against the
other. The environment variable ``HIDDENMANIFOLD_KERNEL=numpy`` does without it.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.panels import gauss_legendre
from hiddenmanifold.teachers import Probits

_kernel: Any
try:
    from hiddenmanifold.theory import _kernel  # type: ignore[attr-defined, no-redef, unused-ignore]
except ImportError:  # built without a compiler
    _kernel = None

VARIABLE = "HIDDENMANIFOLD_KERNEL"
ENGINES = ("compiled", "numpy")
SUMS = 15
"""Sums along a proximal curve, in the order of `averages.curve_sums`."""


def engine() -> Literal["compiled", "numpy"]:
    """What computes channel averages: the compiled kernel, or NumPy.

    Raises
    ------
    InvalidArgumentError
        If the environment asks for an engine that is unknown or was not built.
    """
    asked = os.environ.get(VARIABLE) or ("compiled" if _kernel else "numpy")
    if asked not in ENGINES:
        raise InvalidArgumentError(VARIABLE, asked, f"one of {', '.join(ENGINES)}")
    if asked == "compiled" and _kernel is None:
        raise InvalidArgumentError(
            VARIABLE, asked, "numpy: the package was installed without a compiler"
        )
    return "compiled" if asked == "compiled" else "numpy"


def curve_sums(
    loss: Loss, field: Array, marks: Array, probits: Probits, rule: tuple[int, int], with_loss: bool
) -> Array:
    """Sums (15, points) along proximal curves; NaN where the loss is no polynomial.

    Parameters
    ----------
    loss : Loss
        Handed over as its `cells` and knots.
    field : array (5, points)
        V, mean and deviation of the shortfall, slope k and variance V0 of the teacher's field.
    marks : array (points, marks)
        Where the label law bends.
    probits : tuple
        The label law, as a sum of normal distribution functions.
    rule : tuple
        Order and halvings of the quadrature.
    with_loss : bool
        Whether to average the loss, too.
    """
    out, cells = np.empty((field.shape[1], SUMS)), loss.cells
    offset, terms = probits
    _kernel.curves(
        out,
        np.ascontiguousarray(field),
        np.ascontiguousarray(marks),
        np.ascontiguousarray(terms),
        np.array(gauss_legendre(*rule)),
        offset,
        np.array([*loss.knots, np.isin(loss.knots[0], loss.kinks)]),
        cells.table,
        cells.first,
        cells.low,
        cells.per_bin,
        loss.scale or 0.0,
        with_loss,
    )
    return out.T


def shares(edges: Array, k: Array, V0: Array, probits: Probits, rule: tuple[int, int]) -> Array:
    """Average of the label law at fields k ξ over the panels between each point's edges."""
    out = np.empty((1, len(edges)))
    offset, terms = probits
    _kernel.shares(
        out,
        np.array([k, V0]),
        np.ascontiguousarray(edges),
        np.ascontiguousarray(terms),
        np.array(gauss_legendre(*rule)),
        offset,
    )
    return out[0]


def normal_law(t: Array) -> tuple[Array, Array]:
    """The normal density and distribution function, as the kernel computes them."""
    out = np.empty((2, t.size))
    _kernel.normal(out, np.ascontiguousarray(t, dtype=float).reshape(1, -1))
    density, cumulative = out.reshape(2, *t.shape)
    return density, cumulative
