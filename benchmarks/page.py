"""How long the page takes from a slider to the redrawn curve, in a real browser."""

import shutil
import statistics

from playwright.sync_api import sync_playwright

from hiddenmanifold.explorer import served

MOVES = 15
NAMES = ("chromium", "chromium-browser", "google-chrome")
# from the event of the slider to the frame after the curve was drawn
MOVE = """step => new Promise(done => {
    const graph = document.querySelector('#graph .js-plotly-plot');
    const slider = document.querySelector('.slider[data-field="n_over_d"] input');
    slider.focus();
    const before = graph.data[0].y[100], begun = performance.now();
    graph.on('plotly_afterplot', function drawn() {
        if (graph.data[0].y[100] === before) return;
        graph.removeListener('plotly_afterplot', drawn);
        requestAnimationFrame(() => done(performance.now() - begun));
    });
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    set.call(slider, step);
    slider.dispatchEvent(new Event('input', {bubbles: true}));
})"""


def main() -> None:
    """Print the median over moves of the slider of n/d; 200 points of the logistic loss."""
    title = "Page: slider to redrawn curve of 200 logistic points"
    print(f"\n{title}\n{'-' * len(title)}", flush=True)
    if (found := next(filter(None, map(shutil.which, NAMES)), None)) is None:
        print("no Chromium found: run `make browser`")
        return
    times = measured(found)
    spread = f"{min(times):.0f} to {max(times):.0f}"
    print(f"median {statistics.median(times):.0f} ms of {MOVES} moves ({spread} ms)", flush=True)


def measured(executable: str) -> list[float]:
    with served() as address, sync_playwright() as playwright:
        options = {"executable_path": executable, "args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(address)
        page.wait_for_selector("#graph .js-plotly-plot .scatterlayer .trace")
        page.wait_for_function("document.querySelector('#sentence').innerText.length > 0")
        times = []
        for move in range(MOVES + 1):
            times.append(page.evaluate(MOVE, f"{0.3 + 0.02 * move:.2f}"))
            page.wait_for_timeout(200)  # as a hand that looks for something
        browser.close()
    return times[1:]


if __name__ == "__main__":
    main()
