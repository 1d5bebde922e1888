"""The interface of feature matrices F: draws, and the spectral sums of linear features."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hiddenmanifold.arrays import Array, Numbers
from hiddenmanifold.features.chain import Received
from hiddenmanifold.features.kernel_arguments import Stretching
from hiddenmanifold.features.pair_sums import PairSums
from hiddenmanifold.features.spectral_sums import Sums, SumsBelow
from hiddenmanifold.numerics.matrices import LinearMap


class Projection:
    """Base of all feature matrices."""

    corner: ClassVar[bool] = False
    """Whether the spectrum changes its form at p = d, so that curves have a corner there."""
    stacks: ClassVar[bool] = False
    """Whether it can also project the features of a layer below, see `of_layer`."""

    fixed_ratio: float | None = None
    """The ratio d/p if the projection fixes it."""
    fixed_dimension: int | None = None
    """The dimension d of the input if the projection fixes it."""

    def sample(self, d: int, p: int, rng: np.random.Generator) -> LinearMap:
        """A d × p matrix F of this kind; its columns have squared norm d, for p > d on average."""
        raise NotImplementedError

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        """Rough count of numbers held while a matrix is drawn and applied to `rows` rows."""
        return 5.0 * d * p  # a decomposition needs several copies

    def linear(self, k: Array, gamma: Array) -> Sums:
        r"""The sums of linear features of white data, at :math:`\gamma = d/p`."""
        raise NotImplementedError

    def linear_pair(self, k: Numbers, other: Numbers, gamma: Array) -> PairSums:
        """The same at two arguments, unless the matrix stacks."""
        raise NotImplementedError

    def largest(self, gamma: Array) -> Array:
        r"""The largest eigenvalue of :math:`F^\top F/d`."""
        raise NotImplementedError

    def of_layer(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Sums:
        """The sums of p linear features of d others, whose own sums are given."""
        raise NotImplementedError

    def stretching(self, d: Array, p: Array) -> Stretching:
        """How p linear features of d others stretch the arguments of these."""
        raise NotImplementedError

    def received(self, d: Array, p: Array) -> Received:
        """The sums of such features at two arguments, given those of the others."""
        raise NotImplementedError

    def argument_below(self, below: SumsBelow, k: Array, *, d: Array, p: Array) -> Array:
        """The argument at which the d others respond as the p features do at k."""
        raise NotImplementedError
