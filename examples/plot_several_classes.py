"""
Three unequal classes: ridge regression, softmax and hinge
==========================================================

The error of ridge regression on one-hot targets peaks where there are as many features as samples.
Softmax, multinomial logistic regression, has no peak there, nor have support vector machines of
each class against all others.
"""

import matplotlib.pyplot as plt
import numpy as np

import hiddenmanifold as hm

parts = {
    "activation": "tanh",
    "projection": "gaussian",
    "teacher": hm.teachers.Classes(separation=3.0, priors=(0.5, 0.3, 0.2)),
    "intercept": True,
}
ratio = np.geomspace(0.15, 4.0, 11)
ridge = hm.predict(
    hm.Model(**parts, loss="square"), n_over_d=2.0, p_over_n=ratio, regularisation=0.01
)
softmax = hm.predict(
    hm.Model(**parts, loss="softmax"), n_over_d=2.0, p_over_n=ratio, regularisation=0.1
)
hinge = hm.predict(
    hm.Model(**parts, loss="hinge", scheme="one-vs-rest"),
    n_over_d=2.0,
    p_over_n=ratio,
    regularisation=0.1,
)

# %%
# Softmax is averaged over the scores of three classes; `integration_error` is what that leaves.
print(f"error of the integration: {float(softmax.integration_error.max()):.0e}")
figure, axis = plt.subplots(layout="constrained")
axis.plot(ratio, ridge.generalisation_error, "o-", label="ridge, λ = 0.01")
axis.plot(ratio, softmax.generalisation_error, "s-", label="softmax, λ = 0.1")
axis.plot(ratio, hinge.generalisation_error, "^-", label="hinge, one-vs-rest, λ = 0.1")
axis.set_xscale("log")
axis.minorticks_off()
axis.set_xticks([0.2, 0.5, 1.0, 2.0, 4.0], labels=["0.2", "0.5", "1", "2", "4"])
axis.set_xlabel("features per sample, p/n")
axis.set_ylabel("rate of wrong classes")
axis.legend()
figure
