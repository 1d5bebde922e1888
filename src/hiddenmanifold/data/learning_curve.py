"""Learning curves of real data, with error bars."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import labelled, spanned
from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task, knows_penalty
from hiddenmanifold.data.class_heads import FEW_ERRORS
from hiddenmanifold.data.predicted_errors import FALLING, QUANTITIES
from hiddenmanifold.data.sample import Data
from hiddenmanifold.errors import InvalidArgumentError, UnusableDataError
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.model import OBJECTIVE
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.results.datasets import flags, with_schema
from hiddenmanifold.results.ingredients import ingredient_attributes
from hiddenmanifold.results.schema import CLASS_DIMENSIONS, ERROR_MEASURES, Kind
from hiddenmanifold.versions import version

if TYPE_CHECKING:
    import xarray as xr

MULTIPLES = (0.5, 1, 2, 4, 8)
"""Numbers of samples, in units of those at hand, of a curve that asks for none."""
ENDS = ("", "_low", "_high")


class Support(IntEnum):
    """The basis of a prediction, each with a sentence that explains it."""

    SAMPLE = 0, "the spectrum that matters is resolved by the sample"
    UNRESOLVED = 1, "the spectrum that matters is not resolved by the sample: its last value"
    REFUSED = 2, "the diagnosis refuses predictions beyond the sample"
    UNREACHED = 3, "with so many features the fit depends on more than the sample shows"
    LATE = 4, "so late in training the fit depends on more than the sample shows"
    FEW_ERRORS = 5, f"known roughly: fewer than {FEW_ERRORS} rows are predicted wrongly"

    sentence: str

    def __new__(cls, value: int, sentence: str) -> Support:
        support = int.__new__(cls, value)
        support._value_, support.sentence = value, sentence
        return support


@knows_penalty()
@one_thread
def learning_curve(
    data: Data,
    *,
    n: ArrayLike | xr.DataArray | None = None,
    regularisation: ArrayLike | xr.DataArray | Literal["loo"] = "loo",
    loss: str | ConvexLoss = "square",
    p: ArrayLike | xr.DataArray | None = None,
    on_refusal: Literal["raise", "keep"] = "raise",
) -> xr.Dataset:
    """Predict what a model would reach with other numbers of samples of the same kind.

    Parameters
    ----------
    data : Data
        The sample at hand.
    n : array_like or DataArray
        Numbers of samples to fit; by default half, once, twice, 4 and 8 times those at hand.
    regularisation : array_like, DataArray or "loo"
        The λ of the objective, or the one of least leave-one-out loss; zero for the square loss
        only.
    loss : str or Loss
        The square loss, which is ridge regression with an intercept, for any labels, of more than
        two classes on columns of 0 and 1, as `RidgeClassifier`. For numbers and two classes any
        other that `hm.estimators` can fit to them, as "logistic" and "hinge"; for more classes
        "softmax", which is multinomial logistic regression, or a loss of the margin whose slope
        does not jump, as "squared_hinge", for each class against all others.
    p : array_like or DataArray, optional
        Another number of features, if the sample's are random features.
    on_refusal : {"raise", "keep"}
        Whether predictions beyond the sample raise if its diagnosis refuses them, or are
        kept, with that `status`.

    Returns
    -------
    xarray.Dataset
        `generalisation_error` (mean square for regression, misclassification for classes),
        `test_loss` and `training_loss`, and the ratios of the first two to those at n = N,
        `generalisation_error_fall` and `test_loss_fall`, which are known better; of more than two
        classes `class_error` and, by the square loss, `mean_square_error`, the sum of (y - f)² over
        columns y of 0 and 1; each with `_low` and `_high`, one standard deviation of the logarithm
        away; of more than two classes `confusion`, the part of each class that is predicted as
        each;
        `resolved`, whether the sample resolves the part of the spectrum that matters, or the
        prediction is the last one that it resolves; `status`;
        and with `_leave_one_out` and its `_stderr` the leave-one-out estimate at n = N (for the
        training loss, that of the fit): exact for the square loss, by one Newton step from the
        fit for losses of continuous slope, and for others, as the hinge and softmax, by ten fits
        to nine tenths of the sample each.

    Notes
    -----
    The level of an error is that of left-out rows; its fall with n follows from the degrees of
    freedom of ridge regression, for other losses from a twin of the same curvature
    (docs/real_data.md).

    Raises
    ------
    UnusableDataError
        If the diagnosis refuses n > N or other p, unless `on_refusal` is "keep".
    InvalidArgumentError
        If an argument makes no sense.
    """
    import xarray as xr

    if not isinstance(data, Data):
        raise InvalidArgumentError("data", data, "a hiddenmanifold.Data")
    if on_refusal not in ("raise", "keep"):
        raise InvalidArgumentError("on_refusal", on_refusal, "'raise' or 'keep'")
    loss = data.accepted(loss)
    coordinates = _coordinates(data, n, regularisation, p, loss)
    template = spanned(coordinates)
    sizes = [coordinates[name] for name in ("n", "regularisation", "p") if name in coordinates]
    flat = [a.broadcast_like(template).transpose(*template.dims).values.ravel() for a in sizes]
    ns, lams, ps = flat if p is not None else (*flat, np.full(template.size, np.nan))
    beyond = (ns > data.N) | (~np.isnan(ps) & (ps != data.p))
    refused = beyond & (not data.usable) if beyond.any() else beyond
    if refused.any() and on_refusal == "raise":
        raise UnusableDataError(
            f"{data!r} does not allow predictions beyond the sample: {data.diagnosis.reasons}. "
            "on_refusal='keep' gives them all the same"
        )
    columns = _columns(data, ns, lams, ps, loss)
    status = np.where(_few_errors(data, lams, loss), Support.FEW_ERRORS, Support.SAMPLE)
    status = np.where(columns["resolved"], status, Support.UNRESOLVED)
    status = np.where(refused, Support.REFUSED, status)
    columns["status"] = np.where(np.isnan(columns["test_loss"]), Support.UNREACHED, status)
    if data.task is Task.CLASSES and loss.quadratic:
        columns |= {f"mean_square_error{e}": 2.0 * columns[f"test_loss{e}"] for e in ENDS}
    own = {f"{name}{end}": dims for name, dims in CLASS_DIMENSIONS.items() for end in ENDS}
    numbered = ("class", "predicted") if data.task is Task.CLASSES else ()
    ds = xr.Dataset(
        {
            name: (
                (*template.dims, *own.get(name, ())),
                values.reshape((*template.shape, *values.shape[1:])),
            )
            for name, values in columns.items()
        },
        coords={
            **template.coords,
            **coordinates,
            **{name: (name, np.array(data.classes)) for name in numbered},
        },
        attrs={
            **provenance(data, loss),
            "objective": OBJECTIVE,
            "method": "extrapolation of a sample",
            "N": data.N,
            **({"usable": int(data.usable)} if beyond.any() else {}),
        },
    )
    ds = ds.assign(_measured(data, coordinates["regularisation"], loss))
    ds["generalisation_error"].attrs["long_name"] = ERROR_MEASURES[data.task]
    ds["status"].attrs = flags(Support)
    return with_schema(ds, Kind.LEARNING_CURVE)


def _coordinates(
    data: Data, n: Any, regularisation: Any, p: Any, loss: ConvexLoss
) -> dict[str, xr.DataArray]:
    """The axes, if they make sense."""
    n = [round(m * data.N) for m in MULTIPLES] if n is None else n
    if isinstance(regularisation, str):
        if regularisation != "loo":
            raise InvalidArgumentError("regularisation", regularisation, "numbers or 'loo'")
        regularisation = data.best_for(loss)
    out = {
        "n": labelled("n", n),
        "regularisation": labelled("regularisation", regularisation, zero=data.of_ridge(loss)),
    }
    if float(out["n"].min()) < 3:
        raise InvalidArgumentError("n", float(out["n"].min()), "at least 3")
    if p is not None:
        if not data.random_features:
            raise InvalidArgumentError.because(
                "p",
                "cannot be varied",
                "only random features come in any number; declare them by Data(..., "
                "random_features=True)",
            )
        out["p"] = labelled("p", p)
    return out


def _columns(data: Data, ns: Array, lams: Array, ps: Array, loss: ConvexLoss) -> dict[str, Array]:
    """Predictions at flat points; those that share p are made together."""
    names = (*QUANTITIES, *(f"{name}_fall" for name in FALLING))
    columns = {f"{name}{end}": np.empty(len(ns)) for name in names for end in ENDS}
    columns["kappa"], columns["resolved"] = np.empty(len(ns)), np.empty(len(ns), dtype=bool)
    sizes, parts = np.where(np.isnan(ps), data.p, ps), []
    for p in np.unique(sizes):
        at = np.flatnonzero(sizes == p)
        found = data.predicted(ns[at], lams[at], None if p == data.p else float(p), loss=loss)
        for name in names:
            quantity = name.removesuffix("_fall")
            interval = found.interval(quantity, fall=name != quantity)
            most = np.array(np.inf)
            if quantity == QUANTITIES[0] and data.classes:
                die = 1.0 - 1.0 / len(data.classes)
                most = np.array(die) if name == quantity else die * found.fall[0] / found.value[0]
            for end, value in zip(ENDS, interval, strict=True):
                columns[f"{name}{end}"][at] = np.minimum(value, most)
        columns["kappa"][at], columns["resolved"][at] = found.kappa, found.resolved
        if data.task is Task.CLASSES:
            parts.append((at, found.confusion, found.class_deviation))
    return columns | _by_class(parts, len(ns))


def _few_errors(data: Data, lams: Array, loss: ConvexLoss) -> Any:
    """Whether too few rows are predicted wrongly by a head to know how many of others would be."""
    if data.task is not Task.CLASSES or loss.quadratic:
        return False
    return data.measured(lams, loss)[0][0] * data.N < FEW_ERRORS


def _by_class(parts: list[tuple[Integers, Array, Array]], points: int) -> dict[str, Array]:
    """Errors of classes with their intervals, and confusion; points come first."""
    columns: dict[str, Array] = {}
    for at, confusion, deviation in parts:
        error = 1.0 - np.einsum("ccf->cf", confusion)
        ends = error, error * np.exp(-deviation), np.minimum(error * np.exp(deviation), 1.0)
        found = {f"class_error{end}": value for end, value in zip(ENDS, ends, strict=True)}
        for name, value in (*found.items(), ("confusion", confusion)):
            whole = columns.setdefault(name, np.empty((points, *value.shape[:-1])))
            whole[at] = np.moveaxis(value, -1, 0)
    return columns


def _measured(data: Data, lam: xr.DataArray, loss: ConvexLoss) -> dict[str, Any]:
    """Leave-one-out estimates at n = N, along the regularisations."""
    means, errors = data.measured(lam.values.ravel(), loss)
    out = {}
    for name, mean, error in zip(QUANTITIES, means, errors, strict=True):
        out[f"{name}_leave_one_out"] = (lam.dims, mean.reshape(lam.shape))
        out[f"{name}_leave_one_out_stderr"] = (lam.dims, error.reshape(lam.shape))
    return out


def provenance(data: Data, loss: ConvexLoss) -> dict[str, Any]:
    """The attributes of a dataset that say what it was made from."""
    return {
        "data": data.description,
        **ingredient_attributes("loss", loss),
        **({"scheme": "one-vs-rest"} if data.against_rest(loss) else {}),
        "task": str(data.task),
        **({} if data.weights is None else {"weights": data.weights.told}),
        "hiddenmanifold_version": version("hiddenmanifold"),
    }
