"""The theory predicts what exact fits on drawn data measure, for every ingredient."""

import numpy as np
import pytest
from scipy.special import expit

import hiddenmanifold as hm
from given import compared
from hiddenmanifold.checks import SCALAR_TASKS
from seeds import sampled

QUANTITIES = (
    "generalisation_error",
    "clean_error",
    "training_loss",
    "q_s",
    "q_w",
    "m_s",
    "Q",
    "M",
)
D, SEEDS, ROOT, N_TEST = 128, 32, 2, 2_000
WORST = 4.0  # standard errors


def custom_loss():
    return hm.losses.Custom(
        lambda m: np.logaddexp(m - 1.0, 1.0 - m),
        lambda m: np.tanh(m - 1.0),
        lambda m: 1.0 - np.tanh(m - 1.0) ** 2,
    )


def custom_teacher():
    return hm.teachers.Custom(lambda nu: 0.1 + 0.85 * expit(3.0 * nu + 0.5))


def matrix():
    """Columns of squared norm d, entries that are neither normal nor of one size."""
    rng = np.random.default_rng(11)
    F = rng.choice([-1.0, 1.0], (D, 5 * D // 4)) * rng.uniform(0.5, 1.5, (D, 1))
    return hm.projections.Matrix(F * np.sqrt(D) / np.linalg.norm(F, axis=0))


Sign, Logistic, Linear = hm.teachers.Sign, hm.teachers.Logistic, hm.teachers.Linear
Mixture = hm.teachers.Mixture
Real, Poisson, Gamma = hm.teachers.Real, hm.teachers.Poisson, hm.teachers.Gamma
NegativeBinomial, Binomial = hm.teachers.NegativeBinomial, hm.teachers.Binomial

# activation, projection, teacher, loss, intercept; n/d, p/n (None: fixed), λ
CONFIGURATIONS = {
    "sign gaussian sign logistic": ("sign", "gaussian", Sign(), "logistic", False, 2.0, 1.0, 1e-2),
    "erf orthogonal noise square": (
        ("erf", "orthogonal", Sign(noise=0.4), "square", False, 2.0, 0.75, 0.1)
    ),
    "tanh hadamard flip hinge": (
        ("tanh", "hadamard", Sign(flip=0.1), "hinge", False, 2.0, 0.5, 0.3)
    ),
    "sign hadamard wide square": (("sign", "hadamard", Sign(), "square", False, 2.0, 1.0, 0.1)),
    "erf hadamard odd size logistic": (
        ("erf", "hadamard", Logistic(slope=2.0), "logistic", False, 1.5, 1.25, 0.05)
    ),
    "hard_tanh dct logistic squared_hinge": (
        ("hard_tanh", "dct", Logistic(), "squared_hinge", False, 2.5, 0.35, 0.2)
    ),
    "sign dct wide hinge": ("sign", "dct", Sign(rho=0.5), "hinge", False, 1.6, 1.25, 0.1),
    "relu gaussian threshold logistic": (
        ("relu", "gaussian", Sign(threshold=0.5), "logistic", False, 2.0, 0.8, 0.02)
    ),
    "identity orthogonal smoothed_hinge": (
        ("identity", "orthogonal", Sign(noise=0.3, rho=2.0), "smoothed_hinge", False, 2.0, 0.6, 0.2)
    ),
    "erf gaussian intercept huber": (
        ("erf", "gaussian", Sign(threshold=-0.6, flip=0.05), "huber", True, 2.0, 0.75, 0.1)
    ),
    "tanh gaussian absolute": (
        ("tanh", "gaussian", Sign(noise=0.2), "absolute", False, 2.0, 0.7, 0.2)
    ),
    "erf gaussian linear square": (
        ("erf", "gaussian", Linear(noise=0.3, rho=1.7), "square", False, 1.8, 0.8, 0.05)
    ),
    "tanh orthogonal linear huber": (
        ("tanh", "orthogonal", Linear(noise=0.5), hm.losses.Huber(0.6), True, 2.0, 0.6, 0.1)
    ),
    "hard_tanh gaussian linear absolute": (
        ("hard_tanh", "gaussian", Linear(noise=0.2, rho=0.6), "absolute", False, 2.0, 0.8, 0.2)
    ),
    "erf orthogonal classes logistic": (
        ("erf", "orthogonal", Mixture(0.3, 2.0), "logistic", True, 2.0, 0.75, 0.05)
    ),
    "erf gaussian sign log_cosh": (
        ("erf", "gaussian", Sign(noise=0.3), "log_cosh", False, 2.0, 0.75, 0.1)
    ),
    "tanh gaussian laplace log_cosh": (
        ("tanh", "gaussian", Linear("laplace(0.5)"), "log_cosh", False, 2.0, 0.6, 0.1)
    ),
    "erf orthogonal relu quantile": (
        ("erf", "orthogonal", Real("relu", 0.2), hm.losses.Quantile(0.8), True, 2.0, 0.6, 0.2)
    ),
    "tanh gaussian student expectile": (
        ("tanh", "gaussian", Real("tanh", "student(5,0.5)"), hm.losses.Expectile(0.3))
        + (True, 2.0, 0.7, 0.2)
    ),
    "erf gaussian ordered insensitive": (
        ("erf", "gaussian", hm.teachers.Ordered(noise=0.3), hm.losses.Insensitive(0.3))
        + (True, 2.0, 0.6, 0.2)
    ),
    "tanh gaussian counts poisson": (
        ("tanh", "gaussian", Poisson(intercept=0.3, slope=0.5), "poisson", True, 2.0, 0.6, 0.5)
    ),
    "erf gaussian wide counts poisson": (
        ("erf", "gaussian", NegativeBinomial("softplus"), "poisson", True, 2.0, 0.6, 0.5)
    ),
    "relu gaussian successes binomial": (
        ("relu", "gaussian", Binomial(3, slope=1.5), hm.losses.Binomial(3), False, 2.0, 0.6, 0.2)
    ),
    "erf orthogonal positive gamma": (
        ("erf", "orthogonal", Gamma(shape=3.0, slope=0.5), "gamma", True, 2.0, 0.6, 0.3)
    ),
    "tanh gaussian log_normal square": (
        ("tanh", "gaussian", hm.teachers.LogNormal(variance=0.2, slope=0.4), "square")
        + (True, 2.0, 0.6, 0.2)
    ),
    "custom everything": (
        (lambda x: np.sin(x) + 0.3 * x**2, "gaussian", custom_teacher(), custom_loss())
        + (True, 2.0, 0.8, 0.1)
    ),
    "matrix": ("sign", matrix(), Logistic(slope=3.0, flip=0.05), "logistic", False, 2.0, None, 0.1),
    "spectrum": (
        "erf",
        hm.projections.Spectrum((2.0, 0.5), (1 / 3, 2 / 3), d_over_p=1.25),
        Sign(noise=0.3, threshold=0.4),
        "squared_hinge",
        True,
        2.0,
        None,
        0.1,
    ),
}
EQUIVALENT = (
    "sign gaussian sign logistic",
    "tanh hadamard flip hinge",
    "relu gaussian threshold logistic",
    "hard_tanh gaussian linear absolute",
    "custom everything",
    "spectrum",
)


def problem(name):
    return compared(CONFIGURATIONS[name])


def test_every_ingredient_is_compared_with_simulations():
    models = [problem(name)[0] for name in CONFIGURATIONS]
    for module, kind in (
        (hm.activations, "activation"),
        (hm.projections, "projection"),
        (hm.teachers, "teacher"),
        (hm.losses, "loss"),
    ):
        seen = {type(getattr(model, kind)) for model in models}
        known = {cls for name, cls in module.REGISTRY.items() if name != "softmax"}
        assert seen >= known, kind  # several classes have tests of their own
    for loss in hm.losses.REGISTRY.values():
        tasks = {model.task for model in models if isinstance(model.loss, loss)}
        assert tasks == loss.tasks & SCALAR_TASKS, loss


def assert_agreement(name, data):
    model, point = problem(name)
    draws = {"d": D, "seeds": SEEDS, "seed": ROOT, "n_test": N_TEST}
    out = hm.compare(model, **point, **draws, data=data, workers=1)
    assert int(out.dropped) == 0
    z = {q: float(out[f"{q}_z"]) for q in QUANTITIES}
    far = {
        q: (float(out[q]), float(out[f"{q}_theory"]), score)
        for q, score in z.items()
        if not abs(score) <= WORST
    }
    assert not far, f"(measured, theory, z): {far}"


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_theory_predicts_the_original_data(name):
    assert_agreement(name, "original")


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(EQUIVALENT, EQUIVALENT[::2]))
def test_theory_predicts_the_gaussian_equivalent_data(name):
    assert_agreement(name, "equivalent")


LADDER = {32: 300, 128: 75}  # d: seeds
SHRINKING = (
    "sign gaussian sign logistic",
    "erf gaussian linear square",
    "relu gaussian threshold logistic",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHRINKING)
def test_distance_from_the_theory_shrinks_with_the_size(name):
    """Root mean square over draws and quantities of the relative deviation: it falls as 1/√d."""
    model, point = problem(name)
    theory = hm.predict(model, **point)
    distance = []
    for d, seeds in LADDER.items():
        ds = hm.simulate(model, **point, d=d, seeds=seeds, n_test=20 * d, workers=1)
        off = np.array([ds[q].values / float(theory[q]) - 1.0 for q in QUANTITIES])
        distance.append(np.sqrt(np.mean(off**2)))
    assert distance[1] < 0.6 * distance[0], distance  # a half, to about a fifteenth
