"""A figure shows the numbers of its dataset, all of them, and nothing else."""

import sys

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from hiddenmanifold import plotting
from hiddenmanifold.plotting import curves
from hiddenmanifold.plotting.style import COLOURS, mathematical
from hiddenmanifold.plotting.words import caption
from hiddenmanifold.results.ingredients import model_attributes

MODEL = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
RATIO = [0.5, 0.8, 1.1, 1.4, 1.7, 2.0]  # enough for a line
LAMS = [0.01, 1.0]


@pytest.fixture(scope="module")
def prediction():
    return hm.predict(MODEL, n_over_d=3.0, p_over_n=RATIO, regularisation=LAMS)


@pytest.fixture(scope="module")
def comparison():
    sizes = {"d": 20, "seeds": 4, "n_test": 50, "workers": 1}
    return hm.compare(MODEL, n_over_d=3.0, p_over_n=RATIO, regularisation=LAMS, **sizes)


def lines_of(axis):
    """Lines of an axis, without markers and without what error bars are made of."""
    return [line for line in axis.lines if line.get_linestyle() == "-"]


def grid(values, **coordinates):
    """A dataset with one quantity."""
    return xr.Dataset(
        {"generalisation_error": (tuple(coordinates), np.asarray(values))}, coordinates
    )


def test_predictions_are_lines_through_every_point(prediction):
    top, bottom = plotting.plot(prediction).axes
    for axis, name in ((top, "generalisation_error"), (bottom, "training_loss")):
        assert len(lines_of(axis)) == len(LAMS)
        for k, line in enumerate(lines_of(axis)):
            np.testing.assert_array_equal(line.get_xdata(), RATIO)
            np.testing.assert_array_equal(line.get_ydata(), prediction[name].values[:, k])
            assert line.get_color() == COLOURS[k]
    assert bottom.get_xlabel() == "features per sample, $p/n$"
    assert "varepsilon_g" in top.get_ylabel()
    assert top.get_title(loc="left") == "$n/d = 3$"
    words = "sign activation · gaussian projection · sign teacher · logistic loss"
    assert top.figure.get_suptitle() == words
    texts = [text.get_text() for text in top.get_legend().get_texts()]
    assert texts == [r"$\lambda = 0.01$", r"$\lambda = 1$"]


def test_a_single_curve_needs_no_legend(prediction):
    figure = plotting.plot(prediction.isel(regularisation=0), y="training_loss")
    (axis,) = figure.axes
    assert axis.get_legend() is None
    assert axis.get_title(loc="left") == r"$n/d = 3$, $\lambda = 0.01$"


def test_points_come_in_the_order_of_the_axis():
    ratio = np.array([1.0, 3.0, 2.0, 6.0, 5.0, 4.0])
    (axis,) = plotting.plot(grid(ratio / 10, p_over_n=ratio)).axes
    (line,) = lines_of(axis)
    np.testing.assert_array_equal(line.get_xydata(), [[k, k / 10] for k in range(1, 7)])


def test_a_few_points_are_not_joined():
    (axis,) = plotting.plot(grid([0.1, 0.3, 0.2], regularisation=[1e-3, 1.0, 0.1])).axes
    (points,) = axis.lines
    assert (points.get_linestyle(), points.get_marker()) == ("None", "s")
    np.testing.assert_array_equal(points.get_xydata(), [[1e-3, 0.1], [0.1, 0.2], [1, 0.3]])


@pytest.mark.slow
def test_simulations_are_points_with_their_standard_errors(comparison):
    figure = plotting.plot(comparison, y="generalisation_error")
    (axis,) = figure.axes
    assert len(axis.containers) == len(LAMS)
    for k, container in enumerate(axis.containers):
        at = comparison.isel(regularisation=k)
        mean, error = at.generalisation_error.values, at.generalisation_error_stderr.values
        np.testing.assert_array_equal(container.lines[0].get_ydata(), mean)
        ends = np.array([segment[:, 1] for segment in container.lines[2][0].get_segments()])
        np.testing.assert_allclose(ends, np.array([mean - error, mean + error]).T)
        theory = lines_of(axis)[k]
        np.testing.assert_array_equal(theory.get_ydata(), at.generalisation_error_theory.values)
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts[-2:] == ["theory", "simulation, mean ± standard error"]
    assert "$d = 20$" in axis.get_title(loc="left")


