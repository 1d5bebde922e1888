"""Sums at two arguments: against those at one, divided differences in many digits, and matrices."""

import mpmath as mp
import numpy as np
import pytest

import spectral_oracle as oracle
from given import EXAMPLES, Given, power_law
from hiddenmanifold.features import Covariance, Deep, Kernel, Layer, Projected, RandomFeatures
from hiddenmanifold.features.kernel_machine import INFINITE
from hiddenmanifold.features.spectral_sums import FAINT
from spectral_oracle import Stage

KINDS = EXAMPLES | {
    "orthogonal": RandomFeatures("erf", "orthogonal"),
    "linear": Deep([Layer("tanh", width=1.5), Layer("identity", "orthogonal")]),
    "blind": RandomFeatures(Given((0.0, 0.0, 1.0)), "gaussian"),
}
every_kind = pytest.mark.parametrize("features", KINDS.values(), ids=KINDS)
NAMES = ("D_rr", "D_rs", "D_sr", "D_ss", "T_rr", "T_rs", "T_sr", "T_ss", "W")
AT_ONE = {
    "D_rr": "D20",
    "D_rs": "D11",
    "D_sr": "D11",
    "D_ss": "D02",
    "T_rr": "T20",
    "T_rs": "T11",
    "T_sr": "T11",
    "T_ss": "T02",
    "D1": "D1",
    "D1_other": "D1",
    "D2": "D20",
    "unlearned": "unlearned",
    "unlearned_other": "unlearned",
    "T1": "T1",
    "T2": "T20",
    "U1": "U1",
    "U2": "T02",
}
RANGE = np.concatenate([[FAINT, 1e-50], 10.0 ** np.arange(-12.0, 13.0, 2.0), [1e60, 1e90]])


def gammas(features, k, gamma=0.8):
    return np.full(k.shape, features.fixed_ratio or gamma)


# one argument


@every_kind
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_equal_arguments_give_the_sums_at_one(features, gamma):
    at = gammas(features, RANGE, gamma)
    found, expected = features.pair_sums(RANGE, RANGE, at), features.sums(RANGE, at)
    for name, other in AT_ONE.items():
        value = getattr(expected, other)
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-13, err_msg=name)
    np.testing.assert_allclose(found.W, expected.W, rtol=1e-13, atol=1e-15)


@every_kind
def test_each_argument_has_its_own_sums(features):
    k, other = (mesh.ravel() for mesh in np.meshgrid(RANGE, RANGE))
    gamma = gammas(features, k)
    found = features.pair_sums(k, other, gamma)
    first, second = features.sums(k, gamma), features.sums(other, gamma)
    for name in NAMES:
        assert (getattr(found, name) >= 0).all(), name
    exchanged = features.pair_sums(other, k, gamma)
    for name in ("D1", "unlearned", "T1", "U1"):
        for pair, sums in ((found, first), (exchanged, second)):
            expected = getattr(sums, name)
            np.testing.assert_allclose(getattr(pair, name), expected, rtol=1e-12, err_msg=name)
    for name in ("D1_other", "unlearned_other"):
        expected = getattr(second, name.removesuffix("_other"))
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-12, err_msg=name)
    for name, mirrored in (("D_rr", "D_rr"), ("D_rs", "D_sr"), ("T_sr", "T_rs"), ("W", "W")):
        value = getattr(exchanged, mirrored)
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-12, atol=1e-15)


@every_kind
def test_the_argument_of_a_real_number_is_real(features):
    k = 10.0 ** np.arange(-6.0, 7.0)
    gamma = gammas(features, k)
    real = features.pair_sums(k, k[::-1], gamma)
    mixed = features.pair_sums(k.astype(complex), k[::-1], gamma)
    for name in NAMES:
        value = getattr(real, name)
        np.testing.assert_allclose(getattr(mixed, name), value, rtol=1e-12, atol=1e-15)


# two arguments


