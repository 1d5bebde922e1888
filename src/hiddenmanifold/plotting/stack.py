"""Bias and variances on top of each other: their sum is the mean square error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.plotting.style import COLOURS, is_logarithmic, label
from hiddenmanifold.results.schema import Kind

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

PARTS = (
    "irreducible_error",
    "bias",
    "samples_variance",
    "features_variance",
    "noise_variance",
)
"""Parts of the mean square error, from the bottom of their stack."""
TALLEST = 5.0
"""Height of the axis in units of the median sum, at most: a peak would hide all else."""
PALE = "0.75"


def is_stack(dataset: xr.Dataset) -> bool:
    """Whether parts of an error are drawn on top of each other: they vary along one dimension.

    A limit has no place among them.
    """
    if dataset.attrs.get("kind") != Kind.BIAS_VARIANCE:
        return False
    varying = [dim for dim, length in dataset.sizes.items() if length > 1]
    return len(varying) == 1 and bool(np.isfinite(dataset[varying[0]].values).all())


def draw_stack(axis: Axes, dataset: xr.Dataset, x: str) -> None:
    """The parts of `bias_variance` along a dimension; where one is not finite there is a gap."""
    ordered = dataset.sortby(x)
    parts = [np.where(np.isfinite(ordered[name]), ordered[name], np.nan) for name in PARTS]
    total = np.sum(parts, axis=0)
    total = total[np.isfinite(total)]
    axis.stackplot(
        ordered[x].values,
        *(part.ravel() for part in parts),
        labels=[label(name) for name in PARTS],
        colors=(PALE, *COLOURS[:4]),
        linewidth=0,
    )
    if is_logarithmic(ordered[x].values):
        axis.set_xscale("log")
    if total.size:
        axis.set_ylim(0.0, 1.02 * min(total.max(), TALLEST * np.median(total)))
    axis.set_ylabel(label("mean_square_error"))
    axis.margins(x=0.0)
    handles, texts = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], texts[::-1])
