"""A sample of real data, as users give it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from hiddenmanifold import notebooks
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import Task, resolve
from hiddenmanifold.data import validation
from hiddenmanifold.data.analysis import Analysis
from hiddenmanifold.data.diagnosis import Diagnosis, diagnose
from hiddenmanifold.data.preparation import prepared, scaling_hint
from hiddenmanifold.data.row_weights import row_weights
from hiddenmanifold.data.sklearn_conventions import objective, task_of
from hiddenmanifold.data.validation import (
    FEWEST_OF_A_CLASS,
    FEWEST_OF_SEVERAL,
    FEWEST_ROWS,
    Cost,
    listed,
)
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import REGISTRY, ConvexLoss, Loss, Softmax, check_loss

OF_CLASSES = (
    "'square' or 'softmax' for more than two classes, or 'logistic' or 'squared_hinge' for each "
    "against all others; a slope that jumps is for two classes, as of Data(..., positive=one)"
)
"""Losses of more than two classes: those whose mean curvature tells what ridge they resemble."""


class Data(Analysis):
    r"""Real data, as a sample of a population that is to be learned.

    The features are taken as they are: λ belongs to :math:`f = x\cdot w/\sqrt p + b` on these
    columns.

    Parameters
    ----------
    X : table (N, columns)
        A NumPy array, a pandas DataFrame or a scipy.sparse matrix. Constant columns are left out;
        missing values are filled with medians and flagged in columns of their own. Of a data
        frame, text with up to 12 levels becomes columns of 0 and 1, while text with more levels,
        dates, counters and identifiers (integers that are all different) are left out. A warning
        says what was done; arrays may have any integers.
    y : sequence
        Labels: numbers, or classes of any kind: words, or whole numbers. Of two classes the larger
        becomes +1.
    task : {"regression", "classification"}, optional
        By default guessed: classes if there are two different labels or if they are words (text,
        objects, categories of pandas), else regression. It is required if labels are 3 to 10
        different whole numbers, which may be amounts or classes.
    random_features : bool
        Whether the columns are random features of some kernel, so that curves for another number p
        of them can be asked for.
    positive : label, optional
        One class, to be told from all others together, which become -1.
    scale : None, "standard" or sequence of float
        The divisors of the centred columns: none, their standard deviations, or p numbers. They
        are computed once, from this sample, and then frozen: `scaled` applies them to other data.

    Attributes
    ----------
    guessed : bool
        Whether the task was guessed.
    classes : tuple or None
        The labels that became -1 and +1, or those of the columns of `y`.
    rows_of_classes : array of int
        Rows of each of them.
    N, p : int
        Numbers of samples and features.
    columns : list of str
        Names of the features.
    notes, hint : list of str, str
        What was done to the table, as sentences, and advice to scale its columns, or "".
    preparation : ColumnTransformer or Pipeline
        The same as a transformer of scikit-learn, scaling included; not fitted. A pipeline of it
        and a linear model is what is predicted.
    loss, regularisation : str or Loss, float; or None
        Those of a pipeline's model, see `from_pipeline`.
    weights : RowWeights or None
        How many times each row counts in the pipeline's fit, and so in all that is predicted.
    cost : Cost
        Estimated memory, and time on one core, of diagnosis, learning curve and plan by the square
        loss. They are done when first asked for; losses with a kink take ten times as long or more.

    Raises
    ------
    InvalidArgumentError
        If features or labels cannot be used, or the analysis would take too long.
    """

    loss: str | ConvexLoss | None = None
    regularisation: float | None = None

    def __init__(
        self,
        X: Any,
        y: Any,
        task: Any = None,
        random_features: bool = False,
        scale: Any = None,
        *,
        positive: Any = None,
    ) -> None:
        rows = _rows(X)
        (table, self._prepared), (labels, known, self.classes) = _both(
            rows, lambda: prepared(X), lambda: validation.labels(y, rows, task, positive)
        )
        if self._prepared.notes:
            warnings.warn("; ".join(self._prepared.notes), stacklevel=2)
        if _disordered(X, y):
            warnings.warn(
                "y has the index of X in another order: labels belong to rows by their position",
                stacklevel=2,
            )
        self._centre, self._unit = _scaling(table, scale)
        table = (table - self._centre) / self._unit
        for array in (table, labels):
            array.flags.writeable = False
        super().__init__(table, labels, known)
        self.guessed = task is None and positive is None
        self.random_features, self.scale = random_features, scale
        self.hint = scaling_hint(table, self.columns) if scale is None else ""
        self.cost = Cost.of(*table.shape)
        if self.cost.seconds > 60:
            warnings.warn(f"the analysis of this sample needs {self.cost}", stacklevel=2)

    @classmethod
    def from_pipeline(
        cls, pipeline: Any, X: Any, y: Any, *, sample_weight: Any = None, **options: Any
    ) -> Data:
        """The data that the last step of a fitted scikit-learn pipeline sees.

        All steps but the last are applied to X as they were fitted. `loss` and `regularisation` of
        the result are those that fit the same model as the last step, if that is one of
        `hm.estimators`, or scikit-learn's Ridge, RidgeClassifier, LogisticRegression, LinearSVC,
        linear SVC, and `OneVsRestClassifier` of these, with an intercept; and None otherwise, as
        for an SVC of more than two classes, which compares pairs of them.

        Parameters
        ----------
        pipeline : sklearn.pipeline.Pipeline
            Fitted; its last step is the model.
        X, y : table, sequence
            The input of the pipeline.
        sample_weight : sequence of float, optional
            The weights of rows with which the pipeline was fitted. A `class_weight` of the model
            is known: learning curves, plans and backtests are those of weighted fits, and their
            test errors count every row once.
        **options
            Those of `Data`; the `task` is by default that of the model, but two different labels
            are classes for a regressor, too.

        Raises
        ------
        InvalidArgumentError
            If the model has options that change what it minimises, as `l1_ratio`, or weights are
            given for more than two classes.

        Warns
        -----
        UserWarning
            If the model penalises its intercept, as LinearSVC with its default options, or is of
            more than two classes and not predicted.

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
        if hasattr(seen, "columns"):  # features that were chosen on purpose, whatever their kind
            seen = np.asarray(seen, dtype=float)
        data = cls(seen, y, **{"task": task_of(pipeline[-1], y), **options})
        model = pipeline[-1]
        data.loss, data.regularisation = objective(model, data.p, data.N, task=data.task)
        given = getattr(model, "class_weight", None)
        data.weights = row_weights(given, sample_weight, data.classes, data.task, data.N)
        return data

    def accepted(self, loss: str | ConvexLoss) -> ConvexLoss:
        """A loss, which may be given by its name, if it can be predicted for these labels.

        Raises
        ------
        InvalidArgumentError
            If it cannot.
        """
        chosen = resolve("loss", loss, ConvexLoss, REGISTRY)
        if isinstance(chosen, Softmax):
            if self.task is Task.CLASSIFICATION:
                raise InvalidArgumentError.because(
                    "loss",
                    "'softmax' is of more than two classes",
                    "give 'logistic', which for two classes is the same model with half of λ",
                )
        elif not isinstance(chosen, Loss):
            raise InvalidArgumentError("loss", loss, "a loss of the margin or the residual")
        apart = self.against_rest(chosen)
        if chosen.has_jumps if apart else self.task not in chosen.tasks:
            several = self.task is Task.CLASSES
            allowed = OF_CLASSES if several else f"a loss for {self.task}"
            raise InvalidArgumentError("loss", loss, allowed)
        if isinstance(chosen, Loss):
            check_loss(chosen)
        return chosen

    def against_rest(self, loss: ConvexLoss) -> bool:
        """Whether each of several classes is fitted against all others."""
        margin = Task.CLASSIFICATION in loss.tasks and Task.CLASSES not in loss.tasks
        return self.task is Task.CLASSES and margin

    @property
    def description(self) -> str:
        """Numbers of samples and features, and the task, in a few words."""
        guessed = " (guessed from y)" if self.guessed else ""
        kind = "random features" if self.random_features else "features"
        task = Task.CLASSIFICATION if self.classes else self.task
        weighted = "" if self.weights is None else f", weighted by {self.weights.told}"
        return f"{self.N} samples of {self.p} {kind}, {task}{guessed}{self._of_classes}{weighted}"

    @property
    def _of_classes(self) -> str:
        if self.classes is None:
            return ""
        if len(self.classes) == 2:
            return ", classes {!r} and {!r}".format(*self.classes)
        return f", {len(self.classes)} classes ({listed(map(repr, self.classes))})"

    @property
    def most_frequent(self) -> tuple[Any, float]:
        """The class of most rows, and the part of rows that are of others."""
        assert self.classes is not None
        rows = self.rows_of_classes
        largest = int(rows.argmax())
        return self.classes[largest], 1.0 - float(rows[largest]) / self.N

    def __repr__(self) -> str:
        return f"Data({self.description})"

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {"samples": self.N, "features": self.p, "task": self.task.value}
        if self.classes:
            named = zip(self.classes, self.rows_of_classes.tolist(), strict=True)
            rows["rows of each class"] = ", ".join(f"{label}: {count}" for label, count in named)
        if "diagnosis" in vars(self):  # which takes its time, and is not asked for here
            rows["can be extrapolated"] = "yes" if self.usable else self.diagnosis.reasons
        return notebooks.table("Data", rows, "; ".join([*self.notes, *filter(None, [self.hint])]))

    @property
    def own_rows(self) -> int:
        """Rows from which `backtest` predicts by default.

        A quarter, at least 50, and up to a half if a class is so rare.
        """
        rare = self.rows_of_classes.min() / self.N if self.classes else 1.0
        fewest = FEWEST_OF_SEVERAL if self.task is Task.CLASSES else FEWEST_OF_A_CLASS
        return max(FEWEST_ROWS, self.N // 4, min(self.N // 2, int(2 * fewest / rare)))

    @property
    def columns(self) -> list[str]:
        """Names of the features."""
        names: list[str] = self._prepared.columns
        return names

    @property
    def notes(self) -> list[str]:
        """What was done to the table, as sentences."""
        said: list[str] = self._prepared.notes
        return said

    @property
    def preparation(self) -> Any:
        """A transformer of scikit-learn, not fitted, from such a table to these features.

        Raises
        ------
        InvalidArgumentError
            If the sample has a `scale` of its own, which no transformer estimates.
        """
        if self.scale is not None and not isinstance(self.scale, str):
            raise InvalidArgumentError.because(
                "preparation",
                "is not available for a scale of your own",
                "use scale=None or scale='standard'",
            )
        return self._prepared.transformer(standard=self.scale is not None)

    def scaled(self, X: Any) -> Array:
        """Other rows of such a table as features, in the frozen units of this sample."""
        out: Array = (self._prepared.apply(X) - self._centre) / self._unit
        return out

    @property
    def usable(self) -> bool:
        """Whether the `diagnosis` allows predictions for other sizes."""
        return self.diagnosis.usable

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Whether this sample can be extrapolated: questions, values, verdicts."""
        return diagnose(self)


def _rows(X: Any) -> int:
    """Number of rows of a table; -1 if it is none."""
    try:
        shape = getattr(X, "shape", None) or np.shape(X)
    except (TypeError, ValueError):  # rows of different lengths, or no table
        return -1
    return int(shape[0]) if len(shape) == 2 else -1


def _disordered(X: Any, y: Any) -> bool:
    """Whether features and labels of pandas are numbered by the same numbers in other orders."""
    import pandas as pd

    if not (isinstance(X, pd.DataFrame) and isinstance(y, pd.Series | pd.DataFrame)):
        return False
    other = y.index
    return not X.index.equals(other) and X.index.is_unique and bool(X.index.isin(other).all())


def _both(rows: int, features: Callable[[], Any], labels: Callable[[], Any]) -> tuple[Any, Any]:
    """Features and labels; raise one error for all that is wrong with either."""
    found: list[Any] = []
    errors: list[InvalidArgumentError] = []
    for part in (features, labels):
        try:
            found.append(part())
        except InvalidArgumentError as error:
            errors.append(error)
    if len(errors) == 2 and rows >= 0:
        raise InvalidArgumentError.because(
            f"X and {errors[1].argument}",
            f"cannot be used: {errors[0]}. Also, {errors[1].argument} {errors[1].problem}",
            errors[1].remedy,
        )
    if errors:
        raise errors[0]
    return found[0], found[1]


def _scaling(X: Array, scale: Any) -> tuple[Array, Array]:
    """The means to subtract from the columns, and their divisors."""
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