def test_a_covariance_sums_over_its_directions():
    w, t, rho = np.array([2.0, 0.5, 0.0, 1e-3]), np.array([0.6, 0.2, 0.0, 1e-4]), 1.1
    features, p = Covariance(w, t, rho), 4
    k, other = np.array([0.3, 1e-6, 2.0 + 1.0j]), np.array([7.0, 1e-3 - 1.0j, 2.0 - 1.0j])
    found = features.pair_sums(k, other, np.ones(3))
    positive = w > 0
    tau = np.divide(t, rho * w, where=positive, out=np.zeros(p))
    (r, s), (rr, ss) = (
        (p * w / (p * w + at), at / (p * w + at)) for at in (k[:, None], other[:, None])
    )
    hidden = 1.0 - tau.sum()
    for name, product in {"rr": r * rr, "rs": r * ss, "sr": s * rr, "ss": s * ss}.items():
        unseen = hidden if name == "ss" else 0.0
        np.testing.assert_allclose(getattr(found, f"D_{name}"), product.mean(-1), rtol=1e-12)
        np.testing.assert_allclose(getattr(found, f"T_{name}"), product @ tau + unseen, rtol=1e-12)
    np.testing.assert_allclose(found.W, (r * rr) @ tau - (r @ tau) * (rr @ tau), rtol=1e-10)
    alike = Covariance((1.0, 1.0), (0.6, 0.2)).pair_sums(k, other, np.ones(3))
    assert (np.abs(alike.W - 0.2 * 0.8 / ((1 + 0.5 * k) * (1 + 0.5 * other))) < 1e-15).all()


def test_a_kernel_has_directions_of_its_linear_part_and_a_constant():
    features = Kernel("ntk")
    _, kappa_1, kappa_star = features.kappas
    k, other = np.array([0.2, 3.0 + 1.0j]), np.array([5.0, 1e-2 - 1e-3j])
    found = features.pair_sums(k, other, np.ones(2))
    r, rr = (kappa_1**2 / (kappa_1**2 + at) for at in (k, other))
    np.testing.assert_allclose(found.D_rr, r * rr, rtol=1e-13)
    np.testing.assert_allclose(found.D_rs, r * (1 - rr) + kappa_star**2 / k, rtol=1e-13)
    np.testing.assert_allclose(found.D_sr, (1 - r) * rr + kappa_star**2 / other, rtol=1e-13)
    np.testing.assert_allclose(found.D_ss, INFINITE, rtol=1e-13)
    np.testing.assert_allclose(found.T_ss, (1 - r) * (1 - rr), rtol=1e-13)


def walked(stages, u):
    """The outermost argument that belongs to an innermost one of white data, D1, T1 and p.

    None if an argument on the way leaves the half plane, so that it belongs to no kernel.
    """
    upper = mp.sign(mp.im(u))
    size, D, T = mp.mpf(1), 1 / (1 + u), 1 / (1 + u)
    for stage in stages:
        p, k1, ks = (mp.mpf(v) for v in (stage.size, stage.kappa_1, stage.kappa_star))
        if stage.kind == "gaussian":
            u = u * (1 - D / p)
        elif p < size:
            u = u * (1 - D / p) / (1 - D / size)
        received, u = u, u * k1**2 - ks**2 / p
        for at in (received, u):
            if mp.sign(mp.im(at)) != upper or (not upper and (mp.re(at) <= 0 or mp.re(D) >= p)):
                return None
        phi = u / (u + ks**2 / p)
        D, size = (1 - phi) * p + phi * D, p
    return u, D, T, size


def divided_differences(first, second):
    """The sums at two arguments, from D1 and T1 at each."""
    (k, D, T, p), (other, DD, TT, _) = first, second
    out = {}
    for letter, value, last, size in (("D", D, DD, p), ("T", T, TT, 1)):
        shared = (value - last) / (other - k)
        out[f"{letter}_rs"], out[f"{letter}_sr"] = other * shared, k * shared
        out[f"{letter}_rr"] = value - other * shared
        out[f"{letter}_ss"] = size - value - k * shared
    return out | {"W": out["T_rr"] - T * TT}


