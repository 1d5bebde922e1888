"""`predict`: ratios, labelled grids, refusals, failures that show, independence of the batch."""

import inspect
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from itertools import combinations, permutations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import norm

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold import ConvergenceError, InvalidArgumentError, Model, Status, predict
from hiddenmanifold.features.projections import Matrix, Spectrum
from hiddenmanifold.losses import Custom as CustomLoss
from hiddenmanifold.teachers import Custom as CustomTeacher
from hiddenmanifold.teachers import Logistic, Sign
from hiddenmanifold.theory import predictions
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import asymptotics
from hiddenmanifold.theory.solver import strategy
from hiddenmanifold.theory.solver.settings import Tolerances

PROPERTY = settings(max_examples=25)

RATIOS = ("n_over_d", "d_over_n", "p_over_n", "n_over_p", "p_over_d", "d_over_p")
INVERSE = {frozenset(RATIOS[i : i + 2]) for i in (0, 2, 4)}
PAIRS = [pair for pair in permutations(RATIOS, 2) if frozenset(pair) not in INVERSE]

CERTIFICATES = {"status", "residual", "quadrature_error", "conditioning_error", "iterations"}
OVERLAPS = {"V", "Q", "M", "q_s", "q_w", "m_s", "V_s", "V_w", "intercept", "alignment"}
NORMALISED = {f"{name}_normalised" for name in ("Q", "M", "q_s", "m_s", "intercept")}
ERRORS = {"generalisation_error", "clean_error", "training_loss"}


model = partial(plain_model, activation="sign", loss="square")


def at(built=None, **arguments):
    """Prediction at one ordinary point, but for the arguments given."""
    ordinary = {"n_over_d": 3.0, "p_over_n": 1.5, "regularisation": 0.1}
    return predict(built or model(), **{**ordinary, **arguments})


def ratios(names, n, p, d):
    sizes = {"n": n, "p": p, "d": d}
    parts = {name: name.split("_over_") for name in names}
    return {name: sizes[a] / sizes[b] for name, (a, b) in parts.items()}


def assert_same_numbers(one, other, rtol=1e-10, names=OVERLAPS | ERRORS):
    for name in names:
        scale = np.abs(other[name]).max() if name == "intercept" else 0.0
        np.testing.assert_allclose(
            one[name], other[name], rtol=rtol, atol=float(rtol * scale), err_msg=name
        )


# --- ratios ------------------------------------------------------------------------------------


@pytest.mark.slow
@PROPERTY
@given(
    pair=st.sampled_from(PAIRS),
    n=st.floats(0.1, 10),
    p=st.floats(0.1, 10),
    d=st.floats(0.1, 10),
    lam=st.floats(1e-3, 10),
)
def test_any_two_independent_ratios_give_the_same_answer(pair, n, p, d, lam):
    expected = predict(model(), regularisation=lam, **ratios(("n_over_p", "d_over_p"), n, p, d))
    assert_same_numbers(predict(model(), regularisation=lam, **ratios(pair, n, p, d)), expected)


@pytest.mark.slow
def test_every_pair_of_ratios_is_accepted_and_labels_its_answer():
    expected = predict(model(), regularisation=0.3, n_over_p=0.6, d_over_p=0.4)
    for pair in PAIRS:
        given_ratios = ratios(pair, 3.0, 5.0, 2.0)
        ds = predict(model(), regularisation=0.3, **given_ratios)
        assert_same_numbers(ds, expected)
        assert set(ds.coords) == {*pair, "regularisation"}
        assert {name: float(ds[name]) for name in pair} == given_ratios


@pytest.mark.parametrize(
    "names",
    [(), *((name,) for name in RATIOS), *combinations(RATIOS, 3), RATIOS],
    ids=lambda names: "-".join(names) or "none",
)
def test_other_than_two_ratios_are_refused_by_name(names):
    with pytest.raises(InvalidArgumentError, match="exactly two independent ratios") as caught:
        predict(model(), regularisation=0.1, **ratios(names, 3.0, 5.0, 2.0))
    assert caught.value.argument == "ratios"
    assert all(name in caught.value.problem for name in names)


@pytest.mark.parametrize("pair", sorted(map(sorted, INVERSE)), ids="-".join)
def test_ratio_and_its_inverse_are_refused_by_name(pair):
    with pytest.raises(InvalidArgumentError, match="say the same thing twice") as caught:
        predict(model(), regularisation=0.1, **ratios(pair, 3.0, 5.0, 2.0))
    assert all(name in str(caught.value) for name in pair)


F = np.random.default_rng(11).standard_normal((120, 80))
FIXED = {
    "matrix": Matrix(F),
    "spectrum": Spectrum(np.linalg.eigvalsh(F.T @ F / 120), d_over_p=1.5),
}
any_fixed = pytest.mark.parametrize("kind", FIXED)


