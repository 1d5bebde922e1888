"""Kernels of infinitely wide networks, by recursion over their layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_count, check_number, check_scale
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.features import activations
from hiddenmanifold.features.kernels.base import Coefficients, KernelFunction, nonlinear_part


@dataclass(frozen=True)
class Network(KernelFunction):
    r"""Base of the kernels of infinitely wide networks.

    The inputs of the neurons of layer l have the covariance :math:`S_l = w P_{l-1} + b`, with w and
    b the variances of weights and biases, :math:`P_0 = t`, and :math:`P_l = \hat\sigma(S_l)` in
    terms of the dual activation. The output is linear in the last hidden layer: :math:`S_{L+1}` is
    the kernel of a network of L hidden layers of which only the output is trained. If all layers
    are trained it is the tangent kernel, :math:`\Theta_{L+1}` of :math:`\Theta_1 = S_1` and
    :math:`\Theta_{l+1} = S_{l+1} + w\,\hat\sigma'(S_l)\,\Theta_l`.

    Parameters
    ----------
    activation : str, Activation or callable
        The activation of all hidden layers.
    hidden_layers : int
        Their number.
    weight_variance : float, optional
        The variance w of the weights of all layers, times their number of inputs. By default it
        is chosen for each layer such that S(1) = 1: it is 2 above relu neurons (He et al. 2015).
    bias_variance : float
        The variance b of biases; less than 1 if the variance of the weights is not given.
    """

    activation: str | activations.Activation | Callable[[Array], Array] = "relu"
    hidden_layers: int = 1
    weight_variance: float | None = None
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", activations.resolved(self.activation))
        check_count("hidden_layers", self.hidden_layers)
        check_number("bias_variance", self.bias_variance, 0.0)
        if self.weight_variance is not None:
            check_scale("weight_variance", self.weight_variance)
        elif self.bias_variance >= 1.0:
            raise InvalidArgumentError.because(
                "bias_variance",
                f"= {shown(self.bias_variance)} leaves nothing to the weights",
                "give less than 1, the variance of a layer, or a weight_variance",
            )

    @property
    def sigma(self) -> activations.Activation:
        """The activation as an object."""
        return activations.resolved(self.activation)

    @cached_property
    def scales(self) -> tuple[list[float], list[float]]:
        """Variances w of the weights, and S(1) of the inputs that neurons receive.

        They are those of all hidden layers, and then of the output.
        """
        given, b = self.weight_variance, self.bias_variance
        weights, variances, power = [], [], 1.0
        for _ in range(self.hidden_layers + 1):
            weights.append((1.0 - b) / power if given is None else given)
            variances.append(1.0 if given is None else given * power + b)
            power = float(self.sigma.dual(np.array([variances[-1]]), variances[-1]).value[0])
        return weights, variances

    @np.errstate(invalid="ignore")  # of an activation that jumps, which has no tangent kernel
    def covariance(self, t: Array) -> tuple[Array, Array]:
        """The network's kernel at cosines t, and its tangent kernel."""
        weights, variances = self.scales
        b, same = self.bias_variance, t == 1.0
        S = np.where(same, variances[0], weights[0] * t + b)  # exactly: duals may be steep there
        tangent = S
        for w, received, sent in zip(weights[1:], variances, variances[1:], strict=False):
            dual = self.sigma.dual(S, received)
            S = np.where(same, sent, w * dual.value + b)
            tangent = S + w * dual.slope * tangent
        return S, tangent

    @property
    @np.errstate(invalid="ignore")
    def slopes_at_zero(self) -> tuple[float, float]:
        """Derivatives by t, at t = 0, of the network's kernel and of its tangent kernel."""
        weights, variances = self.scales
        S, dS = np.array([self.bias_variance]), np.array([weights[0]])
        tangent, d_tangent = S, dS
        for w, received in zip(weights[1:], variances, strict=False):
            dual = self.sigma.dual(S, received)
            slope, bend = w * dual.slope, w * dual.bend
            S, d_tangent = (
                w * dual.value + self.bias_variance,
                (slope * (dS + d_tangent) + bend * dS * tangent),
            )
            dS, tangent = slope * dS, S + slope * tangent
        return float(dS[0]), float(d_tangent[0])

    def _expanded(self, which: int) -> Coefficients:
        """The coefficients of the network's kernel (0), or of its tangent kernel (1)."""
        constant, total = self.covariance(np.array([0.0, 1.0]))[which].tolist()
        linear = self.slopes_at_zero[which]
        bend = self.sigma.dual(np.zeros(1), self.scales[1][0]).bend[0]
        rest = nonlinear_part("activation", constant, linear, total)
        return Coefficients(constant, linear, rest, bool(bend > 0.0))


@dataclass(frozen=True)
class NNGP(Network):
    """The kernel of an infinitely wide network of which only the last layer is trained.

    With one hidden layer and ``weight_variance=1`` it is the kernel of infinitely many random
    features of the same activation.

    Parameters
    ----------
    activation, hidden_layers, weight_variance, bias_variance
        As in `Network`.
    """

    def __call__(self, t: Array) -> Array:
        return self.covariance(t)[0]

    @cached_property
    def coefficients(self) -> Coefficients:
        return self._expanded(0)


@dataclass(frozen=True)
class NTK(Network):
    r"""The neural tangent kernel: an infinitely wide network in the lazy regime.

    All of its layers are trained (Jacot, Gabriel and Hongler 2018). With one hidden layer of relu
    neurons it is :math:`h(t) = t\,k_0(t) + k_1(t)`, with the arc-cosine kernels of Cho and Saul
    (2009).

    Parameters
    ----------
    activation, hidden_layers, weight_variance, bias_variance
        As in `Network`. The activation must be continuous.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        q = self.scales[1][0]
        if not np.isfinite(self.sigma.dual(np.array([q]), q).slope[0]):
            raise InvalidArgumentError.because(
                "activation",
                f"{shown(self.activation)} jumps, and its tangent kernel is infinite",
                "choose a continuous one, or the kernel nngp",
            )

    def __call__(self, t: Array) -> Array:
        return self.covariance(t)[1]

    @cached_property
    def coefficients(self) -> Coefficients:
        return self._expanded(1)
