"""What determines a number, as a hash: ingredients, arrays, functions and sources."""

from __future__ import annotations

import copyreg
import dis
import io
import json
import pickle
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import _lru_cache_wrapper, cache, cached_property, partial, singledispatchmethod
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from hiddenmanifold.errors import InvalidArgumentError

SHOWING = ("cli/", "explorer/", "plotting/", "storage/")
"""Folders of this package whose sources show numbers, or keep them, and compute none."""
OURS = __name__.partition(".")[0]
REMEDY = (
    "use numbers, arrays, and functions that use nothing else. "
    "Import functions, not your own modules; or give the object an attribute `fingerprint`, a "
    "string that changes with its content"
)


def fingerprint(value: object) -> str:
    """A hash that is the same for the same content, in this process and in any other.

    Of functions it is their code that counts, with their defaults, what they enclose and the
    globals they use; of functions and classes in installed packages, and in this one, the name.

    Raises
    ------
    InvalidArgumentError
        If the content of some part cannot be told.
    """
    try:
        return _hash(json.dumps(_Reader().read(value), sort_keys=True).encode())
    except RecursionError:
        raise _untold(value) from None


@cache
def sources_digest(package: Path, without: tuple[str, ...] = ()) -> str:
    """A hash of all sources in a package's folder but those whose names begin so."""
    names = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    read = {n: _hash((package / n).read_bytes()) for n in names if not n.startswith(without)}
    return _hash(json.dumps(read).encode())


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _untold(value: object) -> InvalidArgumentError:
    return InvalidArgumentError.because(
        "store", f"cannot identify {value!r} by its content", REMEDY
    )


class _Reader:
    """Turns a value into what JSON can write, without loss and without identities."""

    def __init__(self) -> None:
        self.begun: list[int] = []  # functions and classes that may come back to themselves

    def read(self, value: Any) -> Any:
        """What an object says of itself, or its class, its attributes, and what it is besides."""
        told, kind = getattr(value, "fingerprint", None), type(value)
        if isinstance(told, str) and not isinstance(value, type):
            name = getattr(value, "__qualname__", kind.__qualname__)
            return ["told", value.__module__, name, told]
        if _installed(kind.__module__) and not is_dataclass(kind):
            return self._content(value)
        return ["object", self.read(kind), self.read(_attributes(value)), self._content(value)]

    @singledispatchmethod
    def _content(self, value: Any) -> Any:
        kind = type(value)
        if is_dataclass(kind) or (hasattr(value, "__dict__") and not _installed(kind.__module__)):
            return None  # its attributes are all
        return self._pickled(value)

    def _pickled(self, value: object) -> Any:
        stream = io.BytesIO()
        try:
            _Pickler(stream, self).dump(value)
        except InvalidArgumentError:
            raise
        except Exception:
            raise _untold(value) from None
        return ["pickled", _hash(stream.getvalue())]

    @_content.register(int | str | None)
    def _(self, value: Any) -> Any:
        return [type(value).__name__, str(value)]

    @_content.register(float | complex | np.number)
    def _(self, value: Any) -> Any:
        return [str(np.asarray(value).dtype), np.asarray(value).tobytes().hex()]

    @_content.register
    def _(self, value: np.ndarray) -> Any:
        if value.dtype.hasobject:
            raise _untold(value)
        if type(value) is not np.ndarray or value.dtype.names:  # masked, or with named fields
            return self._pickled(value)
        return ["array", value.dtype.str, value.shape, _hash(np.ascontiguousarray(value).tobytes())]

    @_content.register(tuple | list)
    def _(self, value: Any) -> Any:
        return [type(value).__name__, *map(self.read, value)]

    @_content.register
    def _(self, value: Mapping) -> Any:  # type: ignore[type-arg]
        pairs = [[self.read(key), self.read(item)] for key, item in value.items()]
        return ["mapping", *sorted(pairs, key=json.dumps)]

    @_content.register(set | frozenset)
    def _(self, value: Any) -> Any:
        return ["set", *sorted(map(self.read, value), key=json.dumps)]

    @_content.register
    def _(self, value: CodeType) -> Any:
        # names of arguments count: they may be given by name. The bytes belong to one interpreter
        names = [value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars]
        code = value.co_code.hex(), value.co_exceptiontable.hex()
        content = [code, value.co_consts, value.co_flags, names]
        return ["code", sys.implementation.cache_tag, self.read(content)]

    @_content.register
    def _(self, value: FunctionType) -> Any:
        if _installed(value.__module__) and "<" not in value.__qualname__:
            return ["name", value.__module__, value.__qualname__]
        used = {name: value.__globals__[name] for name in _globals(value)}
        cells = (cell for cell in value.__closure__ or () if cell != CellType())  # none is empty
        enclosed = [cell.cell_contents for cell in cells]
        return self._once(
            value, [value.__code__, value.__defaults__, value.__kwdefaults__, enclosed, used]
        )

    @_content.register
    def _(self, value: type) -> Any:
        if _installed(value.__module__):
            return ["name", value.__module__, value.__qualname__]
        own = {n: _underlying(m) for n, m in vars(value).items() if n not in _BOOKKEEPING}
        return self._once(value, [value.__qualname__, own, list(value.__bases__)])

    def _once(self, value: object, content: object) -> Any:
        if id(value) in self.begun:
            return ["again", self.begun.index(id(value))]
        self.begun.append(id(value))
        try:
            return [type(value).__name__, self.read(content)]
        finally:
            self.begun.pop()

    @_content.register
    def _(self, value: _lru_cache_wrapper) -> Any:  # type: ignore[type-arg]
        return ["cached", self.read(value.__wrapped__)]

    @_content.register
    def _(self, value: MethodType) -> Any:
        return ["method", self.read(value.__self__), self.read(value.__func__)]

    @_content.register
    def _(self, value: partial) -> Any:  # type: ignore[type-arg]
        return ["partial", self.read([value.func, value.args, value.keywords])]

    @_content.register
    def _(self, value: BuiltinFunctionType) -> Any:
        owner = value.__self__
        of = owner.__name__ if isinstance(owner, ModuleType) else self.read(owner)
        return ["builtin", of, value.__name__]

    @_content.register
    def _(self, value: np.ufunc) -> Any:
        for home in ("numpy", "scipy.special"):
            if getattr(sys.modules.get(home), value.__name__, None) is value:
                return ["name", home, value.__name__]
        raise _untold(value)  # np.frompyfunc hides what it was made of

    @_content.register
    def _(self, value: ModuleType) -> Any:
        if not _installed(value.__name__):
            raise _untold(value)
        return ["module", value.__name__]


