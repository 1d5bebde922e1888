r"""Predict fits to n samples from ridge regressions on the N samples at hand.

Two estimates give curves along κ, on which n and λ select a point. The plain one assumes that all
samples have equal leverage; with n' = n - 1, and 1/n for the cost of the intercept,

.. math:: \lambda = \kappa(n' - D_1), \qquad E = \text{bias}\,(1 + 1/n)/(1 - D_2/n').

The corrected one gives each sample its relative leverage s. With :math:`\langle sV/(1+sV)\rangle =
D_1/n'`,

.. math:: \lambda = \kappa D_1/V, \qquad E = \text{bias}\,(1 + 1/n)/(1 - \psi_n D_2/n').

This is ridge regression, whose prediction is the mean of both. With other losses two classes are a
mixture (`two_class_features`) of samples of equal leverage: the plain estimate is the prediction,
and the corrected one is the same with the energies that the corrected measures have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.data.ridge import LEAST_LEFT, Path, Ridge, variance_factor
from hiddenmanifold.data.score_shapes import Shape, interpolation
from hiddenmanifold.data.spectrum import Functions, Measures, estimated_measures
from hiddenmanifold.data.two_class_features import Kernel, Within, mixed
from hiddenmanifold.losses import Loss, Square

ACROSS = 240
"""Points of a curve along κ."""
BINS = 256
"""Groups of samples of about the same relative leverage."""
QUANTITIES = ("generalisation_error", "test_loss", "training_loss")
SQUARE = Square()
Estimate = tuple[Array, Array]
"""`QUANTITIES` (quantities, λ) by one of the two estimates, and κ."""


@dataclass(frozen=True)
class Curve:
    """An estimate of fits to n samples along the κ of the measures: arrays (κ,), λ increasing."""

    lam: Array
    kappa: Array
    columns: Array
    """Mean square error, training loss, slope by the label and variance within classes."""
    cut: bool
    """Whether smaller λ are out of reach, not only of no effect."""

    def at(self, lam: Array) -> tuple[Array, Array]:
        """The columns at any λ, and κ."""
        with np.errstate(divide="ignore"):
            x = np.log(np.maximum(lam, 1e-300))
        grid = np.log(self.lam)
        values = [np.interp(x, grid, y) for y in self.columns]
        lost = self.cut & (x < grid[0])
        return np.where(lost, np.nan, values), np.exp(np.interp(x, grid, np.log(self.kappa)))


@dataclass(frozen=True)
class Point:
    """A prediction: value, half of plain minus corrected (quantities, λ), and its support."""

    value: Array
    halved: Array
    kappa: Array
    resolved: Booleans

    def over(self, other: Point) -> Point:
        """The ratio of two predictions."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.value / other.value
            halved = ratio * (self.halved / self.value - other.halved / other.value)
        return Point(ratio, np.nan_to_num(halved), self.kappa, self.resolved)


@dataclass(frozen=True)
class Profile:
    """How unequal samples are, along κ, in groups of about the same relative leverage.

    Attributes
    ----------
    log_kappa : array (κ,)
        Of fits that can be trusted.
    share : array (groups,)
        Of the samples.
    s, square, product : arrays (groups, κ)
        Means of the relative leverage, of squared left-out residuals, and of their products
        with labels.
    """

    log_kappa: Array
    share: Array
    s: Array
    square: Array
    product: Array

    @classmethod
    def of(cls, path: Path) -> Profile:
        """Sort samples by their relative leverage at the weakest regularisation."""
        good = np.flatnonzero(path.trusted)
        s, left_out = path.relative_leverage[:, good], path.left_out[:, good]
        order = np.argsort(s[:, 0])
        groups = np.array_split(order, min(BINS, len(order)))
        means = (
            np.array([values[g].mean(0) for g in groups])
            for values in (s, left_out**2, left_out * path.y[:, None])
        )
        share = np.array([len(g) for g in groups]) / len(order)
        return cls(np.log(path.kappa[good]), share, *means)

    def at(self, kappa: Array) -> tuple[Array, Array, Array]:
        """The three means at any κ: interpolated between those known, or at the nearest."""
        there = interpolation(self.log_kappa, kappa)
        return there(self.s), there(self.square), there(self.product)


