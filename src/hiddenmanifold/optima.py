"""Questions about whole curves: where is the peak, and how many features are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConvergenceError, InvalidArgumentError
from .model import Model, Points
from .numerics.roots import increasing_root
from .prediction import THEORY
from .registry import check_count, check_number
from .results import check_aligned, labelled, provenance
from .theory.asymptotics import asymptotics
from .theory.limits import HUGE, Phase, fitted_phase
from .theory.optimal import Objective, optimal_regularisation
from .theory.peak import Curve, Held, at_threshold, highest
from .thresholds import separability_threshold

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

SCAN = np.log(10.0) * np.arange(-3.0, 10.0)
"""Values of log(p/n) between which `features_needed` searches."""
NEEDED = {
    "p_over_n": "fewest features per sample; 0 if none are needed",
    "generalisation_error": "error with so many, at optimal regularisation",
    "kernel_limit": "error with infinitely many, at optimal regularisation",
}


def interpolation_peak(
    model: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    n_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_p: ArrayLike | xr.DataArray | None = None,
    workers: int | None = None,
) -> xr.Dataset:
    """Place and height of the peak of the test error between too few and many features.

    Parameters
    ----------
    model : Model
        What is learned.
    regularisation : array_like or DataArray
        The λ of the objective; zero means the limit 0⁺, where the peak stands exactly at the
        threshold of interpolation or of separability.
    n_over_d, d_over_p : array_like or DataArray
        What is held fixed along the curve, one of the two.
    workers : int, optional
        Processes used for large grids; by default one per core.

    Returns
    -------
    xarray.Dataset
        The place `p_over_n` and height `generalisation_error` of the highest local maximum for p/n
        between 0.01 and 100; NaN where the curve has none.

    Raises
    ------
    ConvergenceError
        If part of a curve that shows no peak could not be solved; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> peak = hm.interpolation_peak(model, n_over_d=3.0, regularisation=[0, 1e-4])
    >>> peak.p_over_n.values.round(4)
    array([0.3677, 0.3772])
    """
    import xarray as xr

    if not isinstance(model, Model):
        raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
    given = {"n_over_d": n_over_d, "d_over_p": d_over_p}
    held = [name for name, values in given.items() if values is not None]
    fixed = model.features.fixed_ratio
    if len(held) != (fixed is None):
        allowed = "one of n_over_d and d_over_p" if fixed is None else "none: the features fix d/p"
        raise InvalidArgumentError("ratios", ", ".join(held) or "none", allowed)
    name: Held = "n_over_d" if n_over_d is not None else "d_over_p"
    lam = labelled("regularisation", regularisation, zero=True)
    coordinates = {"regularisation": lam}
    if fixed is None:
        ratio = coordinates[name] = labelled(name, d_over_p if n_over_d is None else n_over_d)  # type: ignore[arg-type]
    else:
        ratio = xr.DataArray(fixed)
    check_aligned(coordinates)
    template = xr.broadcast(*coordinates.values())[0]

    def flat(values: xr.DataArray) -> Array:
        filled: Array = values.broadcast_like(template).transpose(*template.dims).values.ravel()
        return filled

    workers = None if workers is None else check_count("workers", workers)
    place, height, unsolved = _peaks(Curve(model, name, flat(ratio), flat(lam), workers))
    meanings = {"p_over_n": "features per sample at the peak", "generalisation_error": "its height"}
    data = {
        key: (template.dims, values.reshape(template.shape), {"long_name": meanings[key]})
        for key, values in (("p_over_n", np.exp(place)), ("generalisation_error", height))
    }
    ds = xr.Dataset(data, {**template.coords, **coordinates}, provenance(model, THEORY))
    if unsolved.any():
        raise ConvergenceError(
            f"{unsolved.sum()} of {unsolved.size} curves could not be solved everywhere and show "
            "no peak elsewhere; the others are in the `partial` attribute of this exception",
            partial=ds,
        )
    return ds


def _peaks(curve: Curve) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Place and height at each point: the threshold where λ vanishes, else near it or anywhere."""
    zero = curve.lam == 0
    separating = fitted_phase(curve.model)[0] in (Phase.SEPARATED, Phase.DIVERGING)
    place, height = _threshold(curve, separating), np.full(len(zero), np.nan)
    unsolved = np.zeros(len(zero), dtype=bool)
    if zero.any():
        height[zero], unsolved[zero] = at_threshold(curve[zero], place[zero], separating)
    if not zero.all():
        place[~zero], height[~zero], unsolved[~zero] = highest(curve[~zero], place[~zero])
    return np.where(np.isnan(height), np.nan, place), height, unsolved


