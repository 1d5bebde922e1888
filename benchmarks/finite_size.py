"""How fast the limit is reached: mean test errors of fits at growing sizes beside the prediction.

For every loss and kind of features the relative difference of the mean error from the limit, with
its standard error, at each latent dimension d; n and p grow with it. The last column is the number
c of the law c/d that fits all sizes, and the argument the number of seeds at d = 80 (50); smaller
sizes have as many more as they are smaller.
"""

from __future__ import annotations

import sys

import numpy as np

import hiddenmanifold as hm

LINEAR = hm.teachers.Linear(noise=0.3)
DIMENSIONS = (10, 20, 40, 80)
THREE = {"n_over_d": 3.0, "p_over_n": 1.0}


def models() -> dict[str, tuple[hm.Model, dict[str, float]]]:
    """Models by name, with their ratios and λ."""

    def random(activation: str, projection: str, teacher: object, loss: str) -> hm.Model:
        return hm.Model(activation=activation, projection=projection, teacher=teacher, loss=loss)

    two = hm.features.Deep([hm.features.Layer("tanh", width=2.0), hm.features.Layer("erf")])
    three = {**THREE, "regularisation": 0.1}
    ten = hm.teachers.Logistic(slope=2.0)
    white = {"n_over_d": 10.0, "p_over_n": 0.1, "regularisation": 1e-6}
    counts = hm.teachers.Poisson(slope=0.5)
    return {
        "logistic, sign features": (random("sign", "gaussian", "sign", "logistic"), three),
        "hinge, orthogonal erf features": (random("erf", "orthogonal", "sign", "hinge"), three),
        "squared hinge, tanh features": (
            random("tanh", "gaussian", "sign", "squared_hinge"),
            three,
        ),
        "square, tanh features": (random("tanh", "gaussian", LINEAR, "square"), three),
        "huber, erf features": (random("erf", "gaussian", LINEAR, "huber"), three),
        "absolute, tanh features": (random("tanh", "gaussian", LINEAR, "absolute"), three),
        "Poisson, tanh features": (random("tanh", "gaussian", counts, "poisson"), three),
        "square, two layers": (hm.Model(features=two, teacher=LINEAR, loss="square"), three),
        "square, neural tangent kernel": (
            hm.Model(kernel="ntk", teacher=LINEAR, loss="square", intercept=True),
            {"n_over_d": 3.0, "regularisation": 0.1},
        ),
        "logistic, n = 10 p predictors": (random("identity", "orthogonal", ten, "logistic"), white),
    }


def main(seeds: int = 50) -> None:
    """Print the table."""
    print(f"{'':32} | {' | '.join(f'd = {d:<11}' for d in DIMENSIONS)} | c of c/d")
    for name, (model, point) in models().items():
        cells, numbers, errors = [], [], []
        for d in DIMENSIONS:
            many = seeds * DIMENSIONS[-1] // d
            ds = hm.compare(model, **point, d=d, seeds=many, n_test=4000, seed=3, progress=False)
            limit = float(ds.generalisation_error_theory)
            gap = float(ds.generalisation_error) / limit - 1.0
            error = float(ds.generalisation_error_stderr) / limit
            cells.append(f"{100 * gap:+5.1f} ± {100 * error:.1f} %   ")
            numbers.append(gap * d)
            errors.append(error * d)
        weights = 1.0 / np.square(errors)
        c = float(np.average(numbers, weights=weights))
        print(
            f"{name:32} | {' | '.join(cells)} | {c:+.2f} ± {weights.sum() ** -0.5:.2f}", flush=True
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
