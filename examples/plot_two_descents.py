"""
Down, up, and down again
========================

The error of gradient flow over time: strong directions of the features are learned first, then the
noise in them, and a thousand times later the weak directions, which carry most of the field.
"""

import matplotlib.pyplot as plt
import numpy as np

import hiddenmanifold as hm

w = np.append(np.full(10, 1.0), np.full(3, 1e-3)) / 13
share = np.append(np.full(10, 0.3 / 10), np.full(3, 0.7 / 3))
model = hm.Model(
    features=hm.features.Covariance(w, share * w),
    teacher=hm.teachers.Linear(noise=0.05),
    loss="square",
)
at = {"n_over_p": 600 / 520}
ds = hm.training(model, **at, times=np.geomspace(0.01, 1e7, 120))
best, ridge = hm.best_time(model, **at), hm.predict(model, **at, regularisation="optimal")

figure, axes = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
axes.loglog(ds.time, ds.generalisation_error, label="gradient flow")
axes.plot(best.optimal_time, best.generalisation_error, "o", color="C0", label="best time to stop")
axes.axhline(ridge.generalisation_error, color="C1", ls="--", label="best ridge regression")
axes.set(xlabel="training time, $t$", ylabel="mean square error")
axes.legend(frameon=False)
figure
