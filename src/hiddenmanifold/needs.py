"""What it takes to reach an error: how many features are enough."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from .arguments import Grid, Ratios, with_ratios
from .errors import InvalidArgumentError, Status
from .execution import Crew
from .ingredients import check_number
from .model import Model
from .prediction import source
from .theory.needed import fewest_features

if TYPE_CHECKING:
    import xarray as xr

MEANINGS = {
    "p_over_n": "fewest features per sample; 0 if none are needed",
    "generalisation_error": "error with so many, at optimal regularisation",
    "kernel_limit": "error with infinitely many, at optimal regularisation",
}


@with_ratios
def features_needed(
    model: Model,
    *,
    within: float = 0.05,
    on_failure: Literal["raise", "keep"] = "raise",
    workers: int | None = None,
    executor: Executor | None = None,
    **ratios: Unpack[Ratios],
) -> xr.Dataset:
    """The fewest features per sample whose error comes close to that of infinitely many.

    Both errors are those at their optimal regularisation.

    Parameters
    ----------
    model : Model
        What is learned.
    within : float
        How close, relative to the error of the kernel limit; positive.
    on_failure : {"raise", "keep"}
        Whether a search that does not converge raises, or is kept with its `status`.
    workers, executor
        As in `predict`.
    n_over_d : array_like or DataArray
        Samples per latent dimension.

    Returns
    -------
    xarray.Dataset
        `p_over_n`, the `generalisation_error` there, that of the `kernel_limit`, and `status`.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    >>> float(hm.features_needed(model, n_over_d=3.0).p_over_n.round(2))
    29.14
    """
    crew = Crew(workers, executor)
    grid = Grid.of(model, ratios, one_of=("n_over_d",), on_failure=on_failure)
    check_number("within", within, 0.0, open_low=True)
    columns, missed = fewest_features(model, grid.ratio[1], within, crew)
    if not np.isfinite(columns["kernel_limit"]).all() or not columns["kernel_limit"].all():
        raise InvalidArgumentError("model", model, "one whose error does not vanish in the limit")
    columns["status"] = np.where(missed, Status.SEARCH, Status.CONVERGED).astype(np.int8)
    return grid.answer(columns, source(crew), MEANINGS)
