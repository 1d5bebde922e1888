"""Covariances of two fits of random models, beside plain integrals in two dimensions.

Independent of the package's theory: from V, Q, M and the intercept of a single fit alone, the
scores of two fits at a common sample are integrated over on a plane, with explicit proximal maps.
The covariance that the package gives must solve its equation with these integrals. Ensembles of
random models are also simulated. `make verify` runs it.
"""

import sys
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.losses import REGISTRY

EDGES = np.array([-9.0, -6.5, -4.5, -3.0, -1.5, 0.0, 1.5, 3.0, 4.5, 6.5, 9.0])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(18)
CLOSE = 1e-8


GRID = np.concatenate([-np.geomspace(1e7, 60.0, 400), np.linspace(-60.0, 60.0, 4801)])


def logistic_slope(m, V):
    """h of the logistic loss at the margin m, by Newton's method from a table of its inverse."""
    grid = np.append(GRID, np.geomspace(60.0, 1e7, 400)[1:])
    t = np.interp(m, grid - V * special.expit(-grid), grid)  # the proximal margin
    for _ in range(4):
        h = special.expit(-t)
        t -= (t - V * h - m) / (1.0 + V * h * (1.0 - h))
    return special.expit(-t)


# h as a function of the margin y f (or of minus the residual, plus one), and where it bends
SLOPES = {
    "square": (lambda m, V: (1.0 - m) / (1.0 + V), lambda V: []),
    "hinge": (lambda m, V: np.clip((1.0 - m) / V, 0.0, 1.0), lambda V: [1.0 - V, 1.0]),
    "squared_hinge": (lambda m, V: np.maximum(1.0 - m, 0.0) / (1.0 + V), lambda V: [1.0]),
    "huber": (
        lambda m, V: np.clip((1.0 - m) / (1.0 + V), -1.0, 1.0),
        lambda V: [-V, 2.0 + V],
    ),
    "absolute": (lambda m, V: np.clip((1.0 - m) / V, -1.0, 1.0), lambda V: [1.0 - V, 1.0 + V]),
    "logistic": (
        logistic_slope,
        lambda V: [t - V * special.expit(-t) for t in np.arange(-36.0, 37.0, 4.0)],
    ),
}


def panels(cuts, centre, spread):
    """Nodes and weights of normal laws, on panels that are also cut at given places."""
    centre = np.reshape(centre, (-1, 1))
    inside = [np.clip((c - centre) / spread, -9.0, 9.0) for c in cuts]
    fixed = np.broadcast_to(EDGES, (len(centre), len(EDGES)))
    edges = np.sort(np.concatenate([fixed, *inside], axis=1))
    width = np.diff(edges)[..., None]
    z = edges[..., :-1, None] + 0.5 * width * (NODES + 1.0)
    w = 0.5 * width * WEIGHTS * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return centre + spread * z.reshape(len(centre), -1), w.reshape(len(centre), -1)


@dataclass
class Fit:
    """What is known of a single fit."""

    loss: str
    V: float
    Q: float
    M: float
    b: float
    rho: float
    label: object
    """P(y | nu is normal with a mean and a variance), or None for linear labels."""
    noise: float = 0.0
    weights: tuple = ((1.0, {1.0: 1.0, -1.0: 1.0}),)
    """Probabilities, and with each the weight of a sample of either label."""

    def common(self, Q12):
        """E[h1 h2] by an integral over the plane of both scores."""
        total = 0.0
        for probability, weight in self.weights:
            if self.label is None:  # residuals; a margin of 1 - u stands for the residual u
                tau2 = self.rho + self.noise + self.Q - 2.0 * self.M
                tau12 = self.rho + self.noise + Q12 - 2.0 * self.M
                total += probability * self.plane(weight[1.0], 1.0 + self.b, tau2, tau12, None)
            else:
                for y, a in weight.items():
                    total += probability * self.plane(a, y * self.b, self.Q, Q12, y)
        return total

    def plane(self, weight, centre, variance, covariance, y):
        """The integral over two margins of a given mean, variance and covariance."""
        V, (slope, bends) = weight * self.V, SLOPES[self.loss]
        bends = bends(V)
        (x1,), (w1,) = panels(bends, centre, np.sqrt(variance))
        centres = centre + covariance / variance * (x1 - centre)
        conditional = np.sqrt(variance - covariance**2 / variance)
        x2, w2 = panels(bends, centres, conditional)
        law = 1.0
        if y is not None:
            both = (x1[:, None] - centre) + (x2 - centre)
            left = self.rho - 2.0 * self.M**2 / (variance + covariance)
            law = self.label(y, self.M * both / (variance + covariance), left)
        return weight**2 * (w1 * slope(x1, V)) @ (w2 * law * slope(x2, V)).sum(1)


