"""Datasets as figures: a panel per quantity, and words that say what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.arrays import Array
from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError
from hiddenmanifold.plotting.curves import (
    DOUBTFUL,
    FAINT,
    GREY,
    LEFT_OUT,
    POINT,
    Curve,
    draw,
    left_out,
    predicted,
    simulated,
)
from hiddenmanifold.plotting.style import (
    COLOURS,
    NUMBERS,
    STYLE,
    colour_scale,
    colours,
    equation,
    label,
    limits,
    ordinate,
)
from hiddenmanifold.plotting.words import caption, fixed
from hiddenmanifold.results.datasets import summary
from hiddenmanifold.results.observables import OBSERVABLES
from hiddenmanifold.results.schema import CLASS_DIMENSIONS, Role, is_real_data, of_role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
PANELS = (
    tuple(f"generalisation_error_by_log_{name}" for name in ("regularisation", "n", "p")),
    ("p_over_n", "generalisation_error"),
    ("n_over_d",),
    ("test_cdf", "train_cdf"),
    ("generalisation_error", "optimal_regularisation"),
    ("generalisation_error", "optimal_time"),
    ("generalisation_error", "optimal_steps"),
    ("generalisation_error", "training_loss"),
    ("generalisation_error",),
    ("test_cdf", "train_cdf"),
)
"""What is drawn unless something else is asked for: the first of these that a dataset has.

Observables, which are measured where they are asked for, are drawn below.
"""
SUPPORTS = {
    1: "not resolved by the sample: its last value",
    2: "refused by the diagnosis",
}
"""The basis of a doubtful part of a curve for real data, by its status."""


def plot(
    dataset: xr.Dataset | xr.DataArray,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    *,
    theory: xr.Dataset | None = None,
) -> Figure:
    r"""Draw a dataset: a panel per quantity, a curve per value of a second dimension.

    Predictions are lines, or open squares where they are fewer than six; simulations are points
    with their standard errors. Limits are triangles on the edge of a panel. A `learning_curve` of
    real data has a band of one standard deviation, and points that were measured.

    Parameters
    ----------
    dataset : xarray.Dataset or DataArray
        The result of `predict`, `simulate`, `summary`, `compare`, `separability_threshold`,
        `learning_curve` and the like.
    x : str, optional
        Dimension along the horizontal axis; by default the longest, and the first of those.
    y : str or sequence of str, optional
        Quantities, one panel each; by default the generalisation error and, below it, the optimal
        regularisation or the training loss, and observables; of `margins`, both distributions.
    theory : xarray.Dataset, optional
        Predictions on a finer grid, drawn as lines in place of those in `dataset`. With a
        `compare` of real data this is their `learning_curve`.

    Returns
    -------
    matplotlib.figure.Figure
        Its panels are ``figure.axes``; to be changed at will, and saved with ``figure.savefig``. A
        notebook shows it.

    Raises
    ------
    InvalidArgumentError
        If nothing varies along `x`, more than two dimensions vary, or a quantity is unknown.
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
    import matplotlib as mpl
    from matplotlib.figure import Figure

    dataset = _dataset(dataset)
    predictions = dataset if theory is None else theory
    x, family = axes_of(_sizes(predictions, y), x)
    if dataset[x].dtype.kind not in NUMBERS:
        raise InvalidArgumentError("x", x, "a dimension of numbers")
    names = _quantities(dataset, x, y)
    finer = {} if theory is None else dict.fromkeys(theory, theory)
    panels = [
        [
            *predicted(finer.get(name, dataset), name, x, family),
            *simulated(dataset, name, x, family),
            *left_out(finer.get(name, dataset), name, x, family),
        ]
        for name in names
    ]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.8, 1.0 + 2.3 * len(names)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
        drawn = zip(axes, panels, names, strict=True)
        laws = of_role(dataset, Role.DISTRIBUTION)
        keys = [draw(axis, curves, x, bounded=name in laws) for axis, curves, name in drawn]
        kinds = _kinds(family, panels, predictions)
        keys[0] = [*_members(axes, family, dataset, panels), *kinds, *keys[0]]
        told: set[str] = set()
        for axis, name, key in zip(axes, names, keys, strict=True):
            axis.set_ylabel(ordinate(dataset, name))
            if new := [entry for entry in key if entry.get_label() not in told]:
                axis.legend(handles=new, ncols=_columns([entry.get_label() for entry in new]))
            told.update(entry.get_label() for entry in new)
        figure.align_ylabels(list(axes))
        axes[-1].set_xlabel(label(x))
        axes[0].set_title(fixed(dataset), loc="left")
        figure.suptitle(caption(dataset.attrs), x=0.02, ha="left", fontsize=7.5, color=GREY)
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


