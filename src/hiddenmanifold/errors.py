"""Exceptions of the package: each message names the argument, its value and what is allowed."""

from __future__ import annotations

from typing import Any


class HiddenManifoldError(Exception):
    """Base class of every exception raised on purpose by this package."""


class InvalidArgumentError(HiddenManifoldError, ValueError):
    """An argument has a value outside what is allowed.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : object
        The value it had.
    allowed : str
        What is allowed, as the end of the sentence "… must be".
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        self.argument = argument
        self.value = value
        self.allowed = allowed
        super().__init__(f"{argument} = {_shorten(value)} is not allowed: it must be {allowed}")

    def __reduce__(self) -> tuple[object, ...]:
        # a worker process sends it back; its value may be a function that cannot travel
        return type(self), (self.argument, _Shown(_shorten(self.value)), self.allowed)


class IncompatibleIngredientsError(HiddenManifoldError, ValueError):
    """Two ingredients of a model make no sense together."""


class ConvergenceError(HiddenManifoldError, RuntimeError):
    """Some points did not converge; ``partial`` holds the dataset with those points as NaN."""

    def __init__(self, message: str, partial: Any = None) -> None:
        self.partial = partial
        super().__init__(message)


class _Shown(str):
    """A value that was already turned into text, and is shown as it is."""

    __repr__ = str.__str__


def _shorten(value: object, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