def common_of_two(fits, Q12):
    """E[h1 h2] of two different fits by an integral over the plane of both scores."""
    first, second = fits
    rho, noise, total = first.rho, first.noise, 0.0
    M = np.array([fit.M for fit in fits])
    Q = np.array([[first.Q, Q12], [Q12, second.Q]])
    if first.label is None:
        u = rho + noise + Q - M[:, None] - M
        return plane_of_two(fits, (1.0, 1.0), [1.0 + fit.b for fit in fits], u, None)
    for y in (1.0, -1.0):
        weights = [fit.weights[0][1][y] for fit in fits]
        field = np.linalg.solve(Q, M)
        law = lambda both: first.label(y, both @ field, rho - M @ field)  # noqa: B023, E731
        centre = [y * fit.b for fit in fits]
        total += plane_of_two(fits, weights, centre, Q, law)
    return total


def plane_of_two(fits, weights, centre, Q, law):
    """The integral over two margins of given means and covariances."""
    V = [weight * fit.V for weight, fit in zip(weights, fits, strict=True)]
    slopes, bends = zip(*(SLOPES[fit.loss] for fit in fits), strict=True)
    cuts = [bend(width) for bend, width in zip(bends, V, strict=True)]
    (x1,), (w1,) = panels(cuts[0], centre[0], np.sqrt(Q[0, 0]))
    centres = centre[1] + Q[0, 1] / Q[0, 0] * (x1 - centre[0])
    x2, w2 = panels(cuts[1], centres, np.sqrt(Q[1, 1] - Q[0, 1] ** 2 / Q[0, 0]))
    Z = 1.0
    if law is not None:
        away = np.broadcast_to((x1 - centre[0])[:, None], x2.shape), x2 - centre[1]
        Z = law(np.stack(away, axis=-1))
    inner = (w2 * Z * slopes[1](x2, V[1])).sum(1)
    return weights[0] * weights[1] * (w1 * slopes[0](x1, V[0])) @ inner


def sign_label(noise, flip, threshold):
    def label(y, mean, variance):
        z = (mean + y * threshold) / np.sqrt(np.maximum(variance, 0.0) + noise)
        return flip + (1.0 - 2.0 * flip) * special.ndtr(z)

    return label


def logistic_label(slope, threshold):
    x, w = np.polynomial.hermite_e.hermegauss(140)
    w = w / w.sum()

    def label(y, mean, variance):
        nodes = zip(np.sqrt(np.maximum(variance, 0.0)) * x, w, strict=True)
        return sum(v * special.expit(slope * (mean + z + y * threshold)) for z, v in nodes)

    return label


def random_configuration(rng):
    """A model with a point, and the law of its labels in the form above."""
    loss = rng.choice(list(SLOPES))
    rho = float(rng.choice([0.5, 1.0, 2.0]))
    noise, flip = float(rng.choice([0.0, 0.2, 1.0])), float(rng.choice([0.0, 0.1]))
    threshold = float(rng.choice([0.0, 0.4]))
    rule = rng.choice(["sign", "logistic", "linear"])
    if loss in ("hinge", "squared_hinge", "logistic") and rule == "linear":
        rule = "sign"
    if rule == "linear":
        teacher, label = hm.teachers.Linear(noise=noise, rho=rho), None
    elif rule == "sign":
        teacher = hm.teachers.Sign(noise=noise, flip=flip, threshold=threshold, rho=rho)
        label = sign_label(noise, flip, threshold)
    else:
        teacher = hm.teachers.Logistic(slope=2.0, threshold=threshold, rho=rho)
        label = logistic_label(2.0, threshold)
    activation = str(rng.choice(["erf", "sign", "relu", "tanh"]))
    projection = str(rng.choice(["gaussian", "orthogonal"]))
    model = hm.Model(
        activation=activation,
        projection=projection,
        teacher=teacher,
        loss=loss,
        intercept=bool(rng.random() < 0.3),
    )
    at = {
        "n_over_d": float(np.exp(rng.uniform(np.log(0.3), np.log(6.0)))),
        "p_over_n": float(np.exp(rng.uniform(np.log(0.15), np.log(6.0)))),
        "regularisation": float(10.0 ** rng.uniform(-3.0, 0.5)),
    }
    return model, at, label, (noise if rule == "linear" else 0.0)


