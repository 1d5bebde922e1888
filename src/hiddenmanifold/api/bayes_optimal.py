"""The Bayes-optimal error, which no loss and regularisation can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.model import Model
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.theory.bayes import fixed_points
from hiddenmanifold.theory.solver.settings import STANDARD

if TYPE_CHECKING:
    import xarray as xr

SOURCE: dict[str, object] = {
    "method": "replica-symmetric posterior of the Gaussian-equivalent model, F and the rule known",
    "objective": "none: the least error of any predictor, for a teacher drawn from N(0, rho I)",
    **STANDARD.attributes,
}


@with_options(Theory)
def bayes_optimal(model: Model, **options: Unpack[Theory]) -> xr.Dataset:
    """The least error of any predictor on a model's Gaussian-equivalent data, as n, p, d → ∞.

    It is the error of a predictor that knows F, the label rule and the law N(0, ρI) of the
    teacher's weights, and uses the posterior given the training set: it predicts the more probable
    label, or the mean of a real one. It bounds `predict` from below for every loss and
    regularisation. It is optimal for the Gaussian-equivalent features κ0 + κ1 Fᵀc/√d + κ⋆ z; from
    the true σ(Fᵀc/√d), predictors that are not linear in the features might gain a little more.

    The equations may have several solutions at one point: those of an even rule always have the
    solution q = 0 too. The answer is the solution of largest free entropy, which is the true
    optimum; an algorithm that reaches it in reasonable time may not be known.

    Parameters
    ----------
    model : Model
        Features and label rule; its loss and intercept play no role.
    on_failure : {"raise", "keep"}
        Whether a point that does not converge raises, or is kept as NaN with its `status`.
    workers, executor, progress
        As in `predict`.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        The ratios, as in `predict`; one of them may be infinite. Or the numbers n, p, d.

    Returns
    -------
    xarray.Dataset
        ``generalisation_error``, ``clean_error`` (each of the predictor that is best for it), the
        ``overlap`` q, and certificates (`status`, `residual`, `quadrature_error`,
        `conditioning_error`, `iterations`).

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense; the message says which and why.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import numpy as np, hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> ds = hm.bayes_optimal(model, n_over_d=3.0, p_over_n=[1.0, np.inf])
    >>> ds.generalisation_error.values.round(4)
    array([0.2285, 0.1299])
    """
    grid = Grid.of(model, options)
    points = grid.points()
    columns = fixed_points.bayes_optimal(model, points.alpha, points.gamma, grid.workers)
    return grid.answer(Kind.BAYES_OPTIMAL, columns, SOURCE)
