"""The moving picture of the README: a hand on the page's slider of λ, in a real browser.

`python benchmarks/moving_picture.py` writes docs/explore.gif; --frames FOLDER keeps the frames.
"""

import argparse
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from explore import browser_path, server
from PIL import Image

SIZE = {"width": 1120, "height": 720}
DRAWS = {"latent dimension d": "150", "seeds": "20"}
"""What is simulated: larger than the page offers, so that dots lie on the curve."""
COLOURS = 96
"""Colours of the picture: the page has few, and each costs bytes in every frame."""
BRIEF, LONG, LAST = 90, 1300, 2600
"""Milliseconds for which a frame is shown."""
SLIDER = '.slider[data-field="regularisation"] input'
BEST = 0.07
"""Power of ten of λ at which the first curve of the page loses its peak."""
PATIENCE = 120_000
"""Milliseconds to wait at most: machines are crowded."""
IDLE = "(bar => bar.value > 0 && bar.value >= bar.max)(document.querySelector('#progress'))"
MOVE = """([where, to]) => {
    const slider = document.querySelector(where);
    slider.value = to;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
}"""
DRAWN = """() => {
    const graph = document.querySelector('#graph .js-plotly-plot');
    return graph && graph.data && graph.data.length ? JSON.stringify(graph.data.map(
        trace => [trace.x, trace.y, trace.opacity])) : '';
}"""


@dataclass
class Film:
    """Frames, and the time for which each is shown."""

    page: Any
    frames: list[Image.Image] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def take(self, time: int) -> None:
        """One frame, unless nothing has changed since the last: that is shown for longer."""
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        if self.frames and np.array_equal(np.asarray(picture), np.asarray(self.frames[-1])):
            self.times[-1] += time
            return
        self.frames.append(picture)
        self.times.append(time)

    def settled(self, quiet: int = 250) -> None:
        """Wait until the curves have not changed for a while."""
        before, still = None, 0
        for _ in range(PATIENCE // 50):
            now = self.page.evaluate(DRAWN)
            still = still + 50 if now and now == before else 0
            if still >= quiet:
                return
            before = now
            self.page.wait_for_timeout(50)
        raise TimeoutError("the page keeps changing")

    def follows(self, before: str) -> None:
        """Wait until the curves are others, which one that is at its place already never is."""
        for _ in range(100):
            if self.page.evaluate(DRAWN) != before:
                break
            self.page.wait_for_timeout(50)
        self.settled()

    def drag(self, stops: Iterator[float]) -> None:
        """The slider of λ, stop by stop, in powers of ten."""
        for stop in stops:
            before = self.page.evaluate(DRAWN)
            self.page.evaluate(MOVE, [SLIDER, f"{stop:.2f}"])
            self.follows(before)
            self.take(BRIEF)
        self.settled(1500)  # the sentence is that of this curve
        self.take(LONG)

    def save(self, path: Path) -> None:
        """With the colours of all frames in one table, and what changes alone in each frame."""
        sample = Image.new("RGB", (SIZE["width"], SIZE["height"] * len(self.frames)))
        for k, frame in enumerate(self.frames):
            sample.paste(frame, (0, k * SIZE["height"]))
        table = sample.quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
        few = [f.quantize(palette=table, dither=Image.Dither.NONE) for f in self.frames]
        how = {"save_all": True, "append_images": few[1:], "duration": self.times, "loop": 0}
        few[0].save(path, optimize=True, disposal=1, **how)


def main(path: Path, frames: Path | None) -> None:
    from playwright.sync_api import sync_playwright

    with server() as (address, _), sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion"]
        browser = playwright.chromium.launch(executable_path=browser_path(), args=args)
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.wait_for_selector("#graph .js-plotly-plot .main-svg", timeout=PATIENCE)
        for name, value in DRAWS.items():
            page.get_by_label(name, exact=True).fill(value)
        page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
        film = Film(page)
        film.settled(1500)  # the sentence follows the curves
        page.mouse.move(0, 0)
        film.take(LONG)
        first = float(page.eval_on_selector(SLIDER, "slider => slider.value"))
        film.drag(np.linspace(first, BEST, 19)[1:])  # the peak goes
        film.drag(np.linspace(BEST, first, 9)[1:])  # and comes back
        page.evaluate("document.querySelector('#simulate').click()")  # which scrolls nothing
        for _ in range(PATIENCE // 400):  # dots as they come
            page.wait_for_timeout(400)
            film.take(3 * BRIEF)
            if page.evaluate(IDLE):
                break
        film.settled(1000)
        film.take(LAST)
        browser.close()
    film.save(path)
    if frames is not None:
        frames.mkdir(exist_ok=True)
        for k, frame in enumerate(film.frames):
            frame.save(frames / f"{k:03}.png")
    print(f"{path}: {len(film.frames)} frames, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).parents[1] / "docs/explore.gif"
    parser.add_argument("--to", type=Path, default=default)
    parser.add_argument("--frames", type=Path)
    given = parser.parse_args()
    main(given.to, given.frames)
