"""Backtest: compare predictions with fits to rows that they did not use."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import labelled
from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import Task, check_count, knows_penalty
from hiddenmanifold.data.analysis import Analysis
from hiddenmanifold.data.class_heads import class_scores
from hiddenmanifold.data.learning_curve import provenance
from hiddenmanifold.data.misclassification import with_half_an_error
from hiddenmanifold.data.sample import Data
from hiddenmanifold.data.validation import FEWEST_OF_A_CLASS, FEWEST_ROWS
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.results.datasets import with_schema
from hiddenmanifold.results.schema import ERROR_MEASURES, Kind
from hiddenmanifold.simulation.fit import fit_path

if TYPE_CHECKING:
    import xarray as xr

FEWEST_TESTS = 20
"""Least number of rows on which a fit is tested."""
FEWEST_SEEN = 2
"""Least rows of each of several classes that the prediction sees."""
FEWEST = 10
"""Least rows that are fitted to see how errors fall."""


@knows_penalty()
@one_thread
def backtest(
    data: Data,
    *,
    n: ArrayLike | None = None,
    regularisation: ArrayLike | Literal["loo"] = "loo",
    loss: str | ConvexLoss = "square",
    seeds: int = 8,
    rows: int | None = None,
    seed: int = 0,
    deadline: float | None = None,
) -> xr.Dataset:
    """Predict from some rows of real data, measure on the others, and judge the difference.

    Each seed splits the sample at random. The prediction uses some rows; of the others, a model is
    fitted to n and tested on the rest.

    Parameters
    ----------
    data : Data
        The sample, usable or not.
    n : sequence of int
        Numbers of samples that are fitted; by default 1 and 2 times `rows`.
    regularisation : sequence of float or "loo"
        The λ of the objective, or the one of least leave-one-out loss of the whole sample.
    loss : str or Loss
        As in `learning_curve`.
    seeds : int
        Random cuts.
    rows : int
        Rows that the prediction sees; by default `data.own_rows`.
    seed : int
        Root of all randomness.
    deadline : float, optional
        Seconds after which no further cut is begun, once there are two.

    Returns
    -------
    xarray.Dataset
        `generalisation_error` (mean over cuts), `generalisation_error_stderr`,
        `generalisation_error_theory` (mean of the predictions), `generalisation_error_z`, their
        difference over its standard error (cuts share rows, so that it is somewhat optimistic);
        `deviation`, the mean of the predicted deviations, of logarithms; `inside_1` and `inside_2`,
        the parts of the cuts whose measurement lies within one and two deviations, with the noise
        of its test rows.
    """
    import xarray as xr

    end = math.inf if deadline is None else time.monotonic() + deadline
    seeds, seed = check_count("seeds", seeds, 2), check_count("seed", seed, 0)
    rows = data.own_rows if rows is None else check_count("rows", rows, FEWEST_ROWS)
    loss = data.accepted(loss)
    loo = isinstance(regularisation, str) and regularisation == "loo"
    lam = data.best_for(loss) if loo else regularisation
    given = labelled("regularisation", lam, zero=data.of_ridge(loss))
    lams = np.atleast_1d(given.values).astype(float)
    ns = _sizes(data, n, rows)
    cuts: list[tuple[Array, Array, Array, Array]] = []
    while len(cuts) < seeds and (len(cuts) < 2 or time.monotonic() < end):
        cuts.append(_cut(data, loss, ns, lams, rows=rows, key=(seed, len(cuts))))
    seeds = len(cuts)
    measured, noise, predicted, deviation = (np.array(part) for part in zip(*cuts, strict=True))
    tests = data.N - rows - ns[:, None]
    known = with_half_an_error(measured, tests) if data.classes else measured
    error = measured.std(0, ddof=1) / np.sqrt(seeds)
    spread = np.hypot(error, predicted.std(0, ddof=1) / np.sqrt(seeds))
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(np.log(known / predicted)) / np.hypot(deviation, noise)
        z = (measured.mean(0) - predicted.mean(0)) / spread
    columns = {
        "generalisation_error": measured.mean(0),
        "generalisation_error_stderr": error,
        "generalisation_error_theory": predicted.mean(0),
        "generalisation_error_z": z,
        "deviation": deviation.mean(0),
        "inside_1": (off <= 1).mean(0),
        "inside_2": (off <= 2).mean(0),
    }
    ds = xr.Dataset(
        {name: (("n", "regularisation"), values) for name, values in columns.items()},
        coords={"n": ns, "regularisation": lams},
        attrs={
            **provenance(data, loss),
            "rows": rows,
            "seeds": seeds,
            "root_seed": seed,
        },
    )
    ds["generalisation_error"].attrs["long_name"] = f"{ERROR_MEASURES[data.task]}, measured"
    return with_schema(ds, Kind.BACKTEST)


def halvings(data: Data) -> list[int]:
    """Numbers of samples, N/8 to N/2, that show how errors fall; those that leave enough tests."""
    most = data.N - data.own_rows - FEWEST_TESTS
    return [n for n in (data.N // 8, data.N // 4, data.N // 2) if FEWEST <= n <= most]


def _sizes(data: Data, asked: Any, rows: int) -> Array:
    """Numbers of samples to fit, if enough rows are left to test the fits."""
    most = data.N - rows - FEWEST_TESTS
    if most < 3:
        raise InvalidArgumentError.because(
            "rows",
            f"= {rows} leave {max(data.N - rows, 0)} of {data.N} rows to fit and to test",
            f"{FEWEST_TESTS + 3} or more must be left",
        )
    if asked is None:
        asked = [n for n in (rows, 2 * rows) if n <= most] or [most]
    ns = np.atleast_1d(labelled("n", asked).values)
    if not ((ns >= 3) & (ns <= most) & (ns == np.round(ns))).all():
        raise InvalidArgumentError(
            "n",
            asked,
            f"whole numbers from 3 to {most}: of {data.N} rows the prediction sees {rows}, and "
            f"{FEWEST_TESTS} or more test the fits",
        )
    return ns.astype(int)


def _cut(
    data: Data, loss: ConvexLoss, ns: Any, lams: Array, *, rows: int, key: tuple[int, int]
) -> tuple[Array, Array, Array, Array]:
    """Errors of one random cut as measured and as predicted, both with their log-deviations.

    They are in the order measured, its deviation, predicted, its deviation.
    """
    order = np.random.default_rng(key).permutation(data.N)
    own, rest = order[:rows], order[rows:]
    varies = np.ptp(data.X[own], axis=0) > 0
    if not varies.any():
        raise InvalidArgumentError.because(
            "rows", f"= {rows} are too few: no feature varies among them", "give more rows"
        )
    X, y = data.X[:, varies], data.y
    weights = data.weights
    part = Analysis(X[own], y[own], data.task, None if weights is None else weights.part(own))
    fewest = FEWEST_OF_A_CLASS if data.task is Task.CLASSIFICATION else FEWEST_SEEN
    if data.classes and (few := part.rows_of_classes.min()) < fewest:
        raise InvalidArgumentError.because(
            "rows",
            f"= {rows} are too few: the prediction sees {few} of a class",
            f"it must see {fewest} of each",
        )
    whole = Analysis(X, y, data.task, weights)
    tested = [_measured(whole, (rest[:n], rest[n:]), lams, loss) for n in ns]
    measured, noise = (np.array(a) for a in zip(*tested, strict=True))
    found = part.predicted(np.repeat(ns, len(lams)), np.tile(lams, len(ns)), loss=loss)
    predicted, deviation = (a[0].reshape(len(ns), -1) for a in (found.value, found.deviation))
    return measured, noise, predicted, deviation


def _measured(
    data: Analysis, cut: tuple[Any, Any], lams: Array, loss: ConvexLoss
) -> tuple[Array, Array]:
    """Errors, on some rows, of fits to others, and the deviations of their logarithms."""
    X, y = data.X, data.y
    own, test = cut
    if data.task is Task.CLASSES:
        lost = class_scores(loss, X[own], y[own], lams, X[test]).argmax(2) != y[test].argmax(1)
        return _rate(lost)
    weights = None if data.weights is None else data.weights.part(own).of(y[own])
    fits = fit_path(loss, data.task, X[own], y[own], lams, intercept=True, weights=weights)
    scores = np.array([X[test] @ fit.w / np.sqrt(X.shape[1]) + fit.b for fit in fits])
    if data.task is Task.CLASSIFICATION:
        return _rate(y[test] * scores <= 0)
    squares = (y[test] - scores) ** 2
    error = squares.mean(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return error, np.nan_to_num(squares.std(1) / np.sqrt(len(test)) / error)


def _rate(lost: Booleans) -> tuple[Array, Array]:
    """The rate of errors of rows (λ, rows), and the deviation of its logarithm."""
    error, rows = lost.mean(1), lost.shape[1]
    rate = with_half_an_error(error, rows)
    return error, np.sqrt((1.0 - rate) / (rate * rows))
