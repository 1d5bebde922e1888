"""How a command takes groups of options, and names the ingredients in its help."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

from typer.core import TyperCommand, TyperOption

from hiddenmanifold.cli.ascii_symbols import legible
from hiddenmanifold.cli.exit_codes import reporting
from hiddenmanifold.cli.options import WorkerOptions

NAMES = " Names"


class WithIngredients(TyperCommand):
    """A command whose help page names all ingredients, which are loaded for it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from hiddenmanifold.cli.ingredient_options import described, families
        from hiddenmanifold.results.observables import REGISTRY

        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        for option in (option for option in self.params if isinstance(option, TyperOption)):
            text, _, _ = str(option.help).partition(NAMES)
            if option.name in families():
                text += f"{NAMES}, with their keys: {described(option.name)}."
            elif option.name == "observables":
                text += f"{NAMES}: {', '.join(REGISTRY)}."
            option.help = legible(text, encoding)
        super().format_help(ctx, formatter)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose groups of options are spread into single ones, and whose errors are reported.

    A group is a dataclass whose fields are options; `Annotated[group, *names]` has some of them.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: group
        for name, hint in hints.items()
        if is_dataclass(group := getattr(hint, "__origin__", hint))
    }
    options = {name: _options_of(hints[name], group) for name, group in groups.items()}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = inspect.Parameter.KEYWORD_ONLY
        alone = parameter.replace(kind=kind, annotation=hints[name])
        parameters += options.get(name, [alone])

    @wraps(command)
    def flat(**given: Any) -> None:
        with reporting(given.get("debug", False)), ExitStack() as stack:
            gathered = {
                name: group(**{option.name: given.pop(option.name) for option in options[name]})
                for name, group in groups.items()
            }
            for group in gathered.values():
                if isinstance(group, WorkerOptions):
                    stack.enter_context(group.connected())
            command(**gathered, **given)

    vars(flat)["__signature__"] = inspect.Signature(parameters)
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _options_of(hint: Any, group: Any) -> list[inspect.Parameter]:
    """The options of a group that a command takes."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
        if field.name in getattr(hint, "__metadata__", hints)
    ]
