"""What all kinds of features have in common: one example of each passes the same examination."""

import pickle

import numpy as np
import pytest
import xarray as xr

import hiddenmanifold as hm
from given import EXAMPLES, FINITE
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.features import REGISTRY, Features, Projected
from hiddenmanifold.teachers import Linear, Sign
from spectral_oracle import NAMES

every_kind = pytest.mark.parametrize("features", EXAMPLES.values(), ids=EXAMPLES)
every_finite_kind = pytest.mark.parametrize("features", FINITE.values(), ids=FINITE)
GAMMA = 0.8
LABELS = {
    "logistic": {"teacher": Sign(noise=0.2), "loss": "logistic"},
    "square": {"teacher": Linear(noise=0.3), "loss": "square"},
    "hinge": {"teacher": Sign(), "loss": "hinge"},
}
STEP = 2e-3
STENCIL = STEP * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12 * STEP)  # differences of fourth order
every_rule = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def gammas(features, k):
    return np.full_like(k, features.fixed_ratio or GAMMA)


def ratios(features, **given):
    """The ratio n/p given, and d/p if the features leave it open; n/d of a kernel."""
    if features.infinite:
        return {"n_over_d": given["n_over_p"]}
    return given | ({} if features.fixed_ratio else {"d_over_p": GAMMA})


def test_every_kind_has_an_example():
    assert {name: type(example) for name, example in EXAMPLES.items()} == REGISTRY


# sums


@every_kind
def test_sums_add_up_and_their_derivatives_are_differences(features):
    k = 10.0 ** np.arange(-6.0, 6.1, 1.0)
    m = features.sums(k, gammas(features, k))
    for name in NAMES:
        assert getattr(m, name).shape == k.shape
        assert (getattr(m, name) >= 0).all() or name == "dW"
    np.testing.assert_allclose(m.T1 + m.U1, 1.0, rtol=1e-12)
    np.testing.assert_allclose(m.D1 + m.unlearned, features.size, rtol=1e-12)
    np.testing.assert_allclose(m.A + m.S, m.T1, rtol=1e-12)
    shifted = [features.sums(k * np.exp(h), gammas(features, k)) for h in STENCIL]
    for name, derivative in {
        "D1": -m.D11,
        "T1": -m.T11,
        "D20": -2 * m.D21,
        "T20": -2 * m.T21,
        "T02": 2 * m.T12,
        "W": m.dW,
    }.items():
        slope = WEIGHTS @ np.array([getattr(sums, name) for sums in shifted])
        unit = np.abs(derivative) + getattr(m, name)
        assert (np.abs(slope - derivative) <= 1e-8 * unit).all(), name


@every_kind
def test_what_is_visible_is_the_limit_of_the_sums(features):
    k = np.array([1e-9, 1e-10, 1e-11])
    visible = features.visible(gammas(features, k))
    m = features.sums(k, gammas(features, k))
    np.testing.assert_allclose(m.T1, visible.fraction, rtol=1e-4)
    np.testing.assert_allclose(m.U1, visible.hidden, atol=1e-4)
    if features.infinite:
        assert (visible.rank == features.size).all()
    else:
        np.testing.assert_allclose(m.D1, visible.rank, rtol=1e-3)
    np.testing.assert_allclose(visible.fraction + visible.hidden, 1.0, rtol=1e-12)
    assert not features.blind
    assert (visible.fraction > 0.1).all()


@every_kind
def test_a_large_penalty_sees_the_variance(features):
    k = np.array([1e12])
    m = features.sums(k, gammas(features, k))
    np.testing.assert_allclose(k * m.D1, features.variance, rtol=1e-9)


@every_kind
def test_brighter_inputs_shift_the_sums_as_their_derivatives_say(features):
    k = 10.0 ** np.arange(-4.0, 4.1, 1.0)
    m = features.sums(k, gammas(features, k))
    shifted = [features.sums(k, gammas(features, k), np.exp(h)) for h in STENCIL]
    for name, derivative in {"D1": m.B, "T1": m.A}.items():
        slope = WEIGHTS @ np.array([getattr(sums, name) for sums in shifted])
        unit = np.abs(derivative) + getattr(m, name)
        assert (np.abs(slope - derivative) <= 1e-8 * unit).all(), name


