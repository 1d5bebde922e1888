r"""Exact minimisers of :math:`\sum_i \rho(s_i) + \tfrac\lambda2|w|^2` with a certificate.

Classification and regression share one form: the shortfalls are :math:`s = t - Bw - bv`, with
:math:`B = \mathrm{diag}(y)A, t = a, v = y` or :math:`B = A, t = y, v = 1`, where
:math:`A = X/\sqrt p`. The optimum obeys :math:`\lambda w = B^\top h` with
:math:`h_i \in \partial\rho(s_i)`, and :math:`v\cdot h = 0` if the intercept is free.

The certificate is a bound on the relative distance of the objective from its minimum: by strong
convexity :math:`|\lambda w - B^\top h|^2/2\lambda` for smooth losses, the duality gap otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss, Square
from hiddenmanifold.registry import Task

Array = NDArray[np.float64]

GOOD = 1e-10
"""Relative distance from the minimum of a fit that counts as exact."""
MAX_ITERATIONS = 200


@dataclass(frozen=True)
class Fit:
    """A minimiser: weights, intercept, objective and how far it may be above the minimum."""

    w: Array
    b: float
    objective: float
    optimality: float


@dataclass(frozen=True)
class Shortfalls:
    """The data of a fit in the form s = t - B w - b v."""

    B: Array
    t: Array
    v: Array
    free: bool

    @classmethod
    def of(cls, loss: Loss, task: Task, X: Array, y: Array, *, intercept: bool) -> Shortfalls:
        """Bring features and labels into the common form."""
        A = X / np.sqrt(X.shape[1])
        if task is Task.REGRESSION:
            return cls(A, y, np.ones(len(y)), intercept)
        return cls(A * y[:, None], np.full(len(y), loss.anchor), y, intercept)

    def __call__(self, w: Array, b: float) -> Array:
        return self.t - self.B @ w - b * self.v


def fit_path(
    loss: Loss, task: Task, X: Array, y: Array, lams: Array, *, intercept: bool = False
) -> list[Fit]:
    """Fit every regularisation of `lams`, in any order, sharing what can be shared.

    Parameters
    ----------
    loss : Loss
        What is minimised.
    task : Task
        Whether the loss is of the residual or of the margin.
    X : array (n, p)
        Features.
    y : array (n,)
        Labels.
    lams : array
        Regularisations, positive.
    intercept : bool
        Whether an unpenalised intercept is fitted.

    Raises
    ------
    InvalidArgumentError
        If features or labels are not finite, or a classifier sees a single class.
    """
    if not np.isfinite(X).all():
        raise InvalidArgumentError(
            "X", f"with {np.sum(~np.isfinite(X))} non-finite entries", "finite"
        )
    if not np.isfinite(y).all():
        raise InvalidArgumentError(
            "y", f"with {np.sum(~np.isfinite(y))} non-finite entries", "finite"
        )
    if task is Task.CLASSIFICATION and intercept and np.ptp(y) == 0:
        raise InvalidArgumentError(
            "y", f"of one class only ({y[0]:+g})", "of both classes when an intercept is fitted"
        )
    order = np.argsort(lams)[::-1]
    data = Shortfalls.of(loss, task, X, y, intercept=intercept)
    solver = square_path if isinstance(loss, Square) else newton_path
    if (loss.knots[2] > loss.knots[1]).any():
        solver = interior_point_path
    fits = dict(zip(order, solver(loss, data, np.asarray(lams)[order]), strict=True))
    return [fits[i] for i in range(len(order))]


def certified(loss: Loss, data: Shortfalls, lam: float, w: Array, b: float) -> Fit:
    """A fit of a smooth loss with its bound: strong convexity in w, Newton decrement in b."""
    s = data(w, b)
    h = loss.derivative(s)
    gradient = lam * w - data.B.T @ h
    objective = float(loss.value(s).sum() + 0.5 * lam * (w @ w))
    gap = gradient @ gradient / (2 * lam)
    if data.free:
        curvature = max(float(loss.second_derivative(s).sum()), 1e-300)
        gap += (data.v @ h) ** 2 / (2 * curvature)
    return Fit(w, b, objective, float(gap / max(objective, 1e-300)))


def square_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Ridge regression for all λ from one eigendecomposition of the smaller Gram matrix."""
    A, r = data.B * data.v[:, None], data.t * data.v
    centre, mean = (A.mean(0), r.mean()) if data.free else (np.zeros(A.shape[1]), 0.0)
    A, r = A - centre, r - mean
    wide = A.shape[1] > A.shape[0]
    values, U = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    values = np.maximum(values, 0.0)
    target = U.T @ (r if wide else A.T @ r)
    fits = []
    for lam in lams:
        w = U @ (target / (values + lam))
        w = A.T @ w if wide else w
        fits.append(certified(loss, data, lam, w, float(mean - centre @ w)))
    return fits


