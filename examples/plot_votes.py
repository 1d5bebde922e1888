"""
Mean and majority vote of several classifiers
=============================================

The mean of the scores errs less often than the majority of the predicted labels. Both approach the
same limit.
"""

import matplotlib.pyplot as plt
import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="hinge")
members = np.arange(1, 32, 2)
at = {"n_over_d": 3.0, "p_over_n": 0.5, "regularisation": 0.01}
ds = hm.ensemble(model, **at, members=members)
limit = hm.ensemble(model, **at, members=np.inf)

figure, axis = plt.subplots()
for name, label in (("vote_error", "majority vote"), ("generalisation_error", "mean score")):
    axis.plot(members, ds[name], "o-", label=label)
axis.axhline(float(limit.generalisation_error[0]), color="grey", linestyle=":", label="limit")
axis.set(xscale="log", xlabel="members", ylabel="rate of errors")
axis.legend()
figure
