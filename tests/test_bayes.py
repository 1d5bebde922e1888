"""`bayes_optimal`: known numbers, a slow oracle, limits, labels, and a true lower bound."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from configurations import random_model
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfc, expit, ndtr

import hiddenmanifold as hm
from hiddenmanifold import ConvergenceError, InvalidArgumentError, Status
from hiddenmanifold.api.bayes_optimal import bayes_optimal
from seeds import some_slow

T = hm.teachers
RATIOS = ("n_over_d", "d_over_n", "p_over_n", "n_over_p", "p_over_d", "d_over_p")
COLUMNS = [
    "generalisation_error",
    "clean_error",
    "overlap",
    "status",
    "residual",
    "quadrature_error",
    "conditioning_error",
    "iterations",
]


def model_of(activation="sign", projection="gaussian", teacher="sign", loss="logistic", **options):
    return hm.Model(
        activation=activation, projection=projection, teacher=teacher, loss=loss, **options
    )


def perceptron(teacher="sign"):
    """Features that are the data themselves."""
    loss = "square" if isinstance(teacher, T.Linear) else "logistic"
    return model_of("identity", "orthogonal", teacher, loss)


# --- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("projection", "error"), [("gaussian", 0.2285398702), ("orthogonal", 0.2113412451)]
)
def test_sign_features_at_three_samples_per_latent_dimension(projection, error):
    ds = bayes_optimal(model_of(projection=projection), n_over_d=3.0, p_over_n=1.0)
    assert float(ds.generalisation_error) == pytest.approx(error, abs=2e-10)
    assert float(ds.generalisation_error) == pytest.approx(
        np.arccos(np.sqrt(float(ds.overlap))) / np.pi, rel=1e-12
    )


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_kernel_limit(projection):
    ds = bayes_optimal(model_of(projection=projection), n_over_d=3.0, p_over_n=[1e30, np.inf])
    np.testing.assert_allclose(ds.generalisation_error, 0.1298548, atol=5e-8)


def test_with_many_samples_the_perceptron_errs_like_0_442_over_n():
    """Opper & Haussler 1991."""
    n_over_d = np.array([1e3, 1e6, 1e12])
    ds = bayes_optimal(perceptron(), n_over_d=n_over_d, p_over_d=1.0)
    np.testing.assert_allclose(ds.generalisation_error * n_over_d, 0.442, atol=5e-4)
    integral = quad(lambda t: np.exp(-(t**2)) / ndtr(t), -8, 8, epsabs=1e-13)[0] / (2 * np.pi)
    # V0 ~ (sqrt(2 pi) d/(2 n integral))², and the angle is its root
    constant = np.sqrt(2 * np.pi) / (2 * integral) / np.pi
    assert float(ds.generalisation_error[-1]) * 1e12 == pytest.approx(constant, rel=1e-9)


# --- a slow oracle -----------------------------------------------------------------------------

KAPPAS = {  # squares of kappa_1 and kappa_star
    "sign": (2 / np.pi, 1 - 2 / np.pi),
    "erf": (4 / (3 * np.pi), 2 / np.pi * np.arcsin(2 / 3) - 4 / (3 * np.pi)),
    "relu": (1 / 4, 1 / 4 - 1 / (2 * np.pi)),
    "identity": (1.0, 0.0),
}


def density(x):
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def spectral_average(projection, gamma, function):
    """Over the d eigenvalues of F F^T/d."""
    zeros = max(0.0, 1 - 1 / gamma) * function(0.0)
    if projection == "orthogonal":
        return function(max(1.0, 1 / gamma)) * min(1.0, 1 / gamma) + zeros
    root = np.sqrt(gamma)

    def integrand(phi):
        """Marchenko and Pastur's law of (1/p) F F^T, in an angle that has no square roots."""
        sine, cosine = np.sin(phi / 2), np.cos(phi / 2)
        lam = (1 - root) ** 2 + 4 * root * cosine**2
        return 8 / np.pi * (sine * cosine) ** 2 / lam * function(lam / gamma)

    return quad(integrand, 0, np.pi, epsabs=1e-14, epsrel=1e-11, limit=300)[0] + zeros


