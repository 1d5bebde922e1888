"""Deep random features: drawn matrices, hundreds of digits, known limits, and what is refused."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import hiddenmanifold as hm
import spectral_oracle as oracle
from given import Given
from hiddenmanifold import InvalidArgumentError
from hiddenmanifold.features import Deep, Layer, RandomFeatures
from hiddenmanifold.features.projections import Gaussian, Matrix, Orthogonal, Spectrum
from hiddenmanifold.theory.separability.direction import separating_direction
from seeds import sampled

Sign, Linear = hm.teachers.Sign, hm.teachers.Linear
FUNCTIONS = {
    "sign": (np.sign, (0.0,)),
    "erf": (special.erf, ()),
    "tanh": (np.tanh, ()),
    "sin": (np.sin, ()),
    "identity": (lambda x: x, ()),
    "blind": (lambda x: x**2 - 1.0, ()),
}


def layers_of(*parts):
    """Layers from triples of a function's name, the kind of its matrix, and its width."""
    named = ("sign", "erf", "tanh", "identity")
    return [
        Layer(name if name in named else FUNCTIONS[name][0], kind, width=width)
        for name, kind, width in parts
    ]


def stages_of(parts, size, last):
    """The same for the oracle, with coefficients of its own; `size` is that of the latent data."""
    variance, stages = 1.0, []
    for name, kind, width in parts:
        _, k1, ks = oracle.kappas(FUNCTIONS[name][0], variance, FUNCTIONS[name][1])
        variance = k1**2 * variance + ks**2
        stages.append(oracle.Stage(kind, k1, ks, last if width is None else round(width * size)))
    return stages


# drawn matrices

N, H = "gaussian", "orthogonal"
NETWORKS = {
    "wide, then narrow": ((("tanh", N, 1.5), ("erf", N, None)), 1.0),
    "a bottleneck": ((("erf", N, 0.5), ("erf", N, None)), 2.0),
    "orthogonal on gaussian": ((("sign", N, 1.25), ("tanh", H, None)), 0.75),
    "gaussian on orthogonal": ((("sign", H, 2.0), ("erf", N, None)), 1.25),
    "orthogonal bottleneck": ((("erf", H, 0.5), ("tanh", H, None)), 0.25),
    "orthogonal and widening": ((("tanh", H, 0.75), ("sign", H, None)), 2.0),
    "linear below": ((("identity", N, 0.75), ("erf", N, None)), 1.5),
    "linear above": ((("erf", N, 1.5), ("identity", H, None)), 0.75),
    "linear throughout": ((("identity", N, 1.5), ("identity", N, None)), 0.5),
    "three layers": ((("sin", N, 2.0), ("tanh", N, 1.5), ("erf", N, None)), 1.75),
    "three layers, one narrow": ((("erf", H, 1.5), ("sign", N, 0.25), ("tanh", H, None)), 1.0),
    "one layer": ((("erf", N, None),), 1.5),
}
ARGUMENTS = np.array([1e-3, 0.03, 0.5, 5.0])


def deviations(network, d, boost, rng):
    """Sums of a drawn network minus those of the theory, and the same of what is visible."""
    parts, p_over_d = NETWORKS[network]
    p = round(p_over_d * d)
    features = Deep(layers_of(*parts))
    drawn = oracle.drawn(d, stages_of(parts, d, p), rng, boost)
    w, tau, _ = oracle.measures(*drawn, boost)
    gamma = np.full_like(ARGUMENTS, d / p)
    theory = features.sums(ARGUMENTS, gamma, boost)
    off = [
        [getattr(theory, name)[i] - value for name, value in oracle.sums(k, w, tau, p).items()]
        for i, k in enumerate(ARGUMENTS)
    ]
    if boost == 1.0:
        visible = features.visible(gamma[:1])
        seen = [visible.fraction[0] - tau.sum(), visible.hidden[0] - 1.0 + tau.sum()]
        off.append([*seen, visible.rank[0] - len(w) / p])
    return np.concatenate(off)


