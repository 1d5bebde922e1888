"""Judge corners where double precision is short of digits, by solutions in eighty of them.

`make verify` runs it, as does `PYTHONPATH=tests python benchmarks/corners.py [POINTS]`. A point
that is called converged must be right to 1e-7, or to ten times what it claims.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from page import heading

import hiddenmanifold as hm
import multiprecision
from given import Given, random_features
from hiddenmanifold import compiled
from hiddenmanifold.features import Covariance, Deep, Features, Layer

SEED = 20020933
POINTS = 560
JUDGED = ("V", "Q", "M", "generalisation_error", "training_loss")
CLAIMS = ("quadrature_error", "conditioning_error")
ALLOWED, FACTOR = 1e-7, 10.0
"""Relative error of a converged point: at most this, or so many times what it claims."""
EVERY = 20
"""Of how many points one is solved from afar, too."""


@dataclass(frozen=True)
class Inputs:
    """Features of the package, the same of the reference, and the number of independent ones."""

    name: str
    features: Features
    reference: Callable
    d_over_p: float | None = None
    rank: float = 1.0

    @property
    def ratios(self) -> dict[str, float]:
        return {} if self.d_over_p is None else {"d_over_p": self.d_over_p}


def layered(kind: str, d_over_p: float, kappa_1: float, kappa_star: float) -> Inputs:
    """One layer of random features of given coefficients."""
    projection = hm.projections.REGISTRY[kind]()
    reference = multiprecision.Layers(
        d_over_p, (multiprecision.Layer(1.0, kappa_1, kappa_star, kind),)
    )
    rank = 1.0 if kappa_star else min(1.0, d_over_p)
    features = random_features(projection, kappa_1, kappa_star)
    return Inputs(f"{kind} {kappa_star:g}", features, reference, d_over_p, rank)


def deep(kind: str) -> Inputs:
    """Two layers, the first twice as wide as the data."""
    first, last = Given((0.0, 0.75, 0.5)), Given((0.0, 0.875, 0.25))
    features = Deep([Layer(first, width=2.0), Layer(last, kind)])
    layers = [
        multiprecision.Layer(1.5, 0.75, 0.5),
        multiprecision.Layer(1.0, 0.875, 0.25, kind),
    ]
    return Inputs(f"deep {kind}", features, multiprecision.Layers(0.75, tuple(layers)), 0.75)


def covariates(name: str, w: np.ndarray, tau: np.ndarray) -> Inputs:
    """Features of given eigenvalues, each of which shows a part of the field."""
    w, t = w.tolist(), (w * tau).tolist()
    return Inputs(name, Covariance(w, t), multiprecision.covariance(w, t))


def hiding(part: float, *, rounded: bool = False) -> Inputs:
    """Covariates that hide a part of the field: all of it exact in binary, or rounded anyhow."""
    if rounded:
        i = np.arange(1, 13)
        return covariates("rounded", i**-1.0 / 3.0, (1.0 - part) * i**-0.5 / np.sum(i**-0.5))
    w = np.array([0.5, 0.25, 0.125, 0.125])
    return covariates("exact", w, w - np.array([0.0, 0.0, 0.0, part]))


WHITE = layered("orthogonal", 1.0, 1.0, 0.0)
LINEAR = layered("gaussian", 0.5, 1.0, 0.0)
KINDS = (
    layered("gaussian", 0.5, 0.8, 0.6),
    layered("gaussian", 2.0, 0.8, 0.6),
    layered("orthogonal", 0.5, 0.8, 0.6),
    layered("orthogonal", 2.0, 0.8, 0.6),
    WHITE,
    LINEAR,
    covariates("power law", np.arange(1, 9) ** -1.5, np.full(8, 0.1)),
    deep("gaussian"),
    deep("orthogonal"),
)


@dataclass(frozen=True)
class Case:
    """A point, for the package and for the reference."""

    corner: str
    inputs: Inputs
    loss: str
    n_over_p: float
    regularisation: float
    sign: bool = True
    noise: float = 0.0

    def __str__(self) -> str:
        labels = f"{'sign' if self.sign else 'linear'}({self.noise:.3g})"
        where = f"n/p={self.n_over_p!r} λ={self.regularisation:.3g}"
        return f"{self.corner}: {self.inputs.name}, {labels}, {self.loss}, {where}"

    def predicted(self) -> dict[str, float]:
        """What the package says, and how good it says that is."""
        teacher = (hm.teachers.Sign if self.sign else hm.teachers.Linear)(noise=self.noise)
        model = hm.Model(features=self.inputs.features, teacher=teacher, loss=self.loss)
        point = {"n_over_p": self.n_over_p, "regularisation": self.regularisation}
        ds = hm.predict(model, **point, **self.inputs.ratios, on_failure="keep", workers=1)
        return {str(name): float(ds[name]) for name in ds}

    @cached_property
    def problem(self) -> multiprecision.Problem:
        return multiprecision.Problem(
            self.inputs.reference,
            self.loss,
            self.n_over_p,
            self.regularisation,
            sign=self.sign,
            noise=self.noise,
        )

    def start(self, guess: dict[str, float]) -> list[float] | None:
        """Where the reference begins beside a guess, None if that is no place to begin."""
        names = ("V", "Q", "clean_error") if self.sign else ("V", "generalisation_error")
        start = [guess[name] for name in names]
        return start if all(math.isfinite(value) and value > 0 for value in start) else None

    def solved(self, guess: dict[str, float] | None = None) -> dict[str, float]:
        """The truth, looked for beside a guess if there is one."""
        found = multiprecision.solve(self.problem, self.start(guess) if guess else None)
        return {name: float(getattr(found, name)) for name in JUDGED}


def errors(found: dict[str, float], truth: dict[str, float]) -> dict[str, float]:
    """Relative errors."""
    return {
        n: 0.0 if found[n] == truth[n] else abs(found[n] / truth[n] - 1) if truth[n] else math.inf
        for n in JUDGED
    }


def claimed(found: dict[str, float]) -> float:
    return max(found[name] for name in CLAIMS if name in found)


def wrong(found: dict[str, float], truth: dict[str, float]) -> list[str]:
    """What is not as right as a converged point must be; NaN is not."""
    allowed = max(ALLOWED, FACTOR * claimed(found))
    return [name for name, error in errors(found, truth).items() if not error <= allowed]


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Compute with the compiled kernel, or without."""
    built = compiled._extension
    compiled._extension = built if name == "compiled" else None
    try:
        yield
    finally:
        compiled._extension = built


