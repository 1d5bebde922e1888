"""How many samples bring the error down to a target, at a fixed number of features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns
from hiddenmanifold.numerics.crossings import bridged, crossings, with_turns
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.theory.curves.error_curve import END, ERROR, ErrorCurve
from hiddenmanifold.theory.curves.peak import AROUND, at_threshold, threshold

DECADES = np.log(10.0) * np.arange(-4.0, 13.0)
"""Values of log(n/p) that are tried at the best λ, where errors vary slowly.

They must not be further apart: the cubic through two samples of a curve that falls like 1/n would
have a spurious turn between them."""
SCAN = np.union1d(DECADES, np.log(10.0) * np.arange(-3.0, 4.0, 0.25))
"""Those that are tried at a fixed λ."""
APART = 1e-7
"""Least distance of two that are tried."""
BESIDE = 5e-5
"""Least distance from the threshold at which the limit λ → 0⁺ is tried: nearer it is hard."""
SETTLED = np.log(1e8)
"""Beyond this, a point that cannot be solved is left out: the error hardly changes there."""


def fewest_samples(curve: ErrorCurve, target: Array) -> tuple[Columns, Booleans]:
    """The fewest n/d from which on the error stays at its target or below, and what was missed.

    Also returned are the first n/d at which the error reaches its target, the error there, and the
    error with infinite data.
    """
    samples = _turning(curve).ordered()
    last = np.searchsorted(samples.point, np.arange(len(target)), "right") - 1
    infinite = samples.value[last]
    samples = samples[~np.isnan(samples.value) | (samples.t < SETTLED)]
    (lasting, error), (first, _) = crossings(curve, samples, target)
    columns: Columns = {
        "n_over_d": np.exp(lasting) / curve.held,
        "first_n_over_d": np.exp(first) / curve.held,
        ERROR: error,
        "infinite_data_limit": infinite,
    }
    return columns, np.isnan(lasting) | np.isnan(first)


def _turning(curve: ErrorCurve) -> Samples:
    """Enough samples of each curve that it has no minimum or maximum between neighbours.

    The last sample has infinite data, or practically infinite data: the best λ may grow with n, so
    that its error need not tend to that of a fixed λ.
    """
    pairs = np.stack([curve.held, curve.lam])
    rows, which = np.unique(pairs, axis=1, return_inverse=True)
    which = which.ravel()  # NumPy 2.0 alone gives it two axes
    different = replace(curve, held=rows[0], lam=rows[1])
    if curve.bounds is None:
        samples = _at_fixed_lambda(different)
    else:
        scan = different.scan(np.add.outer(DECADES, 0.0 * rows[0]))
        samples = with_turns(different, bridged(scan, np.empty((0, len(which)))))
    index = [np.flatnonzero(samples.point == one) for one in which]
    point = np.repeat(np.arange(len(which)), [len(some) for some in index])
    return replace(samples[np.concatenate(index)], point=point)


def _at_fixed_lambda(curve: ErrorCurve) -> Samples:
    """The same for a fixed λ, at which curves may have narrow peaks."""
    gamma, place, zero = curve.held, threshold(curve), np.equal(curve.lam, 0.0)
    latent = np.log(gamma)  # features that are almost linear also peak at n = d
    near = [np.add.outer(AROUND, centre) for centre in (place, latent)]
    t = np.sort(np.concatenate([np.add.outer(SCAN, 0.0 * gamma), *near]), axis=0)
    t[1:][np.diff(t, axis=0) < APART] = np.nan
    t[zero & (np.abs(t - place) < BESIDE)] = np.nan
    found = curve.scan(np.append(t, np.full((1, len(gamma)), END), axis=0))
    scan = bridged(found[found.t < END], np.stack([place, latent]))
    samples = with_turns(curve, scan).extended(found[found.t == END])
    height = np.full_like(place, np.nan)
    if zero.any():
        height[zero] = at_threshold(curve[zero], place[zero])[0]
    peak = np.flatnonzero(~np.isnan(height))
    peaks = Samples(peak, place[peak], height[peak], np.zeros(len(peak)))
    return samples.extended(peaks)
