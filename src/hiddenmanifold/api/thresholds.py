"""Where a curve changes: the threshold of separability, and the peak of the test error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.predict import source
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import IncompatibleIngredientsError, Status, shown
from hiddenmanifold.losses import LabelLoss, of_shortfall
from hiddenmanifold.model import Model
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.teachers import Classes
from hiddenmanifold.theory.classes.class_separability import ClassLine
from hiddenmanifold.theory.curves.error_curve import ErrorCurve
from hiddenmanifold.theory.curves.peak import peaks
from hiddenmanifold.theory.points import RATIOS
from hiddenmanifold.theory.separability.line import Line, thresholds

if TYPE_CHECKING:
    import xarray as xr

EXISTENCE = {
    "method": "existence of a minimum for Gaussian-equivalent features, by cones of labels"
}
SEPARABILITY = {"method": "separability of Gaussian-equivalent features, after Candès and Sur 2020"}


@with_options(Theory)
def separability_threshold(model: Model, **options: Unpack[Theory]) -> xr.Dataset:
    """Where the training data become linearly separable, in the limit n, p, d → ∞.

    Beyond, some w gives every training sample its label: a logistic fit without penalty no longer
    exists. The loss of the model plays no role. As n/d → 0 features see nothing of the rule, and
    the threshold is p/n = 1/2 (Cover 1965), or less with a free intercept if one label is rarer.

    Parameters
    ----------
    model : Model
        Its features and its label rule; labels must be ±1, or normal classes that are all alike,
        `teachers.Classes(K, separation)`, where separable means that K linear scores give every
        training sample its class.
    on_failure : {"raise", "keep"}
        Whether a threshold that is not found raises, or is kept as NaN with its `status`.
    workers, executor, progress
        As in `predict`.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly one ratio of the numbers of samples n, features p and latent dimensions d; none, if
        the features fix d/p. A sequence becomes a dimension of that name. Or two of the numbers
        n, p, d themselves.

    Returns
    -------
    xarray.Dataset
        Given p/n or n/p, `n_over_d`, above which data are separable: 0 if they are for every n/d,
        inf if they are for none. Given any other ratio, or none, `p_over_n`, above which data are
        separable: 0 if they are for every p/n, inf if they are for none. And `status`.

    Raises
    ------
    InvalidArgumentError
        If not exactly one ratio is given, or it is not positive and finite.
    IncompatibleIngredientsError
        If the labels are real numbers.
    ConvergenceError
        If a p/n was not found to ten digits, or to 1e-15 if the rule is not symmetric; ``partial``
        has the dataset, NaN at such points.

    Notes
    -----
    At most d features of a linear activation are independent, so more than d do not help. Then a
    noisy rule also sets an upper limit to n/d, the inverse of the p/n found for p/d = 1.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> hm.separability_threshold(model, n_over_d=[0.01, 3.0]).p_over_n.values.round(4)
    array([0.4994, 0.3677])
    """
    grid = Grid.of(model, options, one_of=tuple(RATIOS), classes=True)
    if model.task is Task.REGRESSION:
        raise IncompatibleIngredientsError(
            f"teacher {model.teacher} gives real labels: only labels ±1 can be separable"
        )
    line = _line_of_classes(model) if model.task is Task.CLASSES else Line.of(model)
    name, ratio = grid.ratio
    columns = thresholds(line, name, ratio, grid.workers)
    return grid.answer(Kind.THRESHOLD, columns, SEPARABILITY)


def _line_of_classes(model: Model) -> ClassLine:
    """The line of several classes; raise unless it is known."""
    if not (isinstance(model.teacher, Classes) and model.teacher.alike):
        raise IncompatibleIngredientsError(
            f"the threshold of separability of {shown(model.teacher)} is not known: it is for "
            "labels ±1, and for normal classes that are all alike, teachers.Classes(K, separation)"
        )
    if model.scheme is not None:
        raise IncompatibleIngredientsError(
            f"the threshold of separability with scheme {model.scheme!r} is not known: ask for "
            "that of softmax, whose K scores are fitted together"
        )
    return ClassLine.of_classes(model)


@with_options(Theory)
def existence_threshold(model: Model, **options: Unpack[Theory]) -> xr.Dataset:
    """Where the estimator without a penalty ceases to exist, in the limit n, p, d → ∞.

    Beyond, the objective at λ = 0 has no minimum, because weights that grow without bound fit some
    labels ever better and spoil no other: counts of zero with a Poisson loss, no or all successes
    with a binomial loss. If every label has a prediction of least loss, as those of a Gamma loss
    have, the threshold is p/n = 1, from where on all samples are fitted exactly. For labels ±1 and
    a loss that only approaches its least value, as the logistic one, it is that of
    `separability_threshold`.

    Parameters
    ----------
    model : Model
        Its features, its label rule and its loss: one of label and score, or for labels ±1 one
        that decays, as the logistic loss.
    on_failure : {"raise", "keep"}
        Whether a threshold that is not found raises, or is kept as NaN with its `status`.
    workers, executor, progress
        As in `predict`.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly one ratio, as in `separability_threshold`.

    Returns
    -------
    xarray.Dataset
        As that of `separability_threshold`: `p_over_n`, or `n_over_d`, above which there is no
        minimum, and `status`.

    Raises
    ------
    IncompatibleIngredientsError
        If the loss is another one, whose estimator exists for all p < n.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> counts = hm.teachers.Poisson("exp", intercept=-0.5, slope=0.8)
    >>> model = hm.Model(activation="tanh", projection="gaussian", teacher=counts, loss="poisson")
    >>> round(float(hm.existence_threshold(model, n_over_d=3.0).p_over_n), 4)
    0.7302
    """
    if model.task is Task.CLASSIFICATION:
        if np.isfinite(of_shortfall(model.loss).minimisers).any():
            raise IncompatibleIngredientsError(
                f"loss {model.loss} has a least value, which its estimator reaches: only losses "
                "that decay, as the logistic one, have a threshold of existence"
            )
        return separability_threshold(model, **options)
    if not isinstance(model.loss, LabelLoss):
        raise IncompatibleIngredientsError(
            f"loss {model.loss} is one of the residual, whose estimator exists for all p < n: "
            "a threshold of existence belongs to losses of label and score, as poisson"
        )
    grid = Grid.of(model, options, one_of=tuple(RATIOS))
    name, ratio = grid.ratio
    columns = thresholds(Line.of(model), name, ratio, grid.workers)
    return grid.answer(Kind.THRESHOLD, columns, EXISTENCE)


@with_options(Theory)
def interpolation_peak(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """Place and height of the peak of the test error between too few and many features.

    Parameters
    ----------
    model : Model
        The learning problem.
    regularisation : array_like or DataArray
        The λ of the objective; zero means the limit 0⁺, where the peak stands exactly at the
        threshold of interpolation or of separability.
    on_failure : {"raise", "keep"}
        Whether a curve that shows no peak, and could not be solved everywhere, raises, or is kept
        as NaN with its `status`.
    workers, executor, progress
        As in `predict`.
    n_over_d, d_over_p : array_like or DataArray
        The ratio held fixed along the curve, one of the two; none, if the features fix d/p. Or the
        two numbers themselves, n and d or d and p.

    Returns
    -------
    xarray.Dataset
        The place `p_over_n` and height `generalisation_error` of the highest local maximum for p/n
        between 0.01 and 100, or for vanishing λ of the maximum at the threshold, even if others
        exist; NaN where no maximum exceeds both of its sides by more than 1e-8 of its height, the
        error of certified numbers; and `status`.

    Raises
    ------
    ConvergenceError
        If part of a curve that shows no peak could not be solved; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> peak = hm.interpolation_peak(model, n_over_d=3.0, regularisation=[0, 1e-4])
    >>> peak.p_over_n.values.round(4)
    array([0.3677, 0.3772])
    """
    held = ("n_over_d", "d_over_p")
    grid = Grid.of(model, options, {"regularisation": regularisation}, one_of=held)
    name, ratio = grid.ratio
    lam = grid.flat(grid.coordinates["regularisation"])
    curve = ErrorCurve(model, "p" if name == "n_over_d" else "n", ratio, lam, grid.workers)
    place, height, unsolved = peaks(curve)
    columns = {
        "p_over_n": np.exp(place if curve.along == "p" else -place),
        "generalisation_error": height,
        "status": np.where(unsolved, Status.SEARCH, Status.CONVERGED).astype(np.int8),
    }
    return grid.answer(Kind.PEAK, columns, source())
