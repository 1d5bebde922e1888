"""
Which loss?
===========

Square, logistic and hinge loss on the same data with noisy labels, each at its own best λ, beside
what no estimator can beat.
"""

import numpy as np
import xarray as xr

import hiddenmanifold as hm

teacher = hm.teachers.Sign(flip=0.05)
ratios = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.1, 10, 20)}
losses = ["square", "logistic", "hinge"]
curves = []
for loss in losses:
    model = hm.Model(activation="erf", projection="gaussian", teacher=teacher, loss=loss)
    curves.append(hm.predict(model, **ratios, regularisation="optimal").generalisation_error)
bayes = hm.bayes_optimal(model, **ratios).generalisation_error

# %%
# With λ chosen well the loss matters less than the number of features, and all come close to the
# bound.
together = xr.concat([*curves, bayes], xr.Variable("loss", [*losses, "Bayes-optimal"]))
print(together.isel(p_over_n=[0, 10, -1]).to_pandas().round(4))
hm.plot(together)
