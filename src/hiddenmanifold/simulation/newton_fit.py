"""Smooth losses: Newton's method, with steps in single precision and gradients in double."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np
from scipy import linalg

from hiddenmanifold.arrays import Array
from hiddenmanifold.losses import Loss
from hiddenmanifold.simulation.problem import GOOD, Fit, Shortfalls, certified, solver

MAX_ITERATIONS = 300
"""A loss with sharp corners crosses many of them, a few at a time."""
PATIENCE = 20
"""Steps in a row that gain nothing after which rounding, or a wall of kinks, has the last word."""
MISSED = 1e-4
"""Relative gap from which on a minimum is missed, and not only found with few digits."""
LOST = 10
"""Minima in a row that the way down to a small λ may miss: of a Huber loss with δ = 5e-7 of the
labels, minima beyond a stretch of five were found again."""
SHORTEST = 1e-18
"""Length of a step that is given up. Where a step bends samples that Newton's matrix took to be
straight, the loss is up to 1/λ times as stiff as this knew: the step is too long by as much."""
TARGET = 1e-7 * GOOD
"""Relative gap at which the iteration stops; Newton squares its error, so it costs little."""


def newton_path(loss: Loss, data: Shortfalls, lams: Array) -> list[Fit]:
    """Newton's method, warm-started along decreasing λ."""
    n, p = data.B.shape
    space = Space(loss, data, data.B)
    if p > n:  # BBᵀ costs as much as some dozens of products with B: too much for a single λ
        space = Dual(loss, data, data.gram) if len(lams) > 1 else Wide(loss, data, data.B)
    x, b, fits = np.zeros(space.matrix.shape[1]), 0.0, []
    for lam in lams.tolist():
        start = x, b
        with np.errstate(over="ignore", invalid="ignore"):  # a λ of next to nothing
            x, b = _newton(space, lam, x, b)
            fit = certified(loss, data, lam, space.weights(x), b)
            if fit.optimality > GOOD:
                again = _in_span(loss, data, lam) if p > n else _down(space, lam, start)
                fit = min(fit, again, key=attrgetter("optimality"))
        fits.append(fit)
    return fits


def _down(space: Space, lam: float, start: tuple[Array, float]) -> Fit:
    """The fit by way of larger λ, in small steps: few kinks are crossed in each.

    It ends early where rounding, which only grows, has hidden the minima.
    """
    (x, b), above, lost = start, max(1.0, 10 * lam), 0
    rungs = 1 + int(np.ceil((np.log(above) - np.log(lam)) / np.log(3)))
    for rung in np.geomspace(above, lam, rungs).tolist():
        x, b = _newton(space, rung, x, b)
        there = certified(space.loss, space.data, rung, space.weights(x), b)
        lost = lost + 1 if there.optimality > MISSED else 0
        if lost == LOST:
            break
    return certified(space.loss, space.data, lam, space.weights(x), b)


def _in_span(loss: Loss, data: Shortfalls, lam: float) -> Fit:
    """The fit in an orthonormal basis of the samples.

    It costs more than coordinates w = Bᵀa, but these lose their digits if BBᵀ is nearly singular.
    """
    basis, R = linalg.qr(data.B.T, mode="economic", check_finite=False)
    (fit,) = newton_path(loss, replace(data, B=R.T), np.array([lam]))
    return certified(loss, data, lam, basis @ fit.w, fit.b)


@dataclass(frozen=True)
class State:
    """Coordinates and intercept, with the shortfalls and the objective that follow from them."""

    x: Array
    b: float
    fields: Array
    s: Array
    objective: float


def _newton(space: Space, lam: float, x: Array, b: float) -> tuple[Array, float]:
    """Minimise at one λ: steps by conjugate gradients while these are cheap, then by Cholesky.

    A step needs few digits: single precision has them, unless the last step disappointed.
    """
    loss, state = space.loss, space.state(lam, x, b, space.fields(x))
    last, accuracy, iterative, precise, idle = np.inf, 0.5, True, False, 0
    for _ in range(MAX_ITERATIONS):
        if space.data.free:
            b = space.data.best_intercept(loss, state.fields, state.b)
            state = space.state(lam, state.x, b, state.fields)
        bend = loss.second_derivative(state.s)
        g = space.gradient(lam, state.x, loss.derivative(state.s))
        size = space.dot(g, g)  # below zero, by rounding, only if the Gram matrix is singular
        gap, aim = size / (2 * lam), max(TARGET * state.objective, 0.0)
        poor = gap > 0.5 * last
        if gap <= aim or (poor and precise and gap <= GOOD * state.objective):
            break
        if np.isfinite(last):  # a step gains no more than its accuracy: as Newton's own gain grows
            accuracy = 0.1 * accuracy if poor else min(accuracy, (gap / last) ** 0.75)
        last, step = gap, None
        if iterative:  # no more digits than the certificate asks for
            enough = max(accuracy, 0.3 * np.sqrt(aim / gap))
            step = _conjugate_gradients(space if poor else space.single, lam, g, bend, enough)
            iterative = step is not None
        precise = poor or not iterative
        try:
            step = step or space.newton_step(lam, g, bend)
        except linalg.LinAlgError:  # rounding has the last word
            break
        lower = _line_search(space, lam, state, g, step)
        if lower is None and precise:
            break
        lower = lower or state
        gained = lower.objective < (1 - GOOD) * state.objective
        idle = 0 if gained or not (poor and precise) else idle + 1
        if idle == PATIENCE:
            break
        state = lower
    return state.x, state.b


