"""Peaks and how many features are enough."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold.numerics.minima import Samples
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.teachers import Linear, Logistic, Sign
from hiddenmanifold.theory.curves.error_curve import END, ErrorCurve
from hiddenmanifold.theory.curves.fewest_features import fewest_features
from hiddenmanifold.theory.curves.peak import stand_out

model = partial(plain_model, activation="sign")


@pytest.mark.slow
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("loss", ["logistic", "square", "hinge"])
@pytest.mark.parametrize("lam", [1e-8, 1e-4, 1e-3])
def test_no_point_of_the_curve_near_the_peak_is_higher(projection, loss, lam):
    m = model(projection=projection, loss=loss)
    peak = hm.interpolation_peak(m, n_over_d=3.0, regularisation=lam)
    place, height = float(peak.p_over_n), float(peak.generalisation_error)
    curve = hm.predict(m, n_over_d=3.0, p_over_n=np.geomspace(0.25, 4, 400), regularisation=lam)
    error = curve.generalisation_error.values
    inside = np.flatnonzero((error[1:-1] > error[:-2]) & (error[1:-1] > error[2:])) + 1
    assert inside.size
    assert height >= error[inside].max() * (1 - 1e-12)
    assert abs(np.log(place / curve.p_over_n[inside[np.argmax(error[inside])]])) < 0.01
    beside = hm.predict(
        m, n_over_d=3.0, p_over_n=place * np.array([0.999, 1, 1.001]), regularisation=lam
    ).generalisation_error
    assert beside[1] >= beside.max()
    assert_allclose(beside[1], height, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "m",
    [
        model(),
        model(projection="orthogonal", teacher=Logistic(slope=2.0)),
        model(teacher=Sign(flip=0.1, threshold=0.6), intercept=True, loss="hinge"),
        model(activation="relu", teacher=Sign(noise=0.4, threshold=0.5), loss="squared_hinge"),
    ],
)
def test_at_separability_the_error_equals_the_features_per_sample(m):
    """p/n = min E(tYX + Z)₊² and its gradient vanishes, so it is E[(…)₊Z] = P(error), by parts."""
    peak = hm.interpolation_peak(m, n_over_d=[0.5, 3.0, 10.0], regularisation=0)
    assert_allclose(peak.p_over_n, hm.separability_threshold(m, n_over_d=[0.5, 3.0, 10.0]).p_over_n)
    assert_allclose(peak.generalisation_error, peak.p_over_n, rtol=1e-9)


@pytest.mark.slow
def test_peak_of_vanishing_regularisation_is_that_of_small_ones():
    zero = hm.interpolation_peak(model(), n_over_d=3.0, regularisation=0)
    small = hm.interpolation_peak(model(), n_over_d=3.0, regularisation=1e-12)
    assert_allclose(small.p_over_n, zero.p_over_n, rtol=1e-4)
    assert_allclose(small.generalisation_error, zero.generalisation_error, rtol=1e-3)


@pytest.mark.slow
def test_interpolation_of_the_square_loss_peaks_at_as_many_features_as_samples():
    for teacher, height in ((Linear(noise=0.1), np.inf), (Sign(), 0.5)):
        m = model(loss="square", teacher=teacher)
        peak = hm.interpolation_peak(m, n_over_d=[0.5, 5.0], regularisation=[0, 1e-10])
        assert_allclose(peak.p_over_n, 1.0, atol=1e-4)
        assert np.all(peak.generalisation_error.sel(regularisation=0) == height)
    # along the number of samples, too
    m = model(loss="square", activation="erf")
    peak = hm.interpolation_peak(m, d_over_p=0.1, regularisation=[0, 1e-8])
    assert_allclose(peak.p_over_n, 1.0, atol=1e-4)


def test_no_peak_is_no_number():
    peak = hm.interpolation_peak(model(), n_over_d=3.0, regularisation=[0.1, 10.0])
    assert np.isnan(peak.p_over_n).all()
    assert np.isnan(peak.generalisation_error).all()


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "lam"), [("square", 624.5), ("hinge", 28.9)])
def test_rounding_on_a_plateau_is_no_peak(loss, lam):
    """A large penalty leaves the error of a constant, from which it falls, and rises again."""
    teacher = Logistic(slope=0.92, threshold=0.034, rho=1.85)
    m = model(activation="relu", teacher=teacher, loss=loss)
    held = {"n_over_d": [0.3, 0.735, 2.0, 19.83], "regularisation": lam}
    curve = hm.predict(m, **held, p_over_n=np.geomspace(0.01, 100, 300)).generalisation_error
    error = curve.transpose("p_over_n", ...).values
    before, after = (np.minimum.accumulate(error[::step])[::step] for step in (1, -1))
    assert np.minimum(error - before, error - after).max() < 1e-12
    peak = hm.interpolation_peak(m, **held)
    assert np.isnan(peak.p_over_n).all()
    assert np.isnan(peak.generalisation_error).all()
    assert (peak.status == hm.Status.CONVERGED).all()


def test_a_peak_must_stand_out_on_both_sides():
    """Errors beside one of 1, each certified to 1e-8: samples at the very top may be higher."""
    cases = (
        (([0.5, 1 - 1e-12], [1 - 1e-12, 0.5]), True),
        (([2.0, 1 - 1e-7, np.nan], [0.5]), True),
        (([0.5, 1 + 1e-12], [1 + 1e-12, 0.5]), True),
        (([2.0, 1 - 1e-9, 0.99999], [0.5, 3.0]), True),
        (([2.0, 1 - 1e-9], [0.5]), False),
        (([0.5, 2.0, 1 - 1e-9], [0.5]), False),
        (([1.0, 1.0], [1.0, 1.0]), False),
    )
    for sides, expected in cases:
        error = np.concatenate(sides)
        t = np.arange(len(error)) - len(sides[0]) + 0.5
        scan = Samples(np.zeros(len(t), dtype=int), t, -error, 0.0 * t)
        top = Samples(np.zeros(1, dtype=int), np.zeros(1), -np.ones(1), np.zeros(1))
        assert stand_out(top, scan) == [expected]


def test_recovered_labels_have_no_peak():
    m = model(activation="identity", teacher="linear", loss="square")
    assert np.isnan(hm.interpolation_peak(m, d_over_p=0.5, regularisation=0).generalisation_error)


@pytest.mark.slow
def test_what_cannot_be_solved_is_no_missing_peak():
    slow = hm.losses.Custom(
        lambda m: 0.5 * (np.sqrt(m**2 + 4) - m),
        lambda m: 0.5 * (m / np.sqrt(m**2 + 4) - 1),
        lambda m: 2 / (m**2 + 4) ** 1.5,
    )
    with pytest.raises(hm.ConvergenceError, match="could not be solved") as caught:
        hm.interpolation_peak(model(loss=slow), n_over_d=3.0, regularisation=0)
    assert np.isnan(caught.value.partial.p_over_n)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_features_needed_are_just_enough(loss):
    needed = {}
    for projection in ("gaussian", "orthogonal"):
        m = model(loss=loss, projection=projection)
        ds = hm.features_needed(m, n_over_d=[1.0, 3.0], within=0.05)
        assert_allclose(ds.generalisation_error, 1.05 * ds.kernel_limit, rtol=1e-7)
        limit = hm.predict(m, n_over_d=[1.0, 3.0], p_over_n=np.inf, regularisation="optimal")
        assert_allclose(ds.kernel_limit, limit.generalisation_error, rtol=1e-12)
        for delta, psi in zip((1.0, 3.0), ds.p_over_n.values, strict=True):
            error = hm.predict(m, n_over_d=delta, p_over_n=psi, regularisation="optimal")
            expected = ds.generalisation_error.sel(n_over_d=delta)
            assert_allclose(error.generalisation_error, expected, rtol=1e-7)
        needed[projection] = ds.p_over_n
    assert np.all(needed["orthogonal"] < needed["gaussian"])


class Recorded(ErrorCurve):
    """The error at the best λ along p/n, which remembers where it was asked for."""

    asked = ()

    def __call__(self, point, t):
        object.__setattr__(self, "asked", (*self.asked, t))
        return super().__call__(point, t)


class WithoutLimit(ErrorCurve):
    """The same, without a solution at infinitely many features."""

    def __call__(self, point, t):
        value, slope = super().__call__(point, t)
        return np.where(t == END, np.nan, value), slope


def best_error(kind, n_over_d):
    held = np.array([n_over_d])
    return kind(model(loss="square"), "p", held, np.zeros(1), Workers(1), (0.0, np.inf))


def test_features_needed_are_found_by_few_errors():
    """Those of the scan with its limit at once, and two or three for the crossing."""
    curve = best_error(Recorded, 3.0)
    columns, missed = fewest_features(curve, 0.05)
    assert not missed.any()
    assert_allclose(columns["p_over_n"], 29.14, atol=0.005)
    assert len(curve.asked) <= 4
    assert all(len(t) == 1 for t in curve.asked[1:])


@pytest.mark.slow
def test_features_needed_beyond_the_scan():
    m = model(loss="square")
    none = hm.features_needed(m, n_over_d=3.0, within=10.0)
    assert none.p_over_n == 0
    fewest = hm.predict(m, n_over_d=3.0, p_over_n=1e-3, regularisation="optimal")
    assert_allclose(none.generalisation_error, fewest.generalisation_error, rtol=1e-12)
    few = hm.features_needed(m, n_over_d=3.0, within=2.0)
    assert 1e-3 < few.p_over_n < 1
    assert_allclose(few.generalisation_error, 3 * few.kernel_limit, rtol=1e-12)
    never = hm.features_needed(m, n_over_d=3.0, within=1e-12, on_failure="keep")
    assert_allclose(never.p_over_n, 1e9)
    assert never.generalisation_error > never.kernel_limit * (1 + 1e-12)
    assert never.status == hm.Status.SEARCH


def test_a_kernel_limit_that_cannot_be_solved_is_a_failed_search():
    columns, missed = fewest_features(best_error(WithoutLimit, 3.0), 0.05)
    assert missed.all()
    assert np.isnan(columns["p_over_n"]).all()


@pytest.mark.slow
def test_features_needed_for_an_error_that_vanishes_are_refused():
    m = model(activation="identity", teacher="linear", loss="square")
    with pytest.raises(hm.InvalidArgumentError, match="does not vanish"):
        hm.features_needed(m, n_over_d=[0.5, 3.0])


def test_nonsense_is_refused_by_name():
    for arguments, named in (
        ({"n_over_d": 3.0, "within": 0.0}, "within"),
        ({"n_over_d": -3.0}, "n_over_d"),
        ({"n_over_d": np.inf}, "n_over_d"),
    ):
        with pytest.raises(hm.InvalidArgumentError) as caught:
            hm.features_needed(model(), **arguments)
        assert caught.value.argument == named
    for arguments, named in (
        ({"regularisation": 0.1}, "ratios"),
        ({"regularisation": 0.1, "n_over_d": 1.0, "d_over_p": 1.0}, "ratios"),
        ({"regularisation": -0.1, "n_over_d": 1.0}, "regularisation"),
        ({"regularisation": 0.1, "n_over_d": [1.0, np.nan]}, "n_over_d"),
    ):
        with pytest.raises(hm.InvalidArgumentError) as caught:
            hm.interpolation_peak(model(), **arguments)
        assert caught.value.argument == named
