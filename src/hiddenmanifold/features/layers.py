"""Random features: neurons of one or several layers, each projecting the one below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers, Numbers
from hiddenmanifold.checks import check_number, resolve
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, shown
from hiddenmanifold.features import activations, projections
from hiddenmanifold.features.base import Drawn, Features, SpectralArguments, White
from hiddenmanifold.features.chain import (
    Chain,
    Link,
    PairsOf,
    edge,
    in_units_of,
    of_any_shape,
    solved,
)
from hiddenmanifold.features.covariance import Covariance
from hiddenmanifold.features.pair_sums import PairSums, noise_pair, white_pair
from hiddenmanifold.features.spectral_sums import Kappas, Sums, activated, white
from hiddenmanifold.numerics.matrices import LinearMap


@dataclass(frozen=True, init=False)
class Layer:
    """One layer: an activation applied to a random projection of the layer below.

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
        matrix = resolve("projection", projection, projections.Projection, projections.REGISTRY)
        object.__setattr__(self, "activation", activations.resolved(activation))
        object.__setattr__(self, "projection", matrix)
        object.__setattr__(self, "width", width)


class Layered(Features):
    """Base of features that are the neurons of the last of some layers above the data."""

    random = True
    inputs: Covariance | None = None
    """The data below the first layer; white ones if None."""
    layers: tuple[Layer, ...]
    """From the data to the features; each but the last has a width."""

    @cached_property
    def _scales(self) -> tuple[list[Kappas], list[float]]:
        kappas, variances = [], [1.0 if self.inputs is None else self.inputs.variance]
        for layer in self.layers:
            kappas.append(layer.activation.kappas_at(variances[-1]))
            _, kappa_1, kappa_star = kappas[-1]
            variances.append(kappa_1**2 * variances[-1] + kappa_star**2)
        return kappas, variances

    @cached_property
    def kappas(self) -> list[Kappas]:
        """Coefficients of each layer, at the variance of its neurons' inputs."""
        return self._scales[0]

    @cached_property
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
        first, *above = self.layers
        if not above and self.inputs is None:  # neurons are features: what is below, with p = 1
            linear = first.projection.linear
            return activated(lambda at: linear(at / boost, gamma), k, self.kappas[0])
        return self._sums(len(self.layers), k, gamma, np.broadcast_to(boost, k.shape))

    def _sums(self, level: int, k: Array, gamma: Array, boost: Array) -> Sums:
        """The sums of the neurons of a layer; level 1 is the first above the data."""
        if level == 0 and self.inputs is None:
            return white(k / boost, gamma)
        if level == 0 and self.inputs is not None:
            return self.inputs.sums(k * gamma, gamma, boost).in_units(gamma)
        projection, width = self.layers[level - 1].projection, self._size(level, gamma)
        below = partial(self._below, level - 1, gamma, boost)

        def received(at: Array) -> Sums:
            if level == 1 and self.inputs is None:  # in closed form, in units of neurons
                return projection.linear(at * width / boost, gamma / width).in_units(width)
            return projection.of_layer(below, at, d=self._size(level - 1, gamma), p=width)

        return activated(received, k, self.kappas[level - 1], width)

    def pair_sums(self, k: Numbers, other: Numbers, gamma: Array) -> PairSums:
        chain = self.chain(gamma)
        return chain.pair_sums(*(chain.located(self._arguments(at, gamma)) for at in (k, other)))

    def _arguments(self, k: Numbers, gamma: Array) -> list[Numbers]:
        """Arguments of all layers from the beginning of their chain, that of the last given."""
        if np.iscomplexobj(k):
            return solved(lambda some: self.chain(gamma[some]), k)
        found, one = [k], np.ones_like(gamma)
        for level, link in reversed(list(self._links(gamma))):
            at = link.seen(found[-1])
            if link.stretching is not None:
                below, d = partial(self._below, level - 1, gamma, one), self._size(level - 1, gamma)
                at = self.layers[level - 1].projection.argument_below(below, at, d=d, p=link.p)
            found.append(at)
        return found[::-1]

    def _below(self, level: int, gamma: Array, boost: Array, at: Array, some: Integers) -> Sums:
        """The sums of a layer at some of the points."""
        return self._sums(level, at, gamma[some], boost[some])

    def chain(self, gamma: Array) -> Chain:
        return Chain(*self._beginning(gamma), tuple(link for _, link in self._links(gamma)))

    @cached_property
    def _first(self) -> int:
        """The first level that is a link of the chain, beyond the last one that sees nothing."""
        blind = [i for i, (_, kappa_1, _) in enumerate(self.kappas, start=1) if kappa_1 == 0.0]
        return max(blind, default=0) + 1

    def _links(self, gamma: Array) -> Iterator[tuple[int, Link]]:
        """Levels and links from the beginning of the chain to the features."""
        for level in range(self._first, len(self.layers) + 1):
            F, (_, kappa_1, kappa_star) = self.layers[level - 1].projection, self.kappas[level - 1]
            d, p = self._size(level - 1, gamma), self._size(level, gamma)
            link = Link(p, None, None, kappa_1, kappa_star**2 / p, self.variances[level - 1])
            if F.stacks:
                link = replace(link, stretching=F.stretching(d, p), received=F.received(d, p))
            yield level, link

    def _beginning(self, gamma: Array) -> tuple[PairsOf, Array]:
        """The sums of what the first link is above, and their largest eigenvalue."""
        if self._first > 1:  # a layer of noise, as far as the field is concerned
            size = self._size(self._first - 1, gamma)
            noise = self.kappas[self._first - 2][2] ** 2 / size
            return partial(noise_pair, noise=noise, p=size), noise
        if self.inputs is not None:
            given = partial(in_units_of, self.inputs.pair_sums)
            return of_any_shape(given, gamma, gamma), self.inputs.largest(gamma) / gamma
        projection, p = self.layers[0].projection, self._size(1, gamma)
        if projection.stacks:
            return partial(white_pair, d=gamma), 1.0 / gamma
        linear = partial(in_units_of, projection.linear_pair)
        return of_any_shape(linear, gamma / p, p), projection.largest(gamma / p) / p

    def largest(self, gamma: Array) -> Array:
        chain = self.chain(gamma)
        u = edge(lambda some: self.chain(gamma[some]), chain.largest)
        return -chain.outwards(-u).k[-1]

    def _size(self, level: int, gamma: Array) -> Array:
        """Neurons of a layer, in units of the number of features; level 0 is that of the data."""
        if level == 0:
            return gamma
        width = self.layers[level - 1].width
        return np.ones_like(gamma) if width is None else width * gamma

    def check_redrawn(self) -> None:
        for layer in self.layers:
            if isinstance(layer.projection, projections.Matrix):
                raise IncompatibleIngredientsError(
                    f"features of a given matrix, {shown(layer.projection)}, are not drawn at "
                    "random, and so not independently: choose a random projection, or fits on "
                    "independent samples"
                )

    def numbers_drawn(self, rows: int, d: int, p: int) -> float:
        sizes = self._sizes(d, p)
        layers = zip(self.layers, pairwise(sizes), strict=True)
        matrices = sum(layer.projection.numbers_drawn(rows, *pair) for layer, pair in layers)
        return matrices + rows * sum(sizes[1:-1])

    def _sizes(self, d: int, p: int) -> list[int]:
        """Whole numbers of neurons, from the latent data to the features."""
        hidden = [max(1, round(layer.width * d)) for layer in self.layers if layer.width]
        return [d, *hidden, p]

    def _maps(self, d: int, p: int, rng: np.random.Generator) -> tuple[LinearMap, ...]:
        layers = zip(self.layers, pairwise(self._sizes(d, p)), strict=True)
        return tuple(layer.projection.sample(*pair, rng) for layer, pair in layers)

    def redrawn(self, drawn: Drawn, p: int, rng: np.random.Generator) -> DrawnLayers:
        d = len(drawn.inputs.field_covariance)
        return DrawnLayers(drawn.inputs, self, self._maps(d, p, rng))

    def draw(self, d: int, p: int, rho: float, rng: np.random.Generator) -> DrawnLayers:
        maps = self._maps(d, p, rng)
        if self.inputs is None:
            return DrawnLayers(White.drawn(d, rho, rng), self, maps)
        return DrawnLayers(self.inputs.draw(d, d, rho, rng).inputs, self, maps)