def _line_search(
    space: Space, lam: float, state: State, g: Array, step: tuple[Array, float]
) -> State | None:
    """The state at the end of a step, halved until it descends; None if rounding forbids it."""
    dx, db = step
    along = space.fields(dx)
    slope, length = space.dot(g, dx, along), 1.0
    while True:
        x, fields = state.x + length * dx, state.fields + length * along
        new = space.state(lam, x, state.b + length * db, fields)
        if new.objective <= state.objective * (1 + 1e-14) + 1e-4 * length * slope:
            return new
        if length < SHORTEST:
            return new if new.objective <= state.objective * (1 + 1e-13) else None
        length *= 0.5


def _conjugate_gradients(
    space: Space, lam: float, g: Array, bend: Array, accuracy: float
) -> tuple[Array, float] | None:
    """Newton step to a relative accuracy, or None if it takes longer than a factorisation."""
    data, unit = space.data, float(np.abs(g).max())
    bend = bend.astype(space.matrix.dtype)
    r, r_b = (-g / unit).astype(space.matrix.dtype), 0.0
    x, x_b = np.zeros_like(r), 0.0
    fields = space.fields(r)
    p, p_b, p_fields = r, r_b, fields
    rr = space.dot(r, r, fields)
    stop = accuracy**2 * rr
    for _ in range(min(data.B.shape) // 6 + 10):
        pull = bend * (p_fields + p_b * data.v)
        q, q_b = space.gradient(lam, p, -pull), float(data.v @ pull) if data.free else 0.0
        curvature = space.dot(q, p, p_fields) + q_b * p_b
        if not (curvature > 0 and rr > 0):
            return None
        step = rr / curvature
        x, x_b = x + step * p, x_b + step * p_b
        r, r_b = r - step * q, r_b - step * q_b
        fields = space.fields(r)
        new = space.dot(r, r, fields) + r_b**2
        if new <= stop:
            return unit * x.astype(float), unit * x_b
        if not new < 1e6 * rr:
            return None
        p, p_b = r + new / rr * p, r_b + new / rr * p_b
        p_fields = fields + new / rr * p_fields
        rr = new
    return None


@dataclass(frozen=True)
class Space:
    """Coordinates x with the inner product of w; here the weights w themselves: p × p systems.

    The fields of x are `matrix` x.
    """

    loss: Loss
    data: Shortfalls
    matrix: Array

    @cached_property
    def single(self) -> Self:
        """The same in single precision, in which a product reads half as much memory."""
        data = replace(self.data, v=self.data.v.astype(np.float32))
        return replace(self, data=data, matrix=self.matrix.astype(np.float32))

    def state(self, lam: float, x: Array, b: float, fields: Array) -> State:
        """What is minimised, at given coordinates whose fields are known."""
        s = self.data.t - fields - b * self.data.v
        penalty = 0.5 * lam * self.dot(x, x, fields)
        return State(x, b, fields, s, float(self.loss.value(s).sum()) + penalty)

    def fields(self, x: Array) -> Array:
        """B w."""
        return self.matrix @ x

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        """Inner product of the weights of x and y; the fields of y save work if they are known."""
        return float(x @ y)

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        """Coordinates of λw - Bᵀh."""
        return lam * x - self.matrix.T @ h

    def weights(self, x: Array) -> Array:
        """The weights w."""
        return x

    def newton_step(self, lam: float, g: Array, bend: Array) -> tuple[Array, float]:
        """Newton step by Cholesky, from where the intercept leaves no slope; its own step too."""
        root = self.matrix * np.sqrt(bend)[:, None]
        solve = solver(root.T @ root, lam)
        dx = -solve(g)
        if not self.data.free:
            return dx, 0.0
        side = self.matrix.T @ (bend * self.data.v)  # eliminate b from the bordered system
        solved = solve(side)
        schur = bend.sum() - side @ solved
        db = float(-(side @ dx) / schur) if schur > 0 else 0.0
        return dx - db * solved, db


@dataclass(frozen=True)
class Wide(Space):
    """The weights themselves for p > n: n × n systems, by Woodbury's identity."""

    def newton_step(self, lam: float, g: Array, bend: Array) -> tuple[Array, float]:
        v, root = self.data.v, np.sqrt(bend)
        solve = solver((root[:, None] * self.data.gram) * root, lam)
        along = lam * solve(root * v) if self.data.free else np.zeros_like(v)
        stiffness = float((v * root) @ along)

        def rough(r: Array, r_b: float) -> tuple[Array, float]:
            z = solve(root * self.fields(r))
            db = float(r_b - (v * root) @ z) / stiffness if stiffness > 0 else 0.0
            return self.gradient(1.0, r, root * (z + db * along)) / lam, db

        dx, db = rough(-g, 0.0)
        pull = bend * (self.fields(dx) + db * v)
        rest, shift = rough(-g - self.gradient(lam, dx, -pull), -float(v @ pull))
        return dx + rest, db + shift  # what cancelled is put right


@dataclass(frozen=True)
class Dual(Wide):
    """Coordinates a with w = Bᵀa, whose matrix is BBᵀ."""

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        return float(x @ (self.matrix @ y if fields_of_y is None else fields_of_y))

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        return lam * x - h

    def weights(self, x: Array) -> Array:
        return self.data.B.T @ x
