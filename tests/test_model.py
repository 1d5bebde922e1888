"""The model: names, ingredients that fit together, ratios, and the conventions of other tools."""

from dataclasses import FrozenInstanceError
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

import hiddenmanifold as hm
from given import RULE_OF
from hiddenmanifold import (
    IncompatibleIngredientsError,
    InvalidArgumentError,
    Model,
    losses,
    teachers,
)
from hiddenmanifold.checks import Task
from hiddenmanifold.features import activations, projections
from hiddenmanifold.theory.points import RATIOS, exponents

PROPERTY = settings(max_examples=60)

ROOMS = {
    "activation": activations,
    "projection": projections,
    "teacher": teachers,
    "loss": losses,
}
PLAIN = {"activation": "sign", "projection": "gaussian", "teacher": "sign", "loss": "square"}

MARGIN = losses.Custom(
    lambda m: np.logaddexp(0.0, -m), lambda m: -expit(-m), lambda m: expit(m) * expit(-m)
)
RESIDUAL = losses.Custom(lambda r: 0.5 * r**2, lambda r: 1.0 * r, np.ones_like, of="residual")


def model(**ingredients):
    return Model(**{**PLAIN, **ingredients})


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, room in ROOMS.items() for name in room.REGISTRY]
)
def test_registered_name_stands_for_its_class(kind, name):
    fitting = {"teacher": RULE_OF[name]} if kind == "loss" else {}
    built = model(**fitting, **{kind: name})
    assert getattr(built, kind) == ROOMS[kind].REGISTRY[name]()


def test_ingredients_are_taken_as_they_are():
    given = {
        "activation": activations.Relu(),
        "projection": projections.Spectrum([0.5, 1.5], d_over_p=2.0),
        "teacher": teachers.Sign(flip=0.1),
        "loss": losses.Huber(0.3),
    }
    built = Model(**given)
    for kind, ingredient in given.items():
        assert getattr(built, kind) is ingredient


def test_callable_becomes_an_activation():
    built = model(activation=np.tanh)
    assert isinstance(built.activation, activations.Custom)
    assert built.activation.kappas == pytest.approx(activations.Tanh().kappas, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "wrong", "meant"),
    [
        ("activation", "rellu", "relu"),
        ("activation", "Sign", "sign"),
        ("activation", "hard-tanh", "hard_tanh"),
        ("projection", "gausian", "gaussian"),
        ("projection", "Orthogonal", "orthogonal"),
        ("projection", "hadamart", "hadamard"),
        ("teacher", "liner", "linear"),
        ("teacher", "LOGISTIC", "logistic"),
        ("loss", "hing", "hinge"),
        ("loss", "squared-hinge", "squared_hinge"),
        ("loss", "squares", "square"),
        ("loss", "Hubert", "huber"),
    ],
)
def test_misspelt_name_is_answered_with_the_nearest_one(kind, wrong, meant):
    with pytest.raises(InvalidArgumentError) as caught:
        model(**{kind: wrong})
    assert caught.value.argument == kind
    message = str(caught.value)
    assert message.startswith(f"{kind} = {wrong!r}")
    assert f"{meant!r}" in message.split("did you mean")[1]
    for name in ROOMS[kind].REGISTRY:
        assert repr(name) in message


@pytest.mark.parametrize("kind", ROOMS)
def test_hopeless_name_is_answered_with_all_names(kind):
    with pytest.raises(InvalidArgumentError, match="one of") as caught:
        model(**{kind: "qqqq"})
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("kind", ROOMS)
@pytest.mark.parametrize("wrong", [None, 3, ["sign"], b"sign", ""], ids=repr)
def test_object_of_no_kind_is_refused(kind, wrong):
    with pytest.raises(InvalidArgumentError) as caught:
        model(**{kind: wrong})
    assert caught.value.argument == kind


@pytest.mark.parametrize(
    ("kind", "other"), [(k, o) for k in ROOMS for o in ROOMS if k not in (o, "activation")]
)
def test_ingredient_of_another_kind_is_refused(kind, other):
    ingredient = next(iter(ROOMS[other].REGISTRY.values()))()
    with pytest.raises(InvalidArgumentError, match="object") as caught:
        model(**{kind: ingredient})
    assert caught.value.argument == kind


