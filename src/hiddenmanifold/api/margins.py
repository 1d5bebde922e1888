"""The law of the margins of a classifier, on the samples it was trained on and on new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from numpy.typing import ArrayLike

from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.predict import expected, source
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.errors import CERTIFICATES
from hiddenmanifold.model import Model
from hiddenmanifold.results.observables import MARGIN_LAWS, margin_laws
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.predictions import asymptotics

if TYPE_CHECKING:
    import xarray as xr


@with_options(Theory)
def margins(
    model: Model,
    *,
    at: ArrayLike,
    regularisation: ArrayLike | xr.DataArray,
    **options: Unpack[Theory],
) -> xr.Dataset:
    """How the margins y f of new and of training samples are distributed, as n, p, d → ∞.

    They are given by distribution functions, which say everything: training margins gather at the
    kinks of a loss (at 1 for the hinge), where `train_cdf` jumps. It counts a jump at the value
    itself, so that the mass at 1 is its difference from a value just below.

    Parameters
    ----------
    model : Model
        What is learned; its labels are ±1.
    at : sequence of float
        The margins at which to evaluate.
    regularisation, **options
        As in `predict`, but for an optimal regularisation.

    Returns
    -------
    xarray.Dataset
        `test_cdf` and `train_cdf` with a last dimension `y_f`, and certificates.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense, or the model has real labels.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="hinge")
    >>> ds = hm.margins(model, n_over_d=3.0, p_over_n=1.0, regularisation=0.1, at=[0, 0.999, 1])
    >>> ds.train_cdf.values.round(4)
    array([0.0027, 0.0235, 0.5589])
    """
    grid = Grid.of(model, options, {"regularisation": regularisation})
    laws = margin_laws(model, "at", at)
    columns = asymptotics(model, grid.points(), grid.workers, observables=expected(laws))
    kept = {name: columns[name] for name in (*CERTIFICATES, *MARGIN_LAWS)}
    return grid.answer(Kind.MARGINS, kept, source(), laws)
