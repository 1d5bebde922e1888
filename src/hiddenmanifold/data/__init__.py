"""Real data: from a table (X, y) to the learning curve that more rows of its kind would give.

The idea: a fit to n samples is governed by one number κ, and the fit to the N rows at hand that has
the same κ, with another λ, shows all that κ determines. In the order of an analysis, which is a
good order to read in:

1. `read_table`, `preparation` and `validation` turn files, tables and labels into arrays, or refuse
   them.
2. `ridge` fits every λ at once, with leverages and exact leave-one-out residuals; `leave_one_out`
   does the same for other losses, with `row_weights` where rows count differently.
3. `extrapolation` finds the fit of the same κ and goes from its error to that of n samples;
   `misclassification` moves left-out scores for errors of classes, and `heads` multiplies the level
   of any other loss by the fall of a ridge twin (`scalar_heads`: of numbers and two classes,
   `class_heads`: of more).
   `predicted_errors` are the result.
4. `analysis` puts 2 and 3 together, with error bars; `diagnosis` checks whether the sample can be
   extrapolated at all.
5. `sample` is the public `Data`; `learning_curve`, `planning` and `backtest` answer users'
   questions about it, and `report` answers them on one page (`report_parts`, `report_formats`,
   `report_picture`). `target_plan` plans the calibration slope, AUC or R² of regression without a
   penalty by the `signal` that rows left out show, as `studies` do without data.
6. `flow_of_rows` adds up ridge fits at complex λ to training by gradient flow, and `training_curve`
   has its errors at every time.

`sklearn_conventions` translates scikit-learn's C, alpha and pipelines, and `kernel_conventions` its
kernel machines. docs/real_data.md describes the method and its accuracy.
"""
