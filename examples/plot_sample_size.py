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
# The slope along n. The point shows simulated studies of the size that was found: their mean, and
# the deviation between studies, half of which have less than the typical slope.
print(f"With the best ridge penalty {report.ridge_n} patients predict as well.")
figure = hm.plot(report.curve, x="n", y="calibration_slope")
ax = figure.axes[0]
studies = report.simulated["calibration_slope"]
ax.errorbar(report.n, studies.mean, studies.deviation, fmt="o", capsize=3, label="studies")
ax.axhline(0.9, color="grey", linestyle=":")
ax.set_xscale("log")
ax.set_xticks([150, 300, 600, 1200, 2400], labels=["150", "300", "600", "1200", "2400"])
ax.minorticks_off()
figure.suptitle("")
ax.set_title(f"10 predictors, AUC 0.85: n = {report.n}", loc="left", fontsize="medium")
figure
