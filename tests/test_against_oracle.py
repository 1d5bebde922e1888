"""Predictions against the slow oracle, which shares no code with the engine."""

import numpy as np
import pytest
from scipy.special import expit

import hiddenmanifold as hm
import oracle

QUANTITIES = (
    "generalisation_error",
    "clean_error",
    "training_loss",
    "V",
    "Q",
    "M",
    "q_s",
    "q_w",
    "m_s",
    "V_s",
    "V_w",
)
TOLERANCE = 1e-8

LOSSES = {
    "square": hm.losses.Square,
    "logistic": hm.losses.Logistic,
    "hinge": hm.losses.Hinge,
    "squared_hinge": hm.losses.SquaredHinge,
    "smoothed_hinge": hm.losses.SmoothedHinge,
    "huber": hm.losses.Huber,
    "absolute": hm.losses.Absolute,
}
BENT = (0.4, 1.0, 2.2)  # a spectrum of three eigenvalues, for d > p
WEIGHTS = (0.5, 0.3, 0.2272727272727273)


def cosh_loss(m):  # a smooth two-sided loss of the margin, flatter than the square far away
    return np.logaddexp(m - 1.0, 1.0 - m)


CUSTOM_LOSS = (cosh_loss, lambda m: np.tanh(m - 1.0), lambda m: 1.0 - np.tanh(m - 1.0) ** 2)


def lopsided(nu):
    return 0.1 + 0.85 * expit(3.0 * nu + 0.5)


def model_of(problem: oracle.Problem, gamma: float) -> hm.Model:
    """The same problem in the library's words."""
    if problem.loss == "custom":
        loss = hm.losses.Custom(*CUSTOM_LOSS)
    else:
        takes_delta = problem.loss in ("smoothed_hinge", "huber")
        loss = LOSSES[problem.loss](**({"delta": problem.delta} if takes_delta else {}))
    rho, noise, flip, threshold = problem.rho, problem.noise, problem.flip, problem.threshold
    teacher = {
        "linear": lambda: hm.teachers.Linear(noise=noise, rho=rho),
        "sign": lambda: hm.teachers.Sign(noise=noise, flip=flip, threshold=threshold, rho=rho),
        "logistic": lambda: hm.teachers.Logistic(
            slope=problem.slope, threshold=threshold, flip=flip, rho=rho
        ),
        "custom": lambda: hm.teachers.Custom(problem.probability, rho=rho),
    }[problem.teacher]()
    projection = problem.projection
    if not isinstance(projection, str):
        projection = hm.projections.Spectrum(*problem.projection[1:], d_over_p=gamma)
    return hm.Model(
        activation=problem.activation,
        projection=projection,
        teacher=teacher,
        loss=loss,
        intercept=problem.intercept,
    )


def point(alpha, gamma, lam, **problem):
    return pytest.param(oracle.Problem(**problem), alpha, gamma, lam)


SPECTRUM = ("spectrum", BENT, WEIGHTS)

