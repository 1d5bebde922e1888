"""Every figure, small: its points agree with its lines, and it is drawn as its caption says."""

from dataclasses import fields, replace
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import hiddenmanifold as hm
from hiddenmanifold import figures
from hiddenmanifold.figures.drawing import used_ratio
from hiddenmanifold.figures.figure_data import SMALLEST, Axis, Size, paper_model, simulated

SIZE = Size(d=64, seeds=16, n_test=500, seed=11)
CURVE = Axis(0.05, 3.0, 7)


def wide(low, high, count):
    return Axis(low, high, count, logarithmic=True)


# ratios of the lines, and of the points
RATIOS = {
    1: ({"p_over_n": CURVE}, {"p_over_n": (0.25, 1.5)}),
    2: ({"p_over_n": wide(0.05, 10.0, 7)}, {"p_over_n": (0.2, 2.0)}),
    3: (
        {"n_over_d": Axis(0.5, 6.0, 5), "p_over_n": Axis(0.1, 1.0, 6)},
        {"n_over_d": (1.0, 3.0), "p_over_n": (0.1, 0.8)},
    ),
    4: ({"n_over_d": Axis(0.5, 6.0, 4)}, {}),
    5: ({"p_over_n": CURVE}, {"p_over_n": (0.25, 2.0)}),
    6: ({"n_over_p": wide(0.05, 30.0, 7)}, {"n_over_p": (0.25, 1.5)}),
    7: (
        {"n_over_p": wide(0.05, 10.0, 5), "d_over_p": wide(0.02, 5.0, 6)},
        {"n_over_p": (0.4, 1.5), "d_over_p": (0.5, 1.5)},
    ),
}
SIMULATED = (1, 2, 3, 5, 6, 7)
# per panel: labels of both axes, predicted lines, clouds of simulated points with error bars
PANELS = {
    1: [("features per sample, $p/n$", "generalisation error, training loss", 2, 4)],
    2: [
        ("", r"generalisation error, $\epsilon_g$", 4, 4),
        ("features per sample, $p/n$", r"training loss, $\epsilon_t$", 2, 2),
    ],
    4: [("samples per latent dimension, $n/d$", r"position of the peak, $p/n=1/\alpha^*$", 4, 0)],
    5: [("features per sample, $p/n$", r"generalisation error, $\epsilon_g$", 4, 6)] * 2,
    6: [(r"samples per dimension, $\alpha=n/p$", r"generalisation error, $\epsilon_g$", 6, 6)],
}


PROJECTIONS = ("gaussian", "orthogonal", "hadamard", "dct")
MODELS = {
    1: [("sign", "gaussian", "sign", "logistic")],
    2: [("sign", "gaussian", "sign", loss) for loss in ("square", "logistic")],
    3: [("sign", "gaussian", "sign", "logistic")],
    4: [("sign", projection, "sign", "logistic") for projection in PROJECTIONS[:2]],
    5: [
        ("sign", projection, *task)
        for projection in PROJECTIONS
        for task in (("linear", "square"), ("sign", "logistic"))
    ],
    6: [("erf", "gaussian", "sign", "square")],
    7: [("erf", "gaussian", "sign", "square")],
}


@cache
def computed(number):
    recipe, (lines, points) = figures.MODULES[number], RATIOS[number]
    return recipe.compute(replace(recipe.FULL, lines=lines, points=points, size=SIZE))


@cache
def drawn(number):
    return figures.MODULES[number].draw(computed(number))


def test_there_is_a_module_per_figure_of_the_paper():
    assert figures.NUMBERS == (1, 2, 3, 4, 5, 6, 7)
    for number, recipe in figures.MODULES.items():
        assert recipe.__name__.endswith(f"figure_{number}")
        assert recipe.TITLE


@pytest.mark.parametrize("number", figures.NUMBERS)
def test_quick_differs_from_full_in_sizes_alone(number):
    quick, full = figures.MODULES[number].QUICK, figures.MODULES[number].FULL
    different = {f.name for f in fields(full) if getattr(full, f.name) != getattr(quick, f.name)}
    assert different == ({"lines"} if number == 4 else {"size"})
    if number in SIMULATED:
        assert (quick.size.d, quick.size.seeds) < (full.size.d, full.size.seeds)
        assert full.size.seeds == 30


