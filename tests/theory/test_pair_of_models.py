"""Two fits of different models to the same labels."""

import numpy as np
import pytest
from pairs_of_fits import deviation_of_two, deviations_of_two, sign_label

import hiddenmanifold as hm
from given import plain_model, power_law
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError, Status
from hiddenmanifold.features import Projected

HERE = {"workers": 1, "progress": False}
AT = {"n_over_d": 2.0, "p_over_n": 0.6, "regularisation": 0.1}
NOISY = hm.teachers.Sign(noise=0.2, threshold=0.3)


def pair(first, second, **given):
    return hm.pair(first, second, **{**AT, **HERE, **given})


@pytest.mark.slow
def test_covariances_solve_their_equation_with_plain_integrals():
    values = np.array([value for value, *_ in deviations_of_two(2, 1)])
    assert (values <= 1e-8).all()


def test_a_fit_that_is_much_better_than_the_other():
    """Here no single variable is what both predictions and the field have in common."""
    good = plain_model("identity", teacher="sign", loss="squared_hinge")
    poor = plain_model("sign", teacher="sign", loss="square")
    at = {"n_over_d": 3.0, "p_over_n": 10 / 3, "regularisation": 0.3, "p_2_over_d": 3.1}
    ds = pair(good, poor, **at, regularisation_2=1e-4)
    Q, M = ds.Q.values, ds.M.values
    assert float(ds.overlap) * M[0] / M[1] > Q[0]
    assert deviation_of_two(ds, (good, poor), sign_label(0.0, 0.0, 0.0), 0.0) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "loss", "intercept"),
    [
        (NOISY, "hinge", True),
        ("sign", "square", False),
        (hm.teachers.Mixture(prior=0.4, rho=2.0), "squared_hinge", True),
        (hm.teachers.Linear(noise=hm.noises.Laplace(0.3)), "absolute", True),
        (hm.teachers.Real(np.tanh, noise=0.2), "square", False),
    ],
)
@pytest.mark.parametrize("independent", ["features", "samples"])
def test_two_equal_models_are_an_ensemble(teacher, loss, intercept, independent):
    model = plain_model("erf", teacher=teacher, loss=loss, intercept=intercept)
    two = pair(model, model, share=[1.0, 0.5], independent=independent)
    many = hm.ensemble(model, members=[1, 2], independent=independent, **AT, **HERE)
    for name in ("overlap", "score_correlation", "generalisation_error", "clean_error"):
        assert np.allclose(two[name], many[name], rtol=1e-12), name
    apart = hm.instability(model, independent=independent, **AT, **HERE)
    for name in ("disagreement", "probability_difference", "score_difference"):
        if name in apart:
            assert float(two[name]) == pytest.approx(float(apart[name]), rel=1e-9)
    for name in ("Q", "M", "V", "training_loss"):
        assert two[name].values == pytest.approx([float(many[name])] * 2, rel=1e-12)


@pytest.mark.slow
def test_the_order_of_both_models_does_not_matter():
    first = plain_model("erf", teacher=NOISY, loss="hinge")
    second = plain_model("relu", "orthogonal", teacher=NOISY, loss="square")
    given = {"share": [0.3, 1.0], "regularisation_2": 0.7, "p_2_over_d": 0.4, "observables": "auc"}
    one = pair(first, second, **given)
    other = hm.pair(
        second,
        first,
        n_over_d=2.0,
        p_over_d=0.4,
        p_2_over_d=1.2,
        regularisation=0.7,
        regularisation_2=0.1,
        share=[0.7, 0.0],
        observables="auc",
        **HERE,
    )
    for name in ("overlap", "disagreement", "generalisation_error", "auc"):
        assert np.allclose(one[name], other[name], rtol=1e-10), name
    assert np.allclose(one.Q, other.Q[::-1], rtol=1e-12)


def test_each_fit_alone_is_that_of_predict():
    first = plain_model("erf", teacher=NOISY, loss="logistic", intercept=True)
    second = plain_model(teacher=NOISY, loss="square", weights="balanced")
    ds = pair(first, second, regularisation_2=[0.5, 2.0], p_2_over_d=3.0)
    one = hm.predict(first, **AT, **HERE)
    at = {"n_over_d": 2.0, "p_over_d": 3.0, "regularisation": [0.5, 2.0]}
    other = hm.predict(second, **at, **HERE)
    assert np.allclose(ds.generalisation_error[:, 0], one.generalisation_error, rtol=1e-11)
    assert np.allclose(ds.generalisation_error[:, 2], other.generalisation_error, rtol=1e-11)
    for name in ("Q", "M", "intercept", "training_loss", "training_error"):
        assert np.allclose(ds[name][:, 0], one[name], rtol=1e-11, atol=1e-13), name
        assert np.allclose(ds[name][:, 1], other[name], rtol=1e-11, atol=1e-13), name


