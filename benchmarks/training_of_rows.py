"""Training on more rows of real data, predicted from few: falls of the error, and bars.

Rows of each of twelve data sets are drawn, errors along training are predicted at two to eight
times their number, and compared with gradient flow on so many other rows, measured on the rest. A
fall is the ratio of the error to that of the rows at hand, which is measured alike. Predictions at
times that the sample does not resolve are counted as refused.
"""

from __future__ import annotations

import numpy as np
from sklearn import datasets

import hiddenmanifold as hm

DRAWS, TIMES = 6, np.array([0.001, 0.003, 0.01, 0.03, 0.3, 3.0, 30.0, 300.0, 3e4])
MEASURED = 4


def sources(rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Features, labels and rows to draw of each data set."""
    found = {}
    for name, load, rows in (
        ("digits", datasets.load_digits, 200),
        ("diabetes", datasets.load_diabetes, 50),
        ("breast cancer", datasets.load_breast_cancer, 100),
    ):
        X, y = load(return_X_y=True)
        X = X[:, (X[0] != X).mean(0) > 0.2]  # those that vary in every draw
        X = (X - X.mean(0)) / X.std(0)
        y = np.where(y % 2 == 1, 1.0, -1.0) if name != "diabetes" else y / y.std()
        found[name] = X, y, rows
        F = rng.standard_normal((X.shape[1], 150)) / np.sqrt(X.shape[1])
        found[f"{name}, relu"] = np.maximum(X @ F, 0.0), y, rows
        if name != "diabetes":
            found[f"{name}, classes"] = X, y > 0.0, rows
    for decay in (0.0, 0.6, 1.2, 2.0):
        X = rng.standard_normal((3000, 60)) * np.arange(1.0, 61.0) ** (-0.5 * decay)
        y = X @ rng.standard_normal(60) / np.sqrt(60) + 0.5 * rng.standard_normal(3000)
        found[f"decay {decay}"] = X, y, 80
    return found


def flow(X: np.ndarray, y: np.ndarray, new: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Errors (times,) on new rows after gradient flow on some: mean squares, of classes rates."""
    classes = y.dtype == bool
    if classes:
        y, labels = np.where(y, 1.0, -1.0), np.where(labels, 1.0, -1.0)
    mean, centre, p = y.mean(), X.mean(0), X.shape[1]
    U, s, Vt = np.linalg.svd((X - centre) / np.sqrt(p), full_matrices=False)
    keep = s > 1e-10 * s[0]
    seen = (new - centre) @ Vt[keep].T / np.sqrt(p)
    gain = -np.expm1(-np.outer(TIMES, s[keep] ** 2)) / s[keep]
    predicted = mean + seen @ (gain * (U[:, keep].T @ (y - mean))).T
    if classes:
        return (predicted * labels[:, None] <= 0.0).mean(0)
    return ((labels[:, None] - predicted) ** 2).mean(0)


def measured(X, y, n: int, rng) -> np.ndarray:
    """The mean of these errors over samples of n rows, measured on the rest."""
    errors = []
    for _ in range(MEASURED):
        order = rng.permutation(len(y))
        own, rest = order[:n], order[n:]
        errors.append(flow(X[own], y[own], X[rest], y[rest]))
    return np.mean(errors, 0)


def main() -> None:
    """All data sets."""
    rng = np.random.default_rng(11)
    falls, bars, refused, total = [], [], 0, 0
    for name, (X, y, rows) in sources(rng).items():
        more = [f * rows for f in (2, 4, 8) if f * rows <= 0.8 * len(y)]
        truth = {n: measured(X, y, n, rng) for n in (rows, *more)}
        off: list[np.ndarray] = []
        for _ in range(DRAWS):
            own = rng.permutation(len(y))[:rows]
            data = hm.Data(X[own], y[own], "classification" if y.dtype == bool else "regression")
            ds = hm.training_curve(data, times=TIMES, n=[rows, *more], on_refusal="keep")
            level = np.log(ds.generalisation_error / ds.generalisation_error.sel(n=rows))
            for n in more:
                at = ds.sel(n=n)
                known = np.isfinite(at.generalisation_error.values)
                fall = level.sel(n=n).values - np.log(truth[n] / truth[rows])
                bar = np.log(at.generalisation_error_high / at.generalisation_error).values
                away = np.log(at.generalisation_error.values / truth[n]) / bar
                off.append(fall[known])
                bars.append(away[known])
                refused, total = refused + int((~known).sum()), total + known.size
        falls += off
        found = np.concatenate(off)
        rms, most = np.sqrt(np.mean(found**2)), np.abs(found).max()
        print(
            f"{name:22} {rows:4} to {more[-1]:5} rows: falls off by {rms:.1%} (root mean square), "
            f"{most:.0%} at most",
            flush=True,
        )
    fall, away = np.concatenate(falls), np.abs(np.concatenate(bars))
    print(
        f"{fall.size} predictions ({refused} of {total} refused): falls off by "
        f"{np.sqrt(np.mean(fall**2)):.1%} (root mean square); {np.mean(away < 1):.0%} within one "
        f"bar, {np.mean(away < 2):.0%} within two"
    )


if __name__ == "__main__":
    main()
