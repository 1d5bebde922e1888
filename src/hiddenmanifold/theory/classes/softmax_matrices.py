r"""Softmax regression of any classes: matrices of K - 1 contrasts, and a κ for each direction.

With the averages :math:`E_1, E_2` and :math:`F_c` of `proximal_scores`, :math:`E_1 = U\,
\mathrm{diag}(e)\,U^\top` and a tilde for matrices in the basis U,

.. math:: k_j = \frac{\lambda}{\alpha e_j}, \quad
    V = U\,\mathrm{diag}\frac{D_1(k_j)}{\alpha e_j}\,U^\top, \quad
    S_c = E_1^{-1}F_c + M_c + b, \quad
    \tilde a_j = (1 + \Pi T_1(k_j))^{-1}\Pi(\tilde S_j - \tilde b_j), \\
    \tilde M_j = T_1(k_j)\tilde a_j, \quad
    \tilde Q_{jl} = \frac{D_2(k_j, k_l)}{\alpha e_j e_l}\tilde E_{2,jl} +
    \tilde a_j^\top T_2(k_j, k_l)\tilde a_l, \quad b \to b + E_1^{-1}\sum_c\pi_c F_c.

The unknowns of the iteration are the logarithms of V and Q, the means in units of the root of Q,
and the intercepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.features import Features
from hiddenmanifold.numerics.anderson import FixedPoint, fixed_point
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.proximal_scores import (
    ScoreLaws,
    TrainingAverages,
    symmetric_root,
    training_averages,
)
from hiddenmanifold.theory.classes.stages import stages

RESIDUAL = 1e-10
"""Residual of a solution: the equations are solved as they are for each set of points."""
MOST = 150
"""Evaluations of the equations in one solve; 15 to 40 are usual."""


@dataclass(frozen=True)
class Overlaps:
    """V, Q (m, m), the means of scores in contrasts of classes (K - 1, m), and intercepts (m,)."""

    V: Array
    Q: Array
    M: Array
    b: Array

    @property
    def unknowns(self) -> Array:
        """The unknowns of the iteration."""
        inverse = np.linalg.inv(symmetric_root(self.Q))
        scale = np.sqrt(1.0 + np.trace(self.Q) / len(self.Q))
        upper = np.triu_indices(len(self.Q))
        logs = [_of_values(np.log, matrix)[upper] for matrix in (self.V, self.Q)]
        return np.concatenate([*logs, (self.M @ inverse).ravel(), self.b / scale])

    @classmethod
    def of(cls, x: Array, m: int) -> Overlaps:
        """The overlaps of some unknowns."""
        upper, size = np.triu_indices(m), m * (m + 1) // 2
        matrices = []
        for part in (x[:size], x[size : 2 * size]):
            log = np.zeros((m, m))
            log[upper] = part
            matrices.append(_of_values(np.exp, log + np.triu(log, 1).T))
        V, Q = matrices
        M = x[2 * size : -m].reshape(-1, m) @ symmetric_root(Q)
        return cls(V, Q, M, x[-m:] * np.sqrt(1.0 + np.trace(Q) / m))


@dataclass(frozen=True)
class Turn:
    """One evaluation of the equations: what follows from some overlaps, and on the way."""

    overlaps: Overlaps
    k: Array
    basis: Array
    noise: Array
    q_w: float
    at: TrainingAverages

    def fluctuations(self, equations: SoftmaxEquations) -> Array:
        r"""P times what fluctuations at finite size add to Q in each class (K, m, m).

        :math:`U[N_{jl}(1 + T^\Omega_{2,cc}(k_j, k_l))]U^\top` with the noise N of the weights.
        """
        pulled = equations.labels.pulled(equations.features, self.k, equations.gamma)
        found: Array = self.basis @ (self.noise * (1.0 + pulled)) @ self.basis.T
        return found


@dataclass(frozen=True)
class SoftmaxEquations:
    """The equations of one point, with averages over one set of points."""

    features: Features
    labels: LabelFunctions
    alpha: float
    gamma: float
    lam: float
    laws: ScoreLaws
    intercept: bool

    def turned(self, x: Overlaps, u: Array | None) -> Turn:
        """The overlaps that follow from some."""
        omega = self.laws.omega(x.b + self.means(x.M), symmetric_root(x.Q))
        return self._from(training_averages(self.laws, x.V, omega, u), x)

    def means(self, M: Array) -> Array:
        """Means (K, m) of the contrasts of scores in each class."""
        return self.labels.of_classes(M)

    def start(self) -> Overlaps:
        """What scores that are all alike in all classes lead to, which is exact for large λ."""
        P, shares, m = self.laws.contrasts, self.laws.shares, self.laws.contrasts.shape[1]
        s = shares if self.intercept else np.full(m + 1, 1.0 / (m + 1))
        b = P.T @ np.log(s)
        H = P.T @ (np.diag(s) - np.outer(s, s)) @ P
        pull = (np.eye(m + 1) - s) @ P
        E2 = (pull.T * shares) @ pull
        zero = np.zeros((m, m))
        at = TrainingAverages(H, E2, pull, 0.0, 0.0, zero)
        return self._from(at, Overlaps(zero, zero, zero, b)).overlaps

    def _from(self, at: TrainingAverages, x: Overlaps) -> Turn:
        """The features' side of the equations."""
        e, U = np.linalg.eigh(at.E1)
        k, alpha = self.lam / (self.alpha * e), self.alpha
        sums = self.features.sums(k, np.full_like(k, self.gamma))
        T = self.labels.at(sums, k)
        inverse = (U / e) @ U.T
        S = (at.pull @ inverse + self.means(x.M)) @ U
        a = np.linalg.solve(np.eye(T.T1.shape[1]) + T.T1, self.labels.in_contrasts(S).T[..., None])[
            ..., 0
        ]
        M = (T.T1 @ a[..., None])[..., 0].T @ U.T
        D2, T2 = self.labels.pair(self.features, k, self.gamma)
        noise = U.T @ at.E2 @ U / (alpha * np.outer(e, e))
        Q = noise * D2 + np.einsum("ja,jlab,lb->jl", a, T2, a)
        V = (U * (sums.D1 / (alpha * e))) @ U.T
        b = x.b + inverse @ (self.laws.shares @ at.pull) if self.intercept else x.b
        weights = np.diag(noise) * sums.D11 + np.einsum("ja,jab,jb->j", a, T.T11, a)
        overlaps = Overlaps(V, U @ (0.5 * (Q + Q.T)) @ U.T, M, b)
        return Turn(overlaps, k, U, noise, float((weights / k).sum()), at)

    def solve(self, start: Overlaps) -> tuple[FixedPoint, Overlaps]:
        """The solution near some overlaps."""
        m, kept = len(start.b), Warm()

        def turn(x: Array) -> Array:
            found = self.turned(Overlaps.of(x, m), kept.u)
            kept.u = found.at.u
            return found.overlaps.unknowns

        with np.errstate(all="ignore"):
            try:
                found = fixed_point(turn, start.unknowns, RESIDUAL, MOST)
            except np.linalg.LinAlgError:  # of a matrix that is not finite
                found = FixedPoint(start.unknowns, np.inf, MOST)
        return found, Overlaps.of(found.x, m)

    def walked(self) -> tuple[FixedPoint, Overlaps]:
        """The solution from λ far above, in stages, where that from the usual start fails."""
        found, x = self.solve(self.start())
        if found.residual <= RESIDUAL:
            return found, x
        high = max(self.features.variance * max(1.0, self.alpha), self.lam)
        iterations, x = found.iterations, replace(self, lam=high).start()
        for lam in stages(high, self.lam):
            found, x = replace(self, lam=float(lam)).solve(x)
            iterations += found.iterations
            if not found.residual <= RESIDUAL:
                break
        return replace(found, iterations=iterations), x


@dataclass
class Warm:
    """Where the scores of training samples moved at the last evaluation."""

    u: Array | None = None


def _of_values(function: np.ufunc, matrix: Array) -> Array:
    """A function of the eigenvalues of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    found: Array = (vectors * function(values)) @ vectors.T
    return found
