"""
When can the training data be separated?
========================================

Above the line a hyperplane separates the two classes of training samples, and logistic regression
without a penalty has no solution. Label noise moves the line up.
"""

import numpy as np
import xarray as xr

import hiddenmanifold as hm

n_over_d = np.geomspace(0.05, 20, 40)
flips = [0.0, 0.05, 0.2]
lines = []
for flip in flips:
    teacher = hm.teachers.Sign(flip=flip)
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss="logistic")
    lines.append(hm.separability_threshold(model, n_over_d=n_over_d))

# %%
# With few samples per latent dimension the labels look random, and p = n/2 features separate them
# (Cover 1965).
lines = xr.concat(lines, xr.Variable("flip", flips, {"long_name": "labels flipped"}))
print("p/n at n/d = 0.05:", lines.p_over_n.isel(n_over_d=0).values.round(3))
hm.plot(lines)
