"""Bias and variances, resampling, and how differently two fits predict."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError
from hiddenmanifold.resampling import Bootstrap, Split, SubSample, Whole
from hiddenmanifold.theory.pairs.instability import (
    TwoScores,
    distance,
    opposed,
    probability_difference,
)

HERE = {"workers": 1, "progress": False}
LADDER = ("noise_variance", "features_variance", "samples_variance", "bias")


def relu_ridge(p_over_n, regularisation=1e-7):
    teacher = hm.teachers.Linear(noise=0.25)
    model = plain_model("relu", "gaussian", teacher, "square")
    at = {"n_over_d": 1.0, "p_over_n": p_over_n, "regularisation": regularisation}
    return hm.bias_variance(model, **at, **HERE)


def test_noise_and_features_diverge_at_the_peak_and_the_rest_freezes_beyond():
    """The picture of d'Ascoli et al. (2020); numbers of an independent computation."""
    ds = relu_ridge([0.5, 0.9, 1.0, 1.1, 2.0])
    found = np.array([ds[name].values for name in LADDER]).T
    assert np.allclose(found[0], [0.2500, 0.8406, 0.0538, 0.4556], atol=2e-4)
    assert np.allclose(found[2], [177.9, 319.0, 0.0880, 0.2008], rtol=2e-3)
    assert np.allclose(found[3:, 2:], found[4, 2:], rtol=1e-3)
    assert np.allclose(ds.mean_square_error, ds.generalisation_error, rtol=1e-13)


def test_the_noise_of_least_squares_is_known():
    """Below p = n the label noise alone gives Δ (p/n)/(1 - p/n)."""
    ratio = np.array([0.2, 0.6])
    ds = relu_ridge(ratio, 0)
    assert np.allclose(ds.noise_variance, 0.25 * ratio / (1.0 - ratio), rtol=1e-10)


def test_samples_and_features_matter_alike_where_they_are_as_many():
    """With signs for features and labels V_F = V_X at n = p."""
    model = plain_model("sign", "gaussian", hm.teachers.Sign(flip=0.1), "square")
    at = {"n_over_d": 1.7, "p_over_n": 1.0, "regularisation": 0.05}
    ds = hm.bias_variance(model, **at, **HERE)
    assert float(ds.variance_F) == pytest.approx(float(ds.variance_X), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "loss"),
    [
        (hm.teachers.Sign(noise=0.3, threshold=0.3, flip=0.05), "logistic"),
        (hm.teachers.Logistic(slope=2.0), "hinge"),
        (hm.teachers.Linear(noise=hm.noises.Laplace(0.3)), "huber"),
        (hm.teachers.Real(np.tanh, noise=0.2), "huber"),
    ],
)
def test_variances_add_up_and_are_positive(teacher, loss):
    model = plain_model(teacher=teacher, loss=loss)
    ds = hm.bias_variance(model, n_over_d=2.0, p_over_n=0.7, regularisation=0.1, **HERE)
    assert all(float(ds[name]) > 0.0 for name in LADDER)
    parts = [float(ds[f"variance_{name}"]) for name in ("F", "X", "FX", "Xe", "FXe")]
    assert min(parts) > 0.0
    assert sum(parts) == pytest.approx(sum(float(ds[name]) for name in LADDER[:3]), rel=1e-12)
    if "training_error" not in ds:
        assert float(ds.mean_square_error) == pytest.approx(float(ds.generalisation_error))
        return
    errors = ["generalisation_error"] + [f"error_of_mean_over_{name}" for name in MEANS]
    assert (np.diff([float(ds[name]) for name in errors]) < 0.0).all()


MEANS = ("features", "features_and_noise", "all")


def test_without_noise_none_of_the_variance_is_its():
    model = plain_model(teacher=hm.teachers.Sign(), loss="hinge")
    ds = hm.bias_variance(model, n_over_d=2.0, p_over_n=0.7, regularisation=0.1, **HERE)
    assert float(ds.noise_variance) == float(ds.variance_Xe) == float(ds.irreducible_error) == 0.0


def test_scores_that_grow_without_bound_have_infinite_variances():
    model = plain_model(teacher=hm.teachers.Sign(noise=0.2), loss="logistic")
    ds = hm.bias_variance(model, n_over_d=2.0, p_over_n=4.0, regularisation=0, **HERE)
    assert all(np.isinf(float(ds[name])) for name in (*LADDER, "mean_square_error"))
    near = hm.bias_variance(model, n_over_d=2.0, p_over_n=4.0, regularisation=1e-9, **HERE)
    errors = (float(data.error_of_mean_over_features) for data in (ds, near))
    assert np.ptp(list(errors)) < 0.01


