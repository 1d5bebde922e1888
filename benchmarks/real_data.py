"""Predict from a part of real data, measure on the rest, and count how often the bars hold.

Every set is cut at random into N0 rows that the prediction sees, and others; of the others, n rows
are fitted and the rest is the test. Nothing that is measured was seen by the prediction.
"""

import sys
import time
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.linear_model import Ridge

import hiddenmanifold as hm

DRAWS = 6
REGULARISATIONS = np.array([0.1, 1.0, 10.0])


def main(draws: int = DRAWS) -> None:
    print("Real data: ridge regression, predicted from N0 rows, measured on rows never seen")
    print(f"{draws} draws; ± is the deviation over draws, 'bar' the mean predicted deviation\n")
    print("data                 N0 ->    n  lambda   measured        predicted        bar   rms")
    rows = [row for name in SETS for row in study(name, draws)]
    summary(rows)


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y % 2


def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return standard(X), y


def diabetes():
    X, y = datasets.load_diabetes(return_X_y=True)
    return standard(X), standard(y)


def wine():
    X, y = datasets.load_wine(return_X_y=True)
    return standard(X[:, 1:]), standard(X[:, 0])  # alcohol from the rest


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
    "cancer": (cancer, 100, (100, 200, 400)),
    "diabetes": (diabetes, 80, (80, 160, 320)),
    "wine": (wine, 50, (50, 100)),
    "digits relu 400": (random_features(digits, 400), 200, (200, 400, 800, 1400)),
    "cancer relu 300": (random_features(cancer, 300), 100, (100, 200, 400)),
    "diabetes relu 100": (random_features(diabetes, 100), 80, (80, 160, 320)),
}


class Row(NamedTuple):
    """One prediction: of which set and size, whether accepted and resolved, and how it ended."""

    name: str
    n: int
    beyond: bool
    lam: float
    accepted: bool
    resolved: bool
    predicted: float
    bar: float
    measured: float
    wrong: tuple[float, float, float] | None  # the same three of misclassifications


def study(name, draws):
    load, N0, sizes = SETS[name]
    X, y = load()
    rows = [row for draw in range(draws) for row in one_draw(name, X, y, draw)]
    for n in sizes:
        for lam in REGULARISATIONS:
            cell = [row for row in rows if (row.n, row.lam) == (n, lam)]
            guess, bar, true = np.array([row[6:9] for row in cell]).T
            rms = np.sqrt(np.mean((guess / true.mean() - 1.0) ** 2))
            print(
                f"{name:18} {N0:4} -> {n:4} {lam:7g}  {true.mean():.4f}±{true.std():.4f}  "
                f"{guess.mean():.4f}±{guess.std():.4f}  {bar.mean():.4f} {100 * rms:4.0f} %",
                flush=True,
            )
    accepted = draws * np.mean([row.accepted for row in rows])
    print(f"{name:18} accepted {accepted:.0f} of {draws}\n", flush=True)
    return rows


def one_draw(name, X, y, draw):
    """Rows of one random cut of a set."""
    _, N0, sizes = SETS[name]
    order = np.random.default_rng(100 + draw).permutation(len(X))
    own, rest = order[:N0], order[N0:]
    X = X[:, np.ptp(X[own], axis=0) > 0]
    data = hm.Data(X[own], y[own])
    ds = hm.learning_curve(data, n=sizes, regularisation=REGULARISATIONS, on_refusal="keep")
    for n in sizes:
        true, missed = measured(X[rest], y[rest], n, draw)
        for i, lam in enumerate(REGULARISATIONS):
            at = ds.sel(n=n, regularisation=lam)
            error, bar = 2.0 * float(at.test_loss), float(at.test_loss_high - at.test_loss_low)
            kind = (name, n, n > N0, lam, data.usable, bool(at.resolved))
            guess = float(at.generalisation_error)
            half = float(at.generalisation_error_high) - guess
            wrong = (guess, half, missed[i]) if data.classes else None
            yield Row(*kind, error, bar, true[i], wrong)


def measured(X, y, n, seed, repeats=4):
    """Mean squares and misclassifications of fits to n rows, on the others, over random cuts."""
    y = np.where(y == y.max(), 1.0, -1.0) if len(np.unique(y)) == 2 else y
    squares, wrong = [], []
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat]).permutation(len(X))
        fit, test = order[:n], order[n:]
        fits = [Ridge(lam * X.shape[1]).fit(X[fit], y[fit]) for lam in REGULARISATIONS]
        scores = [ridge.predict(X[test]) for ridge in fits]
        squares.append([np.mean((y[test] - score) ** 2) for score in scores])
        wrong.append([np.mean(y[test] * score <= 0) for score in scores])
    return np.mean(squares, axis=0), np.mean(wrong, axis=0)


def summary(rows):
    accepted = [r for r in rows if r.accepted]
    beyond = [r for r in accepted if r.beyond]
    judge("n = N0, accepted", [r for r in accepted if not r.beyond])
    judge("n > N0, accepted", beyond)
    judge("n > N0, accepted, tail", [r for r in beyond if not r.resolved])
    judge("n > N0, refused", [r for r in rows if r.beyond and not r.accepted])
    classes = [r for r in beyond if r.wrong]
    judge("misclassified, n > N0", [Row(*r[:6], *r.wrong, None) for r in classes])


def judge(title, rows):
    if not rows:
        print(f"{title:24} no predictions")
        return
    guess, bar, true = np.array([r[6:9] for r in rows]).T
    off = guess - true
    single = np.sqrt(np.mean((off / true) ** 2))
    cells = {(r.name, r.n, r.lam): [] for r in rows}
    for r in rows:
        cells[r.name, r.n, r.lam].append((r.predicted, r.measured))
    ratios = [np.divide(*np.mean(cell, axis=0)) - 1.0 for cell in cells.values()]
    once, twice = (100 * np.mean(np.abs(off) <= k * bar) for k in (1, 2))
    print(
        f"{title:24} {len(rows):4} predictions: rms {100 * single:.1f} %, of means over draws "
        f"{100 * np.sqrt(np.mean(np.square(ratios))):.1f} %; inside 1 sd {once:.0f} %, "
        f"2 sd {twice:.0f} %"
    )


if __name__ == "__main__":
    start = time.perf_counter()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
    print(f"{time.perf_counter() - start:.0f} s")
