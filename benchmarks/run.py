"""Measure speed, memory and robustness; every comparison is timed side by side in this run."""

import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import as_it_was
import explore
import numpy as np
import optimal
import other_labels
import real_data
import sweeps
import textbook
from configurations import custom_loss, model, random_model, random_points
from page import heading

import hiddenmanifold as hm
import simulation
from hiddenmanifold import compiled

REGULARISATION = 1e-4


def main() -> None:
    if len(sys.argv) > 1:
        measure_growth(int(sys.argv[1]))
        return
    import_time()
    engines()
    threads()
    as_it_was.main()
    rate = figure_3()
    ratio_to_textbook(rate)
    other_losses(rate)
    other_labels.main()
    growth()
    robustness()
    optimal.main()
    simulation.main()
    sweeps.main()
    explore.main()
    real_data.main()


def solved(chosen: hm.Model, grid: int, **options):
    """A model on a grid × grid, all of it certified."""
    axes = {"n_over_d": np.linspace(0.1, 6, grid), "p_over_n": np.linspace(0.03, 3, grid)}
    ds = hm.predict(chosen, **axes, regularisation=REGULARISATION, **options)
    assert (ds.status == 0).all()
    return ds


def best_rate(loss, grid, repeats=5, **options) -> float:
    """Points per second on a grid × grid, the best of some runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        solved(model(loss), grid, **options)
        seconds.append(time.perf_counter() - start)
    return grid**2 / min(seconds)


@contextmanager
def numpy_alone():
    """Without the compiled kernel."""
    built, compiled._extension = compiled._extension, None
    try:
        yield
    finally:
        compiled._extension = built


def engines(grid: int = 100, repeats: int = 4) -> None:
    heading("Compiled kernel against NumPy: Figure 3 grid, one core, CPU time, turn by turn")
    if compiled.engine() == "numpy":
        print("the kernel is not built")
        return
    print("                 µs/point: NumPy   compiled   ratio   largest relative difference")
    for name, chosen in {
        "logistic": model(),
        "hinge": model("hinge"),
        "huber": model(hm.losses.Huber(0.5)),
        "custom loss": model(custom_loss()),
        "logistic rule": model(teacher="logistic"),
        "real labels": model(hm.losses.Huber(0.5), "linear"),
    }.items():
        seconds: dict[str, list[float]] = {"numpy": [], "compiled": []}
        found = {}
        for _ in range(repeats):
            for engine, used in (("numpy", numpy_alone()), ("compiled", nullcontext())):
                with used:
                    start = time.process_time()
                    found[engine] = solved(chosen, grid, workers=1)
                    seconds[engine].append(time.process_time() - start)
        slow, fast = (1e6 * min(times) / grid**2 for times in seconds.values())
        off = float(abs(found["compiled"].Q / found["numpy"].Q - 1).max())
        print(f"{name:24} {slow:7.0f} {fast:10.1f} {slow / fast:7.1f}   {off:.0e}", flush=True)


def threads(grid: int = 100, repeats: int = 4) -> None:
    heading("Two threads, each with a grid of its own, against one after the other")

    def run(_: int = 0) -> None:
        solved(model(), grid, workers=1)

    with ThreadPoolExecutor(2) as pool:
        alone, together = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            run(), run()
            middle = time.perf_counter()
            list(pool.map(run, range(2)))
            alone.append(middle - start)
            together.append(time.perf_counter() - middle)
    print(f"{min(alone) / min(together):.2f} times as fast ({compiled.engine()})")


def import_time() -> None:
    heading("Import, and the first prediction of a process")
    ingredients = "activation='sign', projection='gaussian', teacher='sign', loss='logistic'"
    point = "n_over_d=3.0, p_over_n=1.0, regularisation=1e-4"
    statements = {
        **{f"import {name}": f"import {name}" for name in ("numpy", "xarray", "hiddenmanifold")},
        "first prediction, imports included": (
            f"import hiddenmanifold as hm; hm.predict(hm.Model({ingredients}), {point})"
        ),
    }
    code = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    for name, statement in statements.items():
        command = [sys.executable, "-c", code.format(statement)]
        runs = [float(subprocess.check_output(command)) for _ in range(5)]
        print(f"{name}: {min(runs):.2f} s", flush=True)


def figure_3() -> float:
    heading("Figure 3 grid: 100 × 100 logistic points, lambda = 1e-4")
    one = best_rate("logistic", 100, workers=1)
    both = best_rate("logistic", 100)
    print(f"all 10000 points converged and certified; {one:.0f} points/s on one core,")
    print(f"{both:.0f} points/s on all cores ({both / one:.2f} times as fast)")
    return both


def ratio_to_textbook(rate: float) -> None:
    heading("Against a textbook solver (quad + brentq + plain iteration), same points, same run")
    print("  n/d   p/n    textbook s   iterations   relative difference of the error")
    seconds = []
    for n_over_d, p_over_n in [(1, 0.3), (1, 1), (3, 0.3), (3, 1), (3, 3), (5, 0.5), (5, 2)]:
        alpha = 1 / p_over_n
        start = time.perf_counter()
        slow = textbook.solve(alpha, alpha / n_over_d, REGULARISATION)
        seconds.append(time.perf_counter() - start)
        ours = hm.predict(
            model(), n_over_d=n_over_d, p_over_n=p_over_n, regularisation=REGULARISATION
        )
        difference = slow["generalisation_error"] / float(ours.generalisation_error) - 1
        print(
            f"  {n_over_d:<5} {p_over_n:<5}  {seconds[-1]:10.2f}   {slow['iterations']:10d}   "
            f"{difference:+.1e}"
        )
    print(f"median {statistics.median(seconds):.2f} s; ratio of times per point: ", end="")
    print(f"{statistics.median(seconds) * rate:.0f}")


def other_losses(logistic: float) -> None:
    heading("Other losses on the same grid, points/s on all cores")
    for loss in ("hinge", "squared_hinge", hm.losses.Huber(0.5), "absolute"):
        print(f"{loss!s:20} {best_rate(loss, 100):10.0f}")
    print(f"{'square (400 × 400)':20} {best_rate('square', 400):10.0f}")
    custom = best_rate(custom_loss(), 100)
    print(f"{'custom logistic':20} {custom:10.0f}  ({logistic / custom:.2f} × the built-in's time)")


def growth() -> None:
    heading("How cost grows (logistic, one fresh process each)")
    print("   points   µs/point   peak memory MB")
    for points in (100, 10_000, 1_000_000):
        out = subprocess.check_output([sys.executable, __file__, str(points)], text=True)
        print(f"{points:9d} {out.strip()}", flush=True)


def measure_growth(points: int) -> None:
    import xarray  # noqa: F401  (its import is not what is measured)

    side = round(points**0.5)
    axes = {"n_over_d": np.linspace(0.1, 6, side), "p_over_n": np.linspace(0.03, 3, side)}
    start = time.perf_counter()
    hm.predict(model(), **axes, regularisation=REGULARISATION)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds / side**2 * 1e6:10.0f} {peak:16.0f}")


def robustness(models: int = 400, points: int = 25) -> None:
    heading(
        "Random models over all ingredients, n/p and d/p in [1e-3, 1e3], lambda in [1e-10, 1e4]"
    )
    rng = np.random.default_rng(2020)
    failures, statuses = [], np.zeros(len(hm.Status), dtype=int)
    worst = 0.0
    for _ in range(models):
        chosen, where = random_model(rng), random_points(rng, points)
        ds = hm.predict(chosen, **where, on_failure="keep")
        status = ds.status.values
        statuses += np.bincount(status, minlength=len(statuses))
        worst = max(worst, float(ds.residual.where(ds.status == 0).max()))
        if status.any():
            failures.append((int((status != 0).sum()), chosen))
    total = models * points
    print(f"{statuses[0]} of {total} converged; largest certified residual {worst:.1e}")
    for status in hm.Status:
        if status and statuses[status]:
            print(f"{statuses[status]}: {status.sentence}")
    for count, chosen in sorted(failures, key=lambda f: -f[0])[:12]:
        print(f"  {count} at {chosen}")


if __name__ == "__main__":
    main()
