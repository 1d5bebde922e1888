"""The labels' side of the equations: averages over labels and fields, from V, Q and M.

A `channel` is composed of labels and a loss. The kind of labels (±1 given a field, classes that
displace their samples, real numbers) determines the unknowns and the branches: a branch is one
label with its law, to be averaged with the loss over one Gaussian. The averages of a branch
(`averages`) run along the curve of proximal points (`proximal_curve`), so that no root is sought at
a node; compiled code does the same. The closed form of the square loss needs no branches.
"""
