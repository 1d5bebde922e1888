"""
What would more data bring?
===========================

From one sample of 442 patients: the error of ridge regression with other numbers of samples, with
error bars, and whether the sample can be trusted to say so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import hiddenmanifold as hm

data = hm.Data(*load_diabetes(return_X_y=True), scale="standard")
print(data.diagnosis)

# %%
# In words: what twice, four and eight times the samples would bring, and what a target needs.
print(hm.plan(data, target_gain=0.02))

# %%
# The curve, one standard deviation to either side; the point is what leave-one-out measures at n =
# N.
curve = hm.learning_curve(data, n=np.geomspace(60, 4000, 12).astype(int))
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.semilogx(curve.n, curve.generalisation_error)
low, high = curve.generalisation_error_low, curve.generalisation_error_high
axes.fill_between(curve.n, low, high, alpha=0.3)
shown = curve.generalisation_error_leave_one_out, curve.generalisation_error_leave_one_out_stderr
axes.errorbar(data.N, *shown, fmt="ko", label="leave-one-out")
axes.set(xlabel="samples n", ylabel="mean square error")
axes.legend()
plt.show()
