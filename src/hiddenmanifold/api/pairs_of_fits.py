"""Two fits of one model: bias and variances, and how differently the fits predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import resampling_of, shared_by
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.predict import source
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses.predictors import Identity
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import Resampling
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.pairs.instability import Instability
from hiddenmanifold.theory.pairs.variances import Variances
from hiddenmanifold.theory.predictions import Derived, asymptotics

if TYPE_CHECKING:
    import xarray as xr


@with_options(Theory)
def bias_variance(
    model: Model, *, regularisation: ArrayLike | xr.DataArray, **options: Unpack[Theory]
) -> xr.Dataset:
    """Bias of a fit, and the variances that its features, samples and their noise cause.

    The mean square distance of the score from the label of a new sample is the sum of
    `irreducible_error`, `bias`, `samples_variance`, `features_variance` and `noise_variance`. For
    labels ±1 it is one measure of error among others, and errors of the labels are given as well.

    Parameters
    ----------
    model : Model
        The learning problem.
    regularisation, **options
        As in `predict`.

    Returns
    -------
    xarray.Dataset
        All of `predict`, and: `irreducible_error`, the mean variance of the label given the
        teacher's field; `bias`, the mean square distance of the mean score from the mean label;
        `noise_variance`, due to the noise of the training labels, `features_variance`, due to the
        random features, and `samples_variance`, due to the inputs of the samples; their sum
        `mean_square_error`. `variance_F`, `variance_X`, `variance_FX`, `variance_Xe` and
        `variance_FXe` are the terms of an analysis of variance, with the interactions of features
        (F), inputs (X) and noise (e). For labels ±1 `error_of_mean_over_features`,
        `error_of_mean_over_features_and_noise` and `error_of_mean_over_all` are rates of errors of
        mean scores.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or labels are predicted by another function than the score
        itself or its sign.
    IncompatibleIngredientsError
        If the features are those of a given matrix, or pairs of fits of this loss are not known.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> teacher = hm.teachers.Linear(noise=0.25)
    >>> model = hm.Model(activation="relu", projection="gaussian", teacher=teacher, loss="square")
    >>> ds = hm.bias_variance(model, n_over_d=1.0, p_over_n=[0.5, 1.0, 2.0], regularisation=1e-7)
    >>> ds.features_variance.values.round(3)
    array([  0.841, 319.037,   0.448])
    """
    grid = Grid.of(model, options, {"regularisation": regularisation})
    model.features.check_redrawn()
    if model.teacher.displaces:
        raise InvalidArgumentError.because(
            "model",
            "has classes that are drawn before their samples",
            "give a teacher whose labels have a noise of their own, given the sample",
        )
    if not model.counts_errors and model.prediction != Identity():
        raise InvalidArgumentError.because(
            "prediction",
            f"= {model.prediction} is not the score",
            "bias and variances are those of the score itself; leave the prediction out",
        )
    return _derived(grid, Kind.BIAS_VARIANCE, Variances())


@with_options(Theory)
def instability(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    independent: Literal["features", "samples", "both", "none"] = "samples",
    resampling: str | Resampling | None = None,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """How differently two fits predict: of independent samples, or of two bootstraps of one.

    Parameters
    ----------
    model : Model
        The learning problem.
    regularisation : array_like or DataArray
        The λ of each fit, as in `predict`.
    independent, resampling
        What the two fits draw for themselves, as in `ensemble`; by default their samples. Two
        bootstraps of one sample are ``independent="none", resampling="bootstrap"``.
    **options
        The ratios, and how to compute, as in `predict`.

    Returns
    -------
    xarray.Dataset
        All of `predict`, and: `overlap` and `score_correlation`, covariance and correlation of the
        two scores of a new sample; for labels ±1 `disagreement`, the probability that the predicted
        labels differ, and `probability_difference`, the mean distance of σ(f) and σ(f') with the
        logistic function σ, whatever the loss; for numbers `score_difference`, that of f and f'.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
    >>> ds = hm.instability(model, n_over_d=[1.0, 10.0], p_over_d=2.0, regularisation=0.1)
    >>> ds.disagreement.values.round(3)
    array([0.362, 0.185])
    """
    scheme = resampling_of(resampling)
    shared = shared_by(independent, scheme)
    grid = Grid.of(model, options, {"regularisation": regularisation})
    shared.check(model.features)
    return _derived(grid, Kind.INSTABILITY, Instability(shared), scheme)


def _derived(
    grid: Grid, kind: Kind, derived: Derived, resampling: Resampling | None = None
) -> xr.Dataset:
    """What is derived from the solutions of a grid."""
    copies = resampling_of(resampling).copies
    columns = asymptotics(grid.model, grid.points(), grid.workers, derived=derived, copies=copies)
    return grid.answer(kind, columns, source())
