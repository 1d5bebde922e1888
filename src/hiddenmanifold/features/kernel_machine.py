"""Kernels as features: infinitely many in the limit, one for each sample at finite size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from hiddenmanifold.arrays import Array, Numbers
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.features.base import Drawn, Features, White
from hiddenmanifold.features.kernels import Custom, KernelFunction, resolved
from hiddenmanifold.features.pair_sums import PairSums, white_pair
from hiddenmanifold.features.posterior import DiscretePosterior
from hiddenmanifold.features.spectral_sums import Kappas, Sums, white

INFINITE = 1e60
"""Number of features per latent dimension that represents infinitely many.

More than any ratio of sizes (at most 1e40), and few enough that no square of 1/INFINITE underflows.
"""
SINGULAR = 1e-6
"""Ratio of the least to the largest pivot of Cholesky's factor below which eigenvectors are used.

Its square is the ratio of eigenvalues, 1e-12; rounding leaves smaller ones four digits at most."""
EPS = float(np.finfo(float).eps)
NEGATIVE = 1e-9
"""Relative size of a negative eigenvalue of a Gram matrix that rounding does not explain."""


@dataclass(frozen=True, init=False)
class Kernel(Features):
    r"""A rotation-invariant kernel :math:`h(c\cdot c'/|c||c'|)` of white data c.

    The model is the kernel machine :math:`f(c) = \sum_\mu a_\mu h(\cdot) + b` that minimises
    :math:`\sum_\mu \ell(y^\mu, f^\mu) + \tfrac\lambda2 |f|^2` with the norm of the kernel's Hilbert
    space: a linear model with infinitely many features, p = ∞. The only ratio of sizes is n/d. A
    kernel with h(0) > 0 provides an intercept, free if n h(0) is large compared with h(1) and λ.

    Parameters
    ----------
    function : str, KernelFunction or callable
        The function h of the cosine of the angle between two inputs: "ntk", "nngp", "rbf",
        "laplace", "polynomial", an object of `hiddenmanifold.kernels`, or a vectorised function.
    derivative_at_zero : float, optional
        h'(0) of a function, if it is known more precisely than from its values.

    Raises
    ------
    InvalidArgumentError
        If the function is not a positive definite kernel.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> kernel = hm.kernels.NTK("relu", hidden_layers=2)
    >>> model = hm.Model(kernel=kernel, teacher="sign", loss="logistic")
    >>> ds = hm.predict(model, n_over_d=[1.0, 10.0], regularisation=0.01)
    >>> ds.generalisation_error.values.round(4)
    array([0.2774, 0.0755])
    """

    fixed_ratio = 1.0
    infinite = True

    function: KernelFunction

    def __init__(
        self,
        function: str | KernelFunction | Callable[[Array], Array],
        derivative_at_zero: float | None = None,
    ) -> None:
        if derivative_at_zero is not None:
            if not callable(function) or isinstance(function, KernelFunction):
                raise InvalidArgumentError.because(
                    "derivative_at_zero",
                    f"cannot be given for {shown(function)}",
                    "give it only with a function of your own",
                )
            function = Custom(function, derivative_at_zero)
        object.__setattr__(self, "function", resolved(function))

    def as_arguments(self) -> dict[str, object]:
        return {"kernel": self.function}

    @cached_property
    def kappas(self) -> Kappas:
        """The coefficients κ0, κ1, κ⋆ of random features with the same limit."""
        constant, linear, nonlinear = self.function.coefficients
        if not np.isfinite([constant, linear, nonlinear]).all():
            raise InvalidArgumentError.because(
                "kernel",
                f"{shown(self.function)} has coefficients beyond double precision",
                "choose parameters nearer to 1",
            )
        if not linear + nonlinear > 0.0:
            raise InvalidArgumentError.because(
                "kernel", f"{shown(self.function)} is constant", "choose one that varies"
            )
        return float(np.sqrt(constant)), float(np.sqrt(linear)), float(np.sqrt(nonlinear))

    @property
    def mean(self) -> float:
        return self.kappas[0]

    @property
    def variance(self) -> float:
        return self.kappas[1] ** 2 + self.kappas[2] ** 2

    @property
    def penalised_intercept(self) -> bool:
        return self.mean == 0.0 and self.function.has_square_term

    @property
    def blind(self) -> bool:
        return self.kappas[1] == 0.0

    @property
    def noiseless(self) -> bool:
        return self.kappas[2] == 0.0

    @property
    def size(self) -> float:
        return INFINITE

    def sums(self, k: Array, gamma: Array, boost: Array | float = 1.0) -> Sums:
        """The sums of the linear part, which is white, and of the directions that share κ⋆².

        They are in units of d, as if p were d.
        """
        _, kappa_1, kappa_star = self.kappas
        one = np.ones_like(k)
        linear = Sums.of_nothing(k, 1.0) if self.blind else white(k / (kappa_1**2 * boost), one)
        noise = kappa_star**2 / INFINITE
        r, s = noise / (noise + k), k / (noise + k)
        return replace(
            linear,
            D20=linear.D20 + INFINITE * r * r,
            D02=linear.D02 + INFINITE * s * s,
            D21=linear.D21 + INFINITE * r * r * s,
            D12=linear.D12 + INFINITE * r * s * s,
            left=linear.left + (0.0 if self.noiseless else INFINITE * s),
        )

    def pair_sums(self, k: Numbers, other: Numbers, gamma: Array) -> PairSums:
        _, kappa_1, kappa_star = self.kappas
        one, unit = np.ones(k.shape), kappa_1**2
        linear = (
            PairSums.of_nothing(k, 1.0) if self.blind else white_pair(k / unit, other / unit, one)
        )
        noise = kappa_star**2 / INFINITE
        (r, s), (rr, ss) = ((noise / (noise + at), at / (noise + at)) for at in (k, other))
        return replace(
            linear,
            D_rr=linear.D_rr + INFINITE * r * rr,
            D_rs=linear.D_rs + INFINITE * r * ss,
            D_sr=linear.D_sr + INFINITE * s * rr,
            D_ss=linear.D_ss + INFINITE * s * ss,
        )

    def largest(self, gamma: Array) -> Array:
        _, kappa_1, kappa_star = self.kappas
        return np.full_like(gamma, max(kappa_1**2, kappa_star**2 / INFINITE))

    def posterior(self, gamma: Array) -> DiscretePosterior:
        hidden = np.full_like(gamma, float(self.blind))
        return DiscretePosterior(np.ones_like(gamma), 1.0 - hidden, hidden, np.ones(1))

    def columns(self, n: int, p: int) -> int:
        return n

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        return 4.0 * rows * rows  # cosines, kernel, factor and its inverse

    def redrawn(self, drawn: Drawn, p: int, rng: np.random.Generator) -> Drawn:
        same = isinstance(drawn, DrawnKernel) and drawn.kernel == self
        return drawn if same else DrawnKernel(drawn.inputs, self)

    def draw(self, d: int, p: int, rho: float, rng: np.random.Generator) -> DrawnKernel:
        return DrawnKernel(White.drawn(d, rho, rng), self)


@dataclass(frozen=True)
class DrawnKernel(Drawn):
    """A kernel of data in d dimensions, before its training samples are drawn."""

    kernel: Kernel

    def trained_on(
        self, c: Array, rng: np.random.Generator, *, equivalent: bool
    ) -> tuple[Drawn, Array]:
        machine = KernelMachine.at(self, c, equivalent=equivalent)
        return machine, machine.own_features

    def features(self, c: Array, rng: np.random.Generator, *, equivalent: bool) -> Array:
        raise TypeError("features of a kernel are those at its training samples: draw these first")


@dataclass(frozen=True)
class KernelMachine(Drawn):
    r"""A kernel at its training samples, in whose span every minimiser lies.

    With a factor A of their Gram matrix :math:`K = AA^\top`, the kernel machine is a linear model,
    :math:`f = Aw` at the training samples, and :math:`|w|` is the norm of the function. Features
    are :math:`x(c) = \sqrt p A^+ k(c)`, with the kernels k(c) of an input and the training samples
    and the rank p of K; the coefficients of the machine are :math:`a = (A^+)^\top w`.
    """

    kernel: Kernel
    centres: Array
    """Training inputs (n, d)."""
    factor: Array
    """A, of shape (n, p)."""
    inverse: Array
    """The transpose of the pseudo-inverse of A, (n, p)."""
    least: float
    """The least eigenvalue of K, or a number of its size."""
    error: float
    """Rounding of the eigenvalues of K, those that are left out included."""

    @classmethod
    def at(cls, drawn: DrawnKernel, c: Array, *, equivalent: bool) -> KernelMachine:
        """The kernel machine of training inputs c (n, d)."""
        kernel = drawn.kernel
        gram = _linear_part(kernel, c, c) if equivalent else kernel.function.gram(c)
        if equivalent:
            gram[np.diag_indices_from(gram)] += kernel.kappas[2] ** 2
        return cls(drawn.inputs, kernel, c, *_factors(gram, kernel))

    @property
    def own_features(self) -> Array:
        """The features of the training samples."""
        x: Array = np.sqrt(self.factor.shape[1]) * self.factor
        return x

    def features(self, c: Array, rng: np.random.Generator, *, equivalent: bool) -> Array:
        if equivalent:
            k = _linear_part(self.kernel, c, self.centres)
        else:
            k = self.kernel.function.gram(c, self.centres)
        x: Array = k @ (np.sqrt(self.inverse.shape[1]) * self.inverse)
        return x

    def latent_weights(self, w: Array) -> Array:
        directions = self.centres / np.linalg.norm(self.centres, axis=1, keepdims=True)
        linear: Array = self.kernel.kappas[1] ** 2 * (directions.T @ (self.inverse @ w))
        return linear

    def overlaps(self, w: Array) -> dict[str, float]:
        return self.inputs.overlaps(self.latent_weights(w))

    def rounding(self, lam: float) -> float:
        """The error of eigenvalues of K over λ plus the least of them.

        An error E of K changes the minimum of the square loss by a relative |E|/(λ + least) at
        most. The eigenvalues of a linear kernel that are left out are zero.
        """
        if self.kernel.noiseless:
            return 0.0
        return self.error / (lam + self.least) if lam + self.least > 0.0 else np.inf

    def constant(self, w: Array) -> float:
        return self.kernel.mean**2 * float((self.inverse @ w).sum())


def _linear_part(kernel: Kernel, left: Array, right: Array) -> Array:
    """The Gaussian-equivalent kernel of different samples."""
    kappa_0, kappa_1, _ = kernel.kappas
    k: Array = kappa_0**2 + kappa_1**2 / left.shape[1] * (left @ right.T)
    return k


def _factors(gram: Array, kernel: Kernel) -> tuple[Array, Array, float, float]:
    """A factor A of a Gram matrix AAᵀ, the transpose of its pseudo-inverse, and two sizes.

    These are the least eigenvalue of the matrix, and the rounding of its eigenvalues.

    Raises
    ------
    InvalidArgumentError
        If the matrix has a negative eigenvalue.
    """
    try:
        factor = linalg.cholesky(gram, lower=True, check_finite=False)
        pivots = np.diag(factor)
        if pivots.min() > SINGULAR * pivots.max():
            inverse = linalg.solve_triangular(
                factor, np.eye(len(gram)), lower=True, check_finite=False
            )
            return factor, inverse.T, float(pivots.min() ** 2), 4.0 * EPS * float(np.trace(gram))
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(gram, check_finite=False)
    if values[0] < -NEGATIVE * values[-1]:
        raise InvalidArgumentError.because(
            "kernel",
            f"{shown(kernel.function)} is not positive definite: a Gram matrix of {len(gram)} "
            f"samples has the eigenvalue {values[0]:.3g}",
            "choose another function",
        )
    error = len(gram) * EPS * float(values[-1])
    kept = values > error
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return vectors * roots, vectors / roots, max(float(values[0]), 0.0), error
