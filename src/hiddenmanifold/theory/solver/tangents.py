r"""Derivatives of a solution by the parameters: the implicit function theorem.

The solution obeys :math:`x = G(x; \lambda, \alpha, \gamma)`, so :math:`(I - \partial_x G)\,dx =
\partial G`, with the matrix that Newton's method uses. At fixed channel averages `e` the overlaps
do not change when :math:`\lambda, \hat v, \hat m` grow alike and :math:`\hat q` as their square,
except for V, which shrinks: that gives :math:`\partial_{\log\lambda}`; and
:math:`\partial_{\log\alpha}` multiplies the three hats alike. Only :math:`\partial_{\log\gamma}`,
a property of the spectrum, is taken by differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.numerics.newton import largest, newton_step

if TYPE_CHECKING:
    from hiddenmanifold.theory.solver.saddle_point import SaddlePoint

PARAMETERS = ("regularisation", "n", "p")
"""What derivatives can be taken by: the logarithm of one, the other two and d held fixed."""
STENCIL = ((1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Central difference of fourth order: multiples of the step, and their weights."""
STEP = 1e-4
"""Step of the differences, in the logarithm of a ratio.

Of fourth order, they are off by about 1e-16 through their length and 1e-12 through rounding: half
as much doubles the latter, twice as much is still far from the former."""


def tangents(
    problem: SaddlePoint,
    e: Array,
    matrix: Array,
    parameters: Sequence[str],
    dy: Array | None = None,
) -> dict[str, Array]:
    """How the unknowns move per unit of the logarithm of each parameter.

    Out of the channel averages `e` (points, 3) and Newton's matrix at the solution, and the
    derivatives `dy` of the coordinates by the averages, if they are known.
    """
    n, moved = problem.channel.overlap_unknowns, {}
    with np.errstate(all="ignore"):
        if dy is None:
            dy = problem.channel.coordinates(problem.overlaps(e))[1]
        for parameter in parameters:
            direction = np.zeros(matrix.shape[:2])
            direction[:, :n] = _right_side(parameter, problem, e, dy)
            moved[parameter] = newton_step(matrix, direction)
    return moved


def _right_side(parameter: str, problem: SaddlePoint, e: Array, dy: Array) -> Array:
    """Derivative of the coordinates by the logarithm of a parameter, at fixed channel averages."""
    if parameter == "regularisation":
        right: Array = -(dy @ (e * [1.0, 2.0, 1.0])[..., None])[..., 0]
        right[:, 0] -= 1.0
        return right
    right = (dy @ e[..., None])[..., 0]
    return right if parameter == "n" else -right - _by_log_gamma(problem, e)


def _by_log_gamma(problem: SaddlePoint, e: Array) -> Array:
    """Derivative of the coordinates by log γ, at fixed channel averages."""
    points, features = problem.points, problem.features
    step = np.full_like(points.gamma, STEP)
    if features.fixed_ratio is not None:
        step[:] = np.nan
    elif features.corner is not None:  # NaN at the corner itself
        step = np.minimum(step, np.abs(np.log(points.gamma / features.corner)) / 4.0)

    def at(shift: Array) -> Array:
        moved = replace(points, gamma=points.gamma * np.exp(shift))
        return problem.channel.coordinates(replace(problem, points=moved).overlaps(e))[0]

    total: Array = sum(w * (at(k * step) - at(-k * step)) for k, w in STENCIL)  # type: ignore[assignment]
    return total / step[:, None]


def slope_along(functions: Callable[[Array], Columns], x: Array, direction: Array) -> Columns:
    """Derivatives of functions of the unknowns along a direction of each point."""
    length = STEP / np.maximum(1.0, largest(direction))[:, None]
    total: Columns = {}
    for k, weight in STENCIL:
        ahead, behind = (functions(x + sign * k * length * direction) for sign in (1, -1))
        for name, values in ahead.items():
            change = weight * (values - behind[name]) / length[:, 0]
            total[name] = total.get(name, 0.0) + change
    return total
