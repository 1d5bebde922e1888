"""Kernels of infinitely wide networks, by recursion over their layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import EXTREME, check_count, check_number, check_scale
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
        is chosen for each layer such that S(1) = 1: 1 in the first layer, and 2 above relu neurons
        (He et al. 2015).
    bias_variance : float
        The variance b of the biases; less than 1 if the variance of the weights is not given.
    """

    activation: str | activations.Activation | Callable[[Array], Array] = "relu"
    hidden_layers: int = 1
    weight_variance: float | None = None
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", activations.resolved(self.activation))
        layers = check_count("hidden_layers", self.hidden_layers)
        object.__setattr__(self, "hidden_layers", layers)
        check_number("bias_variance", self.bias_variance, 0.0, EXTREME)
        if self.weight_variance is not None:
            check_scale("weight_variance", self.weight_variance)
        elif self.bias_variance >= 1.0:
            raise InvalidArgumentError.because(
                "bias_variance",
                f"= {shown(self.bias_variance)} leaves no variance to the weights",
                "give a number below 1, or give weight_variance as well",
            )

    @property
    def sigma(self) -> activations.Activation:
        """The activation as an object."""
        return cast("activations.Activation", self.activation)

    @cached_property
    def layers(self) -> list[tuple[float, float]]:
        """Variance w of the weights, and S(1), of every hidden layer and of the output."""
        given, b, found, power = self.weight_variance, self.bias_variance, [], 1.0
        while True:
            w = (1.0 - b) / power if given is None else given
            found.append((w, 1.0 if given is None else w * power + b))
            if len(found) > self.hidden_layers:
                return found
            power = float(self.sigma.dual(np.array([found[-1][1]]), found[-1][1]).value[0])

    @np.errstate(invalid="ignore", over="ignore")  # of a jump, which has no tangent kernel
    def kernels_at(self, t: Array) -> tuple[Array, Array]:
        """The network's kernel at cosines t, and its tangent kernel."""
        (w, variance), *above = self.layers
        b, same = self.bias_variance, t == 1.0
        S = np.where(same, variance, w * t + b)  # exactly: duals may be steep there
        tangent = S
        for w, sent in above:
            dual = self.sigma.dual(S, variance)
            S, variance = np.where(same, sent, w * dual.value + b), sent
            tangent = S + w * dual.slope * tangent
        return S, tangent

    @property
    @np.errstate(invalid="ignore", over="ignore")
    def slopes_at_zero(self) -> tuple[float, float]:
        """Derivatives by t, at t = 0, of the network's kernel and of its tangent kernel."""
        (w, variance), *above = self.layers
        S, dS = np.array([self.bias_variance]), np.array([w])
        tangent, d_tangent = S, dS
        for w, sent in above:
            dual = self.sigma.dual(S, variance)
            slope, bend = w * dual.slope, w * dual.bend
            S, variance = w * dual.value + self.bias_variance, sent
            d_tangent = slope * (dS + d_tangent) + bend * dS * tangent
            dS, tangent = slope * dS, S + slope * tangent
        return float(dS[0]), float(d_tangent[0])

    @property
    def has_square_term(self) -> bool:
        return bool(self.sigma.dual(np.zeros(1), self.layers[0][1]).bend[0] > 0.0)

    def _expanded(self, which: int) -> Coefficients:
        """The coefficients of the network's kernel (0), or of its tangent kernel (1)."""
        constant, total = self.kernels_at(np.array([0.0, 1.0]))[which].tolist()
        linear = self.slopes_at_zero[which]
        rest = nonlinear_part("activation", constant, linear, total)
        return Coefficients(constant, linear, rest)


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
        return self.kernels_at(t)[0]

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
        q = self.layers[0][1]
        slope = self.sigma.dual(np.array([q]), q).slope[0]
        if not np.isfinite(slope):
            problem = "is discontinuous: its tangent kernel is infinite"
            if np.isnan(slope):
                problem = "has a cusp, at which the mean square of its derivative did not settle"
            raise InvalidArgumentError.because(
                "activation",
                f"{shown(self.activation)} {problem}",
                "choose one of finite slope, or use kernels.NNGP",
            )

    def __call__(self, t: Array) -> Array:
        return self.kernels_at(t)[1]

    @cached_property
    def coefficients(self) -> Coefficients:
        return self._expanded(1)
