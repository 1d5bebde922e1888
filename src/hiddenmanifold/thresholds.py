"""Thresholds between phases: how many features make the training data linearly separable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .errors import ConvergenceError, IncompatibleIngredientsError, InvalidArgumentError
from .model import RATIOS, Model
from .numerics.newton import Status
from .numerics.roots import increasing_root
from .results import labelled, provenance
from .teachers import BinaryTeacher
from .theory.separability import Direction, fractions, least, rank
from .theory.spectral import Features, features_of

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SOURCE = {"method": "separability of Gaussian-equivalent features, after Candès and Sur 2020"}
MEANINGS = {
    "p_over_n": "features per sample above which the training data are linearly separable",
    "n_over_d": "samples per latent dimension above which the training data are linearly separable",
}
ODDS = 138.0
"""Largest modulus of the log-odds log((1 - chi)/chi) at which a threshold is sought."""
TOLERANCE = 1e-13
"""Distance from a root, in logarithms of ratios, at which the last Newton step is taken."""
ACCEPTED = 1e-10
"""Distance from a root, beyond rounding, above which a point did not converge."""
STEP = 1e-4
"""Half the distance, in log-odds, over which log(d/p) is differenced."""


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
        the projection fixes d/p. A sequence becomes a dimension of that name.

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
    line = Line(model.teacher, features_of(model), model.free_intercept)
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
    fixed = model.projection.fixed_ratio is not None
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
    """Name and values of the one ratio that the user or the projection gives."""
    import xarray as xr

    fixed = model.projection.fixed_ratio
    need = "exactly one ratio among " + ", ".join(RATIOS)
    if fixed is not None:
        need = f"left out: the projection fixes d/p = {fixed:.6g} itself"
    if len(given) != (fixed is None):
        raise InvalidArgumentError("ratios", ", ".join(given) or "none", need)
    if fixed is not None:
        return "d_over_p", xr.DataArray(fixed)
    ((name, values),) = given.items()
    return name, labelled(name, values)


@dataclass(frozen=True)
class Line:
    r"""The line between data that are separable and data that are not.

    Along it runs the log-odds :math:`\ell = \log((1-\chi)/\chi)` that a part of the teacher's field
    is hidden. The rule gives the threshold p/n at each :math:`\ell`, the features the d/p at which
    they hide as much; both rise with :math:`\ell`, so each equation below has at most one root.
    """

    teacher: BinaryTeacher
    features: Features
    free_intercept: bool

    def p_over_n_at_gamma(self, gamma: Array) -> tuple[Array, Booleans]:
        """Threshold p/n at given d/p, and whether it was found."""
        chi, hidden = fractions(self.features, gamma)
        found = least(self.teacher, chi, self.free_intercept, hidden)
        return found.value / rank(self.features, gamma), found.status == Status.CONVERGED

    def p_over_n(self, delta: Array) -> tuple[Array, Booleans]:
        """Threshold p/n at given n/d: the root of log(p/n) + log(d/p) = log(d/n)."""
        if not self.features.kappa_1:  # nothing is seen of the field, at any d/p
            return self.p_over_n_at_gamma(1.0 / delta)
        blind, half, seeing = least(
            self.teacher, np.array([0.0, 0.5, 1.0]), self.free_intercept
        ).value
        # linear features: more than d do not help
        never = (self.features.kappa_star == 0.0) & (delta * seeing >= 1.0)
        # p/n is at most that of the blind; and where d/p >= 2, at least that of half the field
        low = np.maximum(self._odds(np.log(1.0 / (delta * blind))), -ODDS)
        high = self._odds(np.log(np.maximum(2.0, 1.0 / (delta * half))))

        def product(odds: Array, _: Array) -> tuple[Array, Array]:
            found = self._least(odds)
            below, gamma, above = self._log_gamma(np.array([odds - STEP, odds, odds + STEP]))
            return np.log(found.value) + gamma, found.elasticity + (above - below) / (2.0 * STEP)

        target = -np.log(delta)
        bracket = low, np.where(never, low, high)
        odds = increasing_root(product, target, bracket, target, TOLERANCE)
        found = self._least(odds)
        distance = np.log(found.value) + self._log_gamma(odds) - target
        good = np.abs(distance) <= ACCEPTED + found.accuracy
        return np.where(never, np.inf, found.value), good | never

    def n_over_d(self, p_over_n: Array) -> tuple[Array, Booleans]:
        """Threshold n/d at given p/n."""
        blind, seeing = least(self.teacher, np.array([0.0, 1.0]), self.free_intercept).value
        if not self.features.kappa_1:
            seeing = blind
        always, never = p_over_n >= blind, p_over_n <= seeing
        target = np.log(p_over_n)
        ends = np.where(always | never, 0.0, ODDS)

        def value(odds: Array, _: Array) -> tuple[Array, Array]:
            found = self._least(odds)
            return np.log(found.value), found.elasticity

        odds = increasing_root(value, target, (-ends, ends), target, TOLERANCE)
        found = self._least(odds)
        good = np.abs(np.log(found.value) - target) <= ACCEPTED + found.accuracy
        n_over_d = np.exp(-target - self._log_gamma(odds))
        n_over_d = np.where(always, 0.0, np.where(never, np.inf, n_over_d))
        return n_over_d, good | always | never

    def _least(self, odds: Array) -> Direction:
        """The threshold p/n at given log-odds, and what belongs to it."""
        return least(self.teacher, special.expit(-odds), self.free_intercept, special.expit(odds))

    def _odds(self, log_gamma: Array) -> Array:
        """The log-odds that the field is hidden from features of given d/p."""
        visible, hidden = fractions(self.features, np.exp(log_gamma))
        return np.log(hidden) - np.log(visible)

    def _log_gamma(self, odds: Array) -> Array:
        r"""Logarithm of the d/p at which the log-odds are those given.

        Never is more seen than :math:`\chi = \min(1, 1/\gamma)`, nor, by convexity, than if all
        eigenvalues were equal, :math:`(1-\chi)/\chi = \gamma\kappa_\star^2/\kappa_1^2`.
        """
        kappa_1, kappa_star = np.abs(self.features.kappa_1), np.float64(self.features.kappa_star)
        equal = odds + 2.0 * np.log(kappa_1 / kappa_star)
        high = np.minimum(np.logaddexp(0.0, odds), equal)
        low = np.minimum(0.0, equal) - 1.0

        def bisected(log_gamma: Array, _: Array) -> tuple[Array, Array]:
            # no slope: near d = p the log-odds of almost linear features are too steep for Newton
            return self._odds(log_gamma), np.full_like(log_gamma, np.nan)

        return increasing_root(bisected, odds, (low, high), odds)
