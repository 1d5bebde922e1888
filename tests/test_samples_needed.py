"""How many samples are enough, for good and for the first time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hiddenmanifold as hm
from given import Given, plain_model, power_law
from hiddenmanifold.features import RandomFeatures
from hiddenmanifold.features.projections import Gaussian
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.teachers import Linear, Sign
from hiddenmanifold.theory.curves.error_curve import ErrorCurve
from hiddenmanifold.theory.curves.fewest_samples import fewest_samples

model = partial(plain_model, loss="square")


def test_least_squares_needs_what_the_textbook_says():
    """Isotropic data without penalty: Δ/(1 - d/n) beyond the peak, 1 - n/d + Δ/(1 - n/d) before."""
    noise, target = 0.25, np.array([0.2, 0.3, 0.5, 1.05, 1.2, 5.0])
    m = model(activation="identity", projection="orthogonal", teacher=Linear(noise=noise))
    ds = hm.samples_needed(m, target_error=target, p_over_d=1.0, regularisation=0)
    assert_allclose(ds.n_over_d[1:], 1 / (1 - noise / target[1:]), rtol=1e-7)
    assert_allclose(ds.infinite_data_limit, noise, rtol=1e-9)
    assert np.isinf(ds.n_over_d[0])
    assert np.isinf(ds.first_n_over_d[0])  # 1.25 with none, falls to 1 and rises to the peak
    assert_allclose(ds.first_n_over_d[1:3], ds.n_over_d[1:3])
    left = (target[3:5] + np.sqrt(target[3:5] ** 2 - 4 * noise)) / 2
    assert_allclose(ds.first_n_over_d[3:5], 1 - left, rtol=1e-7)
    assert ds.first_n_over_d[5] == 0
    assert_allclose(ds.generalisation_error, [noise, *target[1:]], rtol=1e-7)


ALMOST_LINEAR = hm.Model(
    features=RandomFeatures(Given((0.0, 1.0, 0.05)), Gaussian()),
    teacher=Linear(noise=0.3),
    loss="square",
)
LOPSIDED = model(intercept=True, teacher=Sign(noise=0.3, threshold=0.7), activation="relu")
NOISY = Sign(flip=0.1)
CURVES = {
    "double descent": (model(), 3.0, 1e-6, [0.1, 0.25, 0.35, 0.45]),
    "narrow peak": (model(), 2.0, 1e-13, [0.2, 0.4, 0.49, 0.498]),
    "no penalty": (model(loss="logistic"), 2.0, 0.0, [0.15, 0.3, 0.4]),
    "two peaks": (ALMOST_LINEAR, 4.0, 1e-8, [0.2, 0.35, 0.95, 1.25, 3.0]),
    "an intercept": (LOPSIDED, 2.0, 1e-2, [0.1, 0.2, 0.25, 0.3]),
    "corners": (model(loss="hinge", projection="dct", teacher=NOISY), 1.5, 1e-3, [0.2, 0.3, 0.4]),
    "large penalty": (model(teacher=NOISY), 1.5, 100.0, [0.1, 0.2, 0.3]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CURVES)
def test_dense_scans_find_the_same(case):
    m, p_over_d, lam, target = CURVES[case]
    held = {"p_over_d": p_over_d, "regularisation": lam}
    ds = hm.samples_needed(m, target_error=target, **held)
    near = np.geomspace(1e-7, 0.3, 40)
    n = np.sort([*np.geomspace(1e-4, 1e5, 121), *np.exp(near), *np.exp(-near)])
    error = hm.predict(m, n_over_p=n, **held).generalisation_error.values
    n_over_d = np.array([0.0, *n, np.inf]) * p_over_d
    for one, lasting, first in zip(
        target, ds.n_over_d.values, ds.first_n_over_d.values, strict=True
    ):
        above = np.flatnonzero(np.append(np.inf, error) > one)[-1]
        below = np.flatnonzero(np.append(error, -np.inf) <= one)[0]
        assert n_over_d[above] <= lasting <= n_over_d[above + 1]
        assert n_over_d[below] <= first <= n_over_d[below + 1]
    assert_allclose(
        ds.infinite_data_limit,
        hm.predict(m, n_over_p=np.inf, **held).generalisation_error,
        rtol=1e-12,
    )


def test_a_peak_makes_the_first_descent_premature():
    ds = hm.samples_needed(model(), target_error=0.35, p_over_d=3.0, regularisation=1e-6)
    assert ds.first_n_over_d < 1
    assert ds.n_over_d > 3


@pytest.mark.slow
def test_the_best_regularisation_needs_fewest():
    m, target = model(teacher=NOISY), [0.05, 0.2, 0.3, 0.4]
    best = hm.samples_needed(m, target_error=target, p_over_d=3.0)
    fixed = hm.samples_needed(m, target_error=target, p_over_d=3.0, regularisation=[1e-2, 1.0])
    assert np.all(best.n_over_d <= fixed.n_over_d)
    assert np.isinf(best.n_over_d[0])
    assert best.infinite_data_limit[0] > 0.05
    for one in best.isel(target_error=slice(1, None)).transpose().n_over_d:
        error = hm.predict(m, n_over_d=float(one), p_over_d=3.0, regularisation="optimal")
        assert_allclose(error.generalisation_error, one.target_error, rtol=1e-8)
    limit = hm.predict(m, n_over_p=np.inf, p_over_d=3.0, regularisation="optimal")
    assert_allclose(best.infinite_data_limit, limit.generalisation_error, rtol=1e-10)


def test_features_that_fix_their_ratio_need_none_given():
    m = hm.Model(features=power_law(30), teacher="linear", loss="square")
    ds = hm.samples_needed(m, target_error=[0.1, 0.5], regularisation=[1e-3, 1e-1])
    assert ds.n_over_d.dims == ("regularisation", "target_error")
    assert np.isinf(ds.n_over_d[:, 0]).all()  # a fifth of the field is hidden
    for lam, one in zip((1e-3, 1e-1), ds.n_over_d[:, 1], strict=True):
        found = hm.predict(m, n_over_d=float(one), regularisation=lam).generalisation_error
        assert_allclose(found, 0.5, rtol=1e-8)


@dataclass(frozen=True)
class PartlySolved(ErrorCurve):
    """A curve without solutions where n/p fulfils a condition."""

    unsolved: Callable = np.isnan

    def __call__(self, point, t):
        value, slope = super().__call__(point, t)
        return np.where(self.unsolved(np.exp(t)), np.nan, value), slope


def needed(m, target_error, d_over_p, lam, unsolved=np.isnan):
    """The columns of `fewest_samples`, and whether each search failed."""
    target = np.atleast_1d(target_error)
    held, lams = np.full(len(target), d_over_p), np.full(len(target), lam)
    curve = PartlySolved(m, "n", held, lams, Workers(1), unsolved=unsolved)
    columns, missed = fewest_samples(curve, target)
    return SimpleNamespace(**columns), missed


def test_what_cannot_be_solved_is_no_number():
    def near(n_over_p):
        return np.abs(np.log(n_over_p)) < 0.5

    found, missed = needed(model(), [0.45, 0.1], 0.3, 0.1, near)
    assert np.isnan(found.n_over_d[0])  # what lies beyond is not known to stay below
    assert found.first_n_over_d[0] < 1
    assert found.n_over_d[1] > 10
    assert np.isnan(found.first_n_over_d[1])
    assert missed.all()


def test_what_cannot_be_solved_on_a_steady_fall_hides_nothing():
    """Far beyond every threshold the error of white data falls like 1/√n."""
    white = model(activation="identity", projection="orthogonal")
    arguments = white, [0.02, 1e-4], 1.0, 1e-3
    whole, _ = needed(*arguments)
    assert 3e5 < whole.n_over_d[1] < 3e7
    part, missed = needed(*arguments, lambda n_over_p: (n_over_p > 3e5) & (n_over_p < 3e7))
    assert_allclose(part.n_over_d[0], whole.n_over_d[0], rtol=1e-9)
    assert np.isnan([part.n_over_d[1], part.first_n_over_d[1]]).all()  # the crossing is in there
    assert missed.tolist() == [False, True]


def test_a_limit_that_cannot_be_solved_does_not_hide_the_number():
    arguments = model(), [0.01, 0.2], 0.3, 0.1
    whole, _ = needed(*arguments)
    part, missed = needed(*arguments, lambda n_over_p: n_over_p > 1e10)
    assert not missed.any()
    assert np.isnan(part.infinite_data_limit).all()
    assert_allclose(part.n_over_d, whole.n_over_d)
    assert np.isinf(part.n_over_d[0])
    lost, _ = needed(*arguments, lambda n_over_p: n_over_p > 1e7)  # too early to have settled
    assert np.isnan(lost.n_over_d[0])


@pytest.mark.slow
def test_a_search_that_fails_is_said_to():
    """Beside the threshold, where the limit λ → 0⁺ of a slow loss is not known."""
    slow = hm.losses.Custom(
        lambda m: 0.5 * (np.sqrt(m**2 + 4) - m),
        lambda m: 0.5 * (m / np.sqrt(m**2 + 4) - 1),
        lambda m: 2 / (m**2 + 4) ** 1.5,
    )
    with pytest.raises(hm.ConvergenceError, match="could not be solved") as caught:
        hm.samples_needed(model(loss=slow), target_error=0.3, p_over_d=2.0, regularisation=0)
    assert caught.value.partial.status == hm.Status.SEARCH
    assert np.isnan(caught.value.partial.first_n_over_d)


REFUSED = {
    "no error": ({"target_error": 0.0, "p_over_d": 1.0}, "target_error"),
    "not a number": ({"target_error": np.nan, "p_over_d": 1.0}, "target_error"),
    "no ratio": ({"target_error": 0.1}, "ratios"),
    "samples": ({"target_error": 0.1, "n_over_d": 1.0}, "ratios"),
    "two": ({"target_error": 0.1, "p_over_d": 1.0, "d_over_p": 1.0}, "ratios"),
    "limit": ({"target_error": 0.1, "p_over_d": 1.0, "regularisation": np.inf}, "regularisation"),
    "another error": (
        {"target_error": 0.1, "p_over_d": 1.0, "regularisation": hm.Optimal("clean_error")},
        "regularisation",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nonsense_is_refused_by_name(case):
    arguments, name = REFUSED[case]
    with pytest.raises(hm.InvalidArgumentError) as caught:
        hm.samples_needed(model(), **arguments)
    assert caught.value.argument == name
