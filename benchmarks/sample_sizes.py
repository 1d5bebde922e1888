"""Sample sizes beside other programs, and random populations beside exact simulation.

First the cases that the authors of pmsampsize, samplesizedev and pmsims print. Then random
populations: the predicted performance of logistic regression without a penalty, and that of single
fits of the same sizes on their whole population, whose mean, and median, over draws is compared.
Last, plans from samples at hand: how often their interval has the size that the population needs.
The arguments are the number of populations (100) and the seconds for each (3).
"""

from __future__ import annotations

import sys
from itertools import pairwise
from time import perf_counter

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.data.target_plan import target_plan
from hiddenmanifold.numerics.logistic_line import logistic_line
from hiddenmanifold.studies.performance import drawn, expected
from hiddenmanifold.studies.textbook import textbook_criteria

NAMES = ("calibration_slope", "auc", "brier_score", "probability_error")
Row = tuple[int, float, dict[str, np.ndarray]]
LARGEST = 20_000
"""Largest n of a random population."""
SLOWEST = 4e-10
"""Seconds of a fit, per n p (p + 30), roughly."""


def cases() -> None:
    """What others print, and what this package finds."""
    ten = hm.Population(prevalence=0.2, auc=0.85, predictors=10)
    twenty = hm.Population(prevalence=0.3, auc=0.8, predictors=20)
    linear = hm.Population(outcome="continuous", r2=0.5, predictors=15)
    print("pmsampsize 623, 662, 221:", textbook_criteria(predictors=24, r2=0.288, prevalence=0.174))
    print("pmsampsize 918, 401, 259:", textbook_criteria(predictors=25, r2=0.2))
    tested("pmsims 1173, later 1044", twenty, 0.85, 1075)
    tested("pmsims 271, later 239", linear, 0.9, 262)
    for told, population, goal, assurance in (
        ("samplesizedev 535 for the mean", ten, 0.9, None),
        ("samplesizedev 701", ten, (0.85, 1.15), 0.8),
        ("pmsims 271", linear, 0.9, 0.8),
        ("pmsims 1173", twenty, 0.85, 0.8),
    ):
        began = perf_counter()
        found = hm.sample_size(population, target={"calibration_slope": goal}, assurance=assurance)
        spent = perf_counter() - began
        print(f"{told}: {found.n} ± {found.stderr:.0f}, {spent:.1f} s")


def tested(told: str, population: hm.Population, goal: float, near: int) -> None:
    """The n at which a fifth of slopes are below the goal, and its error from a test sample.

    pmsims measures slopes on test samples of 30 000, whose chance shifts all slopes by about the
    same if the sample is the same for all studies. Without a penalty, the deviation of the slope
    measured on a sample from that of the same fit on the whole population.
    """
    model, sizes = population.model(), np.round(near * np.array([0.85, 1.0, 1.18])).astype(int)
    how = {"workers": 1, "progress": False}
    slopes, _ = drawn(population, model, sizes, 0.0, ("calibration_slope",), seeds=2000, **how)
    fifth = np.quantile(slopes["calibration_slope"], 0.2, axis=1)
    per_slope, level = np.polyfit(fifth, np.log(sizes), 1)
    n = np.exp(level + per_slope * goal)
    shift = test_error(population, near)
    print(
        f"{told}: {n:.0f} from 2000 studies; a test sample of 30000 shifts slopes by {shift:.4f}, "
        f"and n by {shift * per_slope:.1%}"
    )


def test_error(population: hm.Population, n: int) -> float:
    """Standard deviation of the slope of one fit over test samples of 30 000."""
    rng, rho = np.random.default_rng(0), population.teacher.rho
    fit = hm.predict(population.model(), n_over_p=n / population.predictors, regularisation=0.0)
    Q, M, b = float(fit.Q), float(fit.M), float(fit.intercept)
    nu, z = rng.standard_normal((2, 300, 30_000))
    nu *= np.sqrt(rho)
    f = b + M / rho * nu + np.sqrt(Q - M**2 / rho) * z
    y = population.teacher.sample(nu, rng)
    if population.outcome == "continuous":
        centred = f - f.mean(1, keepdims=True)
        return float(((centred * y).sum(1) / (centred**2).sum(1)).std())
    _, slopes = logistic_line(f, 1.0 * (y > 0), 1.0 * (y <= 0))
    return float(slopes.std())


