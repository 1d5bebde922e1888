"""Planning a study before there is data: how many samples a prediction model needs.

What people know before a study is the prevalence of an outcome, the discrimination they hope for
and the number of predictors. In the order in which it is used:

1. `population` turns these numbers into a model of predictors and outcome: the inverse problem.
2. `targets` are what a study is to reach; `performance` says how fits to n samples perform, in the
   limit or one by one (`single_fits`), and `textbook` has the criteria of Riley et al.
3. `sample_size` seeks the n that meets the targets, on average or with `assurance`;
   `sample_size_report` shows the answer.

`api` answers the same questions about a given model, ``data`` about a sample at hand.
"""
