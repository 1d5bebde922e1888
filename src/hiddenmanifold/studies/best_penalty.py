"""Ridge regression with the best λ: how λ depends on the size, and which size it saves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.api.arguments import Optimal
from hiddenmanifold.api.predict import predict
from hiddenmanifold.arrays import Array
from hiddenmanifold.model import Model
from hiddenmanifold.studies.population import Population

if TYPE_CHECKING:
    import xarray as xr

TUNED = {"binary": "test_loss", "continuous": "generalisation_error", "count": "deviance"}
"""What the best regularisation makes least."""
NODES = 4
"""Sizes at which the best λ is sought; between them it is a cubic in p/n."""
FEWEST = 5
"""Least number of samples that is considered."""
ROUNDS, FINER = 4, 9
"""Rounds of finer sizes within the last gap, and how many."""


def best_penalty(population: Population) -> Optimal:
    """The regularisation of least log-loss, square error or deviance."""
    return Optimal(minimise=TUNED[population.outcome])  # type: ignore[arg-type]


def bayesian_penalty(population: Population) -> float:
    """The λ of a Bayesian who knows the variance of the weights, which is the best for large n."""
    return 1.0 / population.mean_square_weight


def penalty_between(
    population: Population, model: Model, low: float, high: float
) -> Callable[[Array], Array]:
    """The best λ of sizes, from those at a few sizes between two; constant beyond these."""
    p = population.predictors
    nodes = np.geomspace(max(low, FEWEST), max(high, 2 * FEWEST), NODES)
    found = predict(model, n_over_p=nodes / p, regularisation=best_penalty(population), workers=1)
    lams = np.maximum(found.optimal_regularisation.values, np.finfo(float).tiny)
    cubic = np.polynomial.Polynomial.fit(p / nodes, np.log(lams), NODES - 1)

    def penalty(n: Array) -> Array:
        best: Array = np.exp(cubic(p / np.clip(n, nodes[0], nodes[-1])))
        return best

    return penalty


def ridge_size(population: Population, model: Model, n: int) -> int:
    """The n at which ridge with the best λ predicts as well as regression without at `n`.

    The best λ hardly depends on n, and the loss depends on its square: that at `n` is used.
    """
    goal = _tuned(population, model, np.array([float(n)]), np.zeros(1))[0]
    lam = bayesian_penalty(population)
    for spacing in (2.0, 1.2):
        lams = lam * spacing ** np.arange(-2.0, 3.0)
        values = _tuned(population, model, np.full(5, float(n)), lams)
        at = int(np.clip(values.argmin(), 1, 3))
        low, middle, high = values[at - 1 : at + 2]
        lam = lams[at] * spacing ** (0.5 * (low - high) / (low - 2.0 * middle + high))
    sizes = np.geomspace(FEWEST, n, FINER)
    for _ in range(ROUNDS):
        worse = _tuned(population, model, sizes, np.full(FINER, lam)) > goal
        first = int(np.flatnonzero(worse)[-1]) if worse.any() else 0
        sizes = np.geomspace(sizes[first], sizes[min(first + 1, FINER - 1)], FINER)
    return math.ceil(float(sizes[-1]))


def _tuned(population: Population, model: Model, sizes: Array, lams: Array) -> Array:
    """What the best regularisation makes least, at pairs of a size and a λ."""
    name = TUNED[population.outcome]
    ds = predict(
        model,
        n_over_p=_points(sizes / population.predictors),
        regularisation=_points(lams),
        observables=[] if name == "generalisation_error" else [name],
        workers=1,
    )
    values: Array = ds[name].values
    return values


def _points(values: Array) -> xr.DataArray:
    """Values along a dimension of points."""
    import xarray as xr

    return xr.DataArray(values, dims="point")
