"""Texts become views, views become addresses, sentences, programs and commands."""

import json
import os
import shlex
import time
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold import losses, teachers
from hiddenmanifold.cli import app
from hiddenmanifold.explorer import (
    compute,
    controls,
    exports,
    plots,
    sentence,
    served,
    server,
    stream,
    worker_pool,
)
from hiddenmanifold.explorer.adapt import adapted
from hiddenmanifold.explorer.layout import layout
from hiddenmanifold.explorer.parse import read
from hiddenmanifold.explorer.presets import PRESETS
from hiddenmanifold.explorer.view import holds, relevant, texts_of
from hiddenmanifold.parallel.processes import DeadlineError
from seeds import sampled


def view(query=""):
    reading = read(texts_of(query)[0])
    assert reading.view is not None, reading.complaints
    return reading.view


def pinned(query):
    return [view(pin) for pin in texts_of(query)[1]]


@pytest.mark.parametrize("preset", PRESETS, ids=[preset.title for preset in PRESETS])
def test_presets_are_views_whose_address_brings_them_back(preset):
    own = view(preset.query)
    assert view(own.query) == own
    assert len(pinned(preset.query)) == len(preset.pins)
    for pin in pinned(preset.query):
        assert plots.comparable(pin, own)
    told = plots.names([own, *pinned(preset.query)])
    assert len(set(told)) == len(told)


def test_every_figure_of_the_paper_has_a_preset():
    from hiddenmanifold import figures

    titles = [preset.title for preset in PRESETS]
    for number in figures.NUMBERS:
        assert any(title.startswith(f"Figure {number}") for title in titles)


def test_a_new_ingredient_appears_by_itself(monkeypatch):
    @dataclass(frozen=True)
    class Steep(losses.SmoothedHinge):
        delta: float = 0.25

    monkeypatch.setitem(losses.REGISTRY, "steep", Steep)
    controls.page_fields.cache_clear()
    try:
        assert "loss.steep.delta" in json.dumps(layout().to_plotly_json(), default=_plain)
        assert view("loss=steep").model.loss == Steep()
        assert view("loss=steep&loss.steep.delta=0.5").model.loss == Steep(0.5)
    finally:
        controls.page_fields.cache_clear()


def _plain(component):
    return component.to_plotly_json()


NUMBERS = [name for name, kind in teachers.REGISTRY.items() if kind.task == "regression"]


@pytest.mark.slow
@pytest.mark.parametrize("teacher", sampled(NUMBERS, NUMBERS[::2]))
def test_labels_that_are_numbers_are_drawn_with_every_loss_that_fits(teacher):
    milder = {"gamma": {"shape": 20, "slope": 0.3}, "log_normal": {"variance": 0.1, "slope": 0.3}}
    milder |= {name: {"slope": 0.5} for name in ("poisson", "negative_binomial")}
    chosen = [f"&teacher.{teacher}.{key}={value}" for key, value in milder.get(teacher, {}).items()]
    drawn = []
    for loss in losses.REGISTRY:
        query = f"points=2&low=0.3&high=2&regularisation=1&teacher={teacher}&loss={loss}"
        reading = read(texts_of(query + "".join(chosen))[0])
        if reading.view is None:
            assert list(reading.complaints) == ["loss"]
            assert ". These fit: " in reading.complaints["loss"]
            continue
        figure = plots.figure(reading.view)
        assert np.isfinite(figure["data"][0]["y"]).all(), loss
        assert figure["layout"]["yaxis"]["title"]["text"].startswith("mean square error")
        beside = plots.references(reading.view)
        assert beside["data"] == []
        assert len(beside["shapes"]) == (loss == "square")  # as many features as samples
        drawn.append(loss)
    assert {"square", "huber", "quantile", "expectile", "insensitive", "log_cosh"} <= {*drawn}
    assert (teacher in drawn) == (teacher in losses.REGISTRY)


def test_every_function_that_is_offered_makes_labels():
    for name in NUMBERS:
        for field in controls.parameters("teacher", name):
            for choice in field.options or ():
                reading = read(texts_of(f"teacher={name}&loss=square&{field.name}={choice}")[0])
                assert reading.view is not None, reading.complaints


