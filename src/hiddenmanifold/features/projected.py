"""Random features of data of any covariance, or of any kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, shown
from hiddenmanifold.features import activations, projections
from hiddenmanifold.features.covariance import Covariance
from hiddenmanifold.features.layers import Layer, Layered
from hiddenmanifold.features.posterior import Posterior
from hiddenmanifold.features.spectral_sums import Response, Sums


@dataclass(frozen=True)
class Projected(Layered):
    r"""Features :math:`x = \sigma(F^\top u/\sqrt d)` of data :math:`u \sim N(0, \Omega)` in R^d.

    The number p of features is free, and p → ∞ is the kernel that they are features of. With the
    identity and a Gaussian matrix these are p random features of the kernel whose eigenvalues and
    teacher's weights `inputs` has; with an orthogonal one and p < d, p of the d features u, in a
    basis that is drawn at random.

    Parameters
    ----------
    inputs : Covariance
        The d eigenvalues of Ω/d, all positive, and the teacher's weight along each direction.
    activation : str, Activation or callable
        The nonlinearity σ, of preactivations whose variance is that of an input.
    projection : str or Projection
        The matrix F: "gaussian", or one of the orthogonal kinds.

    Raises
    ------
    InvalidArgumentError
        If the inputs are not a `Covariance` or have directions of eigenvalue zero, or if the law of
        the matrix is not invariant under rotations.

    Examples
    --------
    >>> import numpy as np, hiddenmanifold as hm
    >>> w = np.arange(1.0, 201.0) ** -1.5
    >>> inputs = hm.features.Covariance(w, w**2 / w.sum())
    >>> model = hm.Model(
    ...     features=hm.features.Projected(inputs, "erf"), teacher="sign", loss="logistic"
    ... )
    >>> ds = hm.predict(model, n_over_d=2.0, p_over_d=[0.1, 1.0, np.inf], regularisation=0.01)
    >>> ds.generalisation_error.values.round(4)
    array([0.2038, 0.1373, 0.0975])
    """

    inputs: Covariance
    activation: activations.Activation = activations.Identity()
    projection: projections.Projection = projections.Gaussian()
    layers: tuple[Layer, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.inputs, Covariance):
            raise InvalidArgumentError("inputs", self.inputs, "a features.Covariance")
        if not min(self.inputs.eigenvalues) > 0.0:
            raise InvalidArgumentError.because(
                "inputs", "have directions of eigenvalue zero", "leave these out"
            )
        layer = Layer(self.activation, self.projection)
        if not layer.projection.stacks:
            raise InvalidArgumentError.because(
                "projection",
                f"{shown(layer.projection)} is not random",
                "describe the features that a given matrix makes by a Covariance",
            )
        object.__setattr__(self, "activation", layer.activation)
        object.__setattr__(self, "projection", layer.projection)
        object.__setattr__(self, "layers", (layer,))

    @property
    def rho(self) -> float:  # type: ignore[override]
        return self.inputs.rho

    @property
    def fixed_dimension(self) -> int:
        return self.inputs.fixed_dimension

    @property
    def visibility_bound(self) -> float:
        return float(self.fixed_dimension)  # no direction is seen by more than p features

    @property
    def blind(self) -> bool:
        return super().blind or self.inputs.blind

    def response(self, k: Array, gamma: Array) -> Response:
        """The response of each direction of the data, at the argument where they respond alike."""
        _, kappa_1, kappa_star = self.kappas[0]
        if kappa_1 == 0.0:  # nothing of the data is seen
            return self.inputs.response(np.full_like(k, np.inf), gamma)

        def below(at: Array, some: Integers) -> Sums:
            return self._sums(0, at, gamma[some], np.ones(len(some)))

        at = (k + kappa_star**2) / kappa_1**2
        u = self.projection.argument_below(below, at, d=gamma, p=np.ones_like(gamma))
        return self.inputs.response(u * gamma, gamma)

    def posterior(self, gamma: Array) -> Posterior:
        raise IncompatibleIngredientsError(
            "the Bayes-optimal error is known for features of white data, and for a Covariance "
            "itself; not for random features of one"
        )
