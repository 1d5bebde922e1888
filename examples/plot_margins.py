"""
Support vectors, from theory
============================

The hinge loss pushes training samples to the margin y f = 1: the distribution of their margins
jumps there, and what lies beyond are samples without influence on the fit. New samples have no such
jump.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="hinge")
at = np.linspace(-2, 3, 201)
law = hm.margins(model, n_over_d=3.0, p_over_n=1.0, regularisation=0.1, at=at)

beyond = 1.0 - float(law.train_cdf.sel(y_f=1.0, method="nearest"))
print(f"share of training samples without influence: {beyond:.3f}")
hm.plot(law)
