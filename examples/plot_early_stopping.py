"""
Early stopping or ridge?
========================

The excess error over the penalty λ and the time t of training, in units of its minimum. Both ends
of the valley are known as methods: early stopping without a penalty, at the bottom, and ridge
regression, trained to the end, on the right. Where the field lies in the strong directions, as on
the right-hand side, stopping wins.
"""

import matplotlib.pyplot as plt
import numpy as np

import hiddenmanifold as hm

i = np.arange(1.0, 41.0)
share = i**-1.8 / np.sum(i**-1.8)
fields = {"in all directions alike": np.full(40, 1 / 40), "in the strong directions": share}
lam, times = np.geomspace(1e-2, 1e2, 33), np.geomspace(0.02, 2e2, 33)

figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True, layout="constrained")
for axes, (name, seen) in zip(panels, fields.items(), strict=True):
    features = hm.features.Covariance(1 / i, seen / i)
    model = hm.Model(features=features, teacher=hm.teachers.Linear(noise=0.3), loss="square")
    at = {"n_over_p": 0.5}
    ds = hm.training(model, **at, times=times, regularisation=lam)
    stop, ridge = hm.best_time(model, **at), hm.predict(model, **at, regularisation="optimal")
    z = ds.clean_error.transpose("time", "regularisation")
    least = min(float(found.clean_error.min()) for found in (ds, stop, ridge))
    levels = np.geomspace(1.0, 2.5, 15)
    shown = axes.contourf(lam, times, z / least, levels, cmap="viridis_r", extend="max")
    for x, y, found, colour, label in (
        (lam[0], float(stop.optimal_time), stop, "C1", "early stopping"),
        (float(ridge.optimal_regularisation), times[-1], ridge, "C3", "ridge"),
    ):
        text = f"{label}: {float(found.clean_error) / least:.3f}"
        axes.plot(x, y, "o", color=colour, clip_on=False, zorder=3, label=text)
    axes.set(xscale="log", yscale="log", xlabel=r"regularisation, $\lambda$", title=f"field {name}")
    axes.legend(loc="lower right")
panels[0].set_ylabel("training time, $t$")
figure.colorbar(shown, ax=panels, label="excess error over the least", ticks=[1, 1.2, 1.5, 2, 2.5])
figure
