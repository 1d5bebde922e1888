"""Predict learning curves of a public database from single samples, and compare all its points.

LCDB 1.1 (Yan, Mohr and Viering 2025, arXiv 2505.15657, CC BY 4.0) has the errors of scikit-learn's
models at many sample sizes, means over 25 splits; `learning_curve_database.csv` is an extract. Each
curve is predicted from a few rows of the data set that scikit-learn ships: optdigits from those of
13 of its 43 writers, breast cancer and iris from some of the same rows. Beside it stands the power
law a + b n^-c that fits best to errors measured within the same few rows.

Nothing was chosen by these curves: the method and its bars are those of the package.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from page import heading
from rivals import power_law
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import hiddenmanifold as hm

DRAWS = 8
HELD_OUT = 10
SIZES = 8
LOADERS = {
    "optdigits": datasets.load_digits,
    "wdbc": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
}
CASES = (("optdigits", 1000), ("optdigits", 400), ("wdbc", 285), ("iris", 100))
LEARNERS = {
    "RidgeClassifier": RidgeClassifier(alpha=1.0),
    "LogisticRegression": LogisticRegression(C=1.0, max_iter=1000),
}


def database():
    return pd.read_csv(Path(__file__).with_suffix(".csv"), comment="#")


def sample(name, N0, seed):
    X, y = LOADERS[name](return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))[:N0]
    return X[rows], y[rows]


def predicted(X, y, learner, n):
    """Errors at n with the ends of their bars, (3, n)."""
    data = hm.Data(X, y, "classification")
    if learner == "RidgeClassifier":
        loss, lam = "square", hm.from_ridge_alpha(1.0, data.p)
    else:
        loss = "softmax" if len(data.classes) > 2 else "logistic"
        lam = hm.from_sklearn_C(1.0, data.p)
    ds = hm.learning_curve(data, n=n, regularisation=lam, loss=loss, on_refusal="keep")
    return np.array([ds[f"generalisation_error{end}"] for end in ("", "_low", "_high")])


def fitted_power_law(X, y, learner, n, seed):
    """That of errors measured by cuts of the sample at sizes from its smallest to nine tenths."""
    own = np.unique(np.geomspace(n.min(), 0.9 * len(y), SIZES).astype(int))
    model, error = LEARNERS[learner], np.zeros((len(own), 1))
    for i, size in enumerate(own):
        for cut in range(HELD_OUT):
            order = np.random.default_rng([seed, size, cut]).permutation(len(y))
            fit, test = order[:size], order[size:]
            wrong = model.fit(X[fit], y[fit]).predict(X[test]) != y[test]
            error[i] += wrong.mean() / HELD_OUT
    return power_law(error[:-1], error[-1], own, n)[:, 0]


def one(name, N0, learner, n, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = sample(name, N0, seed)
        return predicted(X, y, learner, n), fitted_power_law(X, y, learner, n, seed)


def compared(name, N0, learner, draws, jobs):
    """The points of the database, and predictions and power laws of some draws."""
    known = database().query("data == @name and learner == @learner")
    n = known.n.to_numpy()
    work = (delayed(one)(name, N0, learner, n, seed) for seed in range(draws))
    found = Parallel(jobs)(work)
    ours, power = (np.array(part) for part in zip(*found, strict=True))
    return known, ours, power


def summary(known, ours, power, N0):
    """Root mean square of log(predicted/measured), and how often bars hold, below and above N0."""
    measured = 0.5 * (known.validation + known.test).to_numpy()
    both = known.validation.to_numpy(), known.test.to_numpy()
    # splits share the rows of their tests, so that s.e. are no less than half of the difference
    noise = np.maximum(
        np.hypot(known.validation_se, known.test_se) / 2, np.abs(np.subtract(*both)) / 2
    )
    error, low, high = ours.transpose(1, 0, 2)
    off = np.log(error / measured)
    bar = np.hypot(np.log(high / low) / 2, noise / measured)
    lines = []
    for word, at in (("n <= N0", known.n.to_numpy() <= N0), ("n > N0", known.n.to_numpy() > N0)):
        if not at.any():
            continue
        rms = [100 * np.sqrt(np.mean(v[:, at] ** 2)) for v in (off, np.log(power / measured))]
        mean = 100 * np.sqrt(np.mean(np.log(error.mean(0) / measured)[at] ** 2))
        inside = [100 * np.mean(np.abs(off[:, at]) <= k * bar[:, at]) for k in (1, 2)]
        lines.append(
            f"{word:8} {at.sum():4} points   ours {rms[0]:5.1f} (mean of draws {mean:4.1f})   "
            f"power law {rms[1]:5.1f}   within 1, 2 bars {inside[0]:3.0f} {inside[1]:3.0f} %"
        )
    return lines


def table(known, ours, power):
    """The points, and the prediction of the first draw."""
    return pd.DataFrame(
        {
            "n": known.n,
            "validation": known.validation,
            "s.e.": known.validation_se,
            "test": known.test,
            **{name: ours[0][i] for i, name in enumerate(("predicted", "low", "high"))},
            "mean of draws": ours[:, 0].mean(0),
            "power law": power[0],
        }
    ).to_string(index=False, float_format=lambda v: f"{v:.4f}")


def drawn(results, path):
    """The points of the database, the first draw with its band, and its power law."""
    names = {"optdigits": "handwritten digits", "wdbc": "breast cancer", "iris": "iris"}
    figure, panels = plt.subplots(2, 2, figsize=(9.2, 6.6), layout="constrained")
    for axes, ((name, N0), (known, ours, power)) in zip(panels.flat, results.items(), strict=True):
        n, (mean, low, high) = known.n.to_numpy(), ours[0]
        axes.fill_between(n, low, high, color="C0", alpha=0.25, lw=0)
        axes.plot(n, mean, color="C0", lw=2, label="predicted, ± 1 sd")
        axes.plot(n, power[0], color="0.45", ls="--", lw=1.4, label="power law, same rows")
        shown = {"color": "C1", "ms": 4, "lw": 1, "zorder": 3}
        axes.errorbar(
            n, known.validation, known.validation_se, fmt="o", label="LCDB, validation", **shown
        )
        axes.plot(n, known.test, "o", mfc="none", label="LCDB, test", **shown)
        axes.axvline(N0, color="0.7", lw=0.8, zorder=0, label="rows that were seen")
        axes.set(xscale="log", yscale="log", xlabel="samples n", ylabel="misclassification rate")
        axes.set_title(f"{names[name]}, predicted from {N0} rows", fontsize=10.5)
        top, bottom = known.validation.max(), known.validation.min()
        axes.set_ylim(0.6 * bottom, 1.6 * top)
        ticks = [t for t in (0.03, 0.05, 0.1, 0.2, 0.3, 0.5) if 0.6 * bottom < t < 1.6 * top]
        axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
        across = [
            t for t in (20, 50, 100, 200, 500, 1000, 2000, 4000) if n[0] < 1.3 * t < 1.4 * n[-1]
        ]
        axes.set_xticks(across, [f"{t:g}" for t in across])
        axes.minorticks_off()
    panels.flat[0].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--learner", choices=LEARNERS, default="RidgeClassifier")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    results = {}
    for name, N0 in CASES:
        found = results[name, N0] = compared(name, N0, given.learner, given.draws, given.jobs)
        heading(f"{given.learner} on {name}, from {N0} rows")
        print(table(*found))
        print("\n".join(summary(*found, N0)), flush=True)
    if given.picture:
        drawn(results, given.picture)


if __name__ == "__main__":
    main()
