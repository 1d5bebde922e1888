"""Several datasets in one figure: a colour for each, named by what distinguishes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.plotting.curves import Curve, left_out, predicted, simulated
from hiddenmanifold.plotting.selection import axes_of, dataset_of, quantities_of, sizes_of
from hiddenmanifold.plotting.style import NUMBERS, colours, sought
from hiddenmanifold.plotting.words import caption, fixed_parts, ingredient_words, joined
from hiddenmanifold.results.schema import Kind

if TYPE_CHECKING:
    import xarray as xr


class Named(NamedTuple):
    """A dataset and its name, empty where none was given."""

    name: str
    dataset: xr.Dataset


class Words(NamedTuple):
    """What distinguishes datasets, and what they have in common."""

    names: Sequence[str]
    title: str
    caption: str


def named(given: object) -> list[Named]:
    """The datasets of an argument, which is one, several, or several by name.

    Raises
    ------
    InvalidArgumentError
        If there is none, or something else among them.
    """
    import xarray as xr

    if isinstance(given, xr.Dataset | xr.DataArray) or not isinstance(given, Mapping | Sequence):
        return [Named("", dataset_of(given))]
    if not given or isinstance(given, str):
        raise InvalidArgumentError("dataset", given, "what predict, simulate and others return")
    pairs = given.items() if isinstance(given, Mapping) else [("", one) for one in given]
    return [Named(str(name), dataset_of(one)) for name, one in pairs]


def common(
    datasets: Sequence[Named], x: str | None, y: str | Sequence[str] | None
) -> tuple[str, tuple[str, ...]]:
    """The dimension along which all vary, and the quantities that some have.

    Raises
    ------
    InvalidArgumentError
        If one varies along another dimension, or along two.
    """
    x, _ = axes_of(sizes_of(datasets[0].dataset, y), x)
    for k, (name, dataset) in enumerate(datasets):
        called = name or f"number {k + 1}"
        found, family = axes_of(sizes_of(dataset, y), x if x in dataset.sizes else None)
        if found != x or dataset[x].dtype.kind not in NUMBERS:
            raise InvalidArgumentError.because(
                "dataset",
                f"{called} varies along {found}, and the first along {x}",
                "give several that vary along the same dimension",
            )
        if family is not None:
            raise InvalidArgumentError.because(
                "dataset",
                f"{called} also varies along {family}",
                f"select one of its values, as in ds.isel({family}=0), or plot it alone",
            )
    if y is not None:
        return x, (y,) if isinstance(y, str) else tuple(y)
    return x, quantities_of(datasets[0].dataset, x, None)


def curves_of(datasets: Sequence[Named], name: str, x: str) -> list[Curve]:
    """The curves of one quantity, of the datasets that have it.

    Raises
    ------
    InvalidArgumentError
        If none of them has it.
    """
    found = []
    for (_, dataset), colour in zip(datasets, _colours(datasets), strict=True):
        if name in dataset and x in dataset[name].dims:
            parts = (predicted, simulated, left_out)
            found += [replace(c, colour=colour) for p in parts for c in p(dataset, name, x, None)]
    if not found:
        known = {str(one) for _, dataset in datasets for one in dataset.data_vars}
        raise InvalidArgumentError("y", name, "one of " + ", ".join(sorted(known)))
    return found


def _colours(datasets: Sequence[Named]) -> list[Any]:
    return colours(np.arange(1.0, len(datasets) + 1.0))


def words_of(datasets: Sequence[Named]) -> Words:
    """Names of the datasets, by default what they do not share, and what they share."""
    models = [ingredient_words(dataset.attrs) for _, dataset in datasets]
    places = [_place(dataset) for _, dataset in datasets]
    shared = [set.intersection(*map(set, parts)) for parts in (models, places)]
    names = [
        name or ", ".join(part for part in (*model, *place) if part not in shared[0] | shared[1])
        for (name, _), model, place in zip(datasets, models, places, strict=True)
    ]
    kinds = [_kind(dataset) for _, dataset in datasets]
    if len(set(names)) < len(names) or "" in names:
        names = [", ".join(filter(None, pair)) for pair in zip(names, kinds, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{name or 'dataset'} ({k})" for k, name in enumerate(names, 1)]
    alike = len({caption(dataset.attrs) for _, dataset in datasets}) == 1
    above = caption(datasets[0].dataset.attrs) if alike else joined(models[0], shared[0])
    return Words(names, ", ".join(part for part in places[0] if part in shared[1]), above)


def _kind(dataset: xr.Dataset) -> str:
    """The question that a dataset answers, as a word of a legend."""
    kind = str(dataset.attrs.get("kind", ""))
    return "simulation" if kind == Kind.SUMMARY else kind.replace("_", " ")


def _place(dataset: xr.Dataset) -> list[str]:
    """The coordinates that do not vary, and that λ is the best one where it is."""
    best = r"best $\lambda$" if "optimal_regularisation" in dataset else ""
    return [*fixed_parts(dataset), *filter(None, [best])]


def mixed(panels: Sequence[Sequence[Curve]]) -> bool:
    """Whether one colour has both lines and measured points, or bands, to be explained."""
    kinds: dict[Any, set[bool]] = {}
    for curve in (curve for curves in panels for curve in curves):
        kinds.setdefault(curve.colour, set()).add(curve.error is None)
        if curve.band is not None:
            return True
    return any(len(both) > 1 for both in kinds.values())


def colours_of(
    names: Sequence[str], datasets: Sequence[Named], panels: Sequence[Sequence[Curve]]
) -> list[Any]:
    """Entries of a legend for the datasets, in the style of their curves."""
    from matplotlib.lines import Line2D

    entries = []
    for name, colour in zip(names, _colours(datasets), strict=True):
        style = next((c.style for curves in panels for c in curves if c.colour == colour), {})
        entries.append(Line2D([], [], color=colour, label=name, **style))
    return entries


def line_in(one: Named, x: str, up: str) -> tuple[str, Any, Any]:
    """The name of a line in the plane of a map, and its coordinates.

    Raises
    ------
    InvalidArgumentError
        If a dataset is none.
    """
    dataset = one.dataset
    for along, across in ((x, up), (up, x)):
        for source in (across, f"optimal_{across}"):
            if source in dataset.data_vars and dataset[source].dims == (along,):
                name = one.name or sought(dataset, source) or source.replace("_", " ")
                ends = {along: dataset[along].values, across: dataset[source].values}
                return name, ends[x], ends[up]
    raise InvalidArgumentError.because(
        "dataset",
        f"{one.name or 'after the first'} is no line in the plane of {x} and {up}",
        "give after a map what has one of them along the other, such as thresholds",
    )