def test_a_finer_theory_takes_the_place_of_the_lines(comparison):
    fine = hm.predict(MODEL, n_over_d=3.0, p_over_n=np.linspace(0.5, 2, 9), regularisation=LAMS)
    (axis,) = plotting.plot(comparison, y="training_loss", theory=fine).axes
    assert [len(line.get_xdata()) for line in lines_of(axis)] == [9, 9]
    np.testing.assert_array_equal(lines_of(axis)[1].get_ydata(), fine.training_loss.values[:, 1])
    assert len(axis.containers) == 2


def test_raw_simulations_are_drawn_as_their_means():
    sizes = {"d": 20, "seeds": 3, "n_test": 50, "workers": 1}
    ds = hm.simulate(MODEL, n_over_d=3.0, p_over_n=[0.5, 1.0], regularisation=LAMS, **sizes)
    axis = plotting.plot(ds, x="p_over_n").axes[0]
    assert not lines_of(axis)
    for k, container in enumerate(axis.containers):
        mean = ds.generalisation_error.isel(regularisation=k).mean("seed")
        np.testing.assert_array_equal(container.lines[0].get_ydata(), mean)
    assert {line.get_marker() for line in axis.get_legend().get_lines()} == {"o"}


def test_axes_are_logarithmic_where_that_suits():
    lam = np.geomspace(1e-4, 1e2, 7)
    (axis,) = plotting.plot(grid(lam**2, regularisation=lam)).axes
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    (axis,) = plotting.plot(grid(np.linspace(0.1, 0.5, 5), p_over_n=np.linspace(0.05, 3, 5))).axes
    assert (axis.get_xscale(), axis.get_yscale()) == ("linear", "linear")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.geomspace(1e-4, 1, 9), True),
        ([0.0, *np.geomspace(1e-4, 1, 9), np.inf], True),
        ([1e-4, 1.0], True),
        ([1e-4, 1e-2, 1.0], True),
        (np.linspace(0.01, 3, 60), False),
        ([1.0, 2.0, 4.0], False),
        ([3.0], False),
    ],
)
def test_what_is_spaced_in_logarithms(values, expected):
    assert plotting.is_logarithmic(values) is expected


def test_a_failed_point_is_a_gap():
    values = [0.1, 0.2, np.nan, 0.3, 0.4, 0.5]
    (axis,) = plotting.plot(grid(values, p_over_n=np.arange(1.0, 7.0))).axes
    (line,) = lines_of(axis)
    np.testing.assert_array_equal(line.get_ydata(), values)


def triangles_of(axis):
    """What lies on the edges, by its marker."""
    return {line.get_marker(): line for line in axis.lines if line.get_marker() in tuple("<>v^")}


def explained(axis):
    """The legend, by marker."""
    lines, texts = axis.get_legend().get_lines(), axis.get_legend().get_texts()
    return {line.get_marker(): t.get_text() for line, t in zip(lines, texts, strict=True)}


