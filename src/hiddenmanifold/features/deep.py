"""Deep random features: layers of random features of random features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hiddenmanifold import activations, projections
from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.features.base import Drawn, Features, applied, drawn_teacher
from hiddenmanifold.ingredients import check_number, resolve
from hiddenmanifold.numerics.matrices import LinearMap
from hiddenmanifold.spectra import Kappas, Sums, activated


@dataclass(frozen=True, init=False)
class Layer:
    """One layer: an activation of a random projection of what is below.

    Parameters
    ----------
    activation : str, Activation or callable
        Its nonlinearity σ.
    projection : str or Projection
        Its matrix: "gaussian", or one of the orthogonal kinds.
    width : float, optional
        Its number of neurons over the latent dimension d. The last layer has none: its neurons are
        the p features.
    """

    activation: activations.Activation
    projection: projections.Projection
    width: float | None

    def __init__(
        self,
        activation: str | activations.Activation | Callable[[Array], Array],
        projection: str | projections.Projection = "gaussian",
        *,
        width: float | None = None,
    ) -> None:
        if width is not None:
            check_number("width", width, 0.0, open_low=True)
        for name, value in {
            "activation": activations.resolved(activation),
            "projection": resolve(
                "projection", projection, projections.Projection, projections.REGISTRY
            ),
            "width": width,
        }.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, init=False)
class Deep(Features):
    r"""Features :math:`x_l = \sigma_l(F_l^\top x_{l-1}/\sqrt{p_{l-1}})` of white data :math:`x_0`.

    Parameters
    ----------
    layers : sequence of Layer
        From the data to the features; each but the last states its `width`.

    Raises
    ------
    InvalidArgumentError
        If a width is missing or too much, a matrix has no theory on top of another layer, or the
        activation of a hidden layer has a mean (it would shift each neuron above by its own bias).

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> Deep, Layer = hm.features.Deep, hm.features.Layer
    >>> features = Deep([Layer("tanh", width=5 / 3), Layer("erf")])
    >>> model = hm.Model(features=features, teacher="sign", loss="square")
    >>> ds = hm.predict(model, n_over_d=2.0, p_over_d=4 / 3, regularisation=0.05)
    >>> float(ds.generalisation_error.round(5))
    0.27711
    """

    layers: tuple[Layer, ...]

    def __init__(self, layers: Sequence[Layer]) -> None:
        try:
            given = tuple(layers)
        except TypeError:
            given = ()
        if not given or not all(isinstance(layer, Layer) for layer in given):
            raise InvalidArgumentError("layers", layers, "one or more features.Layer objects")
        object.__setattr__(self, "layers", given)
        *hidden, last = self.layers
        if last.width is not None:
            raise InvalidArgumentError(
                "width", last.width, "left out of the last layer: its neurons are the p features"
            )
        for layer in self.layers[1:]:
            if not layer.projection.stacks:
                raise InvalidArgumentError(
                    "projection", layer.projection, "in the first layer, or one of another kind"
                )
        for layer, (kappa_0, *_) in zip(hidden, self.kappas, strict=False):
            if layer.width is None:
                raise InvalidArgumentError("width", None, "a number for every layer but the last")
            fixed = layer.projection.fixed_ratio
            if fixed is not None and not np.isclose(fixed * layer.width, 1.0, rtol=1e-9):
                raise InvalidArgumentError(
                    "width", layer.width, f"{1 / fixed:.12g}: the projection fixes it"
                )
            if kappa_0 != 0.0:
                raise InvalidArgumentError(
                    "activation", layer.activation, f"of mean zero below others, not {kappa_0:.4g}"
                )

    @cached_property
    def _scales(self) -> tuple[list[Kappas], list[float]]:
        kappas, variances = [], [1.0]
        for layer in self.layers:
            kappas.append(layer.activation.kappas_at(variances[-1]))
            _, kappa_1, kappa_star = kappas[-1]
            variances.append(kappa_1**2 * variances[-1] + kappa_star**2)
        return kappas, variances

    @property
    def kappas(self) -> list[Kappas]:
        """Coefficients of each layer, at the variance of what its neurons receive."""
        return self._scales[0]

    @property
    def variances(self) -> list[float]:
        """Variance of a latent coordinate, then of a neuron of each layer."""
        return self._scales[1]

    @property
    def fixed_ratio(self) -> float | None:
        return self.layers[0].projection.fixed_ratio if len(self.layers) == 1 else None

    @property
    def fixed_dimension(self) -> int | None:
        return self.layers[0].projection.fixed_dimension

    @property
    def corner(self) -> float | None:
        below = self.layers[-2].width if len(self.layers) > 1 else 1.0
        return 1.0 / below if self.layers[-1].projection.corner and below else None

    @property
    def mean(self) -> float:
        return self.kappas[-1][0]

    @property
    def variance(self) -> float:
        return self.variances[-1]

    @property
    def blind(self) -> bool:
        return any(kappa_1 == 0.0 for _, kappa_1, _ in self.kappas)

    @property
    def noiseless(self) -> bool:
        return all(kappa_star == 0.0 for *_, kappa_star in self.kappas)

    def sums(self, k: Array, gamma: Array, boost: Array | float = 1.0) -> Sums:
        return self._sums(len(self.layers), k, gamma, np.broadcast_to(boost, k.shape))

    def _sums(self, level: int, k: Array, gamma: Array, boost: Array) -> Sums:
        """The sums of the neurons of a layer; level 1 is the first above the latent data."""
        projection, width = self.layers[level - 1].projection, self._size(level, gamma)

        def below(at: Array, some: Integers) -> Sums:
            return self._sums(level - 1, at, gamma[some], boost[some])

        def received(at: Array) -> Sums:
            """The sums of what the neurons receive."""
            if level == 1:  # in closed form, for neurons as the unit of directions
                sums = projection.linear(at * width / boost, gamma / width)
                return sums.in_units(width)
            return projection.of_kernel(below, at, d=self._size(level - 1, gamma), p=width)

        return activated(received, k, self.kappas[level - 1], width)

    def _size(self, level: int, gamma: Array) -> Array:
        """Neurons of a layer, in units of the number of features."""
        width = self.layers[level - 1].width
        return np.ones_like(gamma) if width is None else width * gamma

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        sizes = self._sizes(d, p)
        pairs = zip(self.layers, sizes[:-1], sizes[1:], strict=True)
        return sum(
            layer.projection.numbers_drawn(rows, below, above) + rows * above
            for layer, below, above in pairs
        )

    def _sizes(self, d: int, p: int) -> list[int]:
        """Whole numbers of neurons, from the latent data to the features."""
        hidden = [max(1, round(layer.width * d)) for layer in self.layers if layer.width]
        return [d, *hidden, p]

    def draw(self, d: int, p: int, rho: float, rng: np.random.Generator) -> DrawnLayers:
        sizes = self._sizes(d, p)
        maps = tuple(
            layer.projection.sample(below, above, rng)
            for layer, below, above in zip(self.layers, sizes[:-1], sizes[1:], strict=True)
        )
        return DrawnLayers(self, maps, drawn_teacher(d, rho, rng), tuple(sizes))


@dataclass(frozen=True)
class DrawnLayers(Drawn):
    """The matrices of all layers and a teacher's weights θ."""

    features: Deep
    maps: tuple[LinearMap, ...]
    theta: Array
    sizes: tuple[int, ...]

    def sample(
        self, rows: int, rng: np.random.Generator, *, equivalent: bool = False
    ) -> tuple[Array, Array]:
        c = x = rng.standard_normal((rows, self.sizes[0]))
        for layer, F, size, kappas in zip(
            self.features.layers, self.maps, self.sizes, self.features.kappas, strict=False
        ):
            h = F.left(x) / np.sqrt(size)
            x = applied(layer.activation, kappas if equivalent else None, h, rng)
        return x, c @ self.theta / np.sqrt(self.sizes[0])

    def overlaps(self, w: Array) -> dict[str, float]:
        Q = 0.0
        downwards = zip(self.maps, self.features.kappas, self.sizes[1:], strict=True)
        for F, (_, kappa_1, kappa_star), size in reversed(list(downwards)):
            Q += kappa_star**2 * float(w @ w) / size
            w = kappa_1 * F.right(w) / np.sqrt(size)
        d = self.sizes[0]
        return {"Q": Q + float(w @ w) / d, "M": float(w @ self.theta) / d}
