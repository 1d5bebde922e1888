"""Real data: from a table (X, y) to the learning curve that more rows of its kind would give.

The idea: ridge regressions on the sample at every λ show two functions of the population, its
degrees of freedom and the bias of a fit. They determine the error of a fit to any number n of
samples. In the order of an analysis, which is a good order to read in:

1. `read_table`, `preparation` and `validation` turn files, tables and labels into arrays, or refuse
   them.
2. `ridge` fits every λ at once, with leverages and exact leave-one-out residuals; `leave_one_out`
   does the same for other losses.
3. `spectrum` estimates the population's two spectral measures from these fits.
4. `extrapolation` goes from the measures to fits of n samples; for classes it also needs
   `score_shapes` (how scores are distributed) and `two_class_features` (losses other than square).
5. `analysis` puts 2 to 4 together, with error bars from parts of the sample; `diagnosis` checks
   whether the sample can be extrapolated at all.
6. `sample` is the public `Data`; `learning_curve`, `planning` and `backtest` answer users'
   questions about it.

`sklearn_conventions` translates scikit-learn's C, alpha and pipelines, and `kernel_conventions` its
kernel machines. docs/real_data.md describes
the method and its accuracy.
"""