@pytest.mark.slow
@pytest.mark.parametrize("boost", [1.0, 20.0])
def test_sums_are_those_of_drawn_networks_up_to_their_fluctuations(boost):
    rng, distance = np.random.default_rng(10), {}
    for d in (80, 320):
        off = {name: deviations(name, d, boost, rng) for name in NETWORKS}
        for name, values in off.items():
            assert np.abs(values).max() < 3.0 / d, name
        distance[d] = np.sqrt(np.mean([np.mean(values**2) for values in off.values()]))
    assert distance[320] < 0.5 * distance[80]  # as 1/d: by 4, to a few tenths


def test_coefficients_are_taken_at_the_variance_of_what_neurons_receive():
    parts = (("sin", N, 2.0), ("tanh", H, 1.5), ("sign", N, 0.5), ("erf", N, None))
    features = Deep(layers_of(*parts))
    stages = stages_of(parts, 100, 100)
    for found, stage in zip(features.kappas, stages, strict=True):
        np.testing.assert_allclose(found, (0.0, stage.kappa_1, stage.kappa_star), atol=1e-11)
    assert features.variances[0] == 1.0
    last = stages[-1]
    expected = last.kappa_1**2 * features.variances[-2] + last.kappa_star**2
    assert features.variance == pytest.approx(expected, rel=1e-11)


# many digits

EXTREME = {
    "g-g": (("tanh", N, 1.7), ("erf", N, None)),
    "o-o": (("erf", H, 0.6), ("tanh", H, None)),
    "g-o": (("sign", N, 1.7), ("tanh", H, None)),
    "o-g": (("sign", H, 2.0), ("erf", N, None)),
    "linear": (("identity", N, 1.7), ("identity", N, None)),
    "square linear": (("identity", N, 1.0), ("identity", N, 1.0), ("identity", N, None)),
    "orthogonal linear": (("identity", H, 1.0), ("identity", H, None)),
    "linear bottleneck": (("identity", N, 0.5), ("identity", H, None)),
    "linear below": (("identity", N, 0.5), ("erf", N, None)),
    "linear above": (("erf", N, 1.5), ("identity", H, None)),
    "blind below": (("blind", N, 0.8), ("erf", N, None)),
    "blind between": (("sign", H, 2.0), ("blind", N, 3.0), ("erf", H, None)),
    "three": (("sign", N, 2.0), ("tanh", H, 0.5), ("erf", N, None)),
    "three others": (("sign", H, 0.5), ("tanh", N, 3.0), ("erf", H, None)),
}
CORNERS = [(gamma, k) for gamma in (1e-40, 0.3, 1.0, 1e40) for k in (1e-90, 1e-12, 0.2, 1e5, 1e90)]


def chain_of(features, gamma):
    """The same network for the oracle, with the package's coefficients and sizes in units of p."""
    kinds = {Gaussian: N, Orthogonal: H}
    stages = []
    for layer, (_, k1, ks) in zip(features.layers, features.kappas, strict=True):
        size = mp.mpf(1) if layer.width is None else mp.mpf(layer.width) * mp.mpf(gamma)
        stages.append(oracle.Stage(kinds[type(layer.projection)], k1, ks, size))
    return oracle.Chain(mp.mpf(gamma), stages)


def assert_digits(features, gamma, k, boost, tolerance):
    expected = chain_of(features, gamma)(k, boost)
    with np.errstate(all="ignore"):
        found = features.sums(np.array([k]), np.array([gamma]), boost)
    for name, value in expected.items():
        # slopes that change sign or nearly cancel: relative to what they are slopes of
        unit = abs(expected[{"dW": "W", "A": "T1"}.get(name, name)])
        error = abs(mp.mpf(float(getattr(found, name)[0])) - value)
        assert error <= tolerance * unit + mp.mpf(10) ** -280, (name, gamma, k, boost)


@pytest.mark.slow
@pytest.mark.parametrize("network", sampled(EXTREME, [*EXTREME][::2]))
def test_sums_keep_their_digits_in_every_corner(network):
    features = Deep(layers_of(*EXTREME[network]))
    for i, (gamma, k) in enumerate(CORNERS):
        assert_digits(features, gamma, k, (1.0, 30.0, 1e3)[i % 3], 1e-12)