def weighted(model, rng):
    """The model with weights of its samples, or none, and these as `Fit` has them."""
    choice = rng.integers(4)
    if choice == 0 or (choice < 3 and model.task is Task.REGRESSION):
        return model, Fit.weights
    parts = {**model.ingredients, "intercept": model.intercept}
    if choice == 3:
        values, probabilities = rng.uniform(0.2, 5.0, 3), rng.dirichlet(np.ones(3))
        weights = hm.weights.Independent(values, probabilities / probabilities.sum())
        both = ((p, {1.0: a, -1.0: a}) for a, p in zip(values, probabilities, strict=True))
        return hm.Model(**parts, weights=weights), tuple(both)
    if choice == 2:
        plus = model.teacher.label_marginals[0]
        return hm.Model(**parts, weights="balanced"), (
            (1.0, {1.0: 0.5 / plus, -1.0: 0.5 / (1.0 - plus)}),
        )
    negative, positive = rng.uniform(0.2, 5.0, 2)
    weights = ((1.0, {1.0: positive, -1.0: negative}),)
    return hm.Model(**parts, weights={-1: negative, 1: positive}), weights


def deviation(ds, model, label, noise, weights):
    """How far Q12 is from the solution of its equation with plain integrals, relative."""
    kappa_1, rho = model.activation.kappas[1], model.teacher.rho
    V, Q, M, b = (float(ds[name]) for name in ("V", "Q", "M", "intercept"))
    fit = Fit(str(ds.attrs["loss"]), V, Q, M, b, rho, label, noise, weights)
    # with D = V h the gain (n/d) (k1^2 V_s/V)^2 E[D1 D2] is this times E[h1 h2]
    gain = float(ds.n_over_d) * (kappa_1**2 * float(ds.V_s)) ** 2
    Q12 = float(ds.overlap)
    found, nearby = (M**2 / rho + gain * fit.common(q) for q in (Q12, 0.999 * Q12))
    slope = (found - nearby) / (0.001 * Q12)
    return abs(found - Q12) / (Q12 * (1.0 - slope))


def second_model(model, rng):
    """Another model of the same labels, with its λ and number of features."""
    margins = ["hinge", "squared_hinge", "logistic"] if model.task is Task.CLASSIFICATION else []
    parts = {
        "activation": str(rng.choice(["erf", "sign", "relu", "tanh"])),
        "projection": str(rng.choice(["gaussian", "orthogonal"])),
        "teacher": model.teacher,
        "loss": str(rng.choice([*margins, "square", "huber", "absolute"])),
        "intercept": bool(rng.random() < 0.3),
    }
    at = {
        "p_2_over_d": float(np.exp(rng.uniform(np.log(0.15), np.log(6.0)))),
        "regularisation_2": float(10.0 ** rng.uniform(-3.0, 0.5)),
    }
    return hm.Model(**parts), at


def deviation_of_two(ds, models, label, noise):
    """How far Q12 of two models is from the solution of its equation with plain integrals."""
    fits, scales = [], []
    for one, k in zip(models, (1, 2), strict=True):
        own = {name: float(ds[name].sel(fit=k)) for name in ("V", "Q", "M", "intercept")}
        loss = {v: name for name, v in REGISTRY.items()}[type(one.loss)]
        fits.append(Fit(loss, *own.values(), one.teacher.rho, label, noise))
        scales.append(one.activation.kappas[1] ** 2 * float(ds.V_s.sel(fit=k)))
    gain, base = float(ds.n_over_d) * np.prod(scales), fits[0].M * fits[1].M / fits[0].rho
    Q12 = float(ds.overlap)
    value, nearby = (base + gain * common_of_two(fits, q) for q in (Q12, 0.999 * Q12))
    return abs(value - Q12) / (Q12 * (1.0 - (value - nearby) / (0.001 * Q12)))


