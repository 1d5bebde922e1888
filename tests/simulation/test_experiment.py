"""Simulations are reproducible, labelled like predictions, and honest about what went wrong."""

import os
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_info, threadpool_limits

import hiddenmanifold as hm
from hiddenmanifold.api import compare
from hiddenmanifold.api.predict import predicted
from hiddenmanifold.api.standard_scores import COMPARED, rounding_errors
from hiddenmanifold.errors import Status
from hiddenmanifold.results.datasets import ACCEPTED
from hiddenmanifold.simulation import experiment
from hiddenmanifold.simulation.experiment import Trial, measured
from hiddenmanifold.simulation.fit import fit_path
from hiddenmanifold.simulation.samples import Sizes, World

LOGISTIC = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
RIDGE = hm.Model(
    activation="tanh",
    projection="gaussian",
    teacher=hm.teachers.Linear(noise=0.2),
    loss="square",
)
SMALL = {"d": 20, "seeds": 3, "n_test": 100, "workers": 1}
POINT = {"n_over_d": 2.0, "p_over_n": 0.75, "regularisation": 0.1}
GRID = {"n_over_d": [2.0, 3.0], "p_over_n": [0.5, 1.0, 1.5], "regularisation": [0.01, 1.0]}
UNREPEATABLE = ["seconds"]
EFFORT = ["workers", "done", "asked"]  # who made a dataset and how much of it, not what it says


def simulate(model=LOGISTIC, **options):
    return hm.simulate(model, **{**POINT, **SMALL, **options})


def assert_equal(first, second, **tolerance):
    first, second = (
        ds.drop_vars(UNREPEATABLE).assign_attrs(dict.fromkeys(EFFORT)) for ds in (first, second)
    )
    if tolerance:
        first, second = first.drop_vars("optimality"), second.drop_vars("optimality")
        xr.testing.assert_allclose(first, second, **tolerance)
    else:
        xr.testing.assert_identical(first, second)


# ---------------------------------------------------------------- what results depend on


@pytest.fixture(scope="module")
def grid():
    return hm.simulate(LOGISTIC, **GRID, **SMALL)


def test_results_do_not_depend_on_the_number_of_processes():
    options = {"n_over_d": [2.0, 3.0], "regularisation": [0.01, 1.0]}
    assert_equal(simulate(**options), simulate(**options, workers=2))


def test_results_do_not_depend_on_who_runs_them(grid):
    with ThreadPoolExecutor(2) as pool:
        elsewhere = hm.simulate(LOGISTIC, **GRID, **SMALL, executor=pool)
        assert pool.submit(int).result() == 0  # the user's executor is left open
    assert_equal(grid, elsewhere)


def test_the_given_executor_is_used():
    class Counting(ThreadPoolExecutor):
        tasks = 0

        def submit(self, *args, **kwargs):
            self.tasks += 1
            return super().submit(*args, **kwargs)

    with Counting(1) as pool:
        simulate(executor=pool)
        assert pool.tasks == 3


def test_results_do_not_depend_on_the_order_of_the_grid(grid):
    backwards = hm.simulate(LOGISTIC, **{name: v[::-1] for name, v in GRID.items()}, **SMALL)
    assert_equal(grid, backwards.isel({name: slice(None, None, -1) for name in GRID}))


def test_results_do_not_depend_on_the_other_points(grid):
    alone = simulate(n_over_d=3.0, p_over_n=1.0, regularisation=[0.01, 1.0])
    assert_equal(grid.sel(n_over_d=3.0, p_over_n=1.0), alone)


@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_results_do_not_depend_on_the_other_regularisations(loss):
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss=loss)
    path = simulate(model, regularisation=[0.01, 0.1, 1.0])
    for lam in path.regularisation.values:
        alone = simulate(model, regularisation=lam)
        assert_equal(path.sel(regularisation=lam), alone, rtol=1e-4, atol=1e-6)


def test_more_seeds_repeat_the_first_ones():
    assert_equal(simulate(seeds=5).isel(seed=slice(3)), simulate(seeds=3))


def test_seeds_and_roots_give_different_data():
    first, other = simulate(), simulate(seed=1)
    losses = np.concatenate([first.training_loss.values, other.training_loss.values])
    assert len(np.unique(losses)) == 6
    assert_equal(first, simulate(seed=0))


def test_a_trial_gives_the_same_result_each_time_it_runs():
    sequence = np.random.SeedSequence(0, spawn_key=(0,))
    trial = Trial(LOGISTIC, Sizes(40, 30, 20), (0.1,), sequence, 50, equivalent=False)
    first, again = trial.run(), trial.run()  # an executor may retry a lost task
    for name in set(first) - set(UNREPEATABLE):
        assert np.array_equal(first[name], again[name]), name