@pytest.mark.slow
def test_sums_keep_their_digits_for_coefficients_of_any_size():
    rng = np.random.default_rng(12)
    for _ in range(40):
        depth = rng.integers(1, 5)
        layers = [
            Layer(
                Given((0.0, 10 ** rng.uniform(-8, 3), rng.choice([0.0, 10 ** rng.uniform(-2, 3)]))),
                rng.choice([N, H]),
                width=None if level == depth - 1 else 10 ** rng.uniform(-3, 3),
            )
            for level in range(depth)
        ]
        k, gamma, boost = (float(10 ** rng.uniform(*span)) for span in SPANS)
        assert_digits(Deep(layers), gamma, k, boost, 1e-12)


SPANS = ((-90, 90), (-10, 10), (0, 3))


def test_as_many_linear_features_as_latent_dimensions_are_barely_independent():
    """Wide linear layers with p = d in the end: k times 1 - 1/width of those without a layer."""
    labels = {"teacher": Linear(noise=0.1), "loss": "square"}
    at = {"p_over_d": 1.0, "n_over_p": np.inf}
    for width in (2.0, 4.0):
        features = Deep([Layer("identity", width=width), Layer("identity")])
        model, one = (
            hm.Model(features=features, **labels),
            hm.Model(activation="identity", projection="gaussian", **labels),
        )
        assert np.isinf(float(hm.predict(model, **at, regularisation=0).q_w))
        # k = u (1 - D1/p)(1 - D1/p1), and D1 is almost p
        factor = np.sqrt(1.0 / (1.0 - 1.0 / width))
        found, single = (hm.predict(m, **at, regularisation=1e-10) for m in (model, one))
        np.testing.assert_allclose(found.q_w, factor * single.q_w, rtol=1e-9)
        np.testing.assert_allclose(found.clean_error, factor * single.clean_error, rtol=1e-9)


@pytest.mark.parametrize("kind", [N, H])
@pytest.mark.parametrize("width", [1.0, 2.0])
def test_enough_linear_features_show_everything(kind, width):
    features = Deep([Layer("identity", kind, width=width), Layer("identity")])
    visible = features.visible(np.array([0.4, 1.0]))
    np.testing.assert_array_equal(visible.hidden, 0.0)
    np.testing.assert_allclose(visible.fraction, 1.0, rtol=1e-15)
    np.testing.assert_allclose(visible.rank, [0.4, 1.0], rtol=1e-15)
    fewer = features.visible(np.array([2.0]))
    np.testing.assert_allclose([fewer.fraction, fewer.hidden], 0.5, rtol=1e-14)
    assert features.noiseless


# known networks


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("activation", ["sign", "erf", "identity", "relu"])
def test_one_layer_is_random_features(projection, activation):
    deep = Deep([Layer(activation, projection)])
    single = RandomFeatures(deep.layers[0].activation, deep.layers[0].projection)
    k = 10.0 ** np.arange(-90.0, 91.0, 12.0)
    for gamma in (1e-40, 0.4, 1.0, 2.5, 1e40):
        for boost in (1.0, 50.0):
            found, expected = (f.sums(k, np.full_like(k, gamma), boost) for f in (deep, single))
            for name in oracle.NAMES:
                value = getattr(expected, name)
                np.testing.assert_allclose(getattr(found, name), value, rtol=1e-13, err_msg=name)
    labels = {"teacher": Sign(threshold=0.3), "loss": "logistic"}
    at = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": [0, 0.01, np.inf]}
    one, other = (hm.predict(hm.Model(features=f, **labels), **at) for f in (single, deep))
    for name in set(one.data_vars) & set(other.data_vars) - {
        "residual",
        "quadrature_error",
        "conditioning_error",
    }:
        np.testing.assert_allclose(other[name], one[name], rtol=1e-11, err_msg=str(name))


@pytest.mark.slow
def test_linear_layers_are_their_product():
    """F1 F2 has the law of a matrix of given spectrum: the drawn one agrees with the theory."""
    rng = np.random.default_rng(20)
    d, p1, p = 400, 600, 500
    F = rng.standard_normal((d, p1)) @ rng.standard_normal((p1, p)) / np.sqrt(p1)
    labels = {"teacher": Sign(noise=0.2), "loss": "logistic"}
    deep = Deep([Layer("identity", width=p1 / d), Layer("identity")])
    at = {"n_over_p": 1.5, "regularisation": [1e-3, 0.1, 1.0]}
    product = hm.Model(activation="identity", projection=Matrix(F), **labels)
    expected, found = (
        hm.predict(product, **at),
        hm.predict(hm.Model(features=deep, **labels), d_over_p=d / p, **at),
    )
    for name in ("generalisation_error", "Q", "M", "q_w", "training_loss"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0.01, err_msg=name)


