"""Predict learning curves: exact asymptotics of a model on a grid of ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConvergenceError, InvalidArgumentError
from .model import Model
from .numerics.newton import Status
from .registry import check_count
from .results import check_aligned, dataset, labelled, ratios_of
from .theory.asymptotics import asymptotics
from .theory.spectral import Ratios

if TYPE_CHECKING:
    import xarray as xr

THEORY = {"method": "saddle-point equations of Gerace et al. 2020, for any rho and intercept"}


def predict(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    n_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_n: ArrayLike | xr.DataArray | None = None,
    p_over_n: ArrayLike | xr.DataArray | None = None,
    n_over_p: ArrayLike | xr.DataArray | None = None,
    p_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_p: ArrayLike | xr.DataArray | None = None,
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
) -> xr.Dataset:
    """Exact test and training errors of a model in the limit n, p, d → ∞.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like or DataArray
        The λ of Σ loss(y, x·w/√p) + (λ/2)|w|², positive.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly two independent ratios of the numbers of samples n, features p and latent
        dimensions d; one, if the projection fixes d/p. A sequence becomes a dimension of that name
        (several span their outer product); DataArrays broadcast by the names of their dimensions.
    on_failure : {"raise", "keep"}
        Whether a point that does not converge raises, or is kept as NaN with its `status`.
    workers : int, optional
        Processes used for large grids; by default one per core.

    Returns
    -------
    xarray.Dataset
        Errors, training loss, overlaps and certificates (`status`, `residual`,
        `quadrature_error`, `iterations`), with the meaning of each in its `long_name`.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense; the message says which and why.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> ds = hm.predict(model, n_over_d=3.0, p_over_n=[0.5, 3.0], regularisation=1e-4)
    >>> ds.generalisation_error.values.round(4)
    array([0.3345, 0.1949])
    """
    if not isinstance(model, Model):
        raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
    if on_failure not in ("raise", "keep"):
        raise InvalidArgumentError("on_failure", on_failure, "'raise' or 'keep'")
    workers = None if workers is None else check_count("workers", workers)
    import xarray as xr

    given = {
        "n_over_d": n_over_d,
        "d_over_n": d_over_n,
        "p_over_n": p_over_n,
        "n_over_p": n_over_p,
        "p_over_d": p_over_d,
        "d_over_p": d_over_p,
    }
    coordinates, alpha, gamma = ratios_of(model, given)
    coordinates["regularisation"] = lam = labelled("regularisation", regularisation)
    check_aligned(coordinates)
    template = xr.broadcast(*coordinates.values())[0]
    ratios = Ratios(
        *(
            values.broadcast_like(template).transpose(*template.dims).values.ravel()
            for values in (alpha, gamma, lam)
        )
    )
    for name, values in (("n/p", ratios.alpha), ("d/p", ratios.gamma)):
        if not (np.isfinite(values).all() and values.all()):
            raise InvalidArgumentError("ratios", f"that give {name} = {values}", "less extreme")
    columns = asymptotics(model, ratios, workers)
    ds = dataset(model, coordinates, template, columns, source=THEORY)
    failed = ds["status"].values != Status.CONVERGED
    if on_failure == "raise" and failed.any():
        raise ConvergenceError(_complaint(ds, failed), partial=ds)
    return ds


def _complaint(ds: xr.Dataset, failed: NDArray[np.bool_]) -> str:
    """What went wrong, at how many points, and where first."""
    first = {dim: int(i) for dim, i in zip(ds["status"].dims, np.argwhere(failed)[0], strict=True)}
    point = ds.isel(first)
    where = ", ".join(f"{name} = {float(c):.6g}" for name, c in point.coords.items() if c.ndim == 0)
    sentence = Status(int(point["status"])).sentence
    return (
        f"{int(failed.sum())} of {failed.size} points did not converge; the first is at {where}: "
        f"{sentence}. The partial dataset is in the `partial` attribute of this exception; "
        "on_failure='keep' returns it instead, with these points as NaN"
    )
