"""The grid of points of a call: it parses the arguments once and shapes the results."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.api.arguments import COUNTS, Optimal, labelled, ratios_of, spanned
from hiddenmanifold.api.signatures import DEFAULTS, Execution
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task
from hiddenmanifold.errors import ConvergenceError, InvalidArgumentError, Status, shown
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.results.datasets import dataset, variable
from hiddenmanifold.results.observables import Observable
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.classes.class_fluctuations import Counts
from hiddenmanifold.theory.points import HUGE, Points, exponents

if TYPE_CHECKING:
    import xarray as xr

MEMORY_LIMIT = 16e9
"""Largest estimated memory of results and intermediate arrays, in bytes."""
LIMIT = "numbers are those of the limit n, p, d → ∞ at the ratios of these sizes"
"""What datasets say of sizes that were given."""
WITH_LIMITS = ("regularisation", "regularisation_2", "time", "steps")
"""Arguments that may be zero, and infinite where limits are known."""
BYTES = 500
"""Peak memory of one point, in bytes."""


@dataclass(frozen=True)
class Grid:
    """Labelled points of a model, and how they are computed and returned.

    Attributes
    ----------
    ratios : dict of DataArray
        The ratios that are given, or that follow from the sizes.
    coordinates : dict of DataArray
        The user's ratios or sizes, and all other arguments that vary.
    template : DataArray
        An array with all dimensions.
    optimal : Optimal, optional
        The search for the regularisation, if that is not given.
    workers : Workers
        Where the points are computed.
    on_failure : {"raise", "keep"}
        Whether points that fail raise or are kept.
    """

    model: Model
    ratios: dict[str, xr.DataArray]
    coordinates: dict[str, xr.DataArray]
    template: xr.DataArray
    optimal: Optimal | None
    workers: Workers
    on_failure: str

    @classmethod
    def of(
        cls,
        model: Model,
        options: Mapping[str, Any],
        axes: Mapping[str, Any] | None = None,
        *,
        one_of: Collection[str] = (),
        limits: bool = True,
        memory: bool = True,
        search: bool = False,
        classes: bool = False,
    ) -> Grid:
        """The points that the arguments of a function span.

        `options` are those of `signatures.Theory`. `axes` are the other arguments that vary: the
        regularisation, which may be a search if `search` is true, and a target error. Two ratios
        are required, or one if the features fix d/p; if `one_of` names any, one of these instead,
        or none. With `limits` one of two ratios, or λ, may be infinite. With `memory` all points
        are to be held in memory at once. With `classes` a model may have more than two of them.
        """
        if not isinstance(model, Model):
            raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
        if model.task is Task.CLASSES and not classes:
            raise InvalidArgumentError.because(
                "model",
                f"has several classes, those of {shown(model.teacher)}",
                "ask predict, simulate or compare, which cover these; other questions are answered "
                "for labels ±1 and numbers",
            )
        workers = Workers(*(options.get(name) for name in Execution.__annotations__))
        on_failure = options.get("on_failure", DEFAULTS["on_failure"])
        check_on_failure(on_failure)
        infinite = limits and not one_of
        own = ("on_failure", *Execution.__annotations__)
        given = {name: value for name, value in options.items() if name not in own}
        used, coordinates = ratios_of(model, given, one_of, infinite=infinite)
        optimal = None
        for name, values in (axes or {}).items():
            if name == "regularisation" and (optimal := Optimal.asked_for(values)) is not None:
                if not search:
                    raise InvalidArgumentError.because(
                        name,
                        f"= {shown(values)} cannot be used here",
                        "give numbers; predict, compare and samples_needed find the optimal ones",
                    )
                continue
            limit = {"zero": True, "infinite": infinite} if name in WITH_LIMITS else {}
            limit |= {"infinite": infinite} if name == "p_2_over_d" else {}
            coordinates = {**coordinates, name: labelled(name, values, **limit)}
        grid = cls(model, used, coordinates, spanned(coordinates), optimal, workers, on_failure)
        grid._check_size(memory)
        return grid

    def _check_size(self, memory: bool) -> None:
        """Raise if there are too many points, or two ratios are infinite."""
        size = self.template.size
        if memory and (need := BYTES * size) > MEMORY_LIMIT:
            raise InvalidArgumentError.because(
                "ratios",
                f"span {size:.3g} points, which need about {need / 1e9:.3g} GB",
                "ask for fewer points, or let predict(chunks=...) compute them piece by piece",
            )
        if sum(bool(np.isinf(array.values).any()) for array in self.ratios.values()) > 1:
            raise InvalidArgumentError.because(
                "ratios",
                f"{' and '.join(self.ratios)} are both infinite",
                "only one of them may be infinite",
            )

    def at(self, ratios: dict[str, xr.DataArray], regularisation: xr.DataArray) -> Grid:
        """The same model at other ratios and regularisations, as bare arrays of these dimensions.

        A failure there is kept.
        """
        import xarray as xr

        bare = {n: xr.DataArray(a.values, dims=a.dims) for n, a in ratios.items()}
        lam = xr.DataArray(regularisation.values, dims=regularisation.dims)
        coordinates = {**bare, "regularisation": lam}
        return replace(
            self,
            ratios=bare,
            coordinates=coordinates,
            template=spanned(coordinates),
            optimal=None,
            on_failure="keep",
        )

    @property
    def ratio(self) -> tuple[str, Array]:
        """Name and values of the one ratio that the user or the features give."""
        for name, values in self.ratios.items():
            return name, self.flat(values)
        return "d_over_p", np.full(self.template.size, self.model.features.fixed_ratio)

    def flat(self, values: xr.DataArray | xr.Variable) -> Array:
        """An array at every point."""
        return _filled(values, self.template.sizes).ravel().astype(float)

    def labelled_ratios(self) -> tuple[xr.Variable, xr.Variable]:
        """n/p and d/p, with the dimensions on which they depend; infinite ones become huge."""
        fixed = self.model.features.fixed_ratio
        sizes = {dim: n for array in self.ratios.values() for dim, n in array.sizes.items()}
        shape = tuple(sizes.values())
        factors = [_filled(array, sizes) for array in self.ratios.values()]
        factors = [np.where(np.isinf(values), HUGE, values) for values in factors]
        factors += [np.full(shape, fixed)] if fixed is not None else []
        with np.errstate(over="ignore", under="ignore"):  # `points` refuses what is too extreme
            alpha, gamma = (
                math.prod(
                    (f**k for f, k in zip(factors, powers, strict=True)), start=np.ones(shape)
                )
                for powers in exponents(tuple(self.ratios), fixed)
            )
        return variable(tuple(sizes), alpha), variable(tuple(sizes), gamma)

    def points(self) -> Points:
        """The same as flat arrays, with the regularisations.

        Raises
        ------
        InvalidArgumentError
            If they are too extreme for double precision, or for limits to commute.
        """
        size = self.template.size
        alpha, gamma = map(self.flat, self.labelled_ratios())
        infinite = np.zeros(size, bool)
        for values in self.ratios.values():
            if np.isinf(values.values).any():
                infinite |= np.isinf(self.flat(values))
        lam = self.coordinates.get("regularisation")
        lams = np.full(size, np.nan) if lam is None else self.flat(lam)
        points = Points.of(alpha, gamma, lams, infinite)
        for name, column in (("n/p", points.alpha), ("d/p", points.gamma)):
            if (extreme := column[~np.isfinite(column) | (column == 0)]).size:
                raise InvalidArgumentError.because(
                    "ratios", f"give {name} = {extreme[0]}", "use less extreme values"
                )
        samples = np.maximum(points.alpha, points.alpha / points.gamma)
        far = points.lam[infinite & (points.lam > HUGE**0.5) & (samples > HUGE**0.5)]
        if far.size:
            allowed = "at most 1e20 where n/p or n/d is infinite: the limits do not commute"
            raise InvalidArgumentError("regularisation", float(far[0]), allowed)
        return points

    def counts(self, n: xr.DataArray | None = None) -> Counts:
        """Numbers of samples and features at every point; those of samples may be given.

        Raises
        ------
        InvalidArgumentError
            If they are neither given nor among the coordinates.
        """
        if n is None and (n := self.coordinates.get("n")) is None:
            raise InvalidArgumentError.because(
                "finite_size", "needs sizes", "give n, p and d instead of ratios"
            )
        samples = self.flat(n)
        return Counts(samples, samples / self.flat(self.labelled_ratios()[0]))

    def answer(
        self,
        kind: Kind,
        columns: Mapping[str, NDArray[Any]],
        source: Mapping[str, Any],
        observables: Sequence[Observable] = (),
        *,
        last: tuple[str, Array] | None = None,
        of_fits: Collection[str] = (),
    ) -> xr.Dataset:
        """Results at these points, unless one failed and failures are to be raised.

        Values that are vectors have the dimension `last`, given with its labels; those `of_fits`
        have the dimension `fit`.
        """
        source = {**source, "workers": self.workers.used}
        if not set(COUNTS).isdisjoint(self.coordinates):
            source["sizes"] = LIMIT
        ds = dataset(
            kind,
            self.model,
            self.coordinates,
            self.template,
            columns,
            source=source,
            observables=observables,
            last=last,
            of_fits=of_fits,
        )
        return checked(ds, self.on_failure)


def _filled(values: xr.DataArray | xr.Variable, sizes: Mapping[Any, int]) -> Array:
    """An array along some dimensions, its own among them."""
    own = getattr(values, "variable", values)
    # their labels agree: without looking at them again this takes a tenth of the time
    filled: Array = own.values if own.dims == tuple(sizes) else own.set_dims(sizes).values
    return filled


def check_on_failure(on_failure: object) -> None:
    """Raise unless `on_failure` has one of its two values."""
    if on_failure not in ("raise", "keep"):
        raise InvalidArgumentError("on_failure", on_failure, "'raise' or 'keep'")


def checked(ds: xr.Dataset, on_failure: str) -> xr.Dataset:
    """The dataset, unless a point failed and failures are to be raised."""
    failed = ds.variables["status"].values != Status.CONVERGED
    if on_failure == "keep" or not failed.any():
        return ds
    first = {dim: int(i) for dim, i in zip(ds["status"].dims, np.argwhere(failed)[0], strict=True)}
    point = ds.isel(first)
    where = ", ".join(f"{name} = {float(c):.6g}" for name, c in point.coords.items() if c.ndim == 0)
    sentence = Status(int(point["status"])).sentence
    raise ConvergenceError(
        f"{int(failed.sum())} of {failed.size} points did not converge; the first is at {where}: "
        f"{sentence}. The partial dataset is in the `partial` attribute of this exception; "
        "on_failure='keep' returns it instead, with these points as NaN",
        partial=ds,
    )
