"""The labels' side of the equations: averages over labels and fields, from V, Q and M.

A `channel` is composed of labels and a loss; `kinds` chooses the one of a model. In the order of
their labels:

- `two_labels`: ±1 given the teacher's field, and classes that displace their samples. A branch is
  one label with its law, to be averaged with the loss over one Gaussian;
- `linear_labels`: labels linear in the field, with noise of any law; and averages over rows of
  normal residuals;
- `number_channel`: any other numbers with a loss of the residual, as rows of normal residuals on a
  quadrature over the field;
- `label_table`: numbers with a loss of label and score, as sums over a table of labels and scores.

The averages of a branch or a row (`averages`) run along the curve of proximal points
(`proximal_curve`), so that no root is sought at a node; compiled code does the same. The closed
form of the square loss needs nothing but moments of the labels.
"""