def test_training_and_test_samples_are_not_the_same_draws():
    received = []

    def activation(x):
        received.append(x)
        return np.tanh(x)

    model = hm.Model(activation=activation, projection="gaussian", teacher="sign", loss="square")
    received.clear()  # of what its coefficients took
    simulate(model, seeds=1, n_test=40, n_over_d=2.0)
    train, test = (x for x in received if x.shape == (40, 30))
    assert not np.isclose(train, test).all(1).any()


# ---------------------------------------------------------------- what a dataset looks like


def test_dimensions_and_names_are_those_of_predict(grid):
    theory = hm.predict(LOGISTIC, **GRID)
    certificates = set(hm.errors.CERTIFICATES)
    of_limits = {name for name in theory.data_vars if name.endswith("_normalised")} | {"margin"}
    responses = {"V", "V_s", "V_w"}
    shared = set(theory.data_vars) - certificates - responses - of_limits
    assert shared <= set(grid.data_vars)
    assert set(grid.data_vars) == set(measured(LOGISTIC))
    for name in shared:
        assert set(grid[name].dims) == {*theory[name].dims, "seed"}
        assert grid[name].attrs["long_name"] == theory[name].attrs["long_name"]
    for name in GRID:
        assert np.array_equal(grid[name], theory[name])
    assert np.array_equal(grid.seed, [0, 1, 2])
    assert grid.attrs["model"] == theory.attrs["model"]
    assert grid.attrs["data"] == "original"
    assert simulate(data="equivalent").attrs["data"] == "equivalent"


def test_dimensions_come_in_the_order_of_predict(grid):
    theory = hm.predict(LOGISTIC, **GRID)
    assert grid.generalisation_error.dims == (*theory.generalisation_error.dims, "seed")


def test_coordinates_say_which_whole_numbers_were_used(grid):
    for a in GRID["n_over_d"]:
        for r in GRID["p_over_n"]:
            point = grid.sel(n_over_d=a, p_over_n=r)
            assert (point.d, point.n, point.p) == (20, 20 * a, 20 * a * r)
    odd = simulate(n_over_d=np.pi, p_over_n=np.e)
    assert (odd.n, odd.p, odd.d) == (63, 171, 20)


def test_regularisation_may_vary_with_the_point(grid):
    ratios = xr.DataArray([0.5, 1.5], dims="curve")
    lam = xr.DataArray([1.0, 0.01], dims="curve")
    ds = simulate(p_over_n=ratios, regularisation=lam, n_over_d=3.0)
    assert ds.generalisation_error.dims == ("curve", "seed")
    for k in range(2):
        point = {"p_over_n": float(ratios[k]), "regularisation": float(lam[k]), "n_over_d": 3.0}
        for name in ("generalisation_error", "q_w", "training_loss"):
            assert np.allclose(ds[name].isel(curve=k), grid[name].sel(point), rtol=1e-5)


def test_a_projection_that_fixes_a_ratio_is_simulated_with_the_other():
    F = np.random.default_rng(0).standard_normal((20, 30))
    model = hm.Model(
        activation="erf", projection=hm.projections.Matrix(F), teacher="sign", loss="square"
    )
    point = {"n_over_d": [2.0, 3.0], "regularisation": 0.1, "n_test": 20, "seeds": 2, "workers": 1}
    ds = hm.simulate(model, **point)
    assert ds.d.values.tolist() == [20, 20]
    assert ds.p.values.tolist() == [30, 30]
    assert ds.n.values.tolist() == [40, 60]
    assert_equal(ds, hm.simulate(model, **point, d=20))
    with pytest.raises(hm.InvalidArgumentError, match="^d = 21 .*20, which the features fix"):
        hm.simulate(model, **point, d=21)