def test_limits_are_triangles_on_the_edge():
    lam = [0.0, *np.geomspace(1e-3, 10.0, 6), np.inf]
    (axis,) = plotting.plot(grid(np.linspace(0.5, 0.4, 8), regularisation=lam)).axes
    np.testing.assert_array_equal(lines_of(axis)[0].get_xdata(), lam[1:-1])
    triangles = triangles_of(axis)
    assert set(triangles) == {"<", ">"}
    np.testing.assert_array_equal(triangles["<"].get_xydata(), [[0.0, 0.5]])
    np.testing.assert_array_equal(triangles[">"].get_xydata(), [[1.0, 0.4]])
    assert triangles["<"].get_transform() == axis.get_yaxis_transform()
    assert explained(axis) == {"<": r"$\lambda \to 0^+$", ">": r"$\lambda \to \infty$"}
    values = [1.0, np.inf, 1e-4, 0.0]
    (axis,) = plotting.plot(grid(values, p_over_n=[1.0, 2.0, 3.0, 4.0])).axes
    found = {
        line.get_marker(): line.get_xdata() for line in axis.lines if line.get_marker() in "v^"
    }
    np.testing.assert_array_equal(found["^"], [2.0])
    np.testing.assert_array_equal(found["v"], [4.0])
    assert explained(axis) == {"v": "0", "^": "infinite"}


def test_a_limit_of_both_axes_is_in_the_corner():
    ds = grid([1.0, 1e-1, 1e-2, 0.0], p_over_n=[1.0, 10.0, 100.0, np.inf])
    (axis,) = plotting.plot(ds).axes
    (corner,) = triangles_of(axis).values()
    assert corner.get_transform() == axis.transAxes
    np.testing.assert_array_equal(corner.get_xydata(), [[1.0, 0.0]])
    assert set(explained(axis).values()) == {r"$p/n \to \infty$", "0"}


def test_no_axis_runs_over_dozens_of_decades():
    values = [1.0, 0.1, 1e-3, 1e-9, 1e-28, 1e-72, 0.0]
    (axis,) = plotting.plot(grid(values, p_over_n=np.arange(1.0, 8.0))).axes
    low, high = axis.get_ylim()
    assert 1e-9 < 10.0**-curves.DECADES < low < 1e-3
    assert 1.0 < high < 10.0
    np.testing.assert_array_equal(lines_of(axis)[0].get_ydata()[:6], values[:6])  # falls off it
    np.testing.assert_array_equal(triangles_of(axis)["v"].get_xdata(), [4.0, 5.0, 6.0, 7.0])
    assert explained(axis) == {"v": "0 or below the axis"}


def test_many_triangles_are_thinned():
    values = np.concatenate([np.geomspace(1, 1e-3, 10), np.zeros(90)])
    (axis,) = plotting.plot(grid(values, p_over_n=np.arange(1.0, 101.0))).axes
    triangles = triangles_of(axis)["v"]
    assert len(triangles.get_xdata()) == 90
    assert triangles.get_markevery() == 6


def test_a_limit_is_explained_once(prediction):
    lam = [0.0, *np.geomspace(1e-3, 10.0, 6)]
    ds = grid(np.linspace(0.5, 0.4, 7), regularisation=lam)
    ds["training_loss"] = ds.generalisation_error
    top, bottom = plotting.plot(ds).axes
    assert explained(top) == {"<": r"$\lambda \to 0^+$"}
    assert bottom.get_legend() is None


def test_many_curves_have_a_scale_of_colours():
    lam = np.array([0.0, *np.geomspace(1e-4, 1, 9)])
    ds = grid(np.ones((20, 10)), p_over_n=np.linspace(1, 2, 20), regularisation=lam)
    figure = plotting.plot(ds)
    axis, bar = figure.axes
    assert bar.get_ylabel() == r"regularisation, $\lambda$"
    assert bar.get_yscale() == "log"
    assert len({line.get_color() for line in lines_of(axis)}) == 10
    (entry,) = axis.get_legend().get_lines()  # zero has no place on the bar
    assert entry.get_label() == r"$\lambda \to 0^+$"
    assert entry.get_color() == lines_of(axis)[0].get_color()


