"""Planning a study before there is data: how many samples a prediction model needs.

What people know before a study is the prevalence of an outcome, the discrimination they hope for
and the number of predictors. In the order in which it is used:

1. `population` turns these numbers into a model of predictors and outcome: the inverse problem
   of the prevalence, AUC and R² that a `linear_predictor` has.
2. `targets` are what a study is to reach; `performance` says how fits to n samples perform, in the
   limit or one by one (`single_fits`), and `textbook` has the criteria of Riley et al.
3. `least_size` is the n from which on the limit meets a target, `best_penalty` what ridge would
   need instead, and `assurance` the n at which single studies meet it often enough.
4. `sample_size` puts these together; `sample_size_report` shows the answer.

`api` answers the same questions about a given model, ``data`` about a sample at hand.
"""
