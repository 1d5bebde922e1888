"""The labels' side of the equations: averages over labels and fields, out of V, Q and M.

A `channel` is the labels of a teacher together with a loss; its branches are the labels. The
averages of a branch (`averages`) run along the curve of proximal points (`proximal_curve`), so that
no root is sought at a node. `square_loss` has the closed forms, `two_classes` the channel of
classes that displace their samples, `constant_prediction` the best prediction that ignores x.
"""
