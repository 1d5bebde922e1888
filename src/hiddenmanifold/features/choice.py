"""The features of a model by the arguments that name them."""

from __future__ import annotations

from collections.abc import Callable

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features.activations import Activation
from hiddenmanifold.features.base import Features
from hiddenmanifold.features.kernel_machine import Kernel
from hiddenmanifold.features.kernels import KernelFunction
from hiddenmanifold.features.layers import RandomFeatures
from hiddenmanifold.features.projections import Projection

ALTERNATIVES = "activation and projection, or a kernel, or features"


def chosen_features(
    features: Features | None,
    activation: str | Activation | Callable[[Array], Array] | None,
    projection: str | Projection | None,
    kernel: str | KernelFunction | Callable[[Array], Array] | None,
) -> Features:
    """The features that are given, or made of a kernel, or of an activation and a projection."""
    random = projection if activation is None else activation
    alternatives = {"features": features, "kernel": kernel, "activation or projection": random}
    given = [name for name, value in alternatives.items() if value is not None]
    if len(given) > 1:
        raise InvalidArgumentError.because(
            given[0], f"cannot be combined with {given[1]}", f"give either {ALTERNATIVES}"
        )
    if not given:
        raise InvalidArgumentError.because("features", "are missing", f"give {ALTERNATIVES}")
    if kernel is not None:
        features = Kernel(kernel)
    elif features is None:
        pair = {"activation": (activation, "erf"), "projection": (projection, "gaussian")}
        for name, (value, usual) in pair.items():
            if value is None:
                raise InvalidArgumentError.because(
                    name, "is missing", f"random features need both: give {name}={usual!r}, say"
                )
        features = RandomFeatures(activation, projection)  # type: ignore[arg-type]
    if not isinstance(features, Features):
        raise InvalidArgumentError(
            "features",
            features,
            "a hiddenmanifold.features.Features; a kernel is given as kernel=…",
        )
    _ = features.variance  # a constant or non-finite activation is refused here
    return features
