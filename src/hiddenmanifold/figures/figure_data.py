"""The paper's models, what determines the data of a figure, and these data, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hiddenmanifold.api.compare import compare
from hiddenmanifold.api.predict import predict
from hiddenmanifold.arrays import Array
from hiddenmanifold.checks import INGREDIENT_KINDS
from hiddenmanifold.model import Model

if TYPE_CHECKING:
    import xarray as xr

Datasets = dict[str, "xr.Dataset"]
"""The datasets behind one figure, by name."""

ERROR = ("generalisation_error",)
OPTIMAL = {"regularisation": "optimal"}
SMALLEST = 1e-6
"""Where the optimal λ is the limit 0⁺, which cannot be simulated, simulations take this λ; theory
and simulation are compared at this same value."""
RECORDED = ("status", "residual", "quadrature_error", "optimal_regularisation")
"""Kept with every prediction, whatever the figure draws."""


def paper_model(**ingredients: Any) -> Model:
    """The model of Figures 1 to 5, but for the ingredients given."""
    parts: dict[str, Any] = {kind: about.default for kind, about in INGREDIENT_KINDS.items()}
    return Model(**{**parts, **ingredients})


def hidden_manifold() -> Model:
    """The model of Figures 6 and 7: square loss on features erf(Fᵀc/√d)."""
    return paper_model(activation="erf", loss="square")


@dataclass(frozen=True)
class Axis:
    """Evenly spaced values, on a linear or on a logarithmic scale."""

    low: float
    high: float
    count: int
    logarithmic: bool = False

    @property
    def values(self) -> Array:
        """The values from `low` to `high`, both included."""
        spaced = np.geomspace if self.logarithmic else np.linspace
        return spaced(self.low, self.high, self.count, dtype=float)


@dataclass(frozen=True)
class Size:
    """How large and how often something is simulated; the arguments of `simulate`."""

    d: int
    seeds: int
    n_test: int = 4000
    seed: int = 0


@dataclass(frozen=True)
class Setting:
    """What determines the data of a figure, apart from its models.

    Parameters
    ----------
    at : mapping
        Arguments of theory and simulation alike: a ratio that is fixed, the regularisation.
    lines : mapping
        The ratios along which the theory is shown.
    points : mapping
        The ratios at which simulations are shown.
    size : Size, optional
        Latent dimension, seeds and test samples, where something is simulated.
    """

    at: Mapping[str, Any]
    lines: Mapping[str, Axis]
    points: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    size: Size | None = None

    @property
    def theory(self) -> dict[str, Any]:
        """The arguments of `predict`."""
        return {**self.at, **{ratio: axis.values for ratio, axis in self.lines.items()}}

    @property
    def simulation(self) -> dict[str, Any]:
        """The arguments of `simulated`."""
        return {**self.at, **self.points, "size": self.size}


def predicted(model: Model, quantities: Sequence[str], **arguments: Any) -> xr.Dataset:
    """Some quantities of what `predict` returns with these arguments, and the certificates."""
    ds = predict(model, **arguments)
    return ds[[key for key in (*quantities, *RECORDED) if key in ds]]


def simulated(
    model: Model, quantities: Sequence[str], *, size: Size, regularisation: Any, **arguments: Any
) -> xr.Dataset:
    """Simulations of a model, with the theory at the same points.

    Each quantity q is kept as `q`, `q_stderr`, `q_theory` and `q_z`, as `compare` names them. The
    optimal λ is that of the theory, at least `SMALLEST`; the arguments are those of `simulate`.

    Raises
    ------
    KeyboardInterrupt
        After a Ctrl-C.
    """
    if isinstance(regularisation, str):
        ratios = {name: values for name, values in arguments.items() if "_over_" in name}
        best = predict(model, regularisation=regularisation, **ratios)
        regularisation = best.optimal_regularisation.clip(min=SMALLEST)
    ds = compared(model, regularisation=regularisation, **asdict(size), **arguments)
    if dropped := int(ds.dropped.sum()):
        warnings.warn(
            f"{dropped} simulated fits of {model} did not reach their optimum and are left out",
            stacklevel=2,
        )
    wanted = [key + end for key in quantities for end in ("", "_stderr", "_theory", "_z")]
    return ds[[*wanted, "seeds", "dropped"]]


def compared(model: Model, **arguments: Any) -> xr.Dataset:
    """What `compare` returns, unless a Ctrl-C cut it short.

    Raises
    ------
    KeyboardInterrupt
        Then: points of a few seeds only must not be kept as if they were finished.
    """
    ds = compare(model, **arguments)
    if ds.attrs["interrupted"]:
        raise KeyboardInterrupt
    return ds


def worst_score(model: Model, *quantities: str, **arguments: Any) -> float:
    """How far simulated quantities are from the theory at most, in standard errors."""
    ds = compared(model, **arguments, seeds=10, progress=False)
    return float(np.abs([ds[f"{name}_z"] for name in quantities]).max())


def lines(model: Model, quantities: Sequence[str], setting: Setting) -> Datasets:
    """The theory at the λ of a setting, and its error at the optimal λ."""
    return {
        "theory": predicted(model, quantities, **setting.theory),
        "optimum": predicted(model, ERROR, **setting.theory | OPTIMAL),
    }


def points(model: Model, quantities: Sequence[str], setting: Setting, **how: Any) -> Datasets:
    """The same simulated."""
    at = {**setting.simulation, **how}
    return {
        "simulation": simulated(model, quantities, **at),
        "simulated_optimum": simulated(model, ERROR, **at | OPTIMAL),
    }


def stacked(data: Mapping[str, Datasets], over: str) -> Datasets:
    """The datasets of several models, each with its likes side by side."""
    parts = next(iter(data.values()))
    return {
        part: side_by_side({name: own[part] for name, own in data.items()}, over) for part in parts
    }


def side_by_side(parts: Mapping[str, xr.Dataset], over: str) -> xr.Dataset:
    """Datasets on the same points as one, with a new first dimension of their names."""
    import xarray as xr

    # unless it is a dimension, each model may have its own λ, which is no coordinate of all
    own = [{"regularisation"} & set(ds.coords) - set(ds.dims) for ds in parts.values()]
    bare = [ds.reset_coords(names) for names, ds in zip(own, parts.values(), strict=True)]
    shared = {name: bare[0][name].variable for name in bare[0].coords}
    whole = xr.concat(
        [ds.drop_vars(list(shared)) for ds in bare],
        xr.DataArray(list(parts), dims=over, name=over),
        data_vars="all",
        combine_attrs="drop_conflicts",
    ).assign_coords(shared)
    models = [f"{name}: {ds.attrs['model']}" for name, ds in parts.items()]
    return whole.assign_attrs(model="; ".join(models))


def scores(data: Datasets) -> xr.DataArray:
    """Simulation minus theory in standard errors, for every point that a figure draws.

    One score per point and quantity, along `score`, with the coordinates `part` (name of the
    dataset) and `quantity`; empty, if nothing is simulated.
    """
    import xarray as xr

    values, part, quantity = [np.empty(0)], [], []
    for name, ds in data.items():
        for variable in ds.data_vars:
            if str(variable).endswith("_z"):
                z = ds[variable].values.ravel()
                values.append(z)
                part += [name] * z.size
                quantity += [str(variable).removesuffix("_z")] * z.size
    coordinates = {"part": ("score", part), "quantity": ("score", quantity)}
    return xr.DataArray(np.concatenate(values), coordinates, ("score",), "z")
