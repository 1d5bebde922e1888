"""Real data: what a sample shows of its population, and what more of it would bring.

In the order of an analysis: `read_table` and `validation` make a `sample`; `ridge` decomposes it
and `leave_one_out` measures it; `spectrum`, `extrapolation` and `two_class_features` estimate the
population; `diagnosis` says whether to trust that; `learning_curve` and `planning` answer, and
`backtest` compares predictions with rows that they never saw. `conversions` and `pipelines` know
scikit-learn's conventions.
"""
