"""Features for tests: of given coefficients, and one of each kind."""

from dataclasses import dataclass

from hiddenmanifold.activations import Activation
from hiddenmanifold.features import RandomFeatures


@dataclass(frozen=True)
class Given(Activation):
    """An activation known by its coefficients alone."""

    kappas: tuple[float, float, float] = (0.0, 1.0, 0.0)


def random_features(projection, kappa_1, kappa_star):
    """Random features of given coefficients."""
    return RandomFeatures(Given((0.0, kappa_1, kappa_star)), projection)
