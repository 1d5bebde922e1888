"""How long a point takes with labels that are neither ±1 nor normal, against brute force."""

import time

import numpy as np
from page import heading

import hiddenmanifold as hm
import labels_oracle as oracle
from hiddenmanifold import losses, noises, teachers

GRID = 12
POINTS = {"n_over_d": np.geomspace(1.0, 6.0, GRID), "p_over_n": np.geomspace(0.2, 3.0, GRID)}
OUTLIERS = ((0.8, 0.2), (0.1, 20.0))


def cases():
    """A label rule, a loss, whether an intercept is fitted, and both for the reference."""
    outliers = noises.Mixture(*OUTLIERS)
    rate = lambda nu: np.exp(0.3 + 0.6 * nu)  # noqa: E731
    mean = lambda nu: np.exp(0.2 + 0.5 * nu)  # noqa: E731
    mixture, huber = ("mixture", *OUTLIERS), (losses.Huber(1.0), False)
    return {
        "linear, outliers, Huber": (
            (teachers.Linear(outliers), *huber),
            (oracle.Additive(lambda nu: nu, mixture), oracle.Huber(1.0)),
        ),
        "tanh, outliers, Huber": (
            (teachers.Real("tanh", outliers), *huber),
            (oracle.Additive(np.tanh, mixture), oracle.Huber(1.0)),
        ),
        "tanh, Laplace, absolute": (
            (teachers.Real("tanh", "laplace(0.5)"), losses.Absolute(), False),
            (oracle.Additive(np.tanh, ("laplace", 0.5)), oracle.Absolute()),
        ),
        "Poisson counts and loss": (
            (teachers.Poisson("exp", 0.3, 0.6), losses.Poisson(), True),
            (oracle.Counts("poisson", rate), oracle.PoissonLoss()),
        ),
        "Gamma labels and loss": (
            (teachers.Gamma("exp", 2.0, 0.2, 0.5), losses.Gamma(), True),
            (oracle.Gamma(mean, 2.0), oracle.GammaLoss()),
        ),
    }


def main() -> None:
    heading(f"Labels of other laws: {GRID} × {GRID} points, one core, CPU time, and brute force")
    print("                           ms/point   brute force, s   ratio   certified")
    for name, ((teacher, loss, intercept), twin) in cases().items():
        ours = {"teacher": teacher, "loss": loss, "intercept": intercept}
        model = hm.Model(activation="tanh", projection="gaussian", **ours)
        options = {"regularisation": 0.1, "workers": 1, "progress": False, "on_failure": "keep"}
        hm.predict(model, n_over_d=3.0, p_over_n=0.5, **options)  # the law is tabulated once
        start = time.process_time()
        ds = hm.predict(model, **POINTS, **options)
        each = (time.process_time() - start) / GRID**2
        start = time.process_time()
        kappas = model.activation.kappas_at(1.0)
        oracle.solve(*twin, alpha=2.0, gamma=2 / 3, lam=0.1, kappas=kappas, intercept=intercept)
        slow = time.process_time() - start
        good = int((ds.status == 0).sum())
        print(f"{name:24} {1e3 * each:10.2f} {slow:16.1f} {slow / each:7.0f}   {good} of {GRID**2}")


if __name__ == "__main__":
    main()
