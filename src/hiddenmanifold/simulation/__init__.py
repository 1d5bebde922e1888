"""The same models at finite size: data, exact fits, and many seeds of them.

- `samples`: draws a world, that is features and a teacher, and samples from it;
- `problem`: the objective of a fit, and the bound on its distance from the minimum;
- `fit`: chooses between closed forms, `newton_fit` (smooth losses) and `interior_point` (piecewise
  linear losses);
- `experiment`: one trial, which draws a world, fits every λ and measures on fresh samples;
- `test_scores`: observables measured there beside the errors;
- `class_experiment`: the same of several classes, with their `class_samples`, `class_fits` and
  `softmax_fit`;
- `ensemble_trial`, `pair_trial`: trials with several fits of one model, or with two of different
  models; `gradient_methods`: fits that stop early;
- `trial_cache`: which fits a store already has.
"""