# fmt: off
POINTS = [
    # the paper's own models
    point(1/3, 1/9, 1e-4, loss="logistic"),
    point(1.0, 1/3, 1e-4, loss="logistic"),
    point(2.7, 0.9, 1e-4, loss="logistic"),
    point(2.7, 0.9, 1e-4, loss="logistic", projection="orthogonal"),
    point(1.0, 1/3, 1e-3, loss="logistic"),
    point(10.0, 10/3, 1e-4, loss="logistic"),
    point(1.0, 1/3, 1e-4),
    point(1.02, 0.34, 1e-8),
    point(0.3, 0.1, 0.01, activation="erf"),
    point(1.0, 0.1, 1e-6, activation="erf"),
    point(5.0, 0.1, 1.0, activation="erf"),
    point(1.0, 0.5, 1e-8, teacher="linear"),
    point(0.5, 0.25, 1e-8, teacher="linear", projection="orthogonal"),
    point(2.0, 1.0, 0.1, teacher="linear", projection="orthogonal"),
    # every loss, every teacher, in the corners of the ranges
    point(0.02, 0.02, 1e-8, loss="logistic"),
    point(0.02, 20.0, 1e-4, loss="logistic", activation="tanh"),
    point(50.0, 0.02, 1e-8, loss="logistic", activation="erf", projection="orthogonal"),
    point(50.0, 20.0, 1e-8, loss="logistic"),
    point(50.0, 20.0, 1e2, loss="logistic", activation="hard_tanh"),
    point(0.02, 0.02, 1e2, loss="logistic"),
    point(3.0, 0.5, 1e-8, loss="logistic", teacher="logistic", slope=1.0),
    point(1.3, 0.4, 1e-2, loss="logistic", teacher="logistic", slope=8.0, rho=0.5),
    point(1.3, 0.4, 1e-2, loss="logistic", teacher="logistic", slope=2.0, threshold=0.7, flip=0.05),
    point(4.0, 2.0, 1e-3, loss="logistic", teacher="logistic", threshold=-0.5, intercept=True),
    point(1.5, 0.5, 1e-2, loss="logistic", noise=0.5, flip=0.1, rho=2.3, projection="orthogonal"),
    point(1.5, 0.5, 1e-2, loss="logistic", threshold=0.6),
    point(1.5, 0.5, 1e-2, loss="logistic", threshold=0.6, intercept=True),
    point(0.7, 0.3, 1e-5, loss="logistic", threshold=0.6, activation="relu"),
    point(0.7, 0.3, 1e-1, loss="logistic", activation="relu"),
    point(2.0, 1.5, 1e-3, loss="logistic", projection=SPECTRUM),
    point(1.0, 0.5, 1e-2, loss="hinge"),
    point(0.4, 0.2, 1e-6, loss="hinge"),
    point(20.0, 2.0, 1e-3, loss="hinge", flip=0.1),
    point(20.0, 0.5, 1e2, loss="hinge", activation="erf"),
    point(0.1, 5.0, 1e-8, loss="hinge", projection="orthogonal"),
    point(3.0, 0.4, 1e-1, loss="hinge", threshold=0.3, intercept=True),
    point(3.0, 0.4, 1e-1, loss="hinge", teacher="logistic", slope=4.0, activation="tanh"),
    point(0.8, 0.2, 1e-4, loss="squared_hinge"),
    point(6.0, 3.0, 1e-2, loss="squared_hinge", noise=0.3, rho=0.4),
    point(2.0, 0.7, 1e-5, loss="squared_hinge", threshold=-0.8, intercept=True, activation="erf"),
    point(30.0, 0.1, 1e-8, loss="squared_hinge", projection="orthogonal", flip=0.02),
    point(1.0, 0.5, 1e-3, loss="smoothed_hinge", delta=0.5),
    point(5.0, 0.05, 1e-2, loss="smoothed_hinge", delta=2.0, noise=0.1, activation="hard_tanh"),
    point(0.3, 8.0, 1.0, loss="smoothed_hinge", delta=0.1, threshold=0.5),
    point(2.0, 0.6, 1e-2, loss="huber", delta=0.5),
    point(2.0, 0.6, 1e-2, loss="huber", delta=1.0, threshold=0.5, intercept=True),
    point(0.5, 0.2, 1e-6, loss="huber", delta=1.0, flip=0.2, projection="orthogonal"),
    point(1.5, 0.5, 1e-2, loss="absolute", activation="erf"),
    point(0.3, 0.6, 1e-5, loss="absolute", threshold=1.0),
    point(1.2, 0.4, 1e-2, loss="square", threshold=0.7, intercept=True, noise=0.2),
    point(1.2, 0.4, 1e-2, loss="square", threshold=0.7, teacher="logistic", slope=3.0),
    point(40.0, 15.0, 1e-8, loss="square", activation="relu", threshold=0.4),
    # regression
    point(1.0, 0.4, 1e-8, teacher="linear", noise=0.2),
    point(0.05, 3.0, 1e-3, teacher="linear", noise=1.0, rho=2.0, activation="relu"),
    point(45.0, 0.03, 1e-4, teacher="linear", activation="erf", noise=0.01),
    point(2.0, 0.5, 1e-6, teacher="linear", activation="identity", projection="orthogonal"),
    point(2.0, 0.5, 1e-3, teacher="linear", loss="huber", delta=0.7, noise=0.3),
    point(0.4, 0.1, 1e-7, teacher="linear", loss="huber", delta=0.3, noise=0.3, rho=0.3),
    point(3.0, 1.2, 1e-2, teacher="linear", loss="absolute", noise=0.5, projection="orthogonal"),
    point(0.6, 4.0, 1e-5, teacher="linear", loss="absolute", activation="tanh"),
    point(2.0, 1.5, 1e-3, teacher="linear", noise=0.1, projection=SPECTRUM),
    # the ordinary i.i.d. model
    point(3.0, 1.0, 1e-6, activation="identity", projection="orthogonal", loss="logistic",
          teacher="logistic", slope=2.0),
    point(2.0, 1.0, 1e-3, activation="identity", projection="orthogonal", loss="hinge"),
    point(8.0, 0.5, 1e-6, activation="identity", loss="logistic"),
    # the user's own loss and rule
    point(1.5, 0.5, 1e-2, loss="custom", value=CUSTOM_LOSS[0], derivative=CUSTOM_LOSS[1],
          second_derivative=CUSTOM_LOSS[2]),
    point(0.6, 0.2, 1e-5, loss="custom", value=CUSTOM_LOSS[0], derivative=CUSTOM_LOSS[1],
          second_derivative=CUSTOM_LOSS[2], flip=0.1),
    point(1.5, 0.5, 1e-2, loss="logistic", teacher="custom", probability=lopsided),
    point(2.5, 0.5, 1e-2, loss="squared_hinge", teacher="custom", probability=lopsided,
          intercept=True),
]
# fmt: on


