"""How many samples bring the error down to a target, at a fixed number of features."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers
from hiddenmanifold.model import Model
from hiddenmanifold.numerics.crossings import bridged, descents, with_turns
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.best_lambda.search import ErrorByLambda, optimum
from hiddenmanifold.theory.curves.peak import AROUND, ErrorByFeatures, at_threshold, threshold
from hiddenmanifold.theory.limits import Phase, fitted_phase
from hiddenmanifold.theory.points import HUGE, Points
from hiddenmanifold.theory.predictions import asymptotics

ERROR = "generalisation_error"
DECADES = np.log(10.0) * np.arange(-4.0, 13.0)
"""Values of log(n/p) that are tried at the best λ, where errors vary slowly.

No further apart: the cubic through two samples of what falls like 1/n would turn between."""
SCAN = np.union1d(DECADES, np.log(10.0) * np.arange(-3.0, 4.0, 0.25))
"""Those that are tried at a fixed λ."""
APART = 1e-7
"""Least distance of two that are tried."""
BESIDE = 5e-5
"""Least distance from the threshold at which the limit λ → 0⁺ is tried: nearer it is hard."""
SETTLED = np.log(1e8)
"""Beyond, a point that cannot be solved is left out: errors have settled before."""
END = np.log(HUGE)
"""The log(n/p) that stands for infinitely many samples."""


@dataclass(frozen=True)
class ErrorBySamples:
    """The error as a function of t = log(n/p) with d/p held fixed.

    It is that at λ, or if there are `bounds`, at the best λ between them.
    """

    model: Model
    gamma: Array
    lam: Array
    bounds: tuple[float, float] | None
    workers: Workers

    def __call__(self, point: Integers, t: Array) -> tuple[Array, Array]:
        """The error and its slope by t, which an optimal λ does not change."""
        points = Points.of(np.exp(t), self.gamma[point], self.lam[point], t >= END)
        if self.bounds is None:
            found = asymptotics(self.model, points, self.workers, slopes=("n",))
        else:
            errors = ErrorByLambda(self.model, points, ERROR, self.workers)
            _, found = optimum(errors, *self.bounds, slopes=("n",))
        return found[ERROR], found[f"{ERROR}_by_log_n"]

    def scan(self, t: Array) -> Samples:
        """Samples at each of t (values, points), where it is finite."""
        value, point = np.nonzero(np.isfinite(t))
        return Samples.of(self, point, t[value, point])


def fewest_samples(curve: ErrorBySamples, target: Array) -> tuple[Columns, Booleans]:
    """The fewest n/d from which on the error stays at its target or below, and what was missed.

    Beside it the first n/d at which the error is there, its value, and that of infinite data.
    """
    samples = _turning(curve).ordered()
    last = np.searchsorted(samples.point, np.arange(len(target)), "right") - 1
    infinite = samples.value[last]
    samples = samples[~np.isnan(samples.value) | (samples.t < SETTLED)]
    (lasting, error), (first, _) = descents(curve, samples, target)
    columns: Columns = {
        "n_over_d": np.exp(lasting) / curve.gamma,
        "first_n_over_d": np.exp(first) / curve.gamma,
        ERROR: error,
        "infinite_data_limit": infinite,
    }
    return columns, np.isnan(lasting) | np.isnan(first)


def _turning(curve: ErrorBySamples) -> Samples:
    """Samples of each curve, so many that it has no minimum or maximum between two of them.

    The last is that of infinite data, or as good as infinite: the best λ may grow with n, so that
    its error need not end at that of a fixed one.
    """
    pairs = np.stack([curve.gamma, curve.lam])
    rows, which = np.unique(pairs, axis=1, return_inverse=True)
    which = which.ravel()  # NumPy 2.0 alone gives it two axes
    different = replace(curve, gamma=rows[0], lam=rows[1])
    if curve.bounds is None:
        samples = _at_fixed_lambda(different)
    else:
        scan = different.scan(np.add.outer(DECADES, 0.0 * rows[0]))
        samples = with_turns(different, bridged(scan, np.empty((0, len(which)))))
    index = [np.flatnonzero(samples.point == one) for one in which]
    point = np.repeat(np.arange(len(which)), [len(some) for some in index])
    return replace(samples[np.concatenate(index)], point=point)


def _at_fixed_lambda(curve: ErrorBySamples) -> Samples:
    """The same for a fixed λ, at which curves may have narrow peaks."""
    model, gamma, lam = curve.model, curve.gamma, curve.lam
    features = ErrorByFeatures(model, "d_over_p", gamma, lam, curve.workers)
    separating = fitted_phase(model)[0] in (Phase.SEPARATED, Phase.DIVERGING)
    place, zero = -threshold(features, separating), np.equal(lam, 0.0)
    latent = np.log(gamma)  # features that are almost linear also peak at n = d
    near = [np.add.outer(AROUND, centre) for centre in (place, latent)]
    t = np.sort(np.concatenate([np.add.outer(SCAN, 0.0 * gamma), *near]), axis=0)
    t[1:][np.diff(t, axis=0) < APART] = np.nan
    t[zero & (np.abs(t - place) < BESIDE)] = np.nan
    found = curve.scan(np.append(t, np.full((1, len(gamma)), END), axis=0))
    scan = bridged(found[found.t < END], np.stack([place, latent]))
    samples = with_turns(curve, scan) + found[found.t == END]
    height = np.full_like(place, np.nan)
    if zero.any():
        height[zero] = at_threshold(features[zero], -place[zero], separating)[0]
    peak = np.flatnonzero(~np.isnan(height))
    return samples + Samples(peak, place[peak], height[peak], np.zeros(len(peak)))
