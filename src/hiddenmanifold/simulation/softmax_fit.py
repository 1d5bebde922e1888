r"""Softmax regression at finite size: Newton's method with conjugate gradients, and a certificate.

Features are rotated to the principal directions of the sample, where the mean Hessian, the average
curvature of the loss times the squares of the singular values plus λ, is diagonal: it preconditions
the conjugate gradients, of which a step takes some ten.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.simulation.problem import EPS, GOOD, ROUNDING

TARGET = 1e-4 * GOOD
"""Relative gap at which the iteration stops; Newton squares its error, so it costs little."""
STEPS, INNER, HALVINGS = 60, 300, 40
"""Most Newton steps, conjugate gradients of each, and halvings of a step."""
BALANCED = 1e-15
"""Sum of the slopes in an intercept, per sample, that is rounding."""


@dataclass(frozen=True)
class State:
    """Weights in rotated coordinates, intercepts, probabilities and the objective."""

    W: Array
    b: Array
    s: Array
    objective: float


@dataclass(frozen=True)
class SoftmaxProblem:
    """Samples in principal coordinates B (n, r), with squared singular values and the classes."""

    B: Array
    squares: Array
    y: Integers
    free: bool
    number: int

    def state(self, lam: float, W: Array, b: Array) -> State:
        """What is minimised at some weights and intercepts."""
        f = self.B @ W + b
        f -= f.max(1, keepdims=True)
        e = np.exp(f)
        total = e.sum(1)
        own = f[np.arange(len(f)), self.y]
        loss = float((np.log(total) - own).sum())
        return State(W, b, e / total[:, None], loss + 0.5 * lam * float((W**2).sum()))

    def slopes(self, lam: float, state: State) -> tuple[Array, Array]:
        """Gradients in weights and intercepts."""
        residual = state.s.copy()
        residual[np.arange(len(residual)), self.y] -= 1.0
        in_b = residual.sum(0) if self.free else np.zeros(self.number)
        return lam * state.W + self.B.T @ residual, in_b

    def curved(self, lam: float, s: Array, W: Array, b: Array) -> tuple[Array, Array]:
        """The Hessian at probabilities s, applied to weights and intercepts."""
        f = self.B @ W + b
        pull = s * (f - (s * f).sum(1, keepdims=True))
        in_b = pull.sum(0) if self.free else np.zeros(self.number)
        return lam * W + self.B.T @ pull, in_b

    def newton_step(
        self, lam: float, state: State, slopes: tuple[Array, Array], accuracy: float
    ) -> tuple[Array, Array]:
        """A Newton step by preconditioned conjugate gradients, to a relative accuracy."""
        curvature = float((state.s * (1.0 - state.s)).mean()) * self.number / (self.number - 1.0)
        scale = (lam + curvature * self.squares)[:, None]
        scale_b = max(curvature * len(self.y), float(np.finfo(float).tiny))
        r, r_b = -slopes[0], -slopes[1]
        x, x_b = np.zeros_like(r), np.zeros_like(r_b)
        z, z_b = r / scale, r_b / scale_b
        p, p_b = z, z_b
        product = float((r * z).sum() + r_b @ z_b)
        stop = accuracy**2 * product
        for _ in range(INNER):
            q, q_b = self.curved(lam, state.s, p, p_b)
            bend = float((p * q).sum() + p_b @ q_b)
            if not bend > 0.0:
                break
            step = product / bend
            x, x_b = x + step * p, x_b + step * p_b
            r, r_b = r - step * q, r_b - step * q_b
            z, z_b = r / scale, r_b / scale_b
            last, product = product, float((r * z).sum() + r_b @ z_b)
            if product <= stop:
                break
            p, p_b = z + product / last * p, z_b + product / last * p_b
        return x, x_b

    def balanced(self, lam: float, state: State) -> State:
        """The state with the best intercepts for its weights."""
        for _ in range(STEPS if self.free else 0):
            slope = self.slopes(lam, state)[1]
            if np.abs(slope).max() <= BALANCED * len(self.y):
                break
            H = np.diag(state.s.sum(0)) - state.s.T @ state.s
            new = self.state(lam, state.W, state.b - np.linalg.pinv(H) @ slope)
            if not new.objective <= state.objective * (1.0 + 1e-14):
                break
            state = new
        return state

    def minimised(self, lam: float, state: State) -> tuple[State, float]:
        """The minimum at one λ, and a bound on the relative distance from it."""
        gap, floor = np.inf, max(ROUNDING * len(self.y), float(np.finfo(float).tiny))
        for _ in range(STEPS):
            state = self.balanced(lam, state)
            slopes = self.slopes(lam, state)
            last, gap = gap, float((slopes[0] ** 2).sum()) / (2.0 * lam)
            gap /= max(state.objective, floor)
            if gap <= TARGET or (gap <= GOOD and gap > 0.5 * last):
                break
            accuracy = min(0.1, max(np.sqrt(gap), 1e-6))
            dW, db = self.newton_step(lam, state, slopes, accuracy)
            slope = float((slopes[0] * dW).sum() + slopes[1] @ db)
            length = 1.0
            for _ in range(HALVINGS):
                new = self.state(lam, state.W + length * dW, state.b + length * db)
                if new.objective <= state.objective * (1 + 1e-14) + 1e-4 * length * slope:
                    break
                length *= 0.5
            else:
                break
            state = new
        return state, gap


def softmax_path(
    A: Array, y: Integers, number: int, lams: Array, *, intercept: bool
) -> list[tuple[Array, Array, float, float]]:
    """Weights, intercepts, objective and gap at every λ, from the largest to the smallest."""
    wide = A.shape[1] > A.shape[0]
    values, vectors = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    kept = values > EPS * max(A.shape) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    roots = np.sqrt(values)
    B = vectors * roots if wide else A @ vectors
    problem = SoftmaxProblem(B, values, y, intercept, number)
    found: dict[int, tuple[Array, Array, float, float]] = {}
    W, b = np.zeros((len(values), number)), np.zeros(number)
    for i in np.argsort(lams)[::-1].tolist():
        lam = float(lams[i])
        state, gap = problem.minimised(lam, problem.state(lam, W, b))
        W, b = state.W, state.b
        weights = A.T @ (vectors @ (W / roots[:, None])) if wide else vectors @ W
        found[i] = weights, b - b.mean(), state.objective, gap
    return [found[i] for i in range(len(lams))]
