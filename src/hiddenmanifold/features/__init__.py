r"""Features: the inputs x of a model, and what they show of the teacher's field.

Features have two forms. The theory knows them through a few sums over two spectral measures, as
functions of :math:`k = \lambda/(\alpha e_1)`, and nothing else (section "Features' side" of
``docs/theory.md``); the simulation draws them as a function of Gaussian inputs. To read in this
order:

- `base`: what every kind of features offers, `Features` in the limit and `Drawn` at finite size;
- `spectral_sums`: the sums D, T and their moves, from data through a projection and an activation;
- `covariance`: Gaussian covariates, by their eigenvalues and the teacher's weight along each;
- `activations`, `projections`: the coefficients κ0, κ1, κ⋆ of a function, and random matrices;
- `layers`: random features of one layer or several; `projected`: those of given covariates;
- `posterior`: what features show of a teacher to the Bayes-optimal predictor.
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
