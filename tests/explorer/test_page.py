"""The page as its readers use it, in a real browser."""

import csv
import io
import time

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold.explorer import stream, worker_pool

pytestmark = pytest.mark.slow
GRAPH = "document.querySelector('#graph .js-plotly-plot').data"
DOTS = f"({GRAPH}.find(t => t.name === 'simulation') || {{x: []}})"


def predicted(x, teacher="sign", loss="logistic", **others):
    model = hm.Model(activation="sign", projection="gaussian", teacher=teacher, loss=loss)
    given = {"n_over_d": 3.0, "regularisation": 1e-4, **others}
    return hm.predict(model, p_over_n=x, **given, workers=1).generalisation_error.values


def test_what_is_drawn_is_what_the_library_predicts_and_a_sentence_says_it(watched):
    page = watched.show("loss=square&points=41")
    (curve,) = page.traces()
    np.testing.assert_allclose(curve["y"], predicted(curve["x"], loss="square"), rtol=1e-9)
    page.until(
        "document.querySelector('#sentence').innerText"
        ".startsWith('The error peaks at p/n = 0.999, where')"
    )
    said = page.page.inner_text("#sentence")
    assert "as many features as samples" in said
    assert "removes the peak" in said
    page.until("document.querySelector('#graph .annotation-text') !== null")
    marked = page.page.text_content("#graph .annotation-text")
    assert "interpolation: p = n" in marked


def test_curves_follow_sliders_by_key_and_what_is_typed(watched):
    page = watched.show("points=20")
    x = page.traces()[0]["x"]
    page.slider("n_over_d").focus()
    moved = page.after(lambda: page.page.keyboard.press("End"))
    assert page.field("n_over_d").input_value() == "100"
    np.testing.assert_allclose(moved, predicted(x, n_over_d=100.0), rtol=1e-9)
    page.until("location.search.includes('n_over_d=100')")  # and the address follows
    typed = page.after(lambda: page.type("n_over_d", "2"))
    np.testing.assert_allclose(typed, predicted(x, n_over_d=2.0), rtol=1e-9)
    page.until(f"Math.abs({_value('n_over_d')} - 0.3) < 0.01")  # so does the slider
    limit = page.after(lambda: page.page.get_by_role("button", name="0⁺").click())
    np.testing.assert_allclose(limit, predicted(x, n_over_d=2.0, regularisation=0.0), rtol=1e-9)


def _value(name):
    return f"document.querySelector('.slider[data-field=\"{name}\"] input').value"


def test_ingredients_and_their_parameters(watched):
    page = watched.show("points=10")
    x = page.traces()[0]["x"]
    page.page.get_by_text("parameters of the teacher").click()
    noisy = page.after(lambda: page.type("teacher.sign.noise", "0.5"))
    np.testing.assert_allclose(noisy, predicted(x, hm.teachers.Sign(noise=0.5)), rtol=1e-9)
    assert not page.field("loss.huber.delta").is_visible()
    square = page.after(lambda: page.choose("loss", "square"))
    expected = predicted(x, hm.teachers.Sign(noise=0.5), "square")
    np.testing.assert_allclose(square, expected, rtol=1e-9)
    page.choose("loss", "smoothed hinge")
    page.page.get_by_text("parameters of the loss").click()
    page.field("loss.smoothed_hinge.delta").wait_for(state="visible")


def test_an_address_brings_the_view_back_with_its_pinned_curves(watched):
    page = watched.show("points=10&loss=square&log_y=yes&regularisation=0.1")
    page.page.get_by_role("button", name="Pin this curve").click()
    page.until("document.querySelectorAll('.chip').length === 1")
    page.after(lambda: page.type("regularisation", "1"))
    page.until("location.search.includes('pin=') && location.search.includes('regularisation=1&')")
    shown, link = page.traces(), page.page.url
    assert [trace["name"] for trace in shown] == ["λ = 1", "λ = 0.1"]
    page.open(link.partition("?")[2])
    page.until("document.querySelectorAll('.chip').length === 1")
    assert page.traces()[: len(shown)] == shown
    assert page.page.url == link
    page.page.locator(".chip").click()
    page.until("!location.search.includes('pin=')")


