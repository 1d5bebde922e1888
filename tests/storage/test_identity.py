"""The identity of a value: the same in every process, another for other content."""

import pickle
import re
import subprocess
import sys
import types
from dataclasses import InitVar, dataclass
from functools import cache, cached_property, partial

import numpy as np
import pytest
from scipy import special
from scipy.interpolate import CubicSpline

import hiddenmanifold as hm
from given import plain_model as model
from hiddenmanifold.losses import Loss
from hiddenmanifold.storage.identity import content_hash, identity

F = np.random.default_rng(0).standard_normal((6, 4))
SCALE = 2.0


def scaled(x):
    return SCALE * np.tanh(x)


def nested(x):
    return scaled(x) + 1.0


def itself(x, depth=2):
    return x if depth == 0 else itself(np.tanh(x), depth - 1)


def power(k):
    return lambda x: np.tanh(x) ** k


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    @cached_property
    def square(self):
        return self.scale**2

    def __call__(self, x):
        return self.scale * np.tanh(x)


class Rescaled(Scaled):
    """What it computes once is inherited."""


@dataclass
class Settled:
    """Keeps what is no field."""

    name: str
    scale: InitVar[float]

    def __post_init__(self, scale):
        self.kept = scale


def of_class(text, *arguments):
    """A class defined by a text, as in a notebook."""
    space = {"np": np, "__name__": "__main__"}
    exec(text, space)
    return space["Rule"](*arguments)


def nameless(text):
    """A function of no module, as some libraries make them from formulae."""
    space = {}
    exec(f"def rule(x): return {text}", space)
    return space["rule"]


def unfinished():
    """A function that encloses what has no value."""

    def rule(x):
        return later * x

    if not callable(rule):
        later = 1.0
    return rule


VALUES = {
    "erf": model,
    "hinge": lambda: model(loss="hinge"),
    "intercept": lambda: model(intercept=True),
    "flips": lambda: model(teacher=hm.teachers.Sign(flip=0.1)),
    "matrix": lambda: model(projection=hm.projections.Matrix(F)),
    "other matrix": lambda: model(projection=hm.projections.Matrix(F + 1e-15 * np.eye(6, 4))),
    "transposed": lambda: model(projection=hm.projections.Matrix(F.T)),
    "deep": lambda: model(
        activation=None,
        projection=None,
        features=hm.features.Deep([hm.features.Layer("tanh", width=2.0), hm.features.Layer("erf")]),
    ),
    "wider": lambda: model(
        activation=None,
        projection=None,
        features=hm.features.Deep([hm.features.Layer("tanh", width=3.0), hm.features.Layer("erf")]),
    ),
    "function": lambda: model(activation=scaled),
    "calls a function": lambda: model(activation=nested),
    "recursive": lambda: model(activation=itself),
    "recursive, deeper": lambda: partial(itself, depth=3),
    "lambda": lambda: model(activation=lambda x: np.tanh(x) + 0.0),
    "other lambda": lambda: model(activation=lambda x: np.tanh(2.0 * x)),
    "other attribute": lambda: model(activation=lambda x: np.arctan(x) + 0.0),
    "closure": lambda: model(activation=power(3)),
    "other closure": lambda: model(activation=power(5)),
    "partial": lambda: partial(np.power, 2.0),
    "other partial": lambda: partial(np.power, 3.0),
    "object": lambda: model(activation=Scaled(2.0)),
    "other object": lambda: model(activation=Scaled(3.0)),
    "method": lambda: Scaled(2.0).__call__,
    "notebook class": lambda: of_class("class Rule:\n def __call__(self, x): return np.tanh(x)"),
    "edited class": lambda: of_class("class Rule:\n def __call__(self, x): return np.sin(x)"),
    "special": lambda: model(activation=special.erf),
    "other special": lambda: model(activation=special.i1e),
    "vectorised": lambda: np.vectorize(lambda x: np.tanh(x) + 0.0),
    "other vectorised": lambda: np.vectorize(lambda x: np.sin(x) + 0.0),
    "vectorised by name": lambda: np.vectorize(scaled),
    "cached": lambda: cache(lambda x: np.tanh(x) + 0.0),
    "other cached": lambda: cache(lambda x: np.sin(x) + 0.0),
    "cached and vectorised": lambda: np.vectorize(cache(lambda x: np.tanh(x) + 0.0)),
    "other cached and vectorised": lambda: np.vectorize(cache(lambda x: np.sin(x) + 0.0)),
    "nameless": lambda: nameless("x + 1.0"),
    "other nameless": lambda: nameless("x + 2.0"),
    "unfinished": unfinished,
    "no field": lambda: Settled("a", 2.0),
    "other no field": lambda: Settled("a", 3.0),
    "own number": lambda: of_class("class Rule(float):\n def __mul__(self, x): return x", 2.0),
    "edited number": lambda: of_class("class Rule(float):\n def __mul__(self, x): return -x", 2.0),
    "other number": lambda: of_class("class Rule(float):\n def __mul__(self, x): return x", 3.0),
    "own mapping": lambda: of_class("class Rule(dict):\n def __missing__(self, x): return 1"),
    "edited mapping": lambda: of_class("class Rule(dict):\n def __missing__(self, x): return 2"),
    "ellipsis": lambda: lambda x: x[..., 0],
    "other index": lambda: lambda x: x[..., 1],
    "pattern": lambda: re.compile("a"),
    "other pattern": lambda: re.compile("b"),
    "array": lambda: np.array([1.0, 2.0]),
    "masked": lambda: np.ma.array([1.0, 2.0], mask=[False, True]),
    "named fields": lambda: np.zeros(2, dtype=[("a", float)]),
    "other named fields": lambda: np.zeros(2, dtype=[("b", float)]),
    "spline": lambda: CubicSpline(np.arange(5.0), np.arange(5.0) ** 3),
    "other spline": lambda: CubicSpline(np.arange(5.0), np.arange(5.0) ** 2),
    "objects": lambda: np.array([1.0, "a"], dtype=object),
    "other objects": lambda: np.array([1.0, "b"], dtype=object),
    "set": lambda: {"a", "b", "c"},
    "one and True": lambda: (1, True),
    "True and one": lambda: (True, 1),
    "1.0": lambda: 1.0,
    "minus zero": lambda: -0.0,
    "zero": lambda: 0.0,
    "float32": lambda: np.float32(1.0),
    "mapping": lambda: {"a": 1, "b": 2},
    "other mapping": lambda: {"a": 2, "b": 1},
}