def test_full_sizes_are_those_of_the_captions():
    full = {number: recipe.FULL for number, recipe in figures.MODULES.items()}
    assert (full[1].size.d, full[5].size.d) == (200, 256)
    assert full[1].at == {"n_over_d": 3.0, "regularisation": 1e-3}
    assert full[5].at == {"n_over_d": 2.0}
    assert full[6].at["d_over_p"] == 0.1
    assert {full[n].at["regularisation"] for n in (2, 3, 4)} == {1e-4}


@pytest.mark.slow
@pytest.mark.parametrize("number", figures.NUMBERS)
def test_models_are_those_of_the_captions(number):
    named = ";".join(ds.attrs["model"] for ds in computed(number).values()).split(";")
    order = ("activation", "projection", "teacher", "loss")
    expected = {repr(hm.Model(**dict(zip(order, names, strict=True)))) for names in MODELS[number]}
    assert {one.rpartition(": ")[2] for one in named} == expected


@pytest.mark.slow
@pytest.mark.parametrize("number", SIMULATED)
def test_points_lie_on_lines_within_their_errors(number):
    z = figures.scores(computed(number)).values
    assert z.size >= 4
    assert np.isfinite(z).all()
    assert np.abs(z).max() < 4
    assert np.sqrt(np.mean(z**2)) < 2


@pytest.mark.slow
@pytest.mark.parametrize("number", figures.NUMBERS)
def test_parts_are_the_ones_announced_and_converged(number):
    data = computed(number)
    assert tuple(data) == figures.MODULES[number].PARTS
    for ds in data.values():
        assert ds.attrs["hiddenmanifold_version"]
        assert "Model(" in ds.attrs["model"]
        for name in ("generalisation_error", "p_over_n"):
            assert name not in ds or ds[name].notnull().all()
        if "status" in ds:
            assert (ds.status == hm.Status.CONVERGED).all()
        if "dropped" in ds:
            assert (ds.dropped == 0).all()
            assert (ds.seeds == SIZE.seeds).all()


def test_points_of_figure_1_are_two_kinds_of_data():
    simulation = computed(1)["simulation"]
    assert list(simulation.data.values) == ["original", "equivalent"]
    first, second = simulation.generalisation_error.values
    assert (first != second).all()


def test_each_panel_of_figure_5_has_its_own_regularisation():
    theory = computed(5)["theory"]
    assert (theory.regularisation.sel(panel="ridge") == 1e-8).all()
    assert (theory.regularisation.sel(panel="logistic") == 1e-4).all()
    assert "task" not in theory.attrs  # regression in one panel, classification in the other
    texts = [[text.get_text() for text in axis.texts] for axis in drawn(5).axes]
    assert texts == [
        [r"$\lambda=10^{-8}$", r"optimal $\lambda$"],
        [r"$\lambda=10^{-4}$", r"optimal $\lambda$"],
    ]


def test_curves_are_those_of_predict():
    theory = computed(2)["theory"].generalisation_error.sel(loss="logistic")
    model = paper_model()
    expected = hm.predict(model, n_over_d=3.0, p_over_n=theory.p_over_n, regularisation=1e-4)
    np.testing.assert_allclose(theory.values, expected.generalisation_error.values, rtol=1e-9)


def test_optimal_points_are_simulated_at_the_optimum():
    panel = computed(5)["simulated_optimum"].sel(panel="logistic", projection="hadamard")
    model = paper_model(projection="orthogonal")
    best = hm.predict(model, n_over_d=2.0, p_over_n=panel.p_over_n, regularisation="optimal")
    expected = best.optimal_regularisation.values
    np.testing.assert_allclose(panel.regularisation.values, expected, rtol=1e-6)


