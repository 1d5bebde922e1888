"""A sample of real data, what it shows of its population, and how far that can be trusted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array, Booleans
from hiddenmanifold.checks import Task
from hiddenmanifold.data import validation
from hiddenmanifold.data.diagnosis import REMEDY, Diagnosis, diagnose
from hiddenmanifold.data.extrapolation import SQUARE, Forecast
from hiddenmanifold.data.leave_one_out import best, left_out
from hiddenmanifold.data.pipelines import objective, task_of
from hiddenmanifold.data.ridge import Ridge
from hiddenmanifold.data.validation import FEWEST_OF_A_CLASS, FEWEST_ROWS, GROUPS, SPLITS, Cost
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss


@dataclass(frozen=True)
class Prediction:
    """Predicted `QUANTITIES`, arrays (quantities, λ), with statistical and systematic errors."""

    value: Array
    statistical: Array
    systematic: Array
    kappa: Array
    resolved: Booleans

    @property
    def deviation(self) -> Array:
        """One standard deviation, of both kinds together."""
        return np.hypot(self.statistical, self.systematic)


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    r"""Real data, as a sample of a population that is to be learned.

    The features are taken as they are: λ belongs to :math:`f = x\cdot w/\sqrt p + b` on these
    columns.

    Parameters
    ----------
    X : table (N, p)
        Features, as a NumPy array, a pandas DataFrame or a scipy.sparse matrix.
    y : sequence
        Labels: numbers, or any two values for classes, of which the larger becomes +1; more than
        two classes are refused.
    task : {"regression", "classification"}, optional
        By default guessed: classes if there are two different labels or if they are words (text,
        objects, categories of pandas), else regression. It is asked for if labels are 3 to 10
        different whole numbers, which may be amounts or classes.
    random_features : bool
        Whether the columns are random features of some kernel, so that curves for another number p
        of them can be asked for.
    scale : None, "standard" or sequence of float
        What to divide the centred columns by: nothing, their standard deviations, or p numbers. It
        is found once, from this sample, and then frozen: `scaled` applies it to other data.

    Attributes
    ----------
    guessed : bool
        Whether the task was guessed.
    classes : pair or None
        The labels that became -1 and +1.
    N, p : int
        Numbers of samples and features.
    loss, regularisation : str or Loss, float; or None
        Those of a pipeline's model, see `from_pipeline`.
    cost : Cost
        Estimated memory, and time on one core, of diagnosis, learning curve and plan by the square
        loss. They are done when first asked for; losses with a kink take ten times as long or more.

    Raises
    ------
    InvalidArgumentError
        If features or labels cannot be used, or the analysis would take too long.
    """

    X: Any
    y: Any
    task: Any = None
    random_features: bool = False
    scale: Any = None
    guessed: bool = field(init=False)
    classes: tuple[Any, Any] | None = field(init=False)
    cost: Cost = field(init=False)
    loss: str | Loss | None = field(init=False, default=None)
    regularisation: float | None = field(init=False, default=None)
    _centre: Array = field(init=False)
    _unit: Array = field(init=False)

    @classmethod
    def from_pipeline(cls, pipeline: Any, X: Any, y: Any, **options: Any) -> Data:
        """The data that the last step of a fitted scikit-learn pipeline sees.

        All steps but the last are applied to X as they were fitted. `loss` and `regularisation` of
        the result are those that fit the same model as the last step, if that is one of
        `hm.estimators`, or scikit-learn's Ridge, RidgeClassifier, LogisticRegression, LinearSVC and
        linear SVC, with an intercept; and None otherwise.

        Parameters
        ----------
        pipeline : sklearn.pipeline.Pipeline
            Fitted; its last step is the model.
        X, y : table, sequence
            What the pipeline takes.
        **options
            Those of `Data`; the `task` is by default that of the model, but two different labels
            are classes for a regressor, too.

        Raises
        ------
        InvalidArgumentError
            If the model has options that change what it minimises, as `class_weight`.

        Warns
        -----
        UserWarning
            If the model penalises its intercept, as LinearSVC with its default options.

        Examples
        --------
        >>> import hiddenmanifold as hm
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X, y)
        >>> data = hm.Data.from_pipeline(pipeline, X, y)
        >>> data.loss, round(data.regularisation, 4)
        ('logistic', 0.3333)
        """
        for name in ("steps", "__getitem__", "predict"):
            if not hasattr(pipeline, name):
                raise InvalidArgumentError("pipeline", pipeline, "a scikit-learn Pipeline")
        seen = pipeline[:-1].transform(X) if len(pipeline) > 1 else X
        data = cls(seen, y, **{"task": task_of(pipeline[-1], y), **options})
        loss, regularisation = objective(pipeline[-1], data.p)
        object.__setattr__(data, "loss", loss)
        object.__setattr__(data, "regularisation", regularisation)
        return data

    def __post_init__(self) -> None:
        X = validation.features(self.X)
        y, task, classes = validation.labels(self.y, len(X), self.task)
        centre, unit = _scaling(X, self.scale)
        X = (X - centre) / unit
        for array in (X, y):
            array.flags.writeable = False
        known = {"X": X, "y": y, "task": task, "guessed": self.task is None, "classes": classes}
        cost = Cost.of(*X.shape)
        if cost.seconds > 60:
            warnings.warn(f"the analysis of this sample needs {cost}", stacklevel=3)
        for name, value in (known | {"cost": cost, "_centre": centre, "_unit": unit}).items():
            object.__setattr__(self, name, value)

    @property
    def description(self) -> str:
        """Numbers of samples and features, and the task, in a few words."""
        guessed = " (guessed from y)" if self.guessed else ""
        classes = f", classes {self.classes[0]!r} and {self.classes[1]!r}" if self.classes else ""
        kind = "random features" if self.random_features else "features"
        return f"{self.N} samples of {self.p} {kind}, {self.task}{guessed}{classes}"

    def __repr__(self) -> str:
        return f"Data({self.description})"

    @property
    def N(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def p(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def own_rows(self) -> int:
        """Rows from which `compare` predicts by default.

        A quarter, at least 50, and up to a half if a class is so rare.
        """
        rare = np.unique(self.y, return_counts=True)[1].min() / self.N if self.classes else 1.0
        return max(FEWEST_ROWS, self.N // 4, min(self.N // 2, int(2 * FEWEST_OF_A_CLASS / rare)))

    def scaled(self, X: Any) -> Array:
        """Other features in the frozen units of this sample."""
        out: Array = (np.asarray(X, dtype=float) - self._centre) / self._unit
        return out

    @cached_property
    def ridge(self) -> Ridge:
        """Ridge regression on the whole sample."""
        return Ridge.of(self.X, self.y)

    @cached_property
    def forecast(self) -> Forecast:
        """Spectral measures of the whole sample.

        Raises
        ------
        InvalidArgumentError
            If a few rows decide the fit at every λ.
        """
        found = self._read(self.ridge)
        if found is None:
            raise InvalidArgumentError.because(
                "data",
                "cannot be extrapolated, because a few rows determine the fit at every λ",
                REMEDY,
            )
        return found

    def forecast_of(self, rows: Any) -> Forecast | None:
        """The same of some of the rows, None if it cannot be read."""
        X, y = self.X[rows], self.y[rows]
        return None if np.ptp(y) == 0 else self._read(Ridge.of(X, y))

    def _read(self, ridge: Ridge) -> Forecast | None:
        return Forecast.of(ridge, classes=self.task is Task.CLASSIFICATION)

    @property
    def best_regularisation(self) -> float:
        """The λ of least mean square leave-one-out error."""
        return self.ridge.best

    def best_for(self, loss: Loss) -> float:
        """The λ of least leave-one-out loss, to a factor of three if it is not the square."""
        try:
            return self._best[loss]
        except KeyError:
            return self._best.setdefault(loss, best(loss, self.task, self.ridge))
        except TypeError:  # one that cannot be hashed
            return best(loss, self.task, self.ridge)

    @cached_property
    def _best(self) -> dict[Loss, float]:
        return {}  # the search takes most of the time of losses with a kink

    @cached_property
    def _without_groups(self) -> list[Forecast | None]:
        order = np.random.default_rng(0).permutation(self.N)
        return [
            self.forecast_of(np.sort(np.delete(order, np.s_[g::GROUPS]))) for g in range(GROUPS)
        ]

    def predicted(
        self,
        n: Array | float,
        lam: Array,
        p: float | None = None,
        *,
        loss: Loss = SQUARE,
        relative: bool = False,
    ) -> Prediction:
        """What fits to n samples will do at some λ, whether or not the sample is `usable`.

        With `relative`, in units of the same at N samples, in which much of the errors cancels.
        """

        def value(forecast: Forecast) -> Array:
            found = forecast.value(n, lam, p, loss)
            return found / forecast.value(self.N, lam, None, loss) if relative else found

        here, now = self.forecast.at(n, lam, p, loss), self.forecast.at(self.N, lam, None, loss)
        here = here.over(now) if relative else here
        spread = np.full_like(here.value, np.inf)  # if the sample without a group is unreadable
        others = [forecast for forecast in self._without_groups if forecast is not None]
        if len(others) == GROUPS:
            values = np.array([value(forecast) for forecast in others])
            spread = np.sqrt((GROUPS - 1.0) * values.var(0))
            spread = np.where(np.isfinite(spread), spread, np.inf)
        systematic = np.abs(here.halved)
        if self.classes:
            doubt = self._doubt(now.value[0], lam, loss)
            if relative:  # a level that is off is off at N, too
                doubt *= np.abs(1.0 - here.value[0]) / now.value[0]
            systematic[0] = np.hypot(systematic[0], doubt)
        return Prediction(here.value, spread, systematic, here.kappa, here.resolved)

    def _doubt(self, expected: Array, lam: Array, loss: Loss) -> Array:
        """How far misclassifications may be from what is expected of a mixture at N samples.

        It is what leave-one-out shows, or as much as it cannot exclude.
        """
        lams, index = np.unique(lam, return_inverse=True)
        counted, error = (part[0][index] for part in self.measured(lams, loss))
        doubt: Array = np.maximum(np.abs(counted - expected), error)
        return doubt

    def measured(self, lam: Array, loss: Loss = SQUARE) -> tuple[Array, Array]:
        """Leave-one-out means of `QUANTITIES` at N samples and their standard errors.

        The training loss is that of the fit itself.
        """
        if not loss.quadratic:
            found = left_out(loss, self.task, self.ridge, lam)
            wrong = (found.shortfall >= loss.anchor).astype(float)
            samples = np.array([wrong, loss.value(found.shortfall), loss.value(found.fitted)])
            means = samples.mean(1)
            means[2] = found.objective / self.N
            return means, samples.std(1, ddof=1) / np.sqrt(self.N)
        path = self.ridge.path(lam)
        square = path.left_out**2
        shown = square
        if self.task is Task.CLASSIFICATION:
            shown = (self.y[:, None] * (self.y[:, None] - path.left_out) <= 0).astype(float)
        products = path.y[:, None] * path.residual
        samples = np.array([shown, 0.5 * square, 0.5 * products])
        return samples.mean(1), samples.std(1, ddof=1) / np.sqrt(self.N)

    @property
    def usable(self) -> bool:
        """Whether nothing in the `diagnosis` speaks against predictions for other sizes."""
        return self.diagnosis.usable

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Whether this sample can speak for more of its kind: questions, values, verdicts."""
        return diagnose(self)

    @cached_property
    def backtest(self) -> float:
        """Relative error of the prediction, from halves, of the leave-one-out error of all."""
        lam, rng = np.array([self.best_regularisation]), np.random.default_rng(1)
        orders = [rng.permutation(self.N) for _ in range(SPLITS)]
        halves = [half for order in orders for half in np.array_split(order, 2)]
        found = [self.forecast_of(half) for half in halves]
        guesses = [np.nan if f is None else f.at(self.N, lam).value[1, 0] for f in found]
        return float(np.mean(guesses) / self.measured(lam)[0][1, 0] - 1.0)


def _scaling(X: Array, scale: Any) -> tuple[Array, Array]:
    """What to subtract from the columns and what to divide them by."""
    p = X.shape[1]
    if scale is None:
        return np.zeros(p), np.ones(p)
    if isinstance(scale, str) and scale == "standard":
        return X.mean(0), X.std(0)
    allowed = f"None, 'standard', or {p} positive numbers"
    try:
        unit = np.asarray(scale, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgumentError("scale", scale, allowed) from None
    if unit.shape != (p,) or not (np.isfinite(unit) & (unit > 0)).all():
        raise InvalidArgumentError("scale", scale, allowed)
    return X.mean(0), unit
