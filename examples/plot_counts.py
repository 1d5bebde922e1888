"""
Poisson regression of counts
============================

The deviance of new counts peaks near the threshold beyond which the estimator without a penalty no
longer exists. A larger λ removes the peak, as it does for other losses.
"""

import numpy as np

import hiddenmanifold as hm

counts = hm.teachers.Poisson("softplus", slope=2.0)
model = hm.Model(
    activation="tanh", projection="gaussian", teacher=counts, loss="poisson", intercept=True
)
ratios = {"n_over_d": 3.0, "p_over_n": np.geomspace(0.1, 5, 20)}
ds = hm.predict(model, **ratios, regularisation=[0.02, 0.2], observables="deviance")

# %%
# Without a penalty there is no minimum from the dotted line on: weights that grow for ever fit the
# counts of zero better and better.
threshold = float(hm.existence_threshold(model, n_over_d=3.0).p_over_n)
print(f"no minimum without a penalty from p/n = {threshold:.3f}")
figure = hm.plot(ds, y="deviance")
figure.axes[0].axvline(threshold, color="grey", linestyle=":", linewidth=1)
figure
