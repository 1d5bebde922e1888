"""Two fits of different models to the same labels: how much their predictions have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.api.arguments import INDEPENDENT, resampling_of, spanned
from hiddenmanifold.api.grid import Grid
from hiddenmanifold.api.predict import expected, source
from hiddenmanifold.api.signatures import Theory, with_options
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import finite_vector
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, shown
from hiddenmanifold.model import Model
from hiddenmanifold.resampling import Resampling
from hiddenmanifold.results.ingredients import model_attributes
from hiddenmanifold.results.observables import Observable, chosen
from hiddenmanifold.results.schema import Kind
from hiddenmanifold.simulation.fit import ONLY_SQUARE
from hiddenmanifold.simulation.pair_trial import PairTrial, SecondFit
from hiddenmanifold.simulation.samples import Sizes
from hiddenmanifold.theory.pairs.predictions_of_two import OF_EITHER, asymptotics_of_two
from hiddenmanifold.theory.pairs.shared_overlaps import Shared
from hiddenmanifold.theory.pairs.two_models import MeanOfTwo, check_two
from hiddenmanifold.theory.points import HUGE, Limit, Points

if TYPE_CHECKING:
    import xarray as xr

SHARES = (1.0, 0.5, 0.0)
"""Shares of the first fit by default: both fits, and their mean between them."""
OF_SECOND = ("regularisation_2", "p_2_over_d")
"""Arguments of the second fit that vary."""
OF_THE_LOSS = ("test_loss",)
"""Observables that need one loss for both fits."""
MOST = 1e20
"""Largest regularisation: beyond, both predictions vanish, and their ratio with them."""


@with_options(Theory)
def pair(
    model: Model,
    second: Model,
    *,
    regularisation: ArrayLike | xr.DataArray,
    regularisation_2: ArrayLike | xr.DataArray | None = None,
    p_2_over_d: ArrayLike | xr.DataArray | None = None,
    share: ArrayLike = SHARES,
    independent: Literal["features", "samples", "both", "none"] = "features",
    resampling: str | Resampling | None = None,
    observables: str | Sequence[str] = (),
    **options: Unpack[Theory],
) -> xr.Dataset:
    """Two fits of different models to the same labels: what they share, and their mean.

    The models may differ in loss, intercept, weights, activation and kind of features; their λ and
    numbers of features may differ, too.

    Parameters
    ----------
    model, second : Model
        The learning problems of both fits. They have the same teacher.
    regularisation, regularisation_2 : array_like or DataArray
        The λ of either fit, as in `predict`; by default that of the second is the same.
    p_2_over_d : array_like or DataArray, optional
        The number of features of the second fit per latent dimension; by default it has as many as
        the first.
    share : sequence of float
        Shares s of the first fit in the mean s f + (1 - s) f' of both predictions.
    independent : {"features", "samples", "both", "none"}
        What each fit draws for itself, as in `ensemble`. With "samples" or "none" both models have
        the same features.
    resampling : str or Resampling, optional
        How each fit draws its samples from the common ones, as in `ensemble`.
    observables : sequence of str
        More to predict of the mean, as in `predict`.
    **options
        The ratios, those of the first fit, and how to compute, as in `predict`.

    Returns
    -------
    xarray.Dataset
        `generalisation_error`, `clean_error` and observables of the mean along a dimension
        `share`; `overlap` and `score_correlation`, covariance and correlation of both scores, and
        how differently they predict, as in `instability`; along a dimension `fit`, 1 and 2, what
        `predict` has of either fit: Q, M, V, training errors and so on.

    Raises
    ------
    InvalidArgumentError
        If an argument makes no sense.
    IncompatibleIngredientsError
        If the teachers, the data or the predictions of both models differ, if their features cannot
        be shared or drawn anew, or pairs of fits of these losses are not known.
    ConvergenceError
        If a point does not converge and `on_failure` is "raise"; ``partial`` has the dataset.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign"}
    >>> logistic, hinge = (hm.Model(**parts, loss=loss) for loss in ("logistic", "hinge"))
    >>> ds = hm.pair(logistic, hinge, n_over_d=2.0, p_over_n=0.5, regularisation=0.01)
    >>> ds.generalisation_error.values.round(4)
    array([0.2777, 0.2487, 0.2941])
    """
    own = {"regularisation_2": regularisation_2, "p_2_over_d": p_2_over_d}
    axes = {n: values for n, values in own.items() if values is not None}
    grid = Grid.of(model, options, {"regularisation": regularisation, **axes})
    asked = chosen(model, observables)
    pairing = Pairing.of(grid, second, share, independent, resampling)
    pairing.check_observables(grid.model, asked)
    return pairing.predicted(grid, asked)


def axes_of_pair(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a simulation that vary with the second fit.

    Raises
    ------
    InvalidArgumentError
        If any is given without a second model.
    """
    axes = {name: drawn[name] for name in OF_SECOND if drawn[name] is not None}
    if drawn["second"] is None and axes:
        raise InvalidArgumentError.because(
            ", ".join(axes), "cannot be given here", "give second, another model of the same labels"
        )
    return axes