def test_a_preset_a_heat_map_and_its_line(watched):
    page = watched.show("points=10&loss=square")
    before = page.page.url
    page.page.get_by_text("Presets", exact=True).click()
    page.page.get_by_role("link", name="Figure 3").click()
    page.until(f"{GRAPH}[0].type === 'heatmap' && {GRAPH}.length === 2")
    heat, line = page.traces()
    assert np.shape(heat["z"]) == (40, 40)
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    at = {"n_over_d": heat["x"][30], "p_over_n": heat["y"][5], "regularisation": 1e-4}
    expected = float(hm.predict(model, **at).generalisation_error)
    assert heat["z"][5][30] == pytest.approx(expected, rel=1e-9)
    found = hm.separability_threshold(model, n_over_d=line["x"][::10]).p_over_n
    np.testing.assert_allclose(found, line["y"][::10], rtol=1e-9)
    assert not page.page.locator("#simulate").is_visible()
    page.page.go_back()  # undoes a preset
    page.until(f"{GRAPH}[0].type === 'scatter'")
    page.until(f"location.href === '{before}'")


def test_the_tab_of_the_peak_chooses_an_axis_that_suits_it(watched):
    page = watched.show("points=3&loss=square")
    page.page.get_by_text("peak position", exact=True).click()
    page.until(
        "location.search.includes('quantity=peak') && location.search.includes('x=n_over_d')"
    )
    page.until(f"{GRAPH}.length === 2")
    peak, line = page.traces()
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    found = hm.interpolation_peak(model, n_over_d=peak["x"], regularisation=1e-4)
    np.testing.assert_allclose(found.p_over_n, peak["y"], rtol=1e-9)
    found = hm.separability_threshold(model, n_over_d=line["x"])
    np.testing.assert_allclose(found.p_over_n, line["y"])


def test_what_makes_no_sense_is_answered_beside_the_field(watched):
    page = watched.show("points=10")
    shown = page.curve()
    wrong = {
        "n_over_d": ("-3", "must be a number from 0.0001 to 10000"),
        "regularisation": ("__import__('os')", "must be 0⁺, optimal, or a number from"),
        "points": ("100000", "must be a whole number from 2 to 400 or automatic"),
        "teacher.sign.flip": ("0.7", "must be a finite number of at least 0 and at most 0.5"),
    }
    page.page.get_by_text("Lines and points").click()
    page.page.get_by_text("parameters of the teacher").click()
    for name, (text, _) in wrong.items():
        page.type(name, text)
    rows = {n: page.page.locator(f'.typed[data-field="{n}"]').locator("xpath=..") for n in wrong}
    for name, (_, answer) in wrong.items():
        rows[name].locator(".error").get_by_text(answer).wait_for()
    assert page.curve() == shown  # the last view that made sense stays
    page.show("points=9")
    for row in rows.values():
        row.locator(".error").wait_for(state="hidden")


def test_points_that_failed_are_gaps_with_their_reason(watched):
    page = watched.show("loss=square&regularisation=0&low=0.5&high=1.5&points=11&log_x=no")
    curve, crosses = page.traces()[:2]
    assert crosses["name"] == "no value"
    assert [y is None for y in curve["y"]] == [x in crosses["x"] for x in curve["x"]]
    reasons = page.page.evaluate(f"{GRAPH}.find(t => t.name === 'no value').text")
    assert crosses["x"] == [1.0]
    assert "exactly at the threshold" in reasons[0].replace("<br>", " ")


