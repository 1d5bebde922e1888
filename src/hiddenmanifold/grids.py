"""The points at which a model is asked for, and what becomes of those that fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConvergenceError, InvalidArgumentError
from .model import Model, Points
from .numerics.newton import Status
from .results import check_aligned, dataset, labelled, ratios_of
from .theory.limits import HUGE, TINY

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Grid:
    """Labelled points, and the same as flat arrays."""

    model: Model
    coordinates: dict[str, xr.DataArray]
    template: xr.DataArray
    points: Points

    @classmethod
    def of(
        cls,
        model: Model,
        given: Mapping[str, Any],
        *regularisation: ArrayLike | xr.DataArray,
    ) -> Grid:
        """The points that ratios and regularisation, if there is one, span."""
        import xarray as xr

        if not isinstance(model, Model):
            raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
        coordinates, alpha, gamma = ratios_of(model, given, HUGE)
        lam = xr.DataArray(np.nan)
        if regularisation:
            lam = labelled("regularisation", *regularisation, zero=True, infinite=True)
            coordinates["regularisation"] = lam
        check_aligned(coordinates)
        template = xr.broadcast(*coordinates.values())[0]
        flat = (
            values.broadcast_like(template).transpose(*template.dims).values.ravel()
            for values in (alpha, gamma, lam)
        )
        points = Points(*flat)
        for name, values in (("n/p", points.alpha), ("d/p", points.gamma)):
            if not (np.isfinite(values).all() and values.all()):
                raise InvalidArgumentError("ratios", f"that give {name} = {values}", "less extreme")
        if (np.isinf(points.lam) & (points.alpha > 1.0 / TINY**0.5)).any():
            raise InvalidArgumentError(
                "regularisation", np.inf, "finite where n/p is infinite: the limits do not commute"
            )
        return cls(model, coordinates, template, points)

    def dataset(self, columns: Mapping[str, NDArray[Any]], source: Mapping[str, Any]) -> xr.Dataset:
        """Results at these points, with their names and where they come from."""
        return dataset(self.model, self.coordinates, self.template, columns, source=source)


def checked(ds: xr.Dataset, on_failure: str) -> xr.Dataset:
    """The dataset, unless a point failed and failures are to be raised."""
    if on_failure not in ("raise", "keep"):
        raise InvalidArgumentError("on_failure", on_failure, "'raise' or 'keep'")
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
