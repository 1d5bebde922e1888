"""The least error that any predictor can reach."""