def test_dots_stream_in_can_be_cancelled_and_do_not_block(watched):
    page = watched.show("loss=square&points=20&dots=20&d=120&seeds=25&regularisation=0.1&high=2")
    page.page.get_by_role("button", name="Simulate").click()
    page.until(f"{DOTS}.x.length >= 2")
    assert stream.running
    page.after(lambda: page.type("n_over_d", "2"))  # the dots are those of another setting
    assert page.page.evaluate(f"{DOTS}.x.length") == 0
    page.after(lambda: page.type("n_over_d", "3"))
    page.until(f"{DOTS}.x.length >= 2")
    page.page.get_by_role("button", name="Cancel").click()
    page.until("document.querySelector('#told').innerText.startsWith('cancelled after')")
    assert page.page.evaluate(f"{DOTS}.x.length") < 20
    _wait_until_nothing_runs()


def _wait_until_nothing_runs():
    end = time.monotonic() + 60
    while (stream.running or worker_pool.busy()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not stream.running
    assert not worker_pool.busy()


def test_exports_of_the_page(watched):
    page = watched.show("points=5&dots=2&seeds=2&d=20&regularisation=0.1&high=2")
    page.page.get_by_role("button", name="Simulate").click()
    page.until("document.querySelector('#told').innerText.startsWith('done: 2 points')")
    page.page.get_by_text("Export", exact=True).click()
    page.until("document.querySelector('#python').innerText.includes('hm.compare')")
    names = {}
    exec(page.page.inner_text("#python").rpartition("hm.plot")[0], names)
    np.testing.assert_allclose(names["ds"].generalisation_error, page.curve(), rtol=1e-9)
    simulated = next(trace for trace in page.traces() if trace["name"] == "simulation")
    np.testing.assert_allclose(names["dots"].generalisation_error, simulated["y"], rtol=1e-9)
    table = list(csv.DictReader(io.StringIO(_saved(page, "CSV").decode())))
    assert [float(row["generalisation_error"]) for row in table[:5]] == page.curve()
    assert [row["curve"] for row in table[5:]] == ["simulation"] * 2
    assert _saved(page, "PNG").startswith(b"\x89PNG")
    assert b"<svg" in _saved(page, "SVG")


def _saved(page, name):
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name=name, exact=True).click()
    return download.value.path().read_bytes()


def test_a_file_is_learned_from(watched):
    page = watched.show("points=10&loss=huber&loss.huber.delta=0.5")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    file = io.BytesIO()
    np.savez(file, X=X, y=X.sum(1) + rng.standard_normal(120))
    page.go("Your data")
    upload = page.page.locator("#upload input")
    said = "document.querySelector('#learning-told').innerText"
    upload.set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"?"})
    page.until(f"{said}.includes('it must end in .csv or .npy or .npz')")
    assert "400 (BAD REQUEST)" in page.complaints.pop()  # of the browser
    grades = "a,y\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(60))
    upload.set_input_files({"name": "a.csv", "mimeType": "", "buffer": grades.encode()})
    page.until(f"{said}.includes('task cannot be guessed')")
    page.choose("task", "classification")
    page.until("document.querySelector('#learning-report').textContent.includes('5 classes')")
    page.choose("task", "regression")
    upload.set_input_files({"name": "a.npz", "mimeType": "", "buffer": file.getvalue()})
    page.until("document.querySelector('#learning-report').textContent.includes('lower by 10 %')")
    graph = "document.querySelector('#learning-graph .js-plotly-plot').data"
    page.until(f"{graph}.some(trace => trace.name === 'measured, leave-one-out')")
    assert page.page.evaluate(f"{graph}[2].x.length") == 25
    assert page.page.inner_text("#learning-sentence").startswith("With twice the rows the mean ")
    page.page.locator("#area-data summary", has_text="The whole report").click()
    assert "120 samples of 3 features" in page.page.inner_text("#learning-report")
    number = page.page.inner_text("#learning-number")
    assert number.endswith("%") and f"({number})" in page.page.inner_text("#learning-sentence")
    with page.page.expect_download() as saved:
        page.page.get_by_role("button", name="Save this report").click()
    text = saved.value.path().read_text(encoding="utf-8")
    assert page.page.inner_text("#learning-sentence") in text.replace("\xa0", " ")
    page.check_both_themes()
    _check_the_loss(page)


