"""Questions to the error as a function of the number of samples or features.

`error_curve` is that function, at a given λ or at the best one. `peak` finds where it is largest;
`fewest_features` and `fewest_samples` find where it comes down to a target.
"""
