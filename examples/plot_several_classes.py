"""
Three classes: ridge regression and softmax
===========================================

The error of ridge regression on one-hot targets peaks where there are as many features as samples.
Softmax, multinomial logistic regression, has no peak there.
"""

import numpy as np

import hiddenmanifold as hm

parts = {
    "activation": "tanh",
    "projection": "gaussian",
    "teacher": hm.teachers.Classes(K=3, separation=3.0),
    "intercept": True,
}
ratio = np.geomspace(0.15, 2.0, 7)
ridge = hm.predict(
    hm.Model(**parts, loss="square"), n_over_d=2.0, p_over_n=ratio, regularisation=0.01
)
softmax = hm.predict(
    hm.Model(**parts, loss="softmax"), n_over_d=2.0, p_over_n=ratio, regularisation=0.1
)

# %%
# Softmax is averaged over the scores of three classes; `integration_error` is what that leaves.
print(f"error of the integration: {float(softmax.integration_error.max()):.0e}")
figure = hm.plot(ridge, y="generalisation_error")
(axis,) = figure.axes
axis.plot(ratio, softmax.generalisation_error, label="softmax, λ = 0.1")
axis.lines[0].set_label("ridge, λ = 0.01")
axis.legend()
figure