# predictions


def predicted(features, labels, regularisation, **given):
    model = hm.Model(features=features, **labels)
    return hm.predict(model, **ratios(features, **given), regularisation=regularisation)


@every_kind
@every_rule
def test_training_loss_falls_with_the_penalty_as_the_weights_say(features, labels):
    """The envelope theorem: its derivative by λ is q_w/(2 n/p)."""
    lam, alpha = 0.1, 1.3
    ds = predicted(features, labels, lam * np.exp(STENCIL), n_over_p=alpha)
    slope, q_w = WEIGHTS @ ds.training_loss.values, float(ds.q_w[2])
    np.testing.assert_allclose(slope / lam, q_w / (2 * alpha), rtol=1e-7)


@every_kind
@every_rule
@pytest.mark.parametrize("alpha", [0.6, 2.0])
def test_sensitivity_is_that_of_predictions(features, labels, alpha):
    model, lam = hm.Model(features=features, **labels), 0.05
    free = features.fixed_ratio is None
    found = hm.sensitivity(model, **ratios(features, n_over_p=alpha), regularisation=lam)

    def slope(name):
        """By differences of predictions at one larger parameter, the other two and d being held."""
        more = dict.fromkeys(MORE, 1.0) | {name: xr.DataArray(np.exp(STENCIL), dims="shift")}
        at = ratios(features, n_over_p=alpha * more["n"] / more["p"])
        at |= {"d_over_p": GAMMA / more["p"]} if free else {}
        at = {**at, "regularisation": lam * more["regularisation"]}
        return WEIGHTS @ hm.predict(model, **at).generalisation_error.values

    for name in MORE if free else MORE[:2]:
        expected = float(found[f"generalisation_error_by_log_{name}"])
        np.testing.assert_allclose(slope(name), expected, atol=2e-9, err_msg=name)
    if not free:
        assert np.isnan(found.generalisation_error_by_log_p)


MORE = ("regularisation", "n", "p")


@every_finite_kind
@pytest.mark.parametrize(
    ("rule", "alpha"), [("square", 0.5), ("square", 2.0), ("hinge", 1.0), ("logistic", 8.0)]
)
def test_no_penalty_is_the_limit_of_a_small_one(features, rule, alpha):
    limit = predicted(features, LABELS[rule], 0, n_over_p=alpha)
    near = predicted(features, LABELS[rule], [2e-9, 1e-9], n_over_p=alpha)
    for name in ("generalisation_error", "Q", "M", "q_w"):
        # what is left is proportional to the penalty
        far, close = near[name].values
        np.testing.assert_allclose(2 * close - far, limit[name], rtol=1e-7, err_msg=name)


@every_kind
@every_rule
def test_an_infinite_penalty_is_the_limit_of_a_large_one(features, labels):
    limit, near = (predicted(features, labels, lam, n_over_p=1.5) for lam in (np.inf, [1e7, 2e7]))
    far, close = near.alignment.values
    np.testing.assert_allclose(2 * close - far, limit.alignment, rtol=1e-9)
    assert float(limit.Q) == 0.0


@every_finite_kind
@every_rule
def test_infinite_data_are_the_limit_of_many(features, labels):
    limit, near = (
        predicted(features, labels, 0.1, n_over_p=alpha) for alpha in (np.inf, [1e6, 2e6])
    )
    for name in ("generalisation_error", "Q", "M"):
        far, close = near[name].values
        np.testing.assert_allclose(2 * close - far, limit[name], rtol=1e-8, err_msg=name)