def axes_of(sizes: Mapping[str, int], x: str | None = None) -> tuple[str, str | None]:
    """The dimension along the horizontal axis, and the one that makes several curves, if any.

    Raises
    ------
    InvalidArgumentError
        If dimensions of these sizes cannot be drawn, or not along `x`.
    """
    sizes = {dim: n for dim, n in sizes.items() if n > 1 and dim != "seed"}
    if not sizes:
        raise InvalidArgumentError.because(
            "dataset", "has a single point", "a plot needs at least two"
        )
    if x is not None and x not in sizes:
        raise InvalidArgumentError("x", x, "a dimension that varies: " + " or ".join(sizes))
    x = x or max(sizes, key=sizes.__getitem__)
    others = [dim for dim in sizes if dim != x]
    if len(others) > 1:
        raise InvalidArgumentError.because(
            "dataset", f"varies along {', '.join(sizes)}", "a plot shows at most two dimensions"
        )
    return x, others[0] if others else None


def _sizes(dataset: xr.Dataset, y: str | Sequence[str] | None) -> dict[str, int]:
    """Lengths of the dimensions along which the quantities vary.

    Those of several classes count only where a quantity is asked for that has them.
    """
    names = [] if y is None else [y] if isinstance(y, str) else list(y)
    asked = {dim for name in names for dim in CLASS_DIMENSIONS.get(name, ())}
    unseen = {dim for dims in CLASS_DIMENSIONS.values() for dim in dims}.difference(asked)
    return {str(dim): n for dim, n in dataset.sizes.items() if dim not in unseen}


def _dataset(given: object) -> xr.Dataset:
    """What is drawn of an argument: an array alone, of simulations their means."""
    import xarray as xr

    if isinstance(given, xr.DataArray):
        name = "values" if given.name is None else given.name
        given = given.to_dataset(name=name, promote_attrs=True)
    if not isinstance(given, xr.Dataset):
        raise InvalidArgumentError("dataset", given, "what predict, simulate and others return")
    return summary(given) if "seed" in given.dims else given


def _quantities(dataset: xr.Dataset, x: str, y: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of what is drawn, which varies along the horizontal axis."""
    known = [str(name) for name, values in dataset.data_vars.items() if x in values.dims]
    if y is None:
        if is_real_data(dataset):
            return ("generalisation_error",)
        first = next((names for names in PANELS if set(names) <= set(known)), (known[0],))
        return (*first, *(o.name for o in OBSERVABLES if o.name in known))
    names = (y,) if isinstance(y, str) else tuple(y)
    for name in names:
        if name not in known:
            raise InvalidArgumentError("y", name, "one of " + ", ".join(known))
    return names


def _members(
    axes: NDArray[Any], family: str | None, dataset: xr.Dataset, panels: Sequence[Sequence[Curve]]
) -> list[Any]:
    """Entries of a legend for the colours; for many of them there is a bar, but for limits."""
    from matplotlib.lines import Line2D

    if family is None:
        return []
    values: Array = dataset[family].values
    shown, numeric = values.tolist(), values.dtype.kind in NUMBERS
    if numeric and len(values) > len(COLOURS):
        bar = axes[0].figure.colorbar(colour_scale(values), ax=list(axes), aspect=40)
        bar.set_label(label(family))
        shown = limits(values)
    style = next(curve.style for panel in panels for curve in panel)
    pairs = dict(zip(values.tolist(), colours(values), strict=True))
    texts = [f"${equation(family, v)}$" if numeric else str(v) for v in shown]
    return [
        Line2D([], [], color=pairs[v], label=text, **style)
        for v, text in zip(shown, texts, strict=True)
    ]


def _columns(texts: Sequence[str]) -> int:
    """How wide a legend is: many short entries in one column would cover the curves."""
    return 2 if len(texts) > 4 and max(map(len, texts)) < 24 else 1


def _kinds(
    family: str | None, panels: Sequence[Sequence[Curve]], predictions: xr.Dataset
) -> Iterator[Any]:
    """Entries of a legend for predictions and measurements, unless a model only predicts."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    real = is_real_data(predictions)
    colour = GREY if family else COLOURS[0]
    curves = [curve for panel in panels for curve in panel]
    points = [curve.point for curve in curves if curve.error is not None]
    theory = next((curve for curve in curves if curve.error is None), None)
    if theory is not None and (real or points):
        text = "predicted" if real else "theory"
        yield Line2D([], [], color=colour, label=text, **theory.style)
    if theory is not None and theory.band is not None:
        yield Patch(color=colour, alpha=FAINT, linewidth=0, label="± one standard deviation")
        for status in SUPPORTS.keys() & np.unique(predictions["status"]):
            yield Line2D([], [], color=colour, label=SUPPORTS[status], **DOUBTFUL)
    measured = "measured on held-out rows" if real else "simulation, mean ± standard error"
    for style, text in ((POINT, measured), (LEFT_OUT, "leave-one-out")):
        if style in points:
            yield Line2D([], [], color=colour, label=text, **style)
