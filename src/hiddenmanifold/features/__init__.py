r"""Features: the inputs x of a model, and what they show of the teacher's field.

The mirror of the labels' side: the solver knows features through the few sums of ``spectra``, as
functions of :math:`k = \lambda/(\alpha e_1)`, and nothing else; the simulation draws them.
"""

from hiddenmanifold.features.base import Drawn, Features, Inputs, SpectralArguments, Visible, White
from hiddenmanifold.features.covariance import Covariance
from hiddenmanifold.features.layers import Deep, Layer, RandomFeatures
from hiddenmanifold.features.projected import Projected

__all__ = [
    "Covariance",
    "Deep",
    "Drawn",
    "Features",
    "Inputs",
    "Layer",
    "Projected",
    "RandomFeatures",
    "SpectralArguments",
    "Visible",
    "White",
]

REGISTRY: dict[str, type[Features]] = {
    "random": RandomFeatures,
    "covariance": Covariance,
    "deep": Deep,
    "projected": Projected,
}