def test_measured_quantities_are_those_of_the_fit():
    model = hm.Model(
        activation="relu",
        projection="gaussian",
        teacher=hm.teachers.Sign(flip=0.1, threshold=0.3),
        loss="logistic",
        intercept=True,
    )
    ds = simulate(model, seeds=1).isel(seed=0)
    n, p, d = key = (40, 30, 20)
    rngs = [
        np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0, *key, k))) for k in range(3)
    ]
    world = World.draw(model, Sizes(*key), rngs[0])
    train, test = world.sample(n, rngs[1]), world.sample(100, rngs[2])
    (fit,) = fit_path(model.loss, model.task, train.X, train.y, np.array([0.1]), intercept=True)
    F, (k0, k1, ks) = world.features.maps[0].F, model.activation.kappas
    q_s, q_w = (F @ fit.w) @ (F @ fit.w) / (p * d), fit.w @ fit.w / p
    m_s = (F @ fit.w) @ world.features.inputs.theta / (np.sqrt(p) * d)
    f_train, f_test = (s.X @ fit.w / np.sqrt(p) + fit.b for s in (train, test))
    wrong = np.sign(f_test) != test.y
    expected = {
        "q_s": q_s,
        "q_w": q_w,
        "m_s": m_s,
        "Q": k1**2 * q_s + ks**2 * q_w,
        "M": k1 * m_s,
        "alignment": k1 * m_s / np.sqrt(k1**2 * q_s + ks**2 * q_w),
        "intercept": fit.b + k0 * fit.w.sum() / np.sqrt(p),
        "training_error": np.mean(np.sign(f_train) != train.y),
        "training_loss": np.logaddexp(0, -train.y * f_train).mean() + 0.05 * q_w * p / 40,
        "generalisation_error": wrong.mean(),
        "clean_error": np.mean(np.sign(f_test) != test.clean),
        "generalisation_error_test_stderr": np.sqrt(wrong.var(ddof=1) / 100),
    }
    for name, value in expected.items():
        assert float(ds[name]) == pytest.approx(value, rel=1e-10), name


@pytest.mark.slow
def test_standard_error_of_the_test_is_the_spread_of_repeated_tests():
    few = hm.simulate(RIDGE, **POINT, d=20, seeds=200, n_test=50, workers=1)
    many = hm.simulate(RIDGE, **POINT, d=20, seeds=200, n_test=20_000, workers=1)
    for name in ("generalisation_error", "clean_error"):
        pull = (few[name] - many[name]) / np.hypot(
            few[f"{name}_test_stderr"], many[f"{name}_test_stderr"]
        )
        assert 0.8 < float(pull.std()) < 1.3  # heavy tails of squares: more than one
        assert abs(float((few[name] - many[name]).mean())) < 0.05 * float(many[name].mean())
        assert np.all(few[f"{name}_test_stderr"].mean() > 15 * many[f"{name}_test_stderr"].mean())


# ---------------------------------------------------------------- summary and compare


def test_summary_is_the_mean_and_standard_error_over_seeds(grid):
    out = hm.summary(grid)
    for name in ("generalisation_error", "training_loss", "q_w", "M", "intercept"):
        values = grid[name].transpose(..., "seed").values
        assert np.allclose(out[name].transpose(*grid[name].dims[:-1]), values.mean(-1), rtol=1e-14)
        stderr = out[f"{name}_stderr"].transpose(*grid[name].dims[:-1])
        assert np.allclose(stderr, values.std(-1, ddof=1) / np.sqrt(3), rtol=1e-12)
    assert (out.seeds == 3).all()
    assert (out.dropped == 0).all()
    assert "seed" not in out.dims
    assert np.array_equal(out.n, grid.n)


def test_summary_drops_and_counts_fits_short_of_their_optimum(grid):
    doctored = grid.copy(deep=True)
    where = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": 1.0}
    doctored.optimality.loc[{**where, "seed": 1}] = 2 * ACCEPTED
    doctored.q_w.loc[{**where, "seed": 1}] = 1e6
    out = hm.summary(doctored)
    assert int(out.dropped.sum()) == int(out.dropped.sel(where)) == 1
    assert int(out.seeds.sel(where)) == 2
    kept = grid.q_w.sel(where).values[[0, 2]]
    assert float(out.q_w.sel(where)) == pytest.approx(kept.mean(), rel=1e-14)
    stderr = float(out.q_w_stderr.sel(where))
    assert stderr == pytest.approx(kept.std(ddof=1) / np.sqrt(2), rel=1e-12)


def test_summary_of_no_good_fit_or_of_one_seed_is_nan_without_complaint():
    ds = simulate(seeds=1)
    assert np.isnan(hm.summary(ds).q_w_stderr)
    assert float(hm.summary(ds).q_w) == float(ds.q_w[0])
    ds.optimality[:] = np.nan
    out = hm.summary(ds)
    assert np.isnan(out.q_w)
    assert (int(out.seeds), int(out.dropped)) == (0, 1)


def test_summary_refuses_what_simulate_did_not_return():
    with pytest.raises(hm.InvalidArgumentError, match="^ds = "):
        hm.summary(hm.predict(LOGISTIC, **POINT))


def test_a_fit_does_not_fail_as_a_solve_does():
    with pytest.raises(hm.InvalidArgumentError, match="on_failure cannot be given here"):
        hm.simulate(LOGISTIC, **POINT, **SMALL, on_failure="keep")


