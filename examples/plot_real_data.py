"""
How much would more data lower the error?
=========================================

From one sample of 442 patients we estimate the error of ridge regression at other sample sizes,
with error bars, after checking that the sample can be extrapolated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import hiddenmanifold as hm

data = hm.Data(*load_diabetes(return_X_y=True), scale="standard")
print(data.diagnosis)

# %%
# A report has the error with two, four and eight times the samples, the size that a target needs,
# and what calls for caution; ``to_html`` writes it as a page.
hm.report(data, target_gain=0.02)

# %%
# The predicted curve with a band of ± one standard deviation, and the leave-one-out error at n = N.
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
