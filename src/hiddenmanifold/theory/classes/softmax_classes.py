r"""Softmax regression of classes that are all alike, which three numbers describe.

If classes may be exchanged, V, Q and the means M of the scores are v, q and m times
:math:`I - 11^\top/K`, and so are :math:`E_1 = E[H(1 + VH)^{-1}]` and :math:`E_2 = E[gg^\top]`,
with the gradient :math:`g = y - s` and the curvature :math:`H = \mathrm{diag}\,s - ss^\top` of the
loss at the probabilities s of a training sample. With :math:`\tau` times :math:`I - 11^\top/K` for
the Gram matrix of the means, and :math:`E[g|c]_c = F(1 - 1/K)`,

.. math:: k = \frac{\lambda}{\alpha e_1}, \quad v = \frac{D_1}{\alpha e_1}, \quad
    a = \frac{F}{K e_1}, \quad m = \tau a T_1, \quad
    q = \frac{e_2 D_2}{\alpha e_1^2} + \tau a^2 T_2.

The scores of a training sample, :math:`\eta = \omega + v g`, are those without it, moved along
the gradient: :math:`x_k = v s_k` solves :math:`x + \log x = \omega_k + v y_k + \log v - \log Z`,
Wright's function, with one number Z for which these add up to v. Averages are over normal
:math:`\omega` in K - 1 dimensions, by the points of `score_points`; each set of points is solved by
itself, and their spread is the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.numerics.newton import Solution, newton
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.proximal_scores import contrasts_of
from hiddenmanifold.theory.classes.score_law import FittedScores, ScoreLaw
from hiddenmanifold.theory.classes.score_points import GRIDS, points_of_scores
from hiddenmanifold.theory.classes.stages import stages
from hiddenmanifold.theory.points import Limit, Points
from hiddenmanifold.theory.solver.certificate import stacked

NUMBERS, TOGETHER = (2**8, 2**10, 2**12), 2**14
"""Sobol points of each set, tried one after another until the error is small, and most scores."""
TOLERANCE, ON_GRIDS = 1e-4, 1e-8
"""Relative error of v, q and m at which no more points are tried, of Sobol points and on grids."""
WORST = 0.03
"""Relative error above which a solution is not accepted."""
RESIDUAL = 1e-10
"""Residual of a solution: the equations are solved as they are for each set of points."""
STEP = 1e-5
"""Step of the differences of which Newton's matrix is made: it only steers the steps."""
LONGEST = np.full(3, 2.0)
"""Longest step of the logarithms of v, q and m."""
MOST = 40
"""Evaluations of the equations, at most."""
TURNS, CLOSE = 30, 1e-12
"""Newton steps for log Z, and its accuracy."""


@dataclass(frozen=True)
class Gradients:
    """Averages over training samples, of each of some laws: arrays (laws,)."""

    e1: Array
    e2: Array
    e3: Array
    loss: Array


@dataclass(frozen=True)
class OwnFirst:
    r"""Samples whose own score is the first, for classes that are alike.

    Attributes
    ----------
    contrasts, weights : arrays (sets, points, K), (sets, points)
        Normal contrasts of scores, and the weight of each.
    fields : array (sets, points, K), optional
        Contrasts of the fields of the classes, of variance rho, where labels depend on these.
    rho, start : float
        Variance of a field; and the a to which scores of zero lead.
    """

    contrasts: Array
    weights: Array
    fields: Array | None = None
    rho: float = 1.0
    start: float = 1.0

    def scores(self, q: Array, m: Array, index: Integers) -> Array:
        """Scores of some sets without the sample, at the q and m of each.

        Given the fields their mean is m/rho times these; else m is the mean of the own score.
        """
        if self.fields is None:
            f = np.sqrt(q)[:, None, None] * self.contrasts[index]
            f[..., 0] += m[:, None]
            return f
        rest = np.sqrt(np.maximum(q - m**2 / self.rho, 0.0))[:, None, None]
        shown: Array = (m / self.rho)[:, None, None] * self.fields[index]
        return shown + rest * self.contrasts[index]

    def gained(self, s: Array, index: Integers) -> Array:
        """The gradient y - s along the own direction, or along the fields, (sets, points)."""
        if self.fields is None:
            return np.asarray(s[..., 1:].sum(-1))
        ahead = self.fields[index][..., :1] - self.fields[index][..., 1:]
        return np.asarray((s[..., 1:] * ahead).sum(-1))


