"""Gaussian coefficients of every activation: closed form, quadrature, and what is refused."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.features.activations import REGISTRY, Activation, Custom, kappas_by_quadrature

PROPERTY = settings(max_examples=40)

# independent definitions, for one mpmath number
IN_MPMATH = {
    "sign": mp.sign,
    "erf": mp.erf,
    "tanh": mp.tanh,
    "relu": lambda x: max(x, mp.mpf(0)),
    "identity": lambda x: x,
    "hard_tanh": lambda x: min(max(x, mp.mpf(-1)), mp.mpf(1)),
}

every_activation = pytest.mark.parametrize("name", REGISTRY)


def by_mpmath(function):
    """The three coefficients by 25-digit quadrature."""
    with mp.workdps(25):
        z = [-14, -6, -3, -1, 0, 1, 3, 6, 14]

        def mean(g):
            return mp.quad(lambda x: g(x) * mp.npdf(x), z)

        k0, k1 = mean(function), mean(lambda x: x * function(x))
        return k0, k1, mp.sqrt(mean(lambda x: (function(x) - k0 - k1 * x) ** 2))


@pytest.mark.slow
@every_activation
def test_kappas_are_the_gaussian_integrals(name):
    assert name in IN_MPMATH, "write the activation in mpmath as well, as a second opinion"
    expected = [float(k) for k in by_mpmath(IN_MPMATH[name])]
    assert REGISTRY[name]().kappas == pytest.approx(expected, abs=1e-12, rel=1e-12)


@every_activation
def test_closed_form_and_quadrature_agree(name):
    activation = REGISTRY[name]()
    assert activation.kappas == pytest.approx(kappas_by_quadrature(activation), abs=1e-12)


@every_activation
def test_activation_is_the_function_it_is_called_after(name):
    x = np.array([-7.0, -1.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.5, 7.0])
    expected = [float(IN_MPMATH[name](mp.mpf(v))) for v in x]
    assert REGISTRY[name]()(x) == pytest.approx(expected, abs=1e-15, rel=1e-15)


@every_activation
def test_activation_keeps_the_shape_and_leaves_its_argument_alone(name):
    x = np.linspace(-2.0, 2.0, 6).reshape(2, 3)
    before = x.copy()
    out = REGISTRY[name]()(x)
    out += 1.0
    assert out.shape == x.shape
    assert np.array_equal(x, before)


def test_sign_has_the_constants_of_the_paper():
    assert REGISTRY["sign"]().kappas == pytest.approx(
        (0.0, math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi)), abs=1e-15
    )


def test_erf_has_the_constants_of_the_paper():
    k0, k1, ks = REGISTRY["erf"]().kappas
    assert k0 == 0.0
    assert k1 == pytest.approx(2 / math.sqrt(3 * math.pi), abs=1e-15)
    assert ks == pytest.approx(0.2004, abs=5e-5)
    assert math.floor(1e4 * ks) == 2003  # the paper truncates where it should round


def test_relu_has_the_constants_of_the_theory():
    expected = 1 / math.sqrt(2 * math.pi), 0.5, math.sqrt(0.25 - 1 / (2 * math.pi))
    assert REGISTRY["relu"]().kappas == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "custom"),
    [
        ("tanh", Custom(np.tanh)),
        ("erf", Custom(erf)),
        ("sign", Custom(np.sign, kinks=(0.0,))),
        ("relu", Custom(lambda x: x * (x > 0), kinks=(0.0,))),
        ("hard_tanh", Custom(lambda x: np.clip(x, -1, 1), kinks=(1.0, -1.0))),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_custom_activation_agrees_with_the_built_in(name, custom):
    assert custom.kappas == pytest.approx(REGISTRY[name]().kappas, abs=1e-12)


def test_off_centre_jump_is_integrated_once_it_is_declared():
    at = 0.3
    step = Custom(lambda x: np.where(x > at, 1.0, 0.0), kinks=(at,))
    tail, density = float(mp.ncdf(-at)), float(mp.npdf(at))
    expected = tail, density, math.sqrt(tail - tail**2 - density**2)
    assert step.kappas == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("width", [0.1, 1e-2, 1e-3, 1e-4, 1e-7])
def test_a_spike_is_resolved_or_can_be_declared(width):
    """x + exp(-((x-a)/w)²)/√w, whose coefficients are Gaussian integrals in closed form."""
    a, v = 1.2345, width**2
    kinks = (a - 8 * width, a + 8 * width) if width < 1e-4 else ()
    spike = Custom(lambda x: x + width**-0.5 * np.exp(-(((x - a) / width) ** 2)), kinks=kinks)
    mean = math.sqrt(width / (2 + v)) * math.exp(-(a**2) / (2 + v))
    tilt = mean * 2 * a / (2 + v)
    square = math.exp(-(a**2) / (2 + v / 2)) / math.sqrt(v + 4)
    expected = mean, 1 + tilt, math.sqrt(square - mean**2 - tilt**2)
    assert spike.kappas == pytest.approx(expected, rel=1e-10)


def test_kinks_beyond_the_reach_of_the_gaussian_change_nothing():
    assert Custom(np.tanh, kinks=(-50.0, 0.2, 0.2, 50.0)).kappas == pytest.approx(
        REGISTRY["tanh"]().kappas, abs=1e-12
    )


def test_activation_without_linear_part_has_kappa_1_zero():
    assert Custom(lambda x: x**2 - 1.0).kappas == pytest.approx((0.0, 0.0, math.sqrt(2)), abs=1e-12)


@pytest.mark.slow
@PROPERTY
@given(shift=st.floats(-10, 10), slope=st.floats(0.01, 100), turn=st.sampled_from([-1, 1]))
def test_affine_activation_has_kappa_star_zero(shift, slope, turn):
    k0, k1, ks = Custom(lambda x: shift + turn * slope * x).kappas
    size = math.hypot(shift, slope)
    assert ks == 0.0
    assert k1 == pytest.approx(turn * slope, abs=1e-12 * size)
    assert k0 == pytest.approx(shift, abs=1.001e-11 * size)  # a mean of 1e-11 may be rounded to 0


@pytest.mark.slow
@PROPERTY
@given(scale=st.floats(1e-9, 1e9), name=st.sampled_from(sorted(REGISTRY)))
def test_kappas_scale_with_the_activation(scale, name):
    built_in = REGISTRY[name]()
    scaled = Custom(lambda x: scale * built_in(x), kinks=built_in.kinks)
    expected = [scale * k for k in built_in.kappas]
    assert scaled.kappas == pytest.approx(expected, abs=1e-11 * scale)


@pytest.mark.parametrize("growth", [0.1, 0.2])
def test_fast_growing_activation_is_integrated(growth):
    exact_0, exact_square = (1 - 2 * growth) ** -0.5, (1 - 4 * growth) ** -0.5
    found = Custom(lambda x: np.exp(growth * x**2)).kappas
    expected = exact_0, 0.0, math.sqrt(exact_square - exact_0**2)
    assert found == pytest.approx(expected, abs=1e-11)


def scalar_step(x):
    return 1.0 if x > 0.0 else -1.0


REFUSED = {
    "NaN everywhere": (lambda x: np.full_like(x, np.nan), "finite"),
    "NaN on one side": (lambda x: np.where(x < 0, np.nan, x), "finite"),
    "infinite": (lambda x: np.where(x > 5, np.inf, x), "finite"),
    "zero": (np.zeros_like, "constant"),
    "constant": (lambda x: np.full_like(x, 3.7), "constant"),
    "a scalar out of an array": (lambda x: np.float64(x.sum()), "vectorised"),
    "one value too few": (lambda x: x[1:], "vectorised"),
    "math.tanh": (math.tanh, "vectorised"),
    "an if": (scalar_step, "vectorised"),
    "undeclared jump": (lambda x: np.where(x > 0.3, 1.0, 0.0), "kinks"),
    "too fast for any quadrature": (lambda x: np.sin(1e8 * np.exp(0.5 * x)), "kinks"),
    "undeclared corner": (lambda x: np.maximum(x - 0.3, 0.0), "kinks"),
    "a second moment beyond reach": (lambda x: np.exp(0.24 * x**2), "grow more slowly"),
    "no second moment": (lambda x: np.exp(0.3 * x**2), "activation"),
    "no mean": (lambda x: np.exp(0.6 * x**2), "activation"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_unusable_activation_is_refused(case):
    function, sentence = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        _ = Custom(function).kappas
    assert caught.value.argument == "activation"


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(InvalidArgumentError, match="callable") as caught:
        Custom(3.0)
    assert caught.value.argument == "function"


@pytest.mark.parametrize("kinks", [(float("nan"),), 0.5], ids=str)
def test_kinks_must_be_a_sequence_of_numbers(kinks):
    with pytest.raises(InvalidArgumentError) as caught:
        _ = Custom(np.tanh, kinks=kinks).kappas
    assert caught.value.argument == "kinks"


def test_subclass_gets_its_coefficients_by_quadrature():
    class Cubic(Activation):
        def __call__(self, x):
            return x**3

    assert Cubic().kappas == pytest.approx((0.0, 3.0, math.sqrt(6)), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_growth_on_one_side_alone_is_seen(side):
    """Of exp(gx) the mean square gathers around x = 2g, far out on one side."""
    g = 6.0 * side
    k0, k1, ks = Custom(lambda x: np.exp(g * x)).kappas
    mean = math.exp(g * g / 2)
    assert (k0, k1) == pytest.approx((mean, g * mean), rel=1e-9)
    assert ks == pytest.approx(math.sqrt(math.exp(2 * g * g) - (1 + g * g) * mean**2), rel=1e-9)
