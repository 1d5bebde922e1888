"""Random models with labels, losses and predictions of every kind, against brute force.

``python benchmarks/any_labels.py [solved] [checked]``: so many models are solved anew by the slow
reference of tests/labels_oracle.py, and its overlaps, errors and training loss compared; at the
solutions of so many more the reference evaluates the equations once. Prints the worst differences,
every converged point that is off by more than the tolerance, and how the others ended.
"""

import sys
from collections import Counter

import numpy as np
from scipy.special import expit

import hiddenmanifold as hm
import labels_oracle as oracle
from hiddenmanifold import losses, noises, teachers

TOLERANCE = 1e-8
COLLAPSED = np.log(1e-90)
"""Logarithm of a Q below which a corner of the loss holds predictions at a constant."""
LEVELS = (4, 5, 6)
"""Fineness at which the reference evaluates the equations at a solution: the next, if it must."""


def random_noise(rng):
    """A law of noise for the package, and for the reference."""
    size = float(np.exp(rng.uniform(-1.5, 0.7)))
    kind = rng.choice(["none", "gaussian", "laplace", "student", "mixture", "uniform"])
    if kind == "none":
        return 0.0, ("none",)
    if kind == "gaussian":
        return noises.Gaussian(size**2), ("gaussian", size**2)
    if kind == "laplace":
        return noises.Laplace(size), ("laplace", size)
    if kind == "student":
        degrees = float(rng.choice([1.0, 1.5, 2.5, 4.0, 12.0]))
        return noises.Student(degrees, size), ("student", degrees, size)
    if kind == "mixture":
        share, wide = float(rng.uniform(0.02, 0.4)), float(size**2 * np.exp(rng.uniform(1, 4)))
        mixture = ((1 - share, share), (size**2, wide))
        return noises.Mixture(*mixture), ("mixture", *mixture)
    return noises.Uniform(size), ("uniform", size)


def random_function(rng):
    """A function of the field, and its kinks."""
    a, b = rng.uniform(0.5, 2.0), rng.normal()
    return [
        (lambda nu: np.tanh(a * nu + b), ()),
        (lambda nu: np.maximum(a * nu + b, 0.0), (-b / a,)),
        (lambda nu: np.abs(nu) - b, (0.0,)),
        (lambda nu: np.sin(a * nu) + 0.3 * nu, ()),
        (lambda nu: nu**3 / 3.0, ()),
        (lambda nu: np.where(nu > b, 1.0, -0.5) + 0.2 * nu, (b,)),
        (lambda nu: nu, ()),
    ][rng.integers(7)]


def random_real(rng, rho):
    """A function plus noise, and a loss of the residual."""
    function, kinks = random_function(rng)
    noise, its_noise = random_noise(rng)
    scale = (lambda nu: 1.0 + 0.5 * np.tanh(nu)) if rng.random() < 0.2 else None
    labels = oracle.Additive(function, its_noise, scale, kinks)
    teacher = teachers.Real(function, noise, scale, kinks, rho)
    heavy = its_noise[0] == "student" and its_noise[1] <= 2
    return teacher, labels, *random_residual_loss(rng, heavy=heavy)


def random_linear(rng, rho):
    """Linear labels with noise."""
    noise, its_noise = random_noise(rng)
    heavy = its_noise[0] == "student" and its_noise[1] <= 2
    labels = oracle.Additive(lambda nu: nu, its_noise)
    return teachers.Linear(noise, rho), labels, *random_residual_loss(rng, heavy=heavy)


def random_residual_loss(rng, *, heavy):
    level, width = float(rng.uniform(0.1, 0.9)), float(np.exp(rng.uniform(-1.5, 1)))
    choices = [
        (losses.Huber(width), oracle.Huber(width)),
        (losses.Absolute(), oracle.Absolute()),
        (losses.Quantile(level), oracle.Quantile(level)),
        (losses.LogCosh(), oracle.LogCosh()),
        (losses.Insensitive(width), oracle.Insensitive(width)),
        (losses.Expectile(level), oracle.Expectile(level)),
        (losses.Square(), oracle.Square()),
    ]
    return choices[rng.integers(5 if heavy else 7)]


