"""Pairs of fits: the covariance of their predictions, and errors of ensembles."""

import numpy as np
import pytest
from pairs_of_fits import deviations

import hiddenmanifold as hm
from given import plain_model, power_law
from hiddenmanifold import losses
from hiddenmanifold.compiled import E0, E1
from hiddenmanifold.errors import IncompatibleIngredientsError, InvalidArgumentError
from hiddenmanifold.features import Covariance, Projected
from hiddenmanifold.teachers import CERTAIN
from hiddenmanifold.theory.labels_side.averages import Branch
from hiddenmanifold.theory.labels_side.proximal_curve import Field
from hiddenmanifold.theory.pairs.private_means import private_means

HERE = {"workers": 1, "progress": False}
MEMBERS = [1, 2, 3, 4, 16, np.inf]


def ensemble(model, members=MEMBERS, **given):
    return hm.ensemble(model, members=members, **HERE, **given)


@pytest.mark.slow
def test_covariances_solve_their_equation_with_plain_integrals():
    values = np.array([value for value, *_ in deviations(5, 1)])
    assert (values <= 1e-8).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huber", "absolute", "square"])
def test_means_of_broken_lines_are_those_of_the_quadrature(loss):
    rng = np.random.default_rng(0)
    V, mean = 10.0 ** rng.uniform(-4, 4, 60), rng.normal(size=60) * 3
    deviation = 10.0 ** rng.uniform(-3, 1, 60)
    known = losses.REGISTRY[loss]()
    zero = np.zeros(60)
    field = Field(V, mean, deviation, zero, zero, zero)
    found = Branch(1, 1.0, CERTAIN, field, mean, zero, zero).averages(known, 4, False)
    value, slope = private_means(known, V, mean, deviation, 0)
    assert np.allclose(value, found.e[:, E0], rtol=1e-11, atol=1e-14)
    assert np.allclose(slope, found.e[:, E1], rtol=1e-9, atol=1e-13)


def test_published_and_simulated_numbers():
    model = plain_model("sign", "gaussian", "sign", "logistic")
    ds = ensemble(model, [1, 2, 4, 16, np.inf], n_over_d=3, p_over_n=2 / 3, regularisation=0.01)
    expected = [0.29232, 0.24884, 0.21256, 0.16990, 0.14968]
    assert np.allclose(ds.generalisation_error, expected, atol=6e-6)
    assert float(ds.overlap) == pytest.approx(9.67677, abs=6e-6)


def ridge(projection="gaussian", noise=0.25, **given):
    teacher = hm.teachers.Linear(noise=noise)
    model = plain_model("relu", projection, teacher, "square")
    return model, ensemble(model, [1, np.inf], **given)


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_infinitely_many_members_are_kernel_ridge_regression_with_another_penalty(projection):
    """Jacot et al. (2020); the penalty in closed form for any rotation-invariant matrix."""
    model, ds = ridge(projection, n_over_d=2.0, p_over_n=[0.7, 1.6], regularisation=0.2)
    _, kappa_1, kappa_star = model.activation.kappas
    mu = kappa_1**2 * ds.V_s / (1.0 + ds.V)
    penalty = kappa_1**2 * (1.0 / mu - 2.0) * (1.0 - mu) - kappa_star**2
    for i in range(2):
        at = {"n_over_d": 2.0, "p_over_n": np.inf, "regularisation": float(penalty[i])}
        kernel = hm.predict(model, **at, **HERE)
        assert float(ds.overlap[i]) == pytest.approx(float(kernel.Q), rel=1e-12)
        assert float(ds.M[i]) == pytest.approx(float(kernel.M), rel=1e-12)
        assert float(ds.generalisation_error[i, 1]) == pytest.approx(
            float(kernel.generalisation_error), rel=1e-12
        )


def test_the_ridgeless_peak_vanishes_with_many_members():
    """d'Ascoli et al. (2020): beyond p = n the error of many no longer depends on p."""
    _, ds = ridge(n_over_d=1.0, p_over_n=[0.9, 1.1, 2.0, 10.0], regularisation=0)
    many = ds.generalisation_error.sel(members=np.inf).values
    assert np.allclose(many[1:], many[1], rtol=1e-12)
    assert many[0] == pytest.approx(0.6605, abs=5e-5)
    assert (ds.generalisation_error.sel(members=1).values[:2] > 5.0).all()


def test_votes_of_an_even_number_are_those_of_one_less_and_means_do_better():
    model = plain_model("sign", "gaussian", hm.teachers.Sign(noise=0.2), "hinge")
    ds = ensemble(model, n_over_d=2.0, p_over_n=0.6, regularisation=0.05)
    vote, mean = ds.vote_error.values, ds.generalisation_error.values
    assert np.allclose(vote[[0, 1, 3, 5]], [mean[0], mean[0], vote[2], mean[5]], rtol=1e-12)
    assert (vote[1:-1] > mean[1:-1]).all()
    assert (np.diff(mean) < 0).all()


