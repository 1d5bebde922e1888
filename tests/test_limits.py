"""Limits and special cases with a theory of their own, reached through `predict` alone."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar, root
from scipy.special import expit

import hiddenmanifold as hm
import oracle
from given import OF_MARGIN

LOSSES = list(OF_MARGIN)
SIGN = (2 / np.pi, 1 - 2 / np.pi)  # squares of kappa_1 and kappa_star
ERF = (4 / (3 * np.pi), 2 / np.pi * np.arcsin(2 / 3) - 4 / (3 * np.pi))


def model_of(activation="sign", projection="gaussian", teacher="sign", loss="square", **options):
    return hm.Model(
        activation=activation, projection=projection, teacher=teacher, loss=loss, **options
    )


def visible(projection, gamma, kappas):
    """Fraction chi of the teacher that the features can see: <k1 s/(k1 s + ks)>/gamma."""
    spectrum = oracle.random_spectrum(projection, gamma)
    k1, ks = kappas
    return spectrum.mass @ (k1 * spectrum.s / (k1 * spectrum.s + ks)) / gamma


# --- identity activation, d = p: an ordinary generalised linear model on i.i.d. data -------------


def iid(teacher, loss):
    return model_of("identity", "orthogonal", teacher, loss)


@pytest.mark.parametrize("n_over_p", [0.3, 1.0, 4.0])
def test_features_of_a_square_orthogonal_matrix_are_the_data(n_over_p):
    teacher = hm.teachers.Sign(flip=0.1)
    point = {"n_over_p": n_over_p, "regularisation": 0.1}
    named = hm.predict(iid(teacher, "logistic"), d_over_p=1.0, **point)
    unit = hm.projections.Spectrum((1.0,), d_over_p=1.0)
    given = hm.projections.Matrix(np.sqrt(20) * np.eye(20))
    for projection in (unit, given):
        other = hm.predict(model_of("identity", projection, teacher, "logistic"), **point)
        for name in ("V", "Q", "M", "training_loss", "generalisation_error"):
            np.testing.assert_allclose(other[name], named[name], rtol=1e-11, err_msg=name)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_ridge_on_iid_data_follows_marchenko_and_pastur(noise):
    """With A = X^T X/p and m = tr(A + lambda)^-1/p the estimate of a vector theta is off by
    -lambda (A + lambda)^-1 theta plus noise, so everything is a function of m and m'.
    """
    rho = 1.7
    alpha = np.array([0.2, 0.9, 1.0, 3.0])[:, None]
    lam = np.array([1e-3, 0.1, 2.0])
    ds = hm.predict(
        iid(hm.teachers.Linear(noise=noise, rho=rho), "square"),
        n_over_p=alpha[:, 0],
        d_over_p=1.0,
        regularisation=lam,
    )
    # 1/m = lambda + alpha/(1 + m)
    half = lam + alpha - 1
    R = np.sqrt(half**2 + 4 * lam)
    m = (R - half) / (2 * lam)
    slope = -m * (1 + m) / R
    excess = -rho * lam**2 * slope + noise * (m + lam * slope)
    shrunk = 1 - lam * m  # <a/(a + lambda)>
    loss = 0.5 * rho * lam * shrunk / alpha + 0.5 * noise * (1 - shrunk / alpha)
    np.testing.assert_allclose(ds.clean_error, excess, rtol=1e-10)
    np.testing.assert_allclose(ds.generalisation_error, excess + noise, rtol=1e-10)
    np.testing.assert_allclose(ds.training_loss, loss, rtol=1e-10)
    np.testing.assert_allclose(ds.V, m, rtol=1e-10)
    np.testing.assert_allclose(ds.M, rho * shrunk, rtol=1e-10)


def bisected_prox(q, width):
    """Solution of x + width expit(x) = q."""
    low, high = q - width, q + 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        below = middle + width * expit(middle) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def sur_candes(kappa, strength, start):
    """(alpha, sigma, lambda) of unpenalised logistic regression, Sur & Candes 2019, eq. (5).

    kappa = p/n, features of variance 1/n, Var(x.beta) = strength^2, rho(t) = log(1 + e^t), and
    (Q1, Q2) centred normal with covariance [[g^2, -a g^2], [-a g^2, a^2 g^2 + kappa s^2]].
    """
    step = 0.08
    z = np.arange(-9.0, 9.0 + step / 2, step)  # the trapezoidal rule is exact to rounding here
    weight = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)

    def equations(unknowns):
        alpha, sigma, lam = unknowns
        deviation = np.sqrt((alpha * strength) ** 2 + kappa * sigma**2)
        slope = -alpha * strength**2 / deviation
        Q1 = slope * z[:, None] + np.sqrt(strength**2 - slope**2) * z
        prox = bisected_prox(deviation * z, lam)
        pull, bend = lam * expit(prox), lam * expit(prox) * expit(-prox)
        label, tilted = (expit(Q1)) @ weight, (expit(Q1) * Q1) @ weight
        return [
            2 * weight @ (label * pull**2) / kappa**2 - sigma**2,
            weight @ (tilted * pull),
            2 * weight @ (label / (1 + bend)) - (1 - kappa),
        ]

    found = root(equations, start, tol=1e-13)
    assert np.abs(equations(found.x)).max() < 1e-12
    return found.x


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize(
    ("kappa", "strength", "start"),
    [
        (0.2, np.sqrt(5.0), (1.5, 4.7, 3.0)),
        (0.1, 2.0, (1.2, 3.5, 1.0)),
        (0.3, 1.0, (1.7, 4.5, 3.7)),
        (0.05, 3.0, (1.1, 3.0, 1.0)),
    ],
)
def test_unpenalised_logistic_regression_is_that_of_sur_and_candes(kappa, strength, start):
    alpha, sigma, lam = sur_candes(kappa, strength, start)
    model = iid(hm.teachers.Logistic(rho=strength**2), "logistic")
    ds = hm.predict(model, n_over_p=1 / kappa, d_over_p=1.0, regularisation=1e-10)
    # the estimate is alpha theta + noise: alpha is the inflation of the slopes
    np.testing.assert_allclose(ds.M / strength**2, alpha, rtol=1e-7)
    np.testing.assert_allclose(ds.Q, (alpha * strength) ** 2 + kappa * sigma**2, rtol=1e-7)
    np.testing.assert_allclose(ds.V, lam, rtol=1e-7)


@pytest.mark.usefixtures("each_engine")
def test_the_published_point_of_sur_and_candes():
    """kappa = 0.2, gamma^2 = 5: alpha* = 1.4994, sigma* = 4.7436 and lambda* = 3.0269.

    4.7436 is sigma* itself: the deviation of a fitted coefficient whose features have variance
    1/n, so that the prediction has variance alpha*^2 gamma^2 + kappa sigma*^2.
    """
    model = iid(hm.teachers.Logistic(rho=5.0), "logistic")
    ds = hm.predict(model, n_over_p=5.0, d_over_p=1.0, regularisation=1e-10)
    alpha = float(ds.M) / 5.0
    assert abs(alpha - 1.4994) < 6e-5
    assert abs(np.sqrt((float(ds.Q) - 5.0 * alpha**2) / 0.2) - 4.7436) < 6e-5
    assert abs(float(ds.V) - 3.0269) < 6e-5


@pytest.mark.usefixtures("each_engine")
def test_fisher_information_rules_with_many_samples():
    rho = 2.0
    model = iid(hm.teachers.Logistic(rho=rho), "logistic")
    ratios = np.array([1e4, 1e5, 1e6])
    ds = hm.predict(model, n_over_p=ratios, d_over_p=1.0, regularisation=1e-10)
    z, w = np.polynomial.hermite_e.hermegauss(120)
    nu = np.sqrt(rho) * z
    information = w @ (expit(nu) * expit(-nu)) / w.sum()
    np.testing.assert_allclose(ds.M, rho, atol=20 / ratios[0])
    scatter = ratios * (ds.Q - ds.M**2 / rho) * information
    assert (np.abs(scatter - 1) * ratios < 20).all()


# --- the square loss: a scalar equation and nothing else -----------------------------------------


def square_solution(projection, kappas, *, alpha, gamma, lam, rho, c, second):
    """(V, Q, M, training loss); c = E[nu y]/rho and the second moment of y define the labels."""
    spectrum = oracle.random_spectrum(projection, gamma)
    s, mass = np.append(spectrum.s, 0.0), np.append(spectrum.mass, spectrum.zero_p)
    omega = kappas[0] * s + kappas[1]

    def response(V):
        return mass @ (omega / (lam + alpha * omega / (1 + V)))

    log_V = brentq(lambda x: np.log(response(np.exp(x))) - x, -40.0, 40.0, xtol=1e-15, rtol=1e-15)
    V = np.exp(log_V)
    u = alpha / (1 + V)
    r = 1 / (lam + u * omega)
    M = rho * c * u * kappas[0] / gamma * (mass @ (s * r))
    noise = u**2 / alpha * (mass @ (omega * r) ** 2)
    signal = rho * (c * u) ** 2 * kappas[0] / gamma * (mass @ (s * omega * r**2))
    Q = (noise * (second - 2 * M * c) + signal) / (1 - noise)
    residual = second + Q - 2 * M * c
    q_w = residual * u**2 / alpha * (mass @ (omega * r**2)) + rho * (c * u) ** 2 * kappas[
        0
    ] / gamma * (mass @ (s * r**2))
    return V, Q, M, 0.5 * residual / (1 + V) ** 2 + 0.5 * lam * q_w / alpha


@pytest.mark.parametrize("rho", [1.0, 2.5])
@pytest.mark.parametrize("lam", [1e-8, 1e-4, 0.1, 5.0])
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("labels", ["sign", "linear"])
def test_square_loss_is_a_scalar_equation(labels, projection, lam, rho):
    c = np.sqrt(2 / (np.pi * rho)) if labels == "sign" else 1.0
    teacher = {"sign": hm.teachers.Sign, "linear": hm.teachers.Linear}[labels](rho=rho)
    model = model_of("sign", projection, teacher, "square")
    alphas, gammas = [0.1, 0.8, 3.0], [0.25, 2.0]
    ds = hm.predict(model, n_over_p=alphas, d_over_p=gammas, regularisation=lam)
    for alpha in alphas:
        for gamma in gammas:
            V, Q, M, loss = square_solution(
                projection,
                SIGN,
                alpha=alpha,
                gamma=gamma,
                lam=lam,
                rho=rho,
                c=c,
                second=1.0 if labels == "sign" else rho,
            )
            at = ds.sel(n_over_p=alpha, d_over_p=gamma)
            np.testing.assert_allclose([at.V, at.Q, at.M], [V, Q, M], rtol=1e-9)
            # at lambda = 1e-8 and alpha < 1 the loss is what 16 digits of V leave of it
            np.testing.assert_allclose(at.training_loss, loss, rtol=1e-8)
            error = np.arccos(M / np.sqrt(rho * Q)) / np.pi if labels == "sign" else rho + Q - 2 * M
            np.testing.assert_allclose(at.generalisation_error, error, rtol=1e-9)


@pytest.mark.parametrize("rho", [0.3, 6.0])
def test_the_unit_of_the_field_is_for_the_teacher_alone(rho):
    """sign(ν + t) of a field in another unit is the same label, also if almost learned."""

    def at(unit):
        teacher = hm.teachers.Sign(threshold=0.8 * np.sqrt(unit), rho=unit)
        model = model_of("erf", teacher=teacher, loss="hinge", intercept=True)
        return hm.predict(model, n_over_d=1e4, p_over_n=1.0, regularisation=1e-3)

    here, there = at(1.0), at(rho)
    for name in ("generalisation_error", "training_loss", "Q", "intercept", "alignment"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(there.M, np.sqrt(rho) * here.M, rtol=1e-9)


def test_the_direction_of_vanishing_weights_is_a_limit_unless_a_corner_holds_them():
    """λ → ∞ of smooth losses and of regular corners keeps it; a constant prediction has none."""
    lams = [1e6, 1e9, 1e45, np.inf]
    point = {"n_over_p": 20.0, "d_over_p": 1.0, "regularisation": lams}
    rare = hm.teachers.Sign(threshold=1.0, flip=0.2)
    for loss in ("square", "logistic"):
        ds = hm.predict(model_of("tanh", teacher=rare, loss=loss, intercept=True), **point)
        np.testing.assert_allclose(ds.alignment, ds.alignment[-1], rtol=1e-4)
    regular = hm.teachers.Sign(threshold=1.0)
    ds = hm.predict(model_of("tanh", teacher=regular, loss="hinge", intercept=True), **point)
    np.testing.assert_allclose(ds.alignment, ds.alignment[-1], rtol=1e-4)
    held = hm.predict(model_of("tanh", teacher=rare, loss="hinge", intercept=True), **point)
    assert np.isnan(held.alignment).all()
    assert np.isfinite(held.generalisation_error).all()
    assert (held.status == hm.Status.CONVERGED).all()


# --- the ends of the axes ------------------------------------------------------------------------


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_the_best_direction_from_many_samples(loss, projection):
    """n/p to infinity: cos^2 of the angle to the teacher is the visible fraction chi."""
    teacher = hm.teachers.Sign(noise=0.5, rho=1.4)
    chi = visible(projection, 0.4, ERF)
    ratios = np.array([1e4, 1e6])
    ds = hm.predict(
        model_of("erf", projection, teacher, loss),
        n_over_p=ratios,
        d_over_p=0.4,
        regularisation=1e-6,
    )
    gap = chi - ds.M.values**2 / (teacher.rho * ds.Q.values)
    assert (gap > 0).all()
    assert gap[0] < 1e-2
    np.testing.assert_allclose(gap[1] * 100, gap[0], rtol=0.02)


def envelope(loss, V):
    """Moreau envelope of a loss at prediction 0: the least of loss + x^2/(2V)."""

    def objective(x):
        return float(loss.value(np.array([loss.anchor - x]))[0]) + 0.5 * x * x / V

    found = minimize_scalar(objective, bounds=(0.0, 3.0), method="bounded")
    return min(found.fun, *(objective(loss.anchor - kink) for kink in (*loss.kinks, 0.0)))


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("lam", [0.05, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_few_samples_are_fitted_one_by_one(loss, lam):
    """n/p to 0: no two samples feel each other, and nothing is learned of the teacher."""
    model = model_of("erf", loss=loss)
    ds = hm.predict(model, n_over_p=1e-9, d_over_p=0.5, regularisation=lam)
    V = sum(ERF) / lam  # |x|^2/p over lambda
    np.testing.assert_allclose(ds.V, V, rtol=1e-7)
    np.testing.assert_allclose(ds.training_loss, envelope(model.loss, V), rtol=1e-7)
    assert abs(float(ds.generalisation_error) - 0.5) < 1e-4
    assert ds.Q < 1e-6


AT_ZERO = {  # value of each loss at prediction 0
    "square": 0.5,
    "logistic": np.log(2),
    "hinge": 1.0,
    "squared_hinge": 0.5,
    "smoothed_hinge": 0.5,
    "huber": 0.5,
    "absolute": 1.0,
    "log_cosh": np.log(np.cosh(1.0)),
}


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("loss", AT_ZERO)
def test_a_huge_penalty_turns_every_loss_into_hebbs_rule(loss, projection):
    alpha, gamma, lam = 3.0, 0.4, 1e9
    model = model_of("sign", projection, "sign", loss)
    ds = hm.predict(model, n_over_p=alpha, d_over_p=gamma, regularisation=lam)
    assert ds.Q < 1e-14
    np.testing.assert_allclose(ds.training_loss, AT_ZERO[loss], rtol=1e-8)
    # w is proportional to sum y x; <s> = 1 and <s^2> are the moments of the spectrum
    k1, ks = SIGN
    second = 1 + 1 / gamma if projection == "gaussian" else 1 / gamma
    c = np.sqrt(2 / np.pi)
    M = alpha * c * k1 / gamma
    noise = alpha * (k1**2 * second + 2 * k1 * ks + ks**2)
    Q = noise + (alpha * c) ** 2 * k1 / gamma * (k1 * second + ks)
    np.testing.assert_allclose(ds.M / np.sqrt(ds.Q), M / np.sqrt(Q), rtol=1e-7)
    np.testing.assert_allclose(
        ds.generalisation_error, np.arccos(M / np.sqrt(Q)) / np.pi, rtol=1e-7
    )
    np.testing.assert_allclose(ds.V * lam, 1.0, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_an_almost_linear_activation_acts_like_the_identity(loss):
    """Features x + eps He_3(x)/sqrt(6) have kappa_1 = 1 and kappa_star = eps."""
    teacher = hm.teachers.Sign(noise=0.5)
    point = {"n_over_p": 2.0, "d_over_p": 0.5, "regularisation": 0.1}
    straight = hm.predict(model_of("identity", "gaussian", teacher, loss), **point)

    def bent(eps):
        model = model_of(
            lambda x: x + eps * (x**3 - 3 * x) / np.sqrt(6), teacher=teacher, loss=loss
        )
        assert model.activation.kappas == pytest.approx((0.0, 1.0, eps), abs=1e-12)
        return hm.predict(model, **point)

    near, nearer = bent(3e-3), bent(3e-4)
    for name in ("V", "Q", "M", "generalisation_error", "training_loss"):
        first, second = near[name] - straight[name], nearer[name] - straight[name]
        assert abs(first) < 1e-2 * abs(straight[name])
        np.testing.assert_allclose(100 * second, first, rtol=0.02, err_msg=name)


def test_without_linear_part_nothing_is_learned():
    with pytest.warns(hm.BlindFeaturesWarning):
        model = model_of(lambda x: x**2 - 1, loss="logistic")
    ds = hm.predict(model, n_over_p=2.0, d_over_p=0.5, regularisation=0.1)
    assert abs(float(ds.M)) < 1e-12
    assert abs(float(ds.generalisation_error) - 0.5) < 1e-12


@pytest.mark.parametrize(("teacher", "loss"), [("linear", "square"), ("sign", "logistic")])
def test_orthogonal_features_beat_gaussian_ones_at_the_best_penalty(teacher, loss):
    sweep = {"n_over_d": 2.0, "p_over_n": [0.2, 0.6, 1.0, 2.0, 5.0, 30.0]}
    lam = np.logspace(-5, 2, 40)
    orthogonal, gaussian = (
        hm.predict(model_of("sign", projection, teacher, loss), **sweep, regularisation=lam)
        .generalisation_error.min("regularisation")
        .values
        for projection in ("orthogonal", "gaussian")
    )
    assert (orthogonal < gaussian).all()
    assert gaussian[-1] - orthogonal[-1] < 0.1 * (gaussian - orthogonal).max()  # one kernel limit


# --- the kernel limit: p/n to infinity at fixed n/d ----------------------------------------------


def extrapolated(function, start):
    """Limit of a function of n/p that is smooth at zero, from three values by Richardson's rule."""
    one, two, four = (function(start * ratio) for ratio in (1.0, 2.0, 4.0))
    return (8 * one - 6 * two + four) / 3


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_kernel_limit_of_the_square_loss_is_ridge_regression_on_the_latent_data(projection, lam):
    delta, (k1, ks) = 3.0, SIGN
    model = model_of("sign", projection)

    def error(n_over_p):
        ds = hm.predict(model, n_over_d=delta, n_over_p=n_over_p, regularisation=lam)
        return float(ds.generalisation_error)

    # section 9 with e1 = 1/(1+V), e2 = r/(1+V)^2, e3 = c/(1+V), all in u = 1/(1+V)
    c = np.sqrt(2 / np.pi)
    u = brentq(lambda u: 1 / u - 1 - k1 / (lam + delta * u * k1) - ks / lam, 1e-12, 1.0, xtol=1e-16)
    D = lam + delta * u * k1
    M = delta * c * u * k1 / D
    noise = delta * (k1 * u / D) ** 2
    Q = (noise * (1 - 2 * M * c) + M**2) / (1 - noise)
    expected = np.arccos(M / np.sqrt(Q)) / np.pi
    np.testing.assert_allclose(extrapolated(error, 1e-5), expected, rtol=1e-9)
    assert abs(error(1e-2) - expected) > 1e-5


