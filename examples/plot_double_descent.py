"""
Double descent, predicted and simulated
=======================================

With little regularisation the test error rises to a peak where the features just suffice to fit
every training sample, and falls again beyond it. Lines are the theory, points are simulations.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
lams = [1e-4, 1e-1]
lines = hm.predict(model, n_over_d=3.0, p_over_n=np.geomspace(0.1, 10, 200), regularisation=lams)

# %%
# Each point is the mean over ten data sets of n = 150 samples, with its standard error.
dots = hm.compare(
    model, n_over_d=3.0, p_over_n=[0.2, 0.5, 0.8, 1.2, 2, 5], regularisation=lams, d=50, seeds=10
)
print("largest difference, in standard errors:", float(abs(dots.generalisation_error_z).max()))
figure = hm.plot(dots, y="generalisation_error", theory=lines)
figure.axes[0].set_ylim(0.1, 0.6)  # room for the legend
figure