@any_fixed
@pytest.mark.parametrize("name", ["n_over_d", "d_over_n", "p_over_n", "n_over_p"])
def test_projection_with_its_own_shape_needs_one_more_ratio(kind, name):
    ds = predict(
        model(projection=FIXED[kind]), regularisation=0.2, **ratios([name], 240.0, 80.0, 120.0)
    )
    expected = predict(model(projection=FIXED["matrix"]), regularisation=0.2, n_over_p=3.0)
    assert_same_numbers(ds, expected)
    # a matrix of 120 by 80 is close to the limit of large ones
    limit = predict(model(), regularisation=0.2, n_over_p=3.0, d_over_p=1.5)
    assert_same_numbers(ds, limit, rtol=0.05, names={"generalisation_error", "Q", "M"})


@any_fixed
@pytest.mark.parametrize(
    "names", [(), ("d_over_p",), ("p_over_d",), ("n_over_d", "p_over_n"), ("n_over_p", "d_over_p")]
)
def test_projection_with_its_own_shape_refuses_other_ratios(kind, names):
    with pytest.raises(InvalidArgumentError, match=r"the features fix d/p = 1\.5") as caught:
        predict(
            model(projection=FIXED[kind]), regularisation=0.2, **ratios(names, 240.0, 80.0, 120.0)
        )
    assert caught.value.argument == "ratios"


# --- labelled grids ----------------------------------------------------------------------------


def test_scalars_give_a_point():
    ds = at()
    assert dict(ds.sizes) == {}
    assert float(ds.n_over_d) == 3.0
    assert float(ds.p_over_n) == 1.5
    assert float(ds.regularisation) == 0.1


def test_sequences_span_their_outer_product():
    n_over_d, p_over_n, lam = [1.0, 2.0], (0.5, 1.0, 3.0), np.array([0.01, 0.1, 1.0, 10.0])
    ds = at(n_over_d=n_over_d, p_over_n=p_over_n, regularisation=lam)
    assert dict(ds.sizes) == {"n_over_d": 2, "p_over_n": 3, "regularisation": 4}
    assert ds.n_over_d.values.tolist() == n_over_d
    assert ds.regularisation.values.tolist() == lam.tolist()
    for i, j, k in ((0, 0, 0), (1, 2, 0), (0, 1, 3)):
        point = at(n_over_d=n_over_d[i], p_over_n=p_over_n[j], regularisation=lam[k])
        selected = ds.sel(n_over_d=n_over_d[i], p_over_n=p_over_n[j], regularisation=lam[k])
        assert_same_numbers(selected, point)


def test_vector_of_one_is_a_dimension():
    assert dict(at(regularisation=[0.1]).sizes) == {"regularisation": 1}


def test_axes_of_a_vector_carry_the_name_of_the_argument():
    for name, other in (("d_over_n", "p_over_d"), ("n_over_p", "d_over_p")):
        ds = predict(model(), regularisation=0.1, **{name: [0.4, 0.9], other: 2.0})
        assert ds.generalisation_error.dims == (name,)


def test_data_arrays_of_one_dimension_are_paired():
    p_over_n = xr.DataArray([0.5, 1.0, 2.0], dims="run")
    lam = xr.DataArray([0.1, 0.2, 0.3], dims="run")
    ds = at(p_over_n=p_over_n, regularisation=lam)
    assert dict(ds.sizes) == {"run": 3}
    assert ds.p_over_n.dims == ds.regularisation.dims == ("run",)
    for i in range(3):
        point = at(p_over_n=float(p_over_n[i]), regularisation=float(lam[i]))
        assert_same_numbers(ds.isel(run=i), point)


def test_data_array_and_vector_span_an_outer_product():
    p_over_n = xr.DataArray([0.5, 1.0], dims="run", coords={"run": ["a", "b"]})
    ds = at(p_over_n=p_over_n, regularisation=[0.1, 0.2, 0.3])
    assert dict(ds.sizes) == {"run": 2, "regularisation": 3}
    assert ds.run.values.tolist() == ["a", "b"]
    point = at(p_over_n=1.0, regularisation=0.3)
    assert_same_numbers(ds.sel(run="b", regularisation=0.3), point)


def test_two_dimensional_data_array_keeps_its_axes():
    p_over_n = xr.DataArray([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]], dims=("row", "column"))
    lam = xr.DataArray([0.1, 0.2, 0.3], dims="column")  # the order of the axes does not matter
    n_over_d = xr.DataArray([1.0, 2.0], dims="row")
    ds = at(p_over_n=p_over_n, regularisation=lam, n_over_d=n_over_d)
    assert dict(ds.sizes) == {"row": 2, "column": 3}
    assert ds.p_over_n.dims == ("row", "column")
    for i, j in np.ndindex(2, 3):
        point = at(
            p_over_n=float(p_over_n[i, j]),
            regularisation=float(lam[j]),
            n_over_d=float(n_over_d[i]),
        )
        assert_same_numbers(ds.isel(row=i, column=j), point)


def test_axes_in_another_order_give_the_same_numbers():
    p_over_n = xr.DataArray([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]], dims=("row", "column"))
    one = at(p_over_n=p_over_n, regularisation=xr.DataArray([0.1, 0.2, 0.3], dims="column"))
    other = at(p_over_n=p_over_n.T, regularisation=xr.DataArray([0.1, 0.2, 0.3], dims="column"))
    assert_same_numbers(one, other.transpose(*one.generalisation_error.dims))


