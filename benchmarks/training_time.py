"""Training of random models beside drawn matrices of their spectra: z-scores of 100 configurations.

Nothing is shared with the package: features are drawn as κ1 Fᵀc/√d + κ⋆ z, coefficients by adaptive
quadrature, and the least squares problem is solved along its singular vectors, for gradient flow at
all times, or for numbers of steps by powers and by recursion. New samples are not drawn: errors are
those of the known covariance. The last lines are the time that 100 times take, by kind of features.
"""

from __future__ import annotations

import time

import numpy as np

import hiddenmanifold as hm
import spectral_oracle as oracle

CONFIGURATIONS, SEEDS, D = 100, 10, 150
ACTIVATIONS = {"erf": None, "tanh": np.tanh, "sign": np.sign, "relu": lambda x: np.maximum(x, 0.0)}
METHODS = ("flow", "descent", "heavy ball", "Nesterov")


def coefficients(name: str) -> tuple[float, float, float]:
    """κ0, κ1, κ⋆ of an activation."""
    from scipy import special

    sigma = ACTIVATIONS[name] or special.erf
    return oracle.kappas(sigma, kinks=(0.0,))


def weights(rule: dict, s: np.ndarray, y: np.ndarray, lam: float, at: float) -> np.ndarray:
    """Coefficients along singular vectors of value s, for the projections y of the labels."""
    x = s**2 + lam
    if "step" not in rule:
        return -np.expm1(-at * x) / x * s * y
    w = before = np.zeros_like(s)
    beta, ahead = rule.get("momentum", 0.0), rule.get("nesterov", False)
    for _ in range(int(at)):
        u = w + beta * (w - before) * ahead
        w, before = w + beta * (w - before) - rule["step"] * (x * u - s * y), w
    return w


def drawn(rng, kind, kappas, sizes, *, noise, lam, rule, times):
    """Test errors, squared norms and training losses of one draw at some times."""
    n, p, d = sizes
    _, k1, ks = kappas
    F, theta = oracle.matrix(kind, d, p, rng), rng.standard_normal(d)
    theta *= np.sqrt(d) / np.linalg.norm(theta)
    c = rng.standard_normal((n, d))
    X = k1 * c @ F / np.sqrt(d) + ks * rng.standard_normal((n, p))
    y = c @ theta / np.sqrt(d) + np.sqrt(noise) * rng.standard_normal(n)
    U, s, Vt = np.linalg.svd(X / np.sqrt(p), full_matrices=False)
    out = []
    for at in times:
        w = Vt.T @ weights(rule, s, U.T @ y, lam, at)
        seen = k1 * F @ w / np.sqrt(d * p)  # of c
        error = ((seen - theta / np.sqrt(d)) ** 2).sum() + ks**2 * (w @ w) / p + noise
        loss = ((y - X @ w / np.sqrt(p)) ** 2).sum() + lam * (w @ w)
        out.append((error, w @ w / p, 0.5 * loss / n))
    return np.array(out)


def compared(rng) -> np.ndarray:
    """The z-scores of one random configuration, and a line about it."""
    name, kind = rng.choice(list(ACTIVATIONS)), rng.choice(["gaussian", "orthogonal"])
    n, p = (round(D * 10 ** rng.uniform(-0.4, 0.4)) for _ in range(2))
    noise, lam = rng.choice([0.0, 0.1, 0.5]), rng.choice([0.0, 0.0, 0.01, 0.3])
    kappas, method = coefficients(name), rng.choice(METHODS)
    model = hm.Model(
        activation=str(name), projection=str(kind), teacher=hm.teachers.Linear(noise), loss="square"
    )
    ratios = {"n_over_p": n / p, "d_over_p": D / p, "regularisation": lam}
    rule: dict = {}
    if method == "flow":
        times = 10.0 ** np.sort(rng.uniform(-1.5, 3.0, 4))
    else:
        top = float(hm.training(model, **ratios, times=1.0).largest_eigenvalue) + lam
        rule = {"step": rng.uniform(0.2, 0.8) * 2.0 / top}
        rule |= {} if method == "descent" else {"momentum": float(rng.choice([0.3, 0.8]))}
        rule |= {"nesterov": True, "step": 0.5 * rule["step"]} if method == "Nesterov" else {}
        times = np.unique((10.0 ** rng.uniform(0.0, 2.0, 4)).round())
    theory = hm.training(model, **ratios, times=times, **rule)
    expected = np.stack([theory[q] for q in ("generalisation_error", "q_w", "training_loss")], 1)
    found = np.array(
        [
            drawn(
                rng,
                str(kind),
                kappas,
                (n, p, D),
                noise=noise,
                lam=lam,
                rule=rule,
                times=times.tolist(),
            )
            for _ in range(SEEDS)
        ]
    )
    error = found.std(0, ddof=1) / np.sqrt(SEEDS)
    z = (found.mean(0) - expected) / np.maximum(error, 1e-11)
    off = np.abs(found.mean(0) / expected - 1)[..., 0].max()
    print(
        f"{name:5} {kind:10} {method:10} n {n:4} p {p:4} noise {noise:.1f} λ {lam:4.2f}: largest "
        f"z {np.abs(z).max():.1f}, error off by {off:.1%} at most",
        flush=True,
    )
    return z


def durations() -> None:
    """Seconds that 100 times take."""
    times = np.geomspace(1e-3, 1e8, 100)
    layer, i = hm.features.Layer, np.arange(1.0, 201.0)
    linear = {"teacher": "linear", "loss": "square"}
    kinds = {
        "random features": hm.features.RandomFeatures("erf", "gaussian"),
        "two layers": hm.features.Deep([layer("tanh", width=1.5), layer("erf")]),
        "200 atoms": hm.features.Covariance(i**-1.0, i**-2.0 / np.sum(i**-1.0)),
    }
    for name, features in kinds.items():
        model = hm.Model(features=features, **linear)
        ratios = {"n_over_d": 1.0} | ({} if features.fixed_ratio else {"p_over_n": 2.0})
        seconds = []
        for _ in range(3):
            start = time.process_time()
            hm.training(model, **ratios, times=times, workers=1)
            seconds.append(time.process_time() - start)
        print(f"{name}: 100 times in {min(seconds):.3f} s")


def main() -> None:
    """All configurations, and durations."""
    rng = np.random.default_rng(7)
    scores = np.concatenate([compared(rng).ravel() for _ in range(CONFIGURATIONS)])
    rms = np.sqrt(np.mean(scores**2))
    print(
        f"{CONFIGURATIONS} configurations, {len(scores)} z-scores: root mean square {rms:.2f}, "
        f"largest {np.abs(scores).max():.1f}"
    )
    durations()


if __name__ == "__main__":
    main()