def pairing_of(
    grid: Grid, drawn: Mapping[str, Any], observables: Sequence[Observable]
) -> Pairing | None:
    """The pairs that the arguments of a simulation describe."""
    if drawn["second"] is None:
        return None
    names = ("second", "share", "independent", "resampling")
    found = Pairing.of(grid, *(drawn[name] for name in names))
    if observables or drawn["members"] is not None:
        raise InvalidArgumentError.because(
            "second",
            "cannot be combined with members, observables, margins or decision_thresholds",
            "ask for these without a second model",
        )
    lam = grid.coordinates.get("regularisation_2", grid.coordinates.get("regularisation"))
    if lam is None:
        raise InvalidArgumentError.because(
            "regularisation", "= 'optimal' is not known for pairs of models", "give numbers"
        )
    if not found.second.least_squares and not lam.values.all():
        raise InvalidArgumentError("regularisation_2", 0.0, ONLY_SQUARE)
    return found


@dataclass(frozen=True)
class Pairing:
    """The second model of a pair, the shares of the first, and what both fits have in common."""

    second: Model
    mean: MeanOfTwo
    resampling: Resampling

    @classmethod
    def of(
        cls, grid: Grid, second: Model, share: ArrayLike, independent: object, resampling: Any
    ) -> Pairing:
        """Read the arguments of `pair`, beside the grid.

        Raises
        ------
        InvalidArgumentError, IncompatibleIngredientsError
            If both models cannot be a pair.
        """
        if not isinstance(second, Model):
            raise InvalidArgumentError("second", second, "a hiddenmanifold.Model")
        scheme, shared = resampling_of(resampling), _shared(independent)
        if scheme.disjoint:
            shared = Shared(shared.features, samples=False)
        _check(grid, second, shared)
        scheme.check(2.0)
        return cls(second, MeanOfTwo(_shares(share), shared), scheme)

    def check_observables(self, model: Model, observables: Sequence[Observable]) -> None:
        """Raise if an observable of the mean needs a loss, and the fits have different ones."""
        for observable in observables:
            if observable.name in OF_THE_LOSS and model.loss != self.second.loss:
                raise InvalidArgumentError.because(
                    "observables",
                    f"have {observable.name!r}, and both models have losses of their own",
                    "leave it out",
                )

    def points(self, grid: Grid) -> tuple[Points, Points]:
        """The points of both fits."""
        first = grid.points()
        n_over_d = first.alpha / first.gamma
        ratio, p_2 = self.second.features.fixed_ratio, grid.coordinates.get("p_2_over_d")
        infinite = first.has(Limit.RATIO) & (n_over_d > np.sqrt(HUGE))
        if ratio is not None:
            gamma = np.full_like(first.gamma, ratio)
        elif p_2 is not None:
            p = grid.flat(p_2)
            gamma, infinite = 1.0 / np.minimum(p, HUGE), infinite | np.isinf(p)
        else:
            gamma, infinite = first.gamma, first.has(Limit.RATIO)
        lam = grid.coordinates.get("regularisation_2", grid.coordinates["regularisation"])
        return first, Points.of(n_over_d * gamma, gamma, grid.flat(lam), infinite)

    def predicted(self, grid: Grid, observables: Sequence[Observable] = ()) -> xr.Dataset:
        """The prediction of pairs on a grid."""
        columns = asymptotics_of_two(
            (grid.model, self.second),
            self.points(grid),
            grid.workers,
            self.mean,
            observables=expected(observables),
            copies=self.resampling.copies,
        )
        return grid.answer(
            Kind.PAIR,
            columns,
            {**source(), **self.attributes},
            observables,
            last=("share", np.array(self.mean.shares)),
            of_fits=OF_EITHER,
        )

    def axes(self, grid: Grid) -> list[xr.DataArray]:
        """λ and features per latent dimension of the second fit, and λ of the first."""
        import xarray as xr

        lam = grid.coordinates["regularisation"]
        second = grid.coordinates.get("regularisation_2", lam)
        p_2 = grid.coordinates.get("p_2_over_d", xr.DataArray(np.nan))
        return [bare_array(values) for values in (second, p_2, lam)]

    def seconds(
        self, sizes: Sequence[Sizes], lams: Sequence[float], ratios: Sequence[float], _: object
    ) -> list[tuple[float, int]]:
        """λ and number of features of the second fit at some sizes."""
        fixed, found = self.second.features.fixed_ratio, []
        for size, lam, ratio in zip(sizes, lams, ratios, strict=True):
            p = size.p if np.isnan(ratio) else round(ratio * size.d)
            if fixed is not None:
                p = round(size.d / fixed)
            if p < 1:
                raise InvalidArgumentError.because(
                    "d", f"= {size.d} is too small", f"at p_2_over_d = {ratio:g} p rounds to 0"
                )
            found.append((lam, p))
        return found

    def trial(self, given: Sequence[Any], second: tuple[float, int]) -> PairTrial:
        """One draw of a point, with λ and number of features of the second fit."""
        shared = self.mean.shared
        fit = SecondFit(
            self.second,
            *second,
            new_features=not shared.features,
            new_samples=not (shared.samples or self.resampling.disjoint),
            resampling=self.resampling,
        )
        model, sizes, lams, seed, n_test, equivalent, _ = given
        return PairTrial(
            model, sizes, lams, seed, n_test, equivalent, second=fit, shares=self.mean.shares
        )

    def beside(self, grid: Grid, simulated: Grid, out: xr.Dataset) -> Grid:
        """The grid of the theory, with what the second fit of a simulation had."""
        own = {}
        if "regularisation_2" in simulated.coordinates:
            own["regularisation_2"] = bare_array(simulated.coordinates["regularisation_2"])
        if "p_2_over_d" in simulated.coordinates:
            own["p_2_over_d"] = bare_array(out["p_2"] / out["d"])
        coordinates = {**grid.coordinates, **own}
        return replace(grid, coordinates=coordinates, template=spanned(coordinates))

    @property
    def attributes(self) -> dict[str, Any]:
        """The second model, as attributes of a dataset."""
        own = model_attributes(self.second)
        return {f"second_{name}": value for name, value in own.items()}


