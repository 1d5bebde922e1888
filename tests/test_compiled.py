"""The compiled kernel against NumPy, against mpmath, and on threads."""

import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec

import mpmath
import numpy as np
import pytest
import xarray as xr
from configurations import custom_loss, pseudo_huber, random_model
from scipy.special import expit

import hiddenmanifold as hm
from given import OF_SHORTFALL
from hiddenmanifold import compiled
from hiddenmanifold.errors import CERTIFICATES, InvalidArgumentError
from hiddenmanifold.losses import Custom
from hiddenmanifold.numerics.cells import cells
from hiddenmanifold.numerics.newton import newton_step
from hiddenmanifold.theory.labels_side.kinds import kind_of
from seeds import some_slow

COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]


def test_there_is_a_kernel_where_there_is_a_compiler():
    if shutil.which(os.environ.get("CC", COMPILER)) and "HIDDENMANIFOLD_ENGINE" not in os.environ:
        assert compiled.engine() == "compiled", "install the package again to build it"


needs_extension = pytest.mark.skipif(compiled.engine() == "numpy", reason="the kernel is not built")


@pytest.fixture
def by_numpy(monkeypatch):
    """Run a function by NumPy."""

    def run(function, *arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "_extension", None)
            assert compiled.engine() == "numpy"
            return function(*arguments, **options)

    return run


# ---------------------------------------------------------------- which engine


def engine_in(environment: dict[str, str]) -> subprocess.CompletedProcess:
    code = "import hiddenmanifold.compiled as k; print(k.engine())"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_environment_can_ask_for_numpy():
    assert engine_in({"HIDDENMANIFOLD_ENGINE": "numpy"}).stdout == "numpy\n"
    built = find_spec("hiddenmanifold.compiled._extension") is not None
    assert engine_in({"HIDDENMANIFOLD_ENGINE": ""}).stdout.strip() == (
        "compiled" if built else "numpy"
    )


def test_an_unknown_engine_is_refused():
    found = engine_in({"HIDDENMANIFOLD_ENGINE": "fortran"})
    assert found.returncode != 0
    assert "'fortran'" in found.stderr and "one of compiled, numpy" in found.stderr


