"""Datasets as figures: a panel per quantity, and words that say what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError
from hiddenmanifold.plotting import overlays
from hiddenmanifold.plotting.curves import GREY, Curve, draw, left_out, predicted, simulated
from hiddenmanifold.plotting.legends import columns_for, kinds_of, values_of
from hiddenmanifold.plotting.maps import draw_map, is_map
from hiddenmanifold.plotting.selection import axes_of, quantities_of, sizes_of
from hiddenmanifold.plotting.stack import PARTS, draw_stack, is_stack
from hiddenmanifold.plotting.style import NUMBERS, STYLE, label, ordinate
from hiddenmanifold.plotting.words import caption, fixed
from hiddenmanifold.results.schema import Role, of_role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    Plotted = xr.Dataset | xr.DataArray

FORMATS = (".png", ".pdf", ".svg")
WIDTH, HEIGHT, MARGIN = 4.8, 2.3, 1.0
"""Inches of a figure, of each of its panels, and of what is written around them."""


@dataclass(frozen=True)
class Content:
    """Curves of every panel, and the words around them."""

    x: str
    panels: Sequence[Sequence[Curve]]
    ordinates: Sequence[str]
    bounded: Sequence[bool]
    title: str
    caption: str
    entries: Callable[[NDArray[Any]], list[Any]] = field(default=lambda axes: [])


def plot(
    dataset: Plotted | Sequence[Plotted] | Mapping[str, Plotted],
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    *,
    theory: xr.Dataset | None = None,
    kind: Literal["curves", "map"] | None = None,
) -> Figure:
    r"""Draw datasets: a panel per quantity, a curve per value of a second dimension, or a map.

    Predictions are lines, or open squares where they are fewer than six; simulations are points
    with their standard errors. Limits are triangles on the edge of a panel. A `learning_curve` of
    real data has a band of one standard deviation, and points that were measured.

    Parameters
    ----------
    dataset : xarray.Dataset or DataArray, or sequence or mapping of these
        The result of `predict`, `simulate`, `summary`, `compare`, `separability_threshold`,
        `learning_curve` and the like. Of several, each is a curve; a mapping gives their names.
        After a grid that is drawn as a map come lines in its plane, such as thresholds. The parts
        of `bias_variance` along one dimension are stacked, unless `y` is given.
    x : str, optional
        Dimension along the horizontal axis; by default the longest, and the first of those.
    y : str or sequence of str, optional
        Quantities, one panel each; by default the generalisation error and, below it, the optimal
        regularisation or the training loss, and observables; of `margins`, both distributions.
    theory : xarray.Dataset, optional
        Predictions on a finer grid, drawn as lines in place of those in `dataset`. With a
        `compare` of real data this is their `learning_curve`.
    kind : {"curves", "map"}, optional
        By default a map where predictions vary along two dimensions of 16 values or more.

    Returns
    -------
    matplotlib.figure.Figure
        Its panels are ``figure.axes``; to be changed at will, and saved with ``figure.savefig``. A
        notebook shows it.

    Raises
    ------
    InvalidArgumentError
        If nothing varies along `x`, more than two dimensions vary, or a quantity is unknown; if
        one of several datasets varies along another dimension.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import hiddenmanifold as hm, numpy as np
    >>> model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="logistic")
    >>> lam = np.geomspace(1e-4, 1, 20)
    >>> ds = hm.predict(model, n_over_d=3.0, p_over_n=[0.5, 1.0], regularisation=lam)
    >>> figure = hm.plot(ds, y="generalisation_error")
    >>> figure.axes[0].get_xlabel()
    'regularisation, $\\lambda$'
    """
    check_available()
    if kind not in (None, "curves", "map"):
        raise InvalidArgumentError("kind", kind, "'curves' or 'map'")
    first, *others = datasets = overlays.named(dataset)
    if others and theory is not None:
        raise InvalidArgumentError.because(
            "theory", "cannot be given beside several datasets", "put it among them"
        )
    if theory is None and is_map(first.dataset, x, y, kind):
        return _figure_of_map(datasets, x, y)
    if not others and y is None and is_stack(first.dataset):
        return _figure_of_stack(first.dataset)
    if others:
        return _figure(_of_several(datasets, x, y))
    return _figure(_of_one(first.dataset, x, y, theory))


def _of_one(
    dataset: xr.Dataset, x: str | None, y: str | Sequence[str] | None, theory: xr.Dataset | None
) -> Content:
    """Predictions and measurements of one dataset, a colour for each value of a dimension."""
    predictions = dataset if theory is None else theory
    x, family = axes_of(sizes_of(predictions, y), x)
    if x not in dataset.dims:
        raise InvalidArgumentError.because(
            "theory",
            f"varies along {x}, which the dataset lacks",
            "predict along the dimensions of the dataset",
        )
    if dataset[x].dtype.kind not in NUMBERS:
        raise InvalidArgumentError("x", x, "a dimension of numbers")
    names = quantities_of(dataset, x, y)
    finer = {} if theory is None else dict.fromkeys(theory, theory)
    panels = [
        [
            *predicted(finer.get(name, dataset), name, x, family),
            *simulated(dataset, name, x, family),
            *left_out(finer.get(name, dataset), name, x, family),
        ]
        for name in names
    ]
    laws = of_role(dataset, Role.DISTRIBUTION)

    def entries(axes: NDArray[Any]) -> list[Any]:
        kinds = kinds_of(panels, predictions, single=family is None)
        return [*values_of(axes, family, dataset, panels), *kinds]

    return Content(
        x,
        panels,
        [ordinate(dataset, name) for name in names],
        [name in laws for name in names],
        fixed(dataset),
        caption(dataset.attrs),
        entries,
    )


def _of_several(
    datasets: Sequence[overlays.Named], x: str | None, y: str | Sequence[str] | None
) -> Content:
    """A colour for each dataset."""
    x, names = overlays.common(datasets, x, y)
    panels = [overlays.curves_of(datasets, name, x) for name in names]
    words = overlays.words_of(datasets)
    having = [next(one.dataset for one in datasets if name in one.dataset) for name in names]

    def entries(axes: NDArray[Any]) -> list[Any]:
        found = overlays.colours_of(words.names, datasets, panels)
        if overlays.mixed(panels):  # of one dataset predictions and measurements
            found += kinds_of(panels, datasets[0].dataset, single=False)
        return found

    return Content(
        x,
        panels,
        [ordinate(dataset, name) for dataset, name in zip(having, names, strict=True)],
        [name in of_role(d, Role.DISTRIBUTION) for d, name in zip(having, names, strict=True)],
        words.title,
        words.caption,
        entries,
    )


def _figure(content: Content) -> Figure:
    """Panels below one another, each with the legend entries that none above has."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        rows = len(content.panels)
        figure = Figure(figsize=(WIDTH, MARGIN + HEIGHT * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, 1, sharex=True))
        drawn = zip(axes, content.panels, content.bounded, strict=True)
        keys = [draw(axis, curves, content.x, bounded=law) for axis, curves, law in drawn]
        keys[0] = [*content.entries(axes), *keys[0]]
        told: set[str] = set()
        for axis, name, key in zip(axes, content.ordinates, keys, strict=True):
            axis.set_ylabel(name)
            if new := [entry for entry in key if entry.get_label() not in told]:
                axis.legend(handles=new, ncols=columns_for([entry.get_label() for entry in new]))
            told.update(entry.get_label() for entry in new)
        return _finished(figure, axes, content)