def test_noise_is_a_variance_or_a_law():
    assert view("teacher=linear&loss=square&teacher.linear.noise=0.5").model.teacher.noise == 0.5
    law = view("teacher=linear&loss=absolute&teacher.linear.noise=student(3,2)").model.teacher.law
    assert law == hm.noises.Student(3.0, 2.0)


def test_an_axis_says_what_the_error_is():
    def title(query):
        return plots.figure(view(query))["layout"]["yaxis"]["title"]["text"]

    assert title("points=2").startswith("misclassification rate")
    assert title("points=2&prediction=identity").startswith("mean square error")
    assert title("points=2&teacher=linear&loss=square").startswith("mean square error")
    assert title("points=2&quantity=training_loss").startswith("training loss")


def test_lines_that_numbers_do_not_have_are_not_offered():
    classes, numbers = (relevant(texts_of(query)[0]) for query in ("", "teacher=poisson"))
    assert classes - numbers >= {"threshold", "bayes"}
    assert "bayes" in relevant(texts_of("teacher=linear")[0])
    assert not view("teacher=poisson&loss=poisson&threshold=yes&bayes=yes").lines


@pytest.mark.slow
def test_a_curve_that_takes_long_has_few_points_and_says_so():
    slow = view("teacher=poisson&loss=poisson&teacher.poisson.slope=0.5&regularisation=1")
    assert slow.slow
    assert slow.x.count < view("teacher=poisson&loss=square").x.count
    assert not view("teacher=poisson&loss=square").slow
    assert "32 points, because each takes long" in sentence.sentence(slow)


@pytest.mark.slow
def test_a_curve_that_is_a_spike_says_how_to_see_the_rest():
    query = "teacher=poisson&loss=poisson&low=0.5&high=2&points=4"
    spike, rest = sentence.sentence(view(query)), "choose a larger λ or a logarithmic vertical axis"
    assert "peaks near" in spike and rest in spike
    assert rest not in sentence.sentence(view(f"{query}&log_y=yes"))


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ("n_over_d=0", "n_over_d", "a number from 0.0001 to 10000"),
        ("n_over_d=nan", "n_over_d", "a number from"),
        ("n_over_d=1_0", "n_over_d", "a number from"),
        ("regularisation=-1", "regularisation", "0⁺, optimal, or a number"),
        ("regularisation=best", "regularisation", "0⁺, optimal, or a number"),
        ("points=401", "points", "from 2 to 400"),
        ("mode=map&points=61&y=n_over_d", "points", "from 2 to 60"),
        ("regularisation=optimal&points=101", "points", "from 2 to 100"),
        ("low=3&high=2", "high", "above 3"),
        ("d=401", "d", "from 8 to 400"),
        ("seeds=51", "seeds", "from 2 to 50"),
        ("dots=21", "dots", "from 2 to 20"),
        ("activation=cube", "activation", "one of sign"),
        ("teacher=linear", "loss", "do not fit together"),
        ("teacher.sign.noise=-1", "teacher.sign.noise", "at least 0"),
        ("teacher.sign.noise=x", "teacher.sign.noise", "a number"),
        ("teacher=linear&loss=square&quantity=training_error", "quantity", "that are numbers"),
        ("loss=poisson", "loss", "These fit: square, logistic, hinge"),
        ("teacher=poisson&loss=gamma", "loss", "does not allow the label 0"),
        ("teacher=poisson&loss=logistic", "loss", "These fit: square, huber"),
        ("teacher=binomial&teacher.binomial.trials=4&loss=binomial", "loss", "allow the label 2"),
        (
            "teacher=binomial&teacher.binomial.trials=1.5&loss=square",
            "teacher.binomial.trials",
            "a whole number from 1",
        ),
        ("teacher=real&loss=square&teacher.real.function=exp2", "teacher.real.function", "one of"),
        (
            "teacher=real&loss=square&teacher.real.noise=laplase(1)",
            "teacher.real.noise",
            "did you mean 'laplace'",
        ),
        ("teacher=ordered&loss=square&teacher.ordered.cuts=0;1", "teacher.ordered.cuts", "commas"),
        ("teacher=ordered&loss=square&teacher.ordered.cuts=1,0", "teacher.ordered.cuts", "incr"),
        ("teacher=poisson&loss=poisson&points=101", "points", "from 2 to 100"),
        ("teacher=poisson&loss=poisson&points=31&regularisation=optimal", "points", "2 to 30"),
        ("prediction=sine", "prediction", "one of usual"),
        ("mode=map&x=p_over_n&y=n_over_p", "y", "does not follow from p/n"),
        ("quantity=peak", "quantity", "unless curves over n/d or d/p are shown"),
        ("quantity=peak&mode=map&x=n_over_d&y=p_over_n", "quantity", "unless curves"),
        ("quantity=peak&x=n_over_d&regularisation=optimal", "regularisation", "0⁺ or a number"),
        ("quantity=peak&x=n_over_d&points=61", "points", "from 2 to 60"),
    ],
)
def test_what_is_not_allowed_is_said_of_its_field(query, field, allowed):
    reading = read(texts_of(query)[0])
    assert reading.view is None
    assert list(reading.complaints) == [field]
    assert allowed in reading.complaints[field]