@dataclass(frozen=True)
class DrawnLayers(Drawn):
    """The matrices of all layers, above the data."""

    network: Layered
    maps: tuple[LinearMap, ...]

    def features(self, c: Array, rng: np.random.Generator, *, equivalent: bool) -> Array:
        x = c
        layers = zip(self.network.layers, self.network.kappas, self.maps, strict=True)
        for layer, (kappa_0, kappa_1, kappa_star), F in layers:
            h = F.left(x) / np.sqrt(x.shape[1])
            if equivalent:
                x = kappa_0 + kappa_1 * h + kappa_star * rng.standard_normal(h.shape)
            else:
                x = layer.activation(h)
        return x

    def constant(self, w: Array) -> float:
        return float(self.network.mean * w.sum() / np.sqrt(len(w)))

    def latent_weights(self, w: Array) -> Array:
        for (_, kappa_1, _), F in reversed(list(zip(self.network.kappas, self.maps, strict=True))):
            w = kappa_1 * F.right(w) / np.sqrt(len(w))
        return w

    def overlaps(self, w: Array) -> dict[str, float]:
        Q = 0.0
        layers = zip(self.network.kappas, self.maps, strict=True)
        for (_, kappa_1, kappa_star), F in reversed(list(layers)):
            Q += kappa_star**2 * float(w @ w) / len(w)
            s = F.right(w) / np.sqrt(len(w))
            w = kappa_1 * s
        below, linear = self.inputs.overlaps(w), self.inputs.overlaps(s)
        found = {"q_s": linear["Q"], "m_s": linear["M"], "Q": Q + below["Q"], "M": below["M"]}
        return {name: found[name] for name in self.network.measured_overlaps}


