r"""Features: the inputs x of a model, and the part of the teacher's field that they show.

Features have two forms. They enter the theory through a few sums over two spectral measures, as
functions of :math:`k = \lambda/(\alpha e_1)`, and nothing else (section "Features' side" of
``docs/theory.md``); the simulation draws them as a function of Gaussian inputs. To read in this
order:

- `base`: the interface of all features, `Features` in the limit and `Drawn` at finite size;
- `spectral_sums`: the sums D and T, and how a projection and an activation transform them;
- `covariance`: Gaussian covariates, by their eigenvalues and the teacher's weight along each;
- `activations`, `projections`: the coefficients κ0, κ1, κ⋆ of a function, and random matrices;
- `layers`: random features of one layer or several, and `chain`, the arguments of all of these;
  `projected`: random features of given covariates; `feature_matrix`: the interface of matrices;
- `gaussian_averages`: the coefficients of an activation, and its dual;
- `kernels`, `kernel_machine`: kernels of the angle between inputs, neural tangent kernels among
  them, and the machines that are fitted with them (`kernel_arguments`: where random features
  of a kernel stand in its spectrum);
- `pair_sums`: what two fits on the same features, or on two draws of them, have in common;
- `choice`: the features of a model from its arguments;
- `posterior`: what the Bayes-optimal predictor learns about a teacher from its features.
"""

from hiddenmanifold.features.base import Drawn, Features, Inputs, SpectralArguments, Visible, White
from hiddenmanifold.features.covariance import Covariance
from hiddenmanifold.features.kernel_machine import Kernel
from hiddenmanifold.features.layers import Deep, Layer, RandomFeatures
from hiddenmanifold.features.projected import Projected

__all__ = [
    "Covariance",
    "Deep",
    "Drawn",
    "Features",
    "Inputs",
    "Kernel",
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
    "kernel": Kernel,
}
