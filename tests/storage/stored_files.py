"""Write the files under tests/storage/files, which every later version must read.

    python tests/storage/stored_files.py tests/storage/files/NAME

writes a store and a netCDF file with the version of hiddenmanifold that is installed. NAME says
which: `commit_14b87c2` is the version that kept a hash of its sources in the store, `algorithm_1`
the first that keeps a version of the algorithm. When ALGORITHM_VERSION is raised, write the files
of the new version beside these, and keep the old ones.
"""

import sys
from pathlib import Path

import hiddenmanifold as hm

SIZES = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "d": 12, "seeds": 2, "n_test": 30}


def model(**ingredients):
    usual = {"activation": "erf", "projection": "gaussian", "teacher": "sign", "loss": "logistic"}
    return hm.Model(**usual | ingredients)


def own_activation(x):
    return x + 0.5 * x**2


CASES = {
    "logistic": (model(), {"regularisation": [0.01, 1.0]}),
    "single": (model(activation="relu"), {"regularisation": 0.1}),
    "hinge": (model(loss="hinge", projection="orthogonal"), {"regularisation": [0.01, 1.0]}),
    "square": (
        model(loss="square", teacher=hm.teachers.Linear(noise=0.3)),
        {"regularisation": [0.0, 0.1]},
    ),
    "huber": (
        model(loss=hm.losses.Huber(0.5), teacher=hm.teachers.Linear(noise=0.3), intercept=True),
        {"regularisation": [1e-3, 0.1]},
    ),
    "flips": (
        model(teacher=hm.teachers.Sign(flip=0.1), intercept=True),
        {"regularisation": 0.1, "observables": ["auc"]},
    ),
    "margins": (model(), {"regularisation": 0.1, "margins": [0.0, 1.0]}),
    "equivalent": (model(), {"regularisation": 0.1, "data": "equivalent", "seed": 3}),
    "deep": (
        model(
            activation=None,
            projection=None,
            features=hm.features.Deep(
                [hm.features.Layer("tanh", width=2.0), hm.features.Layer("erf")]
            ),
        ),
        {"regularisation": 0.1},
    ),
}
OWN = model(activation=own_activation), {"regularisation": 0.1}


def simulated(case, **options):
    """One of the cases."""
    rule, arguments = case
    return hm.simulate(rule, **SIZES | arguments, progress=False, **options)


def main(directory):
    """Write the files."""
    directory.mkdir(parents=True)
    for case in (*CASES.values(), OWN):
        ds = simulated(case, store=directory / "store.db")
        if case is CASES["logistic"]:
            ds.to_netcdf(directory / "simulation.nc", engine="scipy")
    rule, _ = CASES["logistic"]
    ds = hm.predict(rule, n_over_d=2.0, p_over_n=[0.5, 2.0], regularisation="optimal")
    ds.to_netcdf(directory / "prediction.nc", engine="scipy")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