def test_an_address_from_anywhere_makes_no_trouble():
    texts, pins = texts_of("?a=b&&=&x&n_over_d=" + 1000 * "9" + 20 * "&pin=%00%ff" + "&loss=<b>")
    assert len(pins) == 8
    assert read(texts).view is None
    assert all(read(texts_of(pin)[0]).view is not None for pin in pins)  # the usual view


def test_what_is_held_fits_the_axes():
    assert holds("p_over_n", None) == ["n_over_d", "d_over_p"]
    assert holds("n_over_p", "d_over_p") == [""]
    assert holds("p_over_n", "n_over_p") == []
    assert holds("regularisation", "n_over_d") == ["p_over_n", "d_over_p"]
    assert all(len(both.split(",")) == 2 for both in holds("regularisation", None))


def test_kernels_vary_along_one_ratio_and_the_penalty():
    assert holds("n_over_d", None, kernel=True) == [""]
    assert holds("regularisation", None, kernel=True) == ["n_over_d"]
    assert holds("n_over_d", "regularisation", kernel=True) == [""]
    assert holds("p_over_n", None, kernel=True) == []
    own = view("features=rbf&features.rbf.scale=0.5&x=n_over_d")
    assert own.model.features.function == hm.kernels.RBF(0.5)
    assert own.held == ()
    assert {"activation", "projection", "threshold", "kernel", "n_over_d"}.isdisjoint(
        relevant(texts_of(own.query)[0])
    )
    for query, field in (
        ("features=rbf", "x"),
        ("features=rbf&x=n_over_d&mode=map&y=p_over_n", "y"),
        ("features=rbf&x=n_over_d&quantity=peak", "quantity"),
        ("features=rbf&x=n_over_d&features.rbf.scale=0", "features.rbf.scale"),
        ("features=polynomial&features.polynomial.offset=0&x=n_over_d&teacher.sign.threshold=1"
         "&features.polynomial.degree=2", "loss"),
    ):  # fmt: skip
        assert field in read(texts_of(query)[0]).complaints
    assert set(controls.FEATURES) == {controls.RANDOM, *hm.kernels.REGISTRY}
    assert "without a peak" in sentence.sentence(view("features=laplace&x=n_over_d&points=6"))


@pytest.mark.parametrize(
    ("x", "held"),
    [("p_over_n", "n_over_d"), ("n_over_p", "d_over_p"), ("n_over_d", "p_over_n"),
     ("d_over_p", "p_over_n"), ("n_over_d", "d_over_p")],
)  # fmt: skip
def test_the_threshold_is_where_labels_can_just_be_fitted_whatever_the_axis(x, held):
    value = {"n_over_d": 3.0, "d_over_p": 0.9, "p_over_n": 0.4}[held]
    one = view(f"x={x}&hold={held}&{held}={value}&low=0.01&high=50")
    place = compute.separable_from(one)
    # beyond the threshold the training error at vanishing λ is zero, before it is not
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    sides = [
        float(hm.predict(model, **{x: place * by, held: value}, regularisation=0).training_error)
        for by in (0.98, 1.02)
    ]
    assert min(sides) < 1e-9
    assert max(sides) > 1e-4


