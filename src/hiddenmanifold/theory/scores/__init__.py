"""Errors and other properties of a fitted model's predictions, on new and training samples.

`distribution` has the joint law of predictions and labels, and averages over it (`observe`);
`errors_of_labels` the test and training errors, in closed form where there is one;
`square_errors` the mean square errors of any prediction of any labels; `numbers` the observables of
labels that are numbers; `calibration` compares predicted probabilities with those of labels ±1, and
`probabilities` judges them as such: Brier score, recalibration, decisions.
"""
