"""What the figures and claims have in common: the paper's model, and what determines their data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import INGREDIENT_KINDS
from hiddenmanifold.model import Model


def paper_model(**ingredients: Any) -> Model:
    """The model of Figures 1 to 5, but for the ingredients given."""
    parts: dict[str, Any] = {kind: about.default for kind, about in INGREDIENT_KINDS.items()}
    return Model(**{**parts, **ingredients})


def hidden_manifold() -> Model:
    """The model of Figures 6 and 7: square loss on features erf(Fᵀc/√d)."""
    return paper_model(activation="erf", loss="square")


@dataclass(frozen=True)
class Axis:
    """Evenly spaced values, on a linear or on a logarithmic scale."""

    low: float
    high: float
    count: int
    logarithmic: bool = False

    @property
    def values(self) -> Array:
        """The values from `low` to `high`, both included."""
        spaced = np.geomspace if self.logarithmic else np.linspace
        return spaced(self.low, self.high, self.count, dtype=float)


@dataclass(frozen=True)
class Size:
    """How large and how often something is simulated; the arguments of `simulate`."""

    d: int
    seeds: int
    n_test: int = 4000
    seed: int = 0


@dataclass(frozen=True)
class Setting:
    """What determines the data of a figure, apart from its models.

    Parameters
    ----------
    at : mapping
        Arguments of theory and simulation alike: a ratio that is fixed, the regularisation.
    lines : mapping
        The ratios along which the theory is shown.
    points : mapping
        The ratios at which simulations are shown.
    size : Size, optional
        Latent dimension, seeds and test samples, where something is simulated.
    """

    at: Mapping[str, Any]
    lines: Mapping[str, Axis]
    points: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    size: Size | None = None

    @property
    def theory(self) -> dict[str, Any]:
        """The arguments of `predict`."""
        return {**self.at, **{ratio: axis.values for ratio, axis in self.lines.items()}}

    @property
    def simulation(self) -> dict[str, Any]:
        """The arguments of `curves.simulated`."""
        return {**self.at, **self.points, "size": self.size}
