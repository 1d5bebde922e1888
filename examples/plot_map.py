"""
A map of the test error
=======================

The test error on a grid of ten thousand points takes about a second. Its peak follows the line on
which the training data become separable.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
n_over_d, p_over_n = np.linspace(0.1, 6, 100), np.linspace(0.03, 2, 100)
ds = hm.predict(model, n_over_d=n_over_d, p_over_n=p_over_n, regularisation=1e-4)
line = hm.separability_threshold(model, n_over_d=n_over_d)

# %%
# Predictions on a fine grid are drawn as a map, and a threshold as a line in it.
hm.plot([ds, line], y="generalisation_error")