@pytest.mark.parametrize("last", ["gaussian", "orthogonal"])
def test_an_orthogonal_linear_layer_of_any_larger_width_changes_nothing(last):
    labels = {"teacher": "sign", "loss": "logistic"}
    at = {"n_over_d": 3.0, "p_over_n": [0.2, 1.0], "regularisation": [0.0, 0.1]}
    one = hm.predict(hm.Model(activation="erf", projection=last, **labels), **at)
    for width in (1.0, 2.5):
        features = Deep([Layer("identity", "orthogonal", width=width), Layer("erf", last)])
        if width == 1.0 or last == "gaussian":
            found = hm.predict(hm.Model(features=features, **labels), **at)
            for name in ("generalisation_error", "Q", "M", "q_w"):
                np.testing.assert_allclose(found[name], one[name], rtol=1e-9, err_msg=name)


def test_a_given_matrix_may_be_the_first_layer():
    """Also one whose columns are longer than those of random entries."""
    rng = np.random.default_rng(21)
    d, p1 = 60, 90
    F = rng.standard_normal((d, p1))
    F *= 1.04 * np.sqrt(d / (F**2).sum(0))
    features = Deep([Layer("erf", Matrix(F), width=p1 / d), Layer("tanh")])
    _, k1, ks = features.kappas[0]
    s = np.append(np.linalg.svd(F, compute_uv=False) ** 2 / d, np.zeros(p1 - d))
    values = k1**2 * s + ks**2
    gamma, (_, t1, ts) = 0.4, features.kappas[1]
    size = gamma * p1 / d
    for k in (1e-3, 1.0, 1e3, 1e6):
        m = features.sums(np.array([k]), np.array([gamma]))
        # D1 of the layer below at the argument that belongs to the k of linear features
        at, low = (k + ts**2) / t1**2, 0.0
        for _ in range(200):
            w = values / size
            low = at + (low * w / (w + low)).sum() * size / p1
        seen = (w / (w + low)).sum() * size / p1
        np.testing.assert_allclose(m.D1, (ts**2 + k * seen) / (k + ts**2), rtol=1e-12)
    assert features.fixed_dimension == d
    assert features.fixed_ratio is None


TABLE = [  # THEORY: layers, sizes d, p, n; teacher, loss, regularisation; error
    (("tanh", 500), ("erf", None), (300, 400, 600), Sign(), "square", 0.05, 0.27711),
    (("tanh", 500), ("erf", None), (300, 400, 600), Sign(noise=0.2), "logistic", 0.1, 0.32779),
    (("erf", 150), ("erf", None), (300, 600, 500), Sign(noise=0.3), "square", 0.01, 0.40066),
    (
        ("sin", 400),
        ("tanh", 300),
        ("erf", None),
        (200, 350, 700),
        Sign(),
        "logistic",
        0.02,
        0.27695,
    ),
    (
        ("sin", 900),
        ("tanh", 675),
        ("erf", None),
        (450, 788, 1575),
        Sign(),
        "logistic",
        0.02,
        0.27693,
    ),
]


@pytest.mark.parametrize("case", TABLE, ids=[str(case[-1]) for case in TABLE])
def test_errors_are_those_of_an_independent_solution(case):
    *parts, (d, p, n), teacher, loss, lam, error = case
    network = [(name, N, size and size / d) for name, size in parts]
    model = hm.Model(features=Deep(layers_of(*network)), teacher=teacher, loss=loss)
    ds = hm.predict(model, n_over_d=n / d, p_over_d=p / d, regularisation=lam)
    assert round(float(ds.generalisation_error), 5) == error


