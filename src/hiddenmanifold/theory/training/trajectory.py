"""Everything that is predicted of a model along training, limits of the time included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Booleans, Columns, Integers, chunks, joined
from hiddenmanifold.errors import CERTIFICATES, Status
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.theory.features_side import Overlaps
from hiddenmanifold.theory.labels_side.channel import COLLAPSED, Channel
from hiddenmanifold.theory.labels_side.kinds import channel_of
from hiddenmanifold.theory.labels_side.two_labels import ClassChannel
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.scores.errors_of_labels import errors, test_errors
from hiddenmanifold.theory.solver.settings import STANDARD
from hiddenmanifold.theory.training.largest_eigenvalue import largest_eigenvalue
from hiddenmanifold.theory.training.ridge_sums import Labels, RidgeSums
from hiddenmanifold.theory.training.rules import Descent, Flow, Rule

TOGETHER = 250
"""Points that are computed together, which bounds the memory."""
FLOOR = 1e-5
"""Size, in units of the labels' variance or of the largest overlap, below which errors count as
absolute: an error that vanishes at late times is known to 1e-12 of that unit."""
KEPT = ("generalisation_error", "clean_error", "mean_square_error", "training_loss", "alignment")
OVERLAPS = ("Q", "M", "q_w", "intercept")


@dataclass(frozen=True)
class Trained:
    """Points of a model at given times, or numbers of steps: one job of a worker.

    Attributes
    ----------
    model : Model
        The model, of the square loss.
    points : Points
        Where to train; the λ may be zero.
    time : array (points,)
        Time of the flow, or numbers of steps; positive and finite.
    rule : Rule
        The gradient method.
    """

    model: Model
    points: Points
    time: Array
    rule: Rule

    def __getitem__(self, some: Integers) -> Trained:
        rule = self.rule
        if isinstance(rule, Descent):
            rule = replace(rule, step=rule.step[some])
        return replace(self, points=self.points[some], time=self.time[some], rule=rule)

    @np.errstate(all="ignore")
    def run(self) -> Columns:
        """Errors and overlaps at every point, with status and error estimates."""
        points, labels = self.points, labels_of(channel_of(self.model))
        found: Columns = {}
        for nodes in self.rule.nodes(self.time, points.lam):
            alpha, gamma = points.alpha[nodes.index], points.gamma[nodes.index]
            sums = RidgeSums.of(self.model.features, labels, alpha, gamma, nodes)
            for name, values in sums.columns().items():
                found.setdefault(name, np.full(len(points), np.nan))[nodes.index] = values
        return quantities(self.model, points, found)


def quantities(model: Model, points: Points, found: Columns) -> Columns:
    """What follows from overlaps whose rounding errors have names that end in ``_size``."""
    channel = channel_of(model)
    labels = labels_of(channel)
    rho = labels.rho
    Q, M, deficit = found["Q"], found["M"], np.maximum(found["deficit"], COLLAPSED)
    excess = np.maximum(found["excess"], 0.0)
    none = np.zeros((len(Q), 3))
    overlaps = Overlaps(
        np.ones_like(Q), Q, found["q_w"], M, deficit, excess, none, none, none, none, none
    )
    x, _ = channel.coordinates(overlaps)
    of_labels = test_errors(channel, x) if model.counts_errors else errors(channel, x, overlaps)
    residual = labels.noise + excess
    scales = {
        "excess": np.maximum(residual, FLOOR * labels.variance),
        "Q": Q,
        "deficit": np.maximum(deficit, FLOOR * rho * Q),
    }
    wrong = [found[f"{name}_size"] / scale for name, scale in scales.items()]
    conditioning = np.max(wrong, axis=0)
    known = np.isfinite(conditioning)
    status = np.where(known, Status.CONVERGED, Status.MAX_ITERATIONS)
    status[known & (conditioning > STANDARD.conditioning)] = Status.ILL_CONDITIONED
    square = np.maximum(found["training_square"], 0.0)
    penalty = points.lam * found["q_w"] / points.alpha
    return {
        **of_labels,
        **({"mean_square_error": residual} if model.counts_errors else {}),
        "training_loss": 0.5 * (square + penalty),
        "alignment": M / np.sqrt(M**2 + deficit),
        "Q": Q,
        "M": M,
        "q_w": found["q_w"],
        "intercept": channel.intercept(x),
        "conditioning_error": conditioning,
        "status": status.astype(np.int8),
    }


def labels_of(channel: Channel) -> Labels:
    """What a square loss sees of the labels of a channel."""
    if isinstance(channel, ClassChannel):
        plus, minus, _ = channel.teacher.label_marginals
        u = 4.0 * plus * minus if channel.free_intercept else 1.0
        return Labels(channel.rho, u, u, classes=True)
    if hasattr(channel, "label_moments"):
        mean, second, variance, slope = channel.label_moments
        return Labels(channel.rho, slope, variance if channel.free_intercept else second)
    law = channel.teacher.law
    bias = 0.0 if channel.free_intercept else law.mean**2
    return Labels(channel.rho, 1.0, channel.rho + law.variance + bias)


def curvature_of(model: Model, points: Points) -> Array:
    """The largest curvature of the objective: that of all losses, and λ."""
    labels = labels_of(channel_of(model))
    return largest_eigenvalue(model.features, labels, points.alpha, points.gamma) + points.lam


def trained(
    model: Model, points: Points, time: Array, rule: Rule, workers: Workers | None = None
) -> Columns:
    """Every predicted quantity after training from zero weights, at each point and time.

    The times 0 and ∞ are those of ridge regression at λ → ∞, the direction of the first step, and
    at the λ given. Steps that are too large to converge have their own status.
    """
    curvature = curvature_of(model, points)
    largest = rule.largest_step(curvature)
    stable = rule.step < largest if isinstance(rule, Descent) else np.ones(len(points), bool)
    job, within = Trained(model, points, time, rule), (time > 0.0) & (time < np.inf)
    found: Columns = {}
    for some, part in _parts(job, within & stable, workers or Workers(1)):
        for name, values in part.items():
            blank = np.nan if values.dtype == float else 0
            column = found.setdefault(name, np.full(len(points), blank, values.dtype))
            column[some] = values
    if not found:  # no step is stable: nothing but the names of what there would be
        found = Trained(model, points, np.ones(len(points)), Flow()).run()
    found = blanked(found, stable)
    found["largest_eigenvalue"] = curvature - points.lam
    if isinstance(rule, Descent):
        found["largest_step"] = largest
    return found


def blanked(found: Columns, stable: Booleans) -> Columns:
    """The columns, NaN where they are not known or a step is too large."""
    for name in set(found).difference(CERTIFICATES):
        found[name][found["status"] != Status.CONVERGED] = np.nan
    found["status"][~stable] = Status.UNSTABLE
    for name in set(found).difference(("status",)):
        found[name][~stable] = np.nan
    return found


def _parts(job: Trained, within: Booleans, workers: Workers) -> Iterator[tuple[Integers, Columns]]:
    """Points and their columns: those at positive times, and those at either end."""
    inner = np.flatnonzero(within)
    if inner.size:
        batches = [job[inner[part]] for part in chunks(np.arange(len(inner)), TOGETHER)]
        yield inner, joined(workers.run(batches))
    for ends, lam in ((job.time == 0.0, np.inf), (job.time == np.inf, job.points.lam)):
        some = np.flatnonzero(ends)
        if some.size:
            at = job.points.at(np.broadcast_to(lam, job.time.shape))[some]
            yield some, _at_end(job.model, at, workers, begun=not np.isscalar(lam))


def _at_end(model: Model, points: Points, workers: Workers, *, begun: bool) -> Columns:
    """The columns of ridge regression that training has."""
    found = asymptotics(model, points, workers)
    labels = labels_of(channel_of(model))
    if model.counts_errors:
        found["mean_square_error"] = (
            _mean_square(labels, found) if begun else np.full(len(points), labels.variance)
        )
    if not begun:
        found["training_loss"] = np.full(len(points), 0.5 * labels.variance)
    names = (*KEPT, *OVERLAPS, "conditioning_error", "status")
    return {name: found[name] for name in names if name in found}


def _mean_square(labels: Labels, found: Columns) -> Array:
    """Mean square residual of new labels."""
    M, Q = found["M"], found["Q"]
    if labels.classes:
        squared: Array = labels.variance * (1.0 - M) ** 2 + Q
    else:
        squared = labels.variance + Q - 2.0 * labels.slope * M
    return squared
