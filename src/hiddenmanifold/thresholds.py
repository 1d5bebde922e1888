"""Thresholds between phases: how many features make the training data linearly separable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .errors import ConvergenceError, IncompatibleIngredientsError, InvalidArgumentError
from .model import RATIOS, Model
from .results import labelled, provenance
from .teachers import BinaryTeacher
from .theory.line import Line

if TYPE_CHECKING:
    import xarray as xr

SOURCE = {"method": "separability of Gaussian-equivalent features, after Candès and Sur 2020"}
MEANINGS = {
    "p_over_n": "features per sample above which the training data are linearly separable",
    "n_over_d": "samples per latent dimension above which the training data are linearly separable",
}


def separability_threshold(
    model: Model,
    *,
    n_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_n: ArrayLike | xr.DataArray | None = None,
    p_over_n: ArrayLike | xr.DataArray | None = None,
    n_over_p: ArrayLike | xr.DataArray | None = None,
    p_over_d: ArrayLike | xr.DataArray | None = None,
    d_over_p: ArrayLike | xr.DataArray | None = None,
) -> xr.DataArray:
    """Where the training data become linearly separable, in the limit n, p, d → ∞.

    Beyond, some w gives every training sample its label: a logistic fit without penalty no longer
    exists. The loss of the model plays no role. As n/d → 0 features see nothing of the rule, and
    the threshold is p/n = 1/2 (Cover 1965), or less with a free intercept if one label is rarer.

    Parameters
    ----------
    model : Model
        Its features and its label rule; labels must be ±1.
    n_over_d, d_over_n, p_over_n, n_over_p, p_over_d, d_over_p : array_like or DataArray
        Exactly one ratio of the numbers of samples n, features p and latent dimensions d; none, if
        the features fix d/p. A sequence becomes a dimension of that name.

    Returns
    -------
    xarray.DataArray
        Given p/n or n/p, the n/d above which data are separable: 0 if they are for every n/d, inf
        if they are for none. Given any other ratio, or none, the p/n above which data are
        separable: 0 if they are for every p/n, inf if they are for none.

    Raises
    ------
    InvalidArgumentError
        If not exactly one ratio is given, or it is not positive and finite.
    IncompatibleIngredientsError
        If the labels are real numbers.
    ConvergenceError
        If a p/n was not found to ten digits, or to 1e-15 if the rule is not symmetric; ``partial``
        has the array, NaN at such points.

    Notes
    -----
    At most d features of a linear activation are independent, so more than d do not help. Then a
    noisy rule also sets an upper limit to n/d, the inverse of the p/n found for p/d = 1.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    >>> hm.separability_threshold(model, n_over_d=[0.01, 3.0]).values.round(4)
    array([0.4994, 0.3677])
    """
    if not isinstance(model, Model):
        raise InvalidArgumentError("model", model, "a hiddenmanifold.Model")
    if not isinstance(model.teacher, BinaryTeacher):
        raise IncompatibleIngredientsError(
            f"teacher {model.teacher} gives real labels: only labels ±1 can be separable"
        )
    given = {
        "n_over_d": n_over_d,
        "d_over_n": d_over_n,
        "p_over_n": p_over_n,
        "n_over_p": n_over_p,
        "p_over_d": p_over_d,
        "d_over_p": d_over_p,
    }
    name, ratio = _given(model, {k: v for k, v in given.items() if v is not None})
    line = Line(model.teacher, model.features, model.free_intercept)
    to_alpha, to_gamma = RATIOS[name]
    flat = ratio.values.ravel()
    with np.errstate(all="ignore"):  # what is not finite is found below
        if not to_alpha:
            found, good = line.p_over_n_at_gamma(flat**to_gamma)
        elif to_gamma:
            found, good = line.p_over_n(flat**to_alpha)
        else:
            found, good = line.n_over_d(flat**-to_alpha)
    sought = "p_over_n" if to_gamma else "n_over_d"
    fixed = model.features.fixed_ratio is not None
    array = ratio.copy(data=np.where(good, found, np.nan).reshape(ratio.shape)).rename(sought)
    array = array.assign_coords({} if fixed else {name: ratio})
    array.attrs = {"long_name": MEANINGS[sought], **provenance(model, SOURCE)}
    if not good.all():
        where = f"{name} = {flat[~good][0]:.6g}"
        raise ConvergenceError(
            f"{np.sum(~good)} of {good.size} thresholds were not found, the first at {where}; the "
            "array with these points as NaN is in the `partial` attribute of this exception",
            partial=array,
        )
    return array


def _given(model: Model, given: dict[str, ArrayLike | xr.DataArray]) -> tuple[str, xr.DataArray]:
    """Name and values of the one ratio that the user or the features give."""
    import xarray as xr

    fixed = model.features.fixed_ratio
    need = "exactly one ratio among " + ", ".join(RATIOS)
    if fixed is not None:
        need = f"left out: the features fix d/p = {fixed:.6g} themselves"
    if len(given) != (fixed is None):
        raise InvalidArgumentError("ratios", ", ".join(given) or "none", need)
    if fixed is not None:
        return "d_over_p", xr.DataArray(fixed)
    ((name, values),) = given.items()
    return name, labelled(name, values)