def newton_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Newton's method in min(n, p) dimensions, warm-started along decreasing λ."""
    n, p = data.B.shape
    newton = _Dual(loss, data) if p > n else _Primal(loss, data)
    return [newton.solve(lam) for lam in lams]


class _Newton:
    """Damped Newton on the objective as a function of coordinates and an intercept."""

    def __init__(self, loss: Loss, data: Shortfalls) -> None:
        self.loss, self.data = loss, data
        self.x, self.b = np.zeros(min(data.B.shape)), 0.0

    def fields(self, x: Array) -> Array:
        """The prediction part B w of the shortfalls."""
        raise NotImplementedError

    def norm(self, x: Array) -> float:
        """Squared norm of the weights."""
        raise NotImplementedError

    def weights(self) -> Array:
        """The weights w at the current coordinates."""
        raise NotImplementedError

    def step(self, lam: float, h: Array, curvature: Array) -> tuple[Array, float, float]:
        """Newton step in coordinates and intercept, and the squared norm of the gradient."""
        raise NotImplementedError

    def solve(self, lam: float) -> Fit:
        """Minimise at one λ, starting where the last solve ended."""
        loss, data = self.loss, self.data
        s = data.t - self.fields(self.x) - self.b * data.v
        objective = loss.value(s).sum() + 0.5 * lam * self.norm(self.x)
        for _ in range(MAX_ITERATIONS):
            h = loss.derivative(s)
            dx, db, gradient = self.step(lam, h, loss.second_derivative(s))
            change = self.fields(dx) + db * data.v
            slope = -(h @ change) + lam * self._inner(dx)
            size = 1.0
            while True:
                x, b = self.x + size * dx, self.b + size * db
                s_new = s - size * change
                new = loss.value(s_new).sum() + 0.5 * lam * self.norm(x)
                if new <= objective + 1e-4 * size * slope + 1e-14 * abs(objective) or size < 1e-8:
                    break
                size *= 0.5
            if new > objective * (1 + 1e-13):
                break
            self.x, self.b, s, objective = x, b, s_new, new
            if gradient / (2 * lam) <= 1e-6 * GOOD * objective and abs(slope) <= GOOD * objective:
                break
        return certified(loss, data, lam, self.weights(), self.b)

    def _inner(self, dx: Array) -> float:
        raise NotImplementedError


class _Primal(_Newton):
    """Coordinates are the weights themselves: p × p systems."""

    def fields(self, x: Array) -> Array:
        return self.data.B @ x

    def norm(self, x: Array) -> float:
        return float(x @ x)

    def _inner(self, dx: Array) -> float:
        return float(self.x @ dx)

    def weights(self) -> Array:
        return self.x

    def step(self, lam: float, h: Array, curvature: Array) -> tuple[Array, float, float]:
        B, v = self.data.B, self.data.v
        gradient = lam * self.x - B.T @ h
        DB = B * curvature[:, None]
        factor = linalg.cho_factor(B.T @ DB + lam * np.eye(B.shape[1]), check_finite=False)
        dx = -linalg.cho_solve(factor, gradient, check_finite=False)
        db = 0.0
        if self.data.free:  # eliminate b from the bordered system
            side = linalg.cho_solve(factor, DB.T @ v, check_finite=False)
            schur = curvature.sum() - (DB.T @ v) @ side
            db = float((v @ h - (DB.T @ v) @ dx) / max(schur, 1e-300)) if schur > 0 else 0.0
            dx = dx - db * side
        return dx, db, float(gradient @ gradient)


class _Dual(_Newton):
    """Coordinates a with w = Bᵀa: n × n systems, for p > n."""

    def __init__(self, loss: Loss, data: Shortfalls) -> None:
        super().__init__(loss, data)
        self.K = data.B @ data.B.T

    def fields(self, x: Array) -> Array:
        return self.K @ x

    def norm(self, x: Array) -> float:
        return float(x @ self.K @ x)

    def _inner(self, dx: Array) -> float:
        return float(self.x @ self.K @ dx)

    def weights(self) -> Array:
        return self.data.B.T @ self.x

    def step(self, lam: float, h: Array, curvature: Array) -> tuple[Array, float, float]:
        K, v = self.K, self.data.v
        root = np.sqrt(curvature)
        residual = h - lam * self.x
        matrix = (root[:, None] * K) * root
        matrix[np.diag_indices_from(matrix)] += lam
        factor = linalg.cho_factor(matrix, check_finite=False)
        K_residual = K @ residual
        z = linalg.cho_solve(factor, root * K_residual, check_finite=False)
        db = 0.0
        if self.data.free:
            z_b = lam * linalg.cho_solve(factor, root * v, check_finite=False)
            bend = (v * root) @ z_b
            db = float((v @ h - (v * root) @ z) / bend) if bend > 0 else 0.0
            z = z + db * z_b
        return (residual - root * z) / lam, db, float(residual @ K_residual)