def deviations_of_two(count, seed):
    """The same as `deviations` for two different models on independent features."""
    rng, found = np.random.default_rng([seed, 2]), []
    while len(found) < count:
        model, at, label, noise = random_configuration(rng)
        second, more = second_model(model, rng)
        models, at = (model, second), at | more
        ds = hm.pair(*models, **at, on_failure="keep", workers=1, progress=False)
        status = int(ds.status)
        if status == 0 and float(ds.Q.min()) < 1e-90:  # one of the fits is a constant
            continue
        value = np.nan if status else deviation_of_two(ds, models, label, noise)
        found.append((value, models, at, status))
    return found


def deviations(count, seed):
    """Relative differences of Q12 between the package and plain integrals."""
    rng, of_weights = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    found = []
    while len(found) < count:
        model, at, label, noise = random_configuration(rng)
        model, weights = weighted(model, of_weights)
        ds = hm.ensemble(model, members=1, on_failure="keep", workers=1, progress=False, **at)
        ds = ds.squeeze()
        if int(ds.status) != 0:
            found.append((np.nan, model, at, int(ds.status)))
            continue
        found.append((deviation(ds, model, label, noise, weights), model, at, 0))
    return found


def z_scores(count, seed):
    """Differences of random ensembles from simulated ones, in standard errors, by quantity."""
    rng, found = np.random.default_rng(seed), {name: [] for name in MEASURED}
    of_weights = np.random.default_rng([seed, 1])
    schemes = (None, None, hm.resampling.Bootstrap(), hm.resampling.SubSample(0.6))
    for _ in range(count):
        model, at, *_ = random_configuration(rng)
        while model.features.mean != 0.0:  # whose intercept has corrections of the order 1/p
            model, at, *_ = random_configuration(rng)
        model, _ = weighted(model, of_weights)
        at |= {"n_over_d": min(at["n_over_d"], 3.0), "p_over_n": min(at["p_over_n"], 2.0)}
        at["regularisation"] = max(at["regularisation"], 0.03)  # where 1/d corrections are small
        scheme = schemes[rng.integers(4)]
        kinds = ("features", "samples", "both") if scheme is None else ("features", "none")
        drawn = {"d": SIZE, "seeds": SEEDS, "n_test": 800, "members": [1, 2, 4], "workers": 1}
        ds = hm.compare(
            model,
            **at,
            **drawn,
            independent=str(rng.choice(kinds)),
            resampling=scheme,
            progress=False,
        )
        add(found, ds)
    return found


def add(found, ds):
    """Put the z-scores of a comparison among others, as if there were infinitely many seeds."""
    for name, values in found.items():
        if f"{name}_z" in ds:
            p = stats.t.cdf(np.ravel(ds[f"{name}_z"].values), SEEDS - 1)
            values.extend(stats.norm.ppf(p).tolist())


def z_scores_of_two(count, seed):
    """The same for pairs of random models, on features of their own or on the same."""
    rng, found = np.random.default_rng([seed, 3]), {name: [] for name in MEASURED}
    for k in range(count):
        model, at, *_ = random_configuration(rng)
        second, more = second_model(model, rng)
        while model.features.mean != 0.0 or second.features.mean != 0.0:
            model, at, *_ = random_configuration(rng)
            second, more = second_model(model, rng)
        at |= {"n_over_d": min(at["n_over_d"], 3.0), "p_over_n": min(at["p_over_n"], 2.0)}
        at["regularisation"] = max(at["regularisation"], 0.03)
        more["regularisation_2"] = max(more["regularisation_2"], 0.03)
        independent = str(rng.choice(["features", "both"]))
        if k % 3 == 0:  # the same features
            parts = {**second.ingredients, "activation": model.activation}
            second = hm.Model(**{**parts, "projection": model.projection})
            del more["p_2_over_d"]
            independent = str(rng.choice(["none", "samples"]))
        drawn = {"d": SIZE, "seeds": SEEDS, "n_test": 800, "workers": 1, "progress": False}
        add(found, hm.compare(model, second=second, **at, **more, **drawn, independent=independent))
    return found


MEASURED = (
    *("overlap", "generalisation_error", "vote_error", "disagreement"),
    *("probability_difference", "score_difference", "Q", "M"),
)
SIZE, SEEDS = 100, 10