@dataclass(frozen=True)
class Forecast:
    """Both estimates from a sample, without the sample itself.

    Attributes
    ----------
    plain, corrected : Measures
        Assuming equal leverage, and corrected for unequal leverage.
    profile : Profile
        How unequal the samples are.
    mean : float
        Mean of the labels.
    p : int
        Number of features.
    shape : Shape or None
        Shape of the scores within classes, if the error is a misclassification rate.
    """

    plain: Measures
    corrected: Measures
    profile: Profile
    mean: float
    p: int
    shape: Shape | None

    @classmethod
    def of(cls, ridge: Ridge, *, classes: bool) -> Forecast | None:
        """Read the measures of a sample; None if a few rows decide the fit at every λ."""
        if not ridge.whole_path.trusted.any():
            return None
        profile = Profile.of(ridge.whole_path)
        shape = Shape.of(ridge.whole_path) if classes else None
        return cls(*estimated_measures(ridge), profile, ridge.mean, ridge.p, shape)

    def at(
        self, n: Array | float, lam: Array, p: float | None = None, loss: Loss = SQUARE
    ) -> Point:
        """The prediction for fits to n samples (with p random features instead of those seen)."""
        ns = np.broadcast_to(np.asarray(n, dtype=float), lam.shape)
        (a, at_a), (b, _) = (
            self._ridge(measures, ns, lam, p)
            if loss.quadratic
            else self._mixture(measures, ns, lam, p, loss)
            for measures in (self.plain, self.corrected)
        )
        b = np.where(np.isfinite(b), b, 2.0 * a)
        resolved = np.isfinite(a).all(0) & (at_a >= self.plain.resolved * (1.0 - 1e-9))
        both, halved = resolved & (p is None) & loss.quadratic, 0.5 * (a - b)
        if p is not None and not loss.quadratic:  # what becomes of the sample's own features
            again, _ = self._mixture(self.plain, ns, lam, self.p, loss)
            off = again - self.value(ns, lam, None, loss)
            halved = np.hypot(halved, np.where(np.isfinite(off), off, a))
        return Point(np.where(both, 0.5 * (a + b), a), halved, at_a, resolved)

    def value(self, n: Array | float, lam: Array, p: float | None, loss: Loss) -> Array:
        """That of the prediction alone."""
        if loss.quadratic:
            return self.at(n, lam, p).value
        ns = np.broadcast_to(np.asarray(n, dtype=float), lam.shape)
        return self._mixture(self.plain, ns, lam, p, loss)[0]

    def _ridge(self, measures: Measures, ns: Array, lam: Array, p: float | None) -> Estimate:
        """`QUANTITIES` of ridge regression, and κ; those that share n are made together."""
        out, kappa = np.empty((len(QUANTITIES), len(lam))), np.empty(len(lam))
        for n in np.unique(ns):
            at = np.flatnonzero(ns == n)
            curve = self._curve(measures, float(n), self._kappas(float(n), lam[at], p), p)
            (error, loss, slope, spread), kappa[at] = curve.at(lam[at])
            shown = error
            if self.shape:
                m = self.mean
                means = (m + (1.0 - m) * slope, (1.0 + m) * slope - m)
                shown = self.shape.wrong(kappa[at], means, np.sqrt(spread))
            out[:, at] = shown, 0.5 * error, loss
        return out, kappa

    def _mixture(
        self, measures: Measures, ns: Array, lam: Array, p: float | None, loss: Loss
    ) -> Estimate:
        """The same of fits with any loss to two classes."""
        if self.shape is None:
            raise ValueError("a loss other than the square needs classes")
        prior = 0.5 * (1.0 + self.mean)
        kernel = None if p is None else Kernel.of(measures, self.p)
        seen = kernel.measures if kernel else measures
        within = Within.of(seen, prior, p or self.p, projected=kernel is not None)
        found = mixed(within, prior, loss, ns, lam)
        M, b, deviation = found["M"], found["intercept"], np.sqrt(found["Q"])
        kappa = within.argument(lam * found["V"])
        if kernel:
            kappa = kernel.seen_at(kappa)
        wrong = self.shape.wrong(np.nan_to_num(kappa, nan=1.0), (M + b, M - b), deviation)
        values = np.array([wrong, found["test_loss"], found["training_loss"]])
        return np.where(np.isfinite(kappa), values, np.nan), kappa

    def _kappas(self, n: float, lam: Array, p: float | None) -> Array:
        """Where to follow the curves: between bounds of the κ that belong to n and λ.

        From below, κ is at least λ/n', and where the fit has fewer than n' degrees of freedom.
        """
        most = n - 1 if p is None else min(n - 1, p)
        trace = float(self.plain.w @ self.plain.directions)
        floor = 1e-13 * float(self.plain.w.max())
        top = 3.0 * ((float(lam.max()) + trace) / (n - 1) + (0.0 if p is None else trace / p))
        full = 0.0
        if self.plain.directions.sum() > most:
            low, full = floor, trace / most
            for _ in range(60):  # halve the bracket of D1 = most
                middle = np.sqrt(low * full)
                above = self.plain.at(np.array([middle])).D1[0] >= most
                low, full = (middle, full) if above else (low, middle)
        least = 0.9 * float(lam.min()) / (n - 1) - full if p is None else 0.0
        start = max(least, 1e-7 * full, floor)
        return full + np.geomspace(start, max(top, 10 * start), ACROSS)

    def _curve(self, measures: Measures, n: float, kappa: Array, p: float | None) -> Curve:
        at = measures.at(kappa)
        if p is not None:
            at = at.with_features(p, self.p)
        plain = measures is self.plain
        lam, error, loss = _equal(at, n) if plain else self._unequal(at, n, kappa)
        good = (lam > 0) & (np.diff(np.maximum.accumulate(lam), prepend=0.0) > 0)
        # not so where the sample's features show less of their kernel than others would
        seen = (at.D11 > 0) & (at.D2 > 0) & (at.bias > 0) & (at.kappa > 0)
        good &= np.isfinite(lam) & (np.cumsum(~seen[::-1])[::-1] == 0)
        slope = at.T1 / at.variance
        spread = at.T2 + (error - at.bias) - slope * at.T1
        columns = np.array([error, loss, slope, np.maximum(spread, 1e-12 * at.variance)])
        return Curve(lam[good], kappa[good], columns[:, good], not seen.all())

    def _unequal(self, at: Functions, n: float, where: Array) -> tuple[Array, Array, Array]:
        """λ, test error and training loss by the relative leverage of samples at κ `where`."""
        share, n_free = self.profile.share, n - 1.0
        s, square, product = self.profile.at(where)
        V = response(s, at.D1 / n_free, share)
        left = 1.0 - variance_factor(s, square, V, share) * at.D2 / n_free
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.where(left > LEAST_LEFT, at.bias * (1.0 + 1.0 / n) / left, np.nan)
            shrunk = share @ (product / (1.0 + s * V)) / (share @ product)
            loss = 0.5 * shrunk * (at.variance - at.T1) * n_free / n
            return at.kappa * at.D1 / V, error, loss


