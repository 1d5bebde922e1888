r"""The covariance of the predictions of two fits, by Newton's method on its one equation.

With the sums over the responses of both fits (`CrossSums`), the channel averages of either and
:math:`C = E[h_1h_2]` at common samples,

.. math:: Q_{12} = \frac{C}{\alpha e_1^2} D_2 + \rho a^2 T_2,

and :math:`\rho Q_{12} - M^2` and :math:`\rho + Q_{12} - 2M` follow as those of a single fit, with
nothing subtracted. C grows with :math:`Q_{12}`, so that there is one solution. Fits on independent
samples have C = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Integers
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.features.spectral_sums import CrossSums
from hiddenmanifold.resampling import ONCE
from hiddenmanifold.theory.features_side import Overlaps, overlaps, spectral_arguments
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.pairs.common_labels import RULES, common_slopes
from hiddenmanifold.theory.solver.certificate import Certificate, Solved, polish
from hiddenmanifold.theory.solver.settings import Tolerances

CLOSE = 1e-5
"""Relative step at which Newton's method leaves the roughest quadrature: it squares its error."""
TURNS = 20
"""Newton steps on one level, at most: three to five are usual."""
ALIKE = 1e-13
"""Relative difference of sums that is rounding; the true one matters by its root, 3e-7."""
LEAST = 1e-15
"""Private variance, relative to the shared one, that is left where rounding leaves none."""


@dataclass(frozen=True)
class Shared:
    """What two fits of a model have in common.

    Fits that share samples may draw them independently from these, or see their labels with
    independent noise.
    """

    features: bool = True
    samples: bool = True
    noise: bool = True

    def check(self, features: Features) -> None:
        """Raise if features of a given matrix are to be drawn again."""
        if not self.features:
            features.check_redrawn()


@dataclass
class SharedOverlaps(Certificate):
    """The law of the part that two predictions share, at a batch of points.

    ``own`` are the overlaps of a single fit; ``law`` has the Q of the shared part, which is the
    covariance of the predictions, and what follows from it. ``x`` (points, unknowns) are the
    unknowns of a prediction of that law, and ``private`` is the variance of the rest of each.
    """

    own: Overlaps
    law: Overlaps
    x: Array
    private: Array

    def certify(self, solved: Solved) -> None:
        """Let the certificate of the solution vouch for the pair as well, in place."""
        failed = (solved.status == Status.CONVERGED) & (self.status != Status.CONVERGED)
        solved.status[failed] = self.status[failed]
        solved.residual = np.fmax(solved.residual, self.residual)
        solved.quadrature_error = np.fmax(solved.quadrature_error, self.quadrature_error)
        solved.iterations = solved.iterations + self.iterations


class Equation(Protocol):
    """The equation of C at some points, for any two fits."""

    def __getitem__(self, some: Integers) -> Self: ...

    def turn(self, C: Array, level: int) -> tuple[Array, Array]:
        """The C that follows from one, and its derivative."""

    def relative(self, C: Array) -> Array:
        """The derivative of the logarithm of Q₁₂ by C."""

    def bounded(self, C: Array) -> Array:
        """The nearest C that two fits may have."""

    @property
    def guess(self) -> Array:
        """A first C."""


@dataclass(frozen=True)
class PairEquation:
    """The equation of one kind of pair of fits at some points, for C.

    ``own`` are the overlaps of a single fit at its unknowns ``x``; ``unit`` is 1/(α e₁²), ``noise``
    is e₂ times it, ``a`` is e₃/e₁. ``shared`` is what the fits have in common. Features that are
    drawn independently may still respond as the same ones do, to rounding: those ``alike``.
    """

    channel: Channel
    x: Array
    own: Overlaps
    cross: CrossSums
    unit: Array
    noise: Array
    a: Array
    alike: Booleans
    shared: Shared

    @classmethod
    def of(cls, solved: Solved, shared: Shared) -> PairEquation:
        """The equation of two fits of a solved model."""
        problem = solved.problem
        points, features, channel = problem.points, problem.features, problem.channel
        at = spectral_arguments(points, solved.e, channel.rho)
        same = shared.features or not features.random
        cross = own_sums = CrossSums.of_equal(features.sums(at.k, at.gamma))
        if not same:
            response = features.response(at.k, at.gamma)
            cross = CrossSums.of_independent(response, response, at.gamma)
        alike = _close(cross.D2, own_sums.D2) & _close(cross.T2, own_sums.T2)
        own, unit = overlaps(features, at), 1.0 / (at.alpha * at.e1**2)
        shared = replace(shared, features=same, noise=shared.noise or channel.label_noise == 0.0)
        return cls(channel, solved.x, own, cross, unit, at.noise, at.a, alike, shared)

    def __getitem__(self, some: Integers) -> Self:
        own, cross = vars(self.own).items(), vars(self.cross).items()
        return replace(
            self,
            x=self.x[some],
            own=Overlaps(**{name: values[some] for name, values in own}),
            cross=CrossSums(**{name: values[some] for name, values in cross}),
            unit=self.unit[some],
            noise=self.noise[some],
            a=self.a[some],
            alike=self.alike[some],
        )

    @property
    def equal(self) -> Booleans:
        """Where the fits have everything in common."""
        common = self.shared.samples and self.shared.noise and self.channel.copies == ONCE
        return self.alike if common else np.zeros_like(self.alike)

    @property
    def gain(self) -> Array:
        """The derivative of Q₁₂ by C."""
        return self.unit * self.cross.D2

    def law(self, C: Array) -> Overlaps:
        """The overlaps of the shared part."""
        rho, spread, ra = self.channel.rho, self.gain * C, self.channel.rho * self.a
        return replace(
            self.own,
            Q=spread + ra * self.a * self.cross.T2,
            deficit=rho * spread + ra**2 * self.cross.W,
            excess=spread + rho * self.cross.U2,
        )

    def private(self, law: Overlaps) -> Array:
        """The variance of the rest of each prediction."""
        return np.maximum(self.own.Q - law.Q, LEAST * law.Q)

    def turn(self, C: Array, level: int) -> tuple[Array, Array]:
        """The C that follows from one, and its derivative."""
        law = self.law(C)
        x = unknowns_of(self.channel, self.x, law)
        private, noise = self.private(law), self.shared.noise
        value, slope = common_slopes(self.channel, x, private, level, noise=noise)
        return value, slope * self.gain

    def relative(self, C: Array) -> Array:
        return self.gain / self.law(C).Q

    def bounded(self, C: Array) -> Array:
        return np.maximum(C, 0.0)

    @property
    def guess(self) -> Array:
        """C, if it were proportional to Q₁₂."""
        e2 = self.noise / self.unit
        with np.errstate(all="ignore"):
            shared = self.law(np.zeros_like(e2)).Q / (self.own.Q - self.gain * e2)
        return e2 * np.clip(np.nan_to_num(shared), LEAST, 1.0)


