r"""Two fits that share features, samples or labels: one more overlap for each kind of pair.

Every fit minimises its own objective, so that its own V, Q, M and intercept are those of a single
fit. What two fits have in common is the covariance :math:`Q_{12}` of their predictions, which
solves one more equation, linear in :math:`E[h_1h_2]` on the features' side. To read in this order:

- `private_means`: the mean of h over what is private to a fit, at a given shared part;
- `common_labels`: :math:`E[h_1h_2]` over the labels of common samples, and its slope;
- `shared_overlaps`: :math:`Q_{12}` by Newton's method, with a certificate;
- `labels_of_two`: :math:`E[h_1h_2]` of fits of different losses, penalties or features;
  `two_models`: their :math:`Q_{12}`; `predictions_of_two`: points to every predicted quantity;
- `instability`: how differently two fits predict;
- `variances`: bias, and the variances that features, samples and noise of labels cause;
- `mean_and_vote`: errors of the mean prediction and of the majority vote of several fits;
- `best_of_ensembles`: the λ of least error of an ensemble.
"""
