"""Other solvers of our objectives: scikit-learn where it has the same one, else scipy.optimize.

Each function returns candidates by name, which take a tolerance and return the weights v and the
intercept b of a predictor x·v + b.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import optimize
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.data.sklearn_conventions import to_glm_alpha
from hiddenmanifold.losses import ConvexLoss
from hiddenmanifold.simulation.samples import Sample

Weights = tuple[np.ndarray, float]
Candidate = Callable[[float], Weights]


@dataclass(frozen=True)
class Problem:
    """A sample to be fitted with a loss; `name` is for the table."""

    loss: ConvexLoss
    task: Task
    train: Sample
    intercept: bool = False
    name: str = ""


def quietly(estimator, X: np.ndarray, y: np.ndarray):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a tolerance was not met shows in the gap
        return estimator.fit(X, y)


def logistic_candidates(train: Sample, lam: float) -> dict[str, Candidate]:
    C = hm.to_sklearn_C(lam, train.X.shape[1])

    def fit(solver: str, tolerance: float) -> Weights:
        estimator = LogisticRegression(
            C=C, solver=solver, tol=tolerance, max_iter=100_000, fit_intercept=False
        )
        return quietly(estimator, train.X, train.y).coef_[0], 0.0

    return {name: partial(fit, name) for name in ("lbfgs", "newton-cg", "newton-cholesky")}


def hinge_candidates(train: Sample, lam: float) -> dict[str, Candidate]:
    """Without an intercept: scikit-learn's SVC always has one."""
    C = hm.to_sklearn_C(lam, train.X.shape[1])

    def fit(tolerance: float) -> Weights:
        estimator = LinearSVC(
            C=C, loss="hinge", tol=tolerance, max_iter=30_000, fit_intercept=False, random_state=0
        )
        return quietly(estimator, train.X, train.y).coef_[0], 0.0

    return {"LinearSVC": fit}


def support_vector_candidates(train: Sample, lam: float) -> dict[str, Candidate]:
    """With an intercept: scikit-learn's LinearSVC would penalise it."""
    C = hm.to_sklearn_C(lam, train.X.shape[1])

    def fit(kernel: str, tolerance: float) -> Weights:
        gram = train.X @ train.X.T if kernel == "precomputed" else train.X
        estimator = SVC(C=C, kernel=kernel, tol=tolerance, cache_size=1000, max_iter=10_000_000)
        quietly(estimator, gram, train.y)
        v = estimator.dual_coef_[0] @ train.X[estimator.support_]
        return v, float(estimator.intercept_[0])

    return {f"SVC({name})": partial(fit, name) for name in ("precomputed", "linear")}


def ridge_candidates(train: Sample, lam: float) -> dict[str, Candidate]:
    alpha = hm.to_ridge_alpha(lam, train.X.shape[1])

    def fit(solver: str, tolerance: float) -> Weights:
        estimator = Ridge(
            alpha=alpha, solver=solver, tol=tolerance, max_iter=100_000, fit_intercept=False
        )
        return quietly(estimator, train.X, train.y).coef_, 0.0

    return {name: partial(fit, name) for name in ("cholesky", "svd", "lsqr", "sparse_cg")}


def glm_candidates(problem: Problem, lam: float) -> dict[str, Candidate]:
    """scikit-learn's regressions of counts and amounts."""
    train = problem.train
    estimator = {"poisson": PoissonRegressor, "gamma": GammaRegressor}[problem.name]
    alpha = to_glm_alpha(lam, train.X.shape[1], n=len(train.y))

    def fit(solver: str, tolerance: float) -> Weights:
        made = estimator(alpha=alpha, solver=solver, tol=tolerance, max_iter=100_000)
        found = quietly(made, train.X, train.y)
        return found.coef_, float(found.intercept_)

    return {name: partial(fit, name) for name in ("lbfgs", "newton-cholesky")}


def huber_candidates(problem: Problem, lam: float) -> dict[str, Candidate]:
    """Methods of scipy.optimize; scikit-learn's `HuberRegressor` also fits a scale."""
    train, p = problem.train, problem.train.X.shape[1]

    def value(v: np.ndarray) -> tuple[float, np.ndarray]:
        s = train.y - train.X @ v
        total = float(problem.loss.value(s).sum()) + 0.5 * lam * p * float(v @ v)
        return total, lam * p * v - train.X.T @ problem.loss.derivative(s)

    def product(v: np.ndarray, direction: np.ndarray) -> np.ndarray:
        bend = problem.loss.second_derivative(train.y - train.X @ v)
        return lam * p * direction + train.X.T @ (bend * (train.X @ direction))

    def fit(method: str, tolerance: float) -> Weights:
        options = {"maxiter": 100_000}
        if method == "L-BFGS-B":
            options |= {"ftol": tolerance, "gtol": 0.0, "maxfun": 1_000_000}
        else:
            options |= {"gtol": tolerance} if method == "trust-ncg" else {"xtol": tolerance}
        hessp = None if method == "L-BFGS-B" else product
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = optimize.minimize(
                value, np.zeros(p), jac=True, hessp=hessp, method=method, options=options
            )
        return found.x, 0.0

    return {name: partial(fit, name) for name in ("L-BFGS-B", "Newton-CG", "trust-ncg")}


def quantile_candidates(problem: Problem, lam: float) -> dict[str, Candidate]:
    """The dual problem, of the samples' slopes in a box, by methods of scipy.optimize for boxes.

    scikit-learn's `QuantileRegressor` penalises absolute values of the weights.
    """
    train, p = problem.train, problem.train.X.shape[1]
    level = problem.loss.level
    gram = train.X @ train.X.T / (lam * p)

    def value(h: np.ndarray) -> tuple[float, np.ndarray]:
        pull = gram @ h
        return float(0.5 * h @ pull - train.y @ h), pull - train.y

    def by_descent(tolerance: float) -> Weights:
        options = {"ftol": tolerance, "gtol": 0.0, "maxiter": 100_000, "maxfun": 1_000_000}
        bounds = [(level - 1.0, level)] * len(train.y)
        found = optimize.minimize(
            value,
            np.zeros(len(train.y)),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options=options,
        )
        return train.X.T @ found.x / (lam * p), 0.0

    return {"L-BFGS-B of the dual": by_descent}


def tube_candidates(problem: Problem, lam: float) -> dict[str, Candidate]:
    """scikit-learn's support vector regression."""
    train = problem.train
    C = hm.to_sklearn_C(lam, train.X.shape[1])

    def fit(kernel: str, tolerance: float) -> Weights:
        gram = train.X @ train.X.T if kernel == "precomputed" else train.X
        width = problem.loss.width
        estimator = SVR(
            C=C, kernel=kernel, epsilon=width, tol=tolerance, cache_size=1000, max_iter=3_000_000
        )
        quietly(estimator, gram, train.y)
        v = estimator.dual_coef_[0] @ train.X[estimator.support_]
        return v, float(estimator.intercept_[0])

    return {f"SVR({name})": partial(fit, name) for name in ("precomputed", "linear")}