def test_an_engine_that_was_not_built_is_refused(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(compiled, "import_module", missing)
    monkeypatch.setenv("HIDDENMANIFOLD_ENGINE", "")
    with pytest.warns(UserWarning, match="no C compiler was found") as told:
        assert compiled._loaded() is None
        assert compiled._loaded() is None
    assert len(told) == 1
    monkeypatch.setenv("HIDDENMANIFOLD_ENGINE", "compiled")
    with pytest.raises(InvalidArgumentError, match="without a compiler"):
        compiled._loaded()


def test_datasets_name_their_engine(by_numpy):
    def attribute():
        return predicted(model_with()).attrs["engine"]

    assert attribute() == compiled.engine()
    assert by_numpy(attribute) == "numpy"


# ---------------------------------------------------------------- the normal law


def relative(found, exact):
    return max(float(abs(mpmath.mpf(f) / e - 1)) for f, e in zip(found, exact, strict=True))


def at_one_node(law, xi):
    """The normal density at each xi times a label law there: a rule of one node, on panels of 1."""
    rule, ones = np.array([[0.0], [1.0]]), np.ones(len(xi))
    return compiled.shares(law, ones, ones, xi[:, None] + np.array([0.0, 1.0]), rule)


def normal_density(t):
    return at_one_node(compiled.CompiledLaw(np.array([1.0, 0.0, 0.0])), t)


def normal_law(t):
    """Φ(t) as the probit of a threshold -t, of variance 1."""
    terms = (np.array([[1.0 / normal_density(np.zeros(1))[0]], [-x], [0.0]]) for x in t)
    laws = (compiled.CompiledLaw(terms=term) for term in terms)
    return np.array([at_one_node(law, np.zeros(1))[0] for law in laws])


@needs_extension
def test_normal_law_against_mpmath():
    # squares of these are exact, so that the exponential alone is judged
    t = np.arange(-37 * 64, 37 * 64 + 1, 7) / 64.0
    with mpmath.workdps(40):
        assert relative(normal_density(t), [mpmath.npdf(x) for x in t]) < 5e-16
        assert relative(normal_law(t), [mpmath.ncdf(x) for x in t]) < 2e-15
        near = np.concatenate([-np.geomspace(1e-300, 1.0, 200), np.geomspace(1e-300, 1.0, 200)])
        assert relative(normal_law(near), [mpmath.ncdf(x) for x in near]) < 1e-15


@needs_extension
def test_normal_law_far_out():
    t = np.array([-np.inf, -1e300, -40.0, -37.7, 37.7, 40.0, 1e300, np.inf])
    assert (normal_density(t[2:-2]) <= 1e-300).all()
    law = normal_law(t)
    np.testing.assert_array_equal(law > 0.5, t > 0)
    assert (np.minimum(law, 1.0 - law) <= 1e-300).all()
    assert np.isnan(normal_law(np.array([np.nan]))).all()


# ---------------------------------------------------------------- losses as polynomials


def bumpy(sharpness, scale):
    """A sum of a logistic loss and a square that sets in at a kink, of any sharpness."""

    def value(m):
        return np.logaddexp(0.0, -sharpness * m) / sharpness + np.maximum(0.3 - m, 0.0) ** 2

    def derivative(m):
        return -expit(-sharpness * m) - 2.0 * np.maximum(0.3 - m, 0.0)

    def second_derivative(m):
        bend = sharpness * expit(sharpness * m) * expit(-sharpness * m)
        return bend + np.where(m < 0.3, 2.0, 0.0)

    return Custom(value, derivative, second_derivative, kinks=(0.3,), scale=scale)


def log_cosh():
    return Custom(
        lambda r: np.where(
            np.abs(r) < 1.0,
            np.log1p(2.0 * np.sinh(0.5 * np.clip(r, -1.0, 1.0)) ** 2),
            np.logaddexp(r, -r) - np.log(2.0),
        ),
        np.tanh,
        lambda r: 1.0 / np.cosh(np.clip(r, -300.0, 300.0)) ** 2,
        of="residual",
        scale=0.35,
    )


LOSSES = {
    **OF_SHORTFALL,
    "huber 0.3": hm.losses.Huber(0.3),
    "smoothed hinge 0.7": hm.losses.SmoothedHinge(0.7),
    "custom": custom_loss(),
    "custom with a kink": bumpy(1.0, 1.0),
    "log cosh": log_cosh(),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def evaluated(table, s):
    """First and second derivative and function at s, from a table of cells."""
    cell = table[np.searchsorted(table[:, 0], s)]
    pairs = (cell.shape[1] - 3) // 6
    t = (s - cell[:, 1]) * cell[:, 2]
    slopes = cell[:, 3 : 3 + 4 * pairs].reshape(len(s), pairs, 2, 2)
    coefficients = [slopes[:, :, 0], slopes[:, :, 1], cell[:, 3 + 4 * pairs :]]
    return [
        (c.reshape(len(s), -1) * t[:, None] ** np.arange(2 * pairs)).sum(1) for c in coefficients
    ]


@every_loss
def test_cells_follow_the_loss(loss):
    s = np.concatenate([[-1e4, 1e4], np.random.default_rng(0).uniform(-60.0, 60.0, 2000)])
    s = np.concatenate([s, *(kink + np.array([-1e-9, 1e-9]) for kink in loss.kinks)])
    functions = loss.derivative, loss.second_derivative, loss.value
    for found, function in zip(evaluated(loss.compiled.loss_cells, s), functions, strict=True):
        np.testing.assert_allclose(found, function(s), rtol=2e-13, atol=1e-15 * (loss.scale or 1))


@pytest.mark.parametrize("loss", [LOSSES["log cosh"], LOSSES["huber"]], ids=["log cosh", "huber"])
def test_slope_keeps_its_relative_precision_at_the_minimiser(loss):
    s = np.geomspace(1e-200, 1e-2, 50)
    s = np.concatenate([-s, s])
    np.testing.assert_allclose(
        evaluated(loss.compiled.loss_cells, s)[0], loss.derivative(s), rtol=1e-14
    )


def test_cells_leave_out_what_they_do_not_resolve():
    functions = (np.cos, lambda s: -np.sin(s), np.sin)  # they need not be convex here
    fine, coarse = (cells(functions, (), scale, 0.0).table for scale in (1.0, 40.0))
    assert np.isnan(fine[[0, -1], 3]).all()  # unbounded, and no parabola
    assert np.isfinite(fine[1:-1]).all()
    assert np.isnan(coarse[:, 3]).all()
    assert np.diff(coarse[:2, 0]) == 16.0  # narrower ones do not resolve it either


def test_cells_are_as_narrow_as_a_loss_asks_for(by_numpy):
    """It has a singularity nearer to the axis than others of its scale have."""
    loss = pseudo_huber()
    s = np.random.default_rng(0).uniform(-400.0, 400.0, 2000)
    functions = loss.derivative, loss.second_derivative, loss.value
    for found, function in zip(evaluated(loss.compiled.loss_cells, s), functions, strict=True):
        np.testing.assert_allclose(found, function(s), rtol=2e-13, atol=1e-15)
    model = model_with(loss)
    xr.testing.assert_allclose(predicted(model), by_numpy(predicted, model), rtol=1e-10)


def test_cells_are_made_once_for_all_losses_that_are_equal():
    assert hm.losses.Logistic().compiled is hm.losses.Logistic().compiled
    assert hm.losses.Huber(0.2).compiled is not hm.losses.Huber(0.3).compiled


def test_cells_stay_at_home():
    loss = hm.losses.Huber(0.7)
    assert loss.compiled is loss.compiled
    copy = pickle.loads(pickle.dumps(loss))
    assert copy == loss and "compiled" not in vars(copy)


def test_cells_of_a_loss_that_cannot_be_hashed():
    @dataclass
    class Mine(hm.losses.Loss):
        value = hm.losses.Logistic.value
        derivative = hm.losses.Logistic.derivative
        second_derivative = hm.losses.Logistic.second_derivative

    found, expected = Mine().compiled.loss_cells, hm.losses.Logistic().compiled.loss_cells
    np.testing.assert_array_equal(found, expected)


def test_cells_of_functions_that_have_changed_are_made_anew():
    width = 1.0
    functions = (
        lambda r: np.sqrt(width**2 + r**2),
        lambda r: r / np.sqrt(width**2 + r**2),
        lambda r: width**2 / (width**2 + r**2) ** 1.5,
    )
    before = Custom(*functions, of="residual", scale=0.5)
    assert before.compiled is before.compiled
    width = 2.0
    after = Custom(*functions, of="residual", scale=0.5)
    assert before == after
    s = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(
        evaluated(after.compiled.loss_cells, s)[0], after.derivative(s), rtol=1e-12
    )


@pytest.mark.slow
@needs_extension
def test_numpy_is_asked_where_no_polynomial_will_do(by_numpy):
    model = model_with(loss=bumpy(40.0, 1.0))  # bends forty times faster than it says
    assert np.isnan(model.loss.compiled.loss_cells).any()
    xr.testing.assert_allclose(predicted(model), by_numpy(predicted, model), rtol=1e-10)


# ---------------------------------------------------------------- averages

RULES_OF_LABELS = {
    "sign": (hm.teachers.Sign(), False),
    "noisy": (hm.teachers.Sign(noise=0.3, flip=0.07, threshold=0.4, rho=1.7), True),
    "logistic": (hm.teachers.Logistic(slope=3.0, threshold=-0.2), False),
    "steps": (hm.teachers.Steps((-0.5, 0.1, 1.2)), True),
    "linear": (hm.teachers.Linear(), False),
    "classes": (hm.teachers.Mixture(prior=0.3, rho=2.0), True),
}


def channel(loss, rule):
    teacher, free = RULES_OF_LABELS[rule]
    return kind_of(teacher, loss)(teacher, loss, free and loss.kinks != (0.0,))


@pytest.mark.slow
@needs_extension
@pytest.mark.parametrize("rule", RULES_OF_LABELS)
@every_loss
def test_averages_are_those_of_numpy(loss, rule, by_numpy):
    """At any unknowns: kinks of no width, a teacher almost learned, and all that is in between."""
    labels, rng = channel(loss, rule), np.random.default_rng(1)
    logs = np.log(10.0) * rng.uniform(-1.0, 1.0, (60, 2)) * np.repeat([[3.0], [10.0]], 30, axis=0)
    x = np.hstack([logs, rng.uniform([-8.0, -1.5], [8.0, 1.5], (60, 2))])
    x = x[:, [0, 1, 3] if rule == "linear" else slice(4)][:, : labels.unknowns]
    # cuts may stand a little aside, and not where the other engine has them: the error that a level
    # of quadrature leaves is another, too
    for level, close in ((2, 1e-11), (4, 1e-13)):
        with np.errstate(all="ignore"):
            ours, theirs = (
                labels.averages(x, level, True),
                by_numpy(labels.averages, x, level, True),
            )
        np.testing.assert_allclose(ours.norm, theirs.norm, rtol=close)
        np.testing.assert_allclose(theirs.norm[:30], 1.0, rtol=1e-10)
        np.testing.assert_allclose(ours.data_loss, theirs.data_loss, rtol=1e-12)
        np.testing.assert_allclose(ours.e[:, :2], theirs.e[:, :2], rtol=1e-12, atol=1e-200)
        # the others have terms of both signs
        size = np.sqrt(theirs.e[:30, 1:2]) * np.exp(np.abs(x[:30, -1:]))
        assert (np.abs(ours.e - theirs.e)[:30, 2:] <= 1e-13 * size).all()
        size = np.abs(theirs.de[:30]).max((1, 2), keepdims=True)
        assert (np.abs(ours.de - theirs.de)[:30] <= 1e-11 * size).all()


# ---------------------------------------------------------------- predictions


def model_with(loss="logistic", teacher="sign", **options):
    return hm.Model(activation="sign", projection="gaussian", teacher=teacher, loss=loss, **options)


def predicted(model, **options):
    where = {"n_over_d": [0.5, 3.0], "p_over_n": [0.2, 0.9, 3.0], "regularisation": 1e-4}
    return hm.predict(model, **where, **options)


def assert_same(found, expected):
    """Every column to 1e-10, the fraction of training errors to 2e-12, and the same statuses."""
    np.testing.assert_array_equal(found.status, expected.status)
    for name in set(expected).difference(CERTIFICATES):
        small = {"training_error": (0.0, 2e-12), "intercept": (1e-10, 1e-13)}
        rtol, atol = small.get(name, (1e-10, 1e-200))
        np.testing.assert_allclose(found[name], expected[name], rtol=rtol, atol=atol, err_msg=name)


@needs_extension
@pytest.mark.parametrize("seed", some_slow(36))
def test_random_models_are_those_of_numpy(seed, by_numpy):
    rng = np.random.default_rng(seed)
    model = random_model(rng)

    def draw(low, high):
        return xr.DataArray(10.0 ** rng.uniform(low, high, 12), dims="point")

    where = {"n_over_p": draw(-3, 3), "d_over_p": draw(-3, 3), "regularisation": draw(-10, 10)}
    options = {"on_failure": "keep", "workers": 1}
    assert_same(
        hm.predict(model, **where, **options), by_numpy(hm.predict, model, **where, **options)
    )


@pytest.mark.slow
@needs_extension
def test_eight_threads_give_the_same_bits():
    models = [model_with(), model_with("hinge"), model_with(custom_loss(), "logistic")]
    jobs = [model for model in models for _ in range(8)]
    expected = [predicted(model, workers=1) for model in models]
    with ThreadPoolExecutor(8) as pool:
        for found, at in zip(pool.map(predicted, jobs), np.repeat(range(3), 8), strict=True):
            xr.testing.assert_identical(found, expected[at])


@pytest.mark.slow
@needs_extension
def test_other_threads_run_while_the_kernel_works():
    labels = channel(LOSSES["logistic"], "logistic")
    started, ended = threading.Event(), threading.Event()

    def work():
        started.set()
        labels.averages(np.zeros((4000, 3)), 4)
        ended.set()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)
        started.wait()
        turns = 0
        while not ended.is_set():
            time.sleep(1e-3)
            turns += 1
    assert turns > 10  # one or two if the interpreter had been held


# ---------------------------------------------------------------- Newton's steps


@needs_extension
@pytest.mark.parametrize("n", [2, 3, 4])
def test_newton_steps_are_those_of_numpy(n, by_numpy):
    rng = np.random.default_rng(n)
    matrix, residual = rng.standard_normal((200, n, n)), rng.standard_normal((200, n))
    matrix[0, 0, 0], residual[1, 0] = np.nan, np.inf
    matrix[2] *= np.geomspace(1e-150, 1e150, n)[:, None]
    residual[2] *= np.geomspace(1e-150, 1e150, n)
    steps, expected = newton_step(matrix, residual), by_numpy(newton_step, matrix, residual)
    np.testing.assert_array_equal(steps[:2], residual[:2])
    np.testing.assert_allclose(steps, expected, rtol=1e-9)
    matrix[5] = 0.0  # singular: all by pseudo-inverse, as NumPy does
    expected = by_numpy(newton_step, matrix, residual)
    np.testing.assert_array_equal(newton_step(matrix, residual), expected)


@needs_extension
def test_arguments_that_do_not_fit_are_refused_by_name():
    step = compiled._extension.newton_step
    good, matrix = np.zeros((2, 3)), np.zeros((2, 9))
    assert step(step=good.copy(), matrix=matrix + np.eye(3).ravel(), residual=good) is True
    wrong = {
        "shape": {"matrix": np.zeros((2, 8))},
        "doubles": {"residual": good.astype(np.float32)},
        "contiguous": {"residual": np.zeros((3, 2)).T},
        "writ|read-only": {"step": np.broadcast_to(0.0, (2, 3)).copy()},
    }
    wrong["writ|read-only"]["step"].flags.writeable = False
    for match, part in wrong.items():
        with pytest.raises((ValueError, BufferError), match=match):
            step(**({"step": good.copy(), "matrix": matrix, "residual": good} | part))
    with pytest.raises(TypeError, match="matrix is missing"):
        step(step=good.copy(), residual=good)
    with pytest.raises(ValueError, match="more than 8 columns"):
        step(step=np.zeros((1, 9)), matrix=np.zeros((1, 81)), residual=np.zeros((1, 9)))


@needs_extension
def test_an_extension_of_other_sources_is_refused(monkeypatch):
    monkeypatch.setattr(compiled, "AVERAGES", ("e0", "e1", "e2", "e3"))
    with pytest.raises(ImportError, match="build it again"):
        compiled._loaded()
