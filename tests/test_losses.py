"""Losses: derivatives, convexity, proximal maps against brute force, and what is refused."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import hiddenmanifold as hm
from given import OF_SHORTFALL
from hiddenmanifold import InvalidArgumentError, losses
from hiddenmanifold.checks import SCALAR_TASKS, Task
from hiddenmanifold.losses import (
    Absolute,
    Custom,
    Expectile,
    Hinge,
    Huber,
    Insensitive,
    LogCosh,
    Logistic,
    Quantile,
    SmoothedHinge,
    Square,
    SquaredHinge,
    check_loss,
)

PROPERTY = settings(max_examples=60)
EPS = np.finfo(float).eps


def pinball(r):
    return np.where(r > 0, 0.8 * r, -0.2 * r)


LOGISTIC = Custom(
    lambda m: np.logaddexp(0.0, -m), lambda m: -expit(-m), lambda m: expit(m) * expit(-m)
)
PSEUDO_HUBER = Custom(
    lambda r: r**2 / (1.0 + np.hypot(1.0, r)),
    lambda r: r / np.hypot(1.0, r),
    lambda r: np.hypot(1.0, r) ** -3.0,
    of="residual",
)
PINBALL = Custom(
    pinball, lambda r: np.where(r > 0, 0.8, -0.2), np.zeros_like, of="residual", kinks=(0.0,)
)
EXPONENTIAL = Custom(lambda m: np.exp(-m), lambda m: -np.exp(-m), lambda m: np.exp(-m))
# jumps of the slope at two margins, on top of a smooth part
BENT = Custom(
    lambda m: np.maximum(1 - m, 0.0) + 0.5 * np.maximum(-0.3 - m, 0.0) + np.logaddexp(0.0, -2 * m),
    lambda m: np.where(m < 1, -1.0, 0.0) - np.where(m < -0.3, 0.5, 0.0) - 2 * expit(-2 * m),
    lambda m: 4 * expit(2 * m) * expit(-2 * m),
    kinks=(-0.3, 1.0),
    scale=0.5,
)

LOSSES = {
    **OF_SHORTFALL,
    "smoothed hinge, short": SmoothedHinge(0.01),
    "smoothed hinge, long": SmoothedHinge(30.0),
    "huber, narrow": Huber(0.05),
    "huber, wide": Huber(20.0),
    "quantile, high": Quantile(0.9),
    "expectile, low": Expectile(0.15),
    "insensitive, wide": Insensitive(2.5),
    "custom logistic": LOGISTIC,
    "custom pseudo-Huber": PSEUDO_HUBER,
    "custom pinball": PINBALL,
    "custom exponential": EXPONENTIAL,
    "custom with kinks": BENT,
}
every_loss = pytest.mark.parametrize("name", LOSSES)
any_loss = st.sampled_from(sorted(LOSSES))

U = np.unique(np.append(np.linspace(-50, 50, 41), [-1.0, -0.01, -1e-9, 0.0, 1e-9, 0.01, 1.0]))
V = 10.0 ** np.arange(-6, 9)


def reach(name):
    """How far from the centre the loss is a comfortable size."""
    return 15.0 if name == "custom exponential" else 50.0


def away_from_kinks(loss, limit, distance):
    s = np.linspace(-limit, limit, 1501) + 0.00123
    gaps = np.abs(s[:, None] - np.array([*loss.kinks, np.inf]))
    return s[gaps.min(1) > distance]


def difference(function, s, h):
    """Five-point difference quotient."""
    return (8 * (function(s + h) - function(s - h)) - function(s + 2 * h) + function(s - 2 * h)) / (
        12 * h
    )


@every_loss
def test_every_loss_passes_the_check_of_others(name):
    check_loss(LOSSES[name])


@every_loss
def test_derivative_is_the_slope_of_the_value(name):
    loss, h = LOSSES[name], 1e-3
    s = away_from_kinks(loss, reach(name), 2 * h)
    assert loss.derivative(s) == pytest.approx(difference(loss.value, s, h), rel=1e-9, abs=1e-9)


@every_loss
def test_second_derivative_is_the_slope_of_the_derivative(name):
    loss, h = LOSSES[name], 1e-3
    s = away_from_kinks(loss, reach(name), 2 * h)
    expected = difference(loss.derivative, s, h)
    assert loss.second_derivative(s) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_loss
def test_value_has_no_jump_at_a_kink(name):
    loss = LOSSES[name]
    for kink in loss.kinks:
        below, at, above = loss.value(kink + np.array([-1e-9, 0.0, 1e-9]))
        assert (below, above) == pytest.approx((at, at), abs=1e-7)


@every_loss
def test_every_function_keeps_the_shape(name):
    loss, s = LOSSES[name], np.linspace(-2.0, 3.0, 6).reshape(2, 3)
    for function in (loss.value, loss.derivative, loss.second_derivative):
        assert function(s).shape == s.shape


@PROPERTY
@given(name=any_loss, a=st.floats(-50, 50), b=st.floats(-50, 50), t=st.floats(0, 1))
def test_every_loss_is_convex(name, a, b, t):
    loss = LOSSES[name]
    values = loss.value(np.array([a, b, t * a + (1 - t) * b]))
    chord = t * values[0] + (1 - t) * values[1]
    assert values[2] <= chord + 1e-13 * (1 + np.abs(values).max())
    slopes = loss.derivative(np.sort([a, b]))
    assert slopes[0] <= slopes[1]
    assert loss.second_derivative(np.array([a]))[0] >= 0.0


@every_loss
def test_even_loss_is_the_same_on_both_sides(name):
    loss, s = LOSSES[name], np.linspace(0.0, 5.0, 101)
    if loss.even:
        assert np.array_equal(loss.value(s), loss.value(-s))
    else:  # a declaration forgotten on a built-in loss would cost an unknown
        assert loss.value(s) != pytest.approx(loss.value(-s)) or isinstance(loss, Custom)


@every_loss
def test_knots_are_sorted_and_their_slopes_increase(name):
    loss = LOSSES[name]
    s, below, above, second = loss.knots
    assert np.all(np.diff(s) > 0)
    assert set(loss.kinks) <= set(s)
    assert np.all(below <= above)
    assert np.all(above[:-1] <= below[1:])
    assert np.all(second >= 0)
    jumps = {k for k, low, high in zip(s, below, above, strict=True) if high > low + 1e-9}
    assert jumps <= set(loss.kinks)


@pytest.mark.parametrize(
    ("name", "jump"),
    [("hinge", (0.0, 1.0)), ("absolute", (-1.0, 1.0)), ("custom pinball", (-0.2, 0.8))],
)
def test_knot_of_a_jump_has_both_slopes(name, jump):
    s, below, above, _ = LOSSES[name].knots
    at = np.flatnonzero(s == 0.0)[0]
    assert (below[at], above[at]) == jump


def objective(loss, s, u, v):
    return (s - u) ** 2 / (2 * v) + loss.value(s)


@every_loss
def test_proximal_point_beats_a_brute_force_search(name):
    loss, limit = LOSSES[name], reach(name)
    u, v = np.broadcast_arrays(U[np.abs(U) <= limit][:, None], V)
    s = loss.proximal(u, v)
    assert s.shape == u.shape
    ends = u, u - v * loss.derivative(u)  # the minimum lies between, for any convex loss
    low, high = np.minimum(*ends), np.maximum(*ends)
    for _ in range(300):
        third = (high - low) / 3
        left, right = low + third, high - third
        worse = objective(loss, left, u, v) > objective(loss, right, u, v)
        low, high = np.where(worse, left, low), np.where(worse, high, right)
    brute = 0.5 * (low + high)
    best, found = objective(loss, brute, u, v), objective(loss, s, u, v)
    rounding = 1e-14 * ((s - u) ** 2 / v + np.abs(loss.value(s)) + EPS)
    assert np.all(found <= best + rounding)
    # the objective grows at least like distance^2/2V; the search sees it to rounding only
    assert np.all(np.abs(s - brute) <= np.sqrt(2 * v * (np.abs(best) * 1e-13 + 1e-15)) + 1e-9)


@every_loss
def test_proximal_point_is_optimal_to_rounding(name):
    loss = LOSSES[name]
    u, v = np.broadcast_arrays(U[:, None], V)
    s = loss.proximal(u, v)
    ulp = 4 * EPS * np.abs(s)
    before, after = np.nextafter(s - ulp, -np.inf), np.nextafter(s + ulp, np.inf)
    rounding = 1e-50 + 4 * EPS * (np.abs(u) + np.abs(s) + v * np.abs(loss.derivative(s)))
    assert np.all(before + v * loss.derivative(before) <= u + rounding)
    assert np.all(u <= after + v * loss.derivative(after) + rounding)


@PROPERTY
@given(name=any_loss, u=st.floats(-50, 50), step=st.floats(1e-6, 20), log_v=st.floats(-6, 8))
def test_proximal_map_increases_and_never_expands(name, u, step, log_v):
    ends = np.array([u, u + step])
    s = LOSSES[name].proximal(ends, np.array(10.0**log_v))
    rounding = 1e-13 * np.abs([*ends, *s]).max()
    assert -rounding <= s[1] - s[0] <= np.diff(ends)[0] + rounding


@pytest.mark.parametrize("V", [1e16, 1e17, 1e30, 1e100, 1e300])
def test_proximal_map_of_any_width_is_that_of_a_straight_slope(V):
    """From a kink, whose curvature is that of one side, plain Newton steps run in circles."""
    u = np.array([1e-3, 1.0, 1.5])
    found = SmoothedHinge(2.0).proximal(u, np.array(V))
    np.testing.assert_allclose(found, u / (1.0 + V / 2.0), rtol=1e-15)
    # s + V expit(s) = u: far down the tail the logarithms of both sides agree
    s = Logistic().proximal(u, np.array(V))
    np.testing.assert_allclose(np.log(V) + s - np.log1p(np.exp(s)), np.log(u - s), rtol=1e-14)


@every_loss
def test_proximal_map_of_zero_width_limit_is_the_identity(name):
    u = U[np.abs(U) <= reach(name)]
    shift = np.abs(LOSSES[name].proximal(u, np.array(1e-12)) - u)
    assert np.all(shift <= 1.1e-12 * np.abs(LOSSES[name].derivative(u)) + 2e-14)


@pytest.mark.parametrize("name", ["logistic", "custom with kinks", "huber", "hinge"])
def test_proximal_map_broadcasts_and_takes_scalars(name):
    loss = LOSSES[name]
    u, v = np.array([[-1.0], [0.4], [3.0]]), np.array([0.1, 1.0, 10.0, 1e4])
    table = loss.proximal(u, v)
    assert table.shape == (3, 4)
    for i, j in np.ndindex(table.shape):
        assert loss.proximal(u[i, 0], v[j]) == pytest.approx(table[i, j], rel=1e-14, abs=1e-50)


@pytest.mark.parametrize("name", ["logistic", "custom pseudo-Huber", "custom with kinks"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_proximal_point_meets_the_tolerance_it_was_given(name, tolerance):
    loss = LOSSES[name]
    u, v = np.broadcast_arrays(U[:, None], V)
    rough, exact = loss.proximal(u, v, tolerance), loss.proximal(u, v)
    rounding = 1e-12 * (np.abs(u) + v * np.abs(loss.derivative(exact)))
    # s is increasing in u with slope at most 1
    assert np.all(np.abs(rough - exact) <= tolerance + rounding)


# closed forms of the proximal point (theory, section 5): f_out = (u - s)/V, with u = 1 - margin


@pytest.mark.parametrize("kind", [losses.Huber, losses.SmoothedHinge])
def test_a_whole_number_is_a_number_as_others(kind):
    for whole, other in zip(kind(2).knots, kind(2.0).knots, strict=True):
        assert whole.dtype == other.dtype == float
        np.testing.assert_array_equal(whole, other)


def test_square_proximal_point():
    expected = U[:, None] / (1 + V)
    assert Square().proximal(U[:, None], V) == pytest.approx(expected, rel=1e-14, abs=0.0)


def test_hinge_proximal_point():
    u = U[:, None]
    expected = np.where(u < 0, u, np.maximum(u - V, 0.0))
    assert Hinge().proximal(u, V) == pytest.approx(expected, rel=1e-14, abs=1e-50)


def test_squared_hinge_proximal_point():
    u = U[:, None]
    expected = np.where(u < 0, u, u / (1 + V))
    assert SquaredHinge().proximal(u, V) == pytest.approx(expected, rel=1e-14, abs=1e-50)


def test_absolute_proximal_point():
    u = U[:, None]
    expected = np.sign(u) * np.maximum(np.abs(u) - V, 0.0)
    assert Absolute().proximal(u, V) == pytest.approx(expected, rel=1e-14, abs=1e-50)


@pytest.mark.parametrize("delta", [0.05, 1.0, 20.0])
def test_huber_proximal_point(delta):
    u = U[:, None]
    inside = np.abs(u) <= delta * (1 + V)
    expected = np.where(inside, u / (1 + V), u - np.sign(u) * V * delta)
    assert Huber(delta).proximal(u, V) == pytest.approx(expected, rel=1e-13, abs=1e-50)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_quantile_and_expectile_proximal_points(level):
    u = U[:, None]
    pull = np.clip(u / V, level - 1.0, level)
    found = Quantile(level).proximal(u, V)
    assert (u - found) / V == pytest.approx(pull, rel=1e-12, abs=1e-14 * np.abs(u / V).max())
    weight = np.where(u > 0, level, 1.0 - level)
    expected = u / (1.0 + weight * V)
    assert Expectile(level).proximal(u, V) == pytest.approx(expected, rel=1e-13, abs=1e-50)


@pytest.mark.parametrize("width", [0.1, 2.5])
def test_insensitive_proximal_point(width):
    u = U[:, None]
    beyond = np.maximum(np.abs(u) - width, 0.0)
    expected = u - np.sign(u) * np.minimum(beyond, V)
    assert Insensitive(width).proximal(u, V) == pytest.approx(expected, rel=1e-13, abs=1e-50)


def test_a_quantile_of_one_half_is_half_the_absolute_loss():
    s = np.linspace(-3.0, 3.0, 61)
    np.testing.assert_array_equal(2.0 * Quantile(0.5).value(s), Absolute().value(s))
    np.testing.assert_array_equal(2.0 * Expectile(0.5).value(s), Square().value(s))
    np.testing.assert_allclose(Insensitive(1e-9).value(s), Absolute().value(s), atol=1.1e-9)


def test_log_cosh_keeps_its_digits_and_never_overflows():
    s = np.array([-700.0, -40.5, -1.0, -1e-9, 0.0, 1e-150, 1e-6, 0.7, 1.3, 20.0, 1e5])
    with np.errstate(over="raise", invalid="raise"):
        found = LogCosh().value(s)
    with mp.workdps(330):
        expected = [float(mp.log(mp.cosh(mp.mpf(x)))) for x in s]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("kind", [Quantile, Expectile])
@pytest.mark.parametrize("level", [0.0, 1.0, -0.2, 1.5, float("nan"), "half"])
def test_level_must_lie_between_zero_and_one(kind, level):
    with pytest.raises(InvalidArgumentError) as caught:
        kind(level)
    assert caught.value.argument == "level"


@pytest.mark.parametrize("delta", [0.01, 1.0, 30.0])
def test_smoothed_hinge_is_the_hinge_of_a_wider_proximal_map(delta):
    u = U[:, None]
    wider = V + delta
    from_hinge = (u - Hinge().proximal(u, wider)) / wider
    h = SmoothedHinge(delta).derivative(SmoothedHinge(delta).proximal(u, V))
    assert h == pytest.approx(from_hinge, rel=1e-12, abs=1e-50)
    assert h == pytest.approx(np.clip(u / wider, 0.0, 1.0), rel=1e-12, abs=1e-50)


def test_small_delta_and_large_delta_reach_the_neighbouring_losses():
    s = np.linspace(-3.0, 3.0, 61)
    assert SmoothedHinge(1e-9).value(s) == pytest.approx(Hinge().value(s), abs=1e-9)
    assert Huber(1e9).value(s) == pytest.approx(Square().value(s), abs=1e-15)
    assert Huber(1e-9).value(s) / 1e-9 == pytest.approx(Absolute().value(s), abs=1e-8)


def test_logistic_loss_never_overflows_and_keeps_its_digits():
    s = np.array([-700.0, -300.5, -40.0, -1.0, -1e-8, 0.0, 1e-8, 2.0, 40.0, 300.5, 700.0])
    loss = Logistic()
    with np.errstate(all="raise"):
        found = loss.value(s), loss.derivative(s), loss.second_derivative(s)
    with mp.workdps(40):
        for i, x in enumerate(map(mp.mpf, s)):
            decay = mp.exp(-x)
            expected = mp.log1p(mp.exp(x)), 1 / (1 + decay), decay / (1 + decay) ** 2
            for values, exact in zip(found, expected, strict=True):
                assert values[i] == pytest.approx(float(exact), rel=1e-14, abs=0.0)


def test_custom_logistic_loss_is_the_built_in_one():
    u, v = np.broadcast_arrays(U[:, None], V)
    assert LOGISTIC.anchor == Logistic().anchor
    assert LOGISTIC.proximal(u, v) == pytest.approx(Logistic().proximal(u, v), rel=1e-12, abs=0.0)
    s = np.linspace(-30, 30, 301)
    for function in ("value", "derivative", "second_derivative"):
        expected = getattr(Logistic(), function)(s)
        assert getattr(LOGISTIC, function)(s) == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_kinks_of_a_margin_loss_are_turned_into_shortfalls():
    assert BENT.kinks == (-1.0, 0.3)
    assert BENT.anchor == 0.0
    assert PINBALL.kinks == (0.0,)
    assert PINBALL.anchor == 1.0


def test_tasks_follow_from_what_the_loss_is_a_function_of():
    both, labels, numbers = SCALAR_TASKS, {Task.CLASSIFICATION}, {Task.REGRESSION}
    found = {name: loss.tasks for name, loss in LOSSES.items() if "," not in name}
    known = {
        "square": frozenset(Task),
        "huber": both,
        "absolute": both,
        "log_cosh": both,
        "quantile": numbers,
        "expectile": numbers,
        "insensitive": numbers,
        "custom pseudo-Huber": both,
        "custom pinball": both,
        "logistic": labels,
        "hinge": labels,
        "squared_hinge": labels,
        "smoothed_hinge": labels,
        "custom logistic": labels,
        "custom exponential": labels,
        "custom with kinks": labels,
    }
    assert {name: found[name] for name in known} == known


def test_losses_that_differ_in_their_kinks_are_different():
    arguments = (np.zeros_like, np.zeros_like, np.zeros_like)
    assert Custom(*arguments, kinks=(0.0,)) == Custom(*arguments, kinks=(0.0,))
    assert Custom(*arguments, kinks=(0.0,)) != Custom(*arguments, kinks=(1.0,))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("cls", [SmoothedHinge, Huber])
@pytest.mark.parametrize("delta", [0.0, -1.0, NAN, INF, "1", None])
def test_delta_must_be_positive(cls, delta):
    with pytest.raises(InvalidArgumentError, match="finite number of at least 1e-20") as caught:
        cls(delta)
    assert caught.value.argument == "delta"


def half_square(m):
    return 0.5 * m**2


def identity(m):
    return 1.0 * m


BAD = {
    "wavy": ((np.cos, lambda m: -np.sin(m), lambda m: -np.cos(m)), "convex"),
    "concave": ((lambda m: -(m**2), lambda m: -2 * m, lambda m: np.full_like(m, -2.0)), "convex"),
    "ramp": (
        (
            lambda m: np.clip(1 - m, 0.0, 1.0),
            lambda m: np.where((m > 0) & (m < 1), -1.0, 0.0),
            np.zeros_like,
            (0.0, 1.0),
        ),
        "^derivative falls by 1 near margin 0.* convex",
    ),
    "wrong sign of the slope": ((half_square, lambda m: -m, np.ones_like), "derivative of value"),
    "slope off by a factor": ((half_square, lambda m: 2 * m, np.ones_like), "derivative of value"),
    "curvature off by a factor": (
        (half_square, identity, lambda m: np.full_like(m, 1.01)),
        "derivative of derivative",
    ),
    "value NaN": ((lambda m: np.where(m > 3, np.nan, m), np.ones_like, np.zeros_like), "finite"),
    "slope NaN": ((half_square, lambda m: m * np.nan, np.ones_like), "finite"),
    "curvature infinite": ((half_square, identity, lambda m: np.full_like(m, np.inf)), "finite"),
    "a scalar out of an array": ((np.sum, np.ones_like, np.zeros_like), "vectorised"),
    "not vectorised": ((math.cosh, math.sinh, math.cosh), "vectorised"),
    "undeclared kink": (
        (lambda m: np.maximum(-m, 0.0), lambda m: np.where(m < 0, -1.0, 0.0), np.zeros_like),
        "kinks",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_loss_is_refused(case):
    (value, derivative, second, *kinks), sentence = BAD[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        Custom(value, derivative, second, kinks=kinks[0] if kinks else ())
    assert caught.value.argument in {"value", "derivative", "second_derivative"}


@pytest.mark.parametrize("of", ["margin", "residual"])
def test_complaints_are_about_what_the_user_wrote_a_function_of(of):
    def spike(m):
        return np.abs(m - 5.0) < 0.01

    with pytest.raises(InvalidArgumentError, match=f"off by 0.3 at {of} 30"):
        Custom(half_square, lambda m: m + 0.01 * np.maximum(m, 0.0), np.ones_like, of=of)
    with pytest.raises(InvalidArgumentError, match=f"-1 at {of} 5"):
        Custom(half_square, identity, lambda m: np.where(spike(m), -1.0, 1.0), of=of)
    with pytest.raises(InvalidArgumentError, match=f"finite at {of} 5"):
        Custom(lambda m: np.where(spike(m), np.nan, m), np.ones_like, np.zeros_like, of=of)


def test_an_undeclared_kink_between_the_points_of_the_check_is_hinted_at():
    """At 5/16 the check does not see it; the equations then have no solution to iterate to."""
    kinked = Custom(
        lambda m: np.maximum(0.3125 - m, 0.0), lambda m: -1.0 * (m < 0.3125), np.zeros_like
    )
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss=kinked)
    with pytest.raises(hm.ConvergenceError, match="kink that is not declared"):
        hm.predict(model, n_over_d=3.0, p_over_n=1.0, regularisation=0.1)


def test_decent_loss_is_accepted():
    Custom(half_square, identity, np.ones_like)  # or the cases above would prove nothing


@pytest.mark.parametrize("of", ["error", "", None, "Margin"])
def test_loss_must_be_of_the_margin_or_of_the_residual(of):
    with pytest.raises(InvalidArgumentError, match="'margin' or 'residual'") as caught:
        Custom(half_square, identity, np.ones_like, of=of)
    assert caught.value.argument == "of"


@pytest.mark.parametrize("scale", [0.0, -1.0, NAN, INF])
def test_scale_must_be_positive(scale):
    with pytest.raises(InvalidArgumentError) as caught:
        Custom(half_square, identity, np.ones_like, scale=scale)
    assert caught.value.argument == "scale"


@pytest.mark.parametrize("kinks", [(NAN,), 0.5], ids=str)
def test_kinks_must_be_a_sequence_of_numbers(kinks):
    with pytest.raises(InvalidArgumentError) as caught:
        Custom(half_square, identity, np.ones_like, kinks=kinks)
    assert caught.value.argument == "kinks"


@pytest.mark.parametrize("position", range(3))
def test_something_that_cannot_be_called_is_refused(position):
    functions = [half_square, identity, np.ones_like]
    functions[position] = 1.0
    with pytest.raises(InvalidArgumentError) as caught:
        Custom(*functions)
    assert caught.value.argument == ("value", "derivative", "second_derivative")[position]


class Undeclared(losses.Logistic):
    """The logistic loss, that promises to be quadratic."""

    scale = None


class Kinkless(losses.Hinge):
    """The hinge loss, that forgets its kink."""

    kinks = ()


@pytest.mark.parametrize("wrong", [Undeclared(), Kinkless()], ids=["scale", "kinks"])
def test_model_refuses_a_loss_that_is_not_what_it_declares(wrong):
    with pytest.raises(InvalidArgumentError):
        hm.Model(activation="sign", projection="gaussian", teacher="sign", loss=wrong)
