"""The least error that any predictor can reach.

`label_information` has the Fisher information of labels about the field, and the error of the best
guess of a label from the posterior; `fixed_points` has the fixed points of the overlap, and the one
of largest free entropy.
"""