@every_kind
@every_rule
def test_the_best_penalty_is_no_worse_than_any_other(features, labels):
    best = predicted(features, labels, "optimal", n_over_p=1.2).generalisation_error
    scan = predicted(features, labels, np.logspace(-8, 5, 60), n_over_p=1.2).generalisation_error
    assert float(best) <= float(scan.min()) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "features", [kind for kind in EXAMPLES.values() if not isinstance(kind, Projected)]
)
@every_rule
def test_no_penalty_beats_the_bayes_optimal_error(features, labels):
    model = hm.Model(features=features, **labels)
    for alpha in (0.5, 4.0):
        least = float(
            hm.bayes_optimal(model, **ratios(features, n_over_p=alpha)).generalisation_error
        )
        best = float(predicted(features, labels, "optimal", n_over_p=alpha).generalisation_error)
        assert 0.0 < least <= best * (1 + 1e-9)
        assert best < 1.25 * least  # and is not far from it


# draws

ROWS = 60_000


@pytest.mark.slow
@every_finite_kind
@pytest.mark.parametrize("equivalent", [False, True])
def test_draws_have_the_moments_of_the_features(features, equivalent):
    d = features.fixed_dimension or 40
    p = round(d / (features.fixed_ratio or GAMMA))
    drawn = features.draw(d, p, 1.0, np.random.default_rng(1))
    X, nu = drawn.sample(ROWS, np.random.default_rng(2), equivalent=equivalent)
    assert X.shape == (ROWS, p)
    assert nu.shape == (ROWS,)
    np.testing.assert_allclose(nu.var(), 1.0, rtol=0.03)
    np.testing.assert_allclose(X.var(0).mean(), features.variance, rtol=0.1)  # of few neurons
    np.testing.assert_allclose(X.mean(), features.mean, atol=0.02)
    w = np.random.default_rng(3).standard_normal(p)
    f, overlaps = X @ w / np.sqrt(p), drawn.overlaps(w)
    assert tuple(overlaps) == features.measured_overlaps
    if equivalent:
        np.testing.assert_allclose(f.var(), overlaps["Q"], rtol=0.03)
        np.testing.assert_allclose((f * nu).mean(), overlaps["M"], atol=0.03)


@every_finite_kind
def test_draws_are_reproducible(features):
    d = features.fixed_dimension or 20
    p = round(d / (features.fixed_ratio or GAMMA))

    def sample():
        rng = np.random.default_rng(4)
        return features.draw(d, p, 1.0, rng).sample(3, rng)

    for one, other in zip(sample(), sample(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert features.numbers_drawn(10, d, p) > 0


# models


@every_kind
def test_features_travel_to_other_processes(features):
    assert pickle.loads(pickle.dumps(features)) == features


@every_kind
def test_features_stand_in_the_model_as_they_were_given(features):
    model = hm.Model(features=features, teacher="sign", loss="logistic")
    assert model.features is features
    again = hm.Model(**features.as_arguments(), teacher="sign", loss="logistic")
    assert again == model
    assert type(features).__name__ in repr(model) or next(iter(again.ingredients)) in repr(model)
    if "activation" not in features.as_arguments():
        with pytest.raises(AttributeError, match="no activation of their own"):
            _ = model.activation


@every_kind
@pytest.mark.parametrize(
    "also",
    [{"activation": "erf"}, {"projection": "gaussian"}, {"activation": "erf", "projection": "dct"}],
    ids=["activation", "projection", "both"],
)
def test_features_and_their_parts_are_not_given_both(features, also):
    with pytest.raises(InvalidArgumentError, match="cannot be combined with") as caught:
        hm.Model(features=features, **also, teacher="sign", loss="logistic")
    assert caught.value.argument == "features"


@pytest.mark.parametrize("given", ["deep", 3, Features], ids=["a name", "a number", "a class"])
def test_what_is_no_features_is_refused(given):
    with pytest.raises(InvalidArgumentError, match="a hiddenmanifold.features.Features") as caught:
        hm.Model(features=given, teacher="sign", loss="logistic")
    assert caught.value.argument == "features"