def test_many_curves_with_names_are_told_apart_by_them():
    names = [f"run {i}" for i in range(8)]
    ratio = xr.DataArray(np.linspace(0.5, 2.0, 8), dims="run", coords={"run": names})
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    ds = hm.predict(model, n_over_d=2.0, p_over_n=ratio, regularisation=[0.1, 0.2, 0.4])
    axis = plotting.plot(ds, x="regularisation", y="q_w").axes[0]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == names
    assert len({tuple(line.get_color()) for line in axis.lines}) == 8
    with pytest.raises(hm.InvalidArgumentError, match="x = 'run' .* a dimension of numbers"):
        plotting.plot(ds)


def test_the_law_of_margins_is_drawn_along_them():
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
    law = hm.margins(model, n_over_d=2.0, p_over_n=1.0, regularisation=0.1, at=[-1.0, 0.0, 1.0])
    upper, lower = plotting.plot(law).axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), law.test_cdf)
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), law.train_cdf)
    assert lower.get_xlabel() == "margin, $y f$"
    with pytest.raises(hm.InvalidArgumentError, match="y = 'status' .* one of test_cdf, train_cdf"):
        plotting.plot(law, y="status")


def test_the_horizontal_axis_can_be_chosen():
    ds = grid(np.ones((3, 2)), n_over_d=[1.0, 2.0, 3.0], p_over_n=[0.1, 0.2])
    assert plotting.axes_of(ds.sizes) == ("n_over_d", "p_over_n")
    assert len(plotting.plot(ds).axes[0].lines) == 2
    (axis,) = plotting.plot(ds, x="p_over_n").axes
    assert len(axis.lines) == 3
    assert axis.get_xlabel() == "features per sample, $p/n$"


def test_dimensions_of_one_value_do_not_count(prediction):
    ds = prediction.isel(regularisation=[1])
    (line,) = lines_of(plotting.plot(ds).axes[0])
    np.testing.assert_array_equal(line.get_ydata(), ds.generalisation_error.values[:, 0])


def test_optimal_regularisation_and_thresholds_have_their_panels():
    ds = grid([0.2, 0.1], p_over_n=[1.0, 2.0])
    ds["optimal_regularisation"] = ("p_over_n", [1.0, 0.5])
    ds["training_loss"] = ("p_over_n", [1.0, 0.5])
    assert "lambda" in plotting.plot(ds).axes[1].get_ylabel()
    found = hm.separability_threshold(MODEL, n_over_d=[1.0, 2.0, 3.0])
    (axis,) = plotting.plot(found).axes
    assert axis.get_ylabel() == "threshold, $p/n$"
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), found.p_over_n.values)


@pytest.mark.slow
def test_what_was_sought_is_said():
    peak = hm.interpolation_peak(MODEL, n_over_d=[1.0, 3.0], regularisation=1e-2)
    labels = [axis.get_ylabel() for axis in plotting.plot(peak).axes]
    assert labels == ["peak, $p/n$", r"peak generalisation error, $\varepsilon_g$"]
    bayes = hm.bayes_optimal(MODEL, n_over_d=3.0, p_over_n=[1.0, 2.0])
    figure = plotting.plot(bayes)
    assert figure.axes[0].get_ylabel().startswith("Bayes-optimal generalisation error")
    assert figure.get_suptitle() == "sign activation · gaussian projection · sign teacher"
    slopes = hm.sensitivity(MODEL, n_over_d=3.0, p_over_n=[1.0, 2.0], regularisation=1.0)
    assert len(plotting.plot(slopes).axes) == 3


def test_sizes_are_named_where_there_are_no_ratios():
    sizes = {"n": 300, "p": [100, 200, 300], "d": 100}
    top, bottom = plotting.plot(hm.predict(MODEL, **sizes, regularisation=0.1)).axes
    assert top.get_title(loc="left") == r"$\lambda = 0.1$, $n = 300$, $d = 100$"
    assert bottom.get_xlabel() == "number of features, $p$"