def test_other_coordinates_travel_along():
    p_over_n = xr.DataArray(
        [0.5, 1.0], dims="p_over_n", coords={"p_over_n": [0.5, 1.0], "p": ("p_over_n", [100, 200])}
    )
    ds = at(p_over_n=p_over_n)
    assert ds.p.values.tolist() == [100, 200]


def test_label_of_an_axis_is_the_value_that_was_used():
    odd = xr.DataArray([1.0, 2.0], dims="n_over_d", coords={"n_over_d": [7.0, 8.0]})
    ds = at(n_over_d=odd)
    assert ds.n_over_d.values.tolist() == [1.0, 2.0]
    assert_same_numbers(ds.isel(n_over_d=1), at(n_over_d=2.0))


def test_argument_is_left_as_it_was():
    p_over_n = xr.DataArray([1, 2], dims="run", name="mine", attrs={"a": 1})
    before = p_over_n.copy(deep=True)
    at(p_over_n=p_over_n)
    assert p_over_n.identical(before)


def test_packing_of_an_argument_is_not_that_of_the_answer():
    """In a file, integers would round the values that were used."""
    p_over_n = xr.DataArray([0.1, 1.0], dims="run", coords={"run": [1, 2]})
    p_over_n.encoding = {"dtype": "int16", "scale_factor": 0.5}
    assert not at(p_over_n=p_over_n).p_over_n.encoding
    assert p_over_n.encoding


def test_whole_numbers_and_other_precisions_are_numbers():
    expected = at(n_over_d=3.0, p_over_n=[1.0, 2.0])
    for n_over_d, p_over_n in (
        (3, range(1, 3)),
        (np.int64(3), [1, 2]),
        (np.float32(3), np.array([1, 2], dtype=np.float32)),
        (np.array(3), xr.DataArray([1, 2], dims="p_over_n")),
    ):
        assert_same_numbers(at(n_over_d=n_over_d, p_over_n=p_over_n), expected)


# --- what comes back ---------------------------------------------------------------------------


def test_classification_reports_every_quantity_with_its_meaning():
    ds = at(p_over_n=[0.5, 2.0])
    of_labels = {"training_error", "margin"}
    assert set(ds.data_vars) == OVERLAPS | NORMALISED | ERRORS | CERTIFICATES | of_labels
    for name, variable in ds.data_vars.items():
        assert variable.attrs["long_name"], name
        # no training sample is beyond a margin while λ pulls at the weights
        assert (np.isnan if name == "margin" else np.isfinite)(variable).all(), name


def test_regression_has_no_training_error_in_the_sense_of_labels():
    ds = at(model(teacher="linear"))
    assert set(ds.data_vars) == OVERLAPS | NORMALISED | ERRORS | CERTIFICATES


@pytest.mark.parametrize("teacher", ["sign", "linear"])
def test_columns_do_not_depend_on_neighbours(teacher):
    whole = at(model(teacher=teacher), p_over_n=[0.5, 2.0], regularisation=[0, 0.1])
    for i, lam in enumerate([0, 0.1]):
        part = at(model(teacher=teacher), p_over_n=[0.5, 2.0], regularisation=[lam])
        assert list(part.data_vars) == list(whole.data_vars)
        for name in part.data_vars:
            np.testing.assert_allclose(part[name], whole[name][:, [i]], rtol=1e-9, atol=1e-12)


def test_dataset_says_where_it_comes_from():
    built = model(teacher=Sign(flip=0.125))
    attributes = at(built).attrs
    assert attributes["model"] == repr(built)
    assert "flip=0.125" in attributes["model"]
    assert attributes["task"] == "classification"
    assert "a sum, not a mean" in attributes["objective"]
    assert attributes["hiddenmanifold_version"] == version("hiddenmanifold")
    assert "Gerace" in attributes["method"]
    assert at(model(teacher="linear")).attrs["task"] == "regression"


def test_status_carries_its_sentences():
    attributes = at().status.attrs
    assert attributes["flag_values"] == [int(s) for s in Status]
    assert attributes["flag_meanings"].split() == [s.name.lower() for s in Status]
    for status in Status:
        assert f"{int(status)}: {status.sentence}" in attributes["sentences"]


def test_certificates_of_a_converged_point():
    ds = at(model(loss="logistic"), p_over_n=[0.5, 2.0])
    assert np.all(ds.status == Status.CONVERGED)
    assert np.all(ds.residual <= ds.attrs["residual_tolerance"])
    assert np.all(ds.quadrature_error <= ds.attrs["quadrature_tolerance"])
    assert np.all(ds.iterations >= 1)