@pytest.mark.slow
def test_compare_judges_by_the_standard_error_at_the_sizes_used():
    point = {"n_over_d": 2.03, "p_over_n": [0.5, 1.0], "regularisation": [0.1, 1.0]}
    out = hm.compare(LOGISTIC, **point, **SMALL)
    mean = hm.summary(hm.simulate(LOGISTIC, **point, **SMALL))
    for k, (n, p) in enumerate([(41, 20), (41, 41)]):
        for lam in (0.1, 1.0):
            theory = hm.predict(LOGISTIC, n_over_d=n / 20, p_over_n=p / n, regularisation=lam)
            found = out.isel(p_over_n=k).sel(regularisation=lam)
            judged = [name for name in COMPARED if name in theory]
            assert {"generalisation_error", "training_loss", "Q", "M", "q_w"} <= set(judged)
            for name in judged:
                expected = mean[name].isel(p_over_n=k).sel(regularisation=lam)
                error = float(mean[f"{name}_stderr"].isel(p_over_n=k).sel(regularisation=lam))
                assert float(found[name]) == float(expected)
                assert float(found[f"{name}_theory"]) == pytest.approx(
                    float(theory[name]), rel=1e-8, abs=1e-12
                )
                z = (float(expected) - float(theory[name])) / error
                assert float(found[f"{name}_z"]) == pytest.approx(z, rel=1e-5, abs=1e-6)


@pytest.mark.slow
def test_compare_cannot_judge_what_all_seeds_agree_on():
    out = hm.compare(LOGISTIC, **{**POINT, "regularisation": 0.01}, **SMALL)
    assert float(out.training_error_stderr) == 0.0 < float(out.training_error_theory)
    assert np.isnan(out.training_error_z)
    assert np.isfinite(out.q_w_z)
    rounded = hm.compare(LOGISTIC, n_over_d=2.0, p_over_n=4.0, regularisation=0.1, d=20, seeds=3)
    assert float(rounded.training_error) > 0.0
    assert float(rounded.training_error_stderr) < 1e-15
    assert np.isnan(rounded.training_error_z)


@pytest.mark.slow
def test_compare_does_not_judge_rounding_by_its_spread():
    """Noiseless labels are interpolated, and the rule recovered: losses and errors of rounding."""
    for activation, names in (("tanh", ["training_loss"]), ("identity", list(RECOVERED))):
        rule = hm.teachers.Linear(rho=4.0)
        model = hm.Model(activation=activation, projection="gaussian", teacher=rule, loss="square")
        out = hm.compare(model, n_over_d=1.5, p_over_d=2.0, regularisation=0.0, d=32, seeds=8)
        for name in names:
            assert 0.0 < float(out[name]) < 1e-25
            assert float(out[f"{name}_theory"]) == 0.0
            assert abs(float(out[f"{name}_z"])) < 1.0, name


RECOVERED = {"training_loss", "generalisation_error", "clean_error"}


@pytest.mark.slow
def test_compare_sees_differences_far_below_the_labels(monkeypatch):
    def off(*arguments):
        return predicted(*arguments).assign(training_loss=lambda ds: 0 * ds.q_w + 1e-9)

    model = hm.Model(activation="tanh", projection="gaussian", teacher="linear", loss="square")
    arguments = {"n_over_d": 1.0, "p_over_d": 4.0, "regularisation": 1e-12, "d": 20, "seeds": 4}
    right = hm.compare(model, **arguments)
    assert float(right.training_loss) < 1e-11
    assert abs(float(right.training_loss_z)) < 5
    monkeypatch.setattr(compare, "predicted", off)
    assert float(hm.compare(model, **arguments).training_loss_z) < -100
    corner, one = model.with_loss("absolute"), xr.DataArray(1.0)  # rounding is not squared there
    assert 1e-14 < float(rounding_errors(corner, one)["training_loss"]) < 1e-12
    assert "training_loss" not in rounding_errors(LOGISTIC, one)


@pytest.mark.slow
def test_a_constant_prediction_has_no_alignment():
    """Few positives that no feature tells from the many negatives: w is zero, whatever λ."""
    rare = hm.teachers.Sign(threshold=-2.0)
    model = hm.Model(
        activation="tanh", projection="gaussian", teacher=rare, loss="absolute", intercept=True
    )
    out = hm.compare(
        model, n_over_p=5.0, d_over_p=1.0, regularisation=[1e-3, 1.0, 1e3], d=20, seeds=3
    )
    for name in ("alignment", "alignment_theory", "alignment_z"):
        assert np.isnan(out[name]).all(), name
    assert (out.Q == 0).all() and (out.q_w == 0).all()
    assert (out.Q_theory < 1e-90).all()
    assert (out.theory_status == hm.Status.CONVERGED).all()
    np.testing.assert_allclose(out.training_loss, 2 * out.training_error, rtol=1e-9)


