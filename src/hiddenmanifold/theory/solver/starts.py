r"""Unknowns between solved points, by cubics through the nearest two of them and their tangents.

Points are near if the logarithms of their λ, n/d and p/d are, wherever they stand in a batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.numerics.newton import largest
from hiddenmanifold.numerics.special import hermite
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.tangents import PARAMETERS

FAR = 1.0
"""Distance of a cubic from its chord from which on the chord is the better guess.

Unknowns are logarithms: a cubic that leaves its chord by a factor e shoots over. Half or twice as
much changes the number of turns by 1 %."""


@np.errstate(all="ignore")
def interpolated(known: Points, x: Array, tangents: Mapping[str, Array], points: Points) -> Array:
    """Unknowns (points, unknowns) close to those of some points, out of `known` solutions `x`.

    The `tangents` are by the logarithm of each parameter; what is not known of them, NaN, counts as
    zero.
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
