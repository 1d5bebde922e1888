"""
How much regularisation?
========================

The test error against λ for three numbers of features. The theory gives the optimal λ without a
grid.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
points = {"n_over_d": 3.0, "p_over_n": [0.3, 1.0, 3.0]}

best = hm.predict(model, **points, regularisation="optimal")
for at in (best.sel(p_over_n=ratio) for ratio in points["p_over_n"]):
    lam, error = float(at.optimal_regularisation), float(at.generalisation_error)
    print(f"p/n = {float(at.p_over_n)}: smallest error {error:.4f} at λ = {lam:.3f}")

# %%
# Too small a λ costs most where the features just suffice to separate the data; too large a λ costs
# at every number of features.
curves = hm.predict(model, **points, regularisation=np.geomspace(1e-5, 1e2, 60))
hm.plot(curves, x="regularisation", y="generalisation_error")