def test_distributions_of_margins_have_linear_axes():
    at = np.linspace(-3, 3, 7)
    ds = hm.margins(MODEL, n_over_d=3.0, p_over_n=1.0, regularisation=0.1, at=at)
    assert (
        ds.train_cdf.min() < 1e-4 * ds.train_cdf.max()
    )  # elsewhere a reason for a logarithmic one
    for axis, name in zip(plotting.plot(ds).axes, ("test_cdf", "train_cdf"), strict=True):
        (line,) = lines_of(axis)
        np.testing.assert_array_equal(line.get_ydata(), ds[name].values)
        assert axis.get_yscale() == "linear"


def test_of_samples_needed_their_number_is_drawn():
    coordinates = {"p_over_d": RATIO, "target_error": [0.2, 0.1]}
    number = np.arange(12.0).reshape(6, 2) + 1
    role = {"role": "answer"}
    ds = grid(np.ones((6, 2)), **coordinates).assign(n_over_d=(tuple(coordinates), number, role))
    (axis,) = plotting.plot(ds.assign_attrs(kind="samples_needed")).axes
    np.testing.assert_array_equal(lines_of(axis)[1].get_ydata(), number[:, 1])
    assert axis.get_ylabel() == "needed, $n/d$"
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts == [r"$\mathrm{target\ error} = 0.2$", r"$\mathrm{target\ error} = 0.1$"]


def test_observables_that_were_asked_for_are_drawn():
    asked = {"observables": ["auc", "test_loss"]}
    ds = hm.predict(MODEL, n_over_d=3.0, p_over_n=RATIO, regularisation=0.1, **asked)
    labels = [axis.get_ylabel() for axis in plotting.plot(ds).axes]
    assert labels[2:] == ["test loss", "area under the ROC curve"]


def test_many_short_entries_of_a_legend_stand_in_two_columns():
    lams = [0.0, *np.geomspace(1e-3, 10.0, 6), np.inf]
    ds = grid(np.ones((3, 8)), p_over_n=[0.5, 1.0, 2.0], regularisation=lams)
    legend = plotting.plot(ds, x="regularisation").axes[0].get_legend()
    assert len(legend.get_texts()) == 5
    assert legend._ncols == 2


def test_what_cannot_be_drawn_is_refused(prediction):
    three = grid(np.ones((2, 2, 2)), n_over_d=[1, 2], p_over_n=[1, 2], regularisation=[1, 2])
    for ds, options, complaint in (
        (prediction.isel(p_over_n=0, regularisation=0), {}, "a single point"),
        (three, {}, "at most two dimensions"),
        (prediction, {"x": "n_over_d"}, "p_over_n or regularisation"),
        (prediction, {"y": "error"}, "one of generalisation_error"),
        ("curve", {}, "what predict, simulate and others return"),
    ):
        with pytest.raises(hm.InvalidArgumentError, match=complaint):
            plotting.plot(ds, **options)


def test_a_finer_theory_need_not_have_every_quantity(comparison):
    fine = hm.predict(MODEL, n_over_d=3.0, p_over_n=np.linspace(0.5, 2, 9), regularisation=LAMS)
    (axis,) = plotting.plot(comparison, y="generalisation_error_z", theory=fine).axes
    expected = comparison.generalisation_error_z.values[:, 0]
    np.testing.assert_array_equal(lines_of(axis)[0].get_ydata(), expected)


@pytest.mark.slow
def test_plot_is_a_public_function_whose_figure_a_notebook_shows(prediction):
    assert hm.plot is plotting.plot
    assert hm.plot(prediction)._repr_png_().startswith(b"\x89PNG")


