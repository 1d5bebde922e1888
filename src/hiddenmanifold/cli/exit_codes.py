"""How a command ends: an exit code, and for every failure one sentence."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from hiddenmanifold.errors import ConvergenceError, HiddenManifoldError


class Code(IntEnum):
    """Exit codes, each with its meaning for the help page."""

    COMPLETE = 0, "success"
    INCOMPLETE = 1, "some points did not converge or were refused; the others are in the output"
    BAD_INPUT = 2, "the command or its input is invalid"
    NO_OUTPUT = 3, "a file could not be written, an optional library is missing, or a worker died"
    DEFECT = 70, "a bug in this program"
    INTERRUPTED = 130, "interrupted by Ctrl-C; finished results were printed and written"
    UNREAD = 141, "the output pipe was closed early, as by head"

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Code:
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code


class OutputError(HiddenManifoldError):
    """A result could not be delivered where it was wanted."""


def complain(sentence: str) -> None:
    """Report a failure on standard error, apart from results."""
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(sentence, err=True)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"warning: {message}", err=True)


def stop(code: Code, sentence: str) -> NoReturn:
    """End the command with a sentence and an exit code."""
    complain(sentence)
    raise typer.Exit(code)


class OneSentence(TyperGroup):
    """A group of commands that reports what it cannot parse in one sentence as well."""

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except typer.TyperException as error:
            command = getattr(getattr(error, "ctx", None), "command_path", "hiddenmanifold")
            sentence = error.format_message().rstrip(".")
            stop = "" if sentence.endswith("?") else "."
            complain(f"{sentence}{stop} See {command} --help")
            code = error.exit_code
        except SystemExit as end:  # the libraries' answer to a closed pipe is 1, a failure
            if not isinstance(end.__context__, BrokenPipeError):
                raise
            code = Code.UNREAD
        if standalone_mode:
            sys.exit(code)
        return code


@contextmanager
def reporting(debug: bool) -> Iterator[None]:
    """Turn an exception into one sentence and an exit code, after a traceback if `debug`.

    Warnings are printed as sentences too. Those of floating-point arithmetic are less informative
    than the status of the point that they come from, and are shown only if `debug`.
    """
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
                warnings.showwarning = _warn
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception | KeyboardInterrupt):
            raise
        if debug:
            traceback.print_exc(file=sys.stderr)
        stop(_code(error), _sentence(error))


def _code(error: BaseException) -> Code:
    """The exit code for an exception."""
    codes: tuple[tuple[Code, tuple[type[BaseException], ...]], ...] = (
        (Code.INTERRUPTED, (KeyboardInterrupt,)),
        (Code.INCOMPLETE, (ConvergenceError,)),
        (Code.NO_OUTPUT, (OutputError, ImportError, OSError, BrokenExecutor)),
        (Code.BAD_INPUT, (HiddenManifoldError, MemoryError)),
    )
    return next((code for code, types in codes if isinstance(error, types)), Code.DEFECT)


def _sentence(error: BaseException) -> str:
    """The message of an exception, for a person."""
    text = " ".join(str(error).split())
    if _code(error) is Code.DEFECT:
        return (
            "this should not happen, please report it with the output of --debug: "
            f"{type(error).__name__}: {text}"
        )
    if isinstance(error, OSError) and not isinstance(error, HiddenManifoldError):
        return f"cannot write {error.filename or 'the output'}: {error.strerror or text}"
    if isinstance(error, ConvergenceError):  # what follows is for programmers
        return text.partition(". ")[0]
    if isinstance(error, MemoryError):
        return "there is not enough memory for so many points"
    if isinstance(error, KeyboardInterrupt):
        return text or "interrupted before anything was done"
    return text
