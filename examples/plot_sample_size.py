"""
How many patients for a prediction model?
=========================================

A study without data yet: the event has a prevalence of 20 %, and ten predictors are expected to
reach an AUC of 0.85. The calibration slope of a logistic regression shows how much it overfits.
"""

import hiddenmanifold as hm

population = hm.Population(outcome="binary", prevalence=0.2, auc=0.85, predictors=10)
report = hm.sample_size(population, target={"calibration_slope": 0.9})
print(report.sentence)

# %%
# The slope along n, and what ridge regression would save:
print(f"With the best ridge penalty {report.ridge_n} patients predict as well.")
figure = hm.plot(report.curve, x="n", y="calibration_slope")
figure.axes[0].axhline(0.9, color="grey", linestyle=":")
figure