def test_a_dataset_is_left_as_it_was(prediction):
    before = prediction.copy(deep=True)
    plotting.plot(prediction)
    xr.testing.assert_identical(prediction, before)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            hm.Model(
                activation=np.tanh,
                projection="hadamard",
                teacher=hm.teachers.Sign(flip=0.1),
                loss="squared_hinge",
                intercept=True,
            ),
            "custom(function=<ufunc 'tanh'>, kinks=()) activation · hadamard projection · "
            "sign(flip=0.1) teacher · squared_hinge loss · intercept",
        ),
        (
            hm.Model(
                features=hm.features.Deep(
                    [hm.features.Layer("tanh", width=2.0), hm.features.Layer("erf")]
                ),
                teacher=hm.teachers.Custom(
                    lambda field: np.where(field > 0, 0.9, 0.1), kinks=(0.0,)
                ),
                loss=hm.losses.SmoothedHinge(delta=0.5),
            ),
            "deep(…) features · custom(…) teacher · smoothed_hinge(delta=0.5) loss",
        ),
    ],
    ids=["parameters", "long"],
)
def test_a_model_is_told_in_few_words(model, words):
    assert " ".join(caption(model_attributes(model)).split()) == words


def test_a_dataset_that_does_not_know_its_model_is_drawn_without_it():
    figure = plotting.plot(grid([1.0, 2.0], p_over_n=[1.0, 2.0]))
    assert not figure.get_suptitle()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_the_same_figure_is_the_same_file_that_says_what_it_shows(prediction, tmp_path, suffix):
    paths = [tmp_path / f"{k}.{suffix}" for k in range(2)]
    for workers, path in enumerate(paths, 1):
        plotting.save(plotting.plot(prediction), path, {**prediction.attrs, "workers": workers})
    first, second = (path.read_bytes() for path in paths)
    assert len(first) > 1000
    assert first == second
    assert b"projection=Gaussian" in first.replace(b"\\", b"")  # a PDF hides its brackets
    assert not any(date in first for date in (b"CreationDate", b"dc:date"))  # equal for a second


def test_other_formats_are_refused(prediction, tmp_path):
    with pytest.raises(hm.InvalidArgumentError, match=r"\.png, \.pdf, \.svg"):
        plotting.save(plotting.plot(prediction), tmp_path / "figure.jpg")


def test_without_matplotlib_the_extra_is_named(prediction, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(hm.MissingExtraError, match=r"hiddenmanifold\[plot\]"):
        plotting.plot(prediction)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (0.005, "0.005"),
        (1e-4, "10^{-4}"),
        (2.5e-7, r"2.5\times10^{-7}"),
        (np.inf, r"\infty"),
    ],
)
def test_numbers_are_written_as_in_formulas(value, text):
    assert mathematical(value) == text


@pytest.mark.slow
def test_points_without_neighbours_are_marked():
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    ratio = [0.9, 1.0, 1.1, 1.2, 1.3, 1.4]
    ds = hm.predict(model, n_over_d=3.0, p_over_n=ratio, regularisation=0, on_failure="keep")
    lines = plotting.plot(ds).axes[0].get_lines()
    marked = [line for line in lines if line.get_marker() == "." and len(line.get_xdata())]
    assert [x for line in marked for x in line.get_xdata()] == [0.9]  # 1 is the threshold


def plane(values, **coordinates):
    """A dataset with one quantity along two dimensions."""
    return grid(np.asarray(values, dtype=float), **coordinates)


def test_a_fine_grid_is_a_map_of_its_values():
    n, p = np.arange(1.0, 17.0), np.geomspace(1e-2, 1e2, 17)
    values = np.add.outer(n, np.log(p))
    values[3, 5] = np.nan
    ds = plane(values, n_over_d=n, p_over_n=p)
    figure = plotting.plot(ds, x="n_over_d")
    axis, bar = figure.axes
    (mesh,) = axis.collections
    drawn = mesh.get_array()
    np.testing.assert_array_equal(drawn.mask, np.isnan(values.T))
    np.testing.assert_array_equal(drawn.compressed(), values.T[np.isfinite(values.T)])
    assert (axis.get_xscale(), axis.get_yscale()) == ("linear", "log")
    edges = mesh.get_coordinates()
    np.testing.assert_allclose(edges[0, 1:-1, 0], (n[1:] + n[:-1]) / 2)
    np.testing.assert_allclose(edges[1:-1, 0, 1], np.sqrt(p[1:] * p[:-1]))
    assert axis.get_xlabel().startswith("samples per") and axis.get_ylabel().startswith("features")
    assert "varepsilon_g" in bar.get_ylabel()
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["no finite value"]


