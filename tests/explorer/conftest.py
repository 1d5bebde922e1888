"""A Chromium of the system, and the page in it, watched."""

import os
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import axe_playwright_python
import pytest

from hiddenmanifold.explorer import served
from hiddenmanifold.explorer.parse import views_of
from hiddenmanifold.explorer.plots import address_of

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "no Chromium found: run `make browser`, or install Debian's package `chromium`"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
WAIT = 60_000  # milliseconds; machines are crowded
GRAPH = "document.querySelector('#graph .js-plotly-plot')"
TRACES = f"({GRAPH} || {{}}).data || []"


@pytest.fixture(scope="session")
def browser_type_launch_args():
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(INSTALL)  # a page that no browser has seen is not tested
    return {"executable_path": found, "args": ["--no-sandbox", "--disable-gpu"]}


@pytest.fixture(scope="module")
def address():
    with served() as url:
        yield url


class Watched:
    """The page, with what is asked of it again and again."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.complaints, self.hosts = [], set()
        page.set_default_timeout(WAIT)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.context.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, query=""):
        """The page of an address, as a link opens it."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}?{query}" if query else self.address)
        self.until(f"({TRACES}).length > 0")
        return self

    def show(self, query):
        """The same on the page that is open already, which is quicker."""
        view, pins = views_of(query)
        if self.page.url == "about:blank":
            return self.open(query)
        visit = "query => dash_clientside.set_props('visited', {data: '?' + query})"
        self.page.evaluate(visit, query)
        self.until(f"(({GRAPH} || {{}}).layout || {{}}).meta === '{address_of(view, pins)}'")
        return self

    def until(self, condition, given=None):
        """Ask again and again; waiting within the page would need `eval`, which it forbids."""
        end = time.monotonic() + WAIT / 1000
        while not self.page.evaluate(condition, given):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(20)

    def traces(self):
        return self.page.evaluate(
            f"({TRACES}).map(t => ({{name: t.name, x: t.x, y: t.y, z: t.z}}))"
        )

    def curve(self, number=0):
        return self.traces()[number]["y"]

    def field(self, name):
        return self.page.locator(f'.typed[data-field="{name}"] input')

    def type(self, name, text):
        self.field(name).fill(text)
        self.field(name).press("Enter")

    def slider(self, name):
        return self.page.locator(f'.slider[data-field="{name}"] input')

    def after(self, action, number=0):
        """The values of a curve once an action has changed them."""
        before = self.page.evaluate(f"JSON.stringify(({TRACES})[{number}].y)")
        action()
        self.until(f"before => JSON.stringify(({TRACES})[{number}].y) !== before", before)
        return self.curve(number)

    def unreadable(self):
        """What axe finds wrong on what is in sight, for readers who do not see, or use no mouse."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        return [(one["impact"], one["id"], one["nodes"][0]["html"]) for one in found]

    def check_both_themes(self):
        """What is in sight can be read in dark and in light colours."""
        for theme in ("dark", "light"):
            self.page.locator("#toggle-theme").evaluate("button => button.click()")
            self.until(f"document.documentElement.dataset.theme === '{theme}'")
            assert self.unreadable() == []

    def choose(self, name, text):
        self.page.locator(f'.choice[data-field="{name}"] select').select_option(label=text)

    def go(self, area):
        self.page.locator("nav").get_by_role("link", name=area).click()


@pytest.fixture(scope="module")
def tab(browser, address):
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 860})
    yield Watched(context.new_page(), address)
    context.close()


@pytest.fixture
def watched(tab):
    """The page; whatever a test does, nothing is complained of and nobody else is asked."""
    tab.complaints.clear()
    yield tab
    assert tab.complaints == []
    assert tab.hosts - {""} == {urlsplit(tab.address).netloc}  # also of windows that were opened
