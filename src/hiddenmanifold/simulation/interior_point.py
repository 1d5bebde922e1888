"""Piecewise linear losses: active sets, and an interior-point method where these do not settle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

import numpy as np
from scipy import linalg

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss
from hiddenmanifold.simulation.problem import GOOD, Fit, Shortfalls, solver

Box = tuple[float, float]
"""The least and the largest value of a dual variable."""
Inverse = Callable[[Shortfalls, Array, float], Callable[[Array], Array]]
"""From the data, Θ and λ to x ↦ (BBᵀ/λ + Θ)⁻¹x."""
Bordered = Callable[[Array, float], tuple[Array, float]]
"""From r and q to the x and β with Kx + βv = r, v·x = q."""
Solved = tuple[Array, float, Integers, Bordered]
"""Dual variables and intercept, given which are on which bound; the free ones, their solver."""

MAX_ITERATIONS = 60
LARGEST_GRAM = 2**22
"""Entries up to which BBᵀ is written down although there are more samples than weights."""
HELD = 3e-5
"""Relative size up to which the sum of the samples' pulls on w counts as exactly zero.

In 2658 random draws, with λ up to 1e6, the sum was at most 2.5e-6 where the pulls cancel and at
least 2.5e-4 where they do not. Beyond λ = 1e8 the objective no longer depends on w in double
precision, and the two cases cannot be distinguished.
"""


def interior_point_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Piecewise linear losses with one kink: each λ by the cheapest method that reaches it."""
    knot, below, above, curvature = loss.knots
    jump = np.flatnonzero(above > below)
    if len(jump) != 1 or curvature.any():
        raise InvalidArgumentError(
            "loss", loss, "smooth, or piecewise linear with a single kink, to be fitted exactly"
        )
    (k,) = jump
    low, high = float(below[k]), float(above[k])
    shifted = replace(data, t=data.t - knot[k])
    return [_fit(shifted, (low, high), lam) for lam in lams]


def _fit(data: Shortfalls, box: Box, lam: float) -> Fit:
    """Try the cheapest method that may do, then the next."""
    ways: list[Callable[[], Fit | None]] = [lambda: _active_set(data, box, lam)]
    if data.tall:
        ways.append(lambda: _interior_point(data, box, lam, _by_weights))
    if not data.tall or len(data.t) ** 2 <= LARGEST_GRAM:
        ways.append(lambda: _interior_point(data, box, lam, _by_samples))
    found: list[Fit] = []
    for way in ways:
        with np.errstate(all="ignore"):  # the last steps divide by distances that have vanished
            fit = way()
        if fit is not None:
            found.append(fit)
            if fit.optimality <= GOOD:
                break
    return min(found, key=attrgetter("optimality"))


def _active_set(data: Shortfalls, box: Box, lam: float) -> Fit | None:
    """Guess which dual variables sit on a bound, solve for the others, and guess again.

    It usually takes a handful of iterations; None if one of them leaves more variables free than
    weights could hold, if it cannot be solved, or if the guesses do not settle.
    """
    n, p = data.B.shape
    low, high = box
    scale = lam * n / np.vdot(data.B, data.B)
    h, b, solved, last = np.full(n, 0.5 * (low + high)), 0.0, None, None
    for _ in range(30):
        guess = h + scale * (data.t - data.through_weights(h) / lam - b * data.v)
        active = np.where(guess <= low, low, np.where(guess >= high, high, np.nan))
        if last is not None and np.array_equal(active, last, equal_nan=True):
            return _settled(data, box, lam, solved)
        if np.isnan(active).sum() > p:
            return None
        solved = _on_bounds(data, lam, active)
        if solved is None:
            return None
        (h, b, *_), last = solved, active
    return None


