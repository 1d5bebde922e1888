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


def main() -> None:
    """Print the table, and the root mean square of all z-scores at each size."""
    scores = {d: [] for d in SEEDS}
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
                gaps.append(f"{mean / theory - 1:+.1%}")
            print(
                f"  {kernel!r}, {teacher!r}, {loss}, λ {lam:g}: {theory:.4f} | "
                f"{' | '.join(parts)} | {' '.join(gaps)}",
                flush=True,
            )
    for d, values in scores.items():
        rms = np.sqrt(np.mean(np.square(values)))
        print(
            f"d = {d}: {len(values)} z-scores of {', '.join(MEASURED)}: root mean square "
            f"{rms:.2f}, largest {np.abs(values).max():.1f}"
        )


if __name__ == "__main__":
    main()
