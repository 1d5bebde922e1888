"""How fast the limit is reached: mean test errors of fits at growing sizes beside the prediction.

For every registered loss, and for every kind of features with a regression and a classification,
the relative difference of the mean error from the limit, with its standard error, at each latent
dimension d; n and p grow with it. The last column is the number c of the law c/d that fits all
sizes. The argument is the number of seeds at d = 80 (50); smaller sizes have as many more as they
are smaller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.api.arguments import sizes_of
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import REGISTRY

LINEAR = hm.teachers.Linear(noise=0.3)
DIMENSIONS = (10, 20, 40, 80)
TEACHERS = {
    "poisson": hm.teachers.Poisson(slope=0.5),
    "gamma": hm.teachers.Gamma(slope=0.5),
    "binomial": "binomial",
}
"""Label rules of losses of label and score; others have linear labels or the sign."""


def power_law(d: int) -> hm.features.Covariance:
    """Covariates whose variances and signal decay."""
    w, seen = (np.arange(1, d + 1) ** -power for power in (0.8, 0.5))
    w, seen = w / w.sum(), seen / seen.sum()
    return hm.features.Covariance(w, seen * w, 1.0)


def random(activation: str, projection: str) -> Callable[[int], dict[str, object]]:
    """Random features, as arguments of a model."""
    return lambda d: {"activation": activation, "projection": projection}


TWO = hm.features.Deep([hm.features.Layer("tanh", width=2.0), hm.features.Layer("erf")])
FEATURES: dict[str, Callable[[int], dict[str, object]]] = {
    **{f"{name}, gaussian": random(name, "gaussian") for name in ("erf", "sign", "relu")},
    **{f"tanh, {name}": random("tanh", name) for name in ("gaussian", "orthogonal", "dct")},
    "two layers": lambda d: {"features": TWO},
    "covariance": lambda d: {"features": power_law(d)},
    "tanh of a covariance": lambda d: {"features": hm.features.Projected(power_law(d), "tanh")},
    **{
        f"kernel {name}": lambda d, name=name: {"kernel": name}
        for name in ("rbf", "laplace", "nngp", "ntk")
    },
}
"""Kinds of features at a latent dimension."""


def rows() -> Iterator[tuple[str, Callable[[int], hm.Model]]]:
    """Names, and the model at each dimension."""
    for name, loss in REGISTRY.items():
        if name == "softmax":  # several classes have their own terms of order 1/n
            continue
        of_numbers = name in TEACHERS or Task.REGRESSION in loss.tasks
        teachers = {"numbers": TEACHERS.get(name, LINEAR)} if of_numbers else {}
        if name not in TEACHERS and Task.CLASSIFICATION in loss.tasks:
            teachers["classes"] = "sign"
        for labels, teacher in teachers.items():
            given = {**random("erf", "gaussian")(0), "teacher": teacher, "loss": name}
            yield f"{name}, {labels}", lambda d, given=given: hm.Model(**given)
    for name, features in FEATURES.items():
        for loss, teacher in (("square", LINEAR), ("logistic", "sign")):
            more = {"teacher": teacher, "loss": loss, "intercept": name.startswith("kernel")}
            yield (
                f"{loss}, {name}",
                lambda d, features=features, more=more: hm.Model(**features(d), **more),
            )


def main(seeds: int = 50) -> None:
    """Print the table."""
    print(f"{'':36} | {' | '.join(f'd = {d:<11}' for d in DIMENSIONS)} | c of c/d")
    for name, model_of in rows():
        cells, numbers, errors = [], [], []
        for d in DIMENSIONS:
            model = model_of(d)
            own = model.features.fixed_ratio is None  # else d determines p
            names = [n for n in sizes_of(model.features) if own or n != "p"]
            sizes = {name: d if name == "d" else 3 * d for name in names}
            many = seeds * DIMENSIONS[-1] // d
            how = {"seeds": many, "n_test": 4000, "seed": 3, "workers": 1, "progress": False}
            ds = hm.compare(model, **sizes, regularisation=0.1, **how)
            limit = float(ds.generalisation_error_theory)
            gap = float(ds.generalisation_error) / limit - 1.0
            error = float(ds.generalisation_error_stderr) / limit
            cells.append(f"{100 * gap:+5.1f} ± {100 * error:.1f} %   ")
            numbers.append(gap * d)
            errors.append(error * d)
        weights = 1.0 / np.square(errors)
        c, error = float(np.average(numbers, weights=weights)), weights.sum() ** -0.5
        print(f"{name:36} | {' | '.join(cells)} | {c:+.2f} ± {error:.2f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
