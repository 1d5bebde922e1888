"""What a notebook shows of objects: every value, and nothing of strangers but letters."""

import re
from html import escape

import numpy as np
import pytest

import hiddenmanifold as hm


def cells(html):
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[dh][^>]*>.*?</t[dh]>", html)]


def test_a_model_shows_its_ingredients_and_what_it_minimises():
    model = hm.Model(
        activation="erf", projection="dct", teacher="sign", loss="hinge", weights=(1.0, 5.0)
    )
    html = model._repr_html_()
    assert cells(html)[:4] == ["activation", "Erf()", "projection", "DCT()"]
    assert {"loss", "Hinge()", "intercept", "no", "weights"} <= set(cells(html))
    assert "sum over the n samples of weight times loss" in html


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    names = np.where(X[:, 0] + rng.standard_normal(120) > 0, "<script>", "plain")
    return hm.Data(X, names)


@pytest.mark.slow
def test_data_show_their_classes_and_say_whether_they_were_judged(data):
    fresh = hm.Data(data.X, data.y)
    assert "can be extrapolated" not in fresh._repr_html_()
    assert "diagnosis" not in vars(fresh)  # nothing is computed
    counts = dict(zip(data.classes, data.rows_of_classes, strict=True))
    assert data.usable
    html = data._repr_html_()
    assert "<script>" not in html and f"&lt;script&gt;: {counts['<script>']}" in html
    shown = cells(html)
    assert shown[shown.index("samples") + 1] == "120"
    assert shown[shown.index("can be extrapolated") + 1] == "yes"


@pytest.mark.slow
def test_a_plan_and_a_diagnosis_show_their_numbers_and_sentences(data):
    plan = hm.plan(data, target_gain=0.1)
    shown = cells(plan._repr_html_())
    assert shown[::3] == ["samples", "120", "240", "480", "960"]
    assert shown[1] == "misclassification rate"
    np.testing.assert_allclose(
        [float(text) for text in shown[4::3]], plan.curve.generalisation_error, rtol=5e-3
    )
    assert escape(plan.sentence) in plan._repr_html_()
    html = data.diagnosis._repr_html_()
    assert all(f.question in cells(html) for f in data.diagnosis)


def test_a_population_shows_what_was_given():
    population = hm.Population(outcome="continuous", r2=0.5, predictors=15)
    assert cells(population._repr_html_()) == ["outcome", "continuous", "predictors", "15"] + [
        *("r2", "0.5")
    ]
