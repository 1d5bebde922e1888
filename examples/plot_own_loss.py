"""
A loss of your own
==================

A custom loss consists of three functions of the margin: its value and its first and second
derivative. This example uses the exponential loss of boosting in theory and simulation.
"""

import numpy as np

import hiddenmanifold as hm

boosting = hm.losses.Custom(
    lambda margin: np.exp(-margin), lambda margin: -np.exp(-margin), lambda margin: np.exp(-margin)
)
model = hm.Model(activation="tanh", projection="orthogonal", teacher="logistic", loss=boosting)

lams = [0.1, 10.0]
lines = hm.predict(model, n_over_d=3.0, p_over_n=np.geomspace(0.1, 5, 60), regularisation=lams)
dots = hm.compare(
    model, n_over_d=3.0, p_over_n=[0.2, 0.5, 1.0, 3.0], regularisation=lams, d=60, seeds=10
)
print("largest difference, in standard errors:", float(abs(dots.generalisation_error_z).max()))
hm.plot(dots, theory=lines)
