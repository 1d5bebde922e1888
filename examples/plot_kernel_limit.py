"""
How many features are enough?
=============================

With p → ∞ random features become a kernel. How close a finite number comes depends on the
activation, and `features_needed` says how many bring the error within ten per cent of the kernel's.
"""

import numpy as np
import xarray as xr

import hiddenmanifold as hm

p_over_n = [*np.geomspace(0.1, 30, 15), np.inf]  # inf is the kernel itself, a triangle on the edge
names, curves = ["sign", "erf", "relu"], []
for name in names:
    model = hm.Model(activation=name, projection="gaussian", teacher="sign", loss="square")
    best = hm.predict(model, n_over_d=3.0, p_over_n=p_over_n, regularisation="optimal")
    curves.append(best.generalisation_error)
    enough = hm.features_needed(model, n_over_d=3.0, within=0.1)
    print(f"{name}: {float(enough.p_over_n):.1f} features per sample")

hm.plot(xr.concat(curves, xr.Variable("activation", names)))
