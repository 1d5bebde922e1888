"""Piecewise linear losses: active sets, and an interior-point method where these do not settle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
from scipy import linalg

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss
from hiddenmanifold.simulation.problem import GOOD, Fit, Shortfalls, Weighted, solver

Box = tuple[Array, Array]
"""The least and the largest value of each dual variable."""
Inverse = Callable[[Shortfalls, Array, float], Callable[[Array], Array]]
"""From the data, Θ and λ to x ↦ (BBᵀ/λ + Θ)⁻¹x."""
Bordered = Callable[[Array, float], tuple[Array, float]]
"""From r and q to the x and β with Kx + βv = r, v·x = q."""
Solved = tuple[Array, float, Integers, Bordered]
"""Dual variables and intercept, given which are on which bound; the free ones, their solver."""

MAX_ITERATIONS = 60
LARGEST_GRAM = 2**22
"""Entries up to which BBᵀ is written down although there are more samples than weights."""
USUAL = 3
"""Binary exponents of labels that are fitted as they are. Labels of 0.01, in units of 1, left two
of 1500 quantile fits at small λ 1e-4 and 2e-3 above their minimum."""
ABOVE = (1e2, 1e4, 1e6, 1e8)
"""Factors to larger λ, at which to find the samples on kinks if rounding hides them at λ."""
ON_KINK = 1e-9
"""Shortfall, in units of the largest label, up to which a sample of a finished fit is on a kink."""
HELD = 3e-5
"""Relative size up to which the sum of the samples' pulls on w counts as exactly zero.

In 2658 random draws, with λ up to 1e6, the sum was at most 2.5e-6 where the pulls cancel and at
least 2.5e-4 where they do not. Beyond λ = 1e8 the objective no longer depends on w in double
precision, and the two cases cannot be distinguished.
"""


@dataclass(frozen=True)
class Repeated(Shortfalls):
    """Samples that are repeated for each kink of a loss; the Gram matrix is that of one copy."""

    samples: int

    @property
    def tall(self) -> bool:
        return self.samples > len(self.B.T)

    @cached_property
    def gram(self) -> Array:
        return self.B[: self.samples] @ self.B[: self.samples].T

    def gram_of(self, rows: Integers) -> Array:
        return super().gram_of(rows % self.samples)

    def through_weights(self, h: Array) -> Array:
        if self.tall:
            return super().through_weights(h)
        copies = h.reshape(-1, self.samples)
        return np.tile(self.gram @ copies.sum(0), len(copies))

    def at_one_kink(self, active: Array, s: Array, box: Box) -> Array:
        """Leave each sample at no more than one kink, the nearest of those where it is free."""
        free, distance = np.isnan(active), np.abs(s)
        nearest = np.where(free, distance, np.inf).reshape(-1, self.samples).min(0)
        others = free & (distance > np.tile(nearest, len(s) // self.samples))
        return np.where(others, np.where(s > 0, box[1], box[0]), active)


def interior_point_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Piecewise linear losses: each λ by the cheapest method that reaches it.

    The loss is a constant plus, for each kink k, max(low (s - k), high (s - k)), which is not
    negative. Samples are repeated for each kink; their weights multiply the slopes.
    """
    weights = loss.weights if isinstance(loss, Weighted) else np.ones(len(data.t))
    loss = loss.loss if isinstance(loss, Weighted) else loss
    knot, below, above = jumps(loss)
    if loss.knots[3].any():
        raise InvalidArgumentError(
            "loss", loss, "smooth, or piecewise linear, to be fitted exactly"
        )
    slope = float(np.clip(0.0, below[0], above[-1]))  # zero, unless the loss is unbounded below
    low = np.minimum(below, slope) - np.minimum(above, slope)
    high = np.maximum(above, slope) - np.maximum(below, slope)
    low[0], high[0] = low[0] + slope, high[0] + slope
    ends = knot[0] - knot
    constant = loss.value(knot[:1])[0] - np.maximum(low * ends, high * ends).sum()
    n, kinks = len(data.t), len(knot)
    rows = np.tile(np.arange(n), kinks)
    c = _unit(data.t)  # of labels, shortfalls, weights and the objective
    shifted = replace(data, t=(data.t[rows] - np.repeat(knot, n)) / c, unit=data.unit / c)
    if kinks > 1:
        shifted = Repeated(data.B[rows], shifted.t, data.v[rows], data.free, shifted.unit, n)
    box = np.outer(low, weights).ravel(), np.outer(high, weights).ravel()
    fits = [_fit(shifted, box, lam * c) for lam in lams]
    rest = float(weights.sum() * constant)
    return [Fit(c * f.w, c * f.b, c * f.objective + rest, f.optimality) for f in fits]