def test_one_vote_of_a_biased_classifier_is_its_label():
    """The integral over the shared part gives the error of a single fit, on other nodes."""
    from hiddenmanifold.theory.pairs import mean_and_vote
    from hiddenmanifold.theory.pairs.shared_overlaps import Shared, shared_overlaps
    from hiddenmanifold.theory.points import Points
    from hiddenmanifold.theory.solver.saddle_point import SaddlePoint
    from hiddenmanifold.theory.solver.strategy import solve

    teacher = hm.teachers.Sign(noise=0.1, threshold=0.5, flip=0.05)
    model = plain_model("relu", "gaussian", teacher, "logistic")
    one = np.ones(1)
    solved = solve(SaddlePoint.of(model, Points.of(1.5 * one, 0.6 * one, 0.1 * one)))
    pair = shared_overlaps(solved, Shared(features=False))
    single = mean_and_vote.new_errors(solved.problem.channel, solved.x, pair.own)
    vote = mean_and_vote.vote_error(solved.problem.channel, pair, single, 1.0000001)
    assert vote == pytest.approx(single["generalisation_error"], rel=1e-6)


@pytest.mark.slow
def test_the_best_regularisation_of_an_ensemble_is_its_own():
    """That of one member is the one of `predict`; the error of many at theirs has no p in it."""
    teacher = hm.teachers.Linear(noise=0.5)
    model = plain_model("erf", "gaussian", teacher, "square")
    at = {"n_over_d": 2.0, "p_over_n": [0.5, 1.0], "regularisation": "optimal"}
    ds, single = ensemble(model, [1, np.inf], **at), hm.predict(model, **at, **HERE)
    assert np.allclose(ds.generalisation_error[:, 0], single.generalisation_error, rtol=1e-7)
    assert np.allclose(ds.optimal_regularisation[:, 0], single.optimal_regularisation, rtol=1e-2)
    many = ds.generalisation_error[:, 1].values
    assert many[0] == pytest.approx(many[1], rel=1e-7)
    assert (ds.optimal_regularisation[:, 1] < ds.optimal_regularisation[:, 0]).all()


@pytest.mark.slow
def test_the_best_regularisation_may_be_a_limit_or_a_bound():
    model = plain_model("erf", "gaussian", hm.teachers.Sign(noise=0.3), "hinge")
    at = {"n_over_d": 2.0, "p_over_n": 0.5, "members": np.inf, **HERE}
    ds = hm.ensemble(model, **at, regularisation="optimal")
    assert float(ds.optimal_regularisation[0]) == np.inf
    bounded = hm.ensemble(model, **at, regularisation=hm.Optimal(bounds=(0.01, 0.5)))
    others = hm.ensemble(model, **at, regularisation=np.geomspace(0.01, 0.5, 30))
    least = float(others.generalisation_error.min())
    assert float(ds.generalisation_error[0]) < float(bounded.generalisation_error[0]) <= least
    assert 0.01 <= float(bounded.optimal_regularisation[0]) <= 0.5


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_limits(loss):
    model = plain_model(loss=loss)
    far = ensemble(model, n_over_d=2.0, p_over_n=np.inf, regularisation=0.1)
    assert np.allclose(far.overlap, far.Q, rtol=1e-10)
    assert np.ptp(far.generalisation_error.values) < 1e-10
    many = ensemble(model, n_over_p=np.inf, d_over_p=1.5, regularisation=0.1)
    assert float(many.overlap) == pytest.approx(float(many.M) ** 2, rel=1e-9)
    zero = ensemble(model, n_over_d=2.0, p_over_n=[0.3, 3.0], regularisation=0)
    near = ensemble(model, n_over_d=2.0, p_over_n=[0.3, 3.0], regularisation=1e-7)
    close = 0.02 if loss == "logistic" else 1e-4
    assert np.allclose(zero.generalisation_error, near.generalisation_error, rtol=close)