def test_curves_have_a_corner_where_an_orthogonal_last_layer_is_square():
    features = Deep([Layer("tanh", width=1.5), Layer("erf", "orthogonal")])
    np.testing.assert_allclose(features.corner, 1 / 1.5)
    model = hm.Model(features=features, teacher=Linear(noise=0.1), loss="square")
    p_over_d = np.array([1.5 / 1.01, 1.5, 1.5 * 1.01])
    ds = hm.sensitivity(model, n_over_d=1.0, p_over_d=p_over_d, regularisation=0.01)
    below, at, above = ds.generalisation_error_by_log_p.values
    assert np.isnan(at)
    assert abs(above - below) > 0.05 * abs(above + below)
    for layers in ([Layer("erf", "orthogonal", width=2.0), Layer("erf")], [Layer("erf")]):
        assert Deep(layers).corner is None
    assert Deep([Layer("erf", "hadamard")]).corner == 1.0


# limits

DEEP = Deep([Layer("tanh", width=1.5), Layer("erf")])


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_infinitely_many_features_are_the_limit_of_many(loss):
    model = hm.Model(features=DEEP, teacher=Sign(noise=0.1), loss=loss)
    at = {"n_over_d": 3.0, "regularisation": [0.01, 1.0]}
    many = hm.predict(model, p_over_n=[1e4, 1e5, 1e6, np.inf], **at)
    for name in ("generalisation_error", "training_loss", "Q", "M"):
        off = (
            np.abs(many[name] / many[name].sel(p_over_n=np.inf) - 1.0).values.reshape(4, -1).max(1)
        )
        assert off[1] < 1e-4, name
        np.testing.assert_allclose(off[1] / off[0], 0.1, rtol=0.05, err_msg=name)
        np.testing.assert_allclose(off[2] / off[1], 0.1, rtol=0.05, err_msg=name)


@pytest.mark.parametrize("last", ["gaussian", "orthogonal"])
def test_a_linear_bottleneck_has_limits_too(last):
    """Without penalty, and of infinitely many features: numbers beyond 1e-130 are asked for."""
    features = Deep([Layer("identity", width=0.5), Layer("identity", last)])
    model = hm.Model(features=features, teacher="sign", loss="logistic")
    ds = hm.predict(model, n_over_d=[0.3, 0.8], p_over_n=[1e6, np.inf], regularisation=0)
    near, limit = ds.generalisation_error.values.T
    np.testing.assert_allclose(near, limit, rtol=1e-6)


def test_infinitely_wide_hidden_layers_are_the_limit_of_wide_ones():
    """They approach it as one over the width."""
    labels = {"teacher": "sign", "loss": "square"}
    at = {"n_over_d": 2.0, "p_over_n": 1.0, "regularisation": 0.1}
    errors = [
        float(
            hm.predict(
                hm.Model(features=Deep([Layer("tanh", width=width), Layer("erf")]), **labels), **at
            ).generalisation_error
        )
        for width in (1e2, 1e3, 1e4, 1e30)
    ]
    off = np.abs(np.array(errors[:3]) - errors[3])
    np.testing.assert_allclose(off[1:] / off[:-1], 0.1, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [Sign(), Sign(noise=0.4), Sign(threshold=0.5)])
@pytest.mark.parametrize("network", ["a bottleneck", "three layers, one narrow", "linear below"])
def test_data_become_separable_where_what_is_visible_says(network, teacher):
    """The visible fraction from a drawn network, the threshold of separability from that."""
    parts, p_over_d = NETWORKS[network]
    d = 400
    p = round(p_over_d * d)
    Omega, Phi = oracle.drawn(d, stages_of(parts, d, p), np.random.default_rng(30))
    chi = np.trace(Phi @ np.linalg.solve(Omega, Phi.T)) / d
    model = hm.Model(features=Deep(layers_of(*parts)), teacher=teacher, loss="logistic")
    found = float(hm.separability_threshold(model, p_over_d=p_over_d).p_over_n)
    expected = separating_direction(teacher, np.array([chi]), False).value[0]
    np.testing.assert_allclose(found, expected, rtol=5e-3)
    beside = hm.predict(
        model, p_over_d=p_over_d, p_over_n=[0.999 * found, 1.001 * found], regularisation=0
    )
    assert np.isfinite(beside.q_w[0])
    assert np.isinf(beside.q_w[1])


