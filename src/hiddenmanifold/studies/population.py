r"""Predictors and an outcome by what people know of them: prevalence and AUC, R², or a rate.

Predictors are normal, and the outcome depends on one linear combination of them, the linear
predictor. Its variance is such that a model with the true coefficients has the AUC, or R², asked
for; for binary outcomes the intercept gives the prevalence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from hiddenmanifold import losses, teachers
from hiddenmanifold.checks import check_count, check_number, finite_matrix
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features import Covariance
from hiddenmanifold.model import Model
from hiddenmanifold.notebooks import table
from hiddenmanifold.studies.linear_predictor import (
    binormal_r2,
    entropy,
    intercept_of,
    logistic_auc,
    logistic_r2,
)

WIDEST, NARROWEST = 1e3, 1e-4
"""Standard deviations of the linear predictor among which the one asked for is sought."""
LARGEST_INTERCEPT = 34.0
"""Largest intercept that a logistic rule can have."""
MOST_LOG_RATES = 4.0
"""Largest variance of the logarithm of a count's mean: 95 % of the means differ 3000-fold."""
SHARES = {
    "prevalence": (
        0.0,
        "with no events, or nothing else, there is nothing to predict; give the share of events",
    ),
    "auc": (
        0.5,
        "at 1/2 predictors carry no information, below it the outcome's labels are exchanged, and "
        "at 1 the outcome is known; give the C-statistic that the true model would have",
    ),
    "r2": (0.0, "give the share of the outcome's variance that the true model explains"),
    "cox_snell_r2": (0.0, "give Cox and Snell's R² of the true model"),
}
"""Numbers between some lower bound and 1, and what to know of them."""
LOSSES = {"binary": "logistic", "continuous": "square", "count": "poisson"}
"""The loss of the usual regression of each outcome."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """A population of which a model is to predict an outcome from normal predictors.

    Parameters
    ----------
    outcome : {"binary", "continuous", "count"}
        The kind of outcome.
    predictors : int
        Number of candidate predictors, as columns of the design matrix.
    prevalence : float
        Of a binary outcome: the share of +1, between 0 and 1.
    auc : float
        Of a binary outcome: the C-statistic of the true model, between 1/2 and 1.
    cox_snell_r2 : float
        Of a binary outcome, instead of `auc`: Cox and Snell's R² of the true model.
    r2 : float
        Of a continuous outcome or a count: the share of its variance that the true model explains.
    rate : float
        Of a count: its mean, positive.
    law : {"logistic", "binormal"}
        Of a binary outcome: P(+1) is logistic in one normal linear predictor; or predictors are
        normal within each of two classes, with the same covariance.
    without_signal : int
        How many of the predictors have nothing to do with the outcome. The others have equal
        coefficients.
    covariance : array_like (predictors, predictors), optional
        Covariance of the predictors, within a class if `law` is "binormal"; they are independent,
        of variance one, by default. The last `without_signal` ones carry no signal themselves.

    Raises
    ------
    InvalidArgumentError
        If a number is missing, impossible, or belongs to another kind of outcome.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> hm.Population(outcome="binary", prevalence=0.2, auc=0.85, predictors=10)
    Population(outcome='binary', predictors=10, prevalence=0.2, auc=0.85, law='logistic')
    """

    outcome: Literal["binary", "continuous", "count"] = "binary"
    predictors: int
    prevalence: float | None = None
    auc: float | None = None
    cox_snell_r2: float | None = None
    r2: float | None = None
    rate: float | None = None
    law: Literal["logistic", "binormal"] = "logistic"
    without_signal: int = 0
    covariance: Any = None

    def __post_init__(self) -> None:
        if self.outcome not in LOSSES:
            allowed = "'binary', 'continuous' or 'count'"
            raise InvalidArgumentError("outcome", self.outcome, allowed)
        check_count("predictors", self.predictors)
        check_count("without_signal", self.without_signal, low=0)
        if self.without_signal >= self.predictors:
            raise InvalidArgumentError(
                "without_signal", self.without_signal, f"below {self.predictors}, all predictors"
            )
        self._check_given()
        self._check_ranges()
        if self.covariance is not None:
            self._check_covariance(self.covariance)
        _ = self.teacher  # what is impossible is refused here

    def _check_given(self) -> None:
        """Raise unless the numbers given are those that describe the outcome."""
        needed = {
            "binary": ("prevalence", "auc"),
            "continuous": ("r2",),
            "count": ("rate", "r2"),
        }[self.outcome]
        names = ("prevalence", "auc", "cox_snell_r2", "r2", "rate")
        given = {name for name in names if getattr(self, name) is not None}
        if self.outcome == "binary" and "cox_snell_r2" in given:
            needed = ("prevalence", "cox_snell_r2")
        for name in names:
            if name in needed and name not in given:
                or_r2 = " (or cox_snell_r2)" if name == "auc" else ""
                raise InvalidArgumentError.because(
                    name,
                    f"is missing, which a {self.outcome} outcome needs",
                    f"give {name}=…{or_r2}",
                )
            if name in given and name not in needed:
                raise InvalidArgumentError.because(
                    name,
                    f"cannot be given for a {self.outcome} outcome with {', '.join(needed)}",
                    f"describe it by {' and '.join(needed)} alone",
                )
        if self.law not in ("logistic", "binormal"):
            raise InvalidArgumentError("law", self.law, "'logistic' or 'binormal'")

    def _check_ranges(self) -> None:
        """Raise unless each number is possible by itself."""
        for name, (low, remedy) in SHARES.items():
            if (value := getattr(self, name)) is None:
                continue
            check_number(name, value, -np.inf)
            if not low < value < 1.0:
                between = f"= {value!r} is not between {'1/2' if low else '0'} and 1"
                in_percent = f"write {value:g} % as {value / 100.0:g}"
                told = in_percent if 1.0 < value <= 100.0 else remedy
                raise InvalidArgumentError.because(name, between, told)
        if self.rate is not None:
            check_number("rate", self.rate, 0.0, open_low=True)

    def _check_covariance(self, given: ArrayLike) -> None:
        """Keep the covariance as a tuple of rows; raise unless it is one."""
        matrix = finite_matrix("covariance", given)
        p = self.predictors
        if matrix.shape != (p, p):
            raise InvalidArgumentError.because(
                "covariance", f"has shape {matrix.shape}", f"give one of {p} by {p} predictors"
            )
        if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=0.0):
            raise InvalidArgumentError.because(
                "covariance", "is not symmetric", "give the covariances of the predictors"
            )
        low, *_, high = np.linalg.eigvalsh(matrix) if p > 1 else (matrix[0, 0], matrix[0, 0])
        if not low > 1e-12 * high:
            raise InvalidArgumentError.because(
                "covariance",
                f"has the eigenvalue {low:.3g}",
                "leave out predictors that others determine",
            )
        object.__setattr__(self, "covariance", tuple(map(tuple, matrix.tolist())))

    @property
    def _given(self) -> Iterator[tuple[str, object]]:
        """What describes this population, by name."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is None or (name == "without_signal" and not value):
                continue
            if name != "law" or self.outcome == "binary":
                yield name, value

    def _repr_html_(self) -> str:
        rows = {n: "given" if n == "covariance" else value for n, value in self._given}
        return table("Population", rows)

    def __repr__(self) -> str:
        shown = [
            f"{name}={'…' if name == 'covariance' else repr(value)}" for name, value in self._given
        ]
        return f"Population({', '.join(shown)})"

    @cached_property
    def teacher(self) -> teachers.Teacher:
        """The law of the outcome, given the part of the linear predictor that varies."""
        if self.outcome == "continuous":
            assert self.r2 is not None
            return teachers.Linear(noise=1.0 - self.r2, rho=self.r2)
        if self.outcome == "count":
            assert self.r2 is not None and self.rate is not None
            rho = float(np.log1p(self.r2 / ((1.0 - self.r2) * self.rate)))
            if rho > MOST_LOG_RATES:
                most = self.rate * float(np.expm1(MOST_LOG_RATES))
                raise InvalidArgumentError.because(
                    "r2",
                    f"= {self.r2:g} is out of reach with a rate of {self.rate:g}",
                    f"the mean count would vary by a factor of {np.exp(4.0 * np.sqrt(rho)):.0e} "
                    f"from sample to sample; choose r2 below {most / (1.0 + most):.2g}",
                )
            return teachers.Poisson("exp", intercept=float(np.log(self.rate)) - 0.5 * rho, rho=rho)
        assert self.prevalence is not None
        if self.law == "binormal":
            return teachers.Mixture(prior=self.prevalence, rho=self._distance())
        deviation, intercept = self._logistic()
        return teachers.Logistic(threshold=intercept, rho=deviation**2)

    def _distance(self) -> float:
        """Squared distance of either class from their midpoint, in standard deviations."""
        if self.auc is not None:
            rho = 0.5 * float(scipy.special.ndtri(self.auc)) ** 2
        else:
            rho = self._solved(lambda s: binormal_r2(self._prior, s**2), 10.0) ** 2
        if rho > 100.0:
            raise InvalidArgumentError("auc", self.auc, "below 1 - 1e-44")
        return rho

    @property
    def _prior(self) -> float:
        assert self.prevalence is not None
        return float(self.prevalence)

    def _logistic(self) -> tuple[float, float]:
        """Standard deviation and mean of the linear predictor."""
        prior = self._prior

        def auc(deviation: float) -> float:
            return logistic_auc(intercept_of(prior, deviation), deviation)

        def explained(deviation: float) -> float:
            return logistic_r2(intercept_of(prior, deviation), deviation)

        deviation = self._solved(auc if self.auc is not None else explained, WIDEST)
        intercept = intercept_of(prior, deviation)
        if not abs(intercept) < LARGEST_INTERCEPT:
            name = "auc" if self.auc is not None else "cox_snell_r2"
            raise InvalidArgumentError.because(
                name,
                f"= {getattr(self, name):g} is out of reach at this prevalence",
                f"the linear predictor would vary by {deviation:.3g}: choose a smaller {name}",
            )
        return deviation, intercept

    def _solved(self, function: Callable[[float], float], widest: float) -> float:
        """The deviation at which an increasing function has the value asked for."""
        name = "auc" if self.auc is not None else "cox_snell_r2"
        goal = float(getattr(self, name))

        def excess(log_deviation: float) -> float:
            return function(float(np.exp(log_deviation))) - goal

        ends = np.log([NARROWEST, widest])
        low, high = map(excess, ends)
        if not low < 0.0 < high:
            most = function(widest) if high <= 0.0 else function(NARROWEST)
            side = "below" if high <= 0.0 else "above"
            raise InvalidArgumentError.because(
                name,
                f"= {goal!r} cannot be reached with a prevalence of {self._prior:g}",
                f"give a value {side} {most:.6g}",
            )
        return float(np.exp(scipy.optimize.brentq(excess, *ends, xtol=1e-14, rtol=1e-14)))

    @cached_property
    def features(self) -> Covariance:
        """The predictors, by the spectrum of their covariance and the part of the field in each."""
        p, rho = self.predictors, self.teacher.rho
        if self.covariance is None:
            return Covariance((1.0 / p,) * p, (rho / p**2,) * p, rho)
        values, vectors = np.linalg.eigh(np.array(self.covariance))
        signal = (np.arange(p) < p - self.without_signal).astype(float)
        along = vectors.T @ signal
        along *= np.sqrt(rho / (values @ along**2))
        t = (values * along) ** 2 / p
        return Covariance(tuple((values / p).tolist()), tuple(t.tolist()), rho)

    def model(self, loss: str | losses.ConvexLoss | None = None) -> Model:
        """Regression with an intercept, by default logistic, linear or Poisson's."""
        return Model(
            features=self.features,
            teacher=self.teacher,
            loss=loss or LOSSES[self.outcome],
            intercept=True,
        )

    @property
    def mean_square_weight(self) -> float:
        """Mean square of the true weights, of predictors times the root of their number."""
        w, t = np.array(self.features.eigenvalues), np.array(self.features.teacher_weights)
        return float((t / w**2).mean())

    @property
    def largest_r2(self) -> float:
        """Of a binary outcome: Cox and Snell's R² of a model that knows every outcome."""
        return -float(np.expm1(-2.0 * entropy(self._prior)))

    @cached_property
    def true_r2(self) -> float:
        """R² of the true model: Cox and Snell's of a binary outcome."""
        if self.outcome != "binary":
            assert self.r2 is not None
            return float(self.r2)
        if self.law == "binormal":
            return binormal_r2(self._prior, self.teacher.rho)
        teacher = self.teacher
        assert isinstance(teacher, teachers.Logistic)
        return logistic_r2(teacher.threshold, np.sqrt(teacher.rho))