def test_features_that_differ_by_a_rotation_alone_make_equal_fits():
    model = plain_model("identity", "orthogonal", "sign", "logistic")
    ds = ensemble(model, n_over_d=2.0, p_over_d=1.5, regularisation=0.1)
    assert float(ds.overlap) == pytest.approx(float(ds.Q), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("lam", [0.0, 1e-12])
def test_features_that_span_the_data_make_equal_fits_without_regularisation(lam):
    """Linear features of any matrix, as many as latent dimensions, leave nothing to differ."""
    model = plain_model("identity", "gaussian", hm.teachers.Logistic(slope=0.35), "hinge")
    at = {"n_over_d": 8.0, "p_over_n": [2.0, 0.1], "regularisation": lam}
    ds = hm.instability(model, independent="features", **at, **HERE)
    assert float(ds.overlap[0]) == float(ds.Q[0])
    assert float(ds.disagreement[0]) == float(ds.probability_difference[0]) == 0.0
    assert float(ds.disagreement[1]) > 0.01


def test_the_kernel_limit_of_random_features_is_one_fit():
    ds = hm.instability(
        plain_model(loss="hinge"),
        independent="features",
        n_over_d=2.0,
        p_over_n=np.inf,
        regularisation=0.1,
        **HERE,
    )
    assert float(ds.disagreement) == 0.0


@pytest.mark.slow
def test_scores_that_do_not_vary_have_no_correlation():
    """With weak labels of unequal frequency the best hinge fit is a constant."""
    teacher = hm.teachers.Logistic(slope=2.0, threshold=0.4)
    model = plain_model("relu", "orthogonal", teacher, "hinge")
    at = {"n_over_d": 5.9, "p_over_d": 0.18, "regularisation": 0.027}
    ds = ensemble(model, **at)
    assert float(ds.status) == 0
    assert np.isnan(float(ds.score_correlation))
    assert float(ds.disagreement) == 0.0


@pytest.mark.parametrize("independent", ["features", "samples", "both"])
def test_white_inputs_are_a_covariance_of_equal_eigenvalues(independent):
    d = 20
    theta = np.full(d, 1.0 / d)
    white = Projected(Covariance(np.full(d, 1.0 / d), theta / d), "tanh")
    same = hm.Model(features=white, teacher="sign", loss="hinge")
    model = plain_model("tanh", "gaussian", "sign", "hinge")
    at = {"n_over_d": 2.0, "p_over_d": 0.8, "regularisation": 0.1, "independent": independent}
    ours, theirs = (ensemble(m, **at) for m in (same, model))
    assert float(ours.overlap) == pytest.approx(float(theirs.overlap), rel=1e-9)


def test_overlaps_grow_with_what_is_shared():
    features = Projected(power_law(40), "erf")
    model = hm.Model(features=features, teacher="sign", loss="logistic")
    at = {"n_over_d": 2.0, "p_over_d": 0.8, "regularisation": 0.05}
    common, own = (ensemble(model, **at, independent=i) for i in ("features", "both"))
    same = ensemble(model, **at, independent="samples")
    none = float(own.overlap)
    assert float(own.M) ** 2 < none < float(common.overlap) < float(common.Q)
    assert none < float(same.overlap) < float(common.Q)


def test_features_that_are_not_random_are_the_same_for_all():
    model = hm.Model(features=power_law(30), teacher="sign", loss="square")
    ds = ensemble(model, n_over_d=2.0, regularisation=0.05)
    assert float(ds.overlap) == float(ds.Q)


def test_labels_of_any_law_agree_with_linear_ones():
    linear = hm.teachers.Linear(noise=0.3)
    real = hm.teachers.Real(lambda nu: nu, noise=0.3)
    for loss in ("huber", "square"):
        found = [
            float(
                ensemble(
                    plain_model(teacher=t, loss=loss), n_over_d=2, p_over_n=1, regularisation=0.1
                ).overlap
            )
            for t in (linear, real)
        ]
        assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_normal_noise_in_two_components_is_normal_noise():
    noise = hm.noises.Mixture([0.4, 0.6], [0.3, 0.3])
    found = [
        float(
            ensemble(
                plain_model(teacher=hm.teachers.Linear(noise=n), loss="absolute"),
                n_over_d=2,
                p_over_n=1,
                regularisation=0.1,
            ).overlap
        )
        for n in (0.3, noise)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-10)


@pytest.mark.slow
def test_what_is_not_covered_is_refused():
    at = {"n_over_d": 2.0, "regularisation": 0.1}
    rng = np.random.default_rng(0)
    matrix = hm.projections.Matrix(rng.standard_normal((300, 200)))
    with pytest.raises(IncompatibleIngredientsError, match="given matrix"):
        ensemble(plain_model(projection=matrix), **at)
    assert ensemble(plain_model(projection=matrix), **at, independent="samples").overlap > 0
    counts = plain_model(teacher="poisson", loss="poisson")
    with pytest.raises(IncompatibleIngredientsError, match="pairs of fits"):
        ensemble(counts, p_over_n=1.0, **at)
    for members in (0, 1.5, [2, 2], -1, "two"):
        with pytest.raises(InvalidArgumentError, match="members"):
            ensemble(plain_model(), members, p_over_n=1.0, **at)
    with pytest.raises(InvalidArgumentError, match="independent"):
        ensemble(plain_model(), p_over_n=1.0, independent="labels", **at)