def _unit(t: Array) -> float:
    """The power of two next to the root mean square of labels of unusual size, otherwise 1.

    The interior-point method starts from multipliers of 1, which are shortfalls.
    """
    rms = linalg.norm(t, check_finite=False) / np.sqrt(len(t))  # does not overflow
    exponent = np.rint(np.log2(rms)) if rms else 0.0
    return 1.0 if abs(exponent) <= USUAL else float(2.0 ** np.clip(exponent, -1000, 1000))


def jumps(loss: Loss) -> tuple[Array, Array, Array]:
    """The shortfalls at which the slope of a loss jumps, and the slopes below and above."""
    knot, below, above, _ = loss.knots
    at = above > below
    return knot[at], below[at], above[at]


def _fit(data: Shortfalls, box: Box, lam: float) -> Fit:
    """Try the cheapest method that may do, then the next."""
    ways: list[Callable[[], Fit | None]] = [lambda: _active_set(data, box, lam)]
    if data.tall:
        ways.append(lambda: _interior_point(data, box, lam, _by_weights))
    if not data.tall or len(data.t) ** 2 <= LARGEST_GRAM:
        ways.append(lambda: _interior_point(data, box, lam, _by_samples))
    if data.tall:
        ways.append(lambda: _by_larger(data, box, lam))
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
    h, b, solved, last = 0.5 * (low + high), 0.0, None, None
    for _ in range(30):
        s = data.t - data.through_weights(h) / lam - b * data.v
        guess = h + scale * s
        active = np.where(guess <= low, low, np.where(guess >= high, high, np.nan))
        if isinstance(data, Repeated):
            active = data.at_one_kink(active, s, box)
        if last is not None and np.array_equal(active, last, equal_nan=True):
            return _settled(data, box, lam, solved)
        if np.isnan(active).sum() > p:
            return None
        solved = _on_bounds(data, lam, active)
        if solved is None:
            return None
        (h, b, *_), last = solved, active
    return None


def _by_larger(data: Shortfalls, box: Box, lam: float) -> Fit | None:
    """Solve with those samples on kinks that are there at a larger λ.

    With more samples than weights the fit is, for all λ that are small enough, determined by the
    same samples: that of a linear programme, to which λ adds less than rounding.
    """
    for factor in ABOVE:
        above = _interior_point(data, box, factor * lam, _by_weights)
        if above.optimality <= GOOD:
            s = data(above.w, above.b)
            edge = ON_KINK * np.abs(data.t).max()
            active = np.where(s < -edge, box[0], np.where(s > edge, box[1], np.nan))
            fit = _settled(data, box, lam, _on_bounds(data, lam, active))
            if fit is not None and fit.optimality <= GOOD:
                return fit
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
    h = 0.5 * (low + high)
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
    if isinstance(data, Repeated):
        return _by_repeated_samples(data, theta, lam)
    root = 1.0 / np.sqrt(theta)
    solve = solver((root[:, None] * (data.gram / lam)) * root, 1.0)
    return lambda r: root * solve(root * r)


def _by_repeated_samples(data: Repeated, theta: Array, lam: float) -> Callable[[Array], Array]:
    """The same by the sum z of the variables of each sample, which obeys an equation of its own.

    With D = ΣΘ⁻¹ over the kinks of a sample it is (BBᵀ/λ + D⁻¹)z = D⁻¹ΣΘ⁻¹r.
    """
    each = theta.reshape(-1, data.samples)
    root = np.sqrt((1.0 / each).sum(0))
    solve = solver((root[:, None] * (data.gram / lam)) * root, 1.0)
    softest = each.argmin(0), np.arange(data.samples)

    def inverse(r: Array) -> Array:
        right = r.reshape(each.shape)
        z = root * solve((right / each).sum(0) / root)
        x: Array = (right - data.gram @ z / lam) / each
        x[softest] = 0.0  # it is what the others leave of z: the quotient would lose its digits
        x[softest] = z - x.sum(0)
        return x.ravel()

    return inverse


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