def trapezoid(probability, omega, V0):
    z = np.arange(-9.0, 9.01, 0.02)
    mass = 0.02 * density(z) * probability(omega + np.sqrt(V0) * z)
    return mass.sum(), (mass * z).sum() / np.sqrt(V0)


def probit(omega, V0, *, noise=0.0, flip=0.0, threshold=0.0):
    S = np.sqrt(V0 + noise)
    t = (omega + threshold) / S
    return flip + (1 - 2 * flip) * erfc(-t / np.sqrt(2)) / 2, (1 - 2 * flip) * density(t) / S


def window(omega, V0, *, a, b):
    """Minus between a and b, plus elsewhere."""
    low, high = probit(omega, V0, threshold=-a), probit(omega, V0, threshold=-b)
    return 1 - low[0] + high[0], high[1] - low[1]


LAWS = {  # teacher; P(+) and slope at a Gaussian field, noisy and clean
    "sign": (T.Sign(rho=2.0), probit, probit),
    "noisy": (
        T.Sign(noise=0.4, flip=0.05, rho=0.8),
        lambda o, V: probit(o, V, noise=0.4, flip=0.05),
        probit,
    ),
    "shifted": (
        T.Sign(noise=0.2, threshold=0.7),
        lambda o, V: probit(o, V, noise=0.2, threshold=0.7),
        lambda o, V: probit(o, V, threshold=0.7),
    ),
    "logistic": (
        T.Logistic(slope=2.0, threshold=-0.4),
        lambda o, V: trapezoid(lambda nu: expit(2 * (nu - 0.4)), o, V),
        lambda o, V: probit(o, V, threshold=-0.4),
    ),
    "window": (
        T.Steps((-0.3, 1.4), 1, 1.3),
        lambda o, V: window(o, V, a=-0.3, b=1.4),
        lambda o, V: window(o, V, a=-0.3, b=1.4),
    ),
    "custom": (
        T.Custom(lambda nu: 0.1 + 0.8 * expit(3 * nu + 0.5)),
        lambda o, V: trapezoid(lambda nu: 0.1 + 0.8 * expit(3 * nu + 0.5), o, V),
        lambda o, V: probit(o, V, threshold=0.5 / 3),
    ),
}


def average(function, q):
    """Over omega ~ N(0, q)."""
    cuts = np.sqrt(q) * np.linspace(-8.0, 8.0, 9)
    pieces = zip(cuts[:-1], cuts[1:], strict=True)
    total = sum(
        quad(lambda o: density(o / np.sqrt(q)) * function(o), a, b, epsrel=1e-11, limit=400)[0]
        for a, b in pieces
    )
    return total / np.sqrt(q)


def oracle(name, activation, projection, n_over_d, gamma):
    """Overlap and errors by bisection in q, adaptive quadrature, and nothing of the library."""
    teacher, law, clean = LAWS[name]
    rho, (k1, ks) = teacher.rho, KAPPAS[activation]

    def G(s):
        return k1 * s / (k1 * s + ks) if s else 0.0

    def information(q):
        def score(o):
            P, slope = law(o, rho - q)
            return slope**2 / (P * (1 - P)) if 1e-14 < P < 1 - 1e-14 else 0.0

        return average(score, q)

    def excess(q):
        u = rho * n_over_d * information(q)
        return (
            spectral_average(projection, gamma, lambda s: rho * u * G(s) ** 2 / (1 + u * G(s))) - q
        )

    shown = rho * spectral_average(projection, gamma, G)
    q = brentq(excess, 1e-8 * shown, (1 - 1e-9) * shown, xtol=1e-13, rtol=1e-13)

    def error(rule):
        # the kinks of the minimum
        grid = np.sqrt(q) * np.linspace(-8.0, 8.0, 401)
        lead = [rule(o, rho - q)[0] - 0.5 for o in grid]
        roots = [
            brentq(lambda o: rule(o, rho - q)[0] - 0.5, grid[i], grid[i + 1], xtol=1e-14)
            for i in range(400)
            if lead[i] * lead[i + 1] < 0
        ]
        cuts = [grid[0], *roots, grid[-1]]
        return sum(
            quad(
                lambda o: density(o / np.sqrt(q)) * min(P := rule(o, rho - q)[0], 1 - P),
                a,
                b,
                epsabs=1e-13,
                limit=400,
            )[0]
            for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        ) / np.sqrt(q)

    return q, error(law), error(clean)


