"""The update equations are the stationarity of a free energy that is written independently."""

from dataclasses import fields, replace

import numpy as np
import pytest

import hiddenmanifold as hm
from free_energy import State, free_energy
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
from hiddenmanifold.theory.solver.strategy import solve

POINT = {"alpha": 1.7, "gamma": 0.6, "lam": 0.05}
SKEW = hm.teachers.Sign(noise=0.2, flip=0.05, threshold=0.3, rho=1.4)
MODELS = {
    "logistic": ("erf", "gaussian", SKEW, "logistic", True),
    "hinge": ("erf", "gaussian", SKEW, "hinge", True),
    "squared hinge": ("relu", "orthogonal", SKEW, "squared_hinge", False),
    "smoothed hinge": ("tanh", "gaussian", "sign", hm.losses.SmoothedHinge(0.5), False),
    "huber": ("sign", "orthogonal", SKEW, hm.losses.Huber(0.5), False),
    "logistic rule": ("sign", "gaussian", hm.teachers.Logistic(slope=2.0), "logistic", False),
    "square": ("hard_tanh", "gaussian", SKEW, "square", True),
    "ridge": ("erf", "gaussian", hm.teachers.Linear(noise=0.3, rho=0.7), "square", False),
    "absolute": ("erf", "orthogonal", hm.teachers.Linear(noise=0.3), "absolute", False),
}


@pytest.fixture(scope="module", params=MODELS)
def saddle(request):
    """A model with its state at the saddle point and its training loss."""
    activation, projection, teacher, loss, intercept = MODELS[request.param]
    model = hm.Model(
        activation=activation,
        projection=projection,
        teacher=teacher,
        loss=loss,
        intercept=intercept,
    )
    ds = hm.predict(
        model,
        n_over_p=POINT["alpha"],
        d_over_p=POINT["gamma"],
        regularisation=POINT["lam"],
    )
    points = Points.of(*(np.array([POINT[name]]) for name in ("alpha", "gamma", "lam")))
    e = solve(SaddlePoint.of(model, points)).e[0]
    overlaps = (float(ds[name]) for name in ("V", "Q", "M", "intercept"))
    return model, State(*overlaps, *(POINT["alpha"] * e)), float(ds.training_loss)


def test_free_energy_at_the_saddle_point_is_the_training_loss(saddle):
    model, state, training_loss = saddle
    assert free_energy(model, **POINT, state=state) == pytest.approx(
        POINT["alpha"] * training_loss, rel=1e-11
    )


@pytest.mark.slow
def test_free_energy_is_stationary_in_every_variable(saddle):
    model, state, _ = saddle
    fixed = () if model.free_intercept else ("intercept",)
    for name in {field.name for field in fields(State)}.difference(fixed):
        here = getattr(state, name)
        size = max(abs(here), 0.1)

        def slope(step, name=name, here=here, size=size):
            above, below = (
                free_energy(model, **POINT, state=replace(state, **{name: here + offset * size}))
                for offset in (step, -step)
            )
            return (above - below) / (2 * step)

        richardson = (4 * slope(5e-4) - slope(1e-3)) / 3
        assert richardson == pytest.approx(0.0, abs=1e-8), name


def test_free_energy_is_not_stationary_elsewhere(saddle):
    model, state, training_loss = saddle
    moved = replace(state, Q=1.3 * state.Q, v_hat=1.3 * state.v_hat)
    change = free_energy(model, **POINT, state=moved) - POINT["alpha"] * training_loss
    assert abs(change) > 1e-4
