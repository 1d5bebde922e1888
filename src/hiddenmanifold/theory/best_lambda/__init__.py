"""The regularisation of least error.

`search` is the entry: it follows the solution in λ from infinity down (`walk`, `path`), keeps
what it has seen as nodes and the gaps between them (`gaps`), and refines the minima. The error may
have several minima, lie on a plateau, or fall for ever towards a limit.
"""