# --- refusals ----------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
NOT_A_RATIO = {
    "NaN": NAN,
    "minus infinite": -INF,
    "zero": 0.0,
    "negative": -1.0,
    "NaN in a list": [1.0, NAN],
    "zero in an array": np.array([1.0, 0.0]),
    "negative in a DataArray": xr.DataArray([[1.0, -2.0]], dims=("a", "b")),
    "None in a list": [1.0, None],
    "empty": [],
    "empty array": np.empty(0),
    "empty DataArray": xr.DataArray(np.empty((0, 2)), dims=("a", "b")),
    "two axes": np.ones((2, 2)),
    "ragged": [[1.0], [1.0, 2.0]],
    "word": "three",
    "number in quotes": "3",
    "words": ["one", "two"],
    "numbers in quotes": ["1", "2"],
    "DataArray of words": xr.DataArray(["one", "two"], dims="a"),
    "complex": 1 + 1j,
    "complex DataArray": xr.DataArray([1 + 1j], dims="a"),
    "a dict": {"a": 1.0},
    "too large for a float": 10**400,
}


@pytest.mark.parametrize(
    ("argument", "case"),
    [
        (argument, case)
        for argument in [*RATIOS, "regularisation"]
        for case in NOT_A_RATIO
        # these are limits
        if not (argument == "regularisation" and "zero" in case)
    ],
)
def test_what_is_not_a_positive_number_is_refused_by_name(argument, case):
    partner = {"p_over_n": "n_over_d", "n_over_p": "n_over_d"}.get(argument, "p_over_n")
    rest = {"n_over_d": 3.0} if argument == "regularisation" else {"regularisation": 0.1}
    with pytest.raises(InvalidArgumentError) as caught:
        predict(model(), **{partner: 1.5, argument: NOT_A_RATIO[case]}, **rest)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"{argument} ")


def test_missing_regularisation_is_refused():
    with pytest.raises(InvalidArgumentError) as caught:
        at(regularisation=None)
    assert caught.value.argument == "regularisation"


def test_ratios_whose_product_overflows_are_refused():
    with pytest.raises(InvalidArgumentError):
        at(n_over_d=1e-200, p_over_n=1e-200)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (xr.DataArray([1.0, 2.0], dims="a"), xr.DataArray([1.0, 2.0, 3.0], dims="a")),
        (
            xr.DataArray([1.0, 2.0], dims="a", coords={"a": [0, 1]}),
            xr.DataArray([1.0, 2.0], dims="a", coords={"a": [1, 2]}),
        ),
    ],
    ids=["lengths", "labels"],
)
@pytest.mark.parametrize("arguments", [("n_over_d", "p_over_n"), ("n_over_d", "regularisation")])
def test_axes_that_disagree_are_refused(arguments, one, other):
    with pytest.raises(InvalidArgumentError) as caught:
        at(**dict(zip(arguments, (one, other), strict=True)))
    assert any(argument in str(caught.value) for argument in arguments)


@pytest.mark.parametrize("name", ["Q", "intercept", "status"])
def test_axis_with_the_name_of_a_result_is_refused(name):
    with pytest.raises(InvalidArgumentError, match=f"^p_over_n has a dimension '{name}'"):
        at(p_over_n=xr.DataArray([1.0, 2.0], dims=name))


@pytest.mark.parametrize("on_failure", ["ignore", None, True, "RAISE", ["raise"]])
def test_on_failure_is_raise_or_keep(on_failure):
    with pytest.raises(InvalidArgumentError, match="'raise' or 'keep'") as caught:
        at(on_failure=on_failure)
    assert caught.value.argument == "on_failure"


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", "two", NAN, INF, [1]], ids=repr)
def test_workers_are_a_positive_whole_number(workers):
    with pytest.raises(InvalidArgumentError, match="whole number of at least 1") as caught:
        at(workers=workers)
    assert caught.value.argument == "workers"


@pytest.mark.parametrize("wrong", [None, "sign", Model, {"loss": "square"}], ids=repr)
def test_model_must_be_a_model(wrong):
    with pytest.raises(InvalidArgumentError, match=r"hiddenmanifold\.Model") as caught:
        predict(wrong, n_over_d=3.0, p_over_n=1.5, regularisation=0.1)
    assert caught.value.argument == "model"


def test_a_misspelt_choice_is_refused_before_the_work(monkeypatch):
    def work(*_, **__):
        raise AssertionError("it has begun")

    monkeypatch.setattr("hiddenmanifold.theory.bayes.fixed_points.bayes_optimal", work)
    for function in ("predict.asymptotics", "thresholds.peaks", "thresholds.thresholds"):
        monkeypatch.setattr(f"hiddenmanifold.api.{function}", work)
    monkeypatch.setattr("hiddenmanifold.api.needed.fewest_features", work)
    both, one = {"n_over_d": 3.0, "p_over_n": 1.0}, {"n_over_d": 3.0}
    calls = (
        (hm.predict, {**both, "regularisation": 1.0}),
        (hm.sensitivity, {**both, "regularisation": 1.0}),
        (hm.bayes_optimal, both),
        (hm.separability_threshold, one),
        (hm.interpolation_peak, {**one, "regularisation": 1.0}),
        (hm.features_needed, one),
    )
    for function, arguments in calls:
        with pytest.raises(InvalidArgumentError, match="on_failure = 'kep'"):
            function(model(), on_failure="kep", **arguments)