def bare_array(values: xr.DataArray) -> xr.DataArray:
    """An array without coordinates."""
    import xarray as xr

    return xr.DataArray(values.values, dims=values.dims)


def _shared(independent: object) -> Shared:
    """What both fits share."""
    if not isinstance(independent, str) or independent not in INDEPENDENT:
        names = ", ".join(map(repr, INDEPENDENT))
        raise InvalidArgumentError("independent", independent, f"one of {names}")
    return INDEPENDENT[independent]


def _shares(share: ArrayLike) -> tuple[float, ...]:
    """Shares of the first fit.

    Raises
    ------
    InvalidArgumentError
        Unless they are different numbers between 0 and 1.
    """
    found: Array = finite_vector("share", np.atleast_1d(share))
    if found.min() < 0.0 or found.max() > 1.0 or len(np.unique(found)) < len(found):
        raise InvalidArgumentError("share", share, "different numbers between 0 and 1")
    return tuple(found.tolist())


def _check(grid: Grid, second: Model, shared: Shared) -> None:
    """Raise unless two models can be fitted to the same labels at the points of a grid."""
    model, coordinates = grid.model, grid.coordinates
    for what in ("teacher", "prediction"):
        one, other = getattr(model, what), getattr(second, what)
        if one != other:
            raise IncompatibleIngredientsError(
                f"both fits see the same labels and predict them alike, but the models have the "
                f"{what}s {shown(one)} and {shown(other)}: give both the same"
            )
    check_two(model.features, second.features, shared)
    own, fixed = coordinates.get("p_2_over_d"), second.features.fixed_ratio
    common = shared.features and model.features.random
    if own is not None and (common or fixed is not None):
        why = "both fits have the same features" if common else f"they fix d/p = {fixed:.6g}"
        raise InvalidArgumentError.because(
            "p_2_over_d", f"cannot be given, because {why}", "leave it out"
        )
    if own is None and fixed is None and model.features.infinite:
        raise InvalidArgumentError.because(
            "p_2_over_d",
            "is missing: the first fit has infinitely many features",
            "give the number of features of the second one per latent dimension, or inf",
        )
    for name in ("regularisation", "regularisation_2"):
        if name in coordinates and (coordinates[name].values > MOST).any():
            largest = float(coordinates[name].values.max())
            raise InvalidArgumentError(name, largest, f"at most {MOST:g} for pairs of models")
