"""Rules given as functions: their label laws as polynomials, and what is summed over the field."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from scipy.special import expit, ndtr

import hiddenmanifold as hm
from hiddenmanifold import compiled
from hiddenmanifold.errors import CERTIFICATES
from hiddenmanifold.numerics.panels import Panels, fanned
from hiddenmanifold.teachers import Custom, Sign, Steps, tables

needs_extension = pytest.mark.skipif(compiled.engine() == "numpy", reason="the kernel is not built")


@cache
def random_rule(seed):
    """A rule with a slope of any steepness, a wave, a jump and two corners.

    The tests share it, because it keeps its tables.
    """
    rng = np.random.default_rng(seed)
    steep, centre, wave = 10.0 ** rng.uniform(-0.5, 1.2), rng.uniform(-1.0, 1.0), rng.uniform(0, 4)
    jump, corner = rng.uniform(-2.0, 2.0, 2)
    rise, wide = rng.choice([-1.0, 1.0]), rng.uniform(0.2, 2.0)

    def probability(nu):
        smooth = 0.3 * expit(rise * steep * (nu - centre)) + 0.1 * np.sin(wave * nu)
        return 0.15 + smooth + 0.2 * (nu > jump) + 0.2 * np.clip((nu - corner) / wide, 0.0, 1.0)

    return Custom(probability, kinks=(jump, corner, corner + wide), rho=rng.uniform(0.3, 3.0))


def model(rule, loss="logistic", **options):
    return hm.Model(activation="erf", projection="gaussian", teacher=rule, loss=loss, **options)


def predicted(rule, **options):
    ratios = {"n_over_d": 2.0, "p_over_n": np.geomspace(0.1, 5.0, 7), "regularisation": 1e-2}
    return hm.predict(model(rule, **options), **ratios, workers=1)


def by_polynomials(rule, y, x, V0):
    """The label law (3, points) at one mean and variance each, from the polynomials alone."""
    found = np.full((3, len(x)), np.nan)
    for some, law in rule.compiled(y, V0):
        cell = np.searchsorted(law.law_cells[:, 0], x[some])
        _, middle, per_half = law.law_cells[cell].T
        t = (x[some] - middle) * per_half
        table = law.law_polynomials.reshape(len(some), len(law.law_cells), tables.POWERS, 4)
        coefficients = table[np.arange(len(some)), cell]
        powers = t[:, None] ** np.arange(tables.POWERS)
        found[:, some] = np.einsum("ipf,ip->fi", coefficients, powers)[:3]
    return found


def some_fields(seed, rho, count=200):
    """Means, and variances on two levels of a table."""
    rng, level = np.random.default_rng(seed), seed % tables.LEVELS
    depth = np.where(rng.random(count) < 0.5, 0, level) + rng.random(count)
    return np.sqrt(rho) * rng.uniform(-9.0, 9.0, count), rho * tables.RATIO**-depth


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("y", [1, -1])
def test_polynomials_are_the_averages_of_the_rule(seed, y):
    rule = random_rule(seed)
    x, V0 = some_fields(seed, rule.rho)
    units = np.array([np.ones_like(V0), np.sqrt(V0), V0])
    found, exact = by_polynomials(rule, y, x, V0), np.array(rule.label_law(y, x, V0))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found * units, exact * units, atol=5e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "closed"),
    [
        (Custom(lambda nu: 0.1 + 0.8 * (nu > 0.5), kinks=(0.5,)), Sign(flip=0.1, threshold=-0.5)),
        (Custom(lambda nu: ndtr(nu / 0.3)), Sign(noise=0.09)),
        (
            Custom(lambda nu: 1.0 * ((nu > -0.5) & (nu < 1.0)), kinks=(-0.5, 1.0), rho=2.0),
            Steps((-0.5, 1.0), rho=2.0),
        ),
    ],
)
@pytest.mark.parametrize("y", [1, -1])
def test_polynomials_of_jumps_are_probits(rule, closed, y):
    x, V0 = some_fields(3, rule.rho)
    units = np.array([np.ones_like(V0), np.sqrt(V0), V0])
    found, exact = by_polynomials(rule, y, x, V0), np.array(closed.label_law(y, x, V0))
    np.testing.assert_allclose(found * units, exact * units, atol=1e-12)


@pytest.mark.slow
@needs_extension
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("seed", range(2))
def test_predictions_are_those_of_numpy(seed, loss, monkeypatch):
    rule = random_rule(seed)
    predicted(rule, loss=loss)  # tabulates the label law, which is not asked for again
    with monkeypatch.context() as without:
        without.delattr(Custom, "label_law")  # else NumPy might be compared with itself
        ours = predicted(rule, loss=loss)
    monkeypatch.setattr(compiled, "_extension", None)
    theirs = predicted(rule, loss=loss)
    for name in set(ours.data_vars) - set(CERTIFICATES):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-10, err_msg=name)


@needs_extension
def test_predictions_where_no_polynomial_will_do_are_those_of_numpy(monkeypatch):
    rule = Custom(expit)
    monkeypatch.setattr(tables, "MOST_CELLS", 0)
    monkeypatch.setattr(tables, "RESOLVED", 0.0)
    monkeypatch.setattr(tables, "FLOOR", 0.0)
    ours = predicted(rule)
    assert np.isnan(by_polynomials(rule, 1, np.zeros(1), np.ones(1))).all()
    monkeypatch.setattr(compiled, "_extension", None)
    theirs = predicted(rule)
    for name in set(ours.data_vars) - set(CERTIFICATES):  # Newton's steps are the kernel's still
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-12, err_msg=name)


@pytest.mark.slow
def test_what_is_almost_known_and_what_costs_too_much_is_left_to_numpy():
    rule = Custom(expit, rho=2.0)
    some = [points for points, _ in rule.compiled(1, np.array([2.0, 1e-9, 0.1, 0.0, np.nan]))]
    assert sorted(np.concatenate(some)) == [0, 2]
    costly = Custom(lambda nu: 0.5 + 0.45 * np.sin(10.0 * nu))
    assert not list(costly.compiled(1, np.ones(1)))


def test_tables_stay_at_home_when_a_rule_is_sent_elsewhere():
    rule = Custom(expit)
    before = len(pickle.dumps(rule))
    (_, law), *_ = rule.compiled(1, np.ones(1))
    assert law.law_polynomials.nbytes > before
    sent = pickle.dumps(rule)
    assert len(sent) < before + 1000
    (_, again), *_ = pickle.loads(sent).compiled(1, np.ones(1))
    np.testing.assert_array_equal(law.law_polynomials, again.law_polynomials)


@pytest.mark.slow
def test_threads_that_share_a_fresh_rule_give_the_same_bits():
    rule = Custom(expit)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: predicted(rule), range(8)))
    alone = predicted(Custom(expit))
    assert all(ds.drop_attrs().identical(alone.drop_attrs()) for ds in found)


def over_predictions(rule, y, cut, k, V0):
    """The same integral over the prediction, of the label law."""
    marks = rule.landmarks(y, V0) / k[:, None]
    edges = np.minimum(fanned((-43.0, -20.0, -9.0, -4.5, -1.5, 0.0, 4.5, 9.0), marks), cut[:, None])
    panels = Panels.between(edges, (20, 4))
    at = panels.row[:, None]
    return panels.sum(rule.label_law(y, k[at] * panels.nodes, V0[at])[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("y", [1, -1])
def test_part_of_a_label_below_a_cut_is_the_integral_over_predictions(seed, y):
    rule, rng = random_rule(seed), np.random.default_rng(seed)
    share = rng.uniform(0.02, 0.98, 12)
    k, V0, cut = np.sqrt(rule.rho * share), rule.rho * (1 - share), np.linspace(-20.0, 6.0, 12)
    found = rule.below(y, cut, k, V0)
    np.testing.assert_allclose(found, over_predictions(rule, y, cut, k, V0), rtol=1e-10)


@pytest.mark.parametrize("y", [1, -1])
def test_part_of_a_label_of_an_even_rule_below_a_cut_is_in_closed_form(y):
    """Of a rule that ignores the field, all of the normal law below the cut."""
    cut, k = np.array([-30.0, -3.0, 0.0, 2.0]), np.full(4, 1e-9)
    rule = Custom(lambda nu: np.where(np.abs(nu) < 1.0, 0.2, 0.9), kinks=(-1.0, 1.0))
    share = rule.label_marginals[0] if y > 0 else rule.label_marginals[1]
    np.testing.assert_allclose(rule.below(y, cut, k, np.ones(4)), share * ndtr(cut), rtol=1e-10)
