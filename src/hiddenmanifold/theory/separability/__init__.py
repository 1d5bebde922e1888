"""When some weights fit every training sample, or fit some of them ever better as they grow.

`direction` finds the least number of features per sample at which a separating direction exists,
`existence` that beyond which the estimator of a loss of label and score does not; `line` follows
such a threshold along a ratio.
"""