@pytest.mark.parametrize("kind", ROOMS)
def test_class_instead_of_an_object_is_refused(kind):
    cls = next(iter(ROOMS[kind].REGISTRY.values()))
    with pytest.raises(InvalidArgumentError, match="object") as caught:
        model(**{kind: cls})
    assert caught.value.argument == kind


def test_loss_is_no_activation():
    with pytest.raises(InvalidArgumentError, match="or an Activation object"):
        model(activation=losses.Hinge())


@pytest.mark.parametrize("intercept", [None, 1, 0, "yes", 0.5])
def test_intercept_is_yes_or_no(intercept):
    with pytest.raises(InvalidArgumentError, match="True or False") as caught:
        model(intercept=intercept)
    assert caught.value.argument == "intercept"


def test_numpy_bool_is_a_bool():
    assert model(intercept=np.bool_(True)) == model(intercept=True)
    assert model(intercept=np.bool_(True)).intercept is True


@pytest.mark.parametrize(
    "loss",
    ["logistic", "hinge", "squared_hinge", "smoothed_hinge", MARGIN],
    ids=lambda v: v if isinstance(v, str) else "custom of the margin",
)
def test_margin_loss_and_real_labels_do_not_fit_together(loss):
    with pytest.raises(IncompatibleIngredientsError) as caught:
        model(teacher="linear", loss=loss)
    message = str(caught.value)
    expected = repr(losses.REGISTRY[loss]()) if isinstance(loss, str) else "Custom("
    assert expected in message
    assert repr(teachers.Linear()) in message
    assert "regression" in message
    assert "classification" in message


@pytest.mark.parametrize(
    "loss",
    ["square", "huber", "absolute", RESIDUAL],
    ids=lambda v: v if isinstance(v, str) else "custom of the residual",
)
def test_residual_loss_fits_both_tasks(loss):
    assert model(teacher="linear", loss=loss).task is Task.REGRESSION
    assert model(teacher="logistic", loss=loss).task is Task.CLASSIFICATION


def test_incompatibility_is_an_error_of_the_package_and_a_value_error():
    assert issubclass(IncompatibleIngredientsError, hm.HiddenManifoldError)
    assert issubclass(IncompatibleIngredientsError, ValueError)
    assert issubclass(InvalidArgumentError, hm.HiddenManifoldError)
    assert issubclass(InvalidArgumentError, ValueError)
    assert issubclass(hm.ConvergenceError, hm.HiddenManifoldError)
    assert issubclass(hm.ConvergenceError, RuntimeError)


@pytest.mark.parametrize(
    ("activation", "intercept", "free"),
    [
        ("sign", False, False),
        ("sign", True, True),
        ("tanh", False, False),
        ("relu", False, True),
        ("relu", True, True),
        (lambda x: x + 0.1, False, True),
        (lambda x: x**3, False, False),
        (lambda x: np.maximum(x, 0.0) - 1 / np.sqrt(2 * np.pi), False, False),
    ],
    ids=["odd", "fitted", "odd by quadrature", "relu", "both", "shifted", "cubic", "centred relu"],
)
def test_features_of_non_zero_mean_free_the_intercept(activation, intercept, free):
    assert model(activation=activation, intercept=intercept).free_intercept == free


def test_constant_activation_is_refused_by_the_model():
    with pytest.raises(InvalidArgumentError, match="constant"):
        model(activation=np.ones_like)


def test_model_is_a_frozen_value():
    assert model() == model(activation=activations.Sign())
    assert model() != model(loss="hinge")
    assert hash(model()) == hash(model())
    with pytest.raises(FrozenInstanceError):
        model().loss = losses.Hinge()


def test_model_takes_keywords_only():
    with pytest.raises(TypeError):
        Model("sign", "gaussian", "sign", "square")


def test_repr_names_every_ingredient():
    text = repr(model(teacher=teachers.Sign(flip=0.25), intercept=True))
    for part in ("Sign()", "Gaussian()", "flip=0.25", "Square()", "intercept=True"):
        assert part in text


def test_error_message_stays_short():
    with pytest.raises(InvalidArgumentError) as caught:
        model(loss=list(range(10_000)))
    assert len(str(caught.value)) < 400


# --- ratios ------------------------------------------------------------------------------------

