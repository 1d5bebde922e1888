"""The error as a function of the number of samples or features: its peak, and its targets.

`error_curve` is that function, at a given λ or at the best one. `peak` finds where it is largest;
`fewest_features` and `fewest_samples` find where it falls to a target.
"""
