"""
The coverage of a fitted quantile
=================================

A fit of the 80 % quantile lies above fewer than 80 % of new labels. The coverage approaches 80 %
(dotted line) with many samples per feature, or with a large λ.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(
    activation="tanh",
    projection="gaussian",
    teacher=hm.teachers.Linear(noise="laplace(0.5)"),
    loss=hm.losses.Quantile(0.8),
    intercept=True,
)
ratios = {"n_over_d": 3.0, "n_over_p": np.geomspace(0.5, 100, 40)}
ds = hm.predict(model, **ratios, regularisation=[1e-3, 0.1, 1.0], observables="coverage")

# %%
# Below one sample per feature a small λ fits every label, and half of the new ones are covered.
figure = hm.plot(ds, y="coverage")
figure.axes[0].axhline(0.8, color="grey", linestyle=":", linewidth=1)
figure
