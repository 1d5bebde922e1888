r"""One class against all others: K binary fits, each of which sees K normal classes.

"The rest" has K - 1 centres. With :math:`y_c = \pm1` for class c in a fit, scores
:math:`\omega|c \sim N(b + M_c, Q)` and the gradient :math:`g = y\rho'(s)` of the loss at the
proximal point s,

.. math:: e_1 = \sum_c\pi_cE\!\left[\frac{\ell''}{1 + V\ell''}\Big|c\right], \quad
    F_c = E[g|c], \quad e_2 = \sum_c\pi_cE[g^2|c], \quad k = \frac{\lambda}{\alpha e_1}, \quad
    V = \frac{D_1}{\alpha e_1}, \\
    S_c = F_c/e_1 + M_c + b, \quad a = (1 + \Pi T_1)^{-1}\Pi(S - b), \quad M = T_1a, \quad
    Q = \frac{e_2D_2}{\alpha e_1^2} + a^\top T_2a,

and :math:`b \to b + \sum_c\pi_cF_c/e_1`. The unknowns of the iteration are log V, log Q, M in units
of the root of Q, and b. How the fits belong together is in `learner_pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.compiled import E0, E1, E2
from hiddenmanifold.features import Features
from hiddenmanifold.losses import Loss
from hiddenmanifold.numerics.anderson import FixedPoint, fixed_point
from hiddenmanifold.teachers import CERTAIN
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.stages import stages
from hiddenmanifold.theory.labels_side.averages import Branch, ChannelAverages
from hiddenmanifold.theory.labels_side.proximal_curve import Field

RESIDUAL = 1e-10
"""Residual of a solution."""
MOST, PLAIN = 200, 3
"""Evaluations of the equations in one solve, and how many of the first ones are as they come."""
LEVEL, FINER = 2, 4
"""Fineness of the averages, and the one that certifies them."""
NARROW = 1e-14
"""Width of a proximal map that moves nothing: its mean loss is that of new samples."""


@dataclass(frozen=True)
class LearnerState:
    """V, Q, the means of the scores in contrasts of classes (K - 1,), and the intercept."""

    V: float
    Q: float
    M: Array
    b: float

    @property
    def unknowns(self) -> Array:
        """The unknowns of the iteration."""
        root, scale = np.sqrt(self.Q), np.sqrt(1.0 + self.Q)
        return np.array([np.log(self.V), np.log(self.Q), *(self.M / root), self.b / scale])

    @classmethod
    def of(cls, x: Array) -> LearnerState:
        """The state of some unknowns."""
        V, Q = np.exp(x[:2]).tolist()
        return cls(V, Q, x[2:-1] * np.sqrt(Q), float(x[-1] * np.sqrt(1.0 + Q)))


@dataclass(frozen=True)
class LearnerTurn:
    """One evaluation of the equations: what follows from a state, and on the way.

    ``a`` are the class contrasts (K - 1,) of the vector of the same name.
    """

    state: LearnerState
    k: float
    e1: float
    e2: float
    a: Array
    q_w: float


@dataclass(frozen=True)
class LearnerEquations:
    """The equations of the fit of one class against all others, at one point."""

    features: Features
    labels: LabelFunctions
    loss: Loss
    own: int
    alpha: float
    gamma: float
    lam: float
    intercept: bool

    @property
    def y(self) -> Array:
        """The labels of all classes."""
        return np.where(np.arange(self.labels.number) == self.own, 1.0, -1.0)

    def field(self, x: LearnerState) -> Field:
        """The law of the shortfall in each class, of a sample that was left out."""
        one = np.ones(self.labels.number)
        centre = x.b + self.labels.of_classes(x.M[:, None])[:, 0]
        zero, deviation = 0.0 * one, np.sqrt(x.Q) * one
        return Field(x.V * one, self.loss.anchor - self.y * centre, deviation, zero, zero, zero)

    def averages(self, field: Field, level: int, *, with_loss: bool = False) -> ChannelAverages:
        """Averages over the shortfall, in each class."""
        zero = np.zeros_like(field.V)
        branch = Branch(1, 1.0, CERTAIN, field, field.mean, zero, zero)
        return branch.averages(self.loss, level, with_loss)

    def turned(self, x: LearnerState, level: int = LEVEL) -> LearnerTurn:
        """The state that follows from another one."""
        labels, alpha = self.labels, self.alpha
        at = self.averages(self.field(x), level)
        e1, e2 = labels.shares @ at.e[:, [E1, E2]]  # of numpy, whose division by zero is infinite
        F = self.y * at.e[:, E0]
        k = np.array([self.lam / (alpha * e1)])
        s = self.features.sums(k, np.array([self.gamma]))
        T = labels.at(s, k)
        S = F / e1 + labels.of_classes(x.M[:, None])[:, 0]
        a = T.kept[0] @ labels.in_contrasts(S[:, None])[:, 0]
        noise = e2 / (alpha * e1**2)
        M, Q = T.T1[0] @ a, noise * float(s.D20[0]) + float(a @ T.T2[0] @ a)
        b = float(x.b + labels.shares @ F / e1) if self.intercept else 0.0
        q_w = (noise * s.D11[0] + a @ T.T11[0] @ a) / k[0]
        V = float(s.D1[0] / (alpha * e1))
        return LearnerTurn(LearnerState(V, float(Q), M, b), float(k[0]), e1, e2, a, float(q_w))

    def start(self) -> LearnerState:
        """The state after some turns from scores of variance one."""
        x = LearnerState(1.0, 1.0, np.zeros(self.labels.number - 1), 0.0)
        for _ in range(PLAIN):
            x = self.turned(x).state
        return x

    def solve(self, start: LearnerState) -> tuple[FixedPoint, LearnerState]:
        """The solution near some state."""

        def turn(x: Array) -> Array:
            return self.turned(LearnerState.of(x)).state.unknowns

        with np.errstate(all="ignore"):
            found = fixed_point(turn, start.unknowns, RESIDUAL, MOST)
        return found, LearnerState.of(found.x)

    def walked(self) -> tuple[FixedPoint, LearnerState]:
        """The solution, in stages from a λ where it is easy, if that from the usual start fails.

        If λ is large the start of a loss with a kink may be where it has no curvature.
        """
        with np.errstate(all="ignore"):
            found, x = self.solve(self.start())
            if found.residual <= RESIDUAL:
                return found, x
            easy = self.features.variance * max(1.0, self.alpha)
            iterations, x = found.iterations, replace(self, lam=easy).start()
            for lam in stages(easy, self.lam):
                found, x = replace(self, lam=float(lam)).solve(x)
                iterations += found.iterations
                if not found.residual <= RESIDUAL:
                    break
        return replace(found, iterations=iterations), x

    def refined(self, x: LearnerState) -> float:
        """How far finer averages move the solution in one turn."""
        coarse, fine = (self.turned(x, level).state.unknowns for level in (LEVEL, FINER))
        return float(np.abs(fine - coarse).max())

    def losses(self, x: LearnerState, mean: Array, variance: Array) -> tuple[float, float]:
        """Mean loss of training samples, and of new ones of given means and variances (K,)."""
        shares, field = self.labels.shares, self.field(x)
        training = self.averages(field, LEVEL, with_loss=True).data_loss
        new = replace(
            field,
            V=np.full_like(field.V, NARROW),
            mean=self.loss.anchor - self.y * mean,
            deviation=np.sqrt(variance),
        )
        test = self.averages(new, LEVEL, with_loss=True).data_loss
        return float(shares @ training), float(shares @ test)
