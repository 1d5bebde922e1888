"""The pictures of docs/explore.md, taken of the page in a real browser.

`python benchmarks/page_pictures.py` writes docs/explore_*.png; look at each before it is committed.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
from explore import browser_path, server
from PIL import Image

from hiddenmanifold.explorer.presets import PRESETS

DOCS = Path(__file__).parents[1] / "docs"
DESKTOP, PHONE, PROJECTOR = (1280, 860), (390, 844), (1920, 1080)
SCENES = (
    ("desktop", DESKTOP, "light", "Double descent"),
    ("phone", PHONE, "light", "The peak grows"),
    ("time", DESKTOP, "light", "The peak grows"),
    ("variance", DESKTOP, "light", "variance, not bias"),
    ("dark", PROJECTOR, "dark", "Averaging many"),
    ("map", DESKTOP, "light", "Figure 3"),
)
"""Name, size, colours, and part of the title of a preset."""
PATIENCE = 120_000
COLOURS = 128
SETTLED = """() => (document.querySelector('#sentence') || {}).innerText
    && !('stale' in document.body.dataset) && !('pending' in document.body.dataset)"""

SHOWN = "document.querySelector('#{}:not([hidden])') !== null"


def main() -> None:
    """Take all pictures, of a server of their own."""
    from playwright.sync_api import sync_playwright

    options = {"executable_path": browser_path(), "args": ["--no-sandbox", "--disable-gpu"]}
    with server() as (address, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(**options)
        for name, (width, height), colours, title in SCENES:
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=colours)
            query = next(one.query for one in PRESETS if title in one.title)
            page.goto(f"{address}?{query}")
            until(page, SETTLED)
            if name == "desktop":
                simulated(page)
            if name in ("time", "phone"):
                page.locator('.typed[data-field="time"] input').fill("300")
                page.keyboard.press("Enter")
                page.wait_for_timeout(600)
                until(page, SETTLED)
                page.evaluate("document.activeElement.blur()")
            save(page, name)
            page.close()
        page = browser.new_page(viewport={"width": 1280, "height": 1040})
        page.goto(f"{address}?points=9#study")
        until(page, SHOWN.format("studied"))
        save(page, "study")
        uploaded(page)
        save(page, "data")
        browser.close()


def until(page: Any, condition: str) -> None:
    """Ask again and again; waiting within the page would need `eval`, which it forbids."""
    for _ in range(PATIENCE // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(condition)


def simulated(page: Any) -> None:
    """Dots of a simulation on the curve."""
    page.locator('.typed[data-field="d"] input').fill("200")
    page.keyboard.press("Enter")
    page.wait_for_timeout(600)
    page.get_by_role("button", name="Simulate").click()
    until(page, "() => document.querySelector('#told').innerText.startsWith('done')")


def uploaded(page: Any) -> None:
    """A table with an event that ten columns predict."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((240, 20))
    event = X[:, :10].sum(1) + 3.0 * rng.standard_normal(240) > 0.0
    text = io.StringIO()
    names = [*(f"x{k}" for k in range(20)), "label"]
    np.savetxt(text, np.column_stack([X, event]), "%.4g", ",", header=",".join(names), comments="")
    page.locator("nav").get_by_role("link", name="Your data").click()
    file = {"name": "patients.csv", "mimeType": "text/csv", "buffer": text.getvalue().encode()}
    page.locator("#upload input").set_input_files(file)
    until(page, SHOWN.format("learned"))


def save(page: Any, name: str) -> None:
    """What is in sight, in few colours."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(900)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    path = DOCS / f"explore_{name}.png"
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