POINTS = [("erf", "gaussian", 2.0, 0.6), ("sign", "orthogonal", 5.0, 2.5)]
ORACLE = [
    *((name, *point) for name, point in product(LAWS, POINTS)),
    ("sign", "relu", "gaussian", 1.0, 1.8),
    ("noisy", "identity", "orthogonal", 3.0, 0.5),
    ("shifted", "identity", "gaussian", 0.7, 1.3),
    ("window", "identity", "orthogonal", 4.0, 1.0),
    ("sign", "erf", "gaussian", 0.01, 0.2),
    ("noisy", "sign", "orthogonal", 60.0, 0.1),
]


@pytest.mark.parametrize(("name", "activation", "projection", "n_over_d", "gamma"), ORACLE)
def test_slow_oracle_agrees(name, activation, projection, n_over_d, gamma):
    model = model_of(activation, projection, LAWS[name][0])
    ds = bayes_optimal(model, n_over_d=n_over_d, d_over_p=gamma)
    found = [float(ds[column]) for column in ("overlap", "generalisation_error", "clean_error")]
    np.testing.assert_allclose(
        found, oracle(name, activation, projection, n_over_d, gamma), rtol=1e-8
    )


# --- limits and equivalences -------------------------------------------------------------------


@pytest.mark.parametrize(
    "teacher",
    [
        T.Sign(),
        T.Sign(flip=0.1, threshold=0.8),
        T.Logistic(slope=3.0, threshold=-1.0),
        T.Steps((-1, 2)),
    ],
)
def test_without_samples_the_prior_is_the_best_guess(teacher):
    ds = bayes_optimal(model_of(teacher=teacher), n_over_d=1e-25, p_over_d=2.0)
    plus, minus, _ = teacher.label_marginals
    np.testing.assert_allclose(ds.generalisation_error, min(plus, minus), rtol=1e-11)
    assert float(ds.overlap) < 1e-24


def test_without_samples_a_real_label_keeps_its_variance():
    model = model_of(teacher=T.Linear(noise=0.3, rho=2.0), loss="square")
    ds = bayes_optimal(model, n_over_d=1e-25, p_over_d=2.0)
    np.testing.assert_allclose([ds.generalisation_error, ds.clean_error], [2.3, 2.0], rtol=1e-14)


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("gamma", [0.4, 1.0, 3.0])
def test_with_infinitely_many_samples_what_is_hidden_remains(projection, gamma):
    k1, ks = KAPPAS["erf"]
    hidden = spectral_average(projection, gamma, lambda s: ks / (k1 * s + ks))
    for teacher, loss in ((T.Linear(noise=0.1), "square"), (T.Sign(noise=0.1), "logistic")):
        model = model_of("erf", projection, teacher, loss)
        ds = bayes_optimal(model, n_over_p=np.inf, d_over_p=gamma)
        np.testing.assert_allclose(1 - ds.overlap, hidden, rtol=1e-10)


@pytest.mark.parametrize("teacher", [T.Sign(noise=0.2), T.Steps((-0.5, 0.7)), T.Linear(noise=0.1)])
def test_in_the_kernel_limit_features_are_as_good_as_the_data(teacher):
    n_over_d = [0.3, 2.0, 30.0]
    loss = "square" if isinstance(teacher, T.Linear) else "logistic"
    data = bayes_optimal(perceptron(teacher), n_over_d=n_over_d, d_over_p=1.0)
    for activation, projection in product(("sign", "relu"), ("gaussian", "orthogonal")):
        model = model_of(activation, projection, teacher, loss)
        kernel = bayes_optimal(model, n_over_d=n_over_d, p_over_n=np.inf)
        for name in ("overlap", "generalisation_error", "clean_error"):
            np.testing.assert_allclose(kernel[name], data[name], rtol=1e-12, err_msg=name)