def test_curves_or_a_map_are_drawn_as_asked():
    n = np.arange(1.0, 17.0)
    fine = plane(np.ones((16, 16)), n_over_d=n, p_over_n=n)
    assert len(lines_of(plotting.plot(fine, kind="curves").axes[0])) == 16
    coarse = plane(np.arange(4.0).reshape(2, 2), n_over_d=[1.0, 2.0], p_over_n=[1.0, 2.0])
    assert not plotting.plot(coarse).axes[0].collections
    (mesh,) = plotting.plot(coarse, kind="map").axes[0].collections
    np.testing.assert_array_equal(mesh.get_array(), [[0, 2], [1, 3]])
    with pytest.raises(hm.InvalidArgumentError, match="limits along p_over_n, .* kind='curves'"):
        plotting.plot(coarse.assign_coords(p_over_n=[1.0, np.inf]), kind="map")
    with pytest.raises(hm.InvalidArgumentError, match="n_over_d alone, and a map needs two"):
        plotting.plot(coarse.isel(p_over_n=0), kind="map")
    with pytest.raises(hm.InvalidArgumentError, match="kind = 'pie'"):
        plotting.plot(fine, kind="pie")


def test_lines_lie_in_the_plane_of_a_map():
    n = np.arange(1.0, 17.0)
    fine = plane(np.ones((16, 16)), n_over_d=n, p_over_n=n)
    threshold = xr.Dataset({"p_over_n": ("n_over_d", n / 2)}, {"n_over_d": n})
    line = plotting.plot({"": fine, "here": threshold}, x="p_over_n").axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xydata(), np.transpose([n / 2, n]))
    assert line.get_label() == "here"
    with pytest.raises(hm.InvalidArgumentError, match="after the first is no line in the plane"):
        plotting.plot([fine, fine.isel(n_over_d=0)])


@pytest.mark.slow
def test_several_datasets_are_a_colour_each_named_by_what_differs(prediction):
    one, two = prediction.isel(regularisation=0), prediction.isel(regularisation=1)
    axis = plotting.plot([one, two], y="generalisation_error").axes[0]
    for k, (line, ds) in enumerate(zip(lines_of(axis), (one, two), strict=True)):
        np.testing.assert_array_equal(line.get_ydata(), ds.generalisation_error)
        assert line.get_color() == COLOURS[k]
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts == [r"$\lambda = 0.01$", r"$\lambda = 1$"]
    assert axis.get_title(loc="left") == "$n/d = 3$"
    square = one.assign_attrs(loss="square")
    axis = plotting.plot([one, square]).axes[0]
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts == ["logistic loss", "square loss"]
    words = "sign activation · gaussian projection · sign teacher"
    assert axis.figure.get_suptitle() == words
    axis = plotting.plot({"before": one, "after": two}).axes[0]
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts == ["before", "after"]


@pytest.mark.slow
def test_theory_and_simulation_of_two_calls_share_a_figure(prediction, comparison):
    theory = prediction.isel(regularisation=0)
    sizes = {"d": 20, "seeds": 2, "n_test": 50, "workers": 1}
    given = {"n_over_d": 3.0, "p_over_n": [0.5, 1.1], "regularisation": 0.01}
    simulated = hm.simulate(MODEL, **given, **sizes)
    axis = plotting.plot({"limit": theory, "fits": simulated}, y="training_loss").axes[0]
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts == ["limit", "fits"]
    assert len(lines_of(axis)) == 1 and len(axis.containers) == 1
    both = comparison.isel(regularisation=0), comparison.isel(regularisation=1)
    axis = plotting.plot(both, y="training_loss").axes[0]
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts[-2:] == ["theory", "simulation, mean ± standard error"]


