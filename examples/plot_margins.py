"""
Predicting the number of support vectors
========================================

With the hinge loss many training samples have exactly the margin y f = 1, where the distribution
function jumps. Samples with a larger margin have no influence on the fit. New samples show no jump.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="hinge")
at = np.linspace(-2, 3, 201)
law = hm.margins(model, n_over_d=3.0, p_over_n=1.0, regularisation=0.1, at=at)

beyond = 1.0 - float(law.train_cdf.sel(y_f=1.0, method="nearest"))
print(f"fraction of training samples without influence: {beyond:.3f}")
hm.plot(law)