def interior_point_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Piecewise linear losses with one kink, by a primal-dual interior-point method."""
    knot, below, above, curvature = loss.knots
    straight = len(knot) == 1 and not curvature.any() and loss.scale is None
    if not straight:
        raise InvalidArgumentError(
            "loss", loss, "smooth, or piecewise linear with a single kink, to be fitted exactly"
        )
    shifted = Shortfalls(data.B, data.t - knot[0], data.v, data.free)
    return [_interior_point(shifted, float(below[0]), float(above[0]), lam) for lam in lams]


def _interior_point(data: Shortfalls, low: float, high: float, lam: float) -> Fit:
    """Minimise h·Kh/2λ - t·h over low ≤ h ≤ high (v·h = 0 with an intercept), by Mehrotra's method.

    The shortfalls at the optimum are the differences of the two multipliers. Which samples sit on
    a bound is known long before the last digits: the free ones are then solved for exactly.
    """
    n = len(data.t)
    h = np.full(n, 0.5 * (low + high))
    # the distances to the bounds are unknowns of their own: they go far below rounding of h
    to_low, to_high = h - low, high - h
    b, lower, upper = 0.0, np.ones(n), np.ones(n)
    best = _with_gap(data, (low, high), lam, h, b)
    for _ in range(MAX_ITERATIONS):
        solve = _kkt_solver(data, lower / to_low + upper / to_high, lam)
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
        found = _with_gap(data, (low, high), lam, h, b)
        if found.optimality < 1e-4:
            active = np.where(to_low < lower, low, np.where(to_high < upper, high, np.nan))
            found = min(found, _on_bounds(data, low, high, lam, active), key=_gap)
        stalled = found.optimality > 0.5 * best.optimality and best.optimality < GOOD
        best = min(best, found, key=_gap)
        if best.optimality <= 1e-4 * GOOD or stalled:
            break
    return best


def _gap(fit: Fit) -> float:
    return fit.optimality


def _with_gap(data: Shortfalls, box: tuple[float, float], lam: float, h: Array, b: float) -> Fit:
    """The fit that follows from dual variables h, with its relative duality gap."""
    low, high = box
    w = data.B.T @ h / lam
    s = data(w, b)
    norm = 0.5 * lam * float(w @ w)
    objective = float(np.maximum(low * s, high * s).sum()) + norm
    gap = objective - (float(data.t @ h) - norm)
    outside = np.maximum(low - h, 0.0).sum() + np.maximum(h - high, 0.0).sum()
    slack = abs(b * (data.v @ h)) + outside * np.abs(s).max()
    return Fit(w, b, objective, float((abs(gap) + slack) / max(objective, 1e-300)))


def _on_bounds(data: Shortfalls, low: float, high: float, lam: float, active: Array) -> Fit:
    """Solve exactly, given which dual variables are on which bound (NaN: on none)."""
    free = np.isnan(active)
    h = np.where(free, 0.0, active)
    B, v = data.B[free], data.v[free]
    right = data.t[free] - B @ (data.B.T @ h) / lam
    size = int(free.sum())
    matrix = np.zeros((size + data.free, size + data.free))
    matrix[:size, :size] = B @ B.T / lam
    if data.free:
        matrix[:size, size], matrix[size, :size] = v, v
        right = np.append(right, -(data.v @ h))
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0] if size else np.zeros(int(data.free))
    h[free] = solution[:size]
    b = float(solution[size]) if data.free else 0.0
    return _with_gap(data, (low, high), lam, h, b)


def _longest(pairs: tuple[tuple[Array, Array], ...]) -> float:
    """Longest step, at most one, that keeps every quantity positive."""
    size = 1.0
    for value, change in pairs:
        falling = change < 0
        if falling.any():
            size = min(size, float((-value[falling] / change[falling]).min()))
    return size


def _kkt_solver(
    data: Shortfalls, theta: Array, lam: float
) -> Callable[[Array, float], tuple[Array, float]]:
    """Solver of (BBᵀ/λ + Θ) x + β v = r, v·x = q, in min(n, p) dimensions."""
    B, v = data.B, data.v
    n, p = B.shape
    if p < n:
        scaled = B / theta[:, None]
        matrix = B.T @ scaled
        # rounding of the largest entries must not make the smallest eigenvalue, λ, negative
        matrix[np.diag_indices_from(matrix)] += lam + 1e-14 * matrix.trace()
        factor = linalg.cho_factor(matrix, check_finite=False)

        def inverse(r: Array) -> Array:
            out: Array = scaled @ linalg.cho_solve(factor, scaled.T @ r, check_finite=False)
            return r / theta - out
    else:
        matrix = B @ B.T / lam
        matrix[np.diag_indices_from(matrix)] += theta
        factor = linalg.cho_factor(matrix, check_finite=False)

        def inverse(r: Array) -> Array:
            out: Array = linalg.cho_solve(factor, r, check_finite=False)
            return out

    along = inverse(v) if data.free else None

    def solve(r: Array, q: float) -> tuple[Array, float]:
        x = inverse(r)
        if along is None:
            return x, 0.0
        beta = float((v @ x - q) / (v @ along))
        return x - beta * along, beta

    return solve
