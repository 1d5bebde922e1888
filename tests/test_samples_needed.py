"""How many samples are enough, for good and for the first time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hiddenmanifold as hm
from given import Given, power_law
from hiddenmanifold.features import RandomFeatures
from hiddenmanifold.features.projections import Gaussian
from hiddenmanifold.teachers import Linear, Sign
from hiddenmanifold.theory.curves import fewest_samples
from hiddenmanifold.theory.predictions import asymptotics


def model(**ingredients):
    parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign", "loss": "square"}
    return hm.Model(**{**parts, **ingredients})


@pytest.mark.slow
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


@pytest.fixture
def unsolved_where(monkeypatch):
    """Makes errors NaN where n/p fulfils a condition."""

    def broken(condition):
        def errors(model, points, *others, **options):
            found = asymptotics(model, points, *others, **options)
            found["generalisation_error"][condition(points.alpha)] = np.nan
            return found

        monkeypatch.setattr(fewest_samples, "asymptotics", errors)

    return broken


ARGUMENTS = {"d_over_p": 0.3, "regularisation": 0.1}


def test_what_cannot_be_solved_is_no_number(unsolved_where):
    unsolved_where(lambda alpha: np.abs(np.log(alpha)) < 0.5)
    early = hm.samples_needed(model(), target_error=0.45, **ARGUMENTS, on_failure="keep")
    assert np.isnan(early.n_over_d)  # what lies beyond is not known to stay below
    assert early.first_n_over_d < 1
    assert early.status == hm.Status.SEARCH
    with pytest.raises(hm.ConvergenceError, match="could not be solved") as caught:
        hm.samples_needed(model(), target_error=0.1, **ARGUMENTS)
    late = caught.value.partial
    assert late.n_over_d > 10
    assert np.isnan(late.first_n_over_d)


def test_what_cannot_be_solved_on_a_steady_fall_hides_nothing(unsolved_where):
    """Far beyond every threshold the error of white data falls like 1/√n."""
    white = model(activation="identity", projection="orthogonal")
    arguments = {"target_error": [0.02, 1e-4], "p_over_d": 1.0, "regularisation": 1e-3}
    whole = hm.samples_needed(white, **arguments)
    assert 3e5 < whole.n_over_d[1] < 3e7
    unsolved_where(lambda alpha: (alpha > 3e5) & (alpha < 3e7))
    part = hm.samples_needed(white, **arguments, on_failure="keep")
    assert_allclose(part.n_over_d[0], whole.n_over_d[0], rtol=1e-9)
    assert part.status[0] == hm.Status.CONVERGED
    assert np.isnan([part.n_over_d[1], part.first_n_over_d[1]]).all()  # the crossing is in there
    assert part.status[1] == hm.Status.SEARCH


def test_a_limit_that_cannot_be_solved_does_not_hide_the_number(unsolved_where):
    whole = hm.samples_needed(model(), target_error=[0.01, 0.2], **ARGUMENTS)
    unsolved_where(lambda alpha: alpha > 1e10)
    part = hm.samples_needed(model(), target_error=[0.01, 0.2], **ARGUMENTS)
    assert part.infinite_data_limit.isnull().all()
    assert_allclose(part.n_over_d, whole.n_over_d)
    assert np.isinf(part.n_over_d[0])
    unsolved_where(lambda alpha: alpha > 1e7)  # too early to have settled
    lost = hm.samples_needed(model(), target_error=0.01, **ARGUMENTS, on_failure="keep")
    assert np.isnan(lost.n_over_d)


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