def test_an_error_of_a_mean_of_regressions_is_a_parabola_of_the_share():
    first, second = (plain_model(teacher="linear", loss=loss) for loss in ("huber", "square"))
    ds = pair(first, second, share=[1.0, 0.5, 0.0], p_2_over_d=0.5)
    Q, M = ds.Q.values, ds.M.values
    rho, noise = first.teacher.rho, first.teacher.law.variance
    mean = rho + noise + 0.25 * (Q.sum() + 2.0 * float(ds.overlap)) - M.sum()
    assert float(ds.generalisation_error[1]) == pytest.approx(mean, rel=1e-12)


@pytest.mark.slow
def test_kernels_are_the_limit_of_many_features():
    kernel = hm.kernels.NNGP("erf")
    first = plain_model("erf", teacher=NOISY, loss="hinge")
    machine = hm.Model(kernel=kernel, teacher=NOISY, loss="square")
    wide = plain_model("erf", teacher=NOISY, loss="square")
    ds = pair(first, machine, regularisation_2=0.3 / wide.features.variance)
    limit, near = (pair(first, wide, regularisation_2=0.3, p_2_over_d=p) for p in (np.inf, 1e7))
    assert float(ds.overlap) == pytest.approx(float(limit.overlap), rel=1e-10)
    assert float(near.overlap) == pytest.approx(float(limit.overlap), rel=1e-5)


@pytest.mark.slow
def test_features_of_data_of_any_covariance():
    """Many random features of the identity are the data themselves."""
    data = power_law(40)
    teacher = hm.teachers.Linear(noise=0.3, rho=data.rho)
    itself = hm.Model(features=data, teacher=teacher, loss="huber")
    projected = hm.Model(features=Projected(data), teacher=teacher, loss="huber")
    at = {"n_over_d": 2.0, "regularisation": 0.1, **HERE}
    far = hm.pair(itself, projected, **at, p_2_over_d=1e9)
    assert float(far.score_correlation) == pytest.approx(1.0, abs=1e-6)
    near = hm.pair(itself, projected, **at, p_2_over_d=0.5)
    assert 0.0 < float(near.overlap) < np.sqrt(near.Q.prod())


@pytest.mark.slow
def test_vanishing_regularisation():
    first = plain_model("erf", teacher=NOISY, loss="hinge")
    second = plain_model(teacher=NOISY, loss="square")
    limit, near = (
        pair(first, second, p_over_n=[0.3, 3.0], regularisation=lam, regularisation_2=lam)
        for lam in (0.0, 1e-8)
    )
    assert np.allclose(limit.generalisation_error, near.generalisation_error, rtol=1e-4)
    growing = plain_model("erf", teacher=NOISY, loss="logistic")
    lost = pair(growing, second, p_over_n=3.0, regularisation=0.0, on_failure="keep")
    assert int(lost.status) == Status.NO_LIMIT
    assert np.isnan(lost.generalisation_error).all()


@pytest.mark.slow
def test_models_that_make_no_pair_are_refused():
    model = plain_model(teacher=NOISY, loss="hinge")
    with pytest.raises(InvalidArgumentError, match="second"):
        pair(model, "logistic")
    with pytest.raises(IncompatibleIngredientsError, match="teachers"):
        pair(model, plain_model(teacher="sign", loss="hinge"))
    with pytest.raises(IncompatibleIngredientsError, match="predictions"):
        pair(model, plain_model(teacher=NOISY, loss="hinge", prediction="logistic"))
    for independent in ("none", "samples"):
        with pytest.raises(IncompatibleIngredientsError, match="cannot share"):
            pair(model, plain_model("tanh", teacher=NOISY, loss="hinge"), independent=independent)
    data = power_law(30)
    other = hm.Model(features=data, teacher=hm.teachers.Sign(rho=data.rho), loss="hinge")
    with pytest.raises(IncompatibleIngredientsError, match="different data"):
        hm.pair(
            plain_model(teacher=hm.teachers.Sign(rho=data.rho), loss="hinge"), other, **AT, **HERE
        )
    weighted = [
        plain_model(
            teacher=NOISY, loss="hinge", weights=hm.weights.Independent([1.0, a], [0.5, 0.5])
        )
        for a in (2.0, 3.0)
    ]
    with pytest.raises(IncompatibleIngredientsError, match="laws of their own"):
        pair(*weighted)
    for name, value in (
        ("share", 1.5),
        ("share", [0.5, 0.5]),
        ("p_2_over_d", 0.0),
        ("regularisation_2", -1.0),
        ("regularisation", np.inf),
        ("independent", "labels"),
    ):
        with pytest.raises(InvalidArgumentError, match=name):
            pair(model, model, **{name: value})
    with pytest.raises(InvalidArgumentError, match="p_2_over_d"):
        pair(model, model, independent="none", p_2_over_d=1.0)
    with pytest.raises(InvalidArgumentError, match="p_2_over_d"):
        hm.pair(
            hm.Model(kernel="rbf", teacher=NOISY, loss="hinge"),
            model,
            n_over_d=1.0,
            regularisation=0.1,
        )
    with pytest.raises(InvalidArgumentError, match="test_loss"):
        pair(model, plain_model(teacher=NOISY, loss="square"), observables="test_loss")
    counts = plain_model(teacher="poisson", loss="poisson")
    with pytest.raises(IncompatibleIngredientsError, match="pairs of fits"):
        pair(counts, counts)
