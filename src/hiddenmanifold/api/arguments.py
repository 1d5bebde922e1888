"""Parse the ratios, sizes and regularisations of a call, or the search for the best λ."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_number, check_unmasked, resolve
from hiddenmanifold.errors import InvalidArgumentError, shown
from hiddenmanifold.features import Features
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import ONCE, REGISTRY, Resampling, Whole
from hiddenmanifold.results.datasets import variable
from hiddenmanifold.results.observables import BEST_BY, OBSERVABLES
from hiddenmanifold.results.schema import is_result
from hiddenmanifold.theory.pairs.shared_overlaps import Shared
from hiddenmanifold.theory.points import RATIOS, exponents, given_ratios

if TYPE_CHECKING:
    import xarray as xr

COUNTS = ("n", "p", "d")
Arrays = dict[str, "xr.DataArray"]


def ratios_of(
    model: Model, given: Mapping[str, Any], one_of: Collection[str], *, infinite: bool
) -> tuple[Arrays, Arrays]:
    """The ratios that a user gives, and the same or the sizes as they were given.

    Two ratios are asked for, or one if the features fix d/p; if `one_of` has any, one of these, or
    none. Instead of ratios the sizes n, p, d may be given.
    """
    if unknown := set(given).difference(RATIOS, COUNTS):
        remedy = f"the ratios are {', '.join(RATIOS)}, and the sizes n, p, d"
        if unknown <= {"minimise", "bounds"}:
            remedy = "give regularisation=Optimal(minimise=..., bounds=...)"
        names = ", ".join(sorted(unknown))
        raise InvalidArgumentError.because(names, "cannot be given here", remedy)
    ratios = {name: given[name] for name in RATIOS if given.get(name) is not None}
    sizes = {name: given[name] for name in COUNTS if given.get(name) is not None}
    if sizes and ratios:
        raise InvalidArgumentError.because(
            "ratios",
            f"{', '.join(ratios)} cannot be combined with the sizes {', '.join(sizes)}",
            "give either ratios or sizes",
        )
    if model.features.infinite:
        _check_no_p((*ratios, *sizes))
    counts = {name: counted(name, values) for name, values in sizes.items()}
    if counts:
        spanned(counts)  # before they are divided by one another
        counts = counts if one_of else completed(counts, model.features)
        ratios = ratio_of(counts) if one_of else free_ratios(counts, model.features)
    if one_of:
        _check_one(model, ratios, one_of)
    used = {name: labelled(name, v, infinite=infinite) for name, v in ratios.items()}
    if model.features.infinite and not ratios and not one_of:
        raise InvalidArgumentError.because("ratios", "are missing", "give n_over_d, or n and d")
    if not one_of:
        exponents(tuple(ratios), model.features.fixed_ratio)
    return used, counts or used


def sizes_of(features: Features) -> tuple[str, ...]:
    """The names of the sizes that models on these features have."""
    return ("n", "d") if features.infinite else COUNTS


def _check_no_p(names: tuple[str, ...]) -> None:
    """Raise if the number of features is given, and there are infinitely many."""
    if unknown := [name for name in names if "p" in name.split("_over_")]:
        raise InvalidArgumentError.because(
            ", ".join(unknown),
            "cannot be given, because p is infinite for a kernel",
            "give n_over_d, or n and d",
        )


def _check_one(model: Model, given: Mapping[str, Any], one_of: Collection[str]) -> None:
    """Raise unless one of some ratios is given, or none where the features fix d/p."""
    fixed = model.features.fixed_ratio
    if model.features.infinite and "n_over_d" in one_of:  # a number p is sought
        raise InvalidArgumentError.because(
            "model",
            f"has infinitely many features, those of {shown(model.features)}",
            "give one with a finite number of them: a kernel has neither a threshold nor a peak "
            "along the number of features",
        )
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


def ratio_of(two: Arrays) -> Arrays:
    """The ratio of two sizes, by its name."""
    for over in ("n_over_d", "p_over_n", "d_over_p"):
        a, b = over.split("_over_")
        if {a, b} == set(two):
            return {over: two[a] / two[b]}
    raise InvalidArgumentError.because(
        "sizes", f"{' and '.join(two)} do not form a ratio", "give two of n, p and d"
    )


def free_ratios(counts: Arrays, features: Features) -> Arrays:
    """The ratios of three sizes that the features leave free."""
    if features.infinite:
        return {"n_over_d": counts["n"] / counts["d"]}
    n, p, d = (counts[name] for name in COUNTS)
    ratios = {"n_over_p": n / p, "d_over_p": d / p}
    if features.fixed_ratio is not None:
        del ratios["d_over_p"]
    return ratios


def completed(counts: Arrays, features: Features) -> Arrays:
    """All sizes, with those that the features fix.

    Raises
    ------
    InvalidArgumentError
        If one is missing, or at odds with the features.
    """
    import xarray as xr

    known, fixed, rows = dict(counts), features.fixed_ratio, features.fixed_dimension
    if rows is not None:
        known.setdefault("d", xr.DataArray(rows))
        if (known["d"] != rows).any():
            raise InvalidArgumentError("d", counts["d"].values, f"{rows}, which the features fix")
    if fixed is not None and not features.infinite and ("p" in known or "d" in known):
        known.setdefault("p", _rounded(known["d"] / fixed) if "d" in known else known["p"])
        known.setdefault("d", _rounded(known["p"] * fixed))
        if (np.abs(known["d"] - fixed * known["p"]) > 0.5 * max(1.0, fixed)).any():
            raise InvalidArgumentError(
                "p", counts["p"].values, f"d/{fixed:.6g}: the features fix d/p themselves"
            )
    names = sizes_of(features)
    if missing := [name for name in names if name not in known]:
        remedy = "give n and d, or n_over_d" if features.infinite else "give n, p and d, or ratios"
        raise InvalidArgumentError.because("sizes", f"lack {' and '.join(missing)}", remedy)
    return {name: known[name] for name in names}


def _rounded(values: xr.DataArray) -> xr.DataArray:
    return values.round().astype(int)


@dataclass(frozen=True)
class Optimal:
    """The regularisation of least error, as an argument of `predict`; "optimal" is its short form.

    Parameters
    ----------
    minimise : {"generalisation_error", "clean_error", "test_loss", "calibration_error", \
"probability_error", "brier_score", "deviance", "mean_absolute_error"}
        The error, or the observable, to make least.
    bounds : pair of float
        The λ among which to choose; 0 and inf include the limits.
    """

    minimise: Literal[
        "generalisation_error",
        "clean_error",
        "test_loss",
        "calibration_error",
        "probability_error",
        "brier_score",
        "deviance",
        "mean_absolute_error",
    ] = "generalisation_error"
    bounds: tuple[float, float] = (0.0, math.inf)

    def __post_init__(self) -> None:
        observables = [o.name for o in OBSERVABLES if o.less_is_better]
        if self.minimise in BEST_BY:
            problem = f"= {self.minimise!r} is not an error"
            raise InvalidArgumentError.because("minimise", problem, BEST_BY[self.minimise])
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
        """The search that an argument requests; None if the argument is numeric."""
        if isinstance(regularisation, str) and regularisation == "optimal":
            return cls()
        if isinstance(regularisation, str) or regularisation is cls:
            allowed = "numbers, 'optimal' or Optimal(...)"
            raise InvalidArgumentError("regularisation", regularisation, allowed)
        return regularisation if isinstance(regularisation, cls) else None


@dataclass(frozen=True)
class EarlyStopping:
    """Training without a penalty that is stopped early, in place of a regularisation.

    Parameters
    ----------
    time : float or "optimal"
        The time of gradient flow on the sum of losses, or the one of least error.
    bounds : pair of float, optional
        Times between which to search, as in `best_time`.
    """

    time: float | Literal["optimal"] = "optimal"
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.time != "optimal":
            check_number("time", self.time, 0.0)
        if self.bounds is None:
            return
        try:
            low, high = (float(bound) for bound in self.bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0.0 < low < high < math.inf:
            raise InvalidArgumentError("bounds", self.bounds, "two numbers with 0 < low < high")
        object.__setattr__(self, "bounds", (low, high))


INDEPENDENT = {
    "features": Shared(features=False),
    "samples": Shared(samples=False),
    "both": Shared(features=False, samples=False),
    "none": Shared(),
}
"""What two members of an ensemble share, by what is independent between them."""


def resampling_of(given: str | Resampling | None) -> Resampling:
    """How fits draw their samples: a scheme, or the name of one; by default all samples are used.

    Raises
    ------
    InvalidArgumentError
        If it is neither.
    """
    if given is None:
        return Whole()
    return resolve("resampling", given, Resampling, REGISTRY)


def shared_by(independent: object, resampling: Resampling) -> Shared:
    """What two members share if they draw the features, the samples or both independently.

    Raises
    ------
    InvalidArgumentError
        If it is none of these, or members draw nothing for themselves.
    """
    if not isinstance(independent, str) or independent not in INDEPENDENT:
        names = ", ".join(map(repr, INDEPENDENT))
        raise InvalidArgumentError("independent", independent, f"one of {names}")
    if independent == "none" and resampling.copies == ONCE:
        raise InvalidArgumentError.because(
            "independent",
            "= 'none' makes all fits equal",
            "give a resampling by which they differ, such as Bootstrap(), or let them draw "
            "features or samples of their own",
        )
    shared = INDEPENDENT[independent]
    return replace(shared, samples=False) if resampling.disjoint else shared


def members_of(members: ArrayLike, *, infinite: bool = True) -> Array:
    """Numbers of members as a vector.

    Raises
    ------
    InvalidArgumentError
        Unless all are positive whole numbers, or infinite, and differ.
    """
    found = np.atleast_1d(labelled("members", members, infinite=infinite).values)
    if (parts := found[np.isfinite(found) & (np.floor(found) != found)]).size:
        raise InvalidArgumentError("members", float(parts[0]), "a whole number, or inf")
    if found.ndim > 1 or len(np.unique(found)) < len(found):
        raise InvalidArgumentError("members", members, "a sequence of different numbers")
    return found


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
    # a copy, so that a change to the result does not change the argument
    copy = plain.astype(float)
    array = xr.DataArray(variable(own, copy)) if given is None else given.copy(data=copy)
    array.encoding = {}  # how a file packed the numbers: in another it could round them
    for dim in array.dims:
        if given is not None and is_result(str(dim)):
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
