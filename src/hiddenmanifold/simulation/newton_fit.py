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
from hiddenmanifold.simulation.problem import (
    GOOD,
    Fit,
    Shortfalls,
    certified,
    convex_minimum,
    solver,
)

MAX_ITERATIONS = 300
"""A loss with sharp corners crosses many of them, a few at a time."""
PATIENCE = 20
"""Consecutive steps without gain after which the search ends: rounding or kinks block it."""
MISSED = 1e-4
"""Relative gap above which a minimum counts as missed, not only as found with few digits."""
SHORTEST = 1e-18
"""Length at which a step is given up. Where a step moves samples from a straight part of the loss
to a curved one, the curvature is up to 1/λ times that of Newton's matrix, and the step is too
long by the same factor."""
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

    A minimum that is missed is searched for carefully. It ends early where rounding, which only
    grows, hides the minima even so.
    """
    (x, b), above = start, max(1.0, 10 * lam)
    rungs = 1 + int(np.ceil((np.log(above) - np.log(lam)) / np.log(3)))
    for rung in np.geomspace(above, lam, rungs).tolist():
        for careful in (False, True):
            x, b = _newton(space, rung, x, b, careful=careful)
            there = certified(space.loss, space.data, rung, space.weights(x), b)
            if there.optimality <= GOOD:
                break
        if there.optimality > MISSED:
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


def _newton(
    space: Space, lam: float, x: Array, b: float, *, careful: bool = False
) -> tuple[Array, float]:
    """Minimise at one λ: steps by conjugate gradients while these are cheap, then by Cholesky.

    A step needs few digits: single precision has them, unless the last step disappointed. It
    starts from the best intercept and is halved until it descends. Where the loss has sharp
    corners, such steps may run to and fro across them; a careful search moves weights and intercept
    together, to the minimum along each step.
    """
    loss, state = space.loss, space.state(lam, x, b, space.fields(x))
    search = _line_minimum if careful else _line_search
    last, least, accuracy, iterative, precise, idle = np.inf, np.inf, 0.5, True, False, 0
    for _ in range(MAX_ITERATIONS):
        best = space.at_best_intercept(lam, state)
        slopes = space.gradient(lam, best.x, loss.derivative(best.s)), 0.0
        size = space.dot(slopes[0], slopes[0])  # below zero by rounding if BBᵀ is singular
        gap, aim = size / (2 * lam), max(TARGET * best.objective, 0.0)
        poor, stuck = gap > 0.5 * last, gap > 0.5 * least
        if gap <= aim or (stuck and precise and gap <= GOOD * best.objective):
            return best.x, best.b
        if np.isfinite(last):  # a step gains no more than its accuracy: as Newton's own gain grows
            accuracy = 0.1 * accuracy if poor else min(accuracy, (gap / last) ** 0.75)
        last, least, step = gap, min(gap, least), None
        if careful and loss.second_derivative(state.s).any():  # else b has no Newton step
            slopes = space.slopes(lam, state)
        else:
            state = best
        bend = loss.second_derivative(state.s)
        if iterative:  # no more digits than the certificate asks for
            enough = max(accuracy, 0.3 * np.sqrt(aim / gap))
            step = _conjugate_gradients(space if poor else space.single, lam, slopes, bend, enough)
            iterative = step is not None
        precise = poor or not iterative
        try:
            step = step or space.newton_step(lam, slopes, bend)
        except linalg.LinAlgError:  # rounding prevents further progress
            break
        lower = search(space, lam, state, slopes[0], step)
        if lower is None and precise:
            break
        lower = lower or state
        gained = lower.objective < (1 - GOOD) * state.objective
        idle = 0 if gained or not (stuck and precise) else idle + 1
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


def _line_minimum(
    space: Space, lam: float, state: State, g: Array, step: tuple[Array, float]
) -> State | None:
    """The state of least objective along a step; None if rounding hides it."""
    dx, db = step
    along = space.fields(dx)
    move = along + db * space.data.v
    pull = lam * space.dot(dx, state.x, state.fields)
    stretch = lam * space.dot(dx, dx, along)

    def slope(length: float) -> tuple[float, float, float]:
        s = state.s - length * move
        push = move * space.loss.derivative(s)
        bend = stretch + float(move**2 @ space.loss.second_derivative(s))
        terms = abs(pull) + abs(length * stretch) + float(np.abs(push).sum())
        return pull + length * stretch - float(push.sum()), bend, terms

    length = convex_minimum(slope, 1.0, reach=1.0)
    x, fields = state.x + length * dx, state.fields + length * along
    new = space.state(lam, x, state.b + length * db, fields)
    return new if new.objective <= state.objective * (1 + 1e-13) else None


def _conjugate_gradients(
    space: Space, lam: float, slopes: tuple[Array, float], bend: Array, accuracy: float
) -> tuple[Array, float] | None:
    """Newton step to a relative accuracy, or None if it takes longer than a factorisation."""
    (g, slope), data = slopes, space.data
    unit = float(np.abs(g).max())
    bend = bend.astype(space.matrix.dtype)
    r, r_b = (-g / unit).astype(space.matrix.dtype), -slope / unit
    x, x_b = np.zeros_like(r), 0.0
    fields = space.fields(r)
    p, p_b, p_fields = r, r_b, fields
    rr = space.dot(r, r, fields) + r_b**2
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

    def at_best_intercept(self, lam: float, state: State) -> State:
        """The state with the best intercept for its weights, if the intercept is free."""
        if not self.data.free:
            return state
        b = self.data.best_intercept(self.loss, state.fields, state.b)
        return self.state(lam, state.x, b, state.fields)

    def fields(self, x: Array) -> Array:
        """B w."""
        return self.matrix @ x

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        """Inner product of the weights of x and y; the fields of y save work if they are known."""
        return float(x @ y)

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        """Coordinates of λw - Bᵀh."""
        return lam * x - self.matrix.T @ h

    def slopes(self, lam: float, state: State) -> tuple[Array, float]:
        """Slopes of the objective in the coordinates and, if it is free, in the intercept."""
        h = self.loss.derivative(state.s)
        in_b = -float(self.data.v @ h) if self.data.free else 0.0
        return self.gradient(lam, state.x, h), in_b

    def weights(self, x: Array) -> Array:
        """The weights w."""
        return x

    def newton_step(
        self, lam: float, slopes: tuple[Array, float], bend: Array
    ) -> tuple[Array, float]:
        """Newton step of weights and intercept by Cholesky, from slopes in both."""
        g, slope = slopes
        root = self.matrix * np.sqrt(bend)[:, None]
        solve = solver(root.T @ root, lam)
        dx = -solve(g)
        if not self.data.free:
            return dx, 0.0
        side = self.matrix.T @ (bend * self.data.v)  # eliminate b from the bordered system
        solved = solve(side)
        schur = bend.sum() - side @ solved
        db = float(-(slope + side @ dx) / schur) if schur > 0 else 0.0
        return dx - db * solved, db


@dataclass(frozen=True)
class Wide(Space):
    """The weights themselves for p > n: n × n systems, by Woodbury's identity."""

    def newton_step(
        self, lam: float, slopes: tuple[Array, float], bend: Array
    ) -> tuple[Array, float]:
        (g, slope), v, root = slopes, self.data.v, np.sqrt(bend)
        solve = solver((root[:, None] * self.data.gram) * root, lam)
        along = lam * solve(root * v) if self.data.free else np.zeros_like(v)
        stiffness = float((v * root) @ along)

        def rough(r: Array, r_b: float) -> tuple[Array, float]:
            z = solve(root * self.fields(r))
            db = float(r_b - (v * root) @ z) / stiffness if stiffness > 0 else 0.0
            return self.gradient(1.0, r, root * (z + db * along)) / lam, db

        dx, db = rough(-g, -slope)
        pull = bend * (self.fields(dx) + db * v)
        rest, shift = rough(-g - self.gradient(lam, dx, -pull), -slope - float(v @ pull))
        return dx + rest, db + shift  # correct for cancellation


@dataclass(frozen=True)
class Dual(Wide):
    """Coordinates a with w = Bᵀa, whose matrix is BBᵀ."""

    def dot(self, x: Array, y: Array, fields_of_y: Array | None = None) -> float:
        return float(x @ (self.matrix @ y if fields_of_y is None else fields_of_y))

    def gradient(self, lam: float, x: Array, h: Array) -> Array:
        return lam * x - h

    def weights(self, x: Array) -> Array:
        return self.data.B.T @ x
