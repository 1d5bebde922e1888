r"""Training on drawn samples by gradient methods, from zero weights, at finite size.

The flow is exact in time: :math:`w = V\,\frac{1 - e^{-t(s^2+\lambda)}}{s^2 + \lambda}\,s\,U^\top y`
with the singular values s of the features over :math:`\sqrt p`. Steps are really taken. A free
intercept has its optimum at all times, as if features and labels were centred before. In one pass
the training loss is that of each sample just before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.simulation.experiment import Trial
from hiddenmanifold.simulation.problem import Fit
from hiddenmanifold.simulation.samples import Sample


@dataclass(frozen=True)
class TrainingTrial(Trial):
    """A seed of a point, of which the fits are those at some times; `lams` repeats one λ for each.

    Attributes
    ----------
    times : tuple of float
        Times of the flow, or numbers of steps.
    step : float, optional
        The step of gradient descent; gradient flow if there is none.
    momentum : float
        The factor of the last change of the weights.
    nesterov : bool
        Whether the gradient is taken after this change.
    one_pass : bool
        Whether each step follows the gradient of a single sample, each of which is used once.
    """

    times: tuple[float, ...] = ()
    step: float | None = None
    momentum: float = 0.0
    nesterov: bool = False
    one_pass: bool = False

    def fitted(self, train: Sample) -> list[Fit]:
        free, lam = self.model.free_intercept, self.lams[0]
        Z, y = train.X / np.sqrt(train.X.shape[1]), train.y
        if self.one_pass:
            return [self._pass(Z, y)]
        centre, mean = np.zeros(Z.shape[1]), 0.0
        if free:
            centre, mean = Z.mean(0), float(y.mean())
        A, r = Z - centre, y - mean
        found = []
        for w in self._flow(A, r, lam) if self.step is None else self._steps(A, r, lam):
            square = float(((r - A @ w) ** 2).sum() + lam * (w @ w))
            found.append(Fit(w, mean - float(centre @ w), 0.5 * square, 0.0))
        return found

    def _flow(self, A: Array, r: Array, lam: float) -> Iterator[Array]:
        """Weights at each time."""
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        rotated, rate = U.T @ r, np.maximum(s**2 + lam, np.finfo(float).tiny)
        for time in self.times:
            yield Vt.T @ (-np.expm1(-time * rate) / rate * s * rotated)

    def _steps(self, A: Array, r: Array, lam: float) -> Iterator[Array]:
        """Weights after each number of steps, which are taken."""
        assert self.step is not None
        w = before = np.zeros(A.shape[1])
        kept = {0.0: w}
        for taken in range(1, int(max(self.times)) + 1):
            ahead = w + self.momentum * (w - before) if self.nesterov else w
            gradient = A.T @ (A @ ahead - r) + lam * ahead
            w, before = w + self.momentum * (w - before) - self.step * gradient, w
            if taken in self.times:
                kept[float(taken)] = w
        yield from (kept[time] for time in self.times)

    def _pass(self, Z: Array, y: Array) -> Fit:
        """The weights after a step for each sample, and the sum of losses before each."""
        assert self.step is not None
        w, total = np.zeros(Z.shape[1]), 0.0
        for z, label in zip(Z, y, strict=True):
            residual = label - z @ w
            total += 0.5 * residual**2
            w += self.step * residual * z
        return Fit(w, 0.0, float(total), 0.0)