@pytest.mark.parametrize("teacher", [hm.teachers.Sign(noise=0.5, flip=0.1), hm.teachers.Logistic()])
def test_the_variance_of_a_label_is_an_average_over_the_field(teacher):
    x, V0 = np.array([-2.0, 0.3, 1.0]), np.array([0.3, 1.0, 1e-9])

    def direct(mean, variance):
        def integrand(z):
            p = teacher.probability(np.array([mean + np.sqrt(variance) * z]))[0]
            return 4.0 * p * (1.0 - p) * stats.norm.pdf(z)

        return integrate.quad(integrand, -9, 9, epsabs=1e-13, limit=200)[0]

    found = teacher.label_variance(x, V0)
    assert np.allclose(found, [direct(*at) for at in zip(x, V0, strict=True)], rtol=1e-10)


def test_two_bootstraps_of_a_sample_published_by_others():
    """White ridge with λ = 0.1 and n/p = ρ = Δ = 1, of the package BootstrapAsymptotics."""
    white = hm.features.Covariance([0.01] * 100, [1e-4] * 100)
    model = hm.Model(features=white, teacher=hm.teachers.Linear(noise=1.0), loss="square")
    at = {"n_over_d": 1.0, "regularisation": 0.1, "independent": "none"}
    ds = hm.instability(model, **at, resampling="bootstrap", **HERE)
    assert float(ds.Q) == pytest.approx(1.3563, abs=5e-5)
    assert float(ds.overlap) == pytest.approx(0.7998, abs=5e-5)


@pytest.mark.parametrize("loss", ["square", "hinge", "logistic"])
def test_a_part_of_the_samples_is_a_smaller_sample(loss):
    model = plain_model(teacher=hm.teachers.Sign(noise=0.2), loss=loss)
    at = {"p_over_d": 1.0, "regularisation": 0.1, **HERE}
    part = hm.ensemble(model, members=[1, 2], n_over_d=2.0, resampling=SubSample(0.5), **at)
    small = hm.predict(model, n_over_d=1.0, **at)
    for name in ("Q", "M", "V"):
        assert float(part[name]) == pytest.approx(float(small[name]), rel=1e-9)
    halves = hm.ensemble(
        model, members=2, n_over_d=2.0, resampling=Split(2), independent="none", **at
    )
    own = hm.ensemble(model, members=2, n_over_d=1.0, independent="samples", **at)
    assert float(halves.overlap) == pytest.approx(float(own.overlap), rel=1e-9)
    assert float(halves.overlap) < float(part.Q)


def test_what_is_drawn_whole_is_not_resampled():
    model = plain_model()
    at = {"n_over_d": 2.0, "p_over_n": 0.7, "regularisation": 0.1, "members": 2, **HERE}
    plain = hm.ensemble(model, **at)
    for scheme in (Whole(), SubSample(1.0)):
        assert float(hm.ensemble(model, resampling=scheme, **at).overlap) == float(plain.overlap)


def test_vanishing_regularisation_sees_the_samples_that_are_drawn():
    model = plain_model(teacher=hm.teachers.Linear(noise=0.2), loss="square")
    at = {"n_over_d": 2.0, "p_over_n": 0.8, "members": [1, np.inf], **HERE}
    limit, near = (
        hm.ensemble(model, regularisation=lam, resampling=Bootstrap(), **at) for lam in (0, 1e-9)
    )
    assert np.allclose(limit.generalisation_error, near.generalisation_error, rtol=1e-6)


@pytest.mark.parametrize("scheme", [Whole(), SubSample(0.3), Bootstrap(), Split(3)])
def test_copies_are_those_of_the_rows_that_are_drawn(scheme):
    rng, n = np.random.default_rng(0), 3000
    copies = np.bincount(scheme.rows(n, 1, rng), minlength=n)
    law = scheme.copies
    assert sum(law.probability) == pytest.approx(1.0, rel=1e-12)
    for number, probability in zip(law.number[:4], law.probability, strict=False):
        assert np.mean(copies == number) == pytest.approx(probability, abs=0.03)


@pytest.mark.parametrize("threshold", [0.0, 0.6])
def test_differences_of_two_fits_are_integrals_over_both_scores(threshold):
    teacher = hm.teachers.Sign(threshold=threshold)
    model = plain_model(teacher=teacher, loss="logistic", intercept=True)
    ds = hm.instability(model, n_over_d=2.0, p_over_n=0.7, regularisation=0.1, **HERE)
    b, Q, shared = (float(ds[name]) for name in ("intercept", "Q", "overlap"))

    def normal(deviation, parts):  # nodes of a normal variable and their probabilities
        x, w = np.polynomial.legendre.leggauss(60)
        at = 9.0 * deviation * x if parts else 4.5 * deviation * (x + 1.0)
        weights = (9.0 if parts else 4.5) * deviation * w
        return at, weights * stats.norm.pdf(at, scale=deviation)

    # the mean of both scores is independent of half their difference
    m, of_mean = normal(np.sqrt(0.5 * (Q + shared)), True)
    t, of_half = normal(np.sqrt(0.5 * (Q - shared)), False)
    apart = special.expit(b + m[:, None] + t) - special.expit(b + m[:, None] - t)
    found = 2.0 * of_mean @ apart @ of_half
    assert float(ds.probability_difference) == pytest.approx(found, rel=1e-9)
    law = stats.multivariate_normal([b, b], [[Q, shared], [shared, Q]])
    below = law.cdf([0.0, 0.0])
    single = stats.norm.cdf(-b / np.sqrt(Q))
    assert float(ds.disagreement) == pytest.approx(2.0 * (single - below), abs=1e-5)