SAME = {frozenset(pair) for pair in (("n_over_d", "d_over_n"), ("p_over_n", "n_over_p"))} | {
    frozenset(("p_over_d", "d_over_p"))
}


def ratio(name, sizes):
    above, _, below = name.partition("_over_")
    return sizes[above] / sizes[below]


@pytest.mark.slow
@PROPERTY
@given(n=st.floats(0.01, 100), p=st.floats(0.01, 100), d=st.floats(0.01, 100))
def test_any_two_independent_ratios_give_n_over_p_and_d_over_p(n, p, d):
    sizes = {"n": n, "p": p, "d": d}
    for pair in permutations(RATIOS, 2):
        if frozenset(pair) in SAME:
            continue
        to_alpha, to_gamma = exponents(pair, None)
        values = np.array([ratio(name, sizes) for name in pair])
        assert np.prod(values ** np.array(to_alpha)) == pytest.approx(n / p)
        assert np.prod(values ** np.array(to_gamma)) == pytest.approx(d / p)


@pytest.mark.parametrize("pair", sorted(map(sorted, SAME)), ids="-".join)
def test_a_ratio_and_its_inverse_say_the_same_thing_twice(pair):
    with pytest.raises(InvalidArgumentError, match="same thing twice") as caught:
        exponents(tuple(pair), None)
    assert all(name in str(caught.value) for name in pair)


@pytest.mark.parametrize(
    "names", [(), *((name,) for name in RATIOS), *combinations(RATIOS, 3)], ids="-".join
)
def test_other_than_two_ratios_are_refused_and_named(names):
    with pytest.raises(InvalidArgumentError, match="exactly two independent ratios") as caught:
        exponents(names, None)
    assert caught.value.argument == "ratios"
    assert caught.value.problem == (f"{', '.join(names)} were given" if names else "are missing")


@pytest.mark.parametrize("name", ["n_over_d", "d_over_n", "p_over_n", "n_over_p"])
def test_one_ratio_is_enough_when_the_projection_fixes_d_over_p(name):
    sizes = {"n": 3.0, "p": 5.0, "d": 2.0}
    to_alpha, to_gamma = exponents((name,), 0.4)
    values = np.array([ratio(name, sizes), 0.4])
    assert np.prod(values ** np.array(to_alpha)) == pytest.approx(0.6)
    assert np.prod(values ** np.array(to_gamma)) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "names", [(), ("d_over_p",), ("p_over_d",), ("n_over_d", "p_over_n")], ids="-".join
)
def test_fixed_d_over_p_asks_for_exactly_one_other_ratio(names):
    with pytest.raises(InvalidArgumentError, match="the features fix d/p = 0.4"):
        exponents(names, 0.4)


# --- conventions of scikit-learn ---------------------------------------------------------------

SAMPLES, FEATURES = 60, 7


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(10)
    x = np.tanh(rng.standard_normal((SAMPLES, FEATURES)) + 0.3)
    field = x @ rng.standard_normal(FEATURES)
    noise = rng.standard_normal(SAMPLES)
    return x, field + noise, np.sign(field + 0.5 * noise + 0.4)


def minimiser(x, y, lam, slopes, *, intercept):
    """Newton's method on our objective: sum of loss(y, x.w/sqrt p + b) + lam/2 |w|^2."""
    A = np.hstack([x / np.sqrt(FEATURES), np.ones((SAMPLES, 1))])[:, : FEATURES + intercept]
    penalty = lam * np.append(np.ones(FEATURES), 0.0)[: FEATURES + intercept]
    w = np.zeros(FEATURES + intercept)
    for _ in range(60):
        first, second = slopes(y, A @ w)
        gradient = A.T @ first + penalty * w
        w -= np.linalg.solve(A.T @ (second[:, None] * A) + np.diag(penalty), gradient)
    assert np.abs(gradient).max() < 1e-10
    return w


def logistic(y, f):
    return -y * expit(-y * f), expit(f) * expit(-f)


def square(y, f):
    return f - y, np.ones_like(f)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-2, 1.0, 30.0])
