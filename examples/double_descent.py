"""Double descent of logistic and ridge classification on random features: table and picture."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import hiddenmanifold as hm

N_OVER_D = 3.0
REGULARISATION = 1e-4
TABLE = [0.1, 0.2, 0.37, 0.5, 1.0, 1.5, 2.0, 3.0]
COLOURS = {"logistic": "tab:red", "square": "tab:blue"}


def main() -> None:
    p_over_n = np.unique(np.concatenate([np.linspace(0.02, 3, 400), TABLE]))
    curves = {}
    for loss in COLOURS:
        model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss=loss)
        curves[loss] = hm.predict(
            model, n_over_d=N_OVER_D, p_over_n=p_over_n, regularisation=REGULARISATION
        )
    print_table(curves)
    path = Path("double_descent.png")
    draw(curves, path)
    print(f"\npicture: {path}")


def print_table(curves):
    print(f"Classification of sign labels on sign features, n/d = {N_OVER_D:g}, ", end="")
    print(f"lambda = {REGULARISATION:g}\n")
    print("  p/n    test error            training loss")
    print("         logistic  square      logistic   square")
    for ratio in TABLE:
        rows = [curves[loss].sel(p_over_n=ratio, method="nearest") for loss in COLOURS]
        errors = "  ".join(f"{float(row.generalisation_error):.5f} " for row in rows)
        losses = "  ".join(f"{float(row.training_loss):.3e}" for row in rows)
        print(f"  {ratio:<6g} {errors}   {losses}")
    for loss, ds in curves.items():
        past_first_descent = ds.generalisation_error.sel(p_over_n=slice(0.3, None))
        peak = past_first_descent.idxmax("p_over_n").item()
        print(f"\n  {loss}: interpolation peak at p/n = {peak:.2f}", end="")
    worst = max(float(ds.quadrature_error.max()) for ds in curves.values())
    print(f"\n  estimated relative error of every number: below {worst:.1e}")


def draw(curves, path):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    fig, (top, bottom) = plt.subplots(
        2, 1, sharex=True, figsize=(6, 6), height_ratios=[3, 2], layout="constrained"
    )
    for loss, ds in curves.items():
        top.plot(ds.p_over_n, ds.generalisation_error, color=COLOURS[loss], label=f"{loss} loss")
        bottom.semilogy(ds.p_over_n, ds.training_loss, color=COLOURS[loss])
    top.set_ylabel("generalisation error")
    top.set_title(
        rf"Sign features, Gaussian projection, $n/d={N_OVER_D:g}$, $\lambda=10^{{-4}}$", fontsize=11
    )
    top.legend(frameon=False)
    bottom.set_ylabel("training loss")
    bottom.set_xlabel("features per sample, $p/n$")
    bottom.set_xlim(0, 3)
    for axis in (top, bottom):
        axis.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