def unknowns_of(channel: Channel, x: Array, law: Overlaps) -> Array:
    """The unknowns of a prediction of another law, with the same V and intercept."""
    found, n = x.copy(), channel.overlap_unknowns
    with np.errstate(all="ignore"):
        found[:, :n] = channel.coordinates(law)[0]
    if found.shape[1] > n:
        found[:, n:] *= (channel.intercept_unit(x) / channel.intercept_unit(found))[:, None]
    return found


def shared_overlaps(solved: Solved, shared: Shared) -> SharedOverlaps:
    """The law of what the predictions of two fits of a solved model share."""
    equation = PairEquation.of(solved, shared)
    if not shared.samples:
        return _found(equation, np.zeros_like(equation.unit), _exact(len(equation.unit)))
    C = equation.noise / equation.unit
    different = np.flatnonzero(~equation.equal)
    exact = _exact(len(C))
    if different.size:
        tolerances = solved.problem.tolerances
        C[different], found = solution(equation[different], len(different), tolerances)
        for name, values in vars(exact).items():
            values[different] = getattr(found, name)
    return _found(equation, C, exact)


def _close(values: Array, others: Array) -> Booleans:
    """Where two sums are the same, to rounding."""
    close: Booleans = np.abs(values - others) <= ALIKE * np.abs(others)
    return close


def _exact(points: int) -> Certificate:
    """The certificate of numbers that need no search."""
    residual, quadrature, conditioning = np.zeros((3, points))
    status, iterations = np.zeros((2, points), np.intp)
    return Certificate(status, residual, quadrature, conditioning, iterations)


def solution(equation: Equation, points: int, tolerances: Tolerances) -> tuple[Array, Certificate]:
    """C at each point by Newton's method, and how well it is known."""
    C = equation.guess
    certificate = Certificate(
        status=np.full(points, Status.MAX_ITERATIONS),
        residual=np.full(points, np.inf),
        quadrature_error=np.full(points, np.inf),
        conditioning_error=np.zeros(points),
        iterations=np.zeros(points, np.intp),
    )

    def turn(index: Integers, level: int) -> tuple[Array, Array, Booleans]:
        some = equation[index]
        with np.errstate(all="ignore"):
            value, slope = some.turn(C[index], level)
            unit = some.relative(C[index])
            step = (value - C[index]) / (1.0 - slope)
            error, residual = np.abs(unit * step), np.abs(unit * (value - C[index]))
        C[index] = np.where(np.isfinite(step), some.bounded(C[index] + step), C[index])
        certificate.residual[index] = residual
        certificate.status[index] = Status.QUADRATURE
        return error, np.zeros_like(error), error <= tolerances.target

    for _ in range(TURNS):
        error, _, _ = turn(np.arange(points), 0)
        certificate.iterations += 1
        if not (error > CLOSE).any():
            break
    good = np.flatnonzero(error <= CLOSE)
    polish(certificate, good, turn, tolerances, finest=len(RULES) - 1)
    return C, certificate


def _found(equation: PairEquation, C: Array, certificate: Certificate) -> SharedOverlaps:
    """The law at the solution."""
    law, own = equation.law(C), equation.own
    names = ("Q", "deficit", "excess")
    same = {n: np.where(equation.equal, getattr(own, n), getattr(law, n)) for n in names}
    law = replace(law, **same)
    x = unknowns_of(equation.channel, equation.x, law)
    private = equation.private(law)
    return SharedOverlaps(**vars(certificate), own=own, law=law, x=x, private=private)
