"""The limit n, p, d → ∞: saddle-point equations and the quantities that follow from them.

In the order in which ``docs/theory.md`` derives them:

- `points`: the ratios and λ at which predictions are requested;
- `labels_side`: the averages e1, e2, e3 over labels and fields, from V, Q and M;
- `features_side`: V, Q and M from these averages, through a few sums over the spectrum;
- `solver`: the V, Q and M at which both sides agree, with a certificate for every point;
- `limits`: λ → 0⁺, λ → ∞ and infinite ratios;
- `predictions`: every predicted quantity at given points, limits included;
- `scores`: test errors, calibration, AUC and other properties of predictions on new samples;
- `pairs`: two fits that share features or samples, and ensembles of fits;
- `best_lambda`, `curves`: the best λ, and one error curve along n, p or λ;
- `training`: the square loss along training, by gradient flow or in steps;
- `separability`, `bayes`: when all samples can be fitted, and the least error of any predictor.
"""