@pytest.mark.parametrize(("high", "anchor"), [(5, "left"), (0.4, "right")])
def test_words_at_the_threshold_stay_within_the_axes(high, anchor):
    (note,) = plots.references(view(f"points=9&low=0.05&high={high}"))["annotations"]
    assert note["text"].strip() == "separable: p/n = 0.368"
    assert note["xanchor"] == anchor


@pytest.mark.slow
def test_sentences_say_what_is_seen():
    assert sentence.sentence(view("points=30&regularisation=0")).startswith(
        "The error peaks at p/n = 0.368, where the data become separable; the optimal λ (0.3"
    )
    hidden = sentence.sentence(view("points=30&regularisation=0.1"))
    assert "without a peak. As λ → 0⁺ the error peaks at p/n = 0.368" in hidden
    figure_1 = next(one for one in PRESETS if one.title.startswith("Figure 1"))
    faint = sentence.sentence(view(figure_1.query))  # the low bump of Figure 1 is a peak
    assert faint.startswith("The error peaks at p/n = 0.37")
    ridge = sentence.sentence(view("points=60&loss=square"))
    assert "where there are as many features as samples" in ridge
    least = sentence.sentence(view("x=regularisation&low=1e-4&high=10&loss=square&points=20"))
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    best = hm.predict(model, n_over_d=3.0, p_over_n=0.5, regularisation="optimal")
    error, lam = float(best.generalisation_error), float(best.optimal_regularisation)
    assert least.startswith(f"The smallest error is {error:.3g}, at λ = {lam:.3g}; as λ → 0⁺")
    heat = sentence.sentence(view("mode=map&y=n_over_d&loss=square&points=6"))
    assert heat.startswith("The smallest test error is")
    moved = sentence.sentence(
        view("quantity=peak&x=n_over_d&low=1&high=3&points=2&regularisation=0")
    )
    places = hm.separability_threshold(
        model, n_over_d=[1.0, 3.0]
    ).p_over_n.values  # where it is at 0⁺
    logistic = [f"{place:.3g} at n/d = {x}" for place, x in zip(places, (1, 3), strict=True)]
    assert moved == f"The peak position falls from {' to '.join(logistic)}."


def test_a_peak_stands_above_both_sides():
    assert sentence.peak(np.array([3.0, 2.0, 2.5, 1.0])) == 2
    assert sentence.peak(np.array([3.0, 2.0, 2.001, 1.0])) is None
    assert sentence.peak(np.array([3.0, np.nan, 2.0, 1.0])) is None
    assert sentence.peak(np.array([1.0, 2.0, 3.0])) is None


VIEWS = (
    "points=7&teacher.sign.noise=0.2&kernel=yes&bayes=yes&intercept=yes&"
    "pin=loss%3Dhuber%26loss.huber.delta%3D0.5%26points%3D7",
    "points=5&x=n_over_p&hold=d_over_p&regularisation=optimal&loss=square&activation=erf&kernel=yes",
    "points=5&x=regularisation&low=1e-3&high=10&log_x=no&teacher=logistic&kernel=yes&bayes=yes",
    "points=4&mode=map&x=n_over_d&y=p_over_n&y_low=0.2&y_high=2",
    "points=4&x=d_over_p&hold=p_over_n&regularisation=0&quantity=overlaps&loss=hinge",
    "points=2&x=n_over_d&quantity=peak&loss=square&high=2",
    "points=2&teacher=poisson&teacher.poisson.rate=softplus&teacher.poisson.slope=0.5&loss=poisson&"
    "prediction=identity&regularisation=0.5&kernel=yes&pin=teacher%3Dreal%26loss%3Dhuber%26"
    "teacher.real.function%3Drelu%26teacher.real.noise%3Dstudent(3%2C1)%26points%3D2",
    "points=2&teacher=ordered&teacher.ordered.values=0,1,3&teacher.ordered.cuts=-1,1&loss=expectile&"
    "loss.expectile.level=0.7&regularisation=0.5",
    "points=4&features=ntk&features.ntk.activation=tanh&features.ntk.hidden_layers=3&x=n_over_d&"
    "loss=hinge&bayes=yes&pin=features%3Drbf%26features.rbf.scale%3D0.5%26x%3Dn_over_d%26points%3D4",
    "points=4&features=polynomial&features.polynomial.degree=2&x=regularisation&low=1e-3&high=10&"
    "quantity=overlaps&teacher=linear&loss=square",
    "points=2&features=nngp&mode=map&x=n_over_d&y=regularisation&y_low=1e-3&y_high=1",
    "points=2&teacher=binomial&teacher.binomial.trials=3&loss=binomial&loss.binomial.trials=3&"
    "regularisation=0.5",
    "points=3&teacher=classes&teacher.classes.K=4&loss=hinge&regularisation=0.5",
    "points=3&teacher=argmax&loss=square&regularisation=0.5",
)


