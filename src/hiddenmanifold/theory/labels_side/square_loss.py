r"""The square loss, whose channel averages need no integral (``docs/theory.md``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.theory.labels_side.averages import ChannelAverages


@dataclass(frozen=True)
class SquareMoments:
    r"""What the square loss sees of labels and predictions at a batch of points.

    Attributes
    ----------
    intercept : array (points,)
        The intercept b, which is known in closed form as well.
    r : array (points,)
        Mean square residual :math:`E(y-f)^2` of new samples.
    dr : array (unknowns - 1, points)
        Its derivatives by the unknowns after log V.
    c, dc : arrays or floats
        :math:`c = E[y\nu]/\rho`, where labels displace their samples that of the residual, and its
        derivatives.
    """

    intercept: Array
    r: Array
    dr: Array
    c: Array | float
    dc: Array | float = 0.0


def square_averages(V: Array, moments: SquareMoments) -> ChannelAverages:
    r""":math:`e_1 = 1/(1+V)`, :math:`e_2 = r/(1+V)^2`, :math:`e_3 = c/(1+V)`."""
    r, dr, c = moments.r, moments.dr, moments.c
    g = 1.0 / (1.0 + V)
    zero = np.zeros_like(V)
    slope = -V * g  # d log g / d log V
    e = np.array([g, r * g**2, c * g, zero])
    by_others = [
        np.array([zero, d * g**2, slope_c * g, zero])
        for d, slope_c in zip(dr, np.broadcast_to(moments.dc, dr.shape), strict=True)
    ]
    de = np.array([np.array([g * slope, 2 * r * g**2 * slope, c * g * slope, zero]), *by_others])
    return ChannelAverages(e.T, de.T, 0.5 * r * g**2, np.ones_like(V))
