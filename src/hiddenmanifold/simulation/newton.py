"""Smooth losses: Newton's method in min(n, p) dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hiddenmanifold.losses import Loss
from hiddenmanifold.simulation.problem import (
    GOOD,
    MAX_ITERATIONS,
    Fit,
    Shortfalls,
    certified,
    gap_of,
)

Array = NDArray[np.float64]

TARGET = 1e-7 * GOOD
"""Relative gap at which the iteration stops; Newton squares its error, so it costs little."""
FLAT = 1e-9
"""Mean curvature below which the intercept is sought by bisection."""


def newton_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Newton's method in min(n, p) dimensions, warm-started along decreasing λ."""
    n, p = data.B.shape
    space: Space = Dual(data) if p > n else Primal(data)
    x, b, fits = np.zeros(min(n, p)), 0.0, []
    for lam in lams:
        start = x, b
        x, b = _newton(loss, space, lam, x, b)
        fit = certified(loss, data, lam, space.weights(x), b)
        if fit.optimality > GOOD:  # many kinks to cross: come down to λ in small steps
            (x, b), above = start, max(1.0, 10 * lam)
            for rung in np.geomspace(above, lam, 1 + int(np.ceil(np.log(above / lam) / np.log(3)))):
                x, b = _newton(loss, space, rung, x, b)
            fit = min(fit, certified(loss, data, lam, space.weights(x), b), key=gap_of)
        fits.append(fit)
    return fits


def _newton(loss: Loss, space: Space, lam: float, x: Array, b: float) -> tuple[Array, float]:
    """Minimise at one λ: steps by conjugate gradients while these are cheap, then by Cholesky."""
    data, fields = space.data, space.fields(x)
    s = data.t - fields - b * data.v
    objective = loss.value(s).sum() + 0.5 * lam * space.dot(x, x, fields)
    first, iterative = 0.0, True
    for _ in range(MAX_ITERATIONS):
        h, bend = loss.derivative(s), loss.second_derivative(s)
        if data.free and bend.sum() <= FLAT * len(s):  # no curvature tells where b should go
            b = _best_intercept(loss, data, fields, b)
            s = data.t - fields - b * data.v
            objective = loss.value(s).sum() + 0.5 * lam * space.dot(x, x, fields)
            h, bend = loss.derivative(s), loss.second_derivative(s)
        g, g_b = space.gradient(lam, x, h), -float(data.v @ h) if data.free else 0.0
        size = space.dot(g, g)
        first = first or size
        gap = size / (2 * lam) + (g_b**2 / (2 * max(bend.sum(), 1e-300)) if data.free else 0.0)
        if gap <= TARGET * objective:
            break
        step = None
        if iterative:  # no more digits than the certificate asks for
            wanted = np.sqrt(TARGET * objective / gap)
            accuracy = max(min(0.3, (size / first) ** 0.25), 0.3 * wanted)
            step = _conjugate_gradients(space, lam, (g, g_b), bend, accuracy)
            iterative = step is not None
        dx, db = step or space.newton_step(lam, g, g_b, bend)
        along = space.fields(dx)
        slope = space.dot(g, dx, along) + g_b * db
        length = 1.0
        while True:
            new_x, new_fields = x + length * dx, fields + length * along
            new_s = data.t - new_fields - (b + length * db) * data.v
            new = loss.value(new_s).sum() + 0.5 * lam * space.dot(new_x, new_x, new_fields)
            if new <= objective * (1 + 1e-14) + 1e-4 * length * slope or length < 1e-8:
                break
            length *= 0.5
        if not new <= objective * (1 + 1e-13):
            break  # rounding: no step makes it smaller
        x, b, fields, s, objective = new_x, b + length * db, new_fields, new_s, new
    return x, b


def _best_intercept(loss: Loss, data: Shortfalls, fields: Array, b: float) -> float:
    """The intercept that is best for given fields, by bisection of the slope, which is monotone."""

    def slope(b: float) -> float:
        return -float(data.v @ loss.derivative(data.t - fields - b * data.v))

    low, high, step = b, b, 1.0
    while slope(low) > 0 or slope(high) < 0:
        low, high, step = low - step, high + step, 2 * step
        if step > 1e12:
            return b
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high