def _check_the_loss(page):
    """It is that of the curves where it suits the labels, unless another is chosen."""
    loss = "document.querySelector('#learning-loss').innerText"
    assert page.page.evaluate(loss) == "Fitted with the huber loss, as in Explore."
    assert "hm.losses.Huber(delta=0.5)" in page.page.text_content("#learning-python")
    page.go("Explore")
    page.choose("loss", "logistic")
    page.until("!location.search.includes('loss=')")
    page.go("Your data")  # where the report follows
    page.until(f"{loss}.startsWith('The logistic loss of Explore does not suit numbers')")
    page.choose("fit", "absolute")
    page.until(f"{loss} === ''")


def test_a_study_is_planned_and_its_report_saved(watched):
    page = watched.show("points=10")
    page.go("Plan a study")
    page.until("document.querySelector('#study-sentence').innerText.startsWith('With ')")
    example = page.page.inner_text("#study-sentence")
    page.page.get_by_label("candidate predictors").fill("40")  # which are not simulated
    page.page.get_by_role("button", name="Calculate").click()
    page.until("was => document.querySelector('#study-sentence').innerText !== was", example)
    population = hm.Population(prevalence=0.2, auc=0.85, predictors=40)
    report = hm.sample_size(population, target={"calibration_slope": 0.9}, workers=1)
    assert page.page.inner_text("#study-sentence") == report.sentence
    graph = "document.querySelector('#study-graph .js-plotly-plot').data"
    page.until(f"{graph}.length === 3")
    drawn = page.page.evaluate(f"{graph}[0].y")
    np.testing.assert_allclose(drawn, report.curve.calibration_slope.values, rtol=1e-9)
    with page.page.expect_download() as saved:
        page.page.get_by_role("button", name="Save as Markdown").click()
    assert saved.value.path().read_text(encoding="utf-8") == report.to_markdown()
    page.page.get_by_label("AUC of the true model").fill("0.4")
    page.page.get_by_label("AUC of the true model").press("Enter")
    page.until("document.querySelector('#study-told').innerText.includes('between 1/2 and 1')")
    assert page.page.inner_text("#study-sentence") == report.sentence  # the last that made sense


def test_the_page_can_be_used_without_a_mouse_and_read_aloud(watched):
    page = watched.show("quantity=time&loss=square&points=5")
    page.until("document.querySelector('#sentence').innerText.startsWith('At p/n')")
    page.until("!('stale' in document.body.dataset) && !('pending' in document.body.dataset)")
    page.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.page.get_attribute("html", "lang") == "en"
    assert page.unreadable() == []  # the presets
    page.page.keyboard.press("Escape")
    for area in ("Plan a study", "Explore"):
        page.page.locator("nav").get_by_role("link", name=area).press("Enter")
        page.until(f"document.querySelector('nav [aria-current]').innerText === '{area}'")
        if area == "Explore":
            page.page.get_by_role("button", name="What is regularisation, λ?").press("Enter")
        page.check_both_themes()
    assert page.page.locator("#help").is_visible()  # as it was while all was checked


def test_training_is_played(watched):
    page = watched.show("quantity=time&loss=square&points=9&time=0.1&low=0.2")
    typed, shown = page.field("time"), f"{GRAPH}[0].y[4]"
    before = page.page.evaluate(shown)
    page.page.get_by_role("button", name="Play").click()
    page.until("was => document.querySelector('#play').innerText.includes('Pause')")
    page.until(f"was => {shown} !== was", before)
    page.page.get_by_role("button", name="Pause").click()
    page.until("!location.search.includes('time=0.1&')")  # the address tells where it stopped
    time_ = float(typed.input_value())
    assert 0.1 < time_ < 1e5
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="square")
    x = page.page.evaluate(f"{GRAPH}[0].x[4]")
    given = {"n_over_d": 3.0, "p_over_n": x, "regularisation": 1e-4}
    exact = float(hm.training(model, times=time_, **given).generalisation_error)
    page.until(f"exact => Math.abs({shown} - exact) < 2e-3", exact)  # between the frames
    page.slider("time").press("End")
    page.until("document.querySelector('.typed[data-field=\"time\"] input').value === '100000'")