@pytest.mark.parametrize("given", ["n_over_d", "p_over_n"])
def test_both_ways_to_a_threshold_lead_to_one_point(given):
    model = hm.Model(features=DEEP, teacher=Sign(noise=0.3), loss="logistic")
    start = 2.0 if given == "n_over_d" else 0.45
    sought = "p_over_n" if given == "n_over_d" else "n_over_d"
    found = float(hm.separability_threshold(model, **{given: start})[sought])
    n_over_d, p_over_n = (start, found) if given == "n_over_d" else (found, start)
    again = float(hm.separability_threshold(model, p_over_d=p_over_n * n_over_d).p_over_n)
    np.testing.assert_allclose(again, p_over_n, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [Sign(), Sign(noise=0.3), Linear(noise=0.3)])
@pytest.mark.parametrize(
    "network", ["a bottleneck", "orthogonal on gaussian", "linear below", "linear throughout"]
)
def test_bayes_optimal_error_is_that_of_drawn_networks(network, teacher):
    parts, p_over_d = NETWORKS[network]
    model = hm.Model(features=Deep(layers_of(*parts)), teacher=teacher, loss="square")
    d, n_over_d = 400, 2.5
    p = round(p_over_d * d)
    Omega, Phi = oracle.drawn(d, stages_of(parts, d, p), np.random.default_rng(31))
    G = np.linalg.eigvalsh(Phi @ np.linalg.pinv(Omega, rcond=1e-10, hermitian=True) @ Phi.T)
    sign = isinstance(teacher, Sign)
    expected = oracle.bayes_overlap(
        np.clip(G, 0, 1) / d, n_over_d * d, 1.0, teacher.noise, sign=sign
    )
    found = hm.bayes_optimal(model, n_over_d=n_over_d, p_over_d=p / d)
    np.testing.assert_allclose(found.overlap, expected, rtol=4e-3)


@pytest.mark.filterwarnings("ignore::hiddenmanifold.BlindFeaturesWarning")
def test_a_blind_layer_hides_everything_above_it():
    network = (("erf", N, 1.2), ("blind", H, 0.7), ("tanh", N, None))
    scaled = [Layer("sign", width=1.2), *layers_of(*network[1:])]  # of variance 1, or it had a mean
    features = Deep(scaled)
    assert features.blind
    assert features.visible(np.array([0.5])).fraction == 0.0
    model = hm.Model(features=features, teacher="sign", loss="logistic")
    at = {"n_over_d": 2.0, "p_over_n": 0.3}
    assert float(hm.predict(model, **at, regularisation=0.1).generalisation_error) == 0.5
    assert float(hm.bayes_optimal(model, **at).generalisation_error) == 0.5


# draws


@pytest.mark.slow
def test_drawn_layers_have_the_overlaps_they_are_said_to_have():
    """Exactly for Gaussian-equivalent data, of which Ω and Φ are known."""
    rng = np.random.default_rng(40)
    features = Deep(
        [Layer("tanh", width=1.5), Layer("sign", "orthogonal", width=0.5), Layer("erf")]
    )
    d, p, rho = 30, 50, 1.7
    drawn = features.draw(d, p, rho, rng)
    assert [F.left(np.eye(n)).shape for F, n in zip(drawn.maps, (30, 45, 15), strict=True)] == [
        (30, 45),
        (45, 15),
        (15, 50),
    ]
    Omega, Phi = np.eye(d), np.eye(d)
    for F, (_, k1, ks), size in zip(drawn.maps, features.kappas, (30, 45, 15), strict=True):
        dense = F.left(np.eye(size))
        Omega = k1**2 * dense.T @ Omega @ dense / size + ks**2 * np.eye(dense.shape[1])
        Phi = k1 * Phi @ dense / np.sqrt(size)
    w = rng.standard_normal(p)
    found = drawn.overlaps(w)
    np.testing.assert_allclose(found["Q"], w @ Omega @ w / p, rtol=1e-12)
    np.testing.assert_allclose(
        found["M"], drawn.inputs.theta @ Phi @ w / np.sqrt(d * p), rtol=1e-12
    )
    np.testing.assert_allclose(drawn.inputs.theta @ drawn.inputs.theta, rho * d, rtol=1e-12)
    X, nu = drawn.sample(100_000, rng, equivalent=True)
    f = X @ w / np.sqrt(p)
    np.testing.assert_allclose((f**2).mean(), found["Q"], rtol=0.03)
    np.testing.assert_allclose((f * nu).mean(), found["M"], atol=0.02 * np.sqrt(found["Q"] * rho))


