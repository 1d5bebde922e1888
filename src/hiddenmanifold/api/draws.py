"""The points that a simulation draws, and the dataset of what was measured there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.api.arguments import COUNTS, sizes_of
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.results.datasets import dataset
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.simulation.fit import ONLY_SQUARE
from hiddenmanifold.simulation.samples import Sizes
from hiddenmanifold.theory.pairs.predictions_of_two import OF_EITHER

if TYPE_CHECKING:
    import xarray as xr

    from hiddenmanifold.api.pair_of_models import Pairing
    from hiddenmanifold.api.simulate import Simulation


@dataclass(frozen=True)
class Plan:
    """The points that a simulation draws, and how its results are arranged.

    Attributes
    ----------
    points : list
        Of each point: whole numbers n, p and d, and the regularisations.
    template : DataArray
        An array with the dimensions of the points.
    path : tuple
        Further dimensions, along which only λ varies: all fits along it share their data.
    seconds : list
        Of each point: λ and number of features of the second fit, if there is one.
    """

    points: list[tuple[Sizes, tuple[float, ...]]]
    template: xr.DataArray
    path: tuple[Hashable, ...]
    seconds: Sequence[tuple[float, int] | None]

    @classmethod
    def of(cls, grid: Grid, d: int, pairing: Pairing | None = None) -> Plan:
        """The plan of a grid, with the latent dimension that goes with ratios."""
        import xarray as xr

        coordinates, lam = grid.coordinates, grid.coordinates["regularisation"]
        if not grid.model.least_squares and not lam.values.all():
            raise InvalidArgumentError("regularisation", 0.0, ONLY_SQUARE)
        dimensions = {name for name, values in coordinates.items() if values.dims == (name,)}
        for name, values in coordinates.items():
            if mine := {"seed", *COUNTS}.difference(dimensions).intersection(map(str, values.dims)):
                raise InvalidArgumentError.because(
                    name,
                    f"has a dimension {mine.pop()!r}",
                    "rename it, because a size or the seeds have this name",
                )
        counted = "n" in coordinates
        if counted:
            known = {"p": coordinates["d"], **coordinates}  # of a kernel, as if p were d
            given = tuple(known[name].variable for name in COUNTS)
        else:
            given = grid.labelled_ratios()
        own = [] if pairing is None else pairing.axes(grid)
        columns = list(xr.broadcast(*map(xr.DataArray, given), *own))
        shared = pairing is None and not set(lam.dims).intersection(columns[0].dims)
        if not shared:  # λ varies with the point: one value per fit
            *columns, lam = xr.broadcast(*columns, xr.DataArray(lam.variable))
        flat = [column.values.ravel().tolist() for column in columns]
        flat, others = flat[: len(given)], flat[len(given) :]
        sizes = list(map(Sizes, *flat) if counted else map(partial(Sizes.nearest, d=d), *flat))
        lams = lam.values.ravel().tolist()
        rows = [tuple(lams)] * columns[0].size if shared else [(value,) for value in lams]
        points = list(zip(sizes, rows, strict=True))
        seconds = [None] * len(sizes) if pairing is None else pairing.seconds(sizes, *others)
        return cls(points, columns[0], lam.dims if shared else (), seconds)

    def dataset(
        self, simulation: Simulation, columns: Mapping[str, NDArray[Any]], source: Mapping[str, Any]
    ) -> xr.Dataset:
        """Columns of shape (trials, regularisations, ...) under the names of their axes."""
        import xarray as xr

        grid, seeds, width = simulation.grid, simulation.seeds, len(self.points[0][1])
        lam = grid.coordinates["regularisation"]
        shape, dims = self.template.shape, self.template.dims
        used = {
            name: xr.DataArray(
                np.reshape([getattr(s, name) for s, _ in self.points], shape), dims=dims
            )
            for name in sizes_of(grid.model.features)
            if name not in grid.coordinates
        }
        if simulation.pairing is not None:
            features = [second[1] for second in self.seconds if second is not None]
            used["p_2"] = xr.DataArray(np.reshape(features, shape), dims=dims)
        shape = (*shape, *(lam.sizes[dim] for dim in self.path), seeds)
        dims = (*dims, *self.path, "seed")
        flat = {
            name: values.reshape(-1, seeds, width, *values.shape[2:])
            .swapaxes(1, 2)
            .reshape(-1, *values.shape[2:])
            for name, values in columns.items()
        }
        return dataset(
            Kind.SIMULATION,
            grid.model,
            {**grid.coordinates, **used},
            xr.DataArray(np.empty(shape), {"seed": np.arange(seeds)}, dims),
            flat,
            source=source,
            observables=simulation.observables,
            last=simulation.last,
            of_fits=() if simulation.pairing is None else OF_EITHER,
        )