def test_an_infinite_latent_dimension_and_an_infinite_regularisation_commute():
    """The features are then white noise to the teacher's eye, and nothing is learned."""
    ds = at(n_over_d=None, p_over_n=None, n_over_p=2.0, d_over_p=np.inf, regularisation=np.inf)
    assert float(ds.generalisation_error) == pytest.approx(0.5, abs=1e-12)
    with pytest.raises(InvalidArgumentError, match="limits do not commute"):
        at(n_over_d=None, p_over_n=None, n_over_p=np.inf, d_over_p=2.0, regularisation=np.inf)


def test_unknown_ratio_is_refused():
    with pytest.raises(InvalidArgumentError, match="n_over_q"):
        at(n_over_q=1.0)


def test_signatures_show_the_six_ratios():
    functions = (hm.predict, hm.sensitivity, hm.bayes_optimal, hm.separability_threshold)
    functions = (*functions, hm.interpolation_peak, hm.features_needed, hm.simulate, hm.compare)
    for function in functions:
        assert set(RATIOS) <= set(inspect.signature(function).parameters)
    assert {"seeds", "executor", "on_failure"} <= set(inspect.signature(hm.compare).parameters)


# --- failures that show ------------------------------------------------------------------------

GRID = {"p_over_n": [0.5, 1.0, 2.0], "regularisation": [0.01, 1.0]}


@pytest.fixture
def some_points_fail(monkeypatch):
    """Let the points with alpha = 1 run out of iterations, whoever solves them."""

    def unlucky(solver):
        def solve(*given):
            outcome = solver(*given)
            outcome.status[outcome.problem.points.alpha == 1.0] = Status.MAX_ITERATIONS
            return outcome

        return solve

    for name in ("solve", "rescue"):
        monkeypatch.setattr(predictions, name, unlucky(getattr(strategy, name)))


def assert_only_the_middle_failed(ds, expected):
    failed = ds.sel(p_over_n=1.0)
    assert np.all(failed.status == Status.MAX_ITERATIONS)
    for name in OVERLAPS | ERRORS | {"training_error"}:
        assert failed[name].isnull().all(), name
    rest = {"p_over_n": [0.5, 2.0]}
    assert np.all(ds.sel(rest).status == Status.CONVERGED)
    assert_same_numbers(ds.sel(rest), expected.sel(rest))


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_kept_failures_are_nan_with_their_status(some_points_fail, monkeypatch, loss):
    ds = at(model(loss=loss), **GRID, on_failure="keep")
    monkeypatch.undo()
    assert_only_the_middle_failed(ds, at(model(loss=loss), **GRID))


def test_failure_raises_and_carries_the_partial_dataset(some_points_fail, monkeypatch):
    with pytest.raises(ConvergenceError) as caught:
        at(**GRID)
    message = str(caught.value)
    assert message.startswith("2 of 6 points did not converge")
    for part in ("p_over_n = 1,", "regularisation = 0.01", "n_over_d = 3", "on_failure='keep'"):
        assert part in message
    assert Status.MAX_ITERATIONS.sentence in message
    monkeypatch.undo()
    assert_only_the_middle_failed(caught.value.partial, at(**GRID))


@pytest.mark.slow
def test_running_out_of_iterations_is_a_status():
    """Where hardly any features are learned, and labels are almost balanced: a constant, or not?"""
    built = model(
        activation="sign",
        projection="orthogonal",
        teacher=Sign(noise=1.7544158579950183e-08, threshold=0.023819476682035656),
        loss="absolute",
        intercept=True,
    )
    given = {
        "n_over_p": 7.438646284049666e-08,
        "d_over_p": 0.17941301902347598,
        "regularisation": 378.2066645564986,
    }
    ds = hm.predict(built, **given, on_failure="keep")
    assert ds.status == Status.MAX_ITERATIONS and ds.generalisation_error.isnull()
    with pytest.raises(ConvergenceError, match=Status.MAX_ITERATIONS.sentence):
        hm.predict(built, **given)


def test_an_intercept_may_be_far_from_the_best_constant():
    """With hardly any samples all are fitted, and the intercept is the mean label."""
    built = model(
        activation="identity",
        projection="orthogonal",
        teacher=Sign(noise=1e-8, threshold=0.7),
        loss="absolute",
        intercept=True,
    )
    ds = hm.predict(built, n_over_p=1.4e-10, d_over_p=0.6, regularisation=[2.5e-12, 1e-11])
    rare = float(ndtr(-0.7))
    np.testing.assert_allclose(ds.intercept, 1 - 2 * rare, rtol=1e-7)
    np.testing.assert_allclose(ds.generalisation_error, rare, rtol=1e-7)