def _conjugate_gradients(
    space: Space,
    lam: float,
    gradient: tuple[Array, float],
    bend: Array,
    accuracy: float,
) -> tuple[Array, float] | None:
    """Newton step to a relative accuracy, or None if it takes longer than a factorisation."""
    data = space.data
    r, r_b = -gradient[0], -gradient[1]
    x, x_b = np.zeros_like(r), 0.0
    fields = space.fields(r)
    p, p_b, p_fields = r, r_b, fields
    rr = space.dot(r, r, fields) + r_b**2
    stop = accuracy**2 * rr
    for _ in range(min(data.B.shape) // 8 + 10):
        pull = bend * (p_fields + p_b * data.v)
        q, q_b = space.gradient(lam, p, -pull), float(data.v @ pull) if data.free else 0.0
        curvature = space.dot(q, p, p_fields) + q_b * p_b
        if not curvature > 0:
            return None
        step = rr / curvature
        x, x_b = x + step * p, x_b + step * p_b
        r, r_b = r - step * q, r_b - step * q_b
        fields = space.fields(r)
        new = space.dot(r, r, fields) + r_b**2
        if new <= stop:
            return x, x_b
        if not new < 1e6 * rr:
            return None
        p, p_b = r + new / rr * p, r_b + new / rr * p_b
        p_fields = fields + new / rr * p_fields
        rr = new
    return None


class Space(Protocol):
    """Coordinates x of the weights w, with the inner product of w."""

    @property
    def data(self) -> Shortfalls:
        """What is fitted."""

    def fields(self, x: Array) -> Array:
        """B w."""

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        """Inner product of the weights of x and y; the fields of y save work if they are known."""

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        """Coordinates of λw - Bᵀh."""

    def newton_step(self, lam: float, g: Array, g_b: float, bend: Array) -> tuple[Array, float]:
        """Solve the Newton system by a Cholesky factorisation, in coordinates and intercept."""

    def weights(self, x: Array) -> Array:
        """The weights w."""


@dataclass(frozen=True)
class Primal:
    """Coordinates are the weights themselves: p × p systems."""

    data: Shortfalls

    def fields(self, x: Array) -> Array:
        return self.data.B @ x

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        return float(x @ y)

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        return lam * x - self.data.B.T @ h

    def weights(self, x: Array) -> Array:
        return x

    def newton_step(self, lam: float, g: Array, g_b: float, bend: Array) -> tuple[Array, float]:
        root = self.data.B * np.sqrt(bend)[:, None]
        matrix = root.T @ root
        matrix[np.diag_indices_from(matrix)] += lam
        factor = linalg.cho_factor(matrix, check_finite=False, overwrite_a=True)
        dx = -linalg.cho_solve(factor, g, check_finite=False)
        if not self.data.free:
            return dx, 0.0
        side = self.data.B.T @ (bend * self.data.v)  # eliminate b from the bordered system
        solved = linalg.cho_solve(factor, side, check_finite=False)
        schur = bend.sum() - side @ solved
        db = float(-(g_b + side @ dx) / schur) if schur > 0 else 0.0
        return dx - db * solved, db


@dataclass(frozen=True)
class Dual:
    """Coordinates a with w = Bᵀa: n × n systems, for p > n."""

    data: Shortfalls

    def fields(self, x: Array) -> Array:
        return self.data.gram @ x

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        return float(x @ (self.data.gram @ y if fields_of_y is None else fields_of_y))

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        return lam * x - h

    def weights(self, x: Array) -> Array:
        return self.data.B.T @ x

    def newton_step(self, lam: float, g: Array, g_b: float, bend: Array) -> tuple[Array, float]:
        K, v, root = self.data.gram, self.data.v, np.sqrt(bend)
        matrix = (root[:, None] * K) * root
        matrix[np.diag_indices_from(matrix)] += lam
        factor = linalg.cho_factor(matrix, check_finite=False, overwrite_a=True)
        z = linalg.cho_solve(factor, root * (K @ -g), check_finite=False)
        db = 0.0
        if self.data.free:
            z_b = lam * linalg.cho_solve(factor, root * v, check_finite=False)
            stiffness = (v * root) @ z_b
            db = float((-g_b - (v * root) @ z) / stiffness) if stiffness > 0 else 0.0
            z = z + db * z_b
        return (-g - root * z) / lam, db
