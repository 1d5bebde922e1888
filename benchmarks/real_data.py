"""Predict from a part of real data, measure on the rest, and count how often the bars hold.

Every set is cut at random into N0 rows that the prediction sees, and others; of the others, n rows
are fitted and the rest is the test. Nothing that is measured was seen by the prediction, nor by its
rivals.
"""

import sys
import time
from typing import NamedTuple

import numpy as np
import rivals
from page import heading
from sklearn import datasets

import hiddenmanifold as hm

DRAWS = 6
REGULARISATIONS = np.array([0.1, 1.0, 10.0])
METHODS = ("ours", "plug-in", "GCV", "power law")
SQUARE, WRONG = "mean square error", "misclassified"


def main(draws: int = DRAWS) -> None:
    heading("Real data: ridge regression, predicted from N0 rows, measured on rows never seen")
    print(f"means over {draws} draws; 'interval' is ± one deviation of a single prediction\n")
    print(f"{'data':18}   N0 ->    n  lambda  measured  predicted  interval        ", end="")
    print("".join(f"{name:>10}" for name in METHODS[1:]), flush=True)
    rows = [row for name in SETS for row in study(name, draws)]
    summary(rows)


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y % 2


def high_digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y > 4


def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return standard(X), y


def diabetes():
    X, y = datasets.load_diabetes(return_X_y=True)
    return standard(X), standard(y)


def wine():
    X, y = datasets.load_wine(return_X_y=True)
    return standard(X[:, 1:]), standard(X[:, 0])  # alcohol from the rest


def iris():
    X, _ = datasets.load_iris(return_X_y=True)
    return standard(X[:, 1:]), standard(X[:, 0])  # the sepals' length from the rest


def standard(X):
    return (X - X.mean(0)) / X.std(0)


def random_features(load, p, seed=0):
    def made():
        X, y = load()
        rng = np.random.default_rng(seed)
        X = (X - X.mean()) / X.std()
        return np.maximum(X @ rng.standard_normal((X.shape[1], p)) / np.sqrt(X.shape[1]), 0.0), y

    return made


SETS = {
    "digits": (digits, 200, (200, 400, 800, 1400)),
    "digits above 4": (high_digits, 200, (200, 400, 800, 1400)),
    "cancer": (cancer, 100, (100, 200, 400)),
    "diabetes": (diabetes, 80, (80, 160, 320)),
    "wine": (wine, 50, (50, 100)),
    "iris": (iris, 50, (50, 80)),
    "digits relu 400": (random_features(digits, 400), 200, (200, 400, 800, 1400)),
    "cancer relu 300": (random_features(cancer, 300), 100, (100, 200, 400)),
    "diabetes relu 100": (random_features(diabetes, 100), 80, (80, 160, 320)),
}
UNTOUCHED = ("digits above 4", "iris")
"""Sets that took no part in the choice of any rule."""


class Row(NamedTuple):
    """One prediction: of what, whether accepted and resolved, by each method, and how it ended."""

    name: str
    draw: int
    kind: str
    N0: int
    n: int
    lam: float
    accepted: bool
    resolved: bool
    guesses: dict[str, float]
    bar: float
    measured: float

    @property
    def cell(self):
        return self.name, self.kind, self.n, self.lam


def study(name, draws):
    load, N0, sizes = SETS[name]
    X, y = load()
    y = np.where(y == y.max(), 1.0, -1.0) if len(np.unique(y)) == 2 else y
    rows = [row for draw in range(draws) for row in one_draw(name, X, y, draw)]
    for n in sizes:
        for lam in REGULARISATIONS:
            show([row for row in rows if row.cell == (name, SQUARE, n, lam)])
    accepted = len({row.draw for row in rows if row.accepted})
    print(f"{name:18} accepted {accepted} of {draws}\n", flush=True)
    return rows


def show(cell):
    name, _, n, lam = cell[0].cell
    true, bar = (np.mean([getattr(row, part) for row in cell]) for part in ("measured", "bar"))
    guess, *others = (np.mean([row.guesses[method] for row in cell]) for method in METHODS)
    print(
        f"{name:18} {cell[0].N0:4} -> {n:4} {lam:7g}    {true:.4f}     {guess:.4f}"
        f"  {guess - bar:.4f}..{guess + bar:.4f}  " + "".join(f"{other:10.4f}" for other in others),
        flush=True,
    )