def random_counts(rng, rho):
    """Counts, and their own loss or one of the residual."""
    a, b = float(rng.uniform(-0.5, 0.7)), float(rng.uniform(0.3, 0.8) * rng.choice([-1, 1]))
    link = str(rng.choice(["exp", "softplus"]))
    rate = {
        "exp": lambda nu: np.exp(a + b * nu),
        "softplus": lambda nu: np.logaddexp(0, a + b * nu),
    }
    kind = rng.choice(["poisson", "negative_binomial", "binomial", "ordered", "discrete"])
    if kind == "poisson":
        teacher = teachers.Poisson(link, a, b, rho=rho)
        labels = oracle.Counts("poisson", rate[link])
    elif kind == "negative_binomial":
        size = float(rng.uniform(0.7, 5))
        teacher = teachers.NegativeBinomial(link, size, a, b, rho=rho)
        labels = oracle.Counts("negative_binomial", rate[link], size)
    elif kind == "binomial":
        trials = int(rng.integers(1, 9))
        teacher = teachers.Binomial(trials, "logistic", a, 2 * b, rho=rho)
        labels = oracle.Counts("binomial", trials, lambda nu: expit(a + 2 * b * nu))
        if rng.random() < 0.6:
            return teacher, labels, losses.Binomial(trials), oracle.BinomialLoss(trials)
    elif kind == "ordered":
        cuts, noise = tuple(np.sort(rng.normal(size=2))), float(rng.choice([0.0, 0.3]))
        teacher = teachers.Ordered((0.0, 1.0, 2.5), cuts, noise, rho)
        labels = oracle.Ordered((0.0, 1.0, 2.5), cuts, noise)
    else:

        def shares(nu):
            up = 0.7 * expit(a + b * nu)
            return np.stack([0.7 - up, 0.3 + 0 * nu, up])

        teacher = teachers.Discrete((-1.0, 0.0, 2.0), shares, rho=rho)
        labels = oracle.Discrete((-1.0, 0.0, 2.0), shares)
    if kind in ("poisson", "negative_binomial") and rng.random() < 0.7:
        return teacher, labels, losses.Poisson(), oracle.PoissonLoss()
    return teacher, labels, *random_residual_loss(rng, heavy=False)


def random_positive(rng, rho):
    """Positive labels, and a Gamma, Poisson or residual loss."""
    a, b = float(rng.uniform(-0.5, 0.7)), float(rng.uniform(0.2, 0.8) * rng.choice([-1, 1]))

    def mean(nu):
        return np.exp(a + b * nu)

    if rng.random() < 0.5:
        shape = float(np.exp(rng.uniform(-0.3, 2)))
        teacher, labels = teachers.Gamma("exp", shape, a, b, rho=rho), oracle.Gamma(mean, shape)
    else:
        variance = float(rng.uniform(0.1, 1.0))
        teacher = teachers.LogNormal("exp", variance, a, b, rho=rho)
        labels = oracle.LogNormal(mean, variance)
    chosen = rng.integers(3)
    if chosen == 0:
        return teacher, labels, losses.Gamma(), oracle.GammaLoss()
    if chosen == 1:
        return teacher, labels, losses.Poisson(), oracle.PoissonLoss()
    return teacher, labels, *random_residual_loss(rng, heavy=False)


def random_problem(seed):
    """A model, its twin for the reference, and a point."""
    rng = np.random.default_rng([2024, seed])
    rho = float(np.exp(rng.uniform(-0.7, 0.7)))
    make = [random_real, random_linear, random_counts, random_positive]
    while True:
        kind = make[rng.choice(4, p=[0.4, 0.15, 0.25, 0.2])]
        teacher, labels, loss, its_loss = kind(rng, rho)
        activation = str(rng.choice(["tanh", "erf", "relu", "sign"]))
        projection = str(rng.choice(["gaussian", "orthogonal"]))
        intercept = bool(rng.random() < 0.4)
        parts = {"activation": activation, "projection": projection, "teacher": teacher}
        try:
            model = hm.Model(**parts, loss=loss, intercept=intercept, prediction="identity")
        except hm.IncompatibleIngredientsError:  # all labels in the insensitive zone
            continue
        ratios = np.exp(rng.uniform(np.log(0.3), np.log(5), 2))
        lam = float(10 ** rng.uniform(-3, 1))
        point = {"n_over_p": ratios[0], "d_over_p": ratios[1], "regularisation": lam}
        kappas = model.activation.kappas_at(1.0)
        twin = {
            "alpha": ratios[0],
            "gamma": ratios[1],
            "lam": lam,
            "kappas": kappas,
            "projection": projection,
            "intercept": intercept,
            "rho": rho,
        }
        return model, labels, its_loss, point, twin


