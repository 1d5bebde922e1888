r"""Where the labels' side and the features' side agree: V, Q and M that solve the equations.

The unknowns x of a point are logarithms of V and Q, the angle of M, and an intercept if there is
one. One turn around the equations leads from x to channel averages e1, e2, e3, from these through
the sums of the features to V, Q and M, and back to unknowns G(x); a solution has G(x) = x. Section
"Solving" of ``docs/theory.md`` derives all of it. To read in this order:

- `settings`: the tolerances of an answer, and the effort that is spent on it;
- `saddle_point`: the equations of a batch of points, one turn with its Newton matrix I - dG/dx;
- `strategy`: Newton's method for all points from one start, then other starts, finer quadrature
  and continuation for those that it loses;
- `tangents`: derivatives of a solution by λ, n and p, and unknowns between solved points by these;
- `certificate`: finer quadrature until it no longer moves a solution, what rounding may have done
  to it, and the status that follows; the value that a solve returns;
- `complements`: the same equations without cancellation, where rounding is magnified.
"""