def test_linear_labels_on_the_data_themselves_follow_a_quadratic():
    """V0 = rho/(1 + rho (n/d)/(Delta + V0))."""
    rho, noise, n_over_d = 1.7, 0.4, np.array([0.1, 1.0, 5.0])
    ds = bayes_optimal(perceptron(T.Linear(noise=noise, rho=rho)), n_over_d=n_over_d, p_over_d=1.0)
    half = noise + rho * (n_over_d - 1)
    V0 = 0.5 * (np.sqrt(half**2 + 4 * noise * rho) - half)
    np.testing.assert_allclose(ds.clean_error, V0, rtol=1e-12)
    np.testing.assert_allclose(ds.generalisation_error, V0 + noise, rtol=1e-12)
    np.testing.assert_allclose(ds.overlap, rho - V0, rtol=1e-12)


@pytest.mark.parametrize(("activation", "gamma"), [("identity", 1.0), ("erf", 1.0), ("sign", 1.8)])
def test_linear_labels_on_isotropic_features_are_best_learned_by_ridge_regression(
    activation, gamma
):
    """With F^T F = d the posterior mean is linear in isotropic features, as ridge regression is."""
    teacher = T.Linear(noise=0.3, rho=1.2)
    model = model_of(activation, "orthogonal", teacher, "square")

    def error(log_lam):
        point = {"n_over_d": 2.0, "d_over_p": gamma, "regularisation": np.exp(log_lam)}
        return float(hm.predict(model, **point).generalisation_error)

    best = minimize_scalar(error, bounds=(-8, 8), method="bounded", options={"xatol": 1e-6}).fun
    ds = bayes_optimal(model, n_over_d=2.0, d_over_p=gamma)
    assert float(ds.generalisation_error) == pytest.approx(best, rel=1e-10)


def test_ridge_regression_cannot_tell_noise_features_from_the_others():
    """With more features than latent dimensions the posterior knows which combinations matter."""
    model = model_of("sign", "orthogonal", T.Linear(), "square")
    lam = np.geomspace(1e-3, 1e3, 200)
    ridge = hm.predict(model, n_over_d=2.0, d_over_p=0.3, regularisation=lam)
    ds = bayes_optimal(model, n_over_d=2.0, d_over_p=0.3)
    assert float(ds.generalisation_error) < 0.99 * float(ridge.generalisation_error.min())


def test_scale_of_the_teacher_does_not_matter_to_noiseless_signs():
    small, large = (
        bayes_optimal(model_of(teacher=T.Sign(rho=rho)), n_over_d=2.0, p_over_d=1.5)
        for rho in (0.01, 100.0)
    )
    assert float(small.generalisation_error) == pytest.approx(float(large.generalisation_error))
    assert float(large.overlap) == pytest.approx(1e4 * float(small.overlap), rel=1e-11)


@pytest.mark.filterwarnings("ignore::hiddenmanifold.BlindFeaturesWarning")
def test_features_without_a_linear_part_tell_nothing():
    activation = hm.activations.Custom(np.abs, kinks=(0.0,))
    for teacher, error in (
        (T.Sign(), 0.5),
        (T.Sign(flip=0.1, threshold=1.0), T.Sign(flip=0.1, threshold=1.0).label_marginals[1]),
    ):
        ds = bayes_optimal(model_of(activation, teacher=teacher), n_over_d=[1.0, 9.0], p_over_d=2.0)
        np.testing.assert_allclose(ds.generalisation_error, error, rtol=1e-12)
        assert (ds.overlap == 0).all()
        assert (ds.status == Status.CONVERGED).all()


def test_loss_and_intercept_play_no_role():
    plain = bayes_optimal(model_of(), n_over_d=2.0, p_over_d=1.5)
    other = bayes_optimal(model_of(loss="hinge", intercept=True), n_over_d=2.0, p_over_d=1.5)
    xr.testing.assert_equal(plain, other)


def test_clean_error_has_a_predictor_of_its_own():
    """Against noisy labels a rare side is not worth predicting; against the clean rule it is."""
    teacher = T.Custom(lambda nu: 0.45 + 0.5 * (nu > 0) * 0.2 + 0.4 * (nu > 1), kinks=(0.0, 1.0))
    ds = bayes_optimal(model_of(teacher=teacher), n_over_d=5.0, p_over_d=3.0)
    assert (
        0.0
        < float(ds.clean_error)
        < float(ds.generalisation_error)
        < min(teacher.label_marginals[:2])
    )