@dataclass
class Kept:
    """The last log Z of the samples of each set, from which to start the next time."""

    of_sets: dict[int, Array]

    def log_Z(self, u: Array, index: Integers) -> Array:
        """Where to start the search for log Z, of scores u of some sets."""
        if all(i in self.of_sets for i in index.tolist()):
            return np.array([self.of_sets[i] for i in index.tolist()])
        found: Array = np.logaddexp.reduce(u, axis=-1, keepdims=True)
        return found


@dataclass(frozen=True)
class AlikeClasses:
    """The equations of one point, for all sets of Sobol points together."""

    features: Features
    number: int
    tau: float
    alpha: float
    gamma: float
    lam: float
    samples: OwnFirst
    kept: Kept = field(default_factory=lambda: Kept({}))

    def gradients(self, v: Array, q: Array, m: Array, index: Integers) -> Gradients:
        """Averages over the scores of one class at some v, q and m, one of each set `index`."""
        from scipy.special import wrightomega

        K, v, weights = self.number, v[:, None, None], self.samples.weights[index]
        u = self.samples.scores(q, m, index)
        u[..., 0] += v[..., 0]
        # the largest of the probabilities s = x/v is between 1/K and 1, which bounds log Z
        highest = u.max(-1, keepdims=True)
        ends = highest - v, highest + np.log(K)
        log_v, log_Z = np.log(v), np.clip(self.kept.log_Z(u, index), *ends)
        for _ in range(TURNS):
            x = wrightomega(u + log_v - log_Z)
            total = x.sum(-1, keepdims=True)
            step = (np.log(total) - log_v) * total / (x / (1.0 + x)).sum(-1, keepdims=True)
            log_Z = np.clip(log_Z + step, *ends)
            if (np.abs(step) <= CLOSE * (1.0 + np.abs(log_Z))).all():
                break
        self.kept.of_sets |= dict(zip(index.tolist(), log_Z, strict=True))
        x = wrightomega(u + log_v - log_Z)
        curved = x / (1.0 + x)
        total = curved.sum(-1)
        bend = (total - (curved**2).sum(-1) / total) / v[..., 0]
        s = x / v
        wrong = s[..., 1:].sum(-1)  # one minus the first, with its digits
        squares = wrong**2 + (s[..., 1:] ** 2).sum(-1)
        loss = -(u[..., 0] - x[..., 0] - log_Z[..., 0])
        gained = self.samples.gained(s, index)
        e1, e2, e3 = ((weights * values).sum(1) / (K - 1.0) for values in (bend, squares, gained))
        return Gradients(e1, e2, e3, (weights * loss).sum(1))

    def response(self, at: Gradients, m: Array) -> Array:
        """The a of the features' side."""
        a = at.e3 / at.e1
        return a if self.samples.fields is None else (a + m) / self.samples.rho

    def turned(self, x: Array, index: Integers) -> Array:
        """Logarithms of v, q and m that follow from some (laws, 3)."""
        v, q, m = np.exp(x.T)
        at = self.gradients(v, q, m, index)
        k = self.lam / (self.alpha * at.e1)
        s = self.features.sums(k, np.full_like(k, self.gamma))
        a = self.response(at, m)
        noise = at.e2 / (self.alpha * at.e1**2)
        overlaps = (
            s.D1 / (self.alpha * at.e1),
            noise * s.D20 + self.tau * a**2 * s.T20,
            self.tau * a * s.T1,
        )
        return np.log(overlaps).T

    def system(self, x: Array, index: Integers) -> tuple[Array, Array]:
        """Residuals of some laws and Newton's matrices, by differences."""
        here = self.turned(x, index)
        moved = [(self.turned(x + STEP * row, index) - here) / STEP for row in np.eye(3)]
        return here - x, np.eye(3) - np.stack(moved, axis=-1)

    def solve(self, x: Array) -> Solution:
        """The solution of each set of points, from common guesses (3,) or those of each."""
        start = np.broadcast_to(x, (len(self.samples.weights), 3)).copy()
        with np.errstate(all="ignore"):
            return newton(self.system, start, LONGEST, RESIDUAL, MOST)

    def walked(self) -> Solution:
        """The solution, in stages from a λ far above, where that from the usual start fails."""
        solution = self.solve(self.start())
        # means far apart have large scores up to larger λ
        high = self.features.variance * max(1.0, self.alpha) * max(1.0, self.tau)
        iterations = solution.iterations
        if (solution.residual <= RESIDUAL).all() or not 0.0 < self.lam < high:
            return solution
        x = replace(self, lam=high).start()
        for lam in stages(high, self.lam):
            solution = replace(self, lam=float(lam)).solve(x)
            x, iterations = solution.x, iterations + solution.iterations
            if not (solution.residual <= RESIDUAL).all():
                break
        return replace(solution, iterations=iterations)

    def start(self) -> Array:
        """Unknowns that scores of zero would lead to, which is exact for large λ."""
        K, e1 = self.number, np.array([1.0 / self.number])
        with np.errstate(all="ignore"):
            k = self.lam / (self.alpha * e1)
            s = self.features.sums(k, np.full_like(k, self.gamma))
            a = self.samples.start
            q = K * s.D20 / self.alpha + self.tau * a**2 * s.T20
            return np.log([s.D1 / (self.alpha * e1), q, self.tau * a * s.T1])[:, 0]


