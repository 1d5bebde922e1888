"""Compare separability thresholds with linear programmes on drawn samples, as sizes grow.

`make verify` runs it, as does `python benchmarks/linear_programmes.py`: five to ten times as many
samples as the tests, and a second ratio of samples to dimensions.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import linprog

import hiddenmanifold as hm
from hiddenmanifold.simulation.samples import Sizes, World

SIZES = {3: {20: 1500, 40: 750, 80: 250}, 10: {10: 1500, 20: 750, 40: 175}}
"""Number of samples drawn, by n/d and d."""


def separable(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether some w has y x.w >= 1 for all samples: a linear programme without objective."""
    for method in ("highs-ds", "highs-ipm"):  # at the threshold one of them may fail
        p = X.shape[1]
        found = linprog(
            np.zeros(p), -y[:, None] * X, -np.ones(len(y)), bounds=(None, None), method=method
        )
        if found.status in (0, 2):  # feasible or not
            return found.status == 0
    raise AssertionError(found.message)


def fewest_features(
    model: hm.Model, n: int, d: int, guess: float, rng: np.random.Generator
) -> float:
    """The number of features from which on one drawn sample is separable, by bisection."""
    low, high = 0, round(min(1.0, 2.2 * guess) * n)
    sample = World.draw(model, Sizes(n, high, d), rng).sample(n, rng)
    trial, step, found = round(guess * n), 1 + round(0.4 * np.sqrt(n)), set()
    while high - low > 1:
        enough = separable(sample.X[:, :trial], sample.y)
        low, high = (low, trial) if enough else (trial, high)
        found.add(enough)
        trial = trial - step if enough else trial + step
        if len(found) == 2 or not low < trial < high:
            trial = (low + high) // 2
    assert found == {True, False}  # else it may be at the end of the range
    return high - 0.5


def extrapolated(
    model: hm.Model, n_over_d: int, sizes: dict[int, int], guess: float
) -> tuple[float, float]:
    """The threshold of p/n for d → ∞ and its standard error, from seeds by dimension."""
    d, mean, error = np.empty((3, len(sizes)))
    for i, (size, seeds) in enumerate(sizes.items()):
        n = n_over_d * size
        found = [
            fewest_features(model, n, size, guess, np.random.default_rng([11, n, seed])) / n
            for seed in range(seeds)
        ]
        d[i], mean[i], error[i] = size, np.mean(found), np.std(found, ddof=1) / np.sqrt(seeds)
    # long runs at n/d = 10 (3000, 1500 and 350 seeds) fit a power of d between -1/2 and -1
    design = np.stack([np.ones(len(sizes)), d ** (-2 / 3)], axis=1) / error[:, None]
    covariance = np.linalg.inv(design.T @ design)
    return (covariance @ design.T @ (mean / error))[0], np.sqrt(covariance[0, 0])


if __name__ == "__main__":
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    worst = 0.0
    for n_over_d, sizes in SIZES.items():
        theory = float(hm.separability_threshold(model, n_over_d=n_over_d).p_over_n)
        limit, deviation = extrapolated(model, n_over_d, sizes, theory)
        worst = max(worst, abs(limit - theory) / deviation)
        print(f"n/d = {n_over_d}: theory {theory:.4f}, programmes {limit:.4f} ± {deviation:.4f}")
    sys.exit(worst > 4.0)
