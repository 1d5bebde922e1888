"""Numbers of samples, features and latent dimensions, where they are given instead of ratios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features import Features

if TYPE_CHECKING:
    import xarray as xr

COUNTS = ("n", "p", "d")
Counts = Mapping[str, "xr.DataArray"]


def ratio_of(two: Counts) -> dict[str, xr.DataArray]:
    """The ratio of two numbers, by its name."""
    for over in ("n_over_d", "p_over_n", "d_over_p"):
        a, b = over.split("_over_")
        if {a, b} == set(two):
            return {over: two[a] / two[b]}
    raise InvalidArgumentError.because(
        "sizes", f"{' and '.join(two)} do not form a ratio", "give two of n, p and d"
    )


def ratios_of(counts: Counts, features: Features) -> dict[str, xr.DataArray]:
    """The ratios of three numbers that the features leave free."""
    n, p, d = (counts[name] for name in COUNTS)
    ratios = {"n_over_p": n / p, "d_over_p": d / p}
    if features.fixed_ratio is not None:
        del ratios["d_over_p"]
    return ratios


def completed(counts: Counts, features: Features) -> dict[str, xr.DataArray]:
    """All three numbers, with those that the features fix.

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
    if fixed is not None and ("p" in known or "d" in known):
        known.setdefault("p", _rounded(known["d"] / fixed) if "d" in known else known["p"])
        known.setdefault("d", _rounded(known["p"] * fixed))
        if (np.abs(known["d"] - fixed * known["p"]) > 0.5 * max(1.0, fixed)).any():
            raise InvalidArgumentError(
                "p", counts["p"].values, f"d/{fixed:.6g}: the features fix d/p themselves"
            )
    if missing := [name for name in COUNTS if name not in known]:
        raise InvalidArgumentError.because(
            "sizes", f"lack {' and '.join(missing)}", "give n, p and d, or two ratios instead"
        )
    return {name: known[name] for name in COUNTS}


def _rounded(values: xr.DataArray) -> xr.DataArray:
    return values.round().astype(int)
