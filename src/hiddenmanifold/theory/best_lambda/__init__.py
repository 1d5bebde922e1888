"""The regularisation of least error.

`search` is the entry: it computes the error and its slope at some twenty λ, refines every minimum
between them and compares these with the limits 0⁺ and ∞: the error may have several minima, lie on
a plateau, or fall all the way to a limit. `path` solves the equations at those λ, each from its
neighbours.
"""