@pytest.mark.slow
@pytest.mark.parametrize("query", VIEWS)
def test_program_and_commands_reproduce_what_is_drawn(query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, pins = view(query), pinned(query)
    dots = own.simulable and own.lam != 0.0
    names = {}
    small = read({**texts_of(query)[0], "d": "16", "seeds": "2", "dots": "2"}).view
    exec(exports.python(small, pins, dots=dots), names)
    shown = plots.figure(own, pins)["data"]
    quantity = plots.quantities(own)[0]
    ran = names["ds"][quantity]
    if own.y is not None:
        np.testing.assert_allclose(ran.transpose(own.y.name, own.x.name), shown[0]["z"])
    else:
        np.testing.assert_allclose(ran, shown[0]["y"], rtol=1e-9)
        assert (tmp_path / "view.png").stat().st_size > 1000
    if pins:
        np.testing.assert_allclose(names["ds_1"][quantity], shown[1]["y"], rtol=1e-9)
    lines = {line["name"]: line["y"] for line in plots.references(own)["data"]}
    if own.quantity == "peak":
        np.testing.assert_allclose(
            names["threshold"].p_over_n, lines["data become separable"], rtol=1e-9
        )
    for variable, name in (("kernel_limit", "p → ∞"), ("bayes", "Bayes-optimal")):
        assert (variable in names) == (name in lines)
        if variable in names:
            limit = np.broadcast_to(names[variable][quantity], len(lines[name]))
            np.testing.assert_allclose(limit, lines[name], rtol=1e-9)
    _check_commands(exports.commands(small, pins, dots=dots), names, quantity)


def _check_commands(text, names, quantity):
    for line in text.splitlines():
        program, *words_ = shlex.split(line)
        assert program == "hiddenmanifold"
        done = CliRunner().invoke(app, [*words_, "--workers", "1"])
        assert done.exit_code == 0, done.output
    for file, variable in (("view.csv", "ds"), ("view_1.csv", "ds_1"), ("dots.csv", "dots")):
        if variable in names:
            table = np.genfromtxt(file, delimiter=",", names=True, usemask=False)
            np.testing.assert_allclose(table[quantity], names[variable][quantity].values.ravel())


SEVERAL = {
    "quantity=members&loss=square&regularisation=0.1": {"members": 1.0},
    "quantity=members&independent=bootstrap&loss=square&regularisation=0.1": {"members": 1.0},
    "quantity=bias_variance&loss=square&teacher=linear&teacher.linear.noise=0.3": {},
    "quantity=time&loss=square&time=1e5": {"time": 1e5},
    "quantity=classes&teacher=classes&loss=square&teacher.classes.priors=0.5,0.3,0.2": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("query", SEVERAL)
def test_answers_of_several_lines_are_those_of_program_and_commands(query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, names = view(f"points=3&{query}"), {}
    exec(exports.python(own), names)
    first, *_ = shown = plots.figure(own)["data"]
    quantity = "generalisation_error"
    if own.quantity == "bias_variance":
        quantity = "irreducible_error"
        stack = [one["y"] for one in shown if "stackgroup" in one]
        np.testing.assert_allclose(np.sum(stack, axis=0), names["ds"].mean_square_error, rtol=1e-9)
    expected = names["ds"][quantity].sel(
        SEVERAL[query], method="nearest" if SEVERAL[query] else None
    )
    np.testing.assert_allclose(first["y"], expected, rtol=1e-9)
    assert (tmp_path / "view.png").stat().st_size > 1000
    for line in exports.commands(own).splitlines():
        done = CliRunner().invoke(app, [*shlex.split(line)[1:], "--workers", "1"])
        assert done.exit_code == 0, done.output
    assert not plots.comparable(own, own)
    assert sentence.sentence(own).startswith(("At ", "The peak grows"))


@pytest.mark.slow
def test_of_normal_classes_a_loss_for_two_is_fitted_to_each_against_the_others():
    own = view(
        "quantity=classes&teacher=classes&teacher.classes.priors=0.5,0.3,0.2&points=2&"
        "loss=squared_hinge&regularisation=1&intercept=yes"
    )
    assert own.model.scheme == "one-vs-rest"
    assert view("teacher=classes&loss=square").model.scheme is None
    said = sentence.sentence(own)
    assert "for samples of class 2, 20% of all, which are taken most often for class 0" in said
    assert said.endswith(" Each class is fitted against the others.")
    given = {"n_over_d": 3.0, "p_over_n": own.x.values, "regularisation": 1.0}
    confusion = hm.predict(own.model, **given).confusion.values[-1, 2]
    rare = next(one for one in plots.figure(own)["data"] if one["name"].startswith("class 2"))
    taken = [f"taken for class {j}: {confusion[j]:.1%}" for j in (0, 1)]
    assert rare["text"][-1] == "<br>".join(taken)


def test_a_sentence_names_the_overlap_that_it_describes():
    said = sentence.sentence(view("quantity=overlaps&points=3&loss=square"))
    assert said.startswith("The alignment rises from ")
    falls = sentence.sentence(view("quantity=training_error&points=5&loss=square&high=9"))
    assert "to 0 at p/n" in falls
    assert "minimum" not in falls


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ("quantity=time", "loss", "square: only its training"),
        ("quantity=time&loss=square&features=rbf&x=n_over_d", "quantity", "finitely many"),
        ("quantity=members&regularisation=optimal", "regularisation", "0⁺ or a number"),
        ("quantity=members&mode=map", "mode", "curves"),
        ("quantity=bias_variance&teacher=classes&loss=square", "quantity", "several classes"),
        ("quantity=classes", "teacher", "classes"),
        ("teacher=classes&loss=square&regularisation=optimal", "regularisation", "a number"),
        (
            "teacher=classes&loss=square&teacher.classes.priors=1,x",
            "teacher.classes.priors",
            "comma",
        ),
        ("teacher=classes&loss=square&teacher.classes.K=1", "teacher.classes.K", "from 2 to 50"),
        ("teacher=classes&loss=poisson", "loss", "These fit: square, logistic, hinge"),
        ("teacher=argmax", "loss", "classification. These fit: square, softmax"),
        ("quantity=time&loss=square&time=0", "time", "from 0.1 to 100000"),
    ],
)
def test_questions_that_cannot_be_asked_of_a_model_are_told(query, field, allowed):
    reading = read(texts_of(query)[0])
    assert allowed in reading.complaints[field]


def test_a_choice_takes_along_what_does_not_suit_it():
    def chosen(name, query, **others):
        texts, _ = texts_of(query)
        return adapted({**texts, name: others.pop(name)}, [name])

    assert chosen("quantity", "", quantity="time")["loss"] == "square"
    assert (
        chosen("quantity", "regularisation=optimal", quantity="members")["regularisation"] == "1e-4"
    )
    classes = chosen("quantity", "", quantity="classes")
    assert (classes["teacher"], classes["loss"]) == ("classes", "logistic")
    fields = chosen("quantity", "teacher=argmax", quantity="classes")
    assert (fields["teacher"], fields["loss"]) == ("argmax", "square")
    back = chosen("quantity", "teacher=classes&loss=square", quantity="time")
    assert read(back).view is not None
    assert chosen("teacher", "", teacher="poisson")["loss"] == "square"
    kernel = chosen("features", "quantity=time&loss=square", features="ntk")
    assert (kernel["quantity"], kernel["x"]) == ("generalisation_error", "n_over_d")
    assert chosen("x", "", x="regularisation")["low"] == "1e-6"
    for question in controls.QUANTITIES:
        assert read(chosen("quantity", "", quantity=question)).view is not None, question


def test_curves_have_more_points_where_they_bend():
    narrow = "loss=square&teacher=linear&regularisation=1e-6"
    (curve,) = (one for one in plots.figure(view(narrow))["data"])
    assert len(curve["x"]) > 205
    assert curve["x"] == sorted(set(curve["x"]))
    added = set(curve["x"]) - set(view(narrow).x.values.tolist())
    assert all(0.5 < x < 2.0 for x in added)  # at the peak
    (asked,) = (one for one in plots.figure(view(f"{narrow}&points=30"))["data"])
    assert len(asked["x"]) == 30


def test_every_field_is_explained_in_words():
    known = controls.page_fields()
    symbols = {"regularisation", "time", "loss", "threshold", *controls.HELD}
    for name in symbols | {name for name in known if "." in name}:
        assert len(known[name].about) > 8, name
    assert not any(
        mark in field.about for field in known.values() for mark in ("\\", "`", ":math:")
    )


def told(lines):
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.slow
def test_events_of_a_simulation_are_those_of_compare():
    query = "dots=3&d=16&seeds=3&regularisation=0.1&high=2"
    events = told(stream.simulate(query))
    assert events[0] == {"setting": view(query).setting, "of": 3}
    assert events[-1] == {"end": True}
    points = [event for event in events if "values" in event]
    assert [event["done"] for event in points] == [1, 2, 3]
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    given = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.05, 2.0, 3), "regularisation": 0.1}
    ds = hm.compare(model, **given, d=16, seeds=3)
    for name in ("generalisation_error", "generalisation_error_stderr", "training_loss", "q_w"):
        found = [point["values"][name] for point in points]
        np.testing.assert_allclose(found, ds[name], rtol=1e-12)