@dataclass(frozen=True)
class RandomFeatures(Layered):
    r"""Features :math:`x = \sigma(F^\top c/\sqrt d)` of white latent data c.

    Parameters
    ----------
    activation : str, Activation or callable
        The nonlinearity σ.
    projection : str or Projection
        The matrix F.
    """

    measured_overlaps = ("q_s", "m_s", "Q", "M")

    activation: activations.Activation
    projection: projections.Projection
    layers: tuple[Layer, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        layer = Layer(self.activation, self.projection)
        object.__setattr__(self, "activation", layer.activation)
        object.__setattr__(self, "projection", layer.projection)
        object.__setattr__(self, "layers", (layer,))

    def as_arguments(self) -> dict[str, object]:
        return {"activation": self.activation, "projection": self.projection}

    def further_overlaps(self, at: SpectralArguments) -> Columns:
        r"""Overlaps of :math:`s = Fw/\sqrt p`: its square and teacher overlap per d, and responses.

        With :math:`\omega = \kappa_1^2 s + \kappa_\star^2` the directions of S have
        :math:`s(1-r) = k\tilde r/\kappa_1^2` and :math:`\omega(1-r) = kr`.
        """
        _, kappa_1, kappa_star = self.activation.kappas
        sums = self.sums(at.k, at.gamma)
        V_w = sums.unlearned / (at.k * at.alpha * at.e1)
        if self.blind:  # w knows nothing of F, whose columns have squared norm d
            return {"q_s": at.noise * sums.D11 / at.k, "m_s": 0.0 * V_w, "V_s": V_w, "V_w": V_w}
        k1, ks = kappa_1**2, kappa_star**2
        inner = self.projection.linear((at.k + ks) / k1, at.gamma)
        both = (ks * inner.D1 + at.k * inner.D20) / (at.k + ks)
        return {
            "q_s": (at.noise * both + at.rho * at.a**2 / at.gamma * inner.D20) / k1,
            "m_s": at.rho * at.a * sums.T1 / kappa_1,
            "V_s": inner.D1 / (at.alpha * at.e1 * k1),
            "V_w": V_w,
        }


@dataclass(frozen=True, init=False)
class Deep(Layered):
    r"""Features :math:`x_l = \sigma_l(F_l^\top x_{l-1}/\sqrt{p_{l-1}})` of white data :math:`x_0`.

    Parameters
    ----------
    layers : sequence of Layer
        From the data to the features; each but the last states its `width`.

    Raises
    ------
    InvalidArgumentError
        If a width is missing or superfluous, a matrix has no theory above another layer, or the
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
            raise InvalidArgumentError.because(
                "width",
                "of the last layer cannot be chosen",
                "leave it out: its neurons are the p features",
            )
        for layer in self.layers[1:]:
            if not layer.projection.stacks:
                raise InvalidArgumentError.because(
                    "projection",
                    f"{shown(layer.projection)} cannot follow another layer",
                    "use it in the first layer, or choose another kind",
                )
        for layer, (kappa_0, *_) in zip(hidden, self.kappas, strict=False):
            if layer.width is None:
                raise InvalidArgumentError.because(
                    "width", "is missing", "every layer but the last needs one"
                )
            fixed = layer.projection.fixed_ratio
            if fixed is not None and not np.isclose(fixed * layer.width, 1.0, rtol=1e-9):
                raise InvalidArgumentError(
                    "width", layer.width, f"{1 / fixed:.12g}: the projection fixes it"
                )
            if kappa_0 != 0.0:
                raise InvalidArgumentError.because(
                    "activation",
                    f"{shown(layer.activation)} has mean {kappa_0:.4g}",
                    "below other layers its mean must be zero",
                )