# what is refused

ERF = Layer("erf")
F = np.random.default_rng(50).standard_normal((40, 60))
BAD = {
    "no layers": ([], "layers", "one or more"),
    "no sequence": (ERF, "layers", "one or more"),
    "None": (None, "layers", "one or more"),
    "names": (["erf", "erf"], "layers", "one or more"),
    "one is no layer": ([Layer("erf", width=1.0), "erf"], "layers", "one or more"),
    "a width too many": ([Layer("erf", width=1.0)], "width", "last layer cannot be chosen"),
    "a width too few": ([ERF, ERF], "width", "every layer but the last"),
    "a matrix above": ([Layer("erf", width=1.0), Layer("erf", Matrix(F))], "projection", "first"),
    "a spectrum above": (
        [Layer("erf", width=1.0), Layer("erf", Spectrum([1.0], d_over_p=1.0))],
        "projection",
        "in the first layer",
    ),
    "a width that the matrix does not have": (
        [Layer("erf", Matrix(F), width=2.0), ERF],
        "width",
        "1.5: the projection fixes it",
    ),
    "a width that it almost has": (
        [Layer("erf", Matrix(F), width=1.50001), ERF],
        "width",
        "1.5: the projection fixes it",
    ),
    "a mean below": ([Layer("relu", width=1.0), ERF], "activation", "mean must be zero"),
    "a mean at its variance": (
        [Layer("erf", width=1.0), Layer(lambda x: x**2 - 1.0, width=1.0), ERF],
        "activation",
        "mean must be zero",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_layers_are_refused(case):
    layers, argument, sentence = BAD[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        Deep(layers)
    assert caught.value.argument == argument


BAD_LAYERS = {
    "an unknown activation": (("erff",), {}, "activation", "did you mean 'erf'"),
    "a number": ((1.0,), {}, "activation", "one of"),
    "an unknown projection": (("erf", "gauss"), {}, "projection", "did you mean 'gaussian'"),
    "no projection": (("erf", None), {}, "projection", "one of"),
    "zero width": (("erf",), {"width": 0.0}, "width", "above 0"),
    "negative width": (("erf",), {"width": -1.0}, "width", "above 0"),
    "NaN width": (("erf",), {"width": np.nan}, "width", "above 0"),
    "infinite width": (("erf",), {"width": np.inf}, "width", "above 0"),
    "a word for a width": (("erf",), {"width": "2"}, "width", "above 0"),
}


@pytest.mark.parametrize("case", BAD_LAYERS)
def test_an_unusable_layer_is_refused(case):
    arguments, options, argument, sentence = BAD_LAYERS[case]
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        Layer(*arguments, **options)
    assert caught.value.argument == argument


def test_a_constant_layer_is_refused():
    with pytest.raises(InvalidArgumentError, match="is constant, and carries"):
        Deep([Layer(np.zeros_like, width=1.0), ERF])


def test_layers_with_a_mean_may_be_last_and_then_provide_an_intercept():
    features = Deep([Layer("erf", width=1.0), Layer("relu")])
    assert features.mean > 0
    model = hm.Model(features=features, teacher=Sign(threshold=0.5), loss="logistic")
    assert model.free_intercept
    ds = hm.predict(model, n_over_d=2.0, p_over_n=0.5, regularisation=0.1)
    assert float(ds.intercept) > 0.1


@pytest.mark.slow
def test_equal_layers_are_equal():
    assert Deep([Layer("erf", width=2.0), ERF]) == Deep((Layer("erf", width=2.0), Layer("erf")))
    assert Deep([Layer("erf", width=2.0), ERF]) != Deep([Layer("erf", width=3.0), ERF])
    assert "width=2.0" in repr(Deep([Layer("erf", width=2.0), ERF]))


def test_names_make_random_features_as_they_make_layers():
    features = RandomFeatures("erf", "gaussian")
    assert features == RandomFeatures(ERF.activation, ERF.projection)
    assert repr(features) == "RandomFeatures(activation=Erf(), projection=Gaussian())"
