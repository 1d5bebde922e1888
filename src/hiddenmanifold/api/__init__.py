"""One module for each question users ask; every answer is a labelled dataset with its status.

Read `predict` first: `grid` reads its arguments into labelled points, ``theory`` computes columns
there, and the grid makes them a dataset of ``results``. `signatures` states the arguments that the
functions share, `arguments` turns values into labelled arrays, or the search for λ. The others
follow the same path:

- `predict`: errors, overlaps, their derivatives (`sensitivity`) and the law of the `margins` in the
  limit; `lazy` for huge grids;
- `simulate`: fits at finite size, with points and datasets by `draws`; `compare`: both at the same
  points, as z-scores (`standard_scores`); `finite_size`: mean deviations from the limit;
- `ensembles`: the mean and the majority vote of several fits;
- `pairs_of_fits`: bias and variances, and how differently two fits predict; `pair_of_models`: two
  fits of different models;
- `thresholds`: where samples become separable, and where the error peaks;
- `needed`: the fewest features or samples for a target error;
- `bayes_optimal`: the least error any predictor can reach;
- `training`: errors along training by gradient methods; `best_time` to stop; `compare_training`.
"""