def test_to_sklearn_C_gives_the_minimiser_of_our_objective(sample, lam, intercept):
    x, _, y = sample
    w = minimiser(x, y, lam, logistic, intercept=intercept)
    theirs = LogisticRegression(
        C=hm.to_sklearn_C(lam, FEATURES),
        tol=1e-12,
        solver="newton-cholesky",
        fit_intercept=intercept,
    ).fit(x, y)
    assert np.sqrt(FEATURES) * theirs.coef_[0] == pytest.approx(w[:FEATURES], rel=1e-8)
    if intercept:
        assert theirs.intercept_[0] == pytest.approx(w[FEATURES], rel=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-2, 1.0, 30.0])
def test_to_ridge_alpha_gives_the_minimiser_of_our_objective(sample, lam, intercept):
    x, y, _ = sample
    w = minimiser(x, y, lam, square, intercept=intercept)
    theirs = Ridge(alpha=hm.to_ridge_alpha(lam, FEATURES), fit_intercept=intercept).fit(x, y)
    assert np.sqrt(FEATURES) * theirs.coef_ == pytest.approx(w[:FEATURES], rel=1e-9)
    if intercept:
        assert theirs.intercept_ == pytest.approx(w[FEATURES], rel=1e-9)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("convert", [hm.to_sklearn_C, hm.to_ridge_alpha])
@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ((-1.0, 10), "regularisation"),
        ((NAN, 10), "regularisation"),
        ((INF, 10), "regularisation"),
        (("1", 10), "regularisation"),
        ((1.0, 0), "p"),
        ((1.0, -3), "p"),
        ((1.0, NAN), "p"),
    ],
)
def test_conversion_refuses_what_makes_no_sense(convert, arguments, argument):
    with pytest.raises(InvalidArgumentError) as caught:
        convert(*arguments)
    assert caught.value.argument == argument


def test_zero_regularisation_is_a_ridge_alpha_but_no_C():
    assert hm.to_ridge_alpha(0.0, 10) == 0.0
    with pytest.raises(InvalidArgumentError, match="above 0"):
        hm.to_sklearn_C(0.0, 10)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-21, 1e-101, 1e21, np.inf, np.nan])
@pytest.mark.parametrize(
    ("name", "ingredient"),
    [
        ("rho", lambda value: hm.teachers.Linear(rho=value)),
        ("rho", lambda value: hm.teachers.Sign(rho=value)),
        ("rho", lambda value: hm.teachers.Custom(np.tanh, rho=value)),
        ("slope", lambda value: hm.teachers.Logistic(slope=value)),
        ("delta", hm.losses.Huber),
        ("delta", hm.losses.SmoothedHinge),
    ],
)
def test_scales_beyond_what_numbers_hold_are_refused(name, ingredient, value):
    with pytest.raises(hm.InvalidArgumentError, match=f"^{name} = .* at least 1e-20 and at most"):
        ingredient(value)


@pytest.mark.parametrize("scale", [1e-19, 1e-10, 1e10, 1e20])
@pytest.mark.parametrize("loss", ["square", "huber", "absolute"])
def test_units_of_the_labels_do_not_matter(loss, scale):
    """Labels in other units, and what the loss knows of units likewise: errors scale alike."""
    unit = np.sqrt(scale)
    made, lam = {
        "square": (lambda unit: hm.losses.Square(), 0.3),
        "huber": (lambda unit: hm.losses.Huber(0.7 * unit), 0.3),
        "absolute": (lambda unit: hm.losses.Absolute(), 0.3 / unit),
    }[loss]
    errors = [
        hm.predict(
            hm.Model(
                activation="tanh",
                projection="gaussian",
                teacher=hm.teachers.Linear(rho=0.9 * rho, noise=0.1 * rho),
                loss=made(np.sqrt(rho)),
            ),
            n_over_p=1.7,
            d_over_p=0.6,
            regularisation=strength,
        ).generalisation_error.item()
        / rho
        for rho, strength in ((1.0, 0.3), (scale, lam))
    ]
    assert errors[1] == pytest.approx(errors[0], rel=1e-9)


def test_half_of_random_features_is_told_the_other_half():
    with pytest.raises(InvalidArgumentError, match="projection is missing: .* give projection='ga"):
        Model(activation="erf", teacher="sign", loss="logistic")
    with pytest.raises(InvalidArgumentError, match="activation is missing: .* give activation='er"):
        Model(projection="dct", teacher="sign", loss="logistic")
