"""Measure the search for the best regularisation against a golden-section search.

Both run on the same engine, all points of the grid at once; the golden section knows no derivative
and trusts that there is one minimum between its ends.
"""

import time

import numpy as np
from configurations import model
from page import heading

import hiddenmanifold as hm
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import asymptotics

LOW, HIGH = 1e-8, 1e5
ACCURACY = 1e-5
"""Width of log λ at which the golden section stops: the error is then known to rounding."""


def main(side: int = 50) -> None:
    heading(f"Optimal regularisation, logistic loss, {side} x {side} points, one core")
    n_over_d, p_over_n = np.geomspace(0.3, 10, side), np.geomspace(0.1, 10, side)
    start = time.perf_counter()
    ds = hm.predict(
        model(), n_over_d=n_over_d, p_over_n=p_over_n, regularisation="optimal", workers=1
    )
    ours = time.perf_counter() - start
    alpha = np.broadcast_to(1 / p_over_n, (side, side)).ravel().copy()
    gamma = (1 / np.multiply.outer(n_over_d, p_over_n)).ravel()
    start = time.perf_counter()
    golden, turns = golden_section(model(), alpha, gamma)
    theirs = time.perf_counter() - start
    error = ds.generalisation_error.transpose("n_over_d", "p_over_n").values.ravel()
    points = error.size
    print(f"along the path, all of [0, inf]: {1e3 * ours / points:.2f} ms per point")
    print(f"golden section, [{LOW:g}, {HIGH:g}]: {1e3 * theirs / points:.2f} ms per point")
    print(f"{turns} evaluations: ratio {theirs / ours:.1f}")
    better = golden - error
    print(f"its error minus ours: between {better.min():.1e} and {better.max():.1e};", end=" ")
    zero = float((ds.optimal_regularisation == 0).mean())
    print(f"the optimum is at 0+ for {100 * zero:.0f} % of the points", flush=True)


def golden_section(
    chosen: hm.Model, alpha: np.ndarray, gamma: np.ndarray
) -> tuple[np.ndarray, int]:
    """Least error found by narrowing brackets of log λ by the golden ratio, and evaluations."""

    def error(t: np.ndarray) -> np.ndarray:
        return asymptotics(chosen, Points.of(alpha, gamma, np.exp(t)), Workers(1))[
            "generalisation_error"
        ]

    ratio = 0.5 * (np.sqrt(5) - 1)
    a, b = np.full_like(alpha, np.log(LOW)), np.full_like(alpha, np.log(HIGH))
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = error(c), error(d)
    turns = 2
    while (b - a).max() > ACCURACY:
        left = at_c < at_d
        a, b = np.where(left, a, c), np.where(left, d, b)
        c_new, d_new = b - ratio * (b - a), a + ratio * (b - a)
        fresh = error(np.where(left, c_new, d_new))
        at_c, at_d = np.where(left, fresh, at_d), np.where(left, at_c, fresh)
        c, d = c_new, d_new
        turns += 1
    return np.minimum(at_c, at_d), turns


if __name__ == "__main__":
    main()
