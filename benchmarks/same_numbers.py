"""Did a redesign change a number?

``python benchmarks/same_numbers.py save FILE`` computes a sample of everything that the package
answers and saves it; ``compare FILE`` computes it again, perhaps at another commit, and prints the
largest difference of each quantity. Only public names are used, so that old commits can run it. The
names of subjects may follow, to do only these; the default is all but the figures.
"""

import sys
import warnings

import numpy as np
import xarray as xr

import hiddenmanifold as hm

TOLERANCE = 1e-11
UNSTABLE = ("seconds", "iterations", "residual", "quadrature_error", "conditioning_error")
"""Not results but reports on how they were computed."""


def features(rng: np.random.Generator, rho: float):
    """Features of every kind, with random parameters, and whether they fix the ratio d/p."""
    kind = rng.choice(["random", "covariance", "deep", "projected"], p=[0.7, 0.1, 0.1, 0.1])
    activation = str(rng.choice(list(hm.activations.REGISTRY)))
    projection = str(rng.choice(list(hm.projections.REGISTRY)))
    i = np.arange(1, 61)
    w = i ** -rng.uniform(0.3, 1.5)
    w /= w.sum()
    seen = i**-0.5 / np.sum(i**-0.5)
    covariance = hm.features.Covariance(w, rho * rng.uniform(0.5, 1) * seen * w, rho)
    if kind == "random":
        return {"activation": activation, "projection": projection}, False
    if kind == "covariance":
        return {"features": covariance}, True
    if kind == "deep":
        layers = [
            hm.features.Layer("tanh", width=rng.uniform(0.5, 2)),
            hm.features.Layer(activation, "gaussian"),
        ]
        return {"features": hm.features.Deep(layers)}, False
    return {"features": hm.features.Projected(covariance, "erf")}, False


def bump(nu):
    return 0.05 + 0.9 / (1.0 + np.exp(0.3 - 2.0 * nu))


def random_model(rng: np.random.Generator):
    """A model of random ingredients, and whether its features fix d/p."""
    rho = float(np.exp(rng.uniform(-1, 1)))
    threshold = float(rng.choice([0.0, rng.normal()]))
    flip = float(rng.choice([0.0, rng.uniform(0.0, 0.3)]))
    noise = float(rng.choice([0.0, np.exp(rng.uniform(-4, 1))]))
    slope = float(np.exp(rng.uniform(-1, 3)))
    delta = float(np.exp(rng.uniform(-2, 1)))
    teachers = [
        hm.teachers.Sign(noise=noise, flip=flip, threshold=threshold, rho=rho),
        hm.teachers.Logistic(slope=slope, threshold=threshold, flip=flip, rho=rho),
        hm.teachers.Linear(noise=noise, rho=rho),
        hm.teachers.Mixture(prior=rng.uniform(0.2, 0.8), rho=rho),
        hm.teachers.Custom(bump, rho=rho),
    ]
    teacher = teachers[rng.choice(5, p=[0.42, 0.15, 0.28, 0.1, 0.05])]
    losses = ["square", hm.losses.Huber(delta), "absolute"]
    if not isinstance(teacher, hm.teachers.Linear):
        losses += ["logistic", "logistic", "hinge", "hinge", "squared_hinge"]
        losses += [hm.losses.SmoothedHinge(delta)]
    given, fixed = features(rng, rho)
    loss, intercept = losses[rng.integers(len(losses))], bool(rng.random() < 0.4)
    return hm.Model(**given, teacher=teacher, loss=loss, intercept=intercept), fixed


def ratios(rng: np.random.Generator, points: int, fixed: bool, *, wide=2.0, limits=False) -> dict:
    """Random ratios, zipped; some infinite."""

    def draw():
        values = 10.0 ** rng.uniform(-wide, wide, points)
        return xr.DataArray(values, dims="point")

    found = {"n_over_p": draw()} | ({} if fixed else {"d_over_p": draw()})
    if limits:
        found["n_over_p"][0] = np.inf
    return found


def classes(model: hm.Model) -> bool:
    return not isinstance(model.teacher, hm.teachers.Linear)


