"""The regularisation of least error.

`search` is the entry: it looks at the error and its slope at some twenty λ, refines every minimum
between them and lets the limits 0⁺ and ∞ compete: the error may have several minima, lie on a
plateau, or fall all the way to a limit. `path` solves at those λ, each from its neighbours.
"""
