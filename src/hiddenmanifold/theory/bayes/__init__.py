"""The least error that any predictor can reach.

`label_information` has the Fisher information of labels about the field, `fixed_points` the
fixed points of the overlap and the one of largest free entropy, and `best_guess` the error of
whoever guesses labels from the posterior.
"""
