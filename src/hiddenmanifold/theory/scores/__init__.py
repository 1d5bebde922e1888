"""Errors and other properties of a fitted model's predictions, on new and training samples.

`distribution` has the joint law of predictions and labels, and averages over it (`observe`);
`errors_of_labels` the test and training errors, in closed form where there is one;
`calibration` compares predicted probabilities with those of the labels.
"""