# --- labelled results --------------------------------------------------------------------------


def test_results_are_labelled_like_those_of_predict():
    ds = bayes_optimal(model_of(), n_over_d=[1.0, 3.0], p_over_n=[0.5, 1.0, np.inf])
    assert list(ds) == COLUMNS
    assert dict(ds.sizes) == {"n_over_d": 2, "p_over_n": 3}
    assert ds.n_over_d.values.tolist() == [1.0, 3.0]
    assert np.isinf(ds.p_over_n.values[-1])
    assert all(ds[name].attrs["long_name"] for name in COLUMNS)
    assert "flag_meanings" in ds.status.attrs
    assert "posterior" in ds.attrs["method"]
    assert "minimise" not in ds.attrs["objective"]
    assert ds.attrs["model"].startswith("Model(")
    assert (ds.status == Status.CONVERGED).all()
    assert (ds.residual <= 1e-9).all() and (ds.quadrature_error <= 1e-9).all()


@pytest.mark.parametrize(
    "pair", [("n_over_d", "p_over_n"), ("d_over_n", "p_over_d"), ("n_over_p", "d_over_p")]
)
def test_any_two_ratios_give_the_same_answer(pair):
    sizes = {"n": 3.0, "p": 5.0, "d": 2.0}
    given_ratios = {name: sizes[name[0]] / sizes[name[-1]] for name in pair}
    ds = bayes_optimal(model_of(), **given_ratios)
    reference = bayes_optimal(model_of(), n_over_d=1.5, d_over_p=0.4)
    assert set(ds.coords) == set(pair)
    assert float(ds.generalisation_error) == pytest.approx(
        float(reference.generalisation_error), rel=1e-12
    )


def test_arrays_broadcast_by_their_dimensions():
    n_over_d = xr.DataArray([1.0, 2.0, 4.0], dims="run")
    p_over_d = xr.DataArray([2.0, 2.0, 1.0], dims="run")
    ds = bayes_optimal(model_of(), n_over_d=n_over_d, p_over_d=p_over_d)
    assert dict(ds.sizes) == {"run": 3}
    last = bayes_optimal(model_of(), n_over_d=4.0, p_over_d=1.0)
    assert float(ds.overlap[2]) == pytest.approx(float(last.overlap), rel=1e-12)


@pytest.mark.slow
def test_given_matrix_and_its_spectrum_agree_with_the_law_of_large_ones():
    F = np.random.default_rng(3).standard_normal((300, 200))
    matrix = bayes_optimal(model_of("erf", hm.projections.Matrix(F)), n_over_d=3.0)
    spectrum = hm.projections.Spectrum(np.linalg.eigvalsh(F.T @ F / 300), d_over_p=1.5)
    same = bayes_optimal(model_of("erf", spectrum), n_over_d=3.0)
    limit = bayes_optimal(model_of("erf"), n_over_d=3.0, d_over_p=1.5)
    assert float(matrix.overlap) == pytest.approx(float(same.overlap), rel=1e-10)
    assert float(matrix.overlap) == pytest.approx(float(limit.overlap), rel=1e-2)


def test_more_points_than_a_batch():
    gamma = np.geomspace(0.01, 100.0, 2100)
    ds = bayes_optimal(model_of(), n_over_d=2.0, d_over_p=gamma)
    assert (np.diff(ds.generalisation_error) > 0).all()
    alone = bayes_optimal(model_of(), n_over_d=2.0, d_over_p=gamma[2090])
    assert float(ds.overlap[2090]) == pytest.approx(float(alone.overlap), rel=1e-12)


