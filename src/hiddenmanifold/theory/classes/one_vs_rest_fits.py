"""One class against all others: points to score laws, with what is known of their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import Status
from hiddenmanifold.losses import of_shortfall
from hiddenmanifold.model import Model
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.classes.label_functions import LabelFunctions
from hiddenmanifold.theory.classes.learner_pairs import fluctuations, learner_covariance
from hiddenmanifold.theory.classes.one_vs_rest import (
    RESIDUAL,
    LearnerEquations,
    LearnerState,
)
from hiddenmanifold.theory.classes.orthants import normal_points
from hiddenmanifold.theory.classes.proximal_scores import symmetric_root
from hiddenmanifold.theory.classes.score_law import FittedScores, ScoreLaw
from hiddenmanifold.theory.classes.score_points import counting_error
from hiddenmanifold.theory.points import Limit, Points
from hiddenmanifold.theory.solver.certificate import stacked

WORST = 1e-4
"""Error of the averages, and of the covariances, above which a solution is not accepted."""
COUNTED = 2**9
"""Sobol points of each class and set by which errors of training samples are counted."""


@dataclass(frozen=True)
class LearnerSolution:
    """One point: the numbers of the score law, errors of training samples, and the certificate."""

    numbers: dict[str, Array]
    wrong: Array
    certificate: dict[str, int | float]


def one_vs_rest(
    model: Model,
    labels: LabelFunctions,
    points: Points,
    counts: Counts | None,
    *,
    alike: bool,
    quick: bool = False,
) -> FittedScores:
    """The K fits at each of some points; of classes that are alike only one is solved."""
    solved = []
    for i in range(len(points)):
        p = None if counts is None else float(counts.p[i])
        solved.append(_solved(model, labels, points[np.array([i])], p, alike=alike, quick=quick))
    joined = {n: np.array([s.numbers[n] for s in solved]) for n in solved[0].numbers}
    certificate = stacked([one.certificate for one in solved])
    law = ScoreLaw(joined["intercept"], joined["shift"], joined["each"])
    counted = np.inf if labels.number == 2 else COUNTED  # noqa: PLR2004 - that of two is exact
    return FittedScores(
        law=law,
        training_law=law,
        covariance=joined["covariance"],
        test_loss=joined["test_loss"],
        training_loss=joined["training_loss"],
        q_w=joined["q_w"],
        certificate=certificate,
        training_error=np.array([s.wrong.mean() for s in solved]),
        training_error_error=np.array([counting_error(s.wrong, counted) for s in solved]),
    )


def _solved(
    model: Model,
    labels: LabelFunctions,
    point: Points,
    p: float | None,
    *,
    alike: bool,
    quick: bool,
) -> LearnerSolution:
    """The solution at one point."""
    K, loss, free = labels.number, of_shortfall(model.loss), model.free_intercept
    at = float(point.alpha[0]), float(point.gamma[0]), float(point.lam[0])
    learners = [LearnerEquations(model.features, labels, loss, own, *at, free) for own in range(K)]
    found = [learner.walked() for learner in (learners[:1] if alike else learners)]
    residual = max(f.residual for f, _ in found)
    certificate: dict[str, int | float] = {
        "status": int(Status.CONVERGED),
        "residual": residual,
        "quadrature_error": np.nan,
        "conditioning_error": 0.0,
        "iterations": sum(f.iterations for f, _ in found),
    }
    if not residual <= RESIDUAL:
        vanishing = bool(point.has(Limit.VANISHING)[0])
        certificate["status"] = int(Status.NO_LIMIT if vanishing else Status.MAX_ITERATIONS)
        return LearnerSolution(_unknown(K), np.full(2, np.nan), certificate)
    states = [x for _, x in found]
    if alike:
        states = [_renamed(labels, states[0], own) for own in range(K)]
    numbers, wrong, error = _numbers(learners, states, p, quick=quick)
    certificate["quadrature_error"] = error
    if not error <= WORST:
        certificate["status"] = int(Status.QUADRATURE)
    return LearnerSolution(numbers, wrong, certificate)


def _renamed(labels: LabelFunctions, x: LearnerState, own: int) -> LearnerState:
    """The state of the fit of another class, where all are alike, from that of the first."""
    means = labels.of_classes(x.M[:, None])[:, 0]
    means[[0, own]] = means[[own, 0]]
    return LearnerState(x.V, x.Q, labels.in_contrasts(means[:, None])[:, 0], x.b)


def _unknown(K: int) -> dict[str, Array]:
    """The numbers of a point that was not solved."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("q_w", "training_loss", "test_loss"), ())
    shapes |= dict.fromkeys(("shift", "covariance"), (K, K))
    shapes |= {"intercept": (K,), "each": (K, K, K)}
    return {name: np.full(shape, np.nan) for name, shape in shapes.items()}


def _numbers(
    learners: list[LearnerEquations], states: list[LearnerState], p: float | None, *, quick: bool
) -> tuple[dict[str, Array], Array, float]:
    """The score law and losses of all fits, training errors, and the error of the averages."""
    first, K = learners[0], len(learners)
    labels, pairs = first.labels, list(zip(learners, states, strict=True))
    with np.errstate(all="ignore"):
        turns = [learner.turned(x) for learner, x in pairs]
        covariance, E2, left = learner_covariance(learners, states, turns)
        error = max(left, *(learner.refined(x) for learner, x in pairs))
        each = np.repeat(covariance[None], K, axis=0)
        if p is not None:
            each = each + fluctuations(labels, first, turns, E2) / p
        shift = np.array([labels.of_classes(x.M[:, None])[:, 0] for x in states]).T
        b = np.array([x.b for x in states])
        losses = np.array(
            [
                learner.losses(x, x.b + shift[:, k], each[:, k, k])
                for k, (learner, x) in enumerate(pairs)
            ]
        ).sum(0)
        wrong = np.full(2, np.nan)
        if not quick:
            wrong = _training_errors(learners, states, b + shift, covariance)
    q_w = sum(turn.q_w for turn in turns)
    numbers = {
        "intercept": b,
        "shift": shift,
        "covariance": covariance,
        "each": each,
        "q_w": np.array(q_w),
        "training_loss": np.array(losses[0] + 0.5 * first.lam * q_w / first.alpha),
        "test_loss": np.array(losses[1]),
    }
    return numbers, wrong, error


def _training_errors(
    learners: list[LearnerEquations], states: list[LearnerState], mean: Array, covariance: Array
) -> Array:
    """The training error by each of some sets of points: every fit moves its own score."""
    from scipy.special import ndtr

    K, labels, loss = len(learners), learners[0].labels, learners[0].loss
    if K == 2:  # noqa: PLR2004 - the one fit is wrong where its shortfall exceeds the anchor
        field, a = learners[0].field(states[0]), np.array([loss.anchor])
        least = a + states[0].V * loss.derivative(a)
        return np.full(2, float(labels.shares @ ndtr((field.mean - least) / field.deviation)))
    root, wrong = symmetric_root(covariance), np.zeros(8)
    for c, share in enumerate(labels.shares):
        omega = mean[c] + normal_points(K, COUNTED, key=K * K + c) @ root
        eta = np.empty_like(omega)
        for k, (learner, x) in enumerate(zip(learners, states, strict=True)):
            y = learner.y[c]
            u = loss.anchor - y * omega[..., k]
            eta[..., k] = y * (loss.anchor - loss.proximal(u, np.full_like(u, x.V)))
        own = eta[..., c : c + 1]
        wrong += share * (np.delete(eta, c, axis=-1) > own).any(-1).mean(1)
    return wrong
