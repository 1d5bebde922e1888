"""Drawn matrices, labels and features follow the laws that the theory assumes."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold.features.projections import Matrix, Spectrum
from hiddenmanifold.simulation import samples
from hiddenmanifold.simulation.samples import Sizes, World

SHAPES = [(300, 200), (200, 300), (128, 256), (256, 256)]
DECADES = np.array([0.01, 0.3, 1.0, 10.0, 300.0])


def spectrum(d, p):
    """Half of the positive eigenvalues are three times the other half; the mean is 1."""
    share = min(1.0, d / p)
    small = 0.5 / share
    return Spectrum((3 * small, small, 0.0), (share / 2, share / 2, 1 - share), d_over_p=d / p)


def matrix(d, p):
    return Matrix(np.random.default_rng(8).standard_normal((d, p)))


PROJECTIONS = {name: lambda d, p, c=cls: c() for name, cls in hm.projections.REGISTRY.items()}
PROJECTIONS |= {"spectrum": spectrum, "matrix": matrix}

every_projection = pytest.mark.parametrize("name", PROJECTIONS)
every_shape = pytest.mark.parametrize(("d", "p"), SHAPES)


def sampled_matrix(name, d, p):
    return PROJECTIONS[name](d, p).sample(d, p, np.random.default_rng(5)).left(np.eye(d))


@every_projection
@every_shape
def test_columns_have_squared_norm_d(name, d, p):
    norms = (sampled_matrix(name, d, p) ** 2).sum(0) / d
    assert abs(norms.mean() - 1.0) < 6 * np.sqrt(2 / (d * p))
    assert np.abs(norms - 1.0).max() < 6 * np.sqrt(2 / d)


@pytest.mark.slow
@every_projection
@every_shape
def test_sampled_spectrum_is_the_one_the_theory_uses(name, d, p):
    s = np.linalg.eigvalsh(sampled_matrix(name, d, p).T @ sampled_matrix(name, d, p) / d)
    s = np.where(s < 1e-10, 0.0, s)
    s_d = np.concatenate([np.sort(s)[::-1], np.zeros(d)])[:d]
    # sums over random eigenvalues fluctuate like constants; those of a fixed spectrum are rounded
    tolerance = {"gaussian": 8 / min(d, p), "spectrum": 2 / p}.get(name, 1e-10)
    promised = PROJECTIONS[name](d, p).linear(1 / DECADES, np.full(len(DECADES), d / p))
    for k, X in enumerate(DECADES):
        r, r_d = X * s / (1 + X * s), X * s_d / (1 + X * s_d)
        found = {
            "D1": r.mean(),
            "unlearned": (1 - r).mean(),
            "D20": (r**2).mean(),
            "D02": ((1 - r) ** 2).mean(),
            "D11": (r * (1 - r)).mean(),
            "T02": ((1 - r_d) ** 2).mean(),
            "W": r_d.var(),
        }
        for name_, value in found.items():
            expected = getattr(promised, name_)[k]
            assert abs(value - expected) < tolerance * (X + expected) / (1 + X), (name_, X)


def counts(projection, d, p, seed):
    """How often the largest eigenvalue appears, and the mean of all."""
    F = projection.sample(d, p, np.random.default_rng(seed)).left(np.eye(d))
    s = np.linalg.eigvalsh(F.T @ F / d)
    return int((s > 0.9 * max(projection.eigenvalues)).sum()), s.mean()


def test_a_rare_eigenvalue_appears_as_often_as_its_weight_says():
    rare = Spectrum((10.0, 0.90909091), (0.01, 0.99), d_over_p=1.0)
    found = np.array([counts(rare, 30, 30, seed) for seed in range(300)])
    assert set(found[:, 0]) == {0, 1}
    # 30 % of the draws have it, to three standard errors
    assert abs(found[:, 0].mean() - 0.3) < 3 * np.sqrt(0.3 * 0.7 / 300)
    assert abs(found[:, 1].mean() - 1.0) < 0.03


def test_eigenvalues_whose_numbers_are_whole_appear_exactly_so_often():
    half = Spectrum((3.0, 1.0, 0.0), (0.25, 0.25, 0.5), d_over_p=0.5)
    for seed in range(20):
        assert counts(half, 20, 40, seed) == (10, pytest.approx(1.0))


def test_a_matrix_is_used_as_it_is_and_only_at_its_own_size():
    F = np.random.default_rng(0).standard_normal((30, 20))
    projection = Matrix(F)
    assert np.array_equal(projection.sample(30, 20, np.random.default_rng(1)).F, F)
    with pytest.raises(hm.InvalidArgumentError, match="^d = 31 .*30"):
        projection.sample(31, 20, np.random.default_rng(1))


BINARY = {
    "sign": (hm.teachers.Sign(), lambda nu: (nu > 0).astype(float)),
    "probit": (hm.teachers.Sign(noise=0.49), lambda nu: norm.cdf(nu / 0.7)),
    "shifted": (hm.teachers.Sign(threshold=0.4), lambda nu: (nu > -0.4).astype(float)),
    "all of it": (
        hm.teachers.Sign(noise=0.25, flip=0.1, threshold=-0.3, rho=2.0),
        lambda nu: 0.1 + 0.8 * norm.cdf((nu - 0.3) / 0.5),
    ),
    "logistic": (hm.teachers.Logistic(), expit),
    "shifted logistic": (
        hm.teachers.Logistic(slope=3.0, threshold=0.2, flip=0.05, rho=0.5),
        lambda nu: 0.05 + 0.9 * expit(3.0 * (nu + 0.2)),
    ),
    "custom": (
        hm.teachers.Custom(lambda nu: 0.1 + 0.85 * expit(3.0 * nu + 0.5)),
        lambda nu: 0.1 + 0.85 * expit(3.0 * nu + 0.5),
    ),
}
NOISELESS = {  # where the more probable label changes
    "sign": 0.0,
    "probit": 0.0,
    "shifted": -0.4,
    "all of it": 0.3,
    "logistic": 0.0,
    "shifted logistic": -0.2,
    "custom": (np.log(0.4 / 0.45) - 0.5) / 3.0,
}
FIELDS = np.array([-3.0, -1.1, -0.45, -0.35, -0.21, 0.01, 0.25, 0.35, 0.9, 2.5])

every_rule = pytest.mark.parametrize("name", BINARY)


@every_rule
def test_probability_is_the_rule_as_documented(name):
    teacher, expected = BINARY[name]
    assert np.abs(teacher.probability(FIELDS) - expected(FIELDS)).max() < 1e-13


@pytest.mark.slow
@every_rule
def test_labels_appear_with_their_probability(name):
    teacher, expected = BINARY[name]
    count = 100_000
    y = teacher.sample(np.repeat(FIELDS[:, None], count, 1), np.random.default_rng(1))
    assert set(np.unique(y)) == {-1.0, 1.0}
    p = expected(FIELDS)
    assert np.all(np.abs((y > 0).mean(1) - p) <= 4.5 * np.sqrt(p * (1 - p) / count))


@every_rule
@pytest.mark.parametrize("y", [1, -1])
def test_label_law_of_a_known_field_is_the_probability(name, y):
    teacher, expected = BINARY[name]
    Z, *_ = teacher.label_law(y, y * FIELDS, np.full(len(FIELDS), 1e-10))
    p = expected(FIELDS)
    assert np.abs(Z - (p if y > 0 else 1 - p)).max() < 1e-9


@every_rule
def test_noiseless_label_is_the_more_probable_one(name):
    teacher, _ = BINARY[name]
    change = NOISELESS[name]
    nu = np.append(np.linspace(-4.0, 4.0, 1001), [change - 1e-9, change + 1e-9])
    assert np.array_equal(teacher.noiseless(nu), np.where(nu > change, 1.0, -1.0))


@pytest.mark.parametrize(
    ("noise", "flip", "threshold", "rho"),
    [(0.5, 0.0, 0.0, 1.0), (0.0, 0.12, 0.0, 1.0), (0.0, 0.0, 0.7, 2.0), (0.3, 0.07, -0.5, 0.4)],
)
def test_sign_labels_have_the_frequency_of_the_formula_on_gaussian_fields(
    noise, flip, threshold, rho
):
    teacher = hm.teachers.Sign(noise=noise, flip=flip, threshold=threshold, rho=rho)
    rng = np.random.default_rng(2)
    nu = np.sqrt(rho) * rng.standard_normal(400_000)
    y, clean = teacher.sample(nu, rng), teacher.noiseless(nu)
    deviation = np.sqrt(rho + noise)
    plus = flip + (1 - 2 * flip) * norm.cdf(threshold / deviation)
    slope = (1 - 2 * flip) * 2 * rho / deviation * norm.pdf(threshold / deviation)  # of E[ν y]
    assert abs((y > 0).mean() - plus) < 4.5 * 0.5 / np.sqrt(nu.size)
    assert abs((nu * y).mean() - slope) < 4.5 * np.sqrt(rho / nu.size)
    if not noise:
        assert abs((y != clean).mean() - flip) <= 4.5 * np.sqrt(flip / nu.size)


def test_linear_labels_are_the_field_with_gaussian_noise():
    teacher, rng = hm.teachers.Linear(noise=0.3, rho=2.0), np.random.default_rng(3)
    nu = rng.standard_normal(200_000)
    noise = teacher.sample(nu, rng) - nu
    assert abs(noise.mean()) < 4.5 * np.sqrt(0.3 / nu.size)
    assert abs(noise.var() - 0.3) < 4.5 * 0.3 * np.sqrt(2 / nu.size)
    assert abs((noise * nu).mean()) < 4.5 * np.sqrt(0.3 / nu.size)
    assert np.array_equal(teacher.noiseless(nu), nu)
    assert np.array_equal(hm.teachers.Linear().sample(nu, rng), nu)


def world(activation="relu", *parts, sizes=(10, 9, 12), seed=0, equivalent=False, **named):
    model = plain_model(activation, *parts, loss="square", **named)
    return World.draw(model, Sizes(*sizes), np.random.default_rng(seed), equivalent=equivalent)


@pytest.mark.parametrize("rho", [0.3, 1.0, 4.0])
def test_teacher_weights_have_squared_norm_rho_d_exactly(rho):
    drawn = world(teacher=hm.teachers.Linear(rho=rho))
    assert drawn.features.inputs.theta @ drawn.features.inputs.theta == pytest.approx(
        rho * 12, rel=1e-14
    )


@pytest.mark.parametrize("activation", [*hm.activations.REGISTRY, np.exp])
@pytest.mark.parametrize("shape", [(9, 12), (12, 9)])
def test_equivalent_data_have_the_mean_and_covariance_of_the_theory(activation, shape):
    p, d = shape
    drawn = world(activation, teacher="linear", sizes=(1, p, d), equivalent=True)
    rows = 100_000
    sample = drawn.sample(rows, np.random.default_rng(1))
    F = drawn.features.maps[0].left(np.eye(d))
    k0, k1, ks = drawn.model.activation.kappas
    covariance = k1**2 * F.T @ F / d + ks**2 * np.eye(p)
    scale = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(sample.X.mean(0) - k0) < 5 * scale / np.sqrt(rows))
    found = np.cov(sample.X.T)
    assert np.all(np.abs(found - covariance) < 5 * np.sqrt(2 / rows) * np.outer(scale, scale))
    with_teacher = (sample.X - k0).T @ sample.clean / rows
    assert np.all(
        np.abs(with_teacher - k1 * F.T @ drawn.features.inputs.theta / d)
        < 7 * scale / np.sqrt(rows)
    )


@pytest.mark.parametrize("activation", hm.activations.REGISTRY)
def test_original_data_on_orthogonal_features_share_mean_and_covariance(activation):
    # p < d: the fields are independent and normal, so the equivalence of two moments is exact
    drawn = world(activation, "orthogonal", "linear")
    rows = 100_000
    sample = drawn.sample(rows, np.random.default_rng(1))
    k0, k1, ks = drawn.model.activation.kappas
    F = drawn.features.maps[0].left(np.eye(12))
    variance = k1**2 + ks**2
    assert np.abs(sample.X.mean(0) - k0).max() < 5 * np.sqrt(variance / rows)
    assert np.abs(np.cov(sample.X.T) - variance * np.eye(9)).max() < 12 * variance / np.sqrt(rows)
    with_teacher = (sample.X - k0).T @ sample.clean / rows
    assert np.abs(with_teacher - k1 * F.T @ drawn.features.inputs.theta / 12).max() < 10 / np.sqrt(
        rows
    )


def test_original_features_are_the_activation_of_the_projected_latents():
    drawn = world("tanh", teacher="linear")
    sample = drawn.sample(7, np.random.default_rng(4))
    c = np.random.default_rng(4).standard_normal((7, 12))
    F = drawn.features.maps[0].left(np.eye(12))
    assert np.allclose(sample.X, np.tanh(c @ F / np.sqrt(12)), rtol=1e-13)
    assert np.allclose(sample.clean, c @ drawn.features.inputs.theta / np.sqrt(12), rtol=1e-13)
    assert np.array_equal(sample.y, sample.clean)  # no noise


def test_clean_labels_are_those_of_the_same_samples():
    drawn = world(teacher=hm.teachers.Sign(flip=0.1))
    sample = drawn.sample(20_000, np.random.default_rng(0))
    assert abs((sample.y != sample.clean).mean() - 0.1) < 4.5 * np.sqrt(0.09 / 20_000)


@pytest.mark.parametrize("equivalent", [False, True])
def test_same_seed_gives_same_data_and_another_does_not(equivalent):
    first, again, other = (world(seed=seed, equivalent=equivalent) for seed in (0, 0, 1))
    assert np.array_equal(first.features.inputs.theta, again.features.inputs.theta)
    assert not np.isclose(first.features.inputs.theta, other.features.inputs.theta).any()
    samples = [
        drawn.sample(5, np.random.default_rng(seed))
        for drawn, seed in ((first, 3), (again, 3), (first, 4))
    ]
    assert np.array_equal(samples[0].X, samples[1].X)
    assert np.array_equal(samples[0].y, samples[1].y)
    assert not np.array_equal(samples[0].X, samples[2].X)


@pytest.mark.parametrize("rows", [1, 4, 5, 6, 17])
def test_blocks_cover_exactly_the_rows_in_bounded_memory(monkeypatch, rows):
    monkeypatch.setattr(samples, "BLOCK", 60)  # 60 numbers: five rows of twelve latents
    blocks = list(world().blocks(rows, np.random.default_rng(0)))
    assert sum(len(block.y) for block in blocks) == rows
    assert all(1 <= len(block.y) <= 5 for block in blocks)
    assert all(block.X.shape == (len(block.y), 9) for block in blocks)
    first = np.concatenate([block.X for block in blocks])
    assert len(np.unique(first, axis=0)) == rows  # no block is a copy of another


def test_a_row_larger_than_a_block_is_drawn_alone(monkeypatch):
    monkeypatch.setattr(samples, "BLOCK", 1)
    assert [len(b.y) for b in world().blocks(3, np.random.default_rng(0))] == [1, 1, 1]
