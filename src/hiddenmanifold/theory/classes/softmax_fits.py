"""Softmax regression of any normal classes: points to score laws, with errors of the averages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Features
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.proximal_scores import (
    ScoreLaws,
    contrasts_of,
    symmetric_root,
    training_averages,
)
from hiddenmanifold.theory.classes.score_law import FittedScores, ScoreLaw
from hiddenmanifold.theory.classes.score_points import (
    GRIDS,
    counting_error,
    points_of_scores,
    sobol_sets,
)
from hiddenmanifold.theory.classes.score_rates import wrong_rates
from hiddenmanifold.theory.classes.softmax_matrices import RESIDUAL, Overlaps, SoftmaxEquations
from hiddenmanifold.theory.points import Limit, Points
from hiddenmanifold.theory.solver.certificate import stacked

TOLERANCE, ON_GRIDS = 3e-4, 1e-8
"""Error of the unknowns at which no more points are tried, with Sobol points and on grids."""
WORST = 0.03
"""Error above which a solution is not accepted."""
COARSE = (2**6,)
"""Sobol points of the integrals whose differences tell the error of the law."""

COUNTED = 2**10
"""Sobol points of each class by which errors of training samples are counted."""

Numbers = dict[str, Array]
"""Named numbers of one set of points, or of all."""


@dataclass(frozen=True)
class Solved:
    """One point: the numbers of each set (sets first), and the certificate."""

    numbers: Numbers
    certificate: dict[str, int | float]


def softmax_of_classes(
    features: Features,
    labels: LabelFunctions,
    points: Points,
    counts: Counts | None,
    *,
    intercept: bool,
    quick: bool = False,
) -> FittedScores:
    """The fit of classes of any priors and means, at each of some points."""
    solved = []
    for i in range(len(points)):
        p = None if counts is None else float(counts.p[i])
        solved.append(_solved(features, labels, points, i, p, intercept=intercept, quick=quick))
    sets = {name: np.array([s.numbers[name] for s in solved]) for name in solved[0].numbers}
    mean = {name: values.mean(1) for name, values in sets.items()}
    certificate = stacked([one.certificate for one in solved])
    law = ScoreLaw(mean["intercept"], mean["shift"], mean["each"])
    unknown = np.full(2, np.nan)
    wrong = [unknown if quick else _training_errors(labels, mean, i) for i in range(len(points))]
    counted = np.inf if labels.number == 2 else COUNTED  # noqa: PLR2004 - that of two is exact
    return FittedScores(
        law=law,
        training_law=law,
        covariance=mean["covariance"],
        test_loss=mean["test_loss"],
        training_loss=mean["training_loss"],
        q_w=mean["q_w"],
        certificate=certificate,
        error=np.array(
            [0.0 if quick else _error_of_rate(labels.shares, sets, i) for i in range(len(points))]
        ),
        training_error=np.array([rates.mean() for rates in wrong]),
        training_error_error=np.array([counting_error(rates, counted) for rates in wrong]),
    )


def _error(sets: Array) -> Array:
    """Three standard errors of a mean over sets."""
    found: Array = 3.0 * np.std(sets, axis=0, ddof=1) / np.sqrt(len(sets))
    return found


def _error_of_rate(shares: Array, sets: Numbers, i: int) -> float:
    """Error of the misclassification rate of point i due to that of the law."""
    law = ScoreLaw(*(sets[name][i] for name in ("intercept", "shift", "each")))
    if not all(np.isfinite(part).all() for part in (law.intercept, law.shift, law.covariance)):
        return float("nan")
    classes = np.arange(len(shares))
    wrong = wrong_rates(*law.of_classes(classes), COARSE).reshape(-1, len(shares)) @ shares
    return float(_error(wrong))


def _solved(
    features: Features,
    labels: LabelFunctions,
    points: Points,
    i: int,
    p: float | None,
    *,
    intercept: bool,
    quick: bool,
) -> Solved:
    """The solution at one point, for all sets of points."""
    K = labels.number
    contrasts = contrasts_of(K)
    at = float(points.alpha[i]), float(points.gamma[i]), float(points.lam[i])
    x: Overlaps | None = None
    iterations, residual, error = 0, np.inf, np.inf
    for sets in islice(points_of_scores(K), 1 if quick else None):
        unknowns, numbers, residual = [], [], 0.0
        for nodes, weights in sets:
            laws = ScoreLaws(contrasts, labels.shares, nodes, weights)
            equations = SoftmaxEquations(features, labels, *at, laws, intercept)
            found, x = equations.walked() if x is None else equations.solve(x)
            iterations += found.iterations
            residual = max(residual, found.residual)
            unknowns.append(found.x)
            if not residual <= RESIDUAL:
                break
            numbers.append(_numbers(equations, x, p))
        if not residual <= RESIDUAL:
            break
        error = float(_error(np.array(unknowns)).max())
        if error <= (ON_GRIDS if K in GRIDS else TOLERANCE):
            break
    status = Status.QUADRATURE if not error <= WORST else Status.CONVERGED
    if not residual <= RESIDUAL:
        vanishing = bool(points.has(Limit.VANISHING)[i])
        status = Status.NO_LIMIT if vanishing else Status.MAX_ITERATIONS
        numbers = [_unknown(K)] * len(sets)
    certificate: dict[str, int | float] = {
        "status": int(status),
        "residual": residual,
        "quadrature_error": error,
        "conditioning_error": 0.0,
        "iterations": iterations,
    }
    return Solved({n: np.array([s[n] for s in numbers]) for n in numbers[0]}, certificate)


def _unknown(K: int) -> Numbers:
    """The numbers of a set that was not solved."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(SCALARS, ())
    shapes |= {
        "intercept": (K,),
        "shift": (K, K),
        "covariance": (K, K),
        "V": (K, K),
        "each": (K, K, K),
    }
    return {name: np.full(shape, np.nan) for name, shape in shapes.items()}