def unknowns(ds, rho):
    V, Q, M = (float(ds[name]) for name in "VQM")
    tilt = np.arctanh(M / np.sqrt(rho * Q))
    # the package adds 1e-100 to a Q that vanishes
    return np.array([np.log(V), np.log(Q + 1e-100), tilt, float(ds.intercept)])


def residual(labels, loss, ds, twin):
    """By how much the reference's equations move a solution."""
    moved = np.inf
    for level in LEVELS:
        if moved > TOLERANCE:
            moved = residual_on_level(labels, loss, ds, twin, level)
    return moved


def residual_on_level(labels, loss, ds, twin, level):
    rho, x = twin["rho"], unknowns(ds, twin["rho"])
    e = oracle.averages(labels, loss, rho, x, level)
    point = twin["gamma"], twin["lam"], rho, twin["kappas"]
    orthogonal = twin["projection"] == "orthogonal"
    V, Q, M, _ = oracle.features(twin["alpha"] * e, *point, orthogonal=orthogonal)
    new = np.array([np.log(V), np.log(Q), np.arctanh(M / np.sqrt(rho * Q))])
    if x[1] < COLLAPSED:  # constant predictions: any smaller Q is as good as none
        new[1] = np.maximum(new[1], x[1])
    moved = np.abs(new - x[:3]).max()
    if twin["intercept"] or twin["kappas"][0] != 0.0:
        moved = max(moved, abs(e[3]) / np.sqrt(e[1]))
    return moved


def compared(seed, *, solve):
    """The status of a point and the largest difference from the reference."""
    model, labels, loss, point, twin = random_problem(seed)
    ds = hm.predict(model, **point, on_failure="keep", progress=False, workers=1)
    status = int(ds.status)
    if status:
        return status, 0.0, model, point
    if not solve:
        return status, residual(labels, loss, ds, twin), model, point
    try:
        found = oracle.solve(labels, loss, **twin)
    except RuntimeError:  # the reference does not converge: its equations judge the solution
        return status, residual(labels, loss, ds, twin), model, point
    scale = max(1.0, abs(found["Q"]))
    pairs = {"V": "V", "Q": "Q", "M": "M", "b": "intercept", "q_w": "q_w"}
    worst = max(abs(found[a] - float(ds[b])) / scale for a, b in pairs.items())
    for name in ("training_loss", "generalisation_error", "clean_error"):
        mine, theirs = float(ds[name]), found[name]
        if np.isfinite(mine) or np.isfinite(theirs):
            worst = max(worst, abs(mine - theirs) / max(1.0, abs(theirs)))
    return status, worst, model, point


def main(solved=40, checked=200, first=0):
    for solve, count, start in ((True, solved, first), (False, checked, first + 10_000)):
        if not count:
            continue
        statuses, worst, wrong = Counter(), [], 0
        for seed in range(start, start + count):
            status, error, model, point = compared(seed, solve=solve)
            statuses[hm.Status(status).name] += 1
            if status == 0:
                worst.append(error)
            if not error <= TOLERANCE or status:
                wrong += status == 0
                print(
                    f"seed {seed}: {hm.Status(status).name}, off by {error:.1e}: {model} {point}",
                    flush=True,
                )
        name = "solved anew" if solve else "evaluated at the solution"
        print(
            f"{count} models, {name}: {dict(statuses)}; converged, and off by more than "
            f"{TOLERANCE:g}: {wrong}; median {np.median(worst):.1e}, worst {np.max(worst):.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
