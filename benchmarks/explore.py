"""The page under a hand on its slider, and under many: latency in a browser, and a load of clients.

Run alone, `python benchmarks/explore.py --minutes 5`, or by `make bench`.
"""

import argparse
import io
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import numpy as np
from page import heading

MOVES = 25
CLIENTS = 50
ASKED = 150
"""Milliseconds from the slider to the curve, at most in the median."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# from the event of the slider to the frame after the curve was drawn, and the server's part of it
MOVE = """step => new Promise(done => {
    const graph = document.querySelector('#graph .js-plotly-plot');
    const slider = document.querySelector('.slider[data-field="n_over_d"] input');
    slider.focus();
    performance.clearResourceTimings();
    const before = graph.data[0].y[100], begun = performance.now();
    graph.on('plotly_afterplot', function drawn() {
        if (graph.data[0].y[100] === before) return;
        graph.removeListener('plotly_afterplot', drawn);
        requestAnimationFrame(() => {
            const whole = performance.now() - begun;
            const all = performance.getEntriesByType('resource');
            const asked = all.find(one => one.name.includes('/curve?'));
            done([whole, asked.responseEnd - asked.startTime]);
        });
    });
    slider.value = step;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
})"""


def main(minutes: float = 2.0) -> None:
    """Print both, on a server of its own."""
    try:
        import dash  # noqa: F401
        from playwright.sync_api import sync_playwright  # noqa: F401
    except ImportError:
        print("\nPage: not measured, as the extra [explore] or pytest-playwright is not installed")
        return
    with server() as (address, pid):
        latency(address)
        load(address, pid, minutes)
        hostile(address, pid)


@contextmanager
def server() -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "hiddenmanifold", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0], process.pid
        finally:
            process.terminate()


def browser_path() -> str | None:
    """A Chromium of this machine."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def latency(address: str) -> None:
    """The median over moves of the slider of n/d."""
    from playwright.sync_api import sync_playwright

    heading("Page: slider to redrawn curve of 200 logistic points")
    found = browser_path()
    if found is None:
        print("no Chromium found: run `make browser`")
        return
    options = {"executable_path": found, "args": ["--no-sandbox", "--disable-gpu"]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(f"{address}?quantity=generalisation_error")
        page.wait_for_selector("#sentence:not(:empty)")
        times = []
        for move in range(MOVES + 1):
            times.append(page.evaluate(MOVE, f"{0.3 + 0.02 * move:.2f}"))
            page.wait_for_timeout(100)  # as a hand that moves on
        browser.close()
    whole, asked = (sorted(part) for part in zip(*times[1:], strict=True))
    print(f"median {statistics.median(whole):.0f} ms of {MOVES} moves ", end="")
    print(f"({whole[0]:.0f} to {whole[-1]:.0f} ms; at most {ASKED} ms are asked for), ", end="")
    print(f"of which the server {statistics.median(asked):.0f} ms")


def load(address: str, pid: int, minutes: float) -> None:
    """Clients that move sliders, each as fast as it is answered."""
    heading(f"Page: {CLIENTS} clients moving sliders for {minutes:g} minutes")
    end = time.monotonic() + 60.0 * minutes
    times: list[float] = []
    errors: list[str] = []
    clients = [Thread(target=client, args=(address, k, end, times, errors)) for k in range(CLIENTS)]
    for one in clients:
        one.start()
    memory = []
    while any(one.is_alive() for one in clients):
        time.sleep(min(5.0, max(0.1, end - time.monotonic())))
        memory.append(megabytes(pid))
    rate = len(times) / (60.0 * minutes)
    middle = memory[len(memory) // 2]
    print(f"{len(times)} curves, {rate:.1f} per second, median {statistics.median(times):.2f} s")
    print(f"errors: {len(errors)}{''.join(sorted({f'; {e}' for e in errors}))}")
    print(f"memory of the server: {memory[0]:.0f} MB at first, {middle:.0f} halfway, ", end="")
    print(f"{memory[-1]:.0f} at the end, at most {max(memory):.0f} MB")


def client(address: str, seed: int, end: float, times: list[float], errors: list[str]) -> None:
    """One reader, who also rests now and then and reads what is said, or goes away meanwhile."""
    rng = random.Random(seed)
    while time.monotonic() < end:
        ratio, lam = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-5, 0)
        query = f"n_over_d={ratio:.3g}&regularisation={lam:.3g}"
        resting = rng.random() < 0.05
        begun = time.monotonic()
        try:
            path = "describe" if resting else "curve"
            with urllib.request.urlopen(f"{address}{path}?{query}", b"", 120) as answer:
                if resting:
                    answer.read(1)
                elif b'"data"' not in answer.read():
                    errors.append("an empty answer")
        except OSError as error:
            errors.append(repr(error))
        if not resting:
            times.append(time.monotonic() - begun)


def hostile(address: str, pid: int) -> None:
    """Twenty files at once, each as large as is allowed or larger than it says."""
    heading("Page: twenty hostile uploads at once")
    rng = np.random.default_rng(0)
    table, bomb = io.BytesIO(), io.BytesIO()
    np.save(table, rng.standard_normal((20_000, 124)))
    np.savez_compressed(bomb, X=np.zeros((20_000, 1_000)), y=np.zeros(20_000))
    wide = b"a," * 999 + b"y\n" + (b"1," * 999 + b"2\n") * 9_900
    files = {"table.npy": table.getvalue(), "bomb.npz": bomb.getvalue(), "wide.csv": wide}
    before, answers = megabytes(pid), []

    def send(name: str) -> None:
        query = f"{address}learn?gain=10&name={name}"
        try:
            with urllib.request.urlopen(query, files[name], 300) as answer:
                answers.append(answer.read()[-200:])
        except OSError as error:
            answers.append(repr(error).encode())

    senders = [Thread(target=send, args=(name,)) for name in [*files] * 6 + [*files][:2]]
    for one in senders:
        one.start()
    most = before
    while any(one.is_alive() for one in senders):
        time.sleep(0.2)
        most = max(most, megabytes(pid))
    traces = sum(b"Traceback" in one for one in answers)
    print(f"{len(answers)} answers, {traces} with a trace; ", end="")
    print(f"memory {before:.0f} MB before, at most {most:.0f}, {megabytes(pid):.0f} MB after")


def megabytes(pid: int) -> float:
    """Resident memory of a process and of its children."""
    listed = subprocess.check_output(["ps", "-eo", "pid,ppid,rss"], text=True)
    rows = [tuple(map(int, line.split())) for line in listed.splitlines()[1:]]
    family = {pid}
    for _ in range(4):
        family |= {own for own, parent, _ in rows if parent in family}
    return sum(size for own, _, size in rows if own in family) / 1024.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    main(parser.parse_args().minutes)
