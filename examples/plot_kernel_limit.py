"""
How many features are enough?
=============================

As p → ∞ random features become a kernel. `features_needed` returns the number of features whose
error is within ten per cent of the error of the kernel; it depends on the activation.
"""

import numpy as np
import xarray as xr

import hiddenmanifold as hm

p_over_n = [*np.geomspace(0.1, 30, 15), np.inf]  # inf is the kernel limit, a triangle at the edge
names, curves = ["sign", "erf", "relu"], []
for name in names:
    model = hm.Model(activation=name, projection="gaussian", teacher="sign", loss="square")
    best = hm.predict(model, n_over_d=3.0, p_over_n=p_over_n, regularisation="optimal")
    curves.append(best.generalisation_error)
    enough = hm.features_needed(model, n_over_d=3.0, within=0.1)
    print(f"{name}: {float(enough.p_over_n):.1f} features per sample")

hm.plot(xr.concat(curves, xr.Variable("activation", names)))
