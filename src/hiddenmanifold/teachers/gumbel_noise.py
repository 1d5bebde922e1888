"""Averages over normal fields with Gumbel noise, of which the largest wins."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.arrays import Array

WIDTH = 9.0
"""Range of normal numbers, in deviations."""
FINE = 0.35
"""Step of sums over a function, in units of the length over which it varies."""
LARGE = 100.0
"""Exponent beyond which no noise is below."""
LOW, HIGH = 3.7, 36.0
"""Range of Gumbel noise: beyond, the density is below 1e-16."""


def normal_grid(step: float) -> tuple[Array, Array]:
    """A grid of standard normal numbers, and their weights."""
    z = np.arange(-WIDTH, WIDTH + step, step)
    return z, np.exp(-0.5 * z**2) * (step / np.sqrt(2.0 * np.pi))


def score_grid(temperature: float, step: float) -> Array:
    """A grid of standard normal fields with noise."""
    low, high = WIDTH + LOW * temperature, WIDTH + HIGH * temperature
    return np.arange(-low, high + step, step)


def gumbel(x: Array, temperature: float) -> tuple[Array, Array]:
    """Density and distribution function of Gumbel noise at x."""
    fall = np.exp(np.minimum(-x / temperature, LARGE))
    below = np.exp(-fall)
    return fall * below / temperature, below


def mean_of_winner(K: int, temperature: float) -> float:
    """The mean standard normal field of the class that wins."""
    from scipy.special import ndtr

    if temperature == 0.0:
        z, weights = normal_grid(0.05)
        return float(K * (z * ndtr(z) ** (K - 1.0)) @ weights)
    step = FINE * min(temperature, 1.0)
    nu, weights = normal_grid(step)
    u = score_grid(temperature, step)
    density, below = gumbel(u[:, None] - nu, temperature)
    return float(K * step * (density @ (weights * nu)) @ (below @ weights) ** (K - 1.0))