def test_there_are_enough_points_over_all_ingredients():
    problems = [p.values[0] for p in POINTS]
    assert len(POINTS) >= 60
    assert {p.loss for p in problems} == {*LOSSES, "custom"}
    assert {p.teacher for p in problems} == {"linear", "sign", "logistic", "custom"}
    assert {p.activation for p in problems} == set(hm.activations.REGISTRY)


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "alpha", "gamma", "lam"), POINTS)
def test_prediction_agrees_with_the_oracle(by_each_engine, problem, alpha, gamma, lam):
    model = model_of(problem, gamma)
    ratios = {"n_over_p": alpha}
    if model.projection.fixed_ratio is None:
        ratios["d_over_p"] = gamma
    truth = None
    for found in by_each_engine(lambda: hm.predict(model, regularisation=lam, **ratios)):
        names = (*QUANTITIES, *(("training_error",) if "training_error" in found else ()))
        # the solution is unique: starting the oracle near it only saves time
        start = {name: float(found[name]) for name in ("V", "Q", "M", "intercept")}
        truth = truth or oracle.solve(problem, alpha, gamma, lam, start=start)
        for name in names:
            assert float(found[name]) == pytest.approx(truth[name], rel=TOLERANCE, abs=1e-30), name
        scale = np.sqrt(truth["Q"])
        assert float(found["intercept"]) == pytest.approx(truth["intercept"], abs=TOLERANCE * scale)
        assert float(found["quadrature_error"]) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "alpha", "gamma", "lam"), POINTS[1::12])
def test_oracle_reaches_the_same_solution_from_its_own_start(problem, alpha, gamma, lam):
    found = hm.predict(model_of(problem, gamma), regularisation=lam, n_over_p=alpha, d_over_p=gamma)
    truth = oracle.solve(problem, alpha, gamma, lam)
    for name in QUANTITIES:
        assert float(found[name]) == pytest.approx(truth[name], rel=TOLERANCE, abs=0.0), name