@pytest.mark.parametrize(
    ("unreachable", "status"),
    [
        ({"residual": -1.0}, Status.QUADRATURE),
        ({"quadrature": -1.0}, Status.QUADRATURE),
        ({"conditioning": 0.0}, Status.ILL_CONDITIONED),
    ],
)
def test_unreachable_tolerances_are_a_status(unreachable, status):
    alpha, lam = (a.ravel() for a in np.meshgrid([0.5, 1.0, 2.0], [0.01, 1.0]))
    points, built = Points.of(alpha, alpha / 3.0, lam), model(loss="logistic")
    found = asymptotics(built, points, tolerances=Tolerances(**unreachable))
    assert (found["status"] == status).all()
    assert np.isnan(found["Q"]).all()
    assert (asymptotics(built, points)["status"] == Status.CONVERGED).all()


def test_datasets_record_the_tolerances_of_their_answers():
    expected = {"residual": 1e-9, "quadrature": 1e-9, "conditioning": 1e-7, "target": 1e-11}
    best = hm.bayes_optimal(model(), n_over_d=3.0, p_over_n=1.0)
    for ds in (at(p_over_n=1.0, regularisation=0.1), best):
        for name, value in expected.items():
            assert ds.attrs[f"{name}_tolerance"] == value


def test_equations_that_are_not_finite_are_a_status():
    """Features of one's own whose sums are not numbers at some d/p."""

    class Broken(hm.features.RandomFeatures):
        def sums(self, k, gamma, boost=1.0):
            found = super().sums(k, gamma, boost)
            return replace(found, D20=np.where(gamma == 1.0, np.nan, found.D20))

    built = Model(features=Broken("erf", "gaussian"), teacher="sign", loss="logistic")
    given = {"n_over_p": 2.0, "regularisation": 0.1}
    ds = hm.predict(built, **given, d_over_p=[0.5, 1.0], on_failure="keep")
    assert ds.status.values.tolist() == [Status.CONVERGED, Status.NON_FINITE]


def test_nothing_is_raised_when_nothing_fails():
    assert np.all(at(**GRID, on_failure="raise").status == Status.CONVERGED)


# --- numbers depend on the point alone ---------------------------------------------------------

VARIETY = {
    "square": model(),
    "logistic": model(loss="logistic", activation="erf", projection="orthogonal"),
    "hinge": model(loss="hinge", teacher=Sign(noise=0.2, flip=0.1)),
    "free intercept": model(loss="logistic", activation="relu", teacher=Sign(threshold=0.5)),
    "regression": model(loss="huber", teacher="linear"),
    "custom teacher": model(loss="hinge", teacher=CustomTeacher(lambda nu: expit(2 * nu + 0.3))),
    "matrix": model(loss="squared_hinge", projection=FIXED["matrix"]),
}
variety = pytest.mark.parametrize("name", VARIETY)


def scattered(name, count=15, seed=12):
    """Points in no order, along one axis."""
    rng = np.random.default_rng(seed)
    arguments = {
        "n_over_p": xr.DataArray(np.exp(rng.uniform(-1.5, 1.5, count)), dims="point"),
        "d_over_p": xr.DataArray(np.exp(rng.uniform(-1.5, 1.5, count)), dims="point"),
        "regularisation": xr.DataArray(np.exp(rng.uniform(-5, 2, count)), dims="point"),
    }
    if name == "matrix":
        del arguments["d_over_p"]
    return arguments


@cache
def all_at_once(name):
    return predict(VARIETY[name], **scattered(name), workers=1)


def solve_together(monkeypatch, points):
    """Let each batch have at most so many points."""
    monkeypatch.setattr(Channel, "batch", points)


@pytest.mark.slow
@variety
@pytest.mark.parametrize("points", [1, 5])
def test_numbers_do_not_depend_on_the_size_of_the_batch(monkeypatch, name, points):
    expected = all_at_once(name)
    solve_together(monkeypatch, points)
    assert_same_numbers(predict(VARIETY[name], **scattered(name), workers=1), expected)


@variety
def test_numbers_do_not_depend_on_the_number_of_workers(monkeypatch, name):
    solve_together(monkeypatch, 7)
    one = predict(VARIETY[name], **scattered(name), workers=1)
    for workers in (2, 5, None):
        several = predict(VARIETY[name], **scattered(name), workers=workers)
        assert several.assign_attrs(workers=1).identical(one)


@variety
def test_numbers_do_not_depend_on_the_order_of_the_points(name):
    order = np.random.default_rng(13).permutation(15)
    shuffled = {k: v.isel(point=order) for k, v in scattered(name).items()}
    found = predict(VARIETY[name], **shuffled, workers=1)
    assert_same_numbers(found, all_at_once(name).isel(point=order))


@variety
def test_numbers_do_not_depend_on_the_neighbours(name):
    for i in (0, 11):
        alone = {k: float(v[i]) for k, v in scattered(name).items()}
        assert_same_numbers(predict(VARIETY[name], **alone), all_at_once(name).isel(point=i))


def test_same_call_gives_the_same_bits():
    built = VARIETY["logistic"]
    assert predict(built, **scattered("logistic")).identical(
        predict(built, **scattered("logistic"))
    )