def test_an_optimum_at_zero_is_simulated_at_the_smallest_regularisation():
    model = paper_model(teacher="linear", loss="square")
    place = {"n_over_d": 2.0, "p_over_n": [6.0]}
    assert hm.predict(model, regularisation="optimal", **place).optimal_regularisation == 0
    size = Size(d=10, seeds=2, n_test=10)
    best = {"regularisation": "optimal", **place}
    ds = simulated(model, ("training_loss",), size=size, **best)
    assert ds.regularisation.values == SMALLEST


def test_threshold_of_figure_3_is_exact_and_at_the_ridge():
    line = computed(3)["threshold"]
    model = paper_model()
    exact = hm.separability_threshold(model, n_over_d=line.n_over_d.values)
    np.testing.assert_allclose(line.p_over_n.values, exact.p_over_n, rtol=1e-9)
    below = hm.predict(
        model, n_over_d=line.n_over_d, p_over_n=0.8 * line.p_over_n, regularisation=1e-4
    )
    assert (line.generalisation_error > below.generalisation_error)[2:].all()


def test_figure_4_shows_what_its_caption_says():
    data = computed(4)
    gaussian, orthogonal = data["peak"].p_over_n.values
    assert (orthogonal < gaussian).all()
    assert (data["threshold"].p_over_n < 0.5).all()
    assert (data["threshold"].p_over_n < data["peak"].p_over_n).all()
    assert (np.diff(data["peak"].p_over_n.values) < 0).all()


@pytest.mark.parametrize("number", PANELS)
def test_panels_have_their_lines_points_and_labels(number):
    panels = [axis for axis in drawn(number).axes if axis.lines]
    assert len(panels) == len(PANELS[number])
    for axis, (x, y, lines, clouds) in zip(panels, PANELS[number], strict=True):
        assert (axis.get_xlabel(), axis.get_ylabel()) == (x, y)
        bars = [c for c in axis.containers if isinstance(c, ErrorbarContainer)]
        assert len(bars) == clouds
        assert all(bar.has_yerr for bar in bars)
        parts = {id(artist) for bar in bars for artist in (bar[0], *bar[1])}
        curves = [one for one in axis.lines if id(one) not in parts and len(one.get_xdata()) > 2]
        assert len(curves) == lines


def test_points_are_drawn_where_they_were_simulated():
    axis, simulation = drawn(1).axes[0], computed(1)["simulation"]
    dots = axis.containers[0][0]
    np.testing.assert_allclose(dots.get_xdata(), simulation.p / simulation.n)
    original = simulation.sel(data="original")
    np.testing.assert_allclose(dots.get_ydata(), original.generalisation_error)


def test_optimum_is_dashed_and_black_in_figure_6():
    axis = drawn(6).axes[0]
    dashed = [one for one in axis.lines if one.get_linestyle() == "--"]
    assert [one.get_color() for one in dashed] == ["black"]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("number", [3, 7])
def test_maps_have_a_mesh_a_scale_and_spots(number):
    maps = [a for a in drawn(number).axes if any(isinstance(c, QuadMesh) for c in a.collections)]
    (axis, bar) = (maps[0], drawn(number).axes[-1])
    assert bar.get_ylabel() == r"generalisation error, $\epsilon_g$"
    rings = next(c for c in axis.collections if isinstance(c, PathCollection))
    simulation = computed(number)["simulation"]
    np.testing.assert_allclose(rings.get_array(), simulation.generalisation_error.values.ravel())
    names = ("n_over_d", "p_over_n") if number == 3 else ("n_over_p", "d_over_p")
    places = [np.broadcast_to(used_ratio(simulation, n), (2, 2)).ravel() for n in names]
    np.testing.assert_allclose(rings.get_offsets().T, places)


def test_figure_3_has_a_surface_with_the_line_on_it():
    surface = drawn(3).axes[0]
    assert any(isinstance(c, Poly3DCollection) for c in surface.collections)
    assert (surface.get_xlabel(), surface.get_ylabel()) == ("$n/d$", "$p/n$")
    assert len(surface.lines) == 1


def test_drawing_leaves_the_style_of_others_alone():
    before = dict(mpl.rcParams)
    assert isinstance(figures.MODULES[1].draw(computed(1)), Figure)
    assert dict(mpl.rcParams) == before