def predictions(seed: int):
    rng = np.random.default_rng(seed)
    model, fixed = random_model(rng)
    lam = 10.0 ** rng.uniform(-8, 3, 25)
    lam[:4] = [0.0, 0.0, np.inf, 1e-3]
    where = ratios(rng, 25, fixed)
    where["n_over_p"][4] = np.inf
    observables = ["test_loss"] + (["auc", "calibration_error"] if classes(model) else [])
    some = xr.DataArray(lam, dims="point")
    yield hm.predict(
        model, regularisation=some, observables=observables, on_failure="keep", **where
    )
    inside = {name: values[5:11] for name, values in where.items()}
    yield hm.sensitivity(model, regularisation=some[5:11], on_failure="keep", **inside)
    if classes(model):
        at = [-0.5, 0.0, 1.0]
        yield hm.margins(
            model,
            at=at,
            regularisation=some[5:8],
            on_failure="keep",
            **{name: values[5:8] for name, values in where.items()},
        )


def best_lambda(seed: int):
    rng = np.random.default_rng(10_000 + seed)
    model, fixed = random_model(rng)
    scored = ["test_loss", "calibration_error"] if classes(model) else ["test_loss"]
    wanted = str(rng.choice(["generalisation_error"] * 5 + ["clean_error", *scored]))
    where = ratios(rng, 4, fixed, wide=1.0)
    best = hm.predict(model, regularisation=hm.Optimal(wanted), on_failure="keep", **where)
    kept = [name for name in (wanted, "status") if name in best]
    yield best[kept]


def thresholds(seed: int):
    rng = np.random.default_rng(20_000 + seed)
    model, fixed = random_model(rng)
    line = {} if fixed else {"n_over_d": 10.0 ** rng.uniform(-1.5, 1.5, 4)}
    if classes(model):
        found = hm.separability_threshold(model, on_failure="keep", **line)
        yield (
            found.to_dataset(name="separable")
            if isinstance(found, xr.DataArray)
            else (found[["p_over_n"]].rename(p_over_n="separable"))
        )
    held = {} if fixed else {"n_over_d": [2.0]}
    peak = hm.interpolation_peak(model, regularisation=[0.0, 1e-3], on_failure="keep", **held)
    yield peak.rename({"p_over_n": "peak_p_over_n", "generalisation_error": "peak_error"})
    if not fixed:
        needed = hm.features_needed(model, n_over_d=[2.0], on_failure="keep")
        yield needed.rename({name: f"features_{name}" for name in needed.data_vars})
        error = float(
            hm.predict(
                model, n_over_d=4.0, p_over_d=2.0, regularisation=0.1, on_failure="keep"
            ).generalisation_error
        )
        for lam in (0.1, "optimal"):
            needed = hm.samples_needed(
                model, target_error=error, regularisation=lam, p_over_d=2.0, on_failure="keep"
            )
            yield needed.rename({name: f"samples_{name}" for name in needed.data_vars})


def bayes(seed: int):
    rng = np.random.default_rng(30_000 + seed)
    model, fixed = random_model(rng)
    try:
        found = hm.bayes_optimal(model, on_failure="keep", **ratios(rng, 4, fixed, wide=1.3))
    except hm.HiddenManifoldError:  # for these features, or for a mixture, there is none
        return
    yield found.rename({name: f"bayes_{name}" for name in found.data_vars})


def simulations(seed: int):
    rng = np.random.default_rng(40_000 + seed)
    model, fixed = random_model(rng)
    where = {"n_over_p": 1.5} if fixed else {"n_over_d": 2.0, "p_over_n": 0.7}
    if isinstance(model.features, hm.features.RandomFeatures | hm.features.Deep):
        where["d"] = 32
    margins = [0.0, 1.0] if classes(model) else None
    found = hm.simulate(
        model,
        regularisation=[1e-3, 0.3],
        seeds=2,
        n_test=200,
        margins=margins,
        observables=["test_loss"],
        workers=1,
        progress=False,
        **where,
    )
    yield found.rename({name: f"simulated_{name}" for name in found.data_vars})


