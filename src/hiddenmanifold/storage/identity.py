"""The identity of a model as a text: its ingredients, their functions and arrays."""

from __future__ import annotations

import copyreg
import io
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import _lru_cache_wrapper, cache, cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError

OURS = __name__.partition(".")[0]
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
REMEDY = (
    "use numbers, arrays, and functions that use nothing else. "
    "Import functions, not your own modules; or give the object an attribute `fingerprint`, a "
    "string that changes with its content"
)


def identity(value: object) -> str:
    """A text that is the same for the same content in every process, and differs for other content.

    It is the `repr` of a model whose ingredients are of this package and have plain parameters. A
    model with functions, arrays or classes of the user's own has a hash of these behind it.

    Raises
    ------
    InvalidArgumentError
        If the content of some part cannot be inspected.
    """
    text = repr(value)
    return text if _plain(value) else f"{ADDRESS.sub('', text)} {content_hash(value)}"


def content_hash(value: object) -> str:
    """A hash of a value's content.

    Functions count by their bytecode (so that other versions of Python give other hashes), their
    defaults and attributes, the values they enclose and the globals they use; classes by their
    members; functions and classes of installed packages by their names. An object with a string
    attribute `fingerprint` counts by this string and by its class.

    Raises
    ------
    InvalidArgumentError
        If the content of some part cannot be inspected.
    """
    return _hash(value, ())


def _plain(value: object) -> bool:
    """Whether the `repr` of a value contains all its content."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(_plain, value))
    if is_dataclass(value) and _ours(type(value)):
        given = [field for field in fields(value) if field.init]
        return all(f.repr and _plain(getattr(value, f.name)) for f in given if f.compare)
    return type(value) in (bool, int, float, str, type(None))


def _hash(value: object, within: tuple[int, ...]) -> str:
    stream = io.BytesIO()
    try:
        _ContentPickler(stream, within).dump(value)
    except InvalidArgumentError:
        raise
    except Exception:
        raise _uninspectable(value) from None
    return sha256(stream.getvalue()).hexdigest()


def _uninspectable(value: object) -> InvalidArgumentError:
    return InvalidArgumentError.because(
        "store", f"cannot identify {value!r} by its content", REMEDY
    )


class _ContentPickler(pickle.Pickler):
    """Pickles content where `pickle` would write names, identities, or the order of a hash table.

    Functions and classes may come back to themselves: `within` has the ids of those begun.
    """

    def __init__(self, stream: io.BytesIO, within: tuple[int, ...]) -> None:
        super().__init__(stream, protocol=4)
        self.fast = True  # an object that occurs twice is written twice, as equal ones are
        self.within = within

    def persistent_id(self, value: Any) -> Any:
        """What stands for a value; None if its pickle tells its content."""
        kind, told = type(value), getattr(value, "fingerprint", None)
        if isinstance(told, str) and kind is not type:
            name = getattr(value, "__qualname__", kind.__qualname__)
            return "told", value.__module__, name, told
        if kind in (set, frozenset):
            return "set", sorted(_hash(item, self.within) for item in value)
        if kind in CONTENT:
            return kind.__name__, CONTENT[kind](value)
        if isinstance(value, type | FunctionType):
            return self._definition(value)
        return None if _installed(kind.__module__) and not _ours(kind) else _object_content(value)

    def reducer_override(self, value: Any) -> Any:
        """How an object of an installed package is pickled: with its attributes in order.

        A copy may have set them in another order.
        """
        if type(value) in copyreg.dispatch_table:
            return NotImplemented
        made = value.__reduce_ex__(4)
        if isinstance(made, tuple) and len(made) > 2 and isinstance(made[2], dict):
            return *made[:2], dict(sorted(made[2].items())), *made[3:]
        return made

    def _definition(self, value: Any) -> tuple[object, ...]:
        """The name of a function or class in an installed package, the content of any other."""
        if _installed(value.__module__) and "<" not in value.__qualname__:
            return "name", OURS if _ours(value) else value.__module__, value.__qualname__
        if id(value) in self.within:
            return "again", self.within.index(id(value))
        content = _class_content if isinstance(value, type) else _function_content
        return "content", _hash(content(value), (*self.within, id(value)))


def _code_content(code: CodeType) -> object:
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    instructions = code.co_code, code.co_exceptiontable, code.co_flags
    return sys.implementation.cache_tag, instructions, names, code.co_consts


def _function_content(function: FunctionType) -> object:
    names = sorted(_names(function.__code__) & function.__globals__.keys())
    cells = [c.cell_contents for c in function.__closure__ or () if c != CellType()]  # none empty
    used = [(name, function.__globals__[name]) for name in names]
    given = function.__defaults__, function.__kwdefaults__
    own = [function.__dict__] if function.__dict__ else []
    return function.__code__, *given, cells, used, *own


def _names(code: CodeType) -> set[str]:
    """Names of globals and attributes that a function uses, or a function inside it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


