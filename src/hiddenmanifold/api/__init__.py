"""One module for each question users ask; every answer is a labelled dataset with its status.

Read `predict` first: it reads the arguments (`arguments`, `counts`), asks ``theory`` and hands the
columns to ``results``. The others follow the same path:

- `predict`: errors, overlaps and derivatives (`sensitivity`) in the limit; `lazy` for huge grids;
- `simulate`: fits at finite size; `compare`: both at the same points, as z-scores;
- `thresholds`: where samples become separable, and where the error peaks;
- `needed`: the fewest features or samples for a target error;
- `margins`: the law of the margins; `bayes_optimal`: the least error any predictor can reach.
"""
