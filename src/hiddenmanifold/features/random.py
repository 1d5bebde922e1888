"""Random features: the hidden manifold model with one layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold import activations, projections
from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.features.base import Closing, Drawn, Features, applied, drawn_teacher
from hiddenmanifold.numerics.matrices import LinearMap
from hiddenmanifold.spectra import Sums, activated


@dataclass(frozen=True)
class RandomFeatures(Features):
    r"""Features :math:`x = \sigma(F^\top c/\sqrt d)` of white latent data c.

    Parameters
    ----------
    activation : Activation
        The nonlinearity σ.
    projection : Projection
        The matrix F.
    """

    measured_overlaps = ("q_s", "m_s", "Q", "M")

    activation: activations.Activation
    projection: projections.Projection

    @property
    def fixed_ratio(self) -> float | None:
        return self.projection.fixed_ratio

    @property
    def fixed_dimension(self) -> int | None:
        return self.projection.fixed_dimension

    @property
    def corner(self) -> float | None:
        return 1.0 if self.projection.corner else None

    @property
    def mean(self) -> float:
        return self.activation.kappas[0]

    @property
    def variance(self) -> float:
        _, kappa_1, kappa_star = self.activation.kappas
        return kappa_1**2 + kappa_star**2

    @property
    def blind(self) -> bool:
        return self.activation.kappas[1] == 0.0

    @property
    def noiseless(self) -> bool:
        return self.activation.kappas[2] == 0.0

    def as_arguments(self) -> dict[str, object]:
        return {"activation": self.activation, "projection": self.projection}

    def sums(self, k: Array, gamma: Array, boost: Array | float = 1.0) -> Sums:
        return activated(
            lambda at: self.projection.linear(at / boost, gamma), k, self.activation.kappas
        )

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        return self.projection.numbers_drawn(rows, d, p)

    def draw(self, d: int, p: int, rho: float, rng: np.random.Generator) -> DrawnLayer:
        F = self.projection.sample(d, p, rng)
        return DrawnLayer(self.activation, F, drawn_teacher(d, rho, rng), p)

    def further_overlaps(self, at: Closing) -> Columns:
        r"""Those of :math:`s = Fw/\sqrt p`: its square and teacher overlap per d, and responses.

        With :math:`\omega = \kappa_1^2 s + \kappa_\star^2` the directions of S have
        :math:`s(1-r) = k\tilde r/\kappa_1^2` and :math:`\omega(1-r) = kr`.
        """
        _, kappa_1, kappa_star = self.activation.kappas
        e1, e2, e3 = at.e.T
        noise, a = e2 / (at.alpha * e1**2), e3 / e1
        sums = self.sums(at.k, at.gamma)
        V_w = sums.rest / (at.k * at.alpha * e1)
        if self.blind:  # w knows nothing of F, whose columns have squared norm d
            return {"q_s": noise * sums.D11 / at.k, "m_s": 0.0 * V_w, "V_s": V_w, "V_w": V_w}
        k1, ks = kappa_1**2, kappa_star**2
        inner = self.projection.linear((at.k + ks) / k1, at.gamma)
        both = (ks * inner.D1 + at.k * inner.D20) / (at.k + ks)
        return {
            "q_s": (noise * both + at.rho * a**2 / at.gamma * inner.D20) / k1,
            "m_s": at.rho * a * sums.T1 / kappa_1,
            "V_s": inner.D1 / (at.alpha * e1 * k1),
            "V_w": V_w,
        }


@dataclass(frozen=True)
class DrawnLayer(Drawn):
    """A matrix F and a teacher's weights θ."""

    activation: activations.Activation
    F: LinearMap
    theta: Array
    p: int

    def sample(
        self, rows: int, rng: np.random.Generator, *, equivalent: bool = False
    ) -> tuple[Array, Array]:
        d = len(self.theta)
        c = rng.standard_normal((rows, d))
        kappas = self.activation.kappas if equivalent else None
        X = applied(self.activation, kappas, self.F.left(c) / np.sqrt(d), rng)
        return X, c @ self.theta / np.sqrt(d)

    def overlaps(self, w: Array) -> dict[str, float]:
        _, kappa_1, kappa_star = self.activation.kappas
        d = len(self.theta)
        projected = self.F.right(w) / np.sqrt(self.p)
        q_s, q_w = float(projected @ projected) / d, float(w @ w) / self.p
        m_s = float(projected @ self.theta) / d
        Q, M = kappa_1**2 * q_s + kappa_star**2 * q_w, kappa_1 * m_s
        return {"q_s": q_s, "m_s": m_s, "Q": Q, "M": M}