def softmax_fit(
    features: Features,
    labels: LabelFunctions,
    points: Points,
    counts: Counts | None,
    *,
    quick: bool = False,
) -> FittedScores:
    """The fit of classes that are all alike, at each of some points."""
    most = 1 if quick else None
    tau = labels.number * float(labels.gram[0, 0])
    found = [
        solve_alike(
            features,
            (labels.number, tau),
            points,
            i,
            islice(sets_of_contrasts(labels.number), most),
        )
        for i in range(len(points))
    ]
    v, q, m, q_w, training, test, noise, k = np.array([part for part, _ in found]).transpose(
        1, 0, 2
    )
    certificate = stacked([numbers for _, numbers in found])
    K = labels.number
    centring = np.eye(K) - 1.0 / K
    covariance = q.mean(1)[:, None, None] * centring
    shift = m.mean(1)[:, None, None] * centring
    each = np.repeat(covariance[:, None], K, axis=1)
    if counts is not None:
        more = (noise * _fluctuations(features, labels, points, k)).mean(1) / counts.p
        each = each + more[:, None, None, None] * centring
    law = ScoreLaw(np.zeros((len(points), K)), shift, each)
    # along the gradient all scores move alike, but for the own one
    moved = shift + v.mean(1)[:, None, None] * centring
    return FittedScores(
        law=law,
        training_law=ScoreLaw(law.intercept, moved, np.repeat(covariance[:, None], K, axis=1)),
        covariance=covariance,
        test_loss=test.mean(1),
        training_loss=training.mean(1),
        q_w=q_w.mean(1),
        certificate=certificate,
        error=_error_of_rate(q, m),
    )


