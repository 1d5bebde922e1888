"""Compare the search for the best regularisation with dense scans, on random models.

``python benchmarks/best_lambda.py [first seed] [seeds]``; a miss is an optimum that some λ of the
scan beats by more than 1e-9 of the error.
"""

import sys

import numpy as np
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.teachers import Linear, Logistic, Sign

LAMS = np.concatenate([[0.0], np.logspace(-12, 12, 400), [np.inf]])
POINTS = 4
"""Points of each model."""
MISS = 1e-9


def random_model(rng: np.random.Generator) -> hm.Model:
    """Any loss and rule, most of them with unbalanced labels and a free intercept."""
    linear = rng.random() < 0.2
    rules = [
        Sign(noise=rng.choice([0.0, rng.uniform(0, 3)]), threshold=rng.uniform(0, 1.2)),
        Sign(flip=rng.uniform(0, 0.3), threshold=rng.uniform(0, 1.0), rho=rng.uniform(0.4, 2.5)),
        Logistic(slope=rng.uniform(0.5, 4), threshold=rng.choice([0.0, rng.uniform(0, 1)])),
        Sign(noise=rng.uniform(0, 1)),
    ]
    losses = ["square", "huber", "absolute"]
    if not linear:
        losses += ["logistic", "logistic", "hinge", "squared_hinge", "smoothed_hinge"]
    noise = rng.choice([0.0, 0.1, 1.0, 10.0])
    return hm.Model(
        activation=str(rng.choice(["sign", "erf", "relu", "tanh", "identity"])),
        projection=str(rng.choice(["gaussian", "orthogonal"])),
        teacher=Linear(noise=noise) if linear else rules[rng.integers(4)],
        loss=str(rng.choice(losses)),
        intercept=bool(rng.random() < 0.7),
    )


def main(first: int = 0, seeds: int = 25) -> None:
    points = misses = 0
    for seed in range(first, first + seeds):
        rng = np.random.default_rng(seed)
        model = random_model(rng)
        scored = [] if model.task is Task.REGRESSION else ["test_loss", "calibration_error"]
        target = str(rng.choice(["generalisation_error"] * 6 + ["clean_error", *scored]))
        ratios = {
            "n_over_d": xr.DataArray(10 ** rng.uniform(-0.7, 1.5, POINTS), dims="point"),
            "p_over_n": xr.DataArray(10 ** rng.uniform(-1, 1.3, POINTS), dims="point"),
        }
        wanted = hm.Optimal(target)
        best = hm.predict(model, regularisation=wanted, on_failure="keep", **ratios)
        more = [target] if target in scored else ()
        scan = hm.predict(
            model, regularisation=LAMS, on_failure="keep", observables=more, **ratios
        )[target]
        least = scan.min("regularisation")
        excess = best[target].values - least.values
        points += POINTS
        for k in np.flatnonzero(~(excess <= MISS * least.values)):
            misses += 1
            at = LAMS[scan.isel(point=k).argmin("regularisation")]
            place = ", ".join(f"{n} = {float(v[k]):.6g}" for n, v in ratios.items())
            found = float(best.optimal_regularisation[k])
            print(f"seed {seed}: {model}\n  {place}: {target} at {found:.6g} is {excess[k]:.1e}")
            print(f"  above that at {at:.6g}, {float(least[k]):.12g}", flush=True)
    print(f"{points} points of {seeds} random models, {len(LAMS)} λ each: {misses} misses")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