@pytest.mark.parametrize(
    ("projection", "slope", "penalty"),
    [("gaussian", 0.306, 19.78), ("orthogonal", 0.300, 20.34)],
)
def test_best_square_loss_of_the_kernel_limit(projection, slope, penalty):
    """n/d = 3: the error is 0.149796219262 + slope n/p, at lambda = penalty n/p."""
    limit, model = 0.149796219262, model_of("sign", projection)

    def error(n_over_p, factor=1.0):
        lam = factor * penalty * n_over_p
        ds = hm.predict(model, n_over_d=3.0, n_over_p=n_over_p, regularisation=lam)
        return float(ds.generalisation_error)

    np.testing.assert_allclose(extrapolated(error, 1e-5), limit, atol=2e-11)
    np.testing.assert_allclose((error(1e-6) - limit) / 1e-6, slope, rtol=2e-3)
    assert error(1e-4) < min(error(1e-4, factor) for factor in (0.9, 1.1))


def test_latent_ridge_at_its_best_penalty_has_that_error():
    """The number above, by hand: E^2 + E (B2 (delta-1) + s2) = B2 s2, B2 = 2/pi, s2 = 1 - B2."""
    B2, s2, delta = 2 / np.pi, 1 - 2 / np.pi, 3.0
    half = B2 * (delta - 1) + s2
    E = (-half + np.sqrt(half**2 + 4 * B2 * s2)) / 2
    np.testing.assert_allclose(np.arccos(np.sqrt(1 - E / B2)) / np.pi, 0.149796219262, atol=1e-12)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("lam", [0.01, 1.0])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_both_kinds_of_features_share_the_kernel_limit(loss, lam):
    def limit(projection):
        def error(n_over_p):
            model = model_of("erf", projection, loss=loss)
            ds = hm.predict(model, n_over_d=2.0, n_over_p=n_over_p, regularisation=lam)
            return float(ds.generalisation_error)

        return extrapolated(error, 1e-5)

    np.testing.assert_allclose(limit("gaussian"), limit("orthogonal"), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-19, 1e-12, 1e12, 1e19])
@pytest.mark.parametrize("lam", [0.0, np.inf])
def test_limits_know_the_units_of_labels(lam, unit):
    """An error of 1e19 is not infinite, nor one of 1e-19 zero, if labels are as large or small."""

    def error(scale):
        teacher = hm.teachers.Linear(rho=0.5 * scale, noise=0.4 * scale)
        chosen = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss="square")
        ds = hm.predict(chosen, n_over_p=2.0, d_over_p=0.5, regularisation=lam)
        return ds.generalisation_error.item() / scale

    assert error(unit) == pytest.approx(error(1.0), rel=1e-10)