BOOKKEEPING = {
    *("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__"),
    *("__dataclass_fields__", "__dataclass_params__", "__abstractmethods__", "_abc_impl"),
    *("__firstlineno__", "__static_attributes__", "__annotate_func__", "__parameters__"),
}
"""Members of every class, which Python itself writes."""


def _class_content(kind: type) -> object:
    slots = vars(kind).get("__slots__", ())
    hidden = BOOKKEEPING.union([slots] if isinstance(slots, str) else slots)
    members = [item for item in sorted(vars(kind).items()) if item[0] not in hidden]
    return kind.__qualname__, kind.__bases__, members


def _object_content(value: object) -> tuple[object, ...]:
    """What `pickle` knows of an object, without what it computed on the way."""
    kind, made = type(value), value.__reduce_ex__(4)
    if isinstance(made, str):
        raise _uninspectable(value)  # a name tells nothing of the content
    make, arguments, state, *items = (*made, None, None, None)[:5]
    if isinstance(state, dict):
        computed = {n for n in state if isinstance(getattr(kind, n, None), cached_property)}
        if is_dataclass(kind):
            own = fields(kind)
            computed |= {f.name for f in own if not f.compare or (_ours(kind) and not f.init)}
        state = sorted((name, part) for name, part in state.items() if name not in computed)
    return "object", make, arguments, state, [None if each is None else [*each] for each in items]


def _array_content(array: Array) -> object:
    if array.dtype.hasobject or array.dtype.names:
        return array.__reduce__()
    return array.dtype.str, array.shape, array.tobytes()


def _ufunc_name(ufunc: np.ufunc) -> tuple[str, str]:
    for home in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(home), ufunc.__name__, None) is ufunc:
            return home, ufunc.__name__
    raise _uninspectable(ufunc)  # np.frompyfunc hides the function it was made of


def _module_name(module: ModuleType) -> str:
    if not _installed(module.__name__):
        raise _uninspectable(module)
    return module.__name__


CONTENT: dict[type, Callable[[Any], object]] = {
    np.ndarray: _array_content,
    np.ufunc: _ufunc_name,
    ModuleType: _module_name,
    CodeType: _code_content,
    _lru_cache_wrapper: attrgetter("__wrapped__"),
    property: attrgetter("fget", "fset", "fdel"),
    cached_property: attrgetter("func"),
    staticmethod: attrgetter("__func__"),
    classmethod: attrgetter("__func__"),
}
"""The content of values whose pickle is a name, changes with a version, or does not exist."""


def _ours(value: Any) -> bool:
    """Whether a function or class is of this package, in which modules may move."""
    return bool(value.__module__.partition(".")[0] == OURS)


@cache
def _installed(module: str | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to this one."""
    root = (module or "__main__").partition(".")[0]
    if root == "__main__":  # whose file may be that of an installed tool
        return False
    if root in (*sys.stdlib_module_names, OURS):
        return True
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is not None and not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
