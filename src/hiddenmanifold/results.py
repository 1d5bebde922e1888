"""Labelled results: xarray datasets with named axes, provenance and status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidArgumentError
from .model import OBJECTIVE, RATIOS, Model, exponents
from .numerics.newton import Status

if TYPE_CHECKING:
    import xarray as xr

MEANINGS = {
    "generalisation_error": "test error against new labels drawn by the same noisy rule",
    "clean_error": "test error against the noiseless rule",
    "training_loss": "(sum of losses + regularisation/2 |w|²)/n at the minimum",
    "training_error": "fraction of training samples that are misclassified",
    "V": "κ1² V_s + κ⋆² V_w",
    "Q": "variance of the prediction, κ1² q_s + κ⋆² q_w",
    "M": "covariance of the prediction with the teacher's field, κ1 m_s",
    "alignment": "correlation of the prediction with the teacher's field, M/√(ρQ)",
    "overlap": "variance of the posterior mean of the teacher's field; rho if all is learned",
    "margin": "smallest distance y f √p/|w| of a training sample, NaN if they are not all fitted",
    "Q_normalised": "Q/q_w, finite where w grows without bound",
    "M_normalised": "M/√q_w, finite where w grows without bound",
    "q_s_normalised": "q_s/q_w, finite where w grows without bound",
    "m_s_normalised": "m_s/√q_w, finite where w grows without bound",
    "intercept_normalised": "b/√q_w, finite where w grows without bound",
    "optimal_regularisation": "the regularisation of least error; 0 and inf mean the limits",
    **{
        f"{error}_by_log_{parameter}": f"derivative of {error} by log {symbol}"
        for error in ("generalisation_error", "clean_error")
        for parameter, symbol in (("regularisation", "λ"), ("n", "n"), ("p", "p"))
    },
    "q_s": "|F w/√p|²/d",
    "q_w": "|w|²/p",
    "m_s": "(F w/√p)·θ/d",
    "V_s": "response of F w/√p",
    "V_w": "response of w",
    "intercept": "the intercept b of the prediction",
    "status": "how the solve of the point ended",
    "residual": "largest relative change under one more undamped turn of the equations",
    "quadrature_error": "estimated relative error of (V, Q, M) left by the quadrature",
    "iterations": "evaluations of the equations",
    "optimality": "bound on the fit's relative distance from its minimum",
    "seconds": "time spent on the fit, its data and its test",
    "generalisation_error_test_stderr": "standard error left by the finite number of test samples",
    "clean_error_test_stderr": "standard error left by the finite number of test samples",
}


def labelled(
    name: str,
    values: ArrayLike | xr.DataArray,
    *,
    zero: bool = False,
    infinite: bool = False,
) -> xr.DataArray:
    """An argument as a labelled array: a vector becomes a dimension of the argument's name.

    Raises
    ------
    InvalidArgumentError
        Unless every value is a positive finite number (or `zero` or `infinite`, if these are
        limits that make sense), in a scalar, a vector or a DataArray.
    """
    import xarray as xr

    array = values if isinstance(values, xr.DataArray) else None
    try:
        plain = np.asarray(values if array is None else array.values)
    except ValueError:  # ragged
        plain = np.array(None)
    if plain.dtype.kind not in "iuf":
        raise InvalidArgumentError(name, values, "a number or a sequence of numbers")
    if array is None:
        if plain.ndim > 1:
            raise InvalidArgumentError(
                name,
                f"of shape {plain.shape}",
                "a number or a one-dimensional sequence (an xarray.DataArray may have more axes)",
            )
        array = xr.DataArray(plain, dims=(name,) if plain.ndim else ())
    array = array.astype(float)
    for dim in array.dims:
        if dim in MEANINGS:
            raise InvalidArgumentError(name, f"with a dimension {dim!r}", "free of results' names")
    flat = array.values.ravel()
    good = (flat > 0) & (flat < np.inf) | (flat == 0) & zero | (flat == np.inf) & infinite
    if not good.all():
        allowed = ("not negative" if zero else "positive") + (
            ", or inf" if infinite else " and finite"
        )
        raise InvalidArgumentError(name, float(flat[~good][0]), allowed)
    if not flat.size:
        raise InvalidArgumentError(name, [], "at least one number")
    return array


def ratios_of(
    model: Model, given: Mapping[str, Any], infinity: float | None = None
) -> tuple[dict[str, xr.DataArray], xr.DataArray, xr.DataArray]:
    """The given ratios as labelled arrays, and n/p and d/p that follow from them.

    `infinity` is the number that stands for an infinite ratio; without one they are refused.
    """
    import xarray as xr

    if unknown := set(given).difference(RATIOS):
        raise InvalidArgumentError(
            "arguments", ", ".join(sorted(unknown)), "ratios among " + ", ".join(RATIOS)
        )
    arrays = {
        name: labelled(name, given[name], infinite=infinity is not None)
        for name in RATIOS
        if given.get(name) is not None
    }
    fixed = model.features.fixed_ratio
    to_alpha, to_gamma = exponents(tuple(arrays), fixed)
    check_aligned(arrays)
    if sum(bool(np.isinf(a).any()) for a in arrays.values()) > 1:
        raise InvalidArgumentError("ratios", " and ".join(arrays), "infinite in one of them only")
    factors = [a.where(a < np.inf, infinity) for a in arrays.values()]
    factors += [xr.DataArray(fixed)] if fixed is not None else []

    def product(powers: tuple[int, ...]) -> xr.DataArray:
        return math.prod(f**k for f, k in zip(factors, powers, strict=True))  # type: ignore[return-value]

    return arrays, product(to_alpha), product(to_gamma)


def check_aligned(arrays: Mapping[str, xr.DataArray]) -> None:
    """Raise unless arrays that share a dimension agree on its length and labels."""
    import xarray as xr

    try:
        xr.align(*arrays.values(), join="exact")
        xr.broadcast(*arrays.values())
    except ValueError as error:
        names = ", ".join(arrays)
        raise InvalidArgumentError(
            names,
            "arrays that do not match",
            f"of the same labels along shared dimensions: {error}",
        ) from None


def dataset(
    model: Model,
    coordinates: Mapping[str, xr.DataArray],
    template: xr.DataArray,
    columns: Mapping[str, NDArray[Any]],
    *,
    source: Mapping[str, Any],
) -> xr.Dataset:
    """Flat columns as a dataset shaped like `template`, with coordinates and provenance."""
    import xarray as xr

    data = {
        name: (template.dims, values.reshape(template.shape), {"long_name": MEANINGS[name]})
        for name, values in columns.items()
    }
    ds = xr.Dataset(
        data, coords={**template.coords, **coordinates}, attrs=provenance(model, source)
    )
    if "status" in ds:
        ds["status"].attrs.update(
            flag_values=[int(s) for s in Status],
            flag_meanings=" ".join(s.name.lower() for s in Status),
            sentences="; ".join(f"{int(s)}: {s.sentence}" for s in Status),
        )
    return ds


def provenance(model: Model, source: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that say where a dataset comes from."""
    return {
        "model": repr(model),
        "task": str(model.task),
        "objective": OBJECTIVE,
        "hiddenmanifold_version": version("hiddenmanifold"),
        **source,
    }