class _Pickler(pickle.Pickler):
    """Writes what functions and classes contain in place of their names."""

    def __init__(self, stream: io.BytesIO, reader: _Reader) -> None:
        super().__init__(stream, protocol=5)
        self.reader = reader

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, FunctionType | _lru_cache_wrapper | type | np.ufunc):
            return json.dumps(self.reader.read(value))
        return None

    def reducer_override(self, value: Any) -> Any:
        home = getattr(value, "__module__", None) or type(value).__module__
        known = _installed(home) or type(value) in copyreg.dispatch_table
        if not known and isinstance(value.__reduce_ex__(5), str):
            raise _untold(value)  # a name tells nothing of the content
        return NotImplemented


def _attributes(value: object) -> dict[str, object]:
    """The fields of an object, and of one's own class all attributes that were not computed."""
    kind = type(value)
    names = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    if not _installed(kind.__module__):
        own = getattr(value, "__dict__", {})
        names |= {n for n in own if not isinstance(getattr(kind, n, None), cached_property)}
    return {name: getattr(value, name) for name in names}


_BOOKKEEPING = {
    *("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__"),
    *("__dataclass_fields__", "__dataclass_params__", "__abstractmethods__", "_abc_impl"),
    *("__firstlineno__", "__static_attributes__", "__annotate_func__", "__parameters__"),
}


def _underlying(member: object) -> object:
    """The functions behind a descriptor."""
    if isinstance(member, property):
        return [member.fget, member.fset, member.fdel]
    if isinstance(member, cached_property):
        return member.func
    return getattr(member, "__func__", member)  # of static and class methods


def _globals(function: FunctionType) -> list[str]:
    """Names of globals that a function uses, or a function inside it; builtins are none."""
    return sorted(name for name in set(_loaded(function.__code__)) if name in function.__globals__)


def _loaded(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded(constant)


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
