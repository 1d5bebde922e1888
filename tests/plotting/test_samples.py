"""Pictures of real data show what was predicted, how surely, and what was measured."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import hiddenmanifold as hm
from hiddenmanifold import plotting
from hiddenmanifold.plotting.style import COLOURS

SIZES, LAMS = [60, 120, 480], [0.1, 1.0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 20))
    return hm.Data(X, X[:, :5].sum(1) + rng.standard_normal(120))


@pytest.fixture(scope="module")
def curve(data):
    return hm.learning_curve(data, n=SIZES, regularisation=LAMS, on_refusal="keep")


def band_of(collection):
    """Corners of a band, from the left: x, lower and upper end."""
    corners = collection.get_paths()[0].vertices
    x = np.unique(corners[:, 0])
    ends = [[f(corners[corners[:, 0] == one, 1]) for f in (np.min, np.max)] for one in x]
    return x, *np.array(ends).T


def texts_of(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_a_learning_curve_has_a_band_and_the_leave_one_out_error(curve):
    (axis,) = plotting.plot(curve).axes
    bands = [drawn for drawn in axis.collections if isinstance(drawn, PolyCollection)]
    for k, (line, band) in enumerate(zip(axis.lines[:2], bands, strict=True)):
        at = curve.isel(regularisation=k)
        assert line.get_color() == COLOURS[k]
        np.testing.assert_array_equal(line.get_xydata().T, [SIZES, at.generalisation_error])
        ends = (at.generalisation_error_low, at.generalisation_error_high)
        np.testing.assert_allclose(band_of(band), [SIZES, *ends])
    for k, points in enumerate(axis.containers):
        expected = curve.generalisation_error_leave_one_out.values[k]
        np.testing.assert_array_equal(points.lines[0].get_xydata(), [[120, expected]])
        assert points.lines[0].get_marker() == "D"
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert axis.get_ylabel() == "mean square error"
    assert axis.figure.get_suptitle() == "120 samples of 20 features, regression (guessed from y)"
    words = ["predicted", "± one standard deviation", "leave-one-out"]
    assert texts_of(axis) == [r"$\lambda = 0.1$", r"$\lambda = 1$", *words]


def test_along_the_regularisation_leave_one_out_belongs_to_the_sample_s_size(curve):
    (axis,) = plotting.plot(curve, x="regularisation").axes
    (points,) = axis.containers
    np.testing.assert_array_equal(points.lines[0].get_xdata(), LAMS)
    assert points.lines[0].get_color() == COLOURS[SIZES.index(120)]


def test_a_comparison_is_drawn_over_the_learning_curve(data, curve):
    lam = {"regularisation": 0.1}
    check = hm.backtest(data, n=[30], seeds=2, **lam)  # a single size has a place on the curve
    (axis,) = plotting.plot(check, theory=curve.sel(**lam)).axes
    held_out, left_out = axis.containers
    expected = check.generalisation_error.values[0]
    np.testing.assert_array_equal(held_out.lines[0].get_xydata(), [[30, *expected]])
    assert left_out.lines[0].get_xdata() == [120]
    assert texts_of(axis)[-2:] == ["measured on held-out rows", "leave-one-out"]
    assert axis.get_ylabel() == "mean square error"


def test_what_the_sample_does_not_show_is_a_broken_line(curve):
    at = curve.isel(regularisation=0)
    (axis,) = plotting.plot(at.assign(status=("n", [0, 0, 1]))).axes
    broken, firm = axis.lines[:2]
    np.testing.assert_array_equal(broken.get_ydata(), at.generalisation_error)
    np.testing.assert_array_equal(firm.get_ydata()[:2], at.generalisation_error[:2])
    assert np.isnan(firm.get_ydata()[2])
    assert "not resolved by the sample: its last value" in texts_of(axis)


@pytest.mark.slow
def test_other_quantities_have_panels_when_asked_for(curve, tmp_path):
    figure = plotting.plot(curve, y=["test_loss", "training_loss"])
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "test loss",
        r"training loss, $\varepsilon_t$",
    ]
    plotting.save(figure, tmp_path / "curve.svg", curve.attrs)
    assert curve.attrs["data"] in (tmp_path / "curve.svg").read_text()