def _threshold(curve: Curve, separating: bool) -> Array:
    """Logarithm of the p/n from which on all samples can be fitted; NaN if there is none."""
    model, ratio = curve.model, curve.ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        if separating:
            known = {} if model.features.fixed_ratio is not None else {curve.held: ratio}
            found = np.log(
                np.broadcast_to(separability_threshold(model, **known).values, ratio.shape)
            )
        elif curve.held == "d_over_p":
            found = -np.log(model.features.visible(ratio).rank)
        else:  # noiseless features are no more independent than d
            found = np.where(model.features.noiseless & (ratio >= 1), np.nan, 0.0)
    return np.where(np.isfinite(found), found, np.nan)


def features_needed(
    model: Model,
    *,
    n_over_d: ArrayLike | xr.DataArray,
    within: float = 0.05,
    workers: int | None = None,
) -> xr.Dataset:
    """The fewest features per sample whose error comes close to that of infinitely many.

    Both errors are those at their optimal regularisation.

    Parameters
    ----------
    model : Model
        What is learned.
    n_over_d : array_like or DataArray
        Samples per latent dimension.
    within : float
        How close, relative to the error of the kernel limit; positive.
    workers : int, optional
        Processes used for large grids; by default one per core.

    Returns
    -------
    xarray.Dataset
        `p_over_n`, the `generalisation_error` there and that of the `kernel_limit`.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    >>> float(hm.features_needed(model, n_over_d=3.0).p_over_n.round(2))
    29.14
    """
    import xarray as xr

    if not isinstance(model, Model):
        raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
    if model.features.fixed_ratio is not None:
        raise InvalidArgumentError("model", model, "one whose features leave d/p free")
    check_number("within", within, 0.0, open_low=True)
    workers = None if workers is None else check_count("workers", workers)
    ratio = labelled("n_over_d", n_over_d)
    delta = ratio.values.ravel()
    limit = _best(model, np.full(len(delta), np.log(HUGE)), delta, workers)[0]
    if not np.isfinite(limit).all():
        raise InvalidArgumentError("model", model, "one whose error does not vanish in the limit")
    target, close = limit + np.log1p(within), min(1e-10, 1e-4 * within)

    def reached(t: Array, delta: Array) -> tuple[Array, Array]:
        error, slope = _best(model, t, delta, workers)
        return -error, -slope

    t = increasing_root(reached, -target, _bracket(model, delta, target, workers), delta, close)
    error = _best(model, t, delta, workers)[0]
    columns = {
        "p_over_n": np.where(t > SCAN[0], np.exp(t), 0.0),
        "generalisation_error": np.exp(error),
        "kernel_limit": np.exp(limit),
    }
    data = {
        name: (ratio.dims, values.reshape(ratio.shape), {"long_name": NEEDED[name]})
        for name, values in columns.items()
    }
    ds = xr.Dataset(data, {**ratio.coords, "n_over_d": ratio}, provenance(model, THEORY))
    missed = ~((np.abs(error - target) <= 1e2 * close) | (t == SCAN[0]))
    if missed.any():
        raise ConvergenceError(
            f"{missed.sum()} of {missed.size} searches did not converge, the first at n_over_d = "
            f"{delta[missed][0]:.6g}; what was found is in the `partial` attribute",
            partial=ds,
        )
    return ds


def _best(model: Model, t: Array, delta: Array, workers: int | None) -> tuple[Array, Array]:
    """Logarithm of the error at optimal λ and p/n = exp(t), and its slope by t.

    At an optimum the error does not depend on λ, so the slope is that at fixed λ.
    """
    alpha = np.exp(-t)
    objective = Objective(model, alpha, alpha / delta, "generalisation_error", workers)
    points = Points(alpha, alpha / delta, optimal_regularisation(objective, 0.0, np.inf))
    found = asymptotics(model, points, workers, slopes=("p",))
    error = found["generalisation_error"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(error), found["generalisation_error_by_log_p"] / error


def _bracket(model: Model, delta: Array, target: Array, workers: int | None) -> tuple[Array, Array]:
    """The last interval of the scan in which the error comes down to its target."""
    t, points = np.repeat(SCAN, len(delta)), np.tile(delta, len(SCAN))
    above = ~(_best(model, t, points, workers)[0].reshape(len(SCAN), -1) <= target)
    last = np.where(above.any(0), len(SCAN) - 1 - np.argmax(above[::-1], axis=0), -1)
    low, high = np.maximum(last, 0), np.minimum(last + 1, len(SCAN) - 1)
    return SCAN[low], SCAN[high]
