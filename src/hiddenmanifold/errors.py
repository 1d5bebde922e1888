"""Exceptions, whose messages say what is wrong and what to do; and the `Status` of a solve."""

from __future__ import annotations

from enum import IntEnum
from types import MethodType
from typing import Any

import numpy as np


class HiddenManifoldError(Exception):
    """Base class of every exception raised on purpose by this package."""


class InvalidArgumentError(HiddenManifoldError, ValueError):
    """An argument that cannot be used; the message names it, says what is wrong and what to do.

    For a value outside a set or a range the message follows a template, "loss = 'squar' is not
    allowed: it must be one of …". For anything else `because` takes a sentence.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : object
        The value it had.
    allowed : str
        What is allowed, as the end of the sentence "it must be".

    Attributes
    ----------
    argument, problem, remedy : str
        The parts of the message "{argument} {problem}: {remedy}".
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        self._say(argument, f"= {shown(value)} is not allowed", f"it must be {allowed}")

    @classmethod
    def because(cls, argument: str, problem: str, remedy: str) -> InvalidArgumentError:
        """The error with a sentence of its own.

        Parameters
        ----------
        argument : str
            Name of the argument.
        problem : str
            What is wrong with it: a predicate, of which the argument is the subject.
        remedy : str
            What to do about it.

        Examples
        --------
        >>> print(InvalidArgumentError.because("y", "has 3 missing values", "drop these rows"))
        y has 3 missing values: drop these rows
        """
        error = cls.__new__(cls)
        error._say(argument, problem, remedy)
        return error

    def _say(self, argument: str, problem: str, remedy: str) -> None:
        self.argument, self.problem, self.remedy = argument, problem, remedy
        super().__init__(f"{argument} {problem}: {remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        # only text: a worker process sends it back, and a value may be unable to travel
        return type(self).because, (self.argument, self.problem, self.remedy)


class IncompatibleIngredientsError(HiddenManifoldError, ValueError):
    """Two ingredients of a model make no sense together."""


class BlindFeaturesWarning(UserWarning):
    """The features of a model see nothing of the teacher's field: there is nothing to learn."""


class UnusableDataError(HiddenManifoldError, ValueError):
    """The diagnosis of a sample refuses predictions beyond it."""


class ConvergenceError(HiddenManifoldError, RuntimeError):
    """Some points did not converge; ``partial`` holds the dataset with those points as NaN."""

    def __init__(self, message: str, partial: Any = None) -> None:
        self.partial = partial
        super().__init__(message)


class MissingExtraError(HiddenManifoldError, ImportError):
    """An optional library is not installed."""

    def __init__(self, purpose: str, library: str, extra: str) -> None:
        self.arguments = purpose, library, extra
        super().__init__(
            f"{purpose} needs {library}, which is not installed: "
            f"pip install 'hiddenmanifold[{extra}]' (in a folder of its sources: '.[{extra}]')"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.arguments


def shown(value: object, limit: int = 80) -> str:
    """A value in one line of a message, cut where it is too long."""
    if isinstance(value, MethodType):  # an ingredient's, whose parameters would fill the line
        return f"{type(value.__self__).__name__}.{value.__name__}"
    if isinstance(value, np.generic):
        value = value.item()
    text = " ".join(map(str.strip, repr(value).splitlines()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plural(count: int, one: str, several: str | None = None) -> str:
    """A count with its noun: "1 row", "3 rows", and "2 entries" where `several` says so."""
    return f"{count} {one if count == 1 else several or one + 's'}"


class Status(IntEnum):
    """How the solve of a point ended."""

    CONVERGED = 0
    MAX_ITERATIONS = 1
    NON_FINITE = 2
    QUADRATURE = 3
    THRESHOLD = 4
    NO_LIMIT = 5
    SEARCH = 6
    ILL_CONDITIONED = 7
    UNSTABLE = 8

    @property
    def sentence(self) -> str:
        """The outcome, for a person."""
        return _SENTENCES[self]


CERTIFICATES = ("status", "residual", "quadrature_error", "conditioning_error", "iterations")
"""Names of the variables that certify the solve of every prediction."""
_SENTENCES = {
    Status.CONVERGED: "converged: the residual and the estimated errors of quadrature and rounding "
    "are within tolerance",
    Status.MAX_ITERATIONS: "the iterations ran out before the residual reached the tolerance; a "
    "custom loss with a kink that is not declared by kinks= does this",
    Status.NON_FINITE: "the equations gave a value that is not finite, so the iteration stopped",
    Status.QUADRATURE: "the integrals did not settle when the quadrature was refined; a function "
    "with undeclared kinks or a very short length scale does this",
    Status.THRESHOLD: "exactly at the threshold where every training sample can just be fitted, "
    "the limit of vanishing regularisation is infinite or differs from its two sides",
    Status.NO_LIMIT: "no limit of vanishing regularisation is known for this loss: its weights "
    "grow without bound in a direction that depends on how the loss decays (known for exponential "
    "decay only), or it is least at a residual other than zero",
    Status.SEARCH: "the search along the curve did not end, or part of the curve could not be "
    "solved and it shows no peak elsewhere",
    Status.ILL_CONDITIONED: "ill-conditioned: the equations are solved as well as double precision "
    "allows, but they magnify its rounding beyond the tolerance (conditioning_error says how far); "
    "a larger λ, or less extreme ratios or noise, avoids this",
    Status.UNSTABLE: "the step of gradient descent is too large, so that the weights grow without "
    "bound (largest_step says how large it may be)",
}