# --- ingredients given as functions ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "intercept"), [(1.0, True), (20.0, False)])
@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_teacher_given_as_a_function_agrees_with_the_built_in_one(loss, slope, intercept):
    def probability(nu):
        return expit(slope * (nu + 0.4))

    points = {"p_over_n": [0.5, 2.0], "regularisation": 0.1}
    ours = model(teacher=CustomTeacher(probability), loss=loss, intercept=intercept)
    theirs = model(teacher=Logistic(slope, 0.4), loss=loss, intercept=intercept)
    names = OVERLAPS | ERRORS | {"training_error"}
    assert_same_numbers(at(ours, **points), at(theirs, **points), rtol=1e-9, names=names)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_undeclared_jump_of_a_teacher_is_found_where_it_changes_the_label(loss):
    def probability(nu):
        return np.where(nu > -0.3123, 0.9, 0.1)

    points = {"p_over_n": [0.5, 2.0], "regularisation": 0.1}
    found = at(model(teacher=CustomTeacher(probability), loss=loss), **points)
    right = at(model(teacher=Sign(flip=0.1, threshold=0.3123), loss=loss), **points)
    assert_same_numbers(found, right)


def test_samples_of_a_rule_given_as_a_function_can_all_be_fitted():
    teacher = CustomTeacher(lambda nu: np.where(nu > 0.0, 1.0, 0.0), kinks=(0.0,))
    found = at(model(teacher=teacher, loss="hinge"), regularisation=1e-6)
    assert float(found.training_error) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("kinks", [(), (0.0,)])
@pytest.mark.parametrize("at_zero", [0.0, 0.5, 1.0])
def test_what_a_rule_says_exactly_where_it_jumps_does_not_matter(at_zero, kinks):
    # the hinge hardly holds the intercept: a rule that is not known to be symmetric loses it
    teacher = CustomTeacher(lambda nu: np.heaviside(nu, at_zero), kinks=kinks)
    arguments = {"regularisation": 10.0, "p_over_n": 1.0}
    found, right = (
        at(model(activation="relu", teacher=rule, loss="hinge"), **arguments)
        for rule in (teacher, "sign")
    )
    assert_same_numbers(found, right)


@pytest.mark.parametrize("level", [0.3, 0.7])
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_teacher_that_always_prefers_one_label_has_an_answer(loss, level):
    teacher = CustomTeacher(lambda nu: level + 0.1 * np.tanh(nu))
    ds = at(model(teacher=teacher, loss=loss, intercept=True))
    assert 0.2 < float(ds.generalisation_error) < 0.5
    assert 0.0 <= float(ds.clean_error) < 0.5


@pytest.mark.parametrize("threshold", [0.0, 0.6])
@pytest.mark.parametrize("intercept", [False, True])
def test_weights_that_a_corner_of_the_loss_holds_at_zero_guess_like_a_coin(threshold, intercept):
    # that of the perceptron vanishes at w = 0, and so does the penalty: there is no better w
    corner = CustomLoss(
        lambda m: np.maximum(-m, 0.0),
        lambda m: np.where(m < 0.0, -1.0, 0.0),
        np.zeros_like,
        kinks=(0.0,),
    )
    teacher = Sign(threshold=threshold)
    found = at(model(teacher=teacher, loss=corner, intercept=intercept), p_over_n=0.05)
    assert float(found.training_loss) == pytest.approx(0.0, abs=1e-40)
    for name in ("generalisation_error", "clean_error", "training_error"):
        assert float(found[name]) == pytest.approx(0.5, abs=1e-12), name


def test_half_of_the_samples_that_a_corner_of_the_loss_holds_at_zero_are_wrong():
    corner = CustomLoss(
        lambda m: np.maximum(-2.0 * m, -m),
        lambda m: np.where(m < 0.0, -2.0, -1.0),
        np.zeros_like,
        kinks=(0.0,),
    )
    found = at(model(loss=corner), regularisation=3.0)
    V, Q, M = (float(found[name]) for name in ("V", "Q", "M"))

    def below(margin):
        """Part of new samples of the sign rule with a margin below this."""
        slope = M / np.sqrt(Q * (Q - M**2))

        def law(u):
            return 2.0 * norm.pdf(u, scale=np.sqrt(Q)) * norm.cdf(slope * u)

        return quad(law, -9.0 * np.sqrt(Q), margin, epsabs=1e-13, epsrel=1e-12)[0]

    # the fit moves margins up by V to 2V, and those between to zero
    expected = 0.5 * (below(-V) + below(-2.0 * V))
    assert below(-V) - below(-2.0 * V) > 0.01
    assert float(found.training_error) == pytest.approx(expected, abs=1e-10)


