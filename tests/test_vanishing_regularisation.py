"""The limits λ → 0⁺, λ → ∞ and of infinite ratios, against equations and sequences of their own."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize
from scipy.special import exp1, expit, log_ndtr, ndtr

import hiddenmanifold as hm
from given import plain_model
from hiddenmanifold import Status
from hiddenmanifold.losses import Custom, Huber, SmoothedHinge
from hiddenmanifold.teachers import Linear, Logistic, Sign, Steps

OVERLAPS = ["Q", "M", "q_s", "q_w", "m_s"]


model = partial(plain_model, activation="sign", loss="square")


def at(m, **arguments):
    return hm.predict(m, **{"n_over_d": 3.0, **arguments})


# --- continuity --------------------------------------------------------------------------------

CONTINUOUS = {
    "square": model(),
    "square, erf, orthogonal": model(activation="erf", projection="orthogonal"),
    "square, intercept": model(activation="relu", teacher=Sign(threshold=0.5, flip=0.1)),
    "square, linear labels": model(teacher=Linear(noise=0.2, rho=2.0)),
    "huber": model(loss=Huber(0.7)),
    "huber, linear labels": model(loss=Huber(0.7), teacher=Linear(noise=0.2)),
    "absolute, linear labels": model(loss="absolute", teacher="linear"),
    "hinge": model(loss="hinge"),
    "hinge, intercept": model(loss="hinge", teacher=Sign(threshold=0.6), intercept=True),
    "squared hinge": model(loss="squared_hinge", teacher=Logistic(slope=2.0)),
    "smoothed hinge": model(loss=SmoothedHinge(0.3), projection="orthogonal"),
    "identity, square": model(activation="identity", teacher=Sign(noise=0.3)),
    "identity, linear labels": model(activation="identity", teacher=Linear(noise=0.5)),
    "identity, hinge": model(activation="identity", loss="hinge"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("m", CONTINUOUS.values(), ids=CONTINUOUS)
def test_the_limit_is_where_small_regularisations_lead(m):
    ratios = {"n_over_d": 2.0, "p_over_n": [0.1, 0.25, 0.7, 1.7, 6.0]}
    limit = at(m, regularisation=0, **ratios)
    path = at(m, regularisation=[1e-8, 1e-9, 1e-10], **ratios)
    for name in ["generalisation_error", "clean_error", "training_loss", "intercept", *OVERLAPS]:
        a, b = path[name].sel(regularisation=1e-9), path[name].sel(regularisation=1e-10)
        extrapolated = b + (b - a) / 9  # linear in λ
        scale = 1e-7 if name == "training_loss" else 1e-9
        assert_allclose(limit[name], extrapolated, rtol=1e-6, atol=scale, err_msg=name)


def test_the_unit_of_overlaps_is_that_of_the_field_where_labels_are_classes():
    """Noise inside a sign is no unit: a weak field leaves small overlaps, not zero."""
    weak = model(activation="erf", teacher=Sign(rho=1e-20, noise=1.0))
    ds = at(weak, p_over_n=0.5, regularisation=[0.0, 1e-12])
    for name in ("M", "m_s"):
        limit, near = ds[name].values
        assert_allclose(limit, near, rtol=1e-9)
        assert 0 < limit < 1e-18


@pytest.mark.slow
def test_a_loss_that_is_least_on_an_interval():
    insensitive = Custom(
        lambda r: 0.5 * np.maximum(np.abs(r) - 0.5, 0) ** 2,
        lambda r: np.sign(r) * np.maximum(np.abs(r) - 0.5, 0),
        lambda r: 1.0 * (np.abs(r) > 0.5),
        kinks=(-0.5, 0.5),
        of="residual",
    )
    m = model(loss=insensitive, teacher=Linear(noise=0.1))
    limit = at(m, p_over_n=[0.1, 0.3, 3.0], regularisation=0, on_failure="keep")
    near = at(m, p_over_n=[0.1, 0.3], regularisation=1e-9)
    # few features: solved as it is; many: no other loss stands in for it, and it says so
    *few, many = limit.status.values
    assert few == [0, 0]
    assert many in (Status.MAX_ITERATIONS, Status.QUADRATURE)  # rounding decides how it fails
    assert_allclose(limit.Q[:2], near.Q, rtol=1e-7)


@pytest.mark.usefixtures("each_engine")
def test_logistic_loss_without_regularisation_before_its_threshold():
    for m in (model(loss="logistic"), model(loss="logistic", teacher=Logistic(slope=1.5))):
        limit = at(m, p_over_n=[0.05, 0.2, 0.33], regularisation=0)
        path = at(m, p_over_n=[0.05, 0.2, 0.33], regularisation=[1e-9, 1e-10])
        for name in ["generalisation_error", "training_loss", *OVERLAPS]:
            a, b = path[name].isel(regularisation=0), path[name].isel(regularisation=1)
            assert_allclose(limit[name], b + (b - a) / 9, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("p_over_n", [1.0, 4.0, np.inf])
def test_logistic_loss_approaches_the_largest_margin_like_one_over_the_logarithm(p_over_n):
    lams = np.array([1e-10, 1e-20, 1e-40])
    limit = at(model(loss="logistic"), p_over_n=p_over_n, regularisation=0)
    path = at(model(loss="logistic"), p_over_n=p_over_n, regularisation=lams)
    distance = np.abs(path.alignment - limit.alignment).values
    scaled = distance * np.log(1 / lams)
    assert distance[0] > distance[1] > distance[2] > 0
    # constant up to corrections that fall like log log / log themselves
    assert_allclose(scaled[1:] / scaled[:-1], 1.0, atol=0.15)
    assert_allclose(scaled[2] / scaled[1], 1.0, atol=0.08)


@pytest.mark.usefixtures("each_engine")
def test_infinite_regularisation():
    for m in (model(loss="logistic"), model(teacher=Linear(noise=0.3)), model(loss="hinge")):
        limit = at(m, p_over_n=[0.3, 3.0], regularisation=np.inf)
        near = at(m, p_over_n=[0.3, 3.0], regularisation=1e9)
        assert_allclose(limit.generalisation_error, near.generalisation_error, rtol=1e-6)
        assert_allclose(limit.alignment, near.alignment, rtol=1e-6)
        assert np.all(limit.Q == 0)


# --- the equations of the limits, written anew ---------------------------------------------------


def eigenvalues(gamma, number=4000):
    """Marchenko–Pastur eigenvalues of FᵀF/d at equal steps of an angle, and their weights."""
    low, high = (1 - gamma**-0.5) ** 2, (1 + gamma**-0.5) ** 2
    angle = (np.arange(number) + 0.5) * np.pi / number
    s = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angle)
    density = np.sqrt((high - s) * (s - low)) * gamma / (2 * np.pi * s)
    return s, density * 0.5 * (high - low) * np.sin(angle) * np.pi / number


@pytest.mark.parametrize("p_over_n", [0.2, 0.8, 1.5, 5.0])
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_ridgeless_regression(p_over_n, noise):
    m = model(activation="erf", teacher=Linear(noise=noise, rho=1.3))
    _, k1, ks = m.activation.kappas
    alpha, gamma, rho = 1 / p_over_n, 1 / (3 * p_over_n), 1.3
    s, mass = eigenvalues(gamma)
    omega, rest = k1**2 * s + ks**2, max(0.0, 1 - min(1.0, gamma))  # of the eigenvalue zero
    chi = mass @ (k1**2 * s / omega) / gamma
    if alpha > 1:
        r = (rho + noise - rho * chi) / (1 - 1 / alpha)
        expected = r, 0.5 * r * (1 - 1 / alpha) ** 2
    else:

        def average(f):
            return mass @ f(omega, s) + rest * f(ks**2, 0.0)

        tau = np.exp(
            optimize.brentq(
                lambda t: average(lambda w, _: 1 / (1 + np.exp(-t) / w)) - alpha,
                -60,
                60,
                xtol=1e-14,
            )
        )
        M = rho / gamma * average(lambda w, s: tau * k1**2 * s / (1 + tau * w))
        slope = average(lambda w, _: (tau * w / (1 + tau * w)) ** 2) / alpha
        signal = rho / gamma * average(lambda w, s: tau**2 * k1**2 * s * w / (1 + tau * w) ** 2)
        Q = (slope * (rho + noise - 2 * M) + signal) / (1 - slope)
        expected = rho + noise + Q - 2 * M, 0.0
    ds = at(m, p_over_n=p_over_n, regularisation=0)
    assert_allclose([ds.generalisation_error, ds.training_loss], expected, rtol=1e-9, atol=1e-15)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("p_over_n", [0.5, 1.2, 6.0])
def test_largest_margin(p_over_n):
    m = model(loss="logistic", activation="erf")
    _, k1, ks = m.activation.kappas
    alpha, gamma = 1 / p_over_n, 1 / (3 * p_over_n)
    s, mass = eigenvalues(gamma)
    omega, rest = k1**2 * s + ks**2, max(0.0, 1 - min(1.0, gamma))

    def average(f):
        return mass @ f(omega, s) + rest * f(ks**2, 0.0)

    def gaussian(f):
        return integrate.quad(
            lambda x: f(x) * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi),
            -12,
            12,
            points=[0],
            limit=200,
            epsabs=1e-13,
        )[0]

    def turn(unknowns):
        logQ, a = unknowns
        Q, k, V0 = np.exp(logQ), np.tanh(a), 1 / np.cosh(a) ** 2
        short = lambda x: max(1 - np.sqrt(Q) * x, 0.0)  # noqa: E731
        law = lambda x: 2 * ndtr(k * x / np.sqrt(V0))  # noqa: E731
        slope = lambda x: 2 * np.exp(-0.5 * (k * x) ** 2 / V0) / np.sqrt(2 * np.pi * V0)  # noqa: E731
        E1 = gaussian(lambda x: law(x) * (short(x) > 0))
        E2 = gaussian(lambda x: law(x) * short(x) ** 2)
        E3 = gaussian(lambda x: slope(x) * short(x))
        tau = np.exp(
            optimize.brentq(
                lambda t: average(lambda w, _: 1 / (1 + np.exp(-t) / w)) - alpha * E1, -60, 60
            )
        )
        M = E3 / E1 / gamma * average(lambda w, s: tau * k1**2 * s / (1 + tau * w))
        noise, signal = E2 / (alpha * E1**2), E3**2 / (gamma * E1**2)
        Q = noise * average(lambda w, _: (tau * w / (1 + tau * w)) ** 2) + signal * average(
            lambda w, s: tau**2 * k1**2 * s * w / (1 + tau * w) ** 2
        )
        q_w = noise * average(lambda w, _: tau**2 * w / (1 + tau * w) ** 2) + signal * average(
            lambda w, s: tau**2 * k1**2 * s / (1 + tau * w) ** 2
        )
        return Q, M, q_w

    def residual(unknowns):
        Q, M, _ = turn(unknowns)
        return np.log(Q) - unknowns[0], M / np.sqrt(Q) - np.tanh(unknowns[1])

    Q, M, q_w = turn(optimize.fsolve(residual, [3.0 if p_over_n < 1 else 0.5, 0.6], xtol=1e-11))
    ds = at(m, p_over_n=p_over_n, regularisation=0)
    assert_allclose(ds.margin, 1 / np.sqrt(q_w), rtol=1e-6)
    assert_allclose(ds.alignment, M / np.sqrt(Q), rtol=1e-6)
    assert_allclose(ds.Q_normalised, Q / q_w, rtol=1e-6)
    assert np.isinf(ds.Q)
    assert np.isinf(ds.m_s)
    assert ds.training_loss == 0


@pytest.mark.usefixtures("each_engine")
def test_unregularised_minimisers_obey_the_equations_without_regularisation():
    """α E1 = 1, α E2 = Q - M²/ρχ, M = ραχ E3, with averages by a quadrature of its own."""
    loss = Huber(0.5)
    m = model(loss=loss, teacher=Sign(flip=0.1, rho=1.4), activation="tanh")
    _, k1, ks = m.activation.kappas
    p_over_n, rho = 0.4, 1.4
    alpha, gamma = 1 / p_over_n, 1 / (3 * p_over_n)
    s, mass = eigenvalues(gamma)
    chi = mass @ (k1**2 * s / (k1**2 * s + ks**2)) / gamma
    ds = at(m, p_over_n=p_over_n, regularisation=0)
    V, Q, M = (float(ds[name]) for name in "VQM")
    xi = np.linspace(-9, 9, 400_001)
    weight = np.exp(-0.5 * xi**2) / np.sqrt(2 * np.pi) * (xi[1] - xi[0])
    V0, k = rho - M**2 / Q, M / np.sqrt(Q)
    Z = 0.1 + 0.8 * ndtr(k * xi / np.sqrt(V0))
    Z1 = 0.8 * np.exp(-0.5 * (k * xi) ** 2 / V0) / np.sqrt(2 * np.pi * V0)
    u = 1 - np.sqrt(Q) * xi
    h = np.clip(u / (1 + V), -0.5, 0.5)
    g = np.where(np.abs(u / (1 + V)) < 0.5, 1 / (1 + V), 0.0)
    E1, E2, E3 = 2 * V * weight @ (Z * g), 2 * V**2 * weight @ (Z * h**2), 2 * V * weight @ (Z1 * h)
    assert_allclose(alpha * E1, 1.0, rtol=1e-5)
    assert_allclose(alpha * E2, Q - M**2 / (rho * chi), rtol=1e-5)
    assert_allclose(M, rho * alpha * chi * E3, rtol=1e-5)


# --- what all losses share, and what has no limit ----------------------------------------------


@pytest.mark.usefixtures("each_engine")
def test_regression_losses_share_the_interpolator():
    ridge = at(model(teacher=Linear(noise=0.3)), p_over_n=[1.2, 8.0], regularisation=0)
    cosh = Custom(
        lambda r: np.logaddexp(r, -r) - np.log(2),
        np.tanh,
        lambda r: 1 / np.cosh(np.clip(r, -300, 300)) ** 2,
        of="residual",
    )
    for loss in ("absolute", Huber(0.2), cosh):
        other = at(
            model(teacher=Linear(noise=0.3), loss=loss), p_over_n=[1.2, 8.0], regularisation=0
        )
        for name in ["generalisation_error", "training_loss", *OVERLAPS]:
            assert_allclose(other[name], ridge[name], rtol=1e-12, err_msg=f"{loss} {name}")


@pytest.mark.usefixtures("each_engine")
def test_hinges_share_the_largest_margin():
    hinge = at(model(loss="hinge"), p_over_n=[0.5, 3.0], regularisation=0)
    for loss in ("squared_hinge", SmoothedHinge(2.0)):
        other = at(model(loss=loss), p_over_n=[0.5, 3.0], regularisation=0)
        for name in ["generalisation_error", "margin", *OVERLAPS]:
            assert_allclose(other[name], hinge[name], rtol=1e-12)
    logistic = at(model(loss="logistic"), p_over_n=[0.5, 3.0], regularisation=0)
    for m in (logistic, at(model(loss=exponential_loss()), p_over_n=[0.5, 3.0], regularisation=0)):
        for name in ("generalisation_error", "margin", "Q_normalised", "m_s_normalised"):
            assert_allclose(m[name], hinge[name], rtol=1e-12)


def exponential_loss():
    """exp(-margin), continued linearly where it would overflow."""
    return Custom(
        lambda m: np.where(m > -20, np.exp(-np.maximum(m, -20)), np.exp(20.0) * (-19 - m)),
        lambda m: -np.exp(-np.maximum(m, -20)),
        lambda m: np.where(m > -20, np.exp(-np.maximum(m, -20)), 0.0),
        kinks=(-20.0,),
    )


@pytest.mark.slow
def test_a_tail_that_is_not_exponential_has_no_known_direction():
    slow = Custom(
        lambda m: 0.5 * (np.sqrt(m**2 + 4) - m),
        lambda m: 0.5 * (m / np.sqrt(m**2 + 4) - 1),
        lambda m: 2 / (m**2 + 4) ** 1.5,
    )
    kept = at(model(loss=slow), p_over_n=[0.2, 2.0], regularisation=0, on_failure="keep")
    assert list(kept.status.values) == [Status.CONVERGED, Status.NO_LIMIT]
    assert np.isnan(kept.generalisation_error[1])
    with pytest.raises(hm.ConvergenceError, match="depends on how the loss decays"):
        at(model(loss=slow), p_over_n=2.0, regularisation=0)


@pytest.mark.slow
@pytest.mark.parametrize("m", [model(), model(teacher="linear"), model(loss=Huber())])
def test_exactly_at_interpolation_a_sentence_and_no_number(m):
    kept = at(m, p_over_n=[0.5, 1.0, 2.0], regularisation=0, on_failure="keep")
    assert list(kept.status.values) == [0, Status.THRESHOLD, 0]
    for name in ("generalisation_error", "Q", "training_loss"):
        assert np.isnan(kept[name][1])
        assert np.isfinite(kept[name][[0, 2]]).all()
    with pytest.raises(hm.ConvergenceError, match="exactly at the threshold"):
        at(m, p_over_n=1.0, regularisation=0)


@pytest.mark.slow
def test_exactly_at_separability_a_sentence_and_no_number():
    m = model(loss="logistic")
    threshold = float(hm.separability_threshold(m, n_over_d=3.0).p_over_n)
    places = threshold * np.array([1 - 1e-5, 1.0, 1 + 1e-5])
    kept = at(m, p_over_n=places, regularisation=0, on_failure="keep")
    assert list(kept.status.values) == [0, Status.THRESHOLD, 0]
    before, _, after = kept.generalisation_error.values
    assert_allclose(before, after, rtol=1e-2)
    assert np.isfinite(kept.Q[0])
    assert np.isinf(kept.Q[2])
    assert kept.margin[2] < 1e-4


@pytest.mark.usefixtures("each_engine")
def test_zero_among_other_regularisations():
    lams = [0.0, 1e-3, np.inf]
    together = at(model(loss="hinge"), p_over_n=[0.2, 2.0], regularisation=lams)
    for lam in lams:
        alone = at(model(loss="hinge"), p_over_n=[0.2, 2.0], regularisation=lam)
        for name in alone.data_vars:
            if name not in ("iterations", "residual", "quadrature_error", "conditioning_error"):
                assert_allclose(together[name].sel(regularisation=lam), alone[name], rtol=1e-9)


# --- infinite ratios ---------------------------------------------------------------------------


def test_kernel_limit_of_the_square_loss_in_closed_form():
    """The best λ is 0⁺; the text reads 0.17, which belongs to p/n = 10."""
    ds = at(model(), p_over_n=np.inf, regularisation="optimal")
    assert ds.optimal_regularisation == 0
    B2, s2 = 2 / np.pi, 1 - 2 / np.pi
    E = np.roots([1.0, B2 * 2 + s2, -B2 * s2]).max()
    assert_allclose(ds.generalisation_error, np.arccos(np.sqrt(1 - E / B2)) / np.pi, rtol=1e-11)
    assert_allclose(ds.generalisation_error, 0.149796219262, rtol=1e-11)
    finite = at(model(), p_over_n=10.0, regularisation="optimal")
    assert_allclose(finite.generalisation_error, 0.16787942, atol=5e-9)
    assert_allclose(finite.optimal_regularisation, 0.447967, atol=5e-7)
    # approached as 0.306 n/p with λ* = 19.78 n/p
    far = at(model(), p_over_n=1e5, regularisation="optimal")
    assert_allclose(far.optimal_regularisation * 1e5, 19.78, rtol=2e-3)
    assert_allclose((far.generalisation_error - 0.149796219262) * 1e5, 0.306, rtol=2e-3)


def test_kernel_limit_of_the_logistic_loss():
    """The infimum is the largest margin; the text reads 0.16, which belongs to p/n = 10."""
    m = model(loss="logistic")
    ds = at(m, p_over_n=np.inf, regularisation=[1e-2, 1e-4, 1e-8, 1e-20])
    assert_allclose(ds.generalisation_error, [0.144843, 0.141918, 0.140789, 0.140247], atol=5e-7)
    best = at(m, p_over_n=np.inf, regularisation="optimal")
    assert best.optimal_regularisation == 0
    assert_allclose(best.generalisation_error, 0.139959047965, rtol=1e-11)
    finite = at(m, p_over_n=10.0, regularisation="optimal")
    assert_allclose(finite.generalisation_error, 0.15978400, atol=5e-9)
    assert_allclose(finite.optimal_regularisation, 1.459e-4, rtol=1e-3)
    assert_allclose(
        at(m, p_over_n=10.0, regularisation=0).generalisation_error, 0.16076233, atol=5e-9
    )


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_many_features_approach_the_kernel_limit(projection, loss):
    m = model(loss=loss, projection=projection, activation="erf")
    ds = at(m, p_over_n=[1e4, 1e5, np.inf], regularisation=0.01)
    for name in ("generalisation_error", "training_loss", "Q", "M"):
        near, nearer, limit = ds[name].values
        assert_allclose(limit, nearer + (nearer - near) / 9, rtol=1e-6)  # linear in n/p
    assert ds.q_w[-1] == 0


@pytest.mark.usefixtures("each_engine")
def test_infinite_data_saturates():
    """Hidden-manifold data, d/p = 0.1, erf: the 0.0325 of the text."""
    m = model(activation="erf")
    ds = hm.predict(m, n_over_p=[1e6, np.inf], d_over_p=0.1, regularisation=[1e-4, 1.0])
    assert_allclose(ds.generalisation_error.sel(n_over_p=np.inf), 0.0325006, atol=5e-8)
    assert_allclose(ds.generalisation_error[0], ds.generalisation_error[1], rtol=1e-4)
    best = hm.predict(m, n_over_p=np.inf, d_over_p=0.1, regularisation="optimal")
    assert_allclose(best.generalisation_error, 0.0325006, atol=5e-8)


def test_two_infinite_ratios_are_refused():
    with pytest.raises(hm.InvalidArgumentError, match="only one of them may be infinite"):
        hm.predict(model(), n_over_d=np.inf, p_over_n=np.inf, regularisation=1.0)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize(
    "loss", ["square", "logistic", "hinge", "squared_hinge", "absolute", "huber"]
)
def test_infinite_data_for_every_loss(loss):
    """Where V vanishes, a kink is narrower than rounding and still carries its mass."""
    teachers = [Sign(noise=0.2), Sign(noise=0.2, threshold=0.4)]
    teachers += [Linear(noise=0.2)] if loss in ("square", "absolute", "huber") else []
    for teacher in teachers:
        m = model(loss=loss, teacher=teacher, activation="erf", intercept=True)
        ds = hm.predict(m, n_over_p=[1e10, 1e16, np.inf], d_over_p=0.5, regularisation=1e-3)
        for name in ("generalisation_error", "training_loss", "Q", "M"):
            assert_allclose(ds[name][1:], ds[name][0], rtol=1e-7, err_msg=name)


def test_limits_that_do_not_commute_are_refused():
    with pytest.raises(hm.InvalidArgumentError, match="do not commute"):
        hm.predict(model(), n_over_p=np.inf, d_over_p=0.5, regularisation=np.inf)


def test_underflow_is_not_flatness():
    def density(m):
        return np.exp(-0.5 * m * m - log_ndtr(m)) / np.sqrt(2 * np.pi)

    probit = Custom(
        lambda m: -log_ndtr(m), lambda m: -density(m), lambda m: density(m) * (m + density(m))
    )
    lifted = Custom(
        lambda m: 1 + np.logaddexp(0, -m), lambda m: -expit(-m), lambda m: expit(m) * expit(-m)
    )
    hinge = at(model(loss="hinge"), p_over_n=2.0, regularisation=0)
    for loss, least in ((probit, 0.0), (lifted, 1.0)):
        assert loss.minimisers == (-np.inf, -np.inf)
        ds = at(model(loss=loss), p_over_n=2.0, regularisation=0)
        assert np.isinf(ds.Q)
        assert_allclose(ds.margin, hinge.margin, rtol=1e-12)
        assert_allclose(ds.training_loss, least, atol=1e-15)


def test_the_least_value_of_a_loss_remains():
    lifted = Custom(lambda r: 0.5 * r**2 + 1, lambda r: r, np.ones_like, of="residual")
    ds = at(model(loss=lifted, teacher=Linear(noise=0.1)), p_over_n=2.0, regularisation=[0, 1e-9])
    assert_allclose(ds.training_loss, 1.0, rtol=1e-6)


@pytest.mark.slow
def test_a_minimum_away_from_zero_has_no_stand_in():
    shifted = Custom(lambda r: 0.5 * (r - 0.3) ** 2, lambda r: r - 0.3, np.ones_like, of="residual")
    m = model(loss=shifted, teacher=Linear(noise=0.1))
    ds = at(m, p_over_n=[0.5, 2.0], regularisation=0, on_failure="keep")
    assert list(ds.status.values) == [0, Status.NO_LIMIT]
    # before the limit, digits are lost in the difference from that minimum, and it says so
    near = at(m, p_over_n=2.0, regularisation=[1e-6, 1e-8, 1e-14, 1e-20], on_failure="keep")
    assert np.all(near.status[:2] == 0)
    assert np.all(near.status[2:] != 0)
    assert_allclose(near.generalisation_error[0], near.generalisation_error[1], rtol=1e-4)


def test_a_threshold_that_cannot_be_computed_is_no_phase():
    m = model(
        activation="identity",
        projection="orthogonal",
        teacher=Steps((-1.0, -0.9999999, 0.5)),
        loss="logistic",
        intercept=True,
    )
    ds = hm.predict(m, p_over_d=2.0, n_over_d=3.0, regularisation=0, on_failure="keep")
    assert ds.status != 0
    assert np.isnan(ds.generalisation_error)


@pytest.mark.usefixtures("each_engine")
def test_finite_regularisation_in_the_kernel_limit_keeps_its_finite_numbers():
    ds = at(model(loss="logistic"), p_over_n=np.inf, regularisation=[1e9, 1e-20])
    assert np.isfinite(ds.V).all()
    assert np.all(ds.Q >= ds.M**2)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("lam", [1e-17, 1e-40, 1e-100])
def test_smoothed_hinge_goes_to_the_largest_margin_without_a_leap(lam):
    """Once the proximal map lost its roots there, and the training loss came out as 1e15."""
    model = hm.Model(
        activation="sign",
        projection="gaussian",
        teacher="sign",
        loss=hm.losses.SmoothedHinge(2.0),
    )
    at, limit = (
        hm.predict(model, n_over_p=0.3, d_over_p=0.5, regularisation=value) for value in (lam, 0.0)
    )
    np.testing.assert_allclose(at.generalisation_error, limit.generalisation_error, rtol=1e-10)
    # every sample has its margin: what is left of the loss is the penalty
    expected = lam / (2 * 0.3 * limit.margin**2)
    np.testing.assert_allclose(at.training_loss, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_loss_that_is_flat_without_a_kink_has_no_known_limit_and_is_not_waited_for():
    """Its slope exp(-1/s) is zero for s <= 0: no t exists at which it does not vanish."""

    def of_shortfall(function):
        def wrapped(m):
            s = np.maximum(-m, 1e-3)
            return np.where(m < -1e-3, function(s), 0.0)

        return wrapped

    slope = of_shortfall(lambda s: np.exp(-1 / s))
    smooth = Custom(
        of_shortfall(lambda s: s * np.exp(-1 / s) - exp1(1 / s)),
        lambda m: -slope(m),
        of_shortfall(lambda s: np.exp(-1 / s) / s**2),
    )
    chosen = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss=smooth)
    ds = hm.predict(chosen, n_over_p=0.1, d_over_p=0.5, regularisation=0.0, on_failure="keep")
    assert ds.status == Status.NO_LIMIT