def _equal(at: Functions, n: float) -> tuple[Array, Array, Array]:
    """λ, test error and training loss if all samples have equal leverage."""
    rest = n - 1.0 - at.D1
    with np.errstate(divide="ignore"):
        error = at.bias * (1.0 + 1.0 / n) / (1.0 - at.D2 / (n - 1.0))
    return at.kappa * rest, error, 0.5 * rest * (at.variance - at.T1) / n


def response(s: Array, target: Array, share: Array) -> Array:
    """The V at which the mean of sV/(1 + sV) is the `target`; inf from 1 on.

    The mean is over the first axis of s, of groups with some share of the samples. It is concave in
    V, so that Newton's method climbs to the root from below.
    """
    V = np.where(target < 1.0, target / (share @ s), np.inf)
    todo = np.flatnonzero(target < 1.0)
    for _ in range(200):
        if not todo.size:
            break
        t, v = s[:, todo], V[todo]
        shrunk = 1.0 + t * v
        missing = target[todo] - share @ (t * v / shrunk)
        step = missing / (share @ (t / shrunk**2))
        V[todo] = v + step
        todo = todo[(np.abs(step) > 1e-12 * V[todo]) & (missing > 1e-15 * target[todo])]
    if todo.size:
        raise RuntimeError("the response of samples did not converge")
    return V
