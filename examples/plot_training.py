"""
The peak grows with time
========================

The error of gradient flow over the number of features: early there is no peak, late there is.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(
    activation="erf", projection="gaussian", teacher=hm.teachers.Linear(noise=0.2), loss="square"
)
ds = hm.training(
    model, n_over_d=1.0, p_over_n=np.geomspace(0.1, 10.0, 81), times=[1.0, 10.0, 100.0, 1e3, 1e4]
)
figure = hm.plot(ds, x="p_over_n", y="generalisation_error")
figure.axes[0].set_yscale("log")
figure