# the corners


def power(rng: np.random.Generator, low: float, high: float) -> float:
    """A power of ten between two exponents."""
    return float(10.0 ** rng.uniform(low, high))


def almost_noiseless(rng: np.random.Generator) -> Case:
    """A: logistic loss, almost noiseless signs, data without end."""
    n_over_p = math.inf if rng.random() < 0.3 else power(rng, 6, 14)
    where = "A n=inf" if math.isinf(n_over_p) else "A n<inf"
    lam = power(rng, -6, 0)
    if rng.random() < 0.3:
        return Case(
            f"{where} hidden",
            hiding(float(2.0 ** -rng.integers(33, 41))),
            "logistic",
            n_over_p,
            lam,
        )
    return Case(where, LINEAR, "logistic", n_over_p, lam, noise=power(rng, -20, -6))


def interpolating(rng: np.random.Generator) -> Case:
    """B: as many samples as independent features, or almost, and hardly any regularisation."""
    inputs, loss = KINDS[rng.integers(len(KINDS))], str(rng.choice(["square", "huber", "absolute"]))
    off = rng.choice([-1, 1]) * power(rng, -14, -4) if rng.random() < 0.5 else 0.0
    labels = {"sign": bool(rng.random() < 0.5), "noise": power(rng, -3, 0)}
    n_over_p, lam = float(inputs.rank * (1.0 + off)), power(rng, -30, -8)
    return Case(f"B {loss}", inputs, loss, n_over_p, lam, **labels)


def separable(rng: np.random.Generator) -> Case:
    """C: hinge loss, almost noiseless signs and many samples, or beside separability."""
    if rng.random() < 0.5:
        noise = 0.0 if rng.random() < 0.3 else power(rng, -20, -6)
        n_over_p, lam = power(rng, 3, 10), power(rng, -16, -2)
        return Case("C many samples", WHITE, "hinge", n_over_p, lam, noise=noise)
    noise = power(rng, -6, 0)
    beside = 1.0 + rng.choice([-1, 1]) * power(rng, -5, -3)
    n_over_p, lam = float(threshold(noise) * beside), power(rng, -30, -16)
    return Case("C separability", WHITE, "hinge", n_over_p, lam, noise=noise)


