r"""Samples of classes that are the largest of K fields: points of fields and of scores together.

As classes are alike, those of a sample may be renamed so that its own is the first. Without noise
the fields are drawn with the first as the largest: :math:`\nu_1 = \Phi^{-1}(t_1^{1/K})` and
:math:`\nu_k = \Phi^{-1}(t_k\Phi(\nu_1))` of numbers t between 0 and 1, so that no point is wasted.
With noise every class is the own one in turn, with its probability given the fields.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.teachers.classes_of_fields import FieldClasses
from hiddenmanifold.theory.classes.orthants import SCRAMBLES, sobol_points
from hiddenmanifold.theory.classes.proximal_scores import contrasts_of
from hiddenmanifold.theory.classes.softmax_classes import OwnFirst

NUMBERS, TOGETHER = (2**7, 2**9, 2**11), 2**14
"""Sobol points of each set, tried one after another, and most scores of a set."""
STEPS, ORDERS = (0.2, 0.05, 0.0125), (16, 24, 40)
"""For two classes, steps of grids over scores, and orders of sums over each panel of the fields."""
EDGES = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 9.0)
"""Edges of these panels."""
WIDTH = 8.5
"""Range of the grids."""


def samples_of_fields(teacher: FieldClasses) -> Iterator[OwnFirst]:
    """Samples with fields, ever more of them."""
    K = teacher.number
    if K == 2:  # noqa: PLR2004
        for step, order in zip(STEPS, ORDERS, strict=True):
            yield _own_first(teacher, *_grids(step, order))
        return
    each = K if teacher.temperature else 1
    for points in NUMBERS:
        if points == NUMBERS[0] or points * K * each <= TOGETHER:
            yield _own_first(teacher, *_points(K, points))


def _own_first(teacher: FieldClasses, nu: Array, z: Array, weights: Array) -> OwnFirst:
    """Samples of standard fields, the first of which is the largest, with all their labels."""
    K, scale = teacher.number, float(np.sqrt(teacher.rho))
    nu, z = nu - nu.mean(-1, keepdims=True), z @ contrasts_of(K).T
    start = K * teacher.advantage / ((K - 1.0) * teacher.rho)
    if not teacher.temperature:
        return OwnFirst(z, weights, scale * nu, teacher.rho, start)
    e = np.exp((nu - nu[..., :1]) * (scale / teacher.temperature))
    chance = e / e.sum(-1, keepdims=True)
    swaps = [np.arange(K) for _ in range(K)]
    for k, swap in enumerate(swaps):
        swap[[0, k]] = k, 0
    nu, z = (np.concatenate([part[..., swap] for swap in swaps], axis=1) for part in (nu, z))
    weights = np.concatenate([weights * chance[..., k] for k in range(K)], axis=1)
    return OwnFirst(z, weights, scale * nu, teacher.rho, start)


def _points(K: int, points: int) -> tuple[Array, Array, Array]:
    """Standard fields, of which the first is the largest, and standard contrasts of scores."""
    from scipy.special import ndtr, ndtri

    t = sobol_points(2 * K - 1, points // 2, key=K)
    first = ndtri(t[..., :1] ** (1.0 / K))
    nu = np.concatenate([first, ndtri(t[..., 1:K] * ndtr(first))], axis=-1)
    z = ndtri(t[..., K:])
    nu, z = np.concatenate([nu, nu], axis=1), np.concatenate([z, -z], axis=1)
    return nu, z, np.full((SCRAMBLES, 2 * (points // 2)), 0.5 / (points // 2))


def _grids(step: float, order: int) -> tuple[Array, Array, Array]:
    """The same for two classes: two grids of scores, half a step apart, and sums over fields."""
    found = []
    for shift, more in ((0.0, 0), (0.5, 4)):
        x, w = np.polynomial.legendre.leggauss(order + more)
        left, width = np.array(EDGES[:-1])[:, None], np.diff(EDGES)[:, None]
        gap, weight = (left + 0.5 * width * (1.0 + x)).ravel(), (0.5 * width * w).ravel()
        weight = weight * np.exp(-0.5 * gap**2) * np.sqrt(2.0 / np.pi)
        z = step * (np.arange(-np.ceil(WIDTH / step), np.ceil(WIDTH / step)) + shift)
        density = np.exp(-0.5 * z**2) * step / np.sqrt(2.0 * np.pi)
        both = np.meshgrid(gap, z, indexing="ij")
        nu = np.stack([both[0], -both[0]], axis=-1).reshape(-1, 2) / np.sqrt(2.0)
        found.append((nu, both[1].reshape(-1, 1), np.outer(weight, density).ravel()))
    size = max(len(weights) for *_, weights in found)
    padded = [[_padded(part, size) for part in parts] for parts in found]
    nu, z, weights = (np.array(part) for part in zip(*padded, strict=True))
    return nu, z, weights


def _padded(values: Array, size: int) -> Array:
    """An array with zeros behind it: samples without weight."""
    found = np.zeros((size, *values.shape[1:]))
    found[: len(values)] = values
    return found
