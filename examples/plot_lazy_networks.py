"""
Deeper lazy networks learn more slowly
======================================

A very wide network in the lazy regime is a kernel machine with its neural tangent kernel. Each
layer of relu neurons enlarges the nonlinear part of the kernel, which acts as a penalty even where
every training sample is fitted exactly.
"""

import numpy as np
import xarray as xr

import hiddenmanifold as hm

n_over_d, depths, curves = np.geomspace(0.1, 30, 40), [1, 2, 4, 8], []
for depth in depths:
    kernel = hm.kernels.NTK("relu", hidden_layers=depth)
    model = hm.Model(kernel=kernel, teacher=hm.teachers.Linear(noise=0.2), loss="square")
    curves.append(hm.predict(model, n_over_d=n_over_d, regularisation=0).generalisation_error)
    _, linear, nonlinear = kernel.coefficients
    print(f"{depth} hidden layers: nonlinear over linear part {nonlinear / linear:.2f}")

hm.plot(xr.concat(curves, xr.Variable("hidden_layers", depths)))
