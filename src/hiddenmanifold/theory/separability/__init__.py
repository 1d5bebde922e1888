"""When some weights can give every training sample its label.

`direction` finds the least number of features per sample at which a separating direction exists,
`line` follows that threshold along a ratio.
"""
