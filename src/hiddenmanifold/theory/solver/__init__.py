"""Where the labels' side and the features' side agree.

- `saddle_point`: the equations of a batch of points, Newton's method on them, and what is tried
  for points that it loses;
- `starts`: starting values between points that are already solved;
- `certificate`: how a solve ended, and how far its solution may be off;
- `complements`: the same equations without cancellation, where rounding is magnified;
- `continuation`: solutions followed along a path of parameters;
- `tangents`: derivatives of a solution by the parameters.
"""