@pytest.mark.parametrize(
    ("mean", "Q", "shared"),
    [
        ((0.4, -1.0), (2.0, 0.5), 0.7),
        ((0.0, 0.3), (0.2, 3.0), -0.4),
        ((0.0, 0.0), (1.5, 0.3), 0.5),
        ((-2.0, -2.0), (1.0, 40.0), 1.0),
    ],
)
def test_differences_of_two_scores_of_different_laws(mean, Q, shared):
    """Integrals over both scores, cut where they are equal."""
    law = TwoScores(
        *(np.array(values)[:, None] for values in (mean, Q)),
        np.array([shared]),
        np.array([[Q[0] - shared], [Q[1] - shared]]),
    )
    rest = np.sqrt(Q[1] - shared**2 / Q[0])

    # nodes of the second score on both sides of the first
    z, w = np.polynomial.legendre.leggauss(80)

    def normal(x, low, high, centre, width):
        at = 0.5 * (low + high) + 0.5 * (high - low) * z
        density = np.exp(-0.5 * ((at - centre) / width) ** 2) / (width * np.sqrt(2.0 * np.pi))
        apart = np.abs(special.expit(x) - special.expit(at))
        return 0.5 * (high - low) * float((w * density) @ apart)

    def given(x):
        centre = mean[1] + shared / Q[0] * (x - mean[0])
        cuts = centre + rest * np.linspace(-9.0, 9.0, 7)
        cuts = np.sort(np.append(cuts, np.clip(x, cuts[0], cuts[-1])))
        pairs = zip(cuts[:-1], cuts[1:], strict=True)
        return sum(normal(x, low, high, centre, rest) for low, high in pairs)

    def outer(u):
        return given(mean[0] + np.sqrt(Q[0]) * u) * stats.norm.pdf(u)

    gap = np.array(mean)[0] - mean[1], np.sqrt(Q[0] + Q[1] - 2.0 * shared)
    assert distance(law)[0] == pytest.approx(stats.foldnorm(abs(gap[0]) / gap[1]).mean() * gap[1])
    found = integrate.quad(outer, -9.0, 9.0, epsabs=1e-11, limit=100)[0]
    assert probability_difference(law)[0] == pytest.approx(found, rel=1e-9)
    both = stats.multivariate_normal(mean, [[Q[0], shared], [shared, Q[1]]])
    below = [stats.norm.cdf(-m / np.sqrt(q)) for m, q in zip(mean, Q, strict=True)]
    assert opposed(law)[0] == pytest.approx(sum(below) - 2.0 * both.cdf([0.0, 0.0]), abs=1e-5)


def test_scores_of_numbers_differ_by_a_normal_law():
    model = plain_model(teacher="linear", loss="huber")
    ds = hm.instability(model, n_over_d=2.0, p_over_n=0.7, regularisation=0.1, **HERE)
    apart = 2.0 * np.sqrt((float(ds.Q) - float(ds.overlap)) / np.pi)
    assert float(ds.score_difference) == pytest.approx(apart, rel=1e-10)


def test_questions_without_an_answer_are_refused():
    at = {"n_over_d": 2.0, "p_over_n": 0.7, "regularisation": 0.1, **HERE}
    model = plain_model()
    for independent, scheme in (("none", None), ("none", "whole"), ("none", SubSample(1.0))):
        with pytest.raises(InvalidArgumentError, match="all fits equal"):
            hm.instability(model, independent=independent, resampling=scheme, **at)
    with pytest.raises(InvalidArgumentError, match="resampling"):
        hm.instability(model, resampling="bootstraps", **at)
    with pytest.raises(InvalidArgumentError, match="parts of the split"):
        hm.ensemble(model, members=3, resampling=Split(2), **at)
    with pytest.raises(InvalidArgumentError, match="classes"):
        hm.bias_variance(plain_model(teacher="mixture"), **at)
    with pytest.raises(InvalidArgumentError, match="prediction"):
        hm.bias_variance(plain_model(prediction="logistic"), **at)
    with pytest.raises(IncompatibleIngredientsError, match="pairs of fits"):
        hm.bias_variance(
            plain_model(teacher="poisson", loss="poisson", prediction="identity"), **at
        )
    for bad in (0.0, 1.5):
        with pytest.raises(InvalidArgumentError, match="fraction"):
            SubSample(bad)
    with pytest.raises(InvalidArgumentError, match="parts"):
        Split(1)
