"""The model that is measured, and random ones over all ingredients."""

import numpy as np
from scipy.special import expit

import hiddenmanifold as hm


def model(loss="logistic", teacher="sign") -> hm.Model:
    """That of the paper's Figure 3, or with another loss or rule."""
    return hm.Model(activation="sign", projection="gaussian", teacher=teacher, loss=loss)


def bump(nu):
    return 0.05 + 0.9 * expit(2.0 * nu - 0.3)


def custom_loss():
    return hm.losses.Custom(
        lambda m: np.logaddexp(0.0, -m), lambda m: -expit(-m), lambda m: expit(m) * expit(-m)
    )


def pseudo_huber() -> hm.losses.Custom:
    """A smooth loss of the margin that the package does not have."""

    def root(m):
        return np.sqrt(1.0 + (1.0 - m) ** 2)

    return hm.losses.Custom(root, lambda m: (m - 1.0) / root(m), lambda m: root(m) ** -3)


def random_model(rng: np.random.Generator) -> hm.Model:
    """A model with random ingredients and random parameters."""
    rho = float(np.exp(rng.uniform(-1.5, 1.5)))
    threshold = float(rng.choice([0.0, rng.normal()]))
    flip = float(rng.choice([0.0, rng.uniform(0.0, 0.3)]))
    noise = float(rng.choice([0.0, np.exp(rng.uniform(-4, 1))]))
    slope = float(np.exp(rng.uniform(-1, 3)))
    teachers = [
        hm.teachers.Sign(noise=noise, flip=flip, threshold=threshold, rho=rho),
        hm.teachers.Logistic(slope=slope, threshold=threshold, flip=flip, rho=rho),
        hm.teachers.Linear(noise=noise, rho=rho),
        hm.teachers.Custom(bump, rho=rho),
    ]
    teacher = teachers[rng.choice(4, p=[0.5, 0.15, 0.3, 0.05])]
    delta = float(np.exp(rng.uniform(-2, 1)))
    losses = ["square", hm.losses.Huber(delta), "absolute"]
    if not isinstance(teacher, hm.teachers.Linear):
        losses += ["logistic", "logistic", "hinge", "hinge", "squared_hinge"]
        losses += [hm.losses.SmoothedHinge(delta), custom_loss()]
    return hm.Model(
        activation=str(rng.choice(list(hm.activations.REGISTRY))),
        projection=str(rng.choice(list(hm.projections.REGISTRY))),
        teacher=teacher,
        loss=losses[rng.integers(len(losses))],
        intercept=bool(rng.random() < 0.3),
    )


def random_points(rng: np.random.Generator, points: int) -> dict:
    """Log-uniform n/p and d/p in [1e-3, 1e3] and regularisation in [1e-10, 1e4], zipped."""
    import xarray as xr

    def draw(low, high):
        return xr.DataArray(10.0 ** rng.uniform(low, high, points), dims="point")

    return {"n_over_p": draw(-3, 3), "d_over_p": draw(-3, 3), "regularisation": draw(-10, 4)}
