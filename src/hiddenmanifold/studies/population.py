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
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import check_count, check_number, finite_matrix
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features import Covariance
from hiddenmanifold.model import Model
from hiddenmanifold.notebooks import table
from hiddenmanifold.numerics.panels import FAR, Panels, fanned
from hiddenmanifold.numerics.special import normal_density

KNOTS = np.arange(-40.0, 41.0, 4.0)
"""Values of a linear predictor between which the logistic function is resolved."""
RULE = (20, 1)
"""Gauss–Legendre nodes of a panel, and halvings: 1e-14, as `RULE` with more shows."""
WIDEST, NARROWEST = 1e3, 1e-4
"""Standard deviations of the linear predictor among which the one asked for is sought."""
LARGEST_INTERCEPT = 34.0
"""Largest intercept that a logistic rule can have."""
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
                    name, f"is missing: a {self.outcome} outcome needs it", f"give {name}=…{or_r2}"
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
        for name in ("prevalence", "r2", "cox_snell_r2"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value, 0.0, 1.0, open_low=True)
                if value == 1.0:
                    raise InvalidArgumentError(name, value, "below 1")
        if self.rate is not None:
            check_number("rate", self.rate, 0.0, open_low=True)
        if self.auc is not None:
            check_number("auc", self.auc, 0.0, 1.0)
            if not 0.5 < self.auc < 1.0:
                raise InvalidArgumentError.because(
                    "auc",
                    f"= {self.auc:g} is not between 1/2 and 1",
                    "at 1/2 predictors carry no information, below it the outcome's labels are "
                    "exchanged, and at 1 the outcome is known: give the C-statistic that the true "
                    "model would have",
                )

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
                f"= {goal:g} cannot be reached with a prevalence of {self._prior:g}",
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
        return -float(np.expm1(-2.0 * _entropy(self._prior)))

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


def _entropy(p: float) -> float:
    """Mean log-loss of the best constant."""
    return float(scipy.special.entr(p) + scipy.special.entr(1.0 - p))


def _averages(mean: float, deviation: float, *functions: Callable[[Array, Array], Array]) -> Array:
    """Averages over a normal g of functions of g and of its standardised value."""
    cuts = (KNOTS - mean) / max(deviation, 1e-300)
    panels = Panels.between(fanned(FAR, cuts[None]), RULE)
    g = mean + deviation * panels.nodes
    return np.array([float(panels.sum(f(g, panels.nodes))[0]) for f in functions])


def intercept_of(prevalence: float, deviation: float) -> float:
    """The mean of a linear predictor of given deviation for which P(+1) is the prevalence."""
    goal = float(scipy.special.logit(prevalence))

    def excess(mean: float) -> float:
        plus, minus = _averages(
            mean,
            deviation,
            lambda g, _: scipy.special.expit(g),
            lambda g, _: scipy.special.expit(-g),
        )
        return float(np.log(plus) - np.log(minus)) - goal

    far = abs(goal) * (1.0 + 0.7 * deviation) + 1.0
    return float(scipy.optimize.brentq(excess, -far, far, xtol=1e-14, rtol=1e-14))


def logistic_auc(mean: float, deviation: float) -> float:
    r"""AUC of a normal linear predictor: half the Gini mean difference of :math:`\sigma(g)`.

    With :math:`p = \sigma(g)` it is
    :math:`\frac12 + E|p - p'|/(4\pi(1-\pi))`, and
    :math:`E|p - p'| = 2\int\Phi(z)\Phi(-z)\,dp`.
    """
    plus, minus, spread = _averages(
        mean,
        deviation,
        lambda g, _: scipy.special.expit(g),
        lambda g, _: scipy.special.expit(-g),
        lambda g, z: (
            deviation
            * scipy.special.expit(g)
            * scipy.special.expit(-g)
            * scipy.special.ndtr(z)
            * scipy.special.ndtr(-z)
            / np.maximum(normal_density(z), 1e-320)
        ),
    )
    return float(0.5 + 0.5 * spread / (plus * minus))


def logistic_r2(mean: float, deviation: float) -> float:
    """Cox and Snell's R² of a normal linear predictor."""
    plus, loss = _averages(
        mean,
        deviation,
        lambda g, _: scipy.special.expit(g),
        lambda g, _: (
            scipy.special.expit(g) * np.logaddexp(0.0, -g)
            + scipy.special.expit(-g) * np.logaddexp(0.0, g)
        ),
    )
    return -float(np.expm1(2.0 * (loss - _entropy(plus))))


def binormal_r2(prior: float, rho: float) -> float:
    """Cox and Snell's R² of two normal classes at the squared distance rho from their midpoint."""
    offset = float(scipy.special.logit(prior))
    loss = 0.0
    for share, y in ((prior, 1.0), (1.0 - prior, -1.0)):
        # the margin of the true linear predictor is normal of mean 2 rho and variance 4 rho
        (part,) = _averages(
            2.0 * rho + y * offset, 2.0 * np.sqrt(rho), lambda g, _: np.logaddexp(0.0, -g)
        )
        loss += share * float(part)
    return -float(np.expm1(2.0 * (loss - _entropy(prior))))