def real_data(seed: int):
    from sklearn import datasets

    X, y = (datasets.load_diabetes, datasets.load_breast_cancer)[seed % 2](return_X_y=True)
    data = hm.Data(X, y, scale="standard")
    n = np.geomspace(50, 4 * len(y), 6).round()
    for loss in ("square",) if seed % 2 == 0 else ("square", "logistic"):
        found = hm.learning_curve(data, n=n, loss=loss, on_refusal="keep")
        yield found.rename({name: f"data_{loss}_{name}" for name in found.data_vars})


def figures(number: int):
    from hiddenmanifold.figures import MODULES

    recipe = MODULES[number + 1]
    for part, found in recipe.compute(recipe.QUICK).items():
        yield found.rename({name: f"figure_{number + 1}_{part}_{name}" for name in found.data_vars})


SUBJECTS = {
    predictions: 80, best_lambda: 50, thresholds: 24, bayes: 40, simulations: 24, real_data: 2,
    figures: 7,
}  # fmt: skip


def numbers(names: list[str]) -> dict[str, np.ndarray]:
    """Everything, as flat arrays named by subject, seed and quantity."""
    found = {}
    for subject, count in SUBJECTS.items():
        if subject.__name__ not in names:
            continue
        for seed in range(count):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    answers = list(subject(seed))
                except hm.HiddenManifoldError as error:
                    print(f"{subject.__name__} {seed}: {error}", file=sys.stderr)
                    continue
            for part, ds in enumerate(answers):
                for name, values in ds.data_vars.items():
                    if values.dtype.kind in "fib" and not str(name).endswith(UNSTABLE):
                        key = f"{subject.__name__}/{name}/{seed}/{part}"
                        found[key] = np.asarray(values.values, float).ravel()
        print(f"{subject.__name__} done", file=sys.stderr, flush=True)
    return found


def compare(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> bool:
    """Print the largest relative difference of every quantity; whether all are within 1e-11.

    A derivative is a difference of errors, so that its digits are those of an error.
    """
    subjects = {key.split("/")[0] for key in new}
    rows, good = {}, True
    for key in sorted(set(old) | set(new)):
        subject, name, seed, _ = key.split("/")
        if subject not in subjects:
            continue
        row = rows.setdefault((subject, name), [0, 0, 0, 0.0, "", 0])
        if key not in old or key not in new or old[key].shape != new[key].shape:
            row[1] += 1
            continue
        a, b = old[key], new[key]
        row[0] += a.size
        lost = np.isfinite(a) != np.isfinite(b)
        row[2] += int(lost.sum())
        with np.errstate(all="ignore"):
            off = np.abs(a - b) / np.maximum(np.abs(a), 1.0 if "_by_log_" in name else 1e-8)
        off = np.where(a == b, 0.0, off)
        off = off[np.isfinite(off)]
        row[5] += int((off > TOLERANCE).sum())
        if off.max(initial=0.0) > row[3]:
            row[3], row[4] = float(off.max()), seed
    print(f"{'quantity':58} {'values':>7} {'absent':>6} {'nan≠':>5} {'>1e-11':>6} largest (seed)")
    for (subject, name), (count, absent, lost, off, seed, many) in rows.items():
        bad = absent or lost or off > TOLERANCE
        good &= not bad
        if bad or "-v" in sys.argv:
            counts = f"{count:7} {absent:6} {lost:5} {many:6}"
            print(f"{subject + ' ' + name:58} {counts} {off:.1e} ({seed})")
    total = sum(row[0] for row in rows.values())
    print(
        f"{total} values of {len(rows)} quantities; {'all equal to 1e-11' if good else 'see above'}"
    )
    return good


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in ("save", "compare"):
        print(__doc__)
        return
    task, path, *some = [word for word in sys.argv[1:] if word != "-v"]
    names = some or [subject.__name__ for subject in SUBJECTS if subject is not figures]
    found = numbers(names)
    if task == "save":
        np.savez_compressed(path, **found)
    elif not compare(dict(np.load(path)), found):
        sys.exit(1)


if __name__ == "__main__":
    main()