def threshold(noise: float) -> float:
    """The n/p below which white data are separable: only a place to look at."""
    teacher = hm.teachers.Sign(noise=noise)
    model = hm.Model(features=WHITE.features, teacher=teacher, loss="hinge")
    return 1.0 / float(hm.separability_threshold(model, d_over_p=1.0).p_over_n)


def hardly_hidden(rng: np.random.Generator) -> Case:
    """D: covariates that hide next to nothing."""
    part = float(2.0 ** -rng.integers(37, 50))
    rounded = bool(rng.random() < 0.3)
    n_over_p = math.inf if rng.random() < 0.5 else power(rng, 2, 12)
    loss = str(rng.choice(["square", "huber", "absolute", "hinge"]))
    sign = bool(loss == "hinge" or rng.random() < 0.5)
    corner = f"D {'rounded' if rounded else 'exact'}"
    return Case(corner, hiding(part, rounded=rounded), loss, n_over_p, power(rng, -8, 0), sign)


CORNERS = {almost_noiseless: 0.2, interpolating: 0.45, separable: 0.2, hardly_hidden: 0.15}
"""What part of the points is in each."""


def drawn(points: int, seed: int = SEED) -> list[Case]:
    """So many points, in all corners."""
    rng = np.random.default_rng(seed)
    return [draw(rng) for draw, part in CORNERS.items() for _ in range(round(part * points))]


# the search


def main(points: int = POINTS) -> None:
    cases, begun = drawn(points), time.perf_counter()
    found = {}
    for name in compiled.ENGINES if compiled.engine() == "compiled" else ("numpy",):
        with engine(name):
            found[name] = [case.predicted() for case in cases]
    told = time.perf_counter() - begun
    guesses = next(iter(found.values()))
    truths = [case.solved(guess) for case, guess in zip(cases, guesses, strict=True)]
    for case, truth in list(zip(cases, truths, strict=True))[::EVERY]:
        again = case.solved()
        assert max(errors(again, truth).values()) < 1e-15, f"two solutions of {case}"
    for name, answers in found.items():
        heading(f"Corners of double precision, {len(cases)} points, {name} engine")
        report(cases, answers, truths)
    spent = time.perf_counter() - begun
    print(f"\n{told:.0f} s for the package, {spent - told:.0f} s for the reference")


def report(cases: list[Case], answers: list[dict], truths: list[dict]) -> None:
    """A line for each corner and two decades of lambda, and the worst points."""
    groups, bad = defaultdict(list), []
    for case, answer, truth in zip(cases, answers, truths, strict=True):
        decade = 2 * math.floor(math.log10(case.regularisation) / 2)
        groups[case.corner, decade].append((answer, truth))
        if answer["status"] == 0 and (names := wrong(answer, truth)):
            off = errors(answer, truth)
            bad.append(
                (max(off.values()), f"{case}: {', '.join(f'{n} {off[n]:.1e}' for n in names)}")
            )
    print(f"{'':16} {'λ':>12} points conv     V       Q       M     error   loss   claimed wrong")
    total = np.zeros(3, dtype=int)
    for (corner, decade), members in sorted(groups.items()):
        good = [(a, t) for a, t in members if a["status"] == 0]
        worst = [max((errors(a, t)[name] for a, t in good), default=math.nan) for name in JUDGED]
        worst.append(max((claimed(a) for a, _ in good), default=math.nan))
        counts = np.array([len(members), len(good), sum(bool(wrong(a, t)) for a, t in good)])
        total += counts
        columns = " ".join(f"{value:7.0e}" for value in worst)
        span = f"1e{decade}..{decade + 2}"
        print(f"{corner:16} {span:>12} {counts[0]:6d} {counts[1]:4d} {columns} {counts[2]:5d}")
    print(f"{'all':16} {'':12} {total[0]:6d} {total[1]:4d} {'':47} {total[2]:5d}")
    for _, line in sorted(bad, reverse=True, key=lambda pair: pair[0])[:10]:
        print(line)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
