r"""Rotation-invariant kernels: functions h(t) of the cosine t of the angle between two inputs.

Among n samples of white data in d dimensions cosines are of order :math:`1/\sqrt d`, except that of
a sample with itself. With n of order d a kernel therefore acts like :math:`h(0) + h'(0)\,t`, plus
:math:`\kappa_\star^2 = h(1) - h(0) - h'(0)` on the diagonal (El Karoui 2010), as infinitely many
random features with :math:`\kappa_0^2 = h(0)` and :math:`\kappa_1^2 = h'(0)` do.

A kernel is positive definite in every dimension if and only if it is a power series of t without
negative coefficients (Schoenberg 1942).

- `base`: the interface, and the coefficients;
- `elementary`: functions of the distance, and polynomials;
- `networks`: neural tangent kernels, and those of networks of which only the last layer is trained;
- `custom`: any other function.
"""

from collections.abc import Callable

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import resolve
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features.activations import Activation
from hiddenmanifold.features.kernels.base import Coefficients, KernelFunction
from hiddenmanifold.features.kernels.custom import Custom
from hiddenmanifold.features.kernels.elementary import RBF, Laplace, Polynomial
from hiddenmanifold.features.kernels.networks import NNGP, NTK, Network

__all__ = [
    "NNGP",
    "NTK",
    "RBF",
    "Coefficients",
    "Custom",
    "KernelFunction",
    "Laplace",
    "Network",
    "Polynomial",
    "resolved",
]

REGISTRY: dict[str, type[KernelFunction]] = {
    "ntk": NTK,
    "nngp": NNGP,
    "rbf": RBF,
    "laplace": Laplace,
    "polynomial": Polynomial,
}


def resolved(given: str | KernelFunction | Callable[[Array], Array]) -> KernelFunction:
    """The kernel meant by a name, an object or a function."""
    if isinstance(given, Activation):
        raise InvalidArgumentError("kernel", given, f"a kernel; did you mean kernels.NTK({given})?")
    if callable(given) and not isinstance(given, KernelFunction | type):
        given = Custom(given)
    return resolve("kernel", given, KernelFunction, REGISTRY)