def _figure_of_map(
    datasets: Sequence[overlays.Named], x: str | None, y: str | Sequence[str] | None
) -> Figure:
    """A panel for each quantity, whose colours are its values, and lines in the plane."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    first, *others = datasets
    x, up = axes_of(sizes_of(first.dataset, y), x)
    assert up is not None
    names = quantities_of(first.dataset, x, y)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, MARGIN + HEIGHT * 1.2 * len(names)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
        lines = [overlays.line_in(one, x, up) for one in others]
        for axis, name in zip(axes, names, strict=True):
            draw_map(axis, first.dataset, name, (x, up), lines)
        words = fixed(first.dataset), caption(first.dataset.attrs)
        return _finished(figure, axes, Content(x, (), (), (), *words))


def _figure_of_stack(dataset: xr.Dataset) -> Figure:
    """Parts of an error on top of each other."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    x, _ = axes_of(sizes_of(dataset, PARTS))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, MARGIN + HEIGHT * 1.2), layout="constrained")
        axes = np.array([figure.subplots()])
        draw_stack(axes[0], dataset, x)
        words = fixed(dataset), caption(dataset.attrs)
        return _finished(figure, axes, Content(x, (), (), (), *words))


def _finished(figure: Figure, axes: NDArray[Any], content: Content) -> Figure:
    figure.align_ylabels(list(axes))
    axes[-1].set_xlabel(label(content.x))
    axes[0].set_title(content.title, loc="left")
    figure.suptitle(content.caption, x=0.02, ha="left", fontsize=7.5, color=GREY)
    vars(figure)["_repr_png_"] = partial(_png, figure)  # so that a notebook shows it
    return figure


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, dpi=120)
    return file.getvalue()


def save(figure: Figure, path: str | Path, attributes: Mapping[Any, Any] | None = None) -> None:
    """Write a figure as PNG, PDF or SVG, by the ending of the name, without a date in it.

    The attributes of its dataset, the model among them, go into the metadata of the file.
    """
    check_destination(path)
    import matplotlib as mpl

    attributes = attributes or {}
    kept = {name: value for name, value in attributes.items() if name != "workers"}  # by chance
    told = "; ".join(f"{name}: {value}" for name, value in kept.items())
    title = str(attributes.get("model", attributes.get("data", "")))
    metadata: dict[str, dict[str, str | None]] = {
        ".png": {"Title": title, "Description": told},
        ".pdf": {"Title": title, "Subject": told, "CreationDate": None},
        ".svg": {"Title": title, "Description": told, "Date": None},
    }
    of_kind = metadata[Path(path).suffix.lower()]
    given = {name: text for name, text in of_kind.items() if text != ""}
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=200, metadata=given)


def check_available() -> None:
    """Raise unless matplotlib is installed."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("a plot", "matplotlib", "plot") from error


def check_destination(path: str | Path) -> None:
    """Raise unless a figure can be written under a name that ends like this."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InvalidArgumentError("plot", str(path), "a file name ending in " + ", ".join(FORMATS))
    check_available()