def all_of_them():
    return {name: content_hash(make()) for name, make in VALUES.items()}


@pytest.mark.slow
def test_different_content_has_different_hashes():
    found = all_of_them()
    assert len(set(found.values())) == len(found)


@pytest.mark.slow
def test_another_process_finds_the_same():
    # hashes of strings differ from process to process, and with them the order of sets
    code = "import test_identity as t; print(sorted(t.all_of_them().items()))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=__file__.rpartition("/")[0],
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == str(sorted(all_of_them().items()))


@pytest.mark.parametrize("name", ["erf", "matrix", "deep", "function", "object", "spline"])
def test_a_copy_has_the_same(name):
    value = VALUES[name]()
    assert content_hash(pickle.loads(pickle.dumps(value))) == content_hash(value)


def test_the_order_in_which_attributes_were_set_does_not_count():
    one, other = types.SimpleNamespace(a=1.0, b=2.0), types.SimpleNamespace(b=2.0, a=1.0)
    assert content_hash(one) == content_hash(other)
    assert content_hash(one) != content_hash(types.SimpleNamespace(a=2.0, b=1.0))


def test_what_was_computed_on_the_way_does_not_count():
    for value in (Scaled(2.0), Rescaled(2.0)):
        before = content_hash(value)
        assert value.square == 4.0
        assert content_hash(value) == before
    used = model(activation=np.tanh)
    hm.predict(used, n_over_d=1.0, p_over_n=1.0, regularisation=1.0)
    assert content_hash(used) == content_hash(model(activation=np.tanh))


@pytest.mark.slow
def test_globals_that_a_function_uses_count(monkeypatch):
    before = {name: content_hash(VALUES[name]()) for name in VALUES}
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    changed = {name for name in VALUES if content_hash(VALUES[name]()) != before[name]}
    assert changed == {"function", "calls a function", "vectorised by name"}


def test_attributes_of_a_function_count():
    def f(z):
        return np.tanh(f.steepness * z)

    f.steepness = 1.0
    before = content_hash(f)
    f.steepness = 2.0
    assert content_hash(f) != before


def test_an_edited_loss_is_another():
    @dataclass(frozen=True)
    class Mine(Loss):
        def value(self, s):
            return s**2

    first = content_hash(Mine())

    @dataclass(frozen=True)
    class Mine(Loss):
        def value(self, s):
            return s**4

    assert content_hash(Mine()) != first


def test_an_object_may_tell_its_own():
    class Wrapped:
        __slots__ = ("fingerprint", "handle")

    one, two = Wrapped(), Wrapped()
    one.handle, two.handle = (object() for _ in range(2))
    one.fingerprint = two.fingerprint = "table 7"
    assert content_hash(one) == content_hash(two)
    two.fingerprint = "table 8"
    assert content_hash(one) != content_hash(two)


def test_what_tells_its_own_is_still_of_its_class():
    class One:
        fingerprint = "version 1"

    class Two:
        fingerprint = "version 1"

    assert content_hash(One()) != content_hash(Two())


def test_a_function_may_tell_its_own():
    def rule(x):
        return OWN.rule(x)

    rule.fingerprint = "version 1"
    first = content_hash(rule)
    rule.fingerprint = "version 2"
    assert content_hash(rule) != first


class ByName:
    """Known to pickle by its name alone."""

    __slots__ = ()

    def __reduce__(self):
        return "BY_NAME"


BY_NAME = ByName()
OWN = types.ModuleType("a_module_of_mine")
UNTOLD = {
    "frompyfunc": np.frompyfunc(scaled, 1, 1),
    "module": lambda x: OWN.rule(x) + 0.0,
    "by name": BY_NAME,
    "generator": (i for i in range(3)),
    "file": open(__file__, encoding="utf-8"),  # noqa: SIM115
}


@pytest.mark.parametrize("name", UNTOLD)
def test_what_cannot_be_told_is_refused(name):
    told = r"store cannot identify .* attribute `fingerprint`"
    with pytest.raises(hm.InvalidArgumentError, match=told):
        content_hash(UNTOLD[name])


def test_what_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(hm.InvalidArgumentError, match="attribute `fingerprint`"):
        content_hash(endless)


def test_the_identity_of_a_plain_model_is_its_repr():
    for name in ("erf", "hinge", "intercept", "flips", "deep"):
        rule = VALUES[name]()
        assert identity(rule) == repr(rule)


@pytest.mark.parametrize("name", ["matrix", "lambda", "closure", "object", "special"])
def test_the_identity_of_other_models_has_their_hash(name):
    rule = VALUES[name]()
    text, _, digest = identity(rule).rpartition(" ")
    assert digest == content_hash(rule)
    assert " at 0x" not in text


def test_a_subclass_of_ours_is_not_plain():
    @dataclass(frozen=True)
    class Mine(hm.losses.Huber):
        def value(self, s):
            return 2.0 * super().value(s)

    assert identity(Mine(0.5)) != repr(Mine(0.5))
