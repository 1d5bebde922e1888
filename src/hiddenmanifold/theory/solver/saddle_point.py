"""The saddle-point equations of a batch of points: one turn around both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.features import Features
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import ONCE, Copies
from hiddenmanifold.theory.features_side import Overlaps, overlaps, spectral_arguments
from hiddenmanifold.theory.labels_side.averages import ChannelAverages
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.labels_side.kinds import channel_of
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.settings import STANDARD, Effort, Tolerances

ROUNDING = 5e-16
"""Relative mean of h treated as zero: the rounding of a sum whose terms cancel."""


@dataclass(frozen=True)
class SaddlePoint:
    """The equations of a batch of points, composed of a `channel` and `features`."""

    channel: Channel
    features: Features
    points: Points
    tolerances: Tolerances = STANDARD
    effort: Effort = Effort()

    @classmethod
    def of(
        cls,
        model: Model,
        points: Points,
        tolerances: Tolerances = STANDARD,
        copies: Copies = ONCE,
    ) -> SaddlePoint:
        """The equations of a model, each sample of which may be drawn several times."""
        return cls(channel_of(model, copies), model.features, points, tolerances)

    def __getitem__(self, index: Integers | slice) -> SaddlePoint:
        return self.at(self.points[index])

    def at(self, points: Points) -> SaddlePoint:
        """The same equations at other points."""
        return replace(self, points=points)

    def overlaps(self, e: Array) -> Overlaps:
        """The overlaps that follow from channel averages."""
        return overlaps(self.features, spectral_arguments(self.points, e, self.channel.rho))

    def turn(self, x: Array, level: int = 0, with_loss: bool = False) -> Residual:
        """One turn around the equations from the unknowns `x` (points, unknowns)."""
        with np.errstate(all="ignore"):  # what is not finite is found in the residual
            averages = self.channel.averages(x, level, with_loss)
            found = self.overlaps(averages.e)
            y, dy = self.channel.coordinates(found)
            n = y.shape[1]
            residual = y - x[:, :n]
            matrix = np.eye(n, x.shape[1]) - dy @ averages.de[:, :3]
            weight = np.ones_like(x)
            if x.shape[1] > n:  # the intercept: e0 = 0, in units of the typical h
                scale = np.sqrt(averages.e[:, 1, None])
                tilt = averages.e[:, 3:] / scale
                tilt[np.abs(tilt) <= ROUNDING] = 0.0  # or a tiny sqrt(Q) would magnify it
                residual = np.hstack([residual, tilt])
                matrix = np.concatenate([matrix, -averages.de[:, 3:] / scale[..., None]], axis=1)
                weight[:, n:] = np.minimum(1.0, np.abs(matrix[:, n:, n]))
        return Residual(residual, matrix, weight, averages, dy)


@dataclass(frozen=True)
class Residual:
    """Residual G(x) - x of the undamped map, matrix I - dG/dx, and what they were made of.

    ``weight`` is the importance of an error in each unknown: that of an intercept measured in units
    of a tiny sqrt(Q) is weighted by its effect on its equation. ``dy`` is the derivative of the
    coordinates by the channel averages.
    """

    residual: Array
    matrix: Array
    weight: Array
    averages: ChannelAverages
    dy: Array
