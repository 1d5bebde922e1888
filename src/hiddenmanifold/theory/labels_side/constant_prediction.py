"""The prediction that does best without features: a constant."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import Loss
from hiddenmanifold.teachers import BinaryTeacher


def best_constant(loss: Loss, teacher: BinaryTeacher) -> float:
    """Constant prediction of least expected loss, the intercept at Q = 0."""
    from scipy import optimize  # slow to import, and few models need it

    plus, minus, _ = teacher.label_marginals
    anchor = loss.anchor

    def slope(b: float, side: float) -> float:
        """Slope of the expected loss on the given side of b."""
        left = loss.derivative(np.array([np.nextafter(anchor - b, -side * np.inf)]))
        right = loss.derivative(np.array([np.nextafter(anchor + b, side * np.inf)]))
        return float(minus * right[0] - plus * left[0])

    for kink in loss.kinks:
        for b in (anchor - kink, kink - anchor):
            if slope(b, -1.0) <= 0.0 <= slope(b, 1.0):
                return b
    span = 1.0
    with np.errstate(over="ignore"):
        while slope(-span, 1.0) > 0.0 or slope(span, 1.0) < 0.0:
            span *= 2.0
            if span > 1e9 or not np.isfinite(slope(span, 1.0) - slope(-span, 1.0)):
                raise InvalidArgumentError.because(
                    "intercept", "cannot be fitted", f"for {teacher} no constant minimises {loss}"
                )
    root: float = optimize.brentq(slope, -span, span, args=(1.0,), xtol=1e-15, rtol=1e-14)
    return root
