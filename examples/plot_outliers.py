"""
Outliers: which δ of the Huber loss?
====================================

One label of ten is an outlier. The error of Huber regression, each time at its best λ, has a flat
minimum over δ; small δ approach the absolute loss, large ones the square loss.
"""

import numpy as np
import xarray as xr

import hiddenmanifold as hm

noise = hm.noises.Mixture(weights=(0.9, 0.1), variances=(0.1, 25.0))
deltas = np.geomspace(0.02, 20, 16)
ratios = {"n_over_d": 3.0, "p_over_n": [0.3, 1.0, 3.0]}
best = hm.Optimal(minimise="clean_error")
curves = []
for delta in deltas:
    loss, teacher = hm.losses.Huber(delta), hm.teachers.Linear(noise=noise)
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)
    curves.append(hm.predict(model, **ratios, regularisation=best).clean_error)

# %%
# With few features the part of the labels that these cannot represent acts as additional noise, and
# the best δ is larger.
together = xr.concat(curves, xr.Variable("delta", deltas))
for p_over_n, at in zip(together.p_over_n.values, together.argmin("delta").values, strict=True):
    print(f"p/n = {p_over_n}: least error near delta = {deltas[at]:.2f}")
figure = hm.plot(together, x="delta")
figure.axes[0].set_xlabel(r"$\delta$ of the Huber loss")
figure
