"""What users say: the one place where the arguments of public functions are read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hiddenmanifold.api.counts import COUNTS, completed, ratio_of, ratios_of
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_unmasked
from hiddenmanifold.errors import ConvergenceError, InvalidArgumentError, Status, shown
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import MEANINGS, dataset, variable
from hiddenmanifold.results.observables import OBSERVABLES
from hiddenmanifold.theory.points import HUGE, RATIOS, Points, exponents, given_ratios

if TYPE_CHECKING:
    import xarray as xr

MEMORY_LIMIT = 16e9
"""Bytes that results, and what they are computed from, may need by estimate."""
BYTES = 500
"""What one point needs, at the peak."""
Values = "ArrayLike | xr.DataArray"
Answer = TypeVar("Answer", bound=Callable[..., Any])


class Ratios(TypedDict, total=False):
    """Ratios of the numbers of samples n, features p and latent dimensions d, or these numbers."""

    n_over_d: ArrayLike | xr.DataArray
    d_over_n: ArrayLike | xr.DataArray
    p_over_n: ArrayLike | xr.DataArray
    n_over_p: ArrayLike | xr.DataArray
    p_over_d: ArrayLike | xr.DataArray
    d_over_p: ArrayLike | xr.DataArray
    n: ArrayLike | xr.DataArray
    p: ArrayLike | xr.DataArray
    d: ArrayLike | xr.DataArray


def with_ratios(function: Answer) -> Answer:
    """Spell out ratios and sizes in the signature that help and completion show."""
    keyword, names = inspect.Parameter.KEYWORD_ONLY, Ratios.__annotations__
    ratios = [inspect.Parameter(n, keyword, default=None, annotation=Values) for n in names]
    return _spelled_out(function, ratios)


def with_options_of(other: Callable[..., Any]) -> Callable[[Answer], Answer]:
    """Spell out the options that are passed on to another function, ratios included."""
    return lambda function: _spelled_out(function, inspect.signature(other).parameters.values())


def _spelled_out(function: Answer, more: Iterable[inspect.Parameter]) -> Answer:
    signature = inspect.signature(function)
    own = {p.name: p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
    parameters = [*own.values(), *(p for p in more if p.name not in own)]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class Optimal:
    """The regularisation of least error, as an argument of `predict`; "optimal" is its short form.

    Parameters
    ----------
    minimise : {"generalisation_error", "clean_error", "test_loss", "calibration_error"}
        The error, or the observable, to make least.
    bounds : pair of float
        The λ among which to choose; 0 and inf include the limits.
    """

    minimise: Literal["generalisation_error", "clean_error", "test_loss", "calibration_error"] = (
        "generalisation_error"
    )
    bounds: tuple[float, float] = (0.0, math.inf)

    def __post_init__(self) -> None:
        observables = [o.name for o in OBSERVABLES if o.less_is_better]
        if self.minimise not in ("generalisation_error", "clean_error", *observables):
            errors = "'generalisation_error' or 'clean_error', or an observable of which less is "
            raise InvalidArgumentError(
                "minimise", self.minimise, errors + f"better: {', '.join(map(repr, observables))}"
            )
        try:
            low, high = (float(bound) for bound in self.bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 <= low < high:
            raise InvalidArgumentError(
                "bounds", self.bounds, "two numbers with 0 <= low < high <= inf"
            )
        object.__setattr__(self, "bounds", (low, high))

    @classmethod
    def asked_for(cls, regularisation: object) -> Optimal | None:
        """What an argument asks for, None if it is numbers."""
        if isinstance(regularisation, str) and regularisation == "optimal":
            return cls()
        if isinstance(regularisation, str) or regularisation is cls:
            allowed = "numbers, 'optimal' or Optimal(...)"
            raise InvalidArgumentError("regularisation", regularisation, allowed)
        return regularisation if isinstance(regularisation, cls) else None


@dataclass(frozen=True)
class Grid:
    """Labelled points: ratios, coordinates as they were given, an array with all dimensions."""

    model: Model
    ratios: dict[str, xr.DataArray]
    coordinates: dict[str, xr.DataArray]
    template: xr.DataArray
    on_failure: str

    @classmethod
    def of(
        cls,
        model: Model,
        ratios: Mapping[str, Any],
        *regularisation: ArrayLike | xr.DataArray,
        one_of: Collection[str] = (),
        limits: bool = True,
        memory: bool = True,
        on_failure: str = "raise",
    ) -> Grid:
        """The points that ratios and regularisation, if there is one, span.

        Two ratios are asked for, or one if the features fix d/p; if `one_of` has any, one of these,
        or none. Instead of ratios the numbers may be given. With `limits` a ratio, of two, or λ may
        be infinite; with `memory` all points are to be held at once.
        """
        if not isinstance(model, Model):
            raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
        check_on_failure(on_failure)
        if unknown := set(ratios).difference(RATIOS, COUNTS):
            remedy = f"the ratios are {', '.join(RATIOS)}, and the sizes n, p, d"
            if unknown <= {"minimise", "bounds"}:
                remedy = "give regularisation=Optimal(minimise=..., bounds=...)"
            names = ", ".join(sorted(unknown))
            raise InvalidArgumentError.because(names, "cannot be given here", remedy)
        given = {name: ratios[name] for name in RATIOS if ratios.get(name) is not None}
        if counts := _counts(ratios, given):
            counts = counts if one_of else completed(counts, model.features)
            given = ratio_of(counts) if one_of else ratios_of(counts, model.features)
        if one_of:
            _check_one(model, given, one_of)
        infinite = limits and not one_of
        used = {name: labelled(name, v, infinite=infinite) for name, v in given.items()}
        if not one_of:
            exponents(tuple(given), model.features.fixed_ratio)
        coordinates = counts or used
        for values in regularisation:
            if Optimal.asked_for(values) is not None:
                raise InvalidArgumentError.because(
                    "regularisation",
                    f"= {shown(values)} cannot be used here",
                    "give numbers; predict, compare and samples_needed find the optimal ones",
                )
            lam = labelled("regularisation", values, zero=True, infinite=infinite)
            coordinates = {**coordinates, "regularisation": lam}
        template = spanned(coordinates)
        if memory and (need := BYTES * template.size) > MEMORY_LIMIT:
            raise InvalidArgumentError.because(
                "ratios",
                f"span {template.size:.3g} points, which need about {need / 1e9:.3g} GB",
                "ask for fewer points, or let predict(chunks=...) compute them piece by piece",
            )
        if sum(bool(np.isinf(array.values).any()) for array in used.values()) > 1:
            raise InvalidArgumentError.because(
                "ratios",
                f"{' and '.join(given)} are both infinite",
                "only one of them may be infinite",
            )
        return cls(model, used, coordinates, template, on_failure)

    @property
    def ratio(self) -> tuple[str, Array]:
        """Name and values of the one ratio that the user or the features give."""
        for name, values in self.ratios.items():
            return name, self.flat(values)
        return "d_over_p", np.full(self.template.size, self.model.features.fixed_ratio)

    def flat(self, values: xr.DataArray) -> Array:
        """An array at every point."""
        # their labels agree: without looking at them again this takes a tenth of the time
        filled = values.variable.set_dims(self.template.sizes)  # type: ignore[no-untyped-call]
        out: Array = filled.values.ravel().astype(float)
        return out

    def sizes(self) -> tuple[xr.DataArray, xr.DataArray]:
        """n/p and d/p, as labelled arrays; what is infinite is huge."""
        import xarray as xr

        fixed = self.model.features.fixed_ratio
        factors = [values.where(values < np.inf, HUGE) for values in self.ratios.values()]
        factors += [xr.DataArray(fixed)] if fixed is not None else []
        alpha, gamma = (
            math.prod((f**k for f, k in zip(factors, powers, strict=True)), start=xr.DataArray(1.0))
            for powers in exponents(tuple(self.ratios), fixed)
        )
        return alpha, gamma

    @property
    def points(self) -> Points:
        """The same as flat arrays."""
        size, fixed = self.template.size, self.model.features.fixed_ratio
        given = [self.flat(values) for values in self.ratios.values()]
        infinite = np.any([np.isinf(values) for values in given], axis=0) | np.zeros(size, bool)
        factors = [np.where(np.isinf(values), HUGE, values) for values in given]
        factors += [np.full(size, fixed)] if fixed is not None else []
        with np.errstate(over="ignore", under="ignore"):  # what is refused below
            alpha, gamma = (
                math.prod((f**k for f, k in zip(factors, powers, strict=True)), start=np.ones(size))
                for powers in exponents(tuple(self.ratios), fixed)
            )
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

    def answer(
        self,
        columns: Mapping[str, NDArray[Any]],
        source: Mapping[str, Any],
        meanings: Mapping[str, str] = MEANINGS,
    ) -> xr.Dataset:
        """Results at these points, unless one failed and failures are to be raised."""
        ds = dataset(
            self.model, self.coordinates, self.template, columns, source=source, meanings=meanings
        )
        return checked(ds, self.on_failure)


def _counts(arguments: Mapping[str, Any], ratios: Collection[str]) -> dict[str, xr.DataArray]:
    """The numbers n, p and d that are given; raise if ratios are given too."""
    given = {name: arguments[name] for name in COUNTS if arguments.get(name) is not None}
    if given and ratios:
        raise InvalidArgumentError.because(
            "ratios",
            f"{', '.join(ratios)} cannot be combined with the sizes {', '.join(given)}",
            "give either ratios or sizes",
        )
    counts = {name: counted(name, values) for name, values in given.items()}
    if counts:
        spanned(counts)  # before they are divided by one another
    return counts


def _check_one(model: Model, given: Mapping[str, Any], one_of: Collection[str]) -> None:
    """Raise unless one of some ratios is given, or none where the features fix d/p."""
    fixed = model.features.fixed_ratio
    if fixed is None:
        if ", ".join(given) not in one_of:
            remedy = "give exactly one among " + ", ".join(one_of)
            raise InvalidArgumentError.because("ratios", given_ratios(given), remedy)
    elif "d_over_p" not in one_of:
        raise InvalidArgumentError("model", model, "one whose features leave d/p free")
    elif given:
        problem = f"{', '.join(given)} cannot be given"
        remedy = f"the features fix d/p = {fixed:.6g} themselves"
        raise InvalidArgumentError.because("ratios", problem, remedy)


def labelled(
    name: str, values: ArrayLike | xr.DataArray, *, zero: bool = False, infinite: bool = False
) -> xr.DataArray:
    """An argument as a labelled array: a vector becomes a dimension of the argument's name.

    Raises
    ------
    InvalidArgumentError
        Unless every value is a positive finite number (or `zero` or `infinite`, if these are
        limits that make sense), in a scalar, a vector or a DataArray.
    """
    import xarray as xr

    check_unmasked(name, values)
    given = values if isinstance(values, xr.DataArray) else None
    try:
        plain = np.asarray(values if given is None else given.values)
    except ValueError:  # ragged
        plain = np.array(None)
    if plain.dtype.kind not in "iuf":
        raise InvalidArgumentError(name, values, "a number or a sequence of numbers")
    if given is None and plain.ndim > 1:
        raise InvalidArgumentError.because(
            name,
            f"has shape {plain.shape}",
            "give a number or a one-dimensional sequence (an xarray.DataArray may have more axes)",
        )
    own = (name,) if plain.ndim else ()
    # a copy: what is asked for must not change with the answer
    copy = plain.astype(float)
    array = xr.DataArray(variable(own, copy)) if given is None else given.copy(data=copy)
    array.encoding = {}  # how a file packed the numbers: in another it could round them
    for dim in array.dims:
        if dim in MEANINGS:
            raise InvalidArgumentError.because(
                name, f"has a dimension {dim!r}", "rename it, because a result has this name"
            )
    flat = array.values.ravel()
    good = (flat > 0) & (flat < np.inf) | (flat == 0) & zero | (flat == np.inf) & infinite
    if not good.all():
        sign = "not negative" if zero else "positive"
        allowed = sign + (", or inf" if infinite else " and finite")
        raise InvalidArgumentError(name, float(flat[~good][0]), allowed)
    if not flat.size:
        raise InvalidArgumentError.because(name, "is empty", "give at least one number")
    return array


def counted(name: str, values: ArrayLike | xr.DataArray) -> xr.DataArray:
    """A number of samples, features or latent dimensions as a labelled array of whole numbers."""
    array = labelled(name, values)
    if (parts := array.values[array.values % 1 != 0]).size:
        raise InvalidArgumentError(name, float(parts[0]), "a whole number")
    if others := set(COUNTS).intersection(map(str, array.dims)) - {name}:
        raise InvalidArgumentError.because(
            name,
            f"has a dimension {others.pop()!r}",
            "rename it, because another size has this name",
        )
    return array.astype(int)


def spanned(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """An array of all dimensions; raise unless arrays that share one agree on length and labels."""
    import xarray as xr

    sizes = {dim: size for array in arrays.values() for dim, size in array.sizes.items()}
    if all(array.sizes.items() <= sizes.items() and not array.coords for array in arrays.values()):
        # nothing to align, which takes a millisecond
        return xr.DataArray(variable(tuple(sizes), np.broadcast_to(0.0, tuple(sizes.values()))))
    try:
        xr.align(*arrays.values(), join="exact")
        return xr.broadcast(*arrays.values(), xr.DataArray(0.0))[0]
    except ValueError as error:
        raise InvalidArgumentError.because(
            ", ".join(arrays),
            "do not match",
            f"give them the same labels along shared dimensions ({error})",
        ) from None


def check_on_failure(on_failure: object) -> None:
    """Raise unless it says what becomes of points that fail."""
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
