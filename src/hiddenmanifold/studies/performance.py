"""How a regression fitted to n samples performs: in the limit, and draw by draw at finite size.

Predictors are normal, so that the score of a fit and the linear predictor are jointly normal, and
the performance of every single fit on the whole population follows from its overlaps Q, M and b by
the integrals of the theory: no test sample adds its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.api.arguments import Optimal
from hiddenmanifold.api.grid import LIMIT
from hiddenmanifold.api.predict import predict
from hiddenmanifold.api.simulate import simulate
from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.errors import Status
from hiddenmanifold.model import Model
from hiddenmanifold.results.datasets import ACCEPTED
from hiddenmanifold.results.observables import REGISTRY
from hiddenmanifold.studies.population import Population
from hiddenmanifold.studies.single_fits import binary_performance
from hiddenmanifold.studies.targets import Target
from hiddenmanifold.teachers import Linear, Poisson, binary

if TYPE_CHECKING:
    import xarray as xr

Penalty = float | Optimal | Callable[[Array], Array]
"""A regularisation, the search for the best one at every size, or a function of sizes."""
FAR = 0.01
"""Relative deviation of a mean from the limit that is worth a simulation, and a note."""
VANISHING = 1e-9
"""A penalty per sample that stands for none in a simulation, which needs one: it moves weights by
about 1e-8 of themselves, unless the labels are separable."""


def expected(
    population: Population,
    model: Model,
    regularisation: Penalty,
    n: Array,
    names: Sequence[str],
) -> xr.Dataset:
    """Quantities of fits to n samples, in the limit at these n/p; NaN where there is no fit."""
    import xarray as xr

    asked = [name for name in names if name in REGISTRY]
    if population.outcome != "binary":
        asked = [name for name in asked if name != "calibration_slope"]
    sizes = xr.DataArray(np.asarray(n, dtype=float), dims="n")
    lam: Any = regularisation
    if callable(regularisation):
        lam = xr.DataArray(regularisation(sizes.values), dims="n")
    ds = predict(
        model,
        n_over_p=sizes / population.predictors,
        regularisation=lam,
        observables=asked,
        on_failure="keep",
        workers=1,
        progress=False,
    )
    if population.outcome != "binary":  # of the regression of labels, or their logarithms, on f
        slope = ds.M / ds.Q
        ds["calibration_slope"] = slope.where(ds.status == Status.CONVERGED).drop_attrs()
    ds.attrs["sizes"] = LIMIT
    return ds.assign_coords(n=("n", np.asarray(n)))


def may_deviate(predictors: int, targets: Mapping[str, Target]) -> bool:
    """Whether means over studies that just meet a target may deviate from the limit by a percent.

    Deviations are those that nine of ten random populations of docs/sample_size.md stay below.
    """
    relative = {"probability_error": 0.5}
    slope = targets.get("calibration_slope", 1.0)
    if not isinstance(slope, tuple):  # an interval is not where the limit is
        relative["calibration_slope"] = 3.0 * (1.0 - slope)
    else:
        relative["calibration_slope"] = 0.3
    return any(name in targets and c > FAR * predictors for name, c in relative.items())


def seconds_of(model: Model, n: int) -> float:
    """Estimated time of one study on one core, within a factor of two or three."""
    p = model.features.fixed_dimension or 1
    factorised = 2e-10 * p**2 if model.loss.quadratic else 0.0
    return 3e-3 + n * (1e-6 + 3e-8 * p + factorised)


def ideal(population: Population, names: Sequence[str]) -> dict[str, float]:
    """Quantities of the true model, to which the usual regression tends with more samples."""
    teacher, rho = population.teacher, np.full(1, population.teacher.rho)
    if population.outcome != "binary":
        b = teacher.intercept if isinstance(teacher, Poisson) else 0.0
        values = _of_numbers(population, rho, rho, np.full(1, float(b)))
    else:  # the score is the logarithm of the odds
        steep = 2.0 if teacher.displaces else 1.0
        b = -steep * float(binary(teacher).pivot or 0.0)
        overlaps = steep**2 * rho, steep * rho, np.full(1, b)
        values = binary_performance(binary(teacher), names, *overlaps)
    return {name: float(values[name][0]) for name in names}


def drawn(
    population: Population,
    model: Model,
    sizes: Sequence[int],
    regularisation: float,
    names: Sequence[str],
    **how: Any,
) -> tuple[dict[str, Array], Booleans]:
    """Quantities of single fits, (sizes, draws), and whether labels of a draw were separable.

    They are NaN where a fit does not exist, or did not reach its minimum.
    """
    lams = regularisation or (0.0 if model.loss.quadratic else VANISHING * min(sizes))
    ds = simulate(
        model,
        n=np.array(sizes),
        regularisation=lams,
        n_test=1,
        **how,
    ).transpose("n", "seed", ...)
    good = (ds.optimality <= ACCEPTED).values
    separable = np.zeros(good.shape, dtype=bool)
    if population.outcome == "binary":
        separable = (ds.training_error == 0.0).values & (regularisation == 0.0)
    Q, M, b = (np.where(good, ds[name].values, np.nan) for name in ("Q", "M", "intercept"))
    lost = separable | ~good | ~(Q > 0.0)
    overlaps = Q[~lost], M[~lost], b[~lost]
    if population.outcome == "binary":
        values = binary_performance(binary(model.teacher), names, *overlaps)
    else:
        values = _of_numbers(population, *overlaps)
    found = {}
    for name in names:
        found[name] = np.full(good.shape, np.nan)
        found[name][~lost] = values[name]
    return found, separable


@dataclass(frozen=True)
class Simulated:
    """A quantity over single studies of one size, of which separable ones have none.

    Attributes
    ----------
    mean, stderr, median, deviation : float
        Of the quantity over studies; the standard error is that of the mean.
    separable : float
        Share of the studies whose labels were separable.
    draws : int
        Number of studies.
    """

    mean: float
    stderr: float
    median: float
    deviation: float
    separable: float
    draws: int

    @classmethod
    def of(cls, values: Array, separable: Booleans) -> Simulated:
        """The summary of the values of some studies, NaN where there is none."""
        good = values[np.isfinite(values)]
        if good.size < 2:
            nan = float("nan")
            return cls(nan, nan, nan, nan, float(separable.mean()), len(values))
        deviation = float(good.std(ddof=1))
        return cls(
            mean=float(good.mean()),
            stderr=deviation / float(np.sqrt(good.size)),
            median=float(np.median(good)),
            deviation=deviation,
            separable=float(separable.mean()),
            draws=len(values),
        )


def _of_numbers(population: Population, Q: Array, M: Array, b: Array) -> dict[str, Array]:
    """The same for linear and Poisson's regression: moments of normal and log-normal variables."""
    teacher = population.teacher
    if isinstance(teacher, Linear):
        variance = 1.0
        error = 1.0 + Q - 2.0 * M + b**2
    else:
        assert isinstance(teacher, Poisson) and population.rate is not None
        rate, rho = population.rate, teacher.rho
        variance = rate + rate**2 * np.expm1(rho)
        error = variance + rate**2 - 2.0 * rate * np.exp(b + M + 0.5 * Q) + np.exp(2.0 * (b + Q))
    return {
        "calibration_slope": M / Q,
        "r2": 1.0 - error / variance,
        "generalisation_error": error,
    }