def extreme(rng):
    """A model with a point anywhere, its loss, rule and kind of labels included."""
    wide = rng.random() < 0.4
    rho = float(10.0 ** rng.uniform(-5, 5))
    noise = float(rng.choice([0.0, 10.0 ** rng.uniform(-9, 5)]))
    rule = rng.choice(["sign", "logistic", "linear", "laplace", "mixture"])
    teacher = {
        "sign": lambda: hm.teachers.Sign(noise=noise, rho=rho, threshold=float(rng.normal())),
        "logistic": lambda: hm.teachers.Logistic(slope=float(10.0 ** rng.uniform(-2, 3))),
        "linear": lambda: hm.teachers.Linear(noise=noise, rho=rho),
        "laplace": lambda: hm.teachers.Linear(noise=hm.noises.Laplace(10.0 ** rng.uniform(-2, 2))),
        "mixture": lambda: hm.teachers.Mixture(prior=float(rng.uniform(0.05, 0.95))),
    }[rule]()
    both = ["square", "huber", "absolute"]
    losses = (
        both if rule in ("linear", "laplace") else ["hinge", "squared_hinge", "logistic", *both]
    )
    model = hm.Model(
        activation=str(rng.choice(["erf", "sign", "relu", "identity"])),
        projection=str(rng.choice(["gaussian", "orthogonal"])),
        teacher=teacher,
        loss=str(rng.choice(losses)),
        intercept=bool(rng.random() < 0.3),
    )
    low, high = (-4.0, 4.0) if wide else (-0.5, 1.0)
    at = {
        "n_over_d": float(10.0 ** rng.uniform(low, high)),
        "p_over_n": float(10.0 ** rng.uniform(low, high)),
        "regularisation": float(rng.choice([0.0, 10.0 ** rng.uniform(-12, 8)])),
    }
    return model, at


def broken(count, seed):
    """Of pairs of fits of extreme models: how many are lost though the fit is known, or wrong.

    Wrong is what is not a number, an overlap outside of what two fits can have, and a negative
    variance.
    """
    rng, lost, wrong = np.random.default_rng([seed, 4]), [], []
    for _ in range(count):
        model, at = extreme(rng)
        shared = str(rng.choice(["features", "samples", "both"]))
        given = {**at, "on_failure": "keep", "workers": 1, "progress": False}
        single = hm.predict(model, **given)
        ds = hm.instability(model, independent=shared, **given)
        if int(single.status) == 0 and int(ds.status) != 0:
            lost.append((model, at, shared, int(ds.status)))
        if int(ds.status) != 0:
            continue
        Q, M, Q12 = (float(ds[name]) for name in ("Q", "M", "overlap"))
        rest = [float(ds[name]) for name in ds if name.endswith(("difference", "disagreement"))]
        fine = (not np.isfinite(Q)) or np.isfinite(rest).all()
        if np.isfinite(Q):
            fine &= M**2 / model.teacher.rho - 1e-9 * Q12 - 1e-15 * Q <= Q12 <= Q * (1 + 1e-9)
        if not fine or min(rest) < 0.0:
            wrong.append((model, at, shared))
    return lost, wrong


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    few = max(4, count // 6)
    for what, scores in (("", z_scores(few, 0)), (" of two models", z_scores_of_two(few, 0))):
        for name, values in scores.items():
            z = np.array(values)
            z = z[np.isfinite(z)]
            if z.size:
                told = f"rms {np.sqrt(np.mean(z**2)):.2f}, largest {np.abs(z).max():.1f}"
                print(f"simulated {name}{what}: {z.size} z-scores, {told}", flush=True)
    lost, bad = broken(2 * count, 0)
    print(f"{2 * count} extreme pairs: {len(lost)} lost beside known fits, {len(bad)} wrong")
    for case in (*lost, *bad):
        print("  ", *case)
    wrong = len(bad)
    for what, function in (("pairs", deviations), ("pairs of two models", deviations_of_two)):
        found = function(count, 0)
        values = np.array([value for value, *_ in found])
        lost = int(np.isnan(values).sum())
        print(
            f"{count} random {what}: {lost} not solved, largest deviation {np.nanmax(values):.1e}"
        )
        for value, model, at, status in found:
            if not value <= CLOSE:
                print(f"  {value:.1e} status {status} {model} {at}")
        wrong += lost + int((values > CLOSE).sum())
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
