"""Gaussian covariates of any covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from hiddenmanifold.arrays import Array, Numbers
from hiddenmanifold.checks import check_number, check_scale, finite_vector
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, shown
from hiddenmanifold.features.base import Drawn, Features, Inputs
from hiddenmanifold.features.pair_sums import PairSums, discrete_pair
from hiddenmanifold.features.posterior import DiscretePosterior
from hiddenmanifold.features.spectral_sums import Response, Sums, discrete, sum_rounding

ANY = 1e20
"""A variance so large that it bounds nothing."""


@dataclass(frozen=True)
class Covariance(Features):
    r"""Features :math:`x \sim N(0, \Omega)` in :math:`R^p`, known by two spectral measures.

    The teacher's field is a linear function of the features and of something independent of them.
    The latent space is that of the features: d = p.

    Parameters
    ----------
    eigenvalues : sequence of float
        The p eigenvalues :math:`w_i` of :math:`\Omega/p`.
    teacher_weights : sequence of float, optional
        For each, :math:`t_i = (v_i \cdot E[\nu x])^2/p` with its eigenvector :math:`v_i`. Left out
        with the means of several classes, ``teachers.Classes(means=…)``, which take their place.
    rho : float
        Variance of the teacher's field :math:`\nu`, at least the visible :math:`\sum_i t_i/w_i`.
        A hidden part below about 1e-15 of it is attributed to rounding of the weights.
    drawn_teacher : bool
        Whether the weights are mean squares of a teacher drawn from a normal law, independently
        along each eigenvector, rather than those of one teacher. The Bayes-optimal error needs it.

    Raises
    ------
    InvalidArgumentError
        If these are not two sequences of one length, negative, or show more than rho.
    """

    fixed_ratio = 1.0
    eigenvalues: tuple[float, ...]
    teacher_weights: tuple[float, ...] | None = None
    rho: float = 1.0
    drawn_teacher: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_scale("rho", self.rho)
        if self.teacher_weights is None:
            blank = np.zeros(len(finite_vector("eigenvalues", self.eigenvalues)))
            object.__setattr__(self, "teacher_weights", tuple(blank.tolist()))
        if not isinstance(self.drawn_teacher, bool | np.bool_):
            raise InvalidArgumentError("drawn_teacher", self.drawn_teacher, "True or False")
        columns = {
            name: finite_vector(name, getattr(self, name))
            for name in ("eigenvalues", "teacher_weights")
        }
        w, t = columns.values()
        for name, values in columns.items():
            if values.min() < 0:
                raise InvalidArgumentError(name, values.min(), "not negative")
            object.__setattr__(self, name, tuple(values.tolist()))
        if len(t) != len(w):
            raise InvalidArgumentError.because(
                "teacher_weights",
                f"have length {len(t)}",
                f"give one for each of the {len(w)} eigenvalues",
            )
        if not w.any():
            raise InvalidArgumentError.because(
                "eigenvalues", "are all zero", "at least one must be positive"
            )
        if t[w == 0].any():
            raise InvalidArgumentError.because(
                "teacher_weights",
                "are positive where the eigenvalue is zero",
                "set them to zero there",
            )
        if (seen := float((t[w > 0] / w[w > 0]).sum())) > self.rho * (1 + 1e-9):
            raise InvalidArgumentError(
                "rho", self.rho, f"at least what the features show of the field, {seen:.6g}"
            )

    @classmethod
    def within_classes(
        cls, eigenvalues: tuple[float, ...], teacher_weights: tuple[float, ...], prior: float
    ) -> Covariance:
        r"""The covariates of each of two classes, from those of all samples together.

        All samples have the covariances :math:`\Omega = \Sigma + u\mu\mu^\top` with themselves and
        :math:`u\mu` with the label, whose variance is u; the contribution of the classes is
        subtracted. The `rho` of the result is that of the `teachers.Mixture` with the same prior.

        Parameters
        ----------
        eigenvalues : sequence of float
            The p eigenvalues of :math:`\Omega/p`.
        teacher_weights : sequence of float
            For each, :math:`t_i = (v_i \cdot Cov(x, y))^2/p` with its eigenvector :math:`v_i`.
        prior : float
            Probability of the label +1, in (0, 1).

        Raises
        ------
        InvalidArgumentError
            If features show the label without error, or the arguments are none of a `Covariance`.
        """
        check_number("prior", prior, 0.0, 1.0, open_low=True)
        total, u = cls(eigenvalues, teacher_weights, ANY), 4.0 * prior * (1.0 - prior)
        w, s = np.array(total.eigenvalues), np.sqrt(np.array(total.teacher_weights))
        if not (seen := float((s[w > 0] ** 2 / w[w > 0]).sum())) < u * (1 - 1e-9):
            raise InvalidArgumentError.because(
                "teacher_weights",
                f"explain a variance {seen:.6g} of the label",
                f"they must explain less than its variance, 4 prior (1 - prior) = {u:.6g}",
            )
        within, vectors = np.linalg.eigh(np.diag(w) - np.outer(s, s) / u)
        within[within < 1e-14 * within[-1]] = 0.0  # directions that no sample has
        t = np.where(within > 0.0, (vectors.T @ (s / u)) ** 2, 0.0)
        rho = float((t[within > 0.0] / within[within > 0.0]).sum())
        return cls(tuple(within.tolist()), tuple(t.tolist()), rho)

    @cached_property
    def _atoms(self) -> tuple[Array, Array, Array, float]:
        """Eigenvalues in units of 1/p, their parts of the directions and of the field, the rest."""
        w, t = np.array(self.eigenvalues), np.array(self.teacher_weights)
        p, positive = len(w), w > 0
        w, t = w[positive], t[positive]
        return p * w, np.full(len(w), 1.0 / p), t / (w * self.rho), self._hidden

    @property
    def _hidden(self) -> float:
        """Part of the field that no feature shows; zero if it may be rounding of the weights."""
        w, t = np.array(self.eigenvalues), np.array(self.teacher_weights)
        w, t = w[w > 0], t[w > 0]
        shown = t / w
        triples = zip(t.tolist(), shown.tolist(), w.tolist(), strict=True)
        rounded = [float(Fraction(a) - Fraction(b) * Fraction(c)) for a, b, c in triples]
        hidden = math.fsum([self.rho, *(-shown).tolist(), *(-np.array(rounded) / w).tolist()])
        return hidden / self.rho if hidden > sum_rounding(len(w)) * self.rho else 0.0

    @property
    def fixed_dimension(self) -> int:
        return len(self.eigenvalues)

    @property
    def variance(self) -> float:
        return float(np.sum(self.eigenvalues))

    @property
    def blind(self) -> bool:
        return not any(self.teacher_weights or ())

    def sums(self, k: Array, gamma: Array, boost: Array | float = 1.0) -> Sums:
        return discrete(k / boost, *self._atoms)

    def pair_sums(self, k: Numbers, other: Numbers, gamma: Array) -> PairSums:
        w, share, tau, hidden = self._atoms
        return discrete_pair(k, other, w, share, tau, hidden=hidden)

    def response(self, k: Array, gamma: Array) -> Response:
        w, share, tau, hidden = self._atoms
        with np.errstate(over="ignore"):
            r = 1.0 / (1.0 + k[:, None] / w)
        return Response(share, tau, hidden, r, 1.0 / (1.0 + w / k[:, None]))

    def largest(self, gamma: Array) -> Array:
        return np.full_like(gamma, len(self.eigenvalues) * max(self.eigenvalues))

    def posterior(self, gamma: Array) -> DiscretePosterior:
        if not self.drawn_teacher:
            raise IncompatibleIngredientsError(
                "the Bayes-optimal error needs the law of the teacher, and these features state "
                "the weights of one: if they are mean squares of random ones, say "
                "Covariance(..., drawn_teacher=True)"
            )
        tau = self._atoms[2]
        visible = self.visible(gamma)
        # in units in which the best visible direction has G = 1
        directions = np.full_like(gamma, 1.0 / (len(self.eigenvalues) * tau.max()))
        return DiscretePosterior(directions, visible.fraction, visible.hidden, tau / tau.max())

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        return float(p)

    def redrawn(self, drawn: Drawn, p: int, rng: np.random.Generator) -> Drawn:
        return drawn if type(drawn) is Drawn else Drawn(drawn.inputs)

    def draw(self, d: int, p: int, rho: float, rng: np.random.Generator) -> Drawn:
        w, t = np.array(self.eigenvalues), np.array(self.teacher_weights)
        theta = np.divide(np.sqrt(t / p), w, where=w > 0, out=np.zeros(p))
        if self.drawn_teacher and not self.blind:  # what is seen has its variance exactly
            seen = w @ theta**2
            theta *= rng.standard_normal(p)
            theta *= np.sqrt(seen / (w @ theta**2))
        return Drawn(Covariates(p * w, theta, rho))


def check_means(features: Features, means: Sequence[Sequence[float]]) -> None:
    """Raise unless means of classes are those of features of a covariance within classes."""
    if not isinstance(features, Covariance):
        raise IncompatibleIngredientsError(
            f"{shown(features)} and means of classes along eigenvectors do not fit together: "
            "means= is for features.Covariance; describe the means of others in their latent "
            "space, by separation= or gram="
        )
    p, rows = len(features.eigenvalues), np.array(means)
    if rows.shape[1] != p:
        raise IncompatibleIngredientsError(
            f"means of {rows.shape[1]} features and a covariance of {p} do not fit together: give "
            "one mean for each class and eigenvalue"
        )
    if np.ptp(rows[:, np.array(features.eigenvalues) == 0.0], axis=0).any():
        raise IncompatibleIngredientsError(
            "means differ along an eigenvector of eigenvalue zero, where classes have no overlap: "
            "give equal means there, or a positive eigenvalue"
        )


@dataclass(frozen=True)
class Covariates(Inputs):
    """Variances of the data along eigenvectors, and the contribution of each to the field."""

    variances: Array
    theta: Array
    rho: float

    def sample(self, rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
        X = np.sqrt(self.variances) * rng.standard_normal((rows, len(self.theta)))
        hidden = max(0.0, self.rho - float(self.variances @ self.theta**2))
        unseen = np.sqrt(hidden) * rng.standard_normal(rows)
        return X, X @ self.theta + unseen

    @property
    def field_covariance(self) -> Array:
        return self.variances * self.theta

    def overlaps(self, w: Array) -> dict[str, float]:
        p, covariances = len(w), self.variances * w
        return {
            "Q": float(w @ covariances) / p,
            "M": float(self.theta @ covariances) / np.sqrt(p),
        }
