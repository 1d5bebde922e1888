"""The same models at finite size: data, exact fits, and many seeds of them.

`samples` draws a world and its samples, `problem` states the objective and the certificate of a
fit, `fit` chooses between `newton_fit` and `interior_point`; `experiment` is one trial,
`test_scores` what is measured on fresh samples, `trial_cache` what a store keeps.
"""