def test_summary_counts_the_seeds_in_which_a_quantity_is_defined():
    ds = simulate(seeds=4)
    ds.alignment[..., :2] = np.nan
    out, some = hm.summary(ds), hm.summary(ds.isel(seed=slice(2, None)))
    np.testing.assert_allclose(out.alignment_stderr, some.alignment_stderr)
    assert (out.seeds == 4).all()


def test_compare_takes_regularisations_that_vary_with_the_point():
    lam = xr.DataArray([1.0, 0.1], dims="p_over_n")
    out = hm.compare(LOGISTIC, n_over_d=2.0, p_over_n=[0.5, 1.0], regularisation=lam, **SMALL)
    for k in range(2):
        theory = hm.predict(
            LOGISTIC, n_over_d=2.0, p_over_n=[0.5, 1.0][k], regularisation=float(lam[k])
        )
        assert float(out.q_w_theory[k]) == pytest.approx(float(theory.q_w), rel=1e-8)


@pytest.mark.slow
def test_compare_at_the_best_regularisation():
    best = hm.Optimal(bounds=(0.05, 10.0))
    grid = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0]}
    out = hm.compare(RIDGE, **grid, regularisation=best, **SMALL)
    assert "regularisation" not in out.coords
    lam = xr.DataArray(out.optimal_regularisation.values, dims="p_over_n")
    same = hm.compare(RIDGE, **grid, regularisation=lam, **SMALL)
    xr.testing.assert_equal(
        out.drop_vars("optimal_regularisation"), same.drop_vars("regularisation")
    )
    for factor in (0.9, 1.1):  # anything else is predicted to err more
        other = hm.predict(RIDGE, **grid, regularisation=factor * lam)
        assert (other.generalisation_error.values > out.generalisation_error_theory.values).all()


def test_compare_refuses_a_best_regularisation_that_no_fit_can_have():
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    point = {"n_over_d": 3.0, "p_over_n": 50.0, "regularisation": "optimal"}
    with pytest.raises(hm.InvalidArgumentError, match="the limit 0, which no fit can have"):
        hm.compare(model, **point, **SMALL)


def test_compare_has_no_misclassification_rate_in_regression():
    out = hm.compare(RIDGE, **POINT, **SMALL)
    assert "training_error" not in out
    assert np.isfinite(out.generalisation_error_z)


# ---------------------------------------------------------------- interruptions and executors


def test_an_interrupt_returns_what_is_done_and_nan_for_the_rest(monkeypatch, grid):
    run, done = Trial.run, []

    def interrupted(self):
        if len(done) == 7:
            raise KeyboardInterrupt
        done.append(self)
        return run(self)

    monkeypatch.setattr(Trial, "run", interrupted)
    part = hm.simulate(LOGISTIC, **GRID, **SMALL)
    finished = part.generalisation_error.notnull()
    assert int(finished.sum()) == 7 * 2  # two regularisations share a trial
    assert dict(part.sizes) == dict(grid.sizes)
    for name in ("generalisation_error", "q_w", "optimality"):
        xr.testing.assert_identical(part[name], grid[name].where(finished))
    out = hm.summary(part)
    assert int(out.seeds.sum()) == 14
    assert int(out.dropped.sum()) == 0


