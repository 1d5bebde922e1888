"""Errors of real data along training by gradient flow, and when to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import labelled, spanned
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import knows_penalty
from hiddenmanifold.data.flow_of_rows import FlowOfRows
from hiddenmanifold.data.learning_curve import ENDS, Support, provenance
from hiddenmanifold.data.misclassification import by_columns, confusion, with_half_an_error, wrong
from hiddenmanifold.data.predicted_errors import deviation
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.data.sample import Data
from hiddenmanifold.errors import InvalidArgumentError, UnusableDataError
from hiddenmanifold.losses import Square
from hiddenmanifold.model import OBJECTIVE
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.results.datasets import flags, with_schema
from hiddenmanifold.results.schema import ERROR_MEASURES, Kind
from hiddenmanifold.theory.training.stopping import refined

if TYPE_CHECKING:
    import xarray as xr

PER_DECADE = 6
"""Times per decade, if none are given, and in the search for the best one at least."""
LONG = 1e4
"""The last of these times, at most, in units of the inverse mean eigenvalue."""


@knows_penalty()
@one_thread
def training_curve(
    data: Data,
    *,
    times: ArrayLike | xr.DataArray | None = None,
    regularisation: ArrayLike | xr.DataArray = 0.0,
    n: ArrayLike | xr.DataArray | None = None,
    on_refusal: Literal["raise", "keep"] = "raise",
) -> xr.Dataset:
    """Errors of a linear model along its training by gradient flow, on real data.

    At n = N, the number of rows at hand, they are exact leave-one-out errors. Training starts from
    zero weights, and time belongs to the sum of losses, as in `training`.

    Parameters
    ----------
    data : Data
        The sample at hand.
    times : array_like or DataArray, optional
        Times of gradient flow, by default the decades in which the fit changes. Zero and `inf` are
        the limits: the mean label, and ridge regression at λ.
    regularisation : array_like or DataArray
        The λ of the objective, zero by default.
    n : array_like or DataArray, optional
        Numbers of samples to train on, N by default.
    on_refusal : {"raise", "keep"}
        Whether to raise if the sample does not show the errors with n > N that are asked for, or to
        keep these as NaN; likewise if its diagnosis refuses n > N, but then with numbers.

    Returns
    -------
    xarray.Dataset
        `generalisation_error` (mean square for regression, misclassification for classes) and
        `test_loss`, half the mean square, each with `_low` and `_high`, one standard deviation of
        the logarithm away; the same left-out errors at n = N with `_leave_one_out` and
        `_leave_one_out_stderr`; `status`; and, if there are several times, the `optimal_time` of
        least `test_loss` from the first to the last of them, NaN where that is not known.

    Notes
    -----
    More samples than N are predicted as long as the sample resolves ridge regression of λ + 1/t
    well (docs/real_data.md).

    Raises
    ------
    UnusableDataError
        If the sample does not allow n > N, unless `on_refusal` is "keep".
    InvalidArgumentError
        If an argument makes no sense.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> from sklearn.datasets import load_diabetes
    >>> data = hm.Data(*load_diabetes(return_X_y=True), scale="standard")
    >>> ds = hm.training_curve(data, times=[0.001, 0.1, 1000.0])
    >>> ds.generalisation_error.values.round(-1)
    array([4370., 2990., 3000.])
    """
    import xarray as xr

    if not isinstance(data, Data):
        raise InvalidArgumentError("data", data, "a hiddenmanifold.Data")
    if on_refusal not in ("raise", "keep"):
        raise InvalidArgumentError("on_refusal", on_refusal, "'raise' or 'keep'")
    if data.weights is not None:
        raise InvalidArgumentError.because(
            "data",
            f"has rows weighted by {data.weights.told}, and curves of training are those of rows "
            "that count once",
            "make it by Data(X, y)",
        )
    coordinates = {
        "n": labelled("n", data.N if n is None else n),
        "regularisation": labelled("regularisation", regularisation, zero=True),
    }
    if float(coordinates["n"].min()) < 3:
        raise InvalidArgumentError("n", float(coordinates["n"].min()), "at least 3")
    given = _all_times(data.ridge) if times is None else times
    times = labelled("time", given, zero=True, infinite=True)
    template = spanned({**coordinates, "time": times})
    flow = _flow(data.ridge, template, *coordinates.values(), times)
    columns = _columns(data, flow, on_refusal)
    found: dict[str, Any] = {
        name: (template.dims, values.reshape(template.shape)) for name, values in columns.items()
    }
    found |= _measured(data, coordinates["regularisation"], times)
    own = {name: axis for name, axis in coordinates.items() if "time" not in axis.dims}
    if len(own) == len(coordinates) and times.dims == ("time",):
        found |= _best(data.ridge, coordinates, times)
    ds = xr.Dataset(
        found,
        {**template.coords, **coordinates, "time": times},
        {
            **provenance(data, Square()),
            "objective": OBJECTIVE,
            "method": "leave-one-out residuals of gradient flow, and their extrapolation",
            "training": "gradient flow",
            "N": data.N,
        },
    )
    ds["generalisation_error"].attrs["long_name"] = ERROR_MEASURES[data.task]
    ds["status"].attrs = flags(Support)
    return with_schema(ds, Kind.LEARNING_CURVE)


def _all_times(ridge: Ridge) -> Array:
    """Times from before the first direction is learned until long after most are."""
    low, high = 1e-2 / float(ridge.k.max()), 1e2 / float(ridge.k.min())
    high = min(high, LONG * len(ridge.k) / float(ridge.k.sum()))
    return np.geomspace(low, high, int(np.ceil(PER_DECADE * np.log10(high / low))) + 1)


def _flow(ridge: Ridge, template: xr.DataArray, *axes: xr.DataArray) -> FlowOfRows:
    """Training at every point of a grid, given n, λ and times."""
    flat = (a.broadcast_like(template).transpose(*template.dims).values.ravel() for a in axes)
    return FlowOfRows(ridge, *flat)


def _columns(data: Data, flow: FlowOfRows, on_refusal: str) -> dict[str, Array]:
    """Errors with their bars and status at all points."""
    beyond = flow.n > data.N
    refused = beyond & (not data.usable) if beyond.any() else beyond
    if on_refusal == "raise" and refused.any():
        raise UnusableDataError(
            f"{data!r} does not allow predictions beyond the sample: {data.diagnosis.reasons}. "
            "on_refusal='keep' gives them all the same"
        )
    if on_refusal == "raise" and not flow.resolved.all():
        first = float(flow.time[~flow.resolved].min())
        raise UnusableDataError(
            f"{data!r} does not show the error of more samples at times as late as {first:.4g}: "
            "ask for earlier ones, for fewer samples or for a larger regularisation, or say "
            "on_refusal='keep' for NaN there"
        )
    status = np.where(flow.resolved, Support.SAMPLE, Support.LATE)
    columns = {"status": np.where(refused, Support.REFUSED, status)}
    square = flow.square
    own = square.std(0, ddof=1) / np.sqrt(data.N) / square.mean(0)
    bars = [deviation("training", own, flow.fall, data.N)]
    values = [0.5 * flow.error]
    if data.classes:
        rate, fall = _misclassified(data, flow)
        values.insert(0, rate)
        counting = np.sqrt((1.0 - rate) / (rate * data.N))
        bars.insert(0, deviation("training", counting, fall, data.N))
    else:
        values.insert(0, flow.error)
        bars *= 2
    for name, value, s in zip(("generalisation_error", "test_loss"), values, bars, strict=True):
        for end, sign in zip(ENDS, (0.0, -1.0, 1.0), strict=True):
            columns[f"{name}{end}"] = value * np.exp(sign * s)
    if data.classes:
        high = columns["generalisation_error_high"]
        columns["generalisation_error_high"] = np.minimum(high, 1.0)
    return columns


def _misclassified(data: Data, flow: FlowOfRows) -> tuple[Array, Array]:
    """Rate of misclassification, and its ratio to that of training on N rows."""
    classes = data.ridge.classes
    rate = wrong(classes, flow.left_out).mean(0)
    fall, other = np.where(flow.resolved, 1.0, np.nan), np.flatnonzero(flow.resolved & ~flow.own)
    if other.size:
        left_out, ratio = flow.equivalent(other)
        own = flow.left_out[:, other]
        halved = 0.5 if own.shape[2] == 1 else 1.0  # of labels ±1, whose columns are 0 and 1
        change = halved * np.sum(left_out**2, axis=2).mean(0) * (ratio - 1.0)
        share = np.bincount(classes) / data.N
        moved, here = (
            1.0 - share @ np.einsum("ccf->cf", confusion(classes, by_columns(residuals), by))
            for residuals, by in ((left_out, change), (own, np.zeros_like(change)))
        )
        fall[other] = with_half_an_error(moved, data.N) / with_half_an_error(here, data.N)
    return np.where(flow.own, rate, with_half_an_error(rate, data.N) * fall), fall


def _measured(data: Data, lam: xr.DataArray, times: xr.DataArray) -> dict[str, Any]:
    """Errors of left-out rows at n = N, with their standard errors."""
    template = spanned({"regularisation": lam, "time": times})
    flow = _flow(data.ridge, template, lam * 0.0 + data.N, lam, times)
    own = wrong(data.ridge.classes, flow.left_out) if data.classes else flow.square
    found: dict[str, Any] = {}
    for name, rows in (("generalisation_error", own), ("test_loss", 0.5 * flow.square)):
        error = rows.std(0, ddof=1) / np.sqrt(data.N)
        for end, values in (("", rows.mean(0)), ("_stderr", error)):
            shaped = values.reshape(template.shape)
            found[f"{name}_leave_one_out{end}"] = template.dims, shaped
    return found


def _best(ridge: Ridge, axes: dict[str, xr.DataArray], times: xr.DataArray) -> dict[str, Any]:
    """The time of least mean square error at every n and λ."""
    inner = times.values[(times.values > 0.0) & (times.values < np.inf)]
    if len(inner) < 2:
        return {}
    template = spanned(axes)
    n, lam = (
        a.broadcast_like(template).transpose(*template.dims).values.ravel() for a in axes.values()
    )
    low, high = np.log(inner.min()), np.log(inner.max())
    scan = np.linspace(low, high, int(np.ceil(PER_DECADE * (high - low) / np.log(10.0))) + 2)

    def errors(log_t: Array) -> Array:
        """The error at times (points, times)."""
        width = log_t.shape[1]
        flow = FlowOfRows(ridge, np.repeat(n, width), np.repeat(lam, width), np.exp(log_t).ravel())
        return np.nan_to_num(flow.error, nan=np.inf).reshape(log_t.shape)

    log_t = np.tile(scan, (len(n), 1))
    found = errors(log_t)
    best = np.argmin(found, axis=1)
    after = np.take_along_axis(found, np.minimum(best + 1, len(scan) - 1)[:, None], 1)[:, 0]
    at = np.exp(refined(errors, log_t, best))
    return {
        "optimal_time": (
            template.dims,
            np.where(np.isfinite(after), at, np.nan).reshape(template.shape),
        )
    }