def _on_bounds(data: Shortfalls, lam: float, active: Array) -> Solved | None:
    """Solve with given samples on given bounds, and on none those that are NaN.

    If there is none of these, nothing determines a free intercept.
    """
    free = np.flatnonzero(np.isnan(active))
    if data.free and not free.size:
        return None
    h, solve = np.nan_to_num(active, nan=0.0), _kink_solver(data, free)
    right = lam * data.t[free] - data.through_weights(h)[free]
    h[free], shift = solve(right, -float(data.v @ h))
    return h, shift / lam, free, solve


def _kink_solver(data: Shortfalls, free: Integers) -> Bordered:
    """Solver on the free samples, by least squares if they are too many or depend on one another.

    As many free samples as weights can be solved if the intercept is free.
    """
    v, matrix = data.v[free], data.gram_of(free)
    try:
        if len(free) > data.B.shape[1]:
            raise linalg.LinAlgError  # rank-deficient, though rounding may hide it
        return _with_border(v, data.free, solver(matrix.copy(), 0.0))
    except linalg.LinAlgError:
        border = v[:, None] if data.free else np.zeros((len(v), 0))
        corner = np.zeros((border.shape[1], border.shape[1]))
        bordered = np.block([[matrix, border], [border.T, corner]])

        def by_least_squares(right: Array, total: float) -> tuple[Array, float]:
            right = np.append(right, total) if data.free else right
            x = np.linalg.lstsq(bordered, right, rcond=None)[0]
            return x[: len(v)], float(x[-1]) if data.free else 0.0

        return by_least_squares


def _settled(data: Shortfalls, box: Box, lam: float, solved: Solved | None) -> Fit | None:
    """The fit with given samples on given bounds, and the free ones exactly on the kink.

    Rounding of the dual variables is magnified by 1/λ in the weights, hence the last corrections,
    the smallest that do it.
    """
    if solved is None:
        return None
    h, b, free, solve = solved
    w, change = data.B.T @ h / lam, np.zeros_like(h)
    for _ in range(2 if free.size else 0):
        change[free], shift = solve(data(w, b)[free], 0.0)
        w, b = w + data.B.T @ change, b + shift
    return _with_gap(data, box, lam, (h, b), w)


def _interior_point(data: Shortfalls, box: Box, lam: float, inverse: Inverse) -> Fit:
    """Minimise h·Kh/2λ - t·h over low ≤ h ≤ high (v·h = 0 with an intercept), by Mehrotra's method.

    The shortfalls at the optimum are the differences of the two multipliers. Which samples sit on
    a bound is known long before the last digits: the free ones are then solved for exactly.
    """
    n, (low, high) = len(data.t), box
    h = np.full(n, 0.5 * (low + high))
    # the distances to the bounds are unknowns of their own: they go far below rounding of h
    to_low, to_high = h - low, high - h
    b, lower, upper = 0.0, np.ones(n), np.ones(n)
    best = _with_gap(data, box, lam, (h, b))
    for _ in range(MAX_ITERATIONS):
        theta = lower / to_low + upper / to_high
        try:
            solve = _with_border(data.v, data.free, inverse(data, theta, lam))
        except linalg.LinAlgError:  # rounding prevents further progress
            break
        r_dual = data(data.B.T @ h / lam, b) + lower - upper
        mu = float(lower @ to_low + upper @ to_high) / (2 * n)
        push_low, push_high = np.zeros(n), np.zeros(n)
        for attempt in range(2):  # predictor, then corrector
            right = r_dual - lower + upper + push_low / to_low - push_high / to_high
            dh, db = solve(right, -float(data.v @ h))
            dl = (push_low - lower * dh) / to_low - lower
            du = (push_high + upper * dh) / to_high - upper
            size = _longest(((to_low, dh), (to_high, -dh), (lower, dl), (upper, du)))
            if attempt == 0:
                left = (lower + size * dl) @ (to_low + size * dh)
                left += (upper + size * du) @ (to_high - size * dh)
                centre = mu * (left / (2 * n * mu)) ** 3
                push_low, push_high = centre - dl * dh, centre + du * dh
        size = min(1.0, 0.995 * size)
        h, b = h + size * dh, b + size * db
        to_low, to_high = to_low + size * dh, to_high - size * dh
        lower, upper = lower + size * dl, upper + size * du
        if not (np.isfinite(h).all() and np.isfinite(b)):
            break
        found = _with_gap(data, box, lam, (h, b))
        active = np.where(to_low < lower, low, np.where(to_high < upper, high, np.nan))
        solvable = np.isnan(active).sum() <= data.B.shape[1] + data.free
        if found.optimality < (0.1 if solvable else 1e-4):
            settled = _settled(data, box, lam, _on_bounds(data, lam, active)) or found
            found = min(found, settled, key=attrgetter("optimality"))
        stalled = found.optimality > 0.5 * best.optimality and best.optimality < GOOD
        best = min(best, found, key=attrgetter("optimality"))
        if best.optimality <= 1e-4 * GOOD or stalled:
            break
    return best


