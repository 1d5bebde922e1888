"""Questions to one error curve, along n, p or λ.

`peak` finds where the error is largest as a function of the number of features; `fewest_features`
and `fewest_samples` find where a curve crosses a target, at a given λ or at the best one.
"""