def chains(rng, count, turned):
    """Random layers above white data, and what two innermost arguments lead to."""
    while count:
        stages = [
            Stage(
                rng.choice(["gaussian", "orthogonal"]),
                rng.choice([1.0, 0.3, 4.0]),
                rng.choice([0.0, 1.0, 0.2, 1e-3]),
                rng.choice([1.0, 2.0, 10.0 ** rng.uniform(-1.0, 1.0)]),
            )
            for _ in range(rng.integers(1, 5 if turned else 3))
        ]
        u = mp.mpf(10.0 ** rng.uniform(-6.0, 4.0))
        v = mp.mpf(10.0 ** rng.uniform(-6.0, 4.0))
        if rng.random() < 0.4:
            v = u * (1 + mp.mpf(10.0 ** rng.uniform(-13.0, 0.0)))
        found = [walked(stages, at * mp.expj(turned * rng.uniform(-3.0, 3.0))) for at in (u, v)]
        # close to the negative axis, where the spectrum is, sums have few digits
        if None not in found and all(abs(mp.arg(k)) < 3.0 for k, *_ in found):
            count -= 1
            yield stages, *found


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True], ids=["positive", "complex"])
def test_sums_are_divided_differences(turned):
    rng = np.random.default_rng(3)
    with mp.workdps(120):
        for stages, first, second in chains(rng, 100, turned):
            coefficients = [Given((0.0, s.kappa_1, s.kappa_star)) for s in stages]
            *hidden, last = zip(coefficients, stages, strict=True)
            below = [Layer(sigma, str(s.kind), width=s.size) for sigma, s in hidden]
            features, p = Deep([*below, Layer(last[0], str(last[1].kind))]), last[1].size
            k, other = (np.array([complex(at * p)]) for at in (first[0], second[0]))
            k, other = (k, other) if turned else (k.real, other.real)
            sums = features.pair_sums(k, other, np.array([1.0 / p])).in_units(p)
            for name, value in divided_differences(first, second).items():
                slack = 1e-14 if name == "W" else 0.0  # which may be zero
                unit = 1e-10 * abs(complex(value)) + slack
                assert abs(getattr(sums, name)[0] - complex(value)) <= unit, (name, stages)


DRAWN = {
    "gaussian": [Stage("gaussian", 0.8, 0.5, 1.5)],
    "orthogonal": [Stage("orthogonal", 1.0, 0.3, 0.7)],
    "deep": [Stage("gaussian", 0.9, 0.3, 1.25), Stage("orthogonal", 0.8, 0.4, 0.75)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_sums_are_those_of_one_large_matrix(name):
    d, layers = 600, DRAWN[name]
    scaled = [Stage(s.kind, s.kappa_1, s.kappa_star, round(s.size * d)) for s in layers]
    w, tau, p = oracle.measures(*oracle.drawn(d, scaled, np.random.default_rng(5)))
    parts = [(Given((0.0, s.kappa_1, s.kappa_star)), s.kind, s.size) for s in layers]
    features = Deep(
        [*(Layer(a, m, width=size) for a, m, size in parts[:-1]), Layer(*parts[-1][:2])]
    )
    check_against_matrix(features, w, tau, p, d / p)


@pytest.mark.slow
def test_sums_of_projected_covariates_are_those_of_one_large_matrix():
    d, p = 600, 450
    inputs, rng = power_law(d), np.random.default_rng(6)
    w, t = np.array(inputs.eigenvalues), np.array(inputs.teacher_weights)
    F = rng.standard_normal((d, p))
    features = Projected(inputs, Given((0.0, 0.7, 0.4)))
    _, kappa_1, kappa_star = features.kappas[0]
    Omega = kappa_1**2 * F.T @ (w[:, None] * F) + kappa_star**2 * np.eye(p)
    w, v = np.linalg.eigh(Omega)
    signal = kappa_1 * np.sqrt(t)[:, None] * (F @ v)
    check_against_matrix(features, w, (signal**2).sum(0) / w, p, d / p)


def check_against_matrix(features, w, tau, p, gamma):
    k = np.array([0.01, 0.3, 1.0 + 1.0j, -0.5 + 0.5j, 4.0])
    other = np.array([2.0, 0.05 + 0.2j, 1.0 - 1.0j, 1.0, -1.0 - 2.0j])
    found = features.pair_sums(k, other, np.full(len(k), gamma))
    r, rr = (w / (w + at[:, None]) for at in (k, other))
    s, ss = 1 - r, 1 - rr
    blank, hidden = 1 - len(w) / p, 1 - tau.sum()
    for name, product in {"rr": r * rr, "rs": r * ss, "sr": s * rr, "ss": s * ss}.items():
        rest = name == "ss"
        for letter, value in (("D", product.sum(-1) / p + rest * blank), ("T", product @ tau)):
            expected = value + (letter == "T" and rest) * hidden
            distance = np.abs(getattr(found, f"{letter}_{name}") - expected)
            assert (distance < (0.002 if letter == "D" else 0.03)).all(), (letter, name)