def test_datasets_that_cannot_share_an_axis_are_refused(prediction):
    one = prediction.isel(regularisation=0)
    along = grid(np.ones(3), n_over_d=[1.0, 2.0, 3.0])
    with pytest.raises(hm.InvalidArgumentError, match="number 2 varies along n_over_d, and the"):
        plotting.plot([one, along])
    with pytest.raises(hm.InvalidArgumentError, match="number 2 also varies along regularisation"):
        plotting.plot([one, prediction])
    with pytest.raises(hm.InvalidArgumentError, match="theory cannot be given beside several"):
        plotting.plot([one, one], theory=one)
    with pytest.raises(hm.InvalidArgumentError, match=r"dataset = \[\] is not allowed"):
        plotting.plot([])
    with pytest.raises(hm.InvalidArgumentError, match="y = 'auc' is not allowed"):
        plotting.plot([one, one], y="auc")


def test_an_array_alone_is_drawn_as_its_dataset(prediction):
    array = prediction.generalisation_error.isel(regularisation=0)
    (line,) = lines_of(plotting.plot(array).axes[0])
    np.testing.assert_array_equal(line.get_ydata(), array)
    assert len(lines_of(plotting.plot([array, array.rename(None)], y="values").axes[0])) == 1


@pytest.mark.slow
def test_parts_of_the_error_are_stacked():
    model = hm.Model(activation="erf", projection="gaussian", teacher="linear", loss="square")
    at = {"n_over_d": 1.0, "regularisation": 0.01, "workers": 1, "progress": False}
    ds = hm.bias_variance(model, p_over_n=[2.0, 0.5, 1.0], **at)
    (axis,) = plotting.plot(ds).axes
    top = axis.collections[-1].get_paths()[0].vertices
    for ratio, error in zip(ds.p_over_n.values, ds.mean_square_error.values, strict=True):
        assert top[np.isclose(top[:, 0], ratio), 1].max() == pytest.approx(error)
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts[-1] == "noise of new labels"
    (axis,) = plotting.plot(ds, y="bias").axes
    assert axis.get_ylabel() == "bias"
    for limit in ({"p_over_n": [1.0, np.inf]}, {"regularisation": [0.1, 1.0], "p_over_n": [1, 2]}):
        axes = plotting.plot(hm.bias_variance(model, **at | limit)).axes
        assert axes[0].get_ylabel().startswith("generalisation error")


@pytest.mark.slow
def test_pairs_of_models_are_curves_of_the_share():
    parts = {"activation": "erf", "projection": "gaussian", "teacher": "sign"}
    first, second = (hm.Model(**parts, loss=loss) for loss in ("square", "hinge"))
    at = {"n_over_d": 2.0, "regularisation": 0.1, "workers": 1, "progress": False}
    ds = hm.pair(first, second, p_over_n=np.geomspace(0.1, 1, 7), **at)
    figure = plotting.plot(ds)
    (axis,) = figure.axes
    assert len([line for line in axis.lines if len(line.get_xdata()) == 7]) == 3
    assert "second fit: hinge loss" in figure.get_suptitle()
    (axis,) = plotting.plot(ds, y="Q").axes
    assert len([line for line in axis.lines if len(line.get_xdata()) == 7]) == 2
    (axis,) = plotting.plot(ds, y="overlap").axes
    assert len([line for line in axis.lines if len(line.get_xdata()) == 7]) == 1


def test_a_theory_along_another_dimension_is_refused(comparison):
    other = hm.predict(MODEL, n_over_d=[1.0, 2.0], p_over_n=0.5, regularisation=LAMS)
    with pytest.raises(hm.InvalidArgumentError, match="varies along n_over_d, which the dataset"):
        hm.plot(comparison, theory=other)
