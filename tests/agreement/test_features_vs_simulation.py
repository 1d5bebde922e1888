"""The theory of deep features, given covariances and kernels predicts what exact fits measure."""

import numpy as np
import pytest

import hiddenmanifold as hm
from given import power_law
from hiddenmanifold.features import Deep, Kernel, Layer, Projected
from seeds import sampled

QUANTITIES = ("generalisation_error", "training_loss", "Q", "M", "q_w")
SEEDS, ROOT, WORST = 16, 3, 4.0
Sign, Logistic, Linear = hm.teachers.Sign, hm.teachers.Logistic, hm.teachers.Linear
Mixture = hm.teachers.Mixture

TWO = Deep([Layer("tanh", width=1.5), Layer("erf")])
NARROW = Deep([Layer("erf", "orthogonal", width=0.5), Layer("sign")])
MIXED = Deep([Layer("sign", width=1.25), Layer("tanh", "orthogonal")])
THREE = Deep([Layer(np.sin, width=2.0), Layer("tanh", width=1.5), Layer("erf")])
RELU = Deep([Layer("erf", width=1.5), Layer("identity", "orthogonal", width=0.75), Layer("relu")])
DECAYING, DRAWN = power_law(240, hidden=0.2), power_law(240, hidden=0.1, drawn_teacher=True)
STEEP = power_law(240, hidden=0.3, rho=1.6, decay=1.2)
SKETCH, SUBSET = Projected(DECAYING), Projected(DECAYING, "identity", "orthogonal")
NEURONS = Projected(power_law(240, hidden=0.1, decay=0.4), "tanh")
TANGENT, DEEP_TANGENT = Kernel("ntk"), Kernel(hm.kernels.NTK("tanh", hidden_layers=3))
WIDE = Kernel(hm.kernels.NNGP("relu", 2, weight_variance=1.5, bias_variance=0.2))
OWN = Kernel(np.sinh)

# features, d, n/d, p/d (None: fixed), teacher, loss, λ, kinds of data
CONFIGURATIONS = {
    "two square": (TWO, 210, 2.0, 4 / 3, Linear(noise=0.2), "square", 0.05, "original"),
    "two logistic": (TWO, 210, 2.0, 4 / 3, Sign(noise=0.2), "logistic", 0.1, "both"),
    "bottleneck hinge": (NARROW, 240, 1.5, 2.0, Sign(), "hinge", 0.1, "original"),
    "orthogonal logistic": (
        MIXED,
        240,
        2.0,
        0.75,
        Logistic(slope=2.0),
        "logistic",
        0.02,
        "original",
    ),
    "three square": (THREE, 200, 2.5, 1.5, Sign(flip=0.05), "square", 0.1, "original"),
    "three logistic": (THREE, 200, 3.0, 1.5, Sign(), "logistic", 0.02, "equivalent"),
    "relu logistic": (RELU, 240, 2.0, 1.0, Sign(threshold=0.4), "logistic", 0.05, "original"),
    "covariance square": (DECAYING, 240, 1.5, None, Linear(noise=0.2), "square", 0.1, "original"),
    "covariance logistic": (
        DECAYING,
        240,
        2.0,
        None,
        Sign(noise=0.1),
        "logistic",
        0.05,
        "original",
    ),
    "covariance hinge": (STEEP, 240, 1.5, None, Sign(rho=1.6), "hinge", 0.1, "original"),
    "covariance few samples": (STEEP, 240, 0.5, None, Linear(rho=1.6), "square", 1e-3, "original"),
    "drawn teacher": (DRAWN, 240, 1.5, None, Logistic(), "logistic", 0.1, "original"),
    "sketch square": (SKETCH, 240, 1.5, 1.5, Linear(noise=0.2), "square", 0.1, "original"),
    "sketch classes": (SKETCH, 240, 1.5, 0.75, Mixture(0.4), "logistic", 0.1, "original"),
    "subset hinge": (SUBSET, 240, 2.0, 0.5, Sign(noise=0.1), "hinge", 0.2, "original"),
    "neurons logistic": (NEURONS, 240, 1.5, 1.25, Sign(noise=0.1), "logistic", 0.1, "both"),
    "classes logistic": (DECAYING, 240, 1.5, None, Mixture(0.3), "logistic", 0.1, "original"),
    "classes hinge": (STEEP, 240, 2.0, None, Mixture(0.5, 1.6), "hinge", 0.3, "original"),
    "classes of few": (STEEP, 240, 0.5, None, Mixture(0.7, 1.6), "square", 0.05, "original"),
    "tangent square": (TANGENT, 240, 2.0, None, Linear(noise=0.2), "square", 0.1, "both"),
    "tangent hinge": (DEEP_TANGENT, 240, 1.5, None, Sign(noise=0.1), "hinge", 0.05, "original"),
    "wide logistic": (WIDE, 240, 1.5, None, Sign(threshold=0.4), "logistic", 0.1, "both"),
    "rbf classes": (Kernel("rbf"), 240, 1.5, None, Mixture(0.4), "logistic", 0.1, "original"),
    "laplace huber": (
        Kernel("laplace"),
        240,
        1.25,
        None,
        Linear(noise=0.2),
        "huber",
        0.1,
        "original",
    ),
    "polynomial counts": (
        Kernel("polynomial"),
        240,
        2.0,
        None,
        hm.teachers.Poisson(slope=0.5),
        "poisson",
        1.0,
        "original",
    ),
    "own logistic": (OWN, 240, 0.5, None, Logistic(slope=2.0), "logistic", 0.01, "original"),
    "deep classes": (MIXED, 240, 2.0, 0.75, Mixture(0.4, 2.0), "squared_hinge", 0.1, "original"),
}
CASES = [
    (name, data)
    for name, (*_, kinds) in CONFIGURATIONS.items()
    for data in (("original", "equivalent") if kinds == "both" else (kinds,))
]
# features and losses of which other cases have each with another one
TWICE = {"two square", "three logistic", "orthogonal logistic", "covariance square"}
TWICE |= {"covariance hinge", "sketch square", "classes logistic", "tangent square"}
TYPICAL = [case for case in CASES if case[0] not in TWICE]


def test_every_kernel_has_a_configuration():
    drawn = [CONFIGURATIONS[name][0] for name, _ in TYPICAL]
    kernels = {type(features.function) for features in drawn if features.infinite}
    assert kernels >= set(hm.kernels.REGISTRY.values())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), sampled(CASES, TYPICAL))
def test_theory_predicts_simulations(name, data):
    features, d, n_over_d, p_over_d, teacher, loss, lam, _ = CONFIGURATIONS[name]
    model = hm.Model(features=features, teacher=teacher, loss=loss)
    ratios = {"n_over_d": n_over_d} | ({} if p_over_d is None else {"p_over_d": p_over_d})
    options = {"d": d, "seeds": SEEDS, "seed": ROOT, "data": data, "n_test": 1000, "workers": 1}
    out = hm.compare(model, **ratios, regularisation=lam, **options)
    assert int(out.dropped) == 0
    far = {
        q: (float(out[q]), float(out[f"{q}_theory"]), z)
        for q in QUANTITIES
        if not abs(z := float(out[f"{q}_z"])) <= WORST
    }
    assert not far, f"(measured, theory, z): {far}"
