"""The moves that make features: identities, derivatives, and the matrices they stand for."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectral_oracle as oracle
from hiddenmanifold.features.projections import Gaussian, Orthogonal
from hiddenmanifold.features.spectral_sums import Sums, activated, discrete, white

PROPERTY = settings(max_examples=40)
STEP = 2e-3
STENCIL = STEP * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12 * STEP)  # differences of fourth order
NAMES = oracle.NAMES
POSITIVE = tuple(name for name in NAMES if name != "dW")
DERIVATIVES = {  # by log k
    "D1": lambda m: -m.D11,
    "T1": lambda m: -m.T11,
    "D20": lambda m: -2 * m.D21,
    "D02": lambda m: 2 * m.D12,
    "D11": lambda m: m.D21 - m.D12,
    "T20": lambda m: -2 * m.T21,
    "T02": lambda m: 2 * m.T12,
    "T11": lambda m: m.T21 - m.T12,
    "W": lambda m: m.dW,
}

ratios = st.floats(-2.5, 2.5).map(lambda x: 10.0**x) | st.sampled_from([0.5, 1.0, 2.0])
projection = st.tuples(st.sampled_from([Gaussian(), Orthogonal()]), ratios)
coefficients = st.tuples(
    st.just(0.0), st.sampled_from([1.0, 0.3, 4.0, 1e-3]), st.sampled_from([0.0, 1.0, 0.2, 1e-4])
)
layers = st.lists(st.tuples(projection, coefficients), min_size=1, max_size=3)
atoms = st.none() | st.lists(
    st.tuples(*(st.floats(-3.0, 3.0).map(lambda x: 10.0**x) for _ in range(3))),
    min_size=1,
    max_size=4,
)
arguments = st.floats(-8.0, 6.0).map(lambda x: np.array([10.0**x]))


def latent(atoms):
    """The sums of white data, or of data of a few eigenvalues of which a quarter is hidden."""
    if atoms is None:
        return lambda k: white(k, np.ones_like(k))
    w, share, tau = np.array(atoms).T
    share, tau = share / share.sum(), 0.75 * tau / tau.sum()
    return lambda k: discrete(k, w, share, tau)


def made(atoms, layers, boost=1.0):
    """The sums of features made by moves from one unit of latent directions, and their number."""
    start = latent(atoms)
    features, size = (lambda k: start(k / boost)), 1.0
    for (projection, p), kappas in layers:
        features = layered(features, projection, size, p, kappas)
        size = p
    return features, size


def layered(below, projection, d, p, kappas):
    def received(k):
        sizes = {"d": np.full_like(k, d), "p": np.full_like(k, p)}
        return projection.of_layer(lambda at, _: below(at), k, **sizes)

    return lambda k: activated(received, k, kappas, p)


def test_every_sum_has_a_reference():
    assert tuple(f.name for f in fields(Sums)) == NAMES


@pytest.mark.slow
@PROPERTY
@given(atoms, layers, arguments)
def test_sums_are_not_negative_and_add_up(atoms, layers, k):
    features, size = made(atoms, layers)
    m = features(k)
    for name in POSITIVE:
        assert getattr(m, name) >= 0, name
    np.testing.assert_allclose(m.T1 + m.U1, 1.0, rtol=1e-12)
    np.testing.assert_allclose(m.D1 + m.unlearned, size, rtol=1e-12)
    np.testing.assert_allclose(m.A + m.S, m.T1, rtol=1e-12)
    np.testing.assert_allclose(m.T20 - m.T1**2, m.W, atol=1e-13 * m.T20[0])
    assert m.left <= m.unlearned * (1 + 1e-12)


@pytest.mark.slow
@PROPERTY
@given(atoms, layers, arguments)
def test_derivatives_are_those_of_the_values(atoms, layers, k):
    m = made(atoms, layers)[0](k * np.exp(STENCIL))
    for name, derivative in DERIVATIVES.items():
        values, expected = getattr(m, name), derivative(m)[2]
        found = WEIGHTS @ values
        assert abs(found - expected) <= 1e-8 * max(values[2], abs(expected)), name


@pytest.mark.slow
@PROPERTY
@given(atoms, layers, arguments, st.sampled_from([1.0, 7.0, 1e5]))
def test_brighter_data_are_those_of_a_larger_variance(atoms, layers, k, boost):
    m = [made(atoms, layers, boost * np.exp(h))[0](k) for h in STENCIL]
    for name, expected in (("D1", m[2].B), ("T1", m[2].A)):
        values = np.array([getattr(sums, name)[0] for sums in m])
        assert abs(WEIGHTS @ values - expected) <= 1e-8 * values[2], name


@pytest.mark.slow
@PROPERTY
@given(atoms, projection, arguments, ratios)
def test_features_are_ridge_estimators_of_less_the_more_they_are_penalised(atoms, layer, k, grow):
    features, _ = made(atoms, [(layer, (0.0, 1.0, 0.2))])
    less, more = features(k), features(k * (1.0 + grow))
    assert more.D1 < less.D1
    assert more.T1 < less.T1


@pytest.mark.parametrize("kind", [Gaussian(), Orthogonal()], ids=["gaussian", "orthogonal"])
@pytest.mark.parametrize("p", [2.0**-10, 0.5, 1.0, 1.25, 4.0, 2.0**10])
def test_projected_white_data_are_known_in_closed_form(kind, p):
    k = 10.0 ** np.arange(-30.0, 31.0, 3.0)
    sizes = np.ones_like(k), np.full_like(k, p)
    found = kind.of_layer(lambda at, _: white(at, np.ones_like(at)), k, d=sizes[0], p=sizes[1])
    expected = kind.linear(k * p, 1.0 / sizes[1]).in_units(sizes[1])
    for name in NAMES:
        unit = expected.W if name == "dW" else getattr(expected, name)
        error = np.abs(getattr(found, name) - getattr(expected, name))
        # of fewer orthogonal features W is what is hidden, in closed form known to rounding of one
        slack = 1e-15 if name in ("W", "dW", "T02", "D02") else 0.0
        assert (error <= 1e-12 * unit + slack).all(), name


@pytest.mark.slow
@PROPERTY
@given(
    st.lists(st.tuples(ratios, ratios, ratios), min_size=1, max_size=5),
    coefficients,
    arguments,
)
def test_activation_of_given_directions_adds_noise_to_their_eigenvalues(atoms, kappas, k):
    w, share, tau = np.array(atoms).T
    share, tau = 0.6 * share / share.sum(), 0.7 * tau / tau.sum()  # others are blank, or hidden
    _, k1, ks = kappas
    found = activated(lambda at: discrete(at, w, share, tau), k, kappas)
    noisy = k1**2 * w + ks**2
    parts = noisy, share, tau * k1**2 * w / noisy
    if ks:
        parts = tuple(np.append(a, b) for a, b in zip(parts, (ks**2, 0.4, 0.0), strict=True))
    expected = discrete(k, *parts)
    for name in set(NAMES) - {"A", "B", "S", "dW"}:
        value = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(found, name), value, rtol=1e-12, atol=1e-14, err_msg=name
        )


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("ratio", [0.3, 0.8, 1.5])
def test_projection_of_given_directions_is_that_of_drawn_matrices(kind, ratio):
    """Three eigenvalues, one of them zero, and a teacher that prefers the smaller ones."""
    rng = np.random.default_rng(4)
    projection = {"gaussian": Gaussian(), "orthogonal": Orthogonal()}[kind]
    k, distance = np.array([1e-3, 0.1, 1.0, 10.0]), {}
    for d in (120, 480):
        p = round(ratio * d)
        values = np.repeat([3.0, 0.2, 0.0], [d // 4, d // 2, d // 4])
        teacher = np.repeat([0.3, 0.5, 0.2], [d // 4, d // 2, d // 4])
        teacher /= teacher.sum()
        F = oracle.matrix(kind, d, p, rng)
        Omega = F.T @ (values[:, None] * F) / d
        w, v = np.linalg.eigh(Omega)
        keep = w > 1e-10 * w[-1]
        # a field of independent coefficients along the directions below, as their parts say
        signal = np.sqrt(teacher * values)[:, None] * (F @ v[:, keep]) / np.sqrt(d)
        tau = (signal**2).sum(0) / w[keep]
        below = kernel_of(values, teacher, p)
        found = projection.of_layer(below, k, d=np.full_like(k, d / p), p=np.ones_like(k))
        off = []
        for i, at in enumerate(k):
            expected = oracle.sums(at, w[keep], tau, p)
            off += [getattr(found, name)[i] - value for name, value in expected.items()]
        distance[d] = np.sqrt(np.mean(np.square(off)))
    assert distance[480] < 1.5 / 480
    assert distance[480] < 0.6 * distance[120] + 1e-13


def kernel_of(values, teacher, p):
    """The sums of data of given variances, with p features as the unit of directions."""
    d, seen = len(values), values > 0
    w, share = values[seen] * p / d, np.full(seen.sum(), 1.0 / d)

    def kernel(at, _):
        return discrete(at, w, share, teacher[seen]).in_units(np.full_like(at, d / p))

    return kernel
