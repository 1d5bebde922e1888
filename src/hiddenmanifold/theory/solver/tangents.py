r"""Derivatives of a solution by the parameters: the implicit function theorem.

The solution obeys :math:`x = G(x; \lambda, \alpha, \gamma)`, so :math:`(I - \partial_x G)\,dx =
\partial G`, with the matrix that Newton's method uses. At fixed channel averages `e` the overlaps
do not change when :math:`\lambda, \hat v, \hat m` grow alike and :math:`\hat q` as their square,
except for V, which shrinks: that gives :math:`\partial_{\log\lambda}`; and
:math:`\partial_{\log\alpha}` multiplies the three hats alike. Only :math:`\partial_{\log\gamma}`,
a property of the spectrum, is taken by differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.numerics.newton import largest, newton_step
from hiddenmanifold.numerics.special import hermite
from hiddenmanifold.theory.points import Points

if TYPE_CHECKING:
    from hiddenmanifold.theory.solver.saddle_point import SaddlePoint

PARAMETERS = ("regularisation", "n", "p")
"""Parameters for derivatives: by the logarithm of one, with the other two and d held fixed."""
STENCIL = ((1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Central difference of fourth order: multiples of the step, and their weights."""
STEP = 1e-4
"""Step of the differences, in the logarithm of a ratio.

Of fourth order, they are off by about 1e-16 through their length and 1e-12 through rounding: half
as much doubles the latter, twice as much is still far from the former."""
FAR = 1.0
"""Distance of a cubic from its chord from which on the chord is the better guess.

Unknowns are logarithms: a cubic that leaves its chord by a factor e shoots over. Half or twice as
much changes the number of turns by 1 %."""


def tangents(
    problem: SaddlePoint,
    e: Array,
    matrix: Array,
    parameters: Sequence[str],
    dy: Array | None = None,
) -> dict[str, Array]:
    """How the unknowns move per unit of the logarithm of each parameter.

    They follow from the channel averages `e` (points, 3) and Newton's matrix at the solution, and
    from the derivatives `dy` of the coordinates by the averages, if these are known.
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
        return problem.channel.coordinates(problem.at(moved).overlaps(e))[0]

    total: Array = sum(w * (at(k * step) - at(-k * step)) for k, w in STENCIL)  # type: ignore[assignment]
    return total / step[:, None]


def slope_along(functions: Callable[[Array], Columns], x: Array, direction: Array) -> Columns:
    """Derivatives of functions of the unknowns along a direction of each point."""
    length = STEP / np.maximum(1.0, largest(direction))[:, None]
    signed = np.array([sign * k for k, _ in STENCIL for sign in (1, -1)])[:, None, None]
    found = functions((x + signed * length * direction).reshape(-1, x.shape[1]))
    total: Columns = {}
    for name, values in found.items():
        shape = (len(STENCIL), 2, len(x), *values.shape[1:])
        ahead, behind = values.reshape(shape).swapaxes(0, 1)
        changes = zip(STENCIL, ahead - behind, strict=True)
        total[name] = sum(weight * change / length[:, 0] for (_, weight), change in changes)
    return total


@np.errstate(all="ignore")
def interpolated(known: Points, x: Array, tangents: Mapping[str, Array], points: Points) -> Array:
    """Approximate unknowns (points, unknowns) at some points, from `known` solutions `x`.

    They lie on cubics through the nearest two solutions and their tangents. Points are near if the
    logarithms of their λ, n/d and p/d are, wherever they stand in a batch. The `tangents` are by
    the logarithm of each parameter; what is not known of them, NaN, counts as zero.
    """
    places, here = _places(known), _places(points)
    slopes = [np.nan_to_num(tangents[parameter]) for parameter in PARAMETERS]
    first, second = scipy.spatial.KDTree(places.T).query(here.T, k=[1, min(2, len(x))])[1].T

    def moved(some: Integers, by: Array) -> Array:
        change: Array = sum(b[:, None] * slope[some] for b, slope in zip(by, slopes, strict=True))
        return change

    way, along = places[:, second] - places[:, first], here - places[:, first]
    length = (way * way).sum(0)
    t = np.clip((way * along).sum(0) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    aside, t = along - t * way, t[:, None]
    # both ends are carried to the line through the point
    left, right = (x[some] + moved(some, aside) for some in (first, second))
    cubic = hermite(t, (0.0, 1.0), (left, right), (moved(first, way), moved(second, way)))
    chord = x[first] + t * (x[second] - x[first])
    guess: Array = np.where((largest(cubic - chord) > FAR)[:, None], chord, cubic)
    return guess


def _places(points: Points) -> Array:
    """Logarithms of λ, n/d and p/d, which the tangents are by."""
    lam, alpha, gamma = np.log([points.lam, points.alpha, points.gamma])
    return np.stack([lam, alpha - gamma, -gamma])
