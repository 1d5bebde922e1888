"""
Which loss?
===========

The test errors of square, logistic and hinge loss with noisy labels, each at its optimal λ,
compared with the Bayes-optimal error.
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
# At the optimal λ the loss matters less than the number of features, and all losses come close to
# the Bayes-optimal error.
together = xr.concat([*curves, bayes], xr.Variable("loss", [*losses, "Bayes-optimal"]))
print(together.isel(p_over_n=[0, 10, -1]).to_pandas().round(4))
hm.plot(together)
