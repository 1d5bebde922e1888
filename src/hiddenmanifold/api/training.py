"""Exact curves of the error along training: gradient flow, and steps of several methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import labelled
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.signatures import DEFAULTS, GradientMethod, Trained, with_options
from hiddenmanifold.arrays import Array, Columns
from hiddenmanifold.checks import check_number
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, Status
from hiddenmanifold.model import Model
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.training.one_pass import largest_share, trained_in_one_pass
from hiddenmanifold.theory.training.rules import MOST_STEPS, Descent, Flow, beyond
from hiddenmanifold.theory.training.trajectory import trained

if TYPE_CHECKING:
    import xarray as xr

METHOD = "sums of ridge fits at complex regularisations, exact as n, p, d → ∞"
ACCURACY = "conditioning_error; of training_loss 1e-12 of the variance of the labels"
SMALL = 0.05
"""Greatest step times eigenvalue in one pass: errors are then right to 2 %, to 1 % for steps up to
half of the largest."""


@with_options(Trained)
def training(
    model: Model,
    *,
    times: ArrayLike | xr.DataArray | None = None,
    regularisation: ArrayLike | xr.DataArray = 0.0,
    **options: Unpack[Trained],
) -> xr.Dataset:
    """Exact errors of the square loss along training from zero weights, as n, p, d → ∞.

    Time and step belong to the *sum* of losses `Σ (y - f)²/2 + (λ/2)|w|²`: with the mean over n
    samples both are n times as large. A free intercept has its optimum at all times, as if features
    and labels were centred before.

    Parameters
    ----------
    model : Model
        The learning problem; its loss is the square loss.
    times : array_like or DataArray
        Times of gradient flow, a dimension `time`; with `step` the numbers of steps, a dimension
        `steps`. Zero means the limit of early times, for the errors of a classifier the direction
        of the first step; `inf` the limit of late times, ridge regression at λ. In one pass the
        number n of samples takes their place.
    regularisation : array_like or DataArray
        The λ of the objective, zero by default.
    step : array_like or DataArray, optional
        The step of gradient descent.
    momentum : float
        The factor, in [0, 1), of the last change of the weights that is added to a step (heavy
        ball). Needs a `step`.
    nesterov : bool
        Whether the gradient is taken after this change instead of before.
    method : {"full-batch", "one-pass"}
        Whether a step follows the gradient of all samples, or of a single one, `w += step (y - f)
        x/√p`, each of n samples being used once. One pass has no λ and no intercept, and its
        `training_loss` is the mean loss of samples just before they are used.
    on_failure : {"raise", "keep"}
        Whether a step that is too large raises, or is kept as NaN with its `status`.
    workers, executor, progress
        As in `predict`.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        The ratios, finite, as in `predict`. Or the numbers n, p, d.

    Returns
    -------
    xarray.Dataset
        Errors (for labels ±1 the rate of errors and the `mean_square_error`), training loss,
        overlaps, the `largest_eigenvalue` of the training samples, with steps the `largest_step`,
        and certificates.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or a step is too large; the message says how large it may be.
    IncompatibleIngredientsError
        If the loss is not the square loss.
    ConvergenceError
        If a point fails and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(
    ...     activation="erf", projection="gaussian", teacher=hm.teachers.Linear(0.2), loss="square"
    ... )
    >>> ds = hm.training(model, n_over_d=1.0, p_over_n=1.0, times=[0.1, 1, 10, 100, 1e4])
    >>> ds.generalisation_error.values.round(3)
    array([1.068, 0.751, 0.741, 1.058, 4.283])
    """
    given: dict[str, Any] = dict(options)
    training = Training.of(model, times, given)
    grid = Grid.of(model, given, training.axes(regularisation))
    columns = training.predicted(grid, finite_points(grid))
    if grid.on_failure == "raise":
        refuse_unstable(columns)
    source = {"method": METHOD, "accuracy": ACCURACY, **training.attributes}
    return grid.answer(Kind.TRAINING, columns, source)


@dataclass(frozen=True)
class Training:
    """The gradient method and the times that a user asks for."""

    times: Any
    step: Any
    momentum: float
    nesterov: bool
    one_pass: bool

    @classmethod
    def of(
        cls, model: Model, times: Any, given: dict[str, Any], *, search: bool = False
    ) -> Training:
        """Take the arguments of `training` out of all, and check that they fit together.

        A search finds the times, which are not given.
        """
        check_model(model)
        step, momentum, nesterov, method = (
            given.pop(name, DEFAULTS.get(name)) for name in GradientMethod.__annotations__
        )
        if not isinstance(nesterov, bool | np.bool_):
            raise InvalidArgumentError("nesterov", nesterov, "True or False")
        check_number("momentum", momentum, 0.0)
        if not momentum < 1.0:
            raise InvalidArgumentError("momentum", momentum, "below 1")
        if method not in ("full-batch", "one-pass"):
            raise InvalidArgumentError("method", method, "'full-batch' or 'one-pass'")
        one_pass = method == "one-pass"
        if step is None:
            for name, value in (("momentum", momentum), ("nesterov", nesterov)):
                if value:
                    raise InvalidArgumentError.because(
                        name, "needs steps", "give a step, or leave it out for gradient flow"
                    )
        if one_pass and search:
            raise InvalidArgumentError.because(
                "method", "= 'one-pass' has no time", "compare numbers of samples by training"
            )
        if one_pass:
            _check_one_pass(model, times, step, {"momentum": momentum, "nesterov": nesterov})
        elif times is None and not search:
            raise InvalidArgumentError.because(
                "times", "are missing", "give times of gradient flow, or numbers of steps"
            )
        return cls(times, step, float(momentum), bool(nesterov), one_pass)

    @property
    def dimension(self) -> str:
        """The name of the dimension of the times."""
        return "time" if self.step is None else "steps"

    @property
    def attributes(self) -> dict[str, Any]:
        """The gradient method as attributes of a dataset."""
        if self.step is None:
            return {"training": "gradient flow"}
        if self.one_pass:
            return {"training": "one pass of stochastic gradient descent"}
        kind = "heavy ball" if self.momentum else "gradient descent"
        kind = "Nesterov momentum" if self.nesterov else kind
        return {"training": kind, "momentum": self.momentum}

    def axes(self, regularisation: Any, *, limits: bool = True) -> dict[str, Any]:
        """All arguments that may vary."""
        axes = {"regularisation": regularisation}
        if self.one_pass:
            if np.any(np.asarray(regularisation) != 0.0):
                raise InvalidArgumentError.because(
                    "regularisation", "is not zero", "one pass has none: leave it out"
                )
        elif self.times is not None:
            times = self.times if limits else labelled(self.dimension, self.times)
            axes[self.dimension] = times
        return axes if self.step is None else {**axes, "step": self.step}

    def predicted(self, grid: Grid, points: Points) -> Columns:
        """All that the theory knows at the points of a grid."""
        if self.one_pass:
            step = grid.flat(grid.coordinates["step"])
            _check_small(step, largest_share(grid.model.features, points.gamma))
            return trained_in_one_pass(grid.model, points, step)
        time = grid.flat(grid.coordinates[self.dimension])
        self.check_times(time)
        return trained(grid.model, points, time, self.rule(grid), grid.workers)

    def rule(self, grid: Grid) -> Flow | Descent:
        """The method that uses all samples for each step, with a step at every point."""
        if self.step is None:
            return Flow()
        return Descent(grid.flat(grid.coordinates["step"]), self.momentum, self.nesterov)

    def check_times(self, times: Array) -> None:
        """Raise unless steps are whole numbers, and few if there is momentum."""
        finite = times[np.isfinite(times)]
        if self.step is None or not finite.size:
            return
        if (parts := finite[finite % 1 != 0]).size:
            raise InvalidArgumentError("times", float(parts[0]), "whole numbers if a step is given")
        between = finite[(finite > MOST_STEPS) & (finite < beyond(self.momentum))]
        if between.size:
            raise InvalidArgumentError.because(
                "times",
                f"has {between[0]:g} steps with momentum {self.momentum:g}",
                f"ask for at most {MOST_STEPS} or for at least "
                f"{np.ceil(beyond(self.momentum)):.0f}, or use less momentum and a larger step: "
                "late steps depend on step/(1 - momentum) alone",
            )


def _check_one_pass(model: Model, times: Any, step: Any, others: Mapping[str, Any]) -> None:
    """Raise if one pass is asked for something that it has not."""
    if step is None:
        raise InvalidArgumentError.because("step", "is missing", "one pass needs a step")
    if times is not None:
        raise InvalidArgumentError.because(
            "times", "are the numbers of samples in one pass", "vary n_over_d or n_over_p instead"
        )
    for name, value in others.items():
        if value:
            raise InvalidArgumentError.because(name, "is not known in one pass", "leave it out")
    if getattr(model, "free_intercept", False):
        raise IncompatibleIngredientsError(
            "one pass of samples is known without an intercept only, and the model has a free one "
            "(features whose mean is not zero provide one): centre features and labels before"
        )


def _check_small(step: Array, share: Array) -> None:
    """Raise if a single step would learn much of a direction."""
    if (step * share > SMALL).any():
        most = float(np.min(SMALL / share[share > 0.0]))
        raise InvalidArgumentError.because(
            "step",
            f"times the largest eigenvalue of the features' kernel is {(step * share).max():.3g}",
            f"use at most {most:.3g}: the theory of one pass needs a product of at most {SMALL}, "
            "so that each direction is learned in many steps",
        )


def check_model(model: Model) -> None:
    """Raise unless the loss is the square loss, without weights."""
    loss = getattr(model, "loss", None)  # what is no model is refused by the grid
    if loss is not None and not loss.quadratic:
        raise IncompatibleIngredientsError(
            f"training needs the square loss, and the model has {loss}: only gradients of "
            "the square loss are linear in the weights, so that curves are exact"
        )
    if getattr(model, "weights", None) is not None:
        raise InvalidArgumentError.because(
            "weights",
            f"= {model.weights} have no curves of training",
            "leave them out, or ask predict for the minimum of the weighted objective",
        )


def finite_points(grid: Grid) -> Points:
    """The points, unless a ratio or λ is infinite."""
    for name, values in (*grid.ratios.items(), ("regularisation", None)):
        array = grid.coordinates["regularisation"] if values is None else values
        if np.isinf(array.values).any():
            raise InvalidArgumentError.because(
                name, "is infinite", "give finite numbers: the order of two limits would matter"
            )
    return grid.points()


def refuse_unstable(columns: Columns) -> None:
    """Raise if a step is too large, with the largest one that is not."""
    unstable = columns["status"] == Status.UNSTABLE
    if unstable.any():
        least = float(columns["largest_step"][unstable].min())
        raise InvalidArgumentError.because(
            "step",
            "is too large, so that the weights grow without bound",
            f"use less than {least:.6g}, or on_failure='keep' for NaN there",
        )
