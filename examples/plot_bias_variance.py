"""
Bias and variance across the interpolation threshold
====================================================

The mean square error of regression with a small λ, split into its parts. At p = n the variances due
to the random features and to the noise of the labels have their peak; the bias and the variance due
to the samples have none.
"""

import numpy as np

import hiddenmanifold as hm

teacher = hm.teachers.Linear(noise=0.25)
model = hm.Model(activation="relu", projection="gaussian", teacher=teacher, loss="square")
ratios = {"n_over_d": 1.0, "p_over_n": np.geomspace(0.1, 10, 161)}
ds = hm.bias_variance(model, **ratios, regularisation=1e-3)

# %%
# `hm.plot` stacks the parts.
hm.plot(ds)

# %%
# The mean of several fits on independent features has no peak.
many = hm.ensemble(model, **ratios, regularisation=1e-3, members=[1, 2, 8, np.inf])
figure = hm.plot(many, y="generalisation_error")
figure.axes[0].set(xscale="log", ylim=(0, 6))
figure
