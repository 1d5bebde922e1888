"""
What two bootstraps show of instability
=======================================

How often would a fit to other samples predict another label? Two bootstraps of one sample, which
reports of prediction models show, differ less than two fits to independent samples: they have many
rows in common. The fewer samples there are, the more is missing.
"""

import numpy as np

import hiddenmanifold as hm

risk = hm.teachers.Logistic(slope=2.0)
model = hm.Model(activation="erf", projection="gaussian", teacher=risk, loss="logistic")
at = {"n_over_d": np.geomspace(1, 100, 15), "p_over_d": 1.0, "regularisation": 1.0}
two = {
    "independent samples": hm.instability(model, **at),
    "two bootstraps": hm.instability(model, **at, independent="none", resampling="bootstrap"),
}
hm.plot(two, y=["disagreement", "probability_difference"])
