"""Shared by all ingredients: their kinds, their task, and the checks of names and numbers."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError, plural

Ingredient = TypeVar("Ingredient")
Given = ParamSpec("Given")
Answer = TypeVar("Answer")

PENALTIES = frozenset(("lam", "lambda_", "lmbda", "reg", "regularization", "penalty", "alpha", "C"))
"""Names of λ in other packages."""
CALLED = (
    "the penalty λ is called regularisation; from_sklearn_C, from_ridge_alpha and from_glm_alpha "
    "convert the numbers of scikit-learn"
)
EXTREME = 1e20
"""Largest scale of an ingredient: no square overflows, and limits are far beyond."""


@dataclass(frozen=True)
class IngredientKind:
    """A kind of ingredient, as every interface names and describes it.

    Attributes
    ----------
    default : str
        The registered name that the command line and the explorer begin with: the paper's model.
    description : str
        The ingredient in a few words.
    remedy : str
        How to make one of a function or a matrix, as the end of an error message.
    """

    default: str
    description: str
    remedy: str


INGREDIENT_KINDS = {
    "activation": IngredientKind("sign", "Nonlinearity of the features", ", or a function"),
    "projection": IngredientKind(
        "gaussian", "Feature matrix", "; projections.Matrix makes one of a matrix"
    ),
    "teacher": IngredientKind("sign", "Label rule", "; teachers.Custom makes one of a function"),
    "loss": IngredientKind("logistic", "Loss", "; losses.Custom makes one of functions"),
}
"""The kinds of ingredients that a name can stand for; `model.REGISTRIES` has their classes."""


class Task(StrEnum):
    """The kind of labels to learn: real numbers, ±1, or one of several classes."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"
    CLASSES = "classes"


SCALAR_TASKS = frozenset({Task.REGRESSION, Task.CLASSIFICATION})
"""The tasks of which a label and a score are one number each."""


def check_number(
    name: str, value: object, low: float, high: float = np.inf, *, open_low: bool = False
) -> None:
    """Raise unless `value` is a finite number in [low, high], or in (low, high] if `open_low`."""
    if isinstance(value, int | float | np.floating | np.integer):
        number = float(value)
        if np.isfinite(number) and low <= number <= high and not (open_low and number == low):
            return
    allowed = f"a finite number {'above' if open_low else 'of at least'} {low:g}"
    raise InvalidArgumentError(
        name, value, allowed + (f" and at most {high:g}" if np.isfinite(high) else "")
    )


def number(text: str) -> float:
    """Parse a number; raise ValueError unless the text is one."""
    if "_" in text:  # Python's own grouping of digits would hide a slip of the shift key
        raise ValueError(text)
    return float(text)


def check_scale(name: str, value: object) -> None:
    """Raise unless `value` is a length or a variance in units that suit the others of a model."""
    check_number(name, value, 1.0 / EXTREME, EXTREME)


def resolve(
    kind: str, given: object, base: type[Ingredient], registry: Mapping[str, type[Ingredient]]
) -> Ingredient:
    """Return the ingredient meant by a registered name or by an object of the right kind.

    The classes of the registry can be made without arguments; `kind` names the argument in the
    error message.

    Raises
    ------
    InvalidArgumentError
        If the name is unknown (the nearest known ones are suggested) or the object is of
        another kind.
    """
    if isinstance(given, base):
        return given
    names = ", ".join(repr(name) for name in registry)
    if isinstance(given, str):
        if given in registry:
            return registry[given]()
        hint = did_you_mean(given.lower().replace("-", "_"), registry)
        raise InvalidArgumentError(kind, given, f"one of {names}{hint}")
    article = "an" if base.__name__[0] in "AEIOU" else "a"
    hint = INGREDIENT_KINDS[kind].remedy if kind in INGREDIENT_KINDS else ""
    hint = ", or a function of the cosine" if kind == "kernel" else hint
    if isinstance(given, type) and issubclass(given, base):
        hint = f"; did you mean {given.__name__}()?"
    allowed = f"one of {names}, or {article} {base.__name__} object{hint}"
    raise InvalidArgumentError(kind, given, allowed)


def knows_penalty(
    remedy: str = CALLED, names: Collection[str] = PENALTIES
) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Make a function refuse the names that λ has in other packages, with the remedy."""

    def knowing(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        @functools.wraps(function)
        def called(*given: Given.args, **named: Given.kwargs) -> Answer:
            for name in names if named else ():
                if name in named:
                    raise InvalidArgumentError.because(name, "is not an argument", remedy)
            return function(*given, **named)

        return called

    return knowing


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The end of an error message that suggests the nearest known names; empty if none is near."""
    near = difflib.get_close_matches(str(given), list(known), n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def check_count(name: str, value: object, low: int = 1) -> int:
    """The value as an int; raise unless it is a whole number of at least `low`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low:  # type: ignore[operator]
        raise InvalidArgumentError(name, value, f"a whole number of at least {low}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_unmasked(name: str, values: object) -> None:
    """Raise if some values are masked: their numbers would be taken for good ones."""
    if hidden := int(np.ma.getmaskarray(values).sum()) if np.ma.isMaskedArray(values) else 0:
        raise InvalidArgumentError.because(
            name,
            f"has {plural(hidden, 'masked entry', 'masked entries')}",
            "leave out or impute what is masked",
        )


def finite_vector(name: str, values: ArrayLike) -> Array:
    """The values as an array; raise unless they are a sequence of finite numbers."""
    check_unmasked(name, values)
    try:
        vector = np.asarray(values, dtype=float)
    except (TypeError, ValueError):  # words, or ragged
        vector = np.empty(0)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise InvalidArgumentError(name, values, "a non-empty sequence of finite numbers")
    return vector


def finite_matrix(name: str, values: ArrayLike, shape: str = "(n, p)") -> Array:
    """The values as an array; raise unless they are a matrix of finite real numbers."""
    check_unmasked(name, values)
    try:
        plain = np.asarray(values)
        matrix = plain.astype(float) if plain.dtype.kind != "c" else np.empty(0)
    except (TypeError, ValueError):  # words, ragged, or sparse
        matrix = np.empty(0)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise InvalidArgumentError(name, values, f"a matrix {shape} of finite numbers")
    return matrix


def check_kinks(kinks: object) -> tuple[float, ...]:
    """The declared kinks in increasing order; raise unless they are finite numbers."""
    try:
        found = tuple(sorted(float(kink) for kink in kinks))  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        found = (np.nan,)
    if not np.isfinite(found).all():
        raise InvalidArgumentError("kinks", kinks, "a sequence of finite numbers")
    return found


def sampled(
    name: str, function: object, points: Array, described: Callable[[float], str] = "{:.4g}".format
) -> Array:
    """Values of a user's function; raise unless it is vectorised and finite at all points.

    `described` puts a point into words.
    """
    if not callable(function):
        raise InvalidArgumentError(name, function, "callable")
    try:
        found = np.asarray(function(points))
        if found.dtype.kind == "c":
            raise TypeError("the values are complex numbers")
        values = found.astype(float)
    except Exception as error:
        raise InvalidArgumentError.because(
            name,
            f"raised {error!r} when it was given an array",
            "it must be vectorised",
        ) from error
    if values.shape != points.shape:
        raise InvalidArgumentError.because(
            name,
            f"turned an array of shape {points.shape} into one of shape {values.shape}",
            "it must be vectorised",
        )
    if not np.isfinite(values).all():
        bad = points[~np.isfinite(values)][0]
        raise InvalidArgumentError.because(
            name, f"is not finite at {described(bad)}", "it must be finite everywhere"
        )
    return values
