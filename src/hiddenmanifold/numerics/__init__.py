"""Numerical methods that do not depend on the model.

Quadrature on panels (`panels`), batched Newton (`newton`), roots that cannot end unconverged
(`roots`), minima and crossings of tabulated functions (`minima`, `crossings`), polynomials on cells
for compiled code (`cells`), random orthogonal matrices (`matrices`), stable functions (`special`),
fixed points without derivatives (`anderson`), many small linear systems at once (`small_systems`),
and threads of linear algebra (`threads`).
"""