def _with_gap(
    data: Shortfalls, box: Box, lam: float, dual: tuple[Array, float], w: Array | None = None
) -> Fit:
    """The fit that follows from dual variables and intercept, with its relative duality gap.

    If the samples' pulls on w cancel, w is set to exactly zero instead of a rounding error.
    """
    low, high = box
    h, b = dual[0].clip(low, high), dual[1]
    if data.free and (excess := float(data.v @ h)):  # of v·h = 0
        room = np.where(data.v * excess > 0, h - low, high - h)
        h = h - data.v * room * (excess / room.sum())
    own = data.B.T @ h / lam

    def fit(w: Array) -> Fit:
        s = data(w, b)
        objective = float(np.maximum(low * s, high * s).sum()) + 0.5 * lam * float(w @ w)
        # P - D is a sum of terms that vanish one by one at the optimum
        gap = float((np.where(s > 0, high - h, low - h) * s).sum())
        gap += 0.5 * lam * float((w - own) @ (w - own))
        return Fit(w, b, objective, data.relative(gap, objective))

    if lam * np.linalg.norm(own) <= HELD * np.sqrt(data.squares @ h**2):
        constant = fit(np.zeros_like(own))
        if constant.optimality <= GOOD:
            return constant
    return fit(own if w is None else w)


def _longest(pairs: tuple[tuple[Array, Array], ...]) -> float:
    """Longest step, at most one, that keeps every quantity positive."""
    steps = (-value[change < 0] / change[change < 0] for value, change in pairs)
    return min(float(np.fmin.reduce(step, initial=1.0)) for step in steps)


def _with_border(v: Array, free: bool, inverse: Callable[[Array], Array]) -> Bordered:
    """Solver of Kx + βv = r, v·x = q, given the inverse of K; of Kx = r without an intercept."""
    along = inverse(v) if free else None

    def solve(r: Array, q: float) -> tuple[Array, float]:
        x = inverse(r)
        if along is None:
            return x, 0.0
        beta = float((v @ x - q) / (v @ along))
        return x - beta * along, beta

    return solve


def _by_samples(data: Shortfalls, theta: Array, lam: float) -> Callable[[Array], Array]:
    """Inverse of BBᵀ/λ + Θ by a factorisation of it, scaled so that no eigenvalue is below one."""
    root = 1.0 / np.sqrt(theta)
    solve = solver((root[:, None] * (data.gram / lam)) * root, 1.0)
    return lambda r: root * solve(root * r)


def _by_weights(data: Shortfalls, theta: Array, lam: float) -> Callable[[Array], Array]:
    """Inverse of BBᵀ/λ + Θ by Woodbury's identity, corrected for its cancellation."""
    scaled = data.B / np.sqrt(theta)[:, None]
    solve = solver(scaled.T @ scaled, lam)

    def rough(r: Array) -> Array:
        return (r - data.B @ solve(data.B.T @ (r / theta))) / theta

    def inverse(r: Array) -> Array:
        x = rough(r)
        for _ in range(2):
            x = x + rough(r - data.through_weights(x) / lam - theta * x)
        return x

    return inverse
