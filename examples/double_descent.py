"""Double descent of logistic and square loss on random features: theory, simulation, picture."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import hiddenmanifold as hm

N_OVER_D = 3.0
REGULARISATION = 1e-4
SIMULATED = [0.1, 0.2, 0.3, 0.37, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0]
SIZE = {"d": 128, "seeds": 24, "n_test": 2000}
COLOURS = {"logistic": "tab:red", "square": "tab:blue"}


def main() -> None:
    p_over_n = np.unique(np.concatenate([np.linspace(0.02, 3, 400), SIMULATED]))
    common = {"n_over_d": N_OVER_D, "regularisation": REGULARISATION}
    lines, dots = {}, {}
    for loss in COLOURS:
        model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss=loss)
        lines[loss] = hm.predict(model, p_over_n=p_over_n, **common)
        print(f"{loss}: theory at {len(p_over_n)} points done; fits at d = {SIZE['d']} …")
        dots[loss] = hm.compare(model, p_over_n=SIMULATED, progress=True, **common, **SIZE)
    print_table(lines, dots)
    path = Path("double_descent.png")
    draw(lines, dots, path)
    print(f"\npicture: {path}")


def print_table(lines, dots):
    print(
        f"\nSign labels on sign features, n/d = {N_OVER_D:g}, lambda = {REGULARISATION:g};", end=""
    )
    print(f" simulation: d = {SIZE['d']}, {SIZE['seeds']} seeds\n")
    print("         test error, logistic                 test error, square")
    print("  p/n    theory   simulated         z         theory   simulated         z")
    for ratio in SIMULATED:
        row = f"  {ratio:<6g}"
        for ds in dots.values():
            at = ds.sel(p_over_n=ratio)
            mean, error = float(at.generalisation_error), float(at.generalisation_error_stderr)
            row += f" {float(at.generalisation_error_theory):.4f}   {mean:.4f} ± {error:.4f}  "
            row += f"{float(at.generalisation_error_z):+5.1f}      "
        print(row)
    for loss, ds in lines.items():
        past_first_descent = ds.generalisation_error.sel(p_over_n=slice(0.3, None))
        peak = past_first_descent.idxmax("p_over_n").item()
        print(f"\n  {loss}: interpolation peak at p/n = {peak:.2f}", end="")
    worst = max(float(ds.quadrature_error.max()) for ds in lines.values())
    print(f"\n  estimated relative error of the theory: below {worst:.1e}")


def draw(lines, dots, path):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        2, 1, sharex=True, figsize=(6, 6), height_ratios=[3, 2], layout="constrained"
    )
    for axis, name in zip(axes, ("generalisation_error", "training_loss"), strict=True):
        for loss, colour in COLOURS.items():
            line, dot = lines[loss], dots[loss]
            axis.plot(line.p_over_n, line[name], color=colour, label=f"{loss} loss, theory")
            axis.errorbar(
                dot.p_over_n,
                dot[name],
                dot[f"{name}_stderr"],
                color=colour,
                fmt="o",
                markersize=4,
                capsize=2,
                label=f"{loss} loss, simulation",
            )
        axis.spines[["top", "right"]].set_visible(False)
    top, bottom = axes
    top.set_ylabel("generalisation error")
    top.set_title(
        rf"Sign features, Gaussian projection, $n/d={N_OVER_D:g}$, $\lambda=10^{{-4}}$", fontsize=11
    )
    top.legend(frameon=False)
    bottom.set_yscale("log")
    bottom.set_ylabel("training loss")
    bottom.set_xlabel("features per sample, $p/n$")
    bottom.set_xlim(0, 3.05)
    fig.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