SCALARS = ("q_w", "training_loss", "test_loss")
"""Numbers of a set that are one number each."""


def _numbers(equations: SoftmaxEquations, x: Overlaps, p: float | None) -> Numbers:
    """The score law and losses at a solution; p is the number of features, if that is finite."""
    P, laws = equations.laws.contrasts, equations.laws
    turn = equations.turned(x, None)
    shift = equations.means(x.M)
    each = np.repeat(x.Q[None], len(P), axis=0)
    if p is not None:
        each = each + turn.fluctuations(equations) / p
    training = turn.at.loss + 0.5 * equations.lam * turn.q_w / equations.alpha
    return {
        "intercept": P @ x.b,
        "shift": shift @ P.T,
        "covariance": P @ x.Q @ P.T,
        "V": P @ x.V @ P.T,
        "each": P @ each @ P.T,
        "q_w": np.array(turn.q_w),
        "training_loss": np.array(training),
        "test_loss": np.array(_test_loss(laws, x.b + shift, each)),
    }


def _training_errors(labels: LabelFunctions, mean: Numbers, i: int) -> Array:
    """The training error of point i by each of some sets of points.

    A rate is the average of a step, for which grids are no better than Sobol points.
    """
    P = contrasts_of(labels.number)
    V, Q, b, shift = (mean[name][i] for name in ("V", "covariance", "intercept", "shift"))
    V, Q, centre = P.T @ V @ P, P.T @ Q @ P, (b + shift) @ P
    if not (np.isfinite(V).all() and np.isfinite(Q).all()):
        return np.full(2, np.nan)
    if labels.number == 2:  # along the one contrast the own margin moves by V/√2
        from scipy.special import ndtr

        margin = np.sign(P[:, 0]) * centre[:, 0] + V[0, 0] / np.sqrt(2.0)
        return np.full(2, float(labels.shares @ ndtr(-margin / np.sqrt(Q[0, 0]))))
    found = []
    for nodes, weights in sobol_sets(labels.number, COUNTED):
        laws = ScoreLaws(P, labels.shares, nodes, weights)
        omega = laws.omega(centre, symmetric_root(Q))
        found.append(training_averages(laws, V, omega, None).wrong)
    return np.array(found)


def _test_loss(laws: ScoreLaws, mean: Array, covariance: Array) -> float:
    """Mean loss of new samples, of means (K, m) and covariances (K, m, m) of contrasts."""
    loss = 0.0
    for c, share in enumerate(laws.shares):
        omega = mean[c] + laws.nodes[c] @ symmetric_root(covariance[c])
        f = omega @ laws.contrasts.T
        others = np.delete(f, c, axis=1) - f[:, c : c + 1]
        high = np.maximum(others.max(1), 0.0)
        total = np.exp(-high) + np.exp(others - high[:, None]).sum(1)
        loss += share * float(laws.weights @ (high + np.log(total)))
    return loss