def test_a_symbol_is_explained_and_a_sentence_never_stale(watched):
    page = watched.show("points=10")
    page.page.get_by_role("button", name="What is regularisation, λ?").press("Enter")
    assert "The penalty λ of the objective" in page.page.inner_text("#help")
    page.page.keyboard.press("Escape")
    page.until("!document.querySelector('#help').matches(':popover-open')")
    page.until("!('stale' in document.body.dataset)")
    page.slider("n_over_d").press("End")
    page.until("'stale' in document.body.dataset")
    page.until("!('stale' in document.body.dataset)")


BUTTONS = [
    "Download plot as a PNG",
    "Zoom",
    "Pan",
    "Zoom in",
    "Zoom out",
    "Autoscale",
    "Reset axes",
]


def test_no_button_of_a_plot_sends_anything_anywhere(watched):
    page = watched.open("points=5&loss=square").page
    opened = []
    page.context.on("page", lambda one: opened.append(one.url))
    rng = np.random.default_rng(0)
    table = np.column_stack([X := rng.standard_normal((60, 2)), X.sum(1) + rng.standard_normal(60)])
    file = io.BytesIO()
    np.save(file, table)
    watched.go("Your data")
    chosen = {"name": "a.npy", "mimeType": "", "buffer": file.getvalue()}
    page.locator("#upload input").set_input_files(chosen)
    watched.until("document.querySelector('#learning-graph .modebar-btn') !== null")
    watched.go("Explore")
    watched.after(lambda: watched.slider("n_over_d").press("End"))  # drawn without a detour
    for area, graph in (("Explore", "#graph"), ("Your data", "#learning-graph")):
        watched.go(area)
        buttons = page.locator(f"{graph} .modebar-btn")
        titles = "all => all.map(one => one.dataset.title)"
        assert buttons.evaluate_all(titles) == BUTTONS
        page.locator(graph).scroll_into_view_if_needed()
        page.locator(graph).hover()
        with page.expect_download():
            buttons.first.click()
        for k in range(1, len(BUTTONS)):
            buttons.nth(k).click()
        config = f"document.querySelector('{graph} .js-plotly-plot')._context"
        assert page.evaluate(f"{config}.plotlyServerURL") == ""
    assert page.locator("a[href^=http]").count() == 0
    time.sleep(0.2)  # for whatever would have been opened
    assert opened == []


def test_dark_colours_are_remembered_and_a_phone_has_room(watched):
    page = watched.show("points=10")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.page.evaluate(paper) == "rgb(255, 255, 255)"
    page.page.get_by_role("button", name="Light / dark").click()
    page.until(
        "document.querySelector('#graph .js-plotly-plot').layout.paper_bgcolor === '#14171b'"
    )
    page.page.set_viewport_size({"width": 360, "height": 740})
    page.open("points=10")
    page.until(f"{paper} === 'rgb(20, 23, 27)'")
    page.page.evaluate("localStorage.clear()")
    page.until("document.documentElement.scrollWidth <= 360")
    assert page.page.locator("#graph").bounding_box()["y"] < 200  # the curve first
    page.slider("regularisation").scroll_into_view_if_needed()
    assert page.page.locator("#graph").bounding_box()["y"] >= 0  # and in sight of its sliders
    page.page.set_viewport_size({"width": 1280, "height": 860})


def test_a_client_that_goes_away_stops_its_simulation_within_a_point(watched):
    page = watched.show("points=10&dots=2&d=400&seeds=50&regularisation=0.1&low=1&high=2")
    page.page.get_by_role("button", name="Simulate").click()
    page.until("document.querySelector('#told').innerText.includes('0 of 2 points')")
    assert stream.running
    begun = time.monotonic()
    page.page.goto("about:blank")
    _wait_until_nothing_runs()
    assert time.monotonic() - begun < 20  # a point takes minutes
