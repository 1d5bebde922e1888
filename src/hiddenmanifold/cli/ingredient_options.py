"""Ingredients as they are typed: ``sign``, ``huber:delta=0.5``, ``steps:changes=-1,0,1``.

Values are numbers, lists of numbers, names of functions, and noise such as ``laplace(0.5)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from hiddenmanifold.checks import did_you_mean, number, resolve
from hiddenmanifold.errors import InvalidArgumentError

PIECES = re.compile(r",(?![^()]*\))")
"""The commas between parameters, and not those within the parentheses of a value."""


def families() -> dict[str, tuple[type, dict[str, type]]]:
    """Base class and classes by name of each kind of ingredient.

    These are the registered ones, and those with required parameters, which have no name in the
    library. Kernels, predictions and resampling are offered like ingredients.
    """
    from hiddenmanifold.features import kernels, projections
    from hiddenmanifold.losses import predictors
    from hiddenmanifold.model import BASES, REGISTRIES
    from hiddenmanifold.resampling import SCHEMES, Resampling
    from hiddenmanifold.teachers import Argmax, Classes, Softmax, Steps

    named: dict[str, dict[str, type]] = {
        "projection": {"spectrum": projections.Spectrum, "matrix": projections.Matrix},
        "teacher": {"steps": Steps, "classes": Classes, "argmax": Argmax, "softmax": Softmax},
    }
    found = {kind: (BASES[kind], {**REGISTRIES[kind], **named.get(kind, {})}) for kind in BASES}
    found["kernel"] = (kernels.KernelFunction, {**kernels.REGISTRY})
    found["resampling"] = (Resampling, {**SCHEMES})
    return {**found, "prediction": (predictors.Predictor, {**predictors.REGISTRY})}


def described(kind: str) -> str:
    """The names of a kind of ingredient, each with the keys of its parameters."""
    keys = {
        name: ", ".join(field.name for field in fields(cls) if field.init and typeable(field))
        for name, cls in families()[kind][1].items()
    }
    return ", ".join(f"{name} ({text})" if text else name for name, text in keys.items())


def typeable(field: Field[Any]) -> bool:
    """Whether a parameter has values that can be typed, and is neither a function nor a table."""
    return not str(field.type).startswith(("Callable", "tuple[tuple"))


def ingredient(kind: str, text: str) -> Any:
    """The ingredient that a text ``name:key=value,key=value`` stands for.

    Values are numbers; several, separated by commas, make a tuple. A function is given by its name,
    and noise by a variance or as ``student(3,1)``, whose commas belong to the value. A projection
    ``matrix:F=file`` reads the matrix from a file of `numpy.save`.

    Raises
    ------
    InvalidArgumentError
        If the name or a key is unknown (near ones are suggested), or a value cannot be read.
    """
    name, _, rest = text.partition(":")
    base, classes = families()[kind]
    if name not in classes:
        return resolve(kind, name, base, classes)  # which says what is known, and what is near
    cls = classes[name]
    return cls(**_parameters(f"{kind} {name}", cls, rest))


def class_weights(text: str | None) -> Any:
    """The weights of both classes: "balanced", two numbers, or None."""
    if text in (None, "balanced"):
        return text
    try:
        return tuple(number(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgumentError(
            "class_weight", text, "balanced, or the weights of -1 and +1 as 1,5"
        ) from None


def _parameters(owner: str, cls: type, text: str) -> dict[str, Any]:
    known = {field.name: field for field in fields(cls) if field.init}
    found: dict[str, list[str]] = {}
    key = ""
    for piece in PIECES.split(text) if text else []:
        head, equals, tail = piece.partition("=")
        key = head.strip() if equals else key
        if key not in known:
            raise InvalidArgumentError.because(
                owner, f"cannot take {piece!r}", _allowed(key, known)
            )
        if equals and key in found:
            raise InvalidArgumentError.because(owner, f"has {key!r} twice", "give it once")
        found.setdefault(key, []).append((tail if equals else head).strip())
    if missing := [k for k, f in known.items() if f.default is MISSING and k not in found]:
        raise InvalidArgumentError.because(
            owner, f"lacks its parameter {missing[0]}", f"give it as {missing[0]}=…"
        )
    for key in found:
        if not typeable(known[key]):
            raise InvalidArgumentError.because(
                f"{key} of {owner}",
                f"is {'a table' if 'tuple' in str(known[key].type) else 'a function'}, which "
                "cannot be typed",
                "use it from Python",
            )
    return {key: _value(owner, key, str(known[key].type), text) for key, text in found.items()}


def _allowed(key: str, known: Mapping[str, Any]) -> str:
    if not known:
        return "leave it out: there are no parameters"
    return f"give key=value, with keys among {', '.join(known)}{did_you_mean(key, known)}"


def _value(owner: str, key: str, annotation: str, texts: list[str]) -> Any:
    """The value of a parameter, in the shape that its annotation asks for."""
    if annotation == "Array":
        return _matrix(owner, ",".join(texts))
    if "str" in annotation.split(" | ") and len(texts) == 1:
        return _number_or_text(texts[0], annotation)
    try:
        numbers = tuple(number(text) for text in texts)
    except ValueError:
        raise InvalidArgumentError(f"{key} of {owner}", ",".join(texts), "a number") from None
    if "tuple" in annotation:
        return numbers
    if len(numbers) > 1:
        raise InvalidArgumentError(f"{key} of {owner}", ",".join(texts), "one number")
    (value,) = numbers
    return (
        int(value)
        if annotation.split(" | ", maxsplit=1)[0] == "int" and value.is_integer()
        else value
    )


def _number_or_text(text: str, annotation: str) -> float | str:
    """A number where the annotation allows one and the text is one; otherwise the text."""
    if "float" in annotation.split(" | "):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _matrix(owner: str, file: str) -> Any:
    import numpy as np

    try:
        return np.load(Path(file), allow_pickle=False)  # pickles could run anything
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    except (ValueError, EOFError):
        reason = "it is another kind of file, or has other than numbers"
    raise InvalidArgumentError.because(
        owner, f"cannot be read from {file!r}", f"{reason}; give a file written by numpy.save"
    )