UNDECLARED = {
    "absolute": (
        lambda r: np.abs(r - 0.3123),
        lambda r: np.sign(r - 0.3123),
        np.zeros_like,
        "residual",
        "linear",
    ),
    "hinge": (
        lambda m: np.maximum(0.0123 - m, 0.0),
        lambda m: np.where(m < 0.0123, -1.0, 0.0),
        np.zeros_like,
        "margin",
        "sign",
    ),
    "hinge and logistic": (
        lambda m: np.maximum(0.3123 - m, 0.0) + np.logaddexp(0.0, -m),
        lambda m: np.where(m < 0.3123, -1.0, 0.0) - expit(-m),
        lambda m: expit(m) * expit(-m),
        "margin",
        "sign",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", UNDECLARED)
def test_undeclared_kink_of_a_loss_gives_no_wrong_number(case):
    *functions, of, teacher = UNDECLARED[case]
    kink = 0.0123 if case == "hinge" else 0.3123
    points = {"p_over_n": [0.5, 2.0], "regularisation": 0.1}
    undeclared = model(teacher=teacher, loss=CustomLoss(*functions, of=of))
    found = at(undeclared, **points, on_failure="keep")
    assert np.all(found.status != Status.CONVERGED)
    for name in OVERLAPS | ERRORS:
        assert found[name].isnull().all(), name
    declared = model(teacher=teacher, loss=CustomLoss(*functions, of=of, kinks=(kink,)))
    assert np.all(at(declared, **points).status == Status.CONVERGED)


@pytest.mark.parametrize("lam", [1e38, 1e41, 1e100, 1e250])
@pytest.mark.parametrize(("loss", "push"), [("square", 1.0), ("hinge", 1.0), ("logistic", 0.5)])
def test_overlaps_of_any_finite_regularisation_fall_like_its_powers(loss, push, lam):
    """For large λ the weights are a mean over samples: w = push Σ y x / λ√p."""
    rho, alpha, gamma = 0.7, 3.0, 0.4
    model = hm.Model(activation="erf", projection="gaussian", teacher=Sign(rho=rho), loss=loss)
    ds = hm.predict(model, n_over_p=alpha, d_over_p=gamma, regularisation=lam)
    _, kappa_1, kappa_star = model.activation.kappas
    seen = rho * alpha * push * np.sqrt(2 / (np.pi * rho)) / gamma  # ρ α e3 / γ
    assert float(ds.V) == pytest.approx((kappa_1**2 + kappa_star**2) / lam, rel=1e-12)
    assert float(ds.M) == pytest.approx(seen * kappa_1**2 / lam, rel=1e-12)
    noise, signal = alpha * push**2, seen**2 * gamma * kappa_1**2 / rho
    q_w = noise * (kappa_1**2 + kappa_star**2) + signal
    s2 = 1.0 + 1.0 / gamma  # the mean square of an eigenvalue
    q_s = noise * (kappa_1**2 * s2 + kappa_star**2) + signal * s2
    assert float(ds.q_s_normalised) == pytest.approx(q_s / q_w, rel=1e-12)
    assert float(ds.q_w) == pytest.approx(q_w / lam / lam, rel=1e-12)  # which may underflow


def test_regularisation_is_no_match_for_infinitely_many_samples():
    chosen = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    infinite = {"n_over_p": np.inf, "d_over_p": 0.5}
    small, large = (hm.predict(chosen, regularisation=lam, **infinite) for lam in (1.0, 1e20))
    xr.testing.assert_allclose(small.drop_vars("regularisation"), large.drop_vars("regularisation"))
    for ratios in (infinite, {"n_over_d": np.inf, "p_over_n": 0.5}):
        for lam in (1e21, 1e60, np.inf):
            with pytest.raises(InvalidArgumentError, match="1e20 where n/p or n/d is infinite"):
                hm.predict(chosen, regularisation=lam, **ratios)


def test_an_infinite_regularisation_beats_any_finite_number_of_samples():
    chosen = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    ratios = {"n_over_p": 1e36, "d_over_p": 0.5}
    ds = hm.predict(chosen, regularisation=np.inf, **ratios)
    few = hm.predict(chosen, regularisation=np.inf, n_over_p=1.0, d_over_p=0.5)
    assert float(ds.Q) == 0.0 and float(ds.training_loss) == 0.5
    # many samples average out all but the teacher: their mean is a fixed direction
    assert float(ds.alignment) > float(few.alignment)


@pytest.mark.parametrize("name", ["lam", "regularization", "C", "alpha"])
@pytest.mark.parametrize("function", [hm.predict, hm.simulate, hm.ensemble])
def test_other_names_of_the_penalty_are_answered_with_its_own(function, name):
    with pytest.raises(InvalidArgumentError, match=f"{name} is not an .* is called regularisation"):
        function(plain_model(), n_over_d=3.0, p_over_n=0.5, **{name: 0.1})


def test_a_question_without_a_penalty_says_so():
    with pytest.raises(InvalidArgumentError, match="ratio α of sizes is called n_over_d or n_ov"):
        hm.predict(plain_model(), alpha=3.0, p_over_n=1.0, regularisation=0.1)
    with pytest.raises(InvalidArgumentError, match="C is not an .* about fits without a penalty"):
        hm.separability_threshold(plain_model(), n_over_d=3.0, C=1.0)
    with pytest.raises(InvalidArgumentError, match="regularisation is not an .* to predict"):
        hm.Model(kernel="rbf", teacher="sign", loss="square", regularisation=0.1)
