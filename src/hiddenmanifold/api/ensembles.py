"""Predict ensembles: the mean and the majority vote of several fits of one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import Optimal, members_of, resampling_of, shared_by
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.predict import expected, source
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import Resampling
from hiddenmanifold.results.observables import REGISTRY, Observable, chosen
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.pairs.best_of_ensembles import EnsembleSearch
from hiddenmanifold.theory.pairs.mean_and_vote import Ensemble
from hiddenmanifold.theory.predictions import asymptotics

if TYPE_CHECKING:
    import xarray as xr


@with_options(Theory)
def ensemble(
    model: Model,
    *,
    members: ArrayLike,
    regularisation: ArrayLike | xr.DataArray | Optimal | Literal["optimal"],
    independent: Literal["features", "samples", "both", "none"] = "features",
    resampling: str | Resampling | None = None,
    observables: str | Sequence[str] = (),
    **options: Unpack[Theory],
) -> xr.Dataset:
    """Exact test errors of the mean prediction, and of the vote, of several fits of one model.

    Parameters
    ----------
    model : Model
        The learning problem of each member.
    members : sequence of int
        Numbers K of fits; `inf` is the limit of many.
    regularisation : array_like, DataArray, Optimal or "optimal"
        The λ of each member, as in `predict`. The optimal one is sought for each number of members
        by itself; everything then varies along `members`.
    independent : {"features", "samples", "both", "none"}
        What every member draws for itself: its random features, all members being fitted to the
        same samples; its samples, on the same features; or both. Features that are not random,
        of a `Covariance` or a kernel, are the same for all. With "none" members differ by their
        resampling alone.
    resampling : str or Resampling, optional
        How each member draws its samples from the common ones: "bootstrap",
        ``resampling.SubSample(fraction)`` or ``resampling.Split(parts)``. The ratios count all
        samples, and the training loss is a sum over those that are drawn, divided by all.
    observables : sequence of str
        More to predict of the mean prediction, as in `predict`.
    **options
        The ratios, and how to compute, as in `predict`.

    Returns
    -------
    xarray.Dataset
        All of `predict`, with `generalisation_error`, `clean_error` and observables of the mean of
        the scores along a last dimension `members`; for labels ±1 `vote_error`, that of the
        majority of the predicted labels, along the same; and `overlap`, the covariance of the
        scores of two members. Training errors, Q, M, V are those of a single member.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.
    IncompatibleIngredientsError
        If features of a given matrix are to be drawn anew, or pairs of fits of this loss are not
        known.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
    >>> at = {"n_over_d": 2.0, "p_over_n": 0.5, "regularisation": 1e-3}
    >>> ds = hm.ensemble(model, members=[1, 3, float("inf")], **at)
    >>> ds.generalisation_error.values.round(4)
    array([0.3427, 0.2559, 0.1848])
    """
    scheme = resampling_of(resampling)
    shared, counts = shared_by(independent, scheme), members_of(members)
    grid = Grid.of(model, options, {"regularisation": regularisation}, search=True)
    shared.check(model.features)
    asked = chosen(model, observables)
    scheme.check(float(counts.max()))
    return ensembled(grid, Ensemble(tuple(counts.tolist()), shared), scheme, asked)


def ensembled(
    grid: Grid,
    ensemble: Ensemble,
    resampling: Resampling,
    observables: Sequence[Observable] = (),
) -> xr.Dataset:
    """The prediction of ensembles on a grid, at its regularisations or at the best ones."""
    asked, optimal = expected(observables), grid.optimal
    if optimal is None:
        columns = asymptotics(
            grid.model,
            grid.points(),
            grid.workers,
            observables=asked,
            derived=ensemble,
            copies=resampling.copies,
        )
    else:
        target = optimal.minimise
        least = expected(chosen(grid.model, [target] if target in REGISTRY else []))
        search = EnsembleSearch(
            grid.model,
            grid.points(),
            ensemble,
            target,
            optimal.bounds,
            copies=resampling.copies,
            observables=least | asked,
        )
        columns = search.best(grid.workers)
    members = "members", np.array(ensemble.members)
    return grid.answer(Kind.ENSEMBLE, columns, source(), observables, last=members)