def one_draw(name, X, y, draw):
    """Rows of one random cut of a set."""
    _, N0, sizes = SETS[name]
    order = np.random.default_rng(100 + draw).permutation(len(X))
    own, rest = order[:N0], order[N0:]
    X = X[:, np.ptp(X[own], axis=0) > 0]
    data = hm.Data(X[own], y[own])
    ds = hm.learning_curve(data, n=sizes, regularisation=REGULARISATIONS, on_refusal="keep")
    truth = rivals.held_out(ridge, X[rest], y[rest], sizes, draw)
    fewer = [N0 // 8, N0 // 4, N0 // 2]
    held = rivals.held_out(ridge, X[own], y[own], fewer, draw)
    names = (("test_loss", 2.0, SQUARE), ("generalisation_error", 1.0, WRONG))
    for kind, (quantity, factor, title) in enumerate(names[: 2 if data.classes else 1]):
        left_out = factor * ds[f"{quantity}_leave_one_out"].values
        law = rivals.power_law(held[kind], left_out, [*fewer, N0], sizes)
        guesses = {"ours": factor * ds[quantity].values, "power law": law}
        if title == SQUARE:
            for method, guess in (("plug-in", rivals.plug_in), ("GCV", rivals.generalised)):
                guesses[method] = guess(X[own], y[own], sizes, REGULARISATIONS)
        bar = factor * (ds[f"{quantity}_high"] - ds[quantity]).values
        for i, n in enumerate(sizes):
            for j, lam in enumerate(REGULARISATIONS):
                at = {method: float(values[i, j]) for method, values in guesses.items()}
                known = (bool(data.usable), bool(ds.resolved[i, j]))
                yield Row(name, draw, title, N0, n, lam, *known, at, bar[i, j], truth[kind, i, j])


def ridge(X, y, test):
    """Scores (tests, λ) of ridge regression with an intercept."""
    centre, mean, p = X.mean(0), y.mean(), X.shape[1]
    U, s, Vt = np.linalg.svd(X - centre, full_matrices=False)
    shrunk = s[:, None] / (s[:, None] ** 2 + p * REGULARISATIONS) * (U.T @ (y - mean))[:, None]
    return mean + (test - centre) @ Vt.T @ shrunk


def summary(rows):
    for kind in (SQUARE, WRONG):
        beyond = [r for r in rows if r.kind == kind and r.n > r.N0]
        at_home = [r for r in rows if r.kind == kind and r.n == r.N0 and r.accepted]
        accepted = [r for r in beyond if r.accepted]
        judge(f"{kind}, n = N0, accepted", at_home)
        judge(f"{kind}, n > N0, accepted", accepted)
        judge("  of them on an assumed tail", [r for r in accepted if not r.resolved])
        judge("  of them untouched sets", [r for r in accepted if r.name in UNTOUCHED])
        judge(f"{kind}, n > N0, refused", [r for r in beyond if not r.accepted])
        gains([r for r in rows if r.kind == kind and r.accepted])


def judge(title, rows):
    """Relative errors of every method, and how often our bars hold."""
    print(f"{title}: {len(rows)} predictions")
    if not rows:
        return
    true, bar = np.array([(r.measured, r.bar) for r in rows]).T
    for method in (method for method in METHODS if method in rows[0].guesses):
        guess = np.array([r.guesses[method] for r in rows])
        cells = {r.cell: [] for r in rows}
        for r in rows:
            cells[r.cell].append((r.guesses[method], r.measured))
        ratios = np.array([np.divide(*np.mean(cell, axis=0)) for cell in cells.values()])
        inside = ""
        if method == "ours":
            shares = (100 * np.mean(np.abs(guess - true) <= k * bar) for k in (1, 2))
            inside = "; inside 1 sd {:.0f} %, 2 sd {:.0f} %".format(*shares)
        single = rms(guess / true - 1.0)
        print(f"    {method:10} rms {single:5.1f} %, of means {rms(ratios - 1.0):5.1f} %{inside}")


def gains(rows):
    """Errors of the fall E(n)/E(N0), in which the noise of the level mostly cancels."""
    home = {(r.name, r.draw, r.lam): r for r in rows if r.n == r.N0}
    beyond = [(r, home[r.name, r.draw, r.lam]) for r in rows if r.n > r.N0]
    if not beyond:
        return
    off = []
    for method in (method for method in METHODS if method in rows[0].guesses):
        falls = [r.guesses[method] / h.guesses[method] * h.measured / r.measured for r, h in beyond]
        off.append(f"{method} {rms(np.array(falls) - 1.0):.1f} %")
    print(f"  fall E(n)/E(N0), rms: {', '.join(off)}\n")


def rms(values):
    return 100 * np.sqrt(np.mean(np.square(values)))


if __name__ == "__main__":
    start = time.perf_counter()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
    print(f"{time.perf_counter() - start:.0f} s")
