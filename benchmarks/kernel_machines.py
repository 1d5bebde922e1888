"""Kernel machines of three sizes beside the theory: z-scores, and their trend with the dimension.

A machine is fitted on its own Gram matrix; nothing of the linear regime is assumed. Every line has
the predicted error and, for each d, the measured one with its standard error and z-score. The last
column is the difference at each d relative to the prediction, which is to fall with d.
"""

from __future__ import annotations

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.teachers import Linear, Sign

NTK, NNGP = hm.kernels.NTK, hm.kernels.NNGP
RBF, Laplace, Polynomial = hm.kernels.RBF, hm.kernels.Laplace, hm.kernels.Polynomial
ROOT_2 = np.sqrt(2.0)
N_OVER_D = 2.0
SEEDS = {200: 64, 400: 32, 800: 16}
NOISY = Linear(noise=0.2)
CONFIGURATIONS = {
    "relu ntk": [
        (NTK("relu"), NOISY, "square", 0.1),
        (NTK("relu"), Sign(), "square", 0.05),
        (NTK("relu"), NOISY, "square", 1e-8),
        (NTK("relu"), NOISY, "huber", 0.1),
        (NTK("relu"), Sign(), "logistic", 0.05),
        (NTK("relu"), Sign(), "hinge", 0.1),
    ],
    "deeper": [
        (NTK("relu", 2), NOISY, "square", 0.1),
        (NTK("relu", 5), Sign(noise=0.1), "logistic", 0.1),
        (NTK("tanh", 3), Sign(), "hinge", 0.1),
        (NTK("erf", 2), Sign(threshold=0.5), "logistic", 0.02),
        (NNGP("relu", 3), NOISY, "absolute", 0.2),
    ],
    "others": [
        (RBF(), NOISY, "square", 0.1),
        (RBF(0.7), Sign(), "hinge", 0.1),
        (Laplace(), NOISY, "square", 0.1),
        (Laplace(), Sign(), "logistic", 0.05),
        (Polynomial(3), Sign(), "logistic", 0.2),
    ],
}
MEASURED = ("generalisation_error", "training_loss", "Q", "M", "q_w")


def compared(kernel, teacher, loss, lam, d):
    """The comparison at one size, with an intercept."""
    model = hm.Model(kernel=kernel, teacher=teacher, loss=loss, intercept=True)
    options = {"d": d, "seeds": SEEDS[d], "n_test": 4000, "seed": 11, "progress": False}
    return hm.compare(model, n_over_d=N_OVER_D, regularisation=lam, **options)


def finite_width(d: int = 100, seeds: int = 30) -> None:
    """Ridge regression with the tangent features of relu networks, n = 2d and λ = .1."""
    rng, n, n_test, lam = np.random.default_rng(5), 2 * d, 1000, 0.1
    print(f"\nrelu networks of finite width, d = {d}; neurons: error")
    for neurons in (d // 10, d // 4, d, 4 * d, 16 * d):
        errors = []
        for _ in range(seeds):
            theta = rng.standard_normal(d)
            c = rng.standard_normal((n + n_test, d))
            y = NOISY.sample(c @ theta / np.linalg.norm(theta), rng)
            c /= np.linalg.norm(c, axis=1, keepdims=True)
            h, a = c @ rng.standard_normal((d, neurons)), rng.standard_normal(neurons)
            sent, passed = ROOT_2 * np.maximum(h, 0.0), ROOT_2 * (h > 0.0) * a
            K = (sent @ sent[:n].T + (passed @ passed[:n].T) * (c @ c[:n].T)) / neurons
            solved = np.linalg.solve(K[:n] + lam * np.eye(n), np.column_stack([np.ones(n), y[:n]]))
            b = solved[:, 1].sum() / solved[:, 0].sum()
            f = K[n:] @ (solved[:, 1] - b * solved[:, 0]) + b
            errors.append(np.mean((f - y[n:]) ** 2))
        print(f"  {neurons}: {np.mean(errors):.4f}({round(1e4 * np.std(errors) / seeds**0.5)})")


def main() -> None:
    """Print the table, and at each size the z-scores and the differences of all machines."""
    scores, relative = {d: [] for d in SEEDS}, {d: [] for d in SEEDS}
    for title, rows in CONFIGURATIONS.items():
        print(f"\n{title}, n/d = {N_OVER_D:g}")
        for kernel, teacher, loss, lam in rows:
            parts, gaps = [], []
            for d in SEEDS:
                ds = compared(kernel, teacher, loss, lam, d)
                assert int(ds.dropped) == 0, "a fit missed its minimum"
                theory, error = (
                    float(ds[f"generalisation_error{end}"]) for end in ("_theory", "_stderr")
                )
                mean = float(ds.generalisation_error)
                z = [float(ds[f"{name}_z"]) for name in MEASURED]
                scores[d] += z
                parts.append(f"{mean:.4f}({round(1e4 * error)}) z {z[0]:+.1f}")
                relative[d].append(mean / theory - 1)
                gaps.append(f"{relative[d][-1]:+.1%}")
            print(
                f"  {kernel!r}, {teacher!r}, {loss}, λ {lam:g}: {theory:.4f} | "
                f"{' | '.join(parts)} | {' '.join(gaps)}",
                flush=True,
            )
    for d, values in scores.items():
        rms = np.sqrt(np.mean(np.square(values)))
        print(
            f"d = {d}: {len(values)} z-scores of {', '.join(MEASURED)}: root mean square "
            f"{rms:.2f}, largest {np.abs(values).max():.1f}; errors differ by "
            f"{np.mean(relative[d]):+.1%} on average"
        )
    finite_width()


if __name__ == "__main__":
    main()