def test_an_interrupt_before_any_result_is_passed_on(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate()


def test_a_model_with_lambdas_runs_on_several_workers():
    model = hm.Model(
        activation=lambda x: np.tanh(2 * x),
        projection="gaussian",
        teacher=hm.teachers.Custom(lambda nu: 1 / (1 + np.exp(-3 * nu))),
        loss=hm.losses.Custom(
            lambda m: np.logaddexp(m - 1, 1 - m),
            lambda m: np.tanh(m - 1),
            lambda m: 1 - np.tanh(m - 1) ** 2,
        ),
    )
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(model)
    assert_equal(simulate(model), simulate(model, workers=2))


SCRIPT = """
import numpy as np, hiddenmanifold as hm

{define}
{thread}
model = hm.Model(activation={activation}, projection="gaussian", teacher="sign", loss="square")
ds = hm.simulate(model, n_over_d=2.0, p_over_d=1.0, regularisation=0.1, d=10, seeds=3, n_test=20,
                 workers=2, progress={progress})
print(ds.generalisation_error.notnull().sum().item())
"""


def run_script(text, tmp_path, *, as_file):
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, str(path)] if as_file else [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


# a notebook has threads of its own, and so has a progress bar
THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
surroundings = pytest.mark.parametrize(
    ("thread", "progress"),
    [("", False), (THREAD, False), ("", True)],
    ids=["alone", "beside a thread", "with a progress bar"],
)


@pytest.mark.slow
@surroundings
def test_a_plain_script_without_a_main_guard_can_simulate_on_two_workers(
    tmp_path, thread, progress
):
    text = SCRIPT.format(define="", activation='"erf"', thread=thread, progress=progress)
    done = run_script(text, tmp_path, as_file=True)
    assert done.stdout.split()[-1:] == ["3"], done.stderr[-600:]


@pytest.mark.slow
@surroundings
def test_a_function_typed_into_a_session_can_be_simulated_on_two_workers(
    tmp_path, thread, progress
):
    # it pickles by its name, which another process need not know
    define = "def bent(x):\n    return np.tanh(x)\n"
    text = SCRIPT.format(define=define, activation="bent", thread=thread, progress=progress)
    done = run_script(text, tmp_path, as_file=False)
    assert done.stdout.split()[-1:] == ["3"], done.stderr[-600:]


def test_errors_of_the_package_survive_the_way_back_from_a_worker():
    error = hm.InvalidArgumentError("d", 31, "30, the number of rows of F")
    back = pickle.loads(pickle.dumps(error))
    assert str(back) == str(error)
    assert back.argument == "d"


def bent_and_broken():
    """A loss that can be predicted but not fitted."""
    return hm.losses.Custom(slab, slab_slope, np.ones_like, of="residual", kinks=(0.0,))


def slab(r):
    return np.abs(r) + 0.5 * r**2


def slab_slope(r):
    return np.sign(r) + r


def test_an_error_in_a_worker_process_arrives_as_itself():
    model = hm.Model(
        activation="erf", projection="gaussian", teacher="sign", loss=bent_and_broken()
    )
    for count in (1, 2):
        with pytest.raises(hm.InvalidArgumentError, match="^loss = .*piecewise linear"):
            hm.simulate(model, **POINT, **{**SMALL, "workers": count})


def test_threads_keep_the_linear_algebra_to_one_thread(monkeypatch):
    seen = []
    run = Trial.run

    def looking(self):
        pools = threadpool_info()
        seen.extend(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
        return run(self)

    monkeypatch.setattr(Trial, "run", looking)
    with threadpool_limits(2):
        simulate(workers=2)
    assert seen
    assert set(seen) == {1}


INTERRUPTED = """
import time, hiddenmanifold as hm
from hiddenmanifold.simulation.experiment import Trial

run = Trial.run

def slowly(self):
    if self.seed.spawn_key[0] > 3:
        print("asleep", flush=True)
        time.sleep(600)
    return run(self)

Trial.run = slowly
model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
ds = hm.simulate(model, n_over_d=2.0, p_over_d=1.0, regularisation=0.1, d=10, seeds=50, n_test=20,
                 workers=2, progress=True)
told = [ds.attrs[name] for name in ("interrupted", "done", "asked")]
print("kept", int(ds.generalisation_error.notnull().sum()), *told, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("everyone", [True, False], ids=["terminal", "this process only"])
def test_an_interrupt_ends_the_processes_at_once(tmp_path, everyone):
    path = tmp_path / "script.py"
    path.write_text(INTERRUPTED, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(path)],
        bufsize=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"},  # a bar though this is a pipe
    ) as process:
        told = b""
        while told.count(b"asleep") < 2:
            piece = process.stdout.read(4096)
            assert piece, process.stderr.read()
            told += piece
        time.sleep(1.0)  # until what was done before has arrived
        (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)  # the sleepers would take ten minutes
        finally:
            process.kill()
    assert out.endswith(b"kept 4 1 4 50\n")
    assert err == b""


# ---------------------------------------------------------------- draws without a minimum


ONE_SIDED = {
    name: hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=hm.teachers.Sign(threshold=1.5),
        loss=name,
        intercept=True,
    )
    for name in ("logistic", "square", "hinge", "squared_hinge")
}


@pytest.mark.parametrize("name", ONE_SIDED)
def test_a_seed_of_one_class_is_fitted_or_dropped_and_never_ends_the_others(name):
    ds = simulate(ONE_SIDED[name], n_over_d=1.0, p_over_n=1.0, seeds=20)
    drawn = simulate(ONE_SIDED["square"], n_over_d=1.0, p_over_n=1.0, seeds=20)
    alone = (drawn.q_w == 0).values
    assert 0 < alone.sum() < 20
    out = hm.summary(ds)
    if name == "logistic":
        assert np.array_equal(np.isinf(ds.optimality), alone)
        assert np.array_equal(ds.generalisation_error.isnull(), alone)
        assert (int(out.seeds), int(out.dropped)) == (20 - alone.sum(), alone.sum())
    else:
        assert float(ds.optimality.max()) <= ACCEPTED
        assert np.array_equal(ds.q_w == 0, alone)
        assert (int(out.seeds), int(out.dropped)) == (20, 0)


def test_a_summary_of_draws_without_any_minimum_counts_them():
    model = hm.Model(
        activation="erf",
        projection="gaussian",
        teacher=hm.teachers.Sign(threshold=20.0),
        loss="logistic",
        intercept=True,
    )
    out = hm.summary(simulate(model))
    assert (int(out.seeds), int(out.dropped)) == (0, 3)
    assert np.isnan(out.generalisation_error)


# ---------------------------------------------------------------- small print


def test_a_prediction_of_exactly_zero_counts_alike_in_training_and_test():
    # one feature ±1 and two samples: often the labels cancel, and the prediction is zero
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    ds = simulate(model, d=4, n_over_d=0.5, p_over_n=0.5, seeds=100)
    silent = ds.isel(seed=np.flatnonzero(ds.q_w == 0))
    assert silent.seed.size > 20
    # whichever way it counts, half of the labels are wrong
    for error in (silent.training_error, silent.generalisation_error):
        assert abs(float(error.mean()) - 0.5) < 0.2


def test_a_single_test_sample_has_no_standard_error():
    assert np.isnan(simulate(n_test=1).generalisation_error_test_stderr).all()


@pytest.mark.slow
def test_no_regularisation_is_simulated_for_the_square_loss_and_is_the_limit():
    ds = simulate(RIDGE, regularisation=[0.0, 1e-9])
    zero, small = (ds.isel(regularisation=k).drop_vars("regularisation") for k in range(2))
    assert_equal(zero, small, rtol=1e-5, atol=1e-8)
    out = hm.compare(RIDGE, **{**POINT, "regularisation": 0.0}, d=100, seeds=20, workers=1)
    assert abs(float(out.generalisation_error_z)) < 5


def test_every_number_of_a_summary_says_what_it_is(grid):
    out = hm.summary(grid)
    assert not [name for name, values in out.data_vars.items() if "long_name" not in values.attrs]
    assert "mean" in out.q_w_stderr.attrs["long_name"]
    assert not [name for name in out.data_vars if "test_stderr" in name]


@pytest.mark.slow
def test_compare_has_the_intercept_where_it_is_free():
    model = ONE_SIDED["squared_hinge"]
    out = hm.compare(model, **{**POINT, "n_over_d": 5.0}, d=60, seeds=20, workers=1)
    assert abs(float(out.intercept_z)) < 5
    assert float(out.intercept_theory) > 0.3
    assert "intercept_z" not in hm.compare(LOGISTIC, **POINT, **SMALL)


@pytest.mark.slow
def test_compare_keeps_the_simulation_where_the_theory_fails(monkeypatch):
    def failing(*arguments):
        theory = predicted(*arguments)
        theory["status"][..., 0] = Status.MAX_ITERATIONS
        for name in set(COMPARED) & set(theory):
            theory[name][..., 0] = np.nan
        return theory

    monkeypatch.setattr(compare, "predicted", failing)
    point = {**POINT, "regularisation": [0.1, 1.0]}
    out = hm.compare(LOGISTIC, **point, **SMALL)
    assert np.isfinite(out.q_w).all()
    for suffix in ("theory", "z"):
        assert np.isfinite(out[f"q_w_{suffix}"]).values.tolist() == [False, True]
    assert out.theory_status.values.tolist() == [Status.MAX_ITERATIONS, Status.CONVERGED]
    with pytest.raises(hm.ConvergenceError) as caught:
        hm.compare(LOGISTIC, **point, **SMALL, on_failure="raise")
    xr.testing.assert_identical(caught.value.partial, out)
    with pytest.raises(hm.InvalidArgumentError, match="^on_failure = 'never'"):
        hm.compare(LOGISTIC, **point, **SMALL, on_failure="never")


# ---------------------------------------------------------------- memory


MEMORY = {
    "logistic, tall": ("gaussian", "logistic", 0.01, (800, 400, 200)),
    "logistic, wide": ("gaussian", "logistic", 1e-6, (400, 800, 200)),
    "square, tall": ("gaussian", "square", 0.01, (800, 400, 200)),
    "square, decomposed": ("gaussian", "square", 1e-15, (300, 700, 20)),
    "hinge": ("gaussian", "hinge", 0.01, (300, 900, 200)),
    "haar": ("orthogonal", "logistic", 0.1, (50, 600, 900)),
    "hadamard": ("hadamard", "logistic", 0.1, (50, 600, 900)),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_of_a_trial_is_estimated(name):
    projection, loss, lam, (n, p, d) = MEMORY[name]
    teacher = hm.teachers.Sign(noise=0.5)
    model = hm.Model(activation="erf", projection=projection, teacher=teacher, loss=loss)
    sizes = Sizes(n, p, d)
    trial = Trial(model, sizes, (lam,), np.random.SeedSequence(0), 50, equivalent=False)
    tracemalloc.start()
    trial.run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.9 * peak < trial.bytes < 4 * peak


def test_memory_counts_the_fallback_of_tall_hinge_fits_and_every_worker(monkeypatch):
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="hinge")

    def trial(model, n, p, d):
        sizes, seed = Sizes(n, p, d), np.random.SeedSequence(0)
        return Trial(model, sizes, (0.1,), seed, n_test=100, equivalent=False)

    assert trial(model, 2000, 50, 50).bytes > 3 * 8 * 2000**2
    assert trial(model, 100_000, 50, 50).bytes < 8 * 100_000**2 / 100
    monkeypatch.setattr(experiment, "MEMORY_LIMIT", 2.5 * trial(LOGISTIC, 40, 30, 20).bytes)
    simulate(workers=2)
    with pytest.raises(hm.InvalidArgumentError, match="on 3 workers would need"):
        simulate(workers=3)


# ---------------------------------------------------------------- bad arguments


def test_a_latent_dimension_that_leaves_no_sample_or_feature_is_refused():
    with pytest.raises(hm.InvalidArgumentError, match="^d = 3 is too small: .*n rounds to 0"):
        simulate(d=3, n_over_d=0.1, p_over_n=10.0)
    with pytest.raises(hm.InvalidArgumentError, match="^d = 3 is too small: .*p rounds to 0"):
        simulate(d=3, n_over_d=2.0, p_over_n=0.01)


def test_data_too_large_for_memory_are_refused_in_gigabytes():
    with pytest.raises(
        hm.InvalidArgumentError, match=r"^d = 100000 is too large: n = 200000.*\d GB"
    ):
        simulate(d=100_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 0}, "^seeds = 0 "),
        ({"seeds": 2.5}, "^seeds = 2.5 "),
        ({"n_test": 0}, "^n_test = 0 "),
        ({"n_test": -4}, "^n_test = -4 "),
        ({"d": 2.5}, "^d = 2.5 "),
        ({"d": 20.0}, "^d = 20.0 "),
        ({"d": 0}, "^d = 0 "),
        ({"d": "big"}, "^d = 'big' "),
        ({"data": "x"}, "^data = 'x' .*'original' or 'equivalent'"),
        ({"regularisation": 0.0}, "^regularisation = 0.0 .*only the square loss.*1e-8"),
        ({"regularisation": np.inf}, "^regularisation = inf "),
        ({"regularisation": "optimal"}, "^regularisation = 'optimal' "),
        ({"n_over_d": np.inf}, "^n_over_d = inf "),
        ({"n_over_d": 1e308, "p_over_n": 1.0}, "^ratios give n/p = 1, d/p = .*less extreme"),
        ({"data": np.array([1, 2])}, "^data = array"),
        ({"executor": "dask"}, "^executor = 'dask' .*Executor"),
        ({"regularisation": [0.1, -1.0]}, "^regularisation = -1.0 "),
        ({"n_over_d": np.nan}, "^n_over_d = nan "),
        ({"n_over_p": 2.0}, "^ratios .*exactly two"),
        ({"n_over_d": None}, "^ratios .*exactly two"),
        ({"n_over_d": None, "n_over_p": 2.0}, "^ratios .*the same thing twice"),
        ({"workers": 0}, "^workers = 0 "),
        ({"workers": -1}, "^workers = -1 "),
        ({"seed": -1}, "^seed = -1 "),
        ({"seed": 1.5}, "^seed = 1.5 "),
        ({"n_over_q": 2.0}, "n_over_q"),
        ({"n_seeds": 7}, "n_seeds"),
    ],
    ids=repr,
)
def test_bad_arguments_are_refused_by_name(options, message):
    with pytest.raises((hm.InvalidArgumentError, TypeError)) as caught:
        simulate(**options)
    assert caught.match(message)


def test_a_misspelt_option_of_compare_is_refused_by_name():
    with pytest.raises((hm.InvalidArgumentError, TypeError), match="sedes"):
        hm.compare(LOGISTIC, **POINT, **SMALL, sedes=4)


def test_something_other_than_a_model_is_refused():
    with pytest.raises(hm.InvalidArgumentError, match="^model = 'logistic' "):
        simulate("logistic")


@pytest.mark.parametrize("name", ["seed", "n", "p", "d"])
def test_a_dimension_named_like_the_results_own_is_refused(name):
    ratio = xr.DataArray([2.0, 3.0], dims=name)
    with pytest.raises(hm.InvalidArgumentError, match=f"^n_over_d has a dimension '{name}'"):
        simulate(n_over_d=ratio)
