"""Features and losses for tests, of given coefficients and one of each kind; models to compare."""

from dataclasses import dataclass

import numpy as np

from hiddenmanifold import losses, teachers
from hiddenmanifold.checks import Task
from hiddenmanifold.features import (
    Covariance,
    Deep,
    Kernel,
    Layer,
    Projected,
    RandomFeatures,
    activations,
    projections,
)
from hiddenmanifold.features.activations import Activation
from hiddenmanifold.model import Model


@dataclass(frozen=True)
class Given(Activation):
    """An activation known by its coefficients alone."""

    kappas: tuple[float, float, float] = (0.0, 1.0, 0.0)

    def kappas_at(self, variance):
        return self.kappas


def random_features(projection, kappa_1, kappa_star):
    """Random features of given coefficients."""
    return RandomFeatures(Given((0.0, kappa_1, kappa_star)), projection)


def power_law(p, *, hidden=0.2, rho=1.0, decay=0.8, **options):
    """Covariates whose eigenvalues and signal decay as powers, with a hidden part."""
    i = np.arange(1, p + 1)
    w = i**-decay / np.sum(i**-decay)
    seen = i**-0.5 / np.sum(i**-0.5)
    return Covariance(w, rho * (1.0 - hidden) * seen * w, rho, **options)


EXAMPLES = {
    "random": RandomFeatures(activations.Erf(), projections.Gaussian()),
    "covariance": power_law(120, drawn_teacher=True),
    "deep": Deep([Layer("tanh", width=1.5), Layer("erf", "orthogonal")]),
    "projected": Projected(power_law(60), "tanh"),
    "kernel": Kernel("ntk"),
}
"""One of each kind in `features.REGISTRY`, all for a field of variance 1."""
FINITE = {name: kind for name, kind in EXAMPLES.items() if not kind.infinite}
"""Those that have a number p of features.

A kernel fits all samples at any n/d, and has features only at its training samples: see
`test_kernels`."""

OF_SHORTFALL = {
    name: kind() for name, kind in losses.REGISTRY.items() if issubclass(kind, losses.Loss)
}
"""The registered losses of a residual or a margin, by their names."""
OF_MARGIN = {name: loss for name, loss in OF_SHORTFALL.items() if Task.CLASSIFICATION in loss.tasks}
"""Those of labels ±1: quantiles, expectiles and an insensitive width are of numbers alone."""
OF_RESIDUAL = {name: loss for name, loss in OF_SHORTFALL.items() if Task.REGRESSION in loss.tasks}
"""Those of labels that are any numbers."""
OF_LABEL = {
    name: kind() for name, kind in losses.REGISTRY.items() if issubclass(kind, losses.LabelLoss)
}
"""The registered losses of label and score that are no function of a difference or a product."""
RULE_OF = dict.fromkeys(OF_RESIDUAL, "linear") | dict.fromkeys(OF_MARGIN, "sign")
RULE_OF |= {name: name for name in OF_LABEL}
RULE_OF["softmax"] = teachers.Classes(3, 2.0)
"""A label rule that each registered loss fits, by name: deviances, the law that they belong to."""


def plain_model(
    activation="erf", projection="gaussian", teacher="sign", loss="logistic", **options
):
    """A model on random features, of which a test states only what matters to it."""
    parts = {"activation": activation, "projection": projection, "teacher": teacher, "loss": loss}
    return Model(**parts, **options)


def compared(configuration):
    """A model, and the point at which theory and simulation are compared."""
    activation, projection, teacher, loss, intercept, n_over_d, p_over_n, lam = configuration
    parts = {"activation": activation, "projection": projection, "teacher": teacher, "loss": loss}
    ratios = {"n_over_d": n_over_d} | ({} if p_over_n is None else {"p_over_n": p_over_n})
    return Model(**parts, intercept=intercept), {**ratios, "regularisation": lam}
