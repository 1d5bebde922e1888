"""
A learning curve of a public database, predicted
================================================

The error of ``RidgeClassifier`` on handwritten digits rises before it falls: where the rows are as
many as the features, a linear model fits every row, and errors peak. The whole curve is predicted
from 400 rows, without fitting another model. Points are those of LCDB 1.1 (Yan, Mohr and Viering
2025, CC BY 4.0), means over 25 splits of all 5620 rows, of which the 400 are no random sample: they
come from 13 of 43 writers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import hiddenmanifold as hm

X, y = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))[:400]
data = hm.Data(X[rows][:, X[rows].any(0)], y[rows], "classification")

# %%
# scikit-learn's ``alpha=1`` is λ = 1/p in the conventions of this package.
curve = hm.learning_curve(
    data, n=np.geomspace(16, 4500, 60), regularisation=hm.from_ridge_alpha(1.0, data.p)
)

# %%
# The predicted curve with a band of ± one standard deviation, and the points of the database.
n = [16, 32, 46, 64, 91, 128, 182, 256, 512, 1024, 2048, 4096]
measured = [0.434, 0.417, 0.514, 0.411, 0.249, 0.172, 0.134, 0.114, 0.087, 0.0746, 0.0705, 0.0669]
figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
axes.loglog(curve.n, curve.generalisation_error, label="predicted from 400 rows")
low, high = curve.generalisation_error_low, curve.generalisation_error_high
axes.fill_between(curve.n, low, high, alpha=0.3)
axes.plot(n, measured, "o", label="LCDB")
axes.axvline(data.N, color="0.7", lw=0.8, zorder=0)
axes.set(xlabel="samples n", ylabel="misclassification rate")
axes.set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()

# %%
# Errors of each class with 400 rows and with ten times as many.
ends = curve.class_error.sel(n=[400, 4000], method="nearest")
print(ends.to_pandas().round(3))