def _fluctuations(features: Features, labels: LabelFunctions, points: Points, k: Array) -> Array:
    """The factor 1 + T2 of all samples, of classes that are alike (points, sets)."""
    gamma = np.broadcast_to(points.gamma[:, None], k.shape)
    sums = features.sums(k.ravel(), gamma.ravel())
    T1, T2 = (labels.gram[0, 0] * np.reshape(T, k.shape) for T in (sums.T1, sums.T20))
    added: Array = 1.0 + (labels.number - 1.0) * (T2 + T1**2) / (1.0 + T1) ** 2
    return added


def _error_of_rate(q: Array, m: Array) -> Array:
    """Error of the misclassification rate, from its spread over the sets (points, sets)."""
    from scipy.special import ndtr

    z = np.linspace(-8.5, 8.5, 69)
    weights = np.exp(-0.5 * z**2) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    # near it the rate is a function of m/√q; K = 2 has the steepest
    right = ndtr(z + (m / np.sqrt(q))[..., None]) @ weights
    found: Array = 3.0 * right.std(1, ddof=1) / np.sqrt(right.shape[1])
    return found


Certificates = dict[str, int | float]


def solve_alike(
    features: Features, shape: tuple[int, float], points: Points, i: int, sets: Iterable[OwnFirst]
) -> tuple[Array, Certificates]:
    """The numbers of one point for each set of samples, and its status and error estimates.

    The shape is the number of classes, and what the label functions are of these.
    """
    K, tau = shape
    at = float(points.alpha[i]), float(points.gamma[i]), float(points.lam[i])
    x, iterations = np.empty((0, 3)), 0
    for samples in sets:
        classes = AlikeClasses(features, K, tau, *at, samples)
        solution = classes.solve(x.mean(0)) if len(x) else classes.walked()
        x, iterations = solution.x, iterations + int(solution.iterations.max())
        error = 3.0 * float(x.std(0, ddof=1).max()) / np.sqrt(len(x))
        if (
            error <= (ON_GRIDS if K in GRIDS else TOLERANCE)
            or not solution.residual.max() <= RESIDUAL
        ):
            break
    residual = float(solution.residual.max())
    status = Status.CONVERGED if error <= WORST else Status.QUADRATURE
    if not residual <= RESIDUAL:
        vanishing = bool(points.has(Limit.VANISHING)[i])
        status = Status.NO_LIMIT if vanishing else Status.MAX_ITERATIONS
    certificate: Certificates = {
        "status": int(status),
        "residual": residual,
        "quadrature_error": error,
        "conditioning_error": 0.0,
        "iterations": iterations,
    }
    return _finished(classes, x), certificate


def _finished(classes: AlikeClasses, x: Array) -> Array:
    """v, q, m, |W|²/p, training and test loss, the noise e2/(α e1²) and k of each set."""
    v, q, m = np.exp(x.T)
    at = classes.gradients(v, q, m, np.arange(len(v)))
    K, alpha, lam, index = classes.number, classes.alpha, classes.lam, np.arange(len(v))
    k = lam / (alpha * at.e1)
    s = classes.features.sums(k, np.full_like(k, classes.gamma))
    a, noise = classes.response(at, m), at.e2 / (alpha * at.e1**2)
    q_w = (K - 1.0) * (noise * s.D11 + classes.tau * a**2 * s.T11) / k
    f = classes.samples.scores(q, m, index)
    test = (classes.samples.weights * (np.logaddexp.reduce(f, axis=-1) - f[..., 0])).sum(1)
    training = at.loss + 0.5 * lam * q_w / alpha
    return np.array([v, q, m, q_w, training, test, noise, k])


def sets_of_contrasts(number: int) -> Iterator[OwnFirst]:
    """Samples of one of K normal classes, ever more of them."""
    basis = contrasts_of(number)
    for sets in points_of_scores(number, NUMBERS, TOGETHER):
        z = np.array([nodes[0] for nodes, _ in sets])
        yield OwnFirst(z @ basis.T, np.array([weights for _, weights in sets]))
