"""What is drawn of a dataset: along which dimensions, and which quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.results.datasets import summary
from hiddenmanifold.results.observables import OBSERVABLES
from hiddenmanifold.results.schema import CLASS_DIMENSIONS, Kind, is_real_data

if TYPE_CHECKING:
    import xarray as xr

PANELS = (
    tuple(f"generalisation_error_by_log_{name}" for name in ("regularisation", "n", "p")),
    ("p_over_n", "generalisation_error"),
    ("n_over_d",),
    ("test_cdf", "train_cdf"),
    ("generalisation_error", "optimal_regularisation"),
    ("generalisation_error", "optimal_time"),
    ("generalisation_error", "optimal_steps"),
    ("generalisation_error", "training_loss"),
    ("generalisation_error",),
    ("test_cdf", "train_cdf"),
)
"""What is drawn unless something else is asked for: the first of these that a dataset has.

Observables, which are measured where they are asked for, are drawn below.
"""
OF_KIND: Mapping[str, tuple[tuple[str, ...], ...]] = {
    Kind.ENSEMBLE: (("generalisation_error", "vote_error"), ("generalisation_error",)),
    Kind.INSTABILITY: (("disagreement", "probability_difference"), ("score_difference",)),
    Kind.PAIR: (("generalisation_error",),),
}
"""The same for some kinds of datasets."""


def axes_of(sizes: Mapping[str, int], x: str | None = None) -> tuple[str, str | None]:
    """The dimension along the horizontal axis, and the one that makes several curves, if any.

    Raises
    ------
    InvalidArgumentError
        If dimensions of these sizes cannot be drawn, or not along `x`.
    """
    sizes = {dim: n for dim, n in sizes.items() if n > 1 and dim != "seed"}
    if not sizes:
        raise InvalidArgumentError.because(
            "dataset", "has a single point", "a plot needs at least two"
        )
    if x is not None and x not in sizes:
        raise InvalidArgumentError("x", x, "a dimension that varies: " + " or ".join(sizes))
    x = x or max(sizes, key=sizes.__getitem__)
    others = [dim for dim in sizes if dim != x]
    if len(others) > 1:
        raise InvalidArgumentError.because(
            "dataset", f"varies along {', '.join(sizes)}", "a plot shows at most two dimensions"
        )
    return x, others[0] if others else None


def sizes_of(dataset: xr.Dataset, y: str | Sequence[str] | None) -> dict[str, int]:
    """Lengths of the dimensions along which the quantities vary.

    Those of several classes, members and pairs of fits count only where a quantity is drawn that
    has them.
    """
    names = ["generalisation_error"] if y is None else [y] if isinstance(y, str) else list(y)
    asked = {dim for name in names if name in dataset for dim in dataset[name].dims}
    own = {dim for dims in CLASS_DIMENSIONS.values() for dim in dims} | {"members", "share", "fit"}
    unseen = own.difference(asked)
    return {str(dim): n for dim, n in dataset.sizes.items() if dim not in unseen}


def dataset_of(given: object) -> xr.Dataset:
    """What is drawn of an argument: an array alone, of simulations their means."""
    import xarray as xr

    if isinstance(given, xr.DataArray):
        name = "values" if given.name is None else given.name
        given = given.to_dataset(name=name, promote_attrs=True)
    if not isinstance(given, xr.Dataset):
        raise InvalidArgumentError("dataset", given, "what predict, simulate and others return")
    return summary(given) if "seed" in given.dims else given


def quantities_of(dataset: xr.Dataset, x: str, y: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of what is drawn, which varies along the horizontal axis."""
    known = [str(name) for name, values in dataset.data_vars.items() if x in values.dims]
    if y is None:
        if is_real_data(dataset):
            return ("generalisation_error",)
        usual = OF_KIND.get(dataset.attrs.get("kind", ""), PANELS)
        first = next((names for names in usual if set(names) <= set(known)), (known[0],))
        return (*first, *(o.name for o in OBSERVABLES if o.name in known))
    names = (y,) if isinstance(y, str) else tuple(y)
    for name in names:
        if name not in known:
            raise InvalidArgumentError("y", name, "one of " + ", ".join(known))
    return names