def test_a_closed_stream_stops_and_budgets_are_told():
    events = stream.simulate("dots=20&d=16&seeds=2")
    next(events)
    assert len(stream.running) == 1
    events.close()
    assert not stream.running
    (limit,) = {e.get("reason") for e in told(stream.simulate("regularisation=0&dots=2"))} - {None}
    assert "regularisation = 0.0 is not allowed" in limit
    large = told(stream.simulate("d=400&high=50&low=49&dots=2"))
    assert any("beyond the budget of 3000" in event.get("reason", "") for event in large)
    assert "only curves" in next(stream.simulate("mode=map"))
    busy = [stream.simulate("dots=2") for _ in range(stream.AT_ONCE + 1)]
    assert "under way" in [next(events) for events in busy][-1]
    for events in busy:
        events.close()


@pytest.mark.slow
def test_work_that_takes_too_long_is_ended():
    with pytest.raises(DeadlineError, match="ended after 0.5 seconds"):
        list(worker_pool.elsewhere(time.sleep, 600, seconds=0.5))
    assert worker_pool.busy() == 0
    worker_pool.dismiss()


@pytest.mark.slow
def test_work_that_nobody_waits_for_is_ended(tmp_path):
    path = tmp_path / "pid"

    def asleep():
        path.write_text(str(os.getpid()))
        time.sleep(600)

    lines = worker_pool.elsewhere(asleep)
    while not (path.exists() and path.read_text()):
        assert next(lines) is None  # a sign of life
    lines.close()
    assert worker_pool.busy() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)
    assert worker_pool.waited(abs, -3) == 3  # another takes its place
    with pytest.raises(TypeError, match="bad operand"):
        worker_pool.waited(abs, "x")
    with pytest.raises(hm.LostWorkerError, match="has died"):
        worker_pool.waited(os._exit, 1)
    worker_pool.dismiss()


@pytest.mark.slow
def test_a_port_in_use_is_refused_in_a_sentence():
    with served() as address:
        port = int(address.split(":")[2].strip("/"))
        taken = f"port {port} of .* cannot be used, another program has it: .* 0 finds a free one"
        with pytest.raises(hm.InvalidArgumentError, match=taken):
            server.listening("127.0.0.1", port)
    with pytest.raises(hm.InvalidArgumentError, match="give as host an address of this machine"):
        server.listening("192.0.2.1", 0, token="word")  # an address that no machine has