# --- refusals and failures ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("on_failure", {"on_failure": "ignore"}),
        ("n_over_d", {"n_over_d": -1.0}),
        ("n_over_d", {"n_over_d": 0.0}),
        ("n_over_d", {"n_over_d": np.nan}),
        ("n_over_d", {"n_over_d": "many"}),
        ("n_over_d", {"n_over_d": []}),
        ("ratios", {"p_over_n": 1.0}),
        ("ratios", {"p_over_d": None}),
        ("ratios", {"n_over_d": np.inf, "p_over_d": np.inf}),
        ("ratios", {"n_over_d": 1e300, "p_over_d": 1e-300}),
        ("n_over_d", {"n_over_d": xr.DataArray([1.0, 2.0], dims="overlap")}),
    ],
)
def test_arguments_that_make_no_sense_are_refused(argument, change):
    with pytest.raises(InvalidArgumentError) as caught:
        bayes_optimal(model_of(), **{"n_over_d": 2.0, "p_over_d": 1.5, **change})
    assert caught.value.argument == argument


def test_model_must_be_one():
    with pytest.raises(InvalidArgumentError, match=r"hiddenmanifold\.Model"):
        bayes_optimal("sign", n_over_d=2.0, p_over_d=1.5)


def ramp(nu):
    return np.clip(0.5 + nu, 0.0, 1.0)


@pytest.mark.slow
def test_failed_points_raise_or_are_kept_as_nan():
    """A corner where P vanishes, known so well that its width is lost to rounding."""
    model = perceptron(T.Custom(ramp, kinks=(-0.5, 0.5)))
    point = {"n_over_d": [2.0, 1e30], "d_over_p": 1.0}
    with pytest.raises(ConvergenceError, match=r"1 of 2 points .* n_over_d = 1e\+30") as caught:
        bayes_optimal(model, **point)
    kept = bayes_optimal(model, **point, on_failure="keep")
    for ds in (kept, caught.value.partial):
        assert ds.status.values.tolist() == [Status.CONVERGED, Status.QUADRATURE]
        for name in ("generalisation_error", "clean_error", "overlap"):
            assert np.isnan(ds[name].values).tolist() == [False, True]


def test_ratios_beyond_what_floats_can_hold_are_reported():
    ratios = {"n_over_d": [3.0, 1e300], "p_over_d": [1.0, 1e300]}
    ds = bayes_optimal(model_of(), **ratios, on_failure="keep")
    assert ds.status.values[:, 0].tolist() == [Status.CONVERGED, Status.CONVERGED]
    assert (ds.status.values[:, 1] == Status.NON_FINITE).all()
    assert np.isnan(ds.overlap.values[:, 1]).all()
    one = bayes_optimal(model_of(), n_over_d=3.0, p_over_d=1.0)
    assert float(ds.overlap[0, 0]) == pytest.approx(float(one.overlap), rel=1e-12)


# --- a true lower bound ------------------------------------------------------------------------

ROUNDING = 1e-12


@pytest.mark.parametrize("seed", some_slow(120))
def test_no_prediction_beats_the_bound(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    ratios = {
        name: xr.DataArray(10.0 ** rng.uniform(-3, 3, 3), dims="point")
        for name in ("n_over_p", "d_over_p")
    }
    lam = xr.DataArray(10.0 ** rng.uniform(-10, 4, 3), dims="point")
    bound = bayes_optimal(model, **ratios)
    reached = hm.predict(model, **ratios, regularisation=lam, on_failure="keep")
    good = (reached.status == Status.CONVERGED).values
    assert good.sum() >= 2
    for name in ("generalisation_error", "clean_error"):
        gap = (reached[name] - bound[name]).values[good]
        assert (gap >= -ROUNDING * reached[name].values[good]).all(), name


@pytest.mark.slow
def test_even_and_windowed_rules_are_bounded_too():
    """Here several fixed points compete, and only the best of them is a bound."""
    grid = {"n_over_d": np.geomspace(0.3, 30.0, 9), "p_over_d": [0.5, 3.0]}
    for changes in ((-1.0, 1.0), (-1.0, 0.0, 1.0), (-0.3, 1.2)):
        model = model_of("erf", "gaussian", T.Steps(changes), "logistic", intercept=True)
        bound = bayes_optimal(model, **grid)
        reached = hm.predict(model, **grid, regularisation=[1e-3, 0.1, 10.0])
        gap = reached.generalisation_error - bound.generalisation_error
        assert float(gap.min()) >= -ROUNDING
        assert (np.diff(bound.generalisation_error, axis=0) <= 1e-12).all()
