"""The least error that any predictor can reach.

`label_information` computes the Fisher information that labels carry about the field, and the error
of the best guess of a label from the posterior; `fixed_points` finds the fixed points of the
overlap and selects the one of largest free entropy.
"""