def random_population(rng: np.random.Generator) -> tuple[hm.Population, int]:
    """A population, and a number of samples with 3 to 100 events per predictor."""
    p = int(np.round(np.exp(rng.uniform(np.log(5), np.log(500)))))
    prevalence = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
    auc = float(rng.uniform(0.6, 0.95))
    most = min(100.0, LARGEST * prevalence / p)
    events = float(np.exp(rng.uniform(np.log(min(3.0, 0.5 * most)), np.log(most))))
    population = hm.Population(prevalence=prevalence, auc=auc, predictors=p)
    return population, int(np.ceil(events * p / prevalence))


def judged(population: hm.Population, n: int, seconds: float) -> dict[str, np.ndarray] | None:
    """For each quantity: z-score of the mean, and the differences of mean and median; or none.

    None where some studies are separable, because then the mean does not exist.
    """
    p, model = population.predictors, population.model()
    draws = int(np.clip(seconds / (0.004 + SLOWEST * n * p * (p + 30)), 8, 1000))
    limit = expected(population, model, 0.0, np.array([n]), NAMES)
    how = {"seeds": draws, "workers": 1, "progress": False}
    found, separable = drawn(population, model, [n], 0.0, NAMES, **how)
    if separable.any() or not all(np.isfinite(values).all() for values in found.values()):
        return None
    columns = {}
    for name, values in found.items():
        value, row = float(limit[name][0]), values[0]
        error = row.std(ddof=1) / np.sqrt(draws)
        columns[name] = np.array(
            [(row.mean() - value) / error, row.mean() / value - 1, np.median(row) / value - 1]
        )
    return columns


def random_rows(populations: int, seconds: float) -> list[Row]:
    """Predictors, events per predictor and differences of random populations."""
    rng, rows = np.random.default_rng(29), []
    for _ in range(populations):
        population, n = random_population(rng)
        if (found := judged(population, n, seconds)) is not None:
            events = n * population.prevalence / population.predictors
            rows.append((population.predictors, events, found))
    return rows


def table(rows: list[Row]) -> None:
    """Print the differences by the number of predictors and of events per predictor."""
    print("rms z-score; mean difference of the mean, and of the median, from the limit")
    for what, column, cuts in (
        ("predictors", 0, (5, 15, 50, 150, 501)),
        ("events per predictor", 1, (0, 5, 10, 20, 101)),
    ):
        for low, high in pairwise(cuts):
            some = [row for row in rows if low <= row[column] < high]
            if not some:
                continue
            told = []
            for name in NAMES:
                z, mean, median = np.array([row[2][name] for row in some]).T
                rms = np.sqrt(np.mean(z**2))
                told.append(f"{name} {rms:.1f}; {mean.mean():+.2%}, {median.mean():+.2%}")
            print(f"{what} {low} to {high}, {len(some)} populations: {' | '.join(told)}")


def plans(samples: int = 24, n: int = 250) -> None:
    """Sizes planned from samples of normal predictors and of rare ones, beside the true size."""
    rng = np.random.default_rng(8)
    population = hm.Population(prevalence=0.3, auc=0.8, predictors=8)
    target = {"calibration_slope": 0.9}
    truth = hm.sample_size(population, target=target, finite_size=False).n
    teacher = population.teacher
    for kind in ("normal", "0 or 1"):
        found = []
        for _ in range(samples):
            normal = kind == "normal"
            X = rng.standard_normal((n, 8)) if normal else 1.0 * (rng.random((n, 8)) < 0.3)
            standard = X if normal else (X - 0.3) / np.sqrt(0.21)
            y = teacher.sample(standard @ np.full(8, np.sqrt(teacher.rho / 8)), rng)
            found.append(target_plan(hm.Data(X, y), target, finite_size=False))
        inside = sum(plan.n_low <= truth <= plan.n_high for plan in found)
        spread = np.std(np.log([plan.n for plan in found]))
        median = np.median([plan.n for plan in found])
        print(
            f"plans from {n} rows, predictors {kind}: median {median:.0f} for {truth}, "
            f"± {spread:.0%}; the interval has it in {inside} of {samples}"
        )


def main(populations: int = 100, seconds: float = 3.0) -> None:
    """Print the cases of others, and the table of random populations."""
    cases()
    rows = random_rows(populations, seconds)
    print(f"\n{len(rows)} of {populations} populations without separable studies")
    table(rows)
    plans()


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((int, float), sys.argv[1:], strict=False)))
