"""The base class of losses: their declaration, its consequences, and a check that it is true."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np

from hiddenmanifold.arrays import Array, Integers
from hiddenmanifold.checks import Task, sampled
from hiddenmanifold.compiled import CompiledLoss
from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.losses import predictors
from hiddenmanifold.numerics.cells import cells
from hiddenmanifold.numerics.roots import increasing_root

ROUNDING = np.finfo(float).eps
"""Relative accuracy to which a field is known."""
STEP = 1e-4
"""Step of the differences that check derivatives, in units of the length over which they bend."""


class ConvexLoss:
    r"""Base of all losses, :math:`\ell(y, f)`, convex in f.

    Attributes
    ----------
    tasks : frozenset of Task
        Tasks in which the loss makes sense.
    quadratic : bool
        Whether :math:`\ell = (y - f)^2/2`, so that a fit is linear algebra.
    even : bool
        Whether :math:`\ell(-y, -f) = \ell(y, f)` for real labels.
    predictor : Predictor
        The function of f that estimates the mean of a real label.
    """

    tasks: frozenset[Task] = frozenset({Task.REGRESSION})
    quadratic: bool = False
    even: bool = False
    has_jumps: bool = False
    """Whether the slope jumps somewhere."""
    predictor: predictors.Predictor = predictors.Identity()

    def of_labels(self, y: Array) -> Loss:
        """The loss of samples with labels `y`, as functions of a shortfall of each."""
        raise NotImplementedError

    def shortfall(self, task: Task, y: Array, f: Array) -> Array:
        """The shortfalls of scores f, of which ``of_labels(y)`` is a function."""
        raise NotImplementedError


class Loss(ConvexLoss):
    r"""A convex :math:`\rho(s)` of the shortfall (see the docstring of ``losses``).

    Attributes
    ----------
    anchor : float
        The margin at which the shortfall vanishes.
    kinks : tuple of float
        Shortfalls where :math:`\rho'` or :math:`\rho''` jumps, in increasing order.
    scale : float or None
        Length over which :math:`\rho''` bends; None promises that it is constant between kinks.
    tasks : frozenset of Task
        Tasks in which the loss makes sense.
    even : bool
        Whether :math:`\rho(-s) = \rho(s)`.
    quadratic : bool
        Whether :math:`\rho(s) = s^2/2`, so that a fit is linear algebra.
    """

    anchor: float = 1.0
    kinks: tuple[float, ...] = ()
    scale: float | None = 1.0
    tasks: frozenset[Task] = frozenset({Task.CLASSIFICATION})

    def of_labels(self, y: Array) -> Loss:
        return self

    def shortfall(self, task: Task, y: Array, f: Array) -> Array:
        return y - f if task is Task.REGRESSION else self.anchor - y * f

    @cached_property
    def has_jumps(self) -> bool:  # type: ignore[override]
        """Whether the slope jumps at some kink."""
        _, below, above, _ = self.knots
        return bool((above > below).any())

    @cached_property
    def bounded_slope(self) -> bool:
        """Whether the slope stays bounded, so that labels need no finite variance."""
        with np.errstate(over="ignore"):  # an exponential slope is infinite, and not bounded
            near, far = (np.abs(self.derivative(np.array([-s, s]))).max() for s in (1e4, 1e8))
        return bool(far <= 2.0 * near < np.inf)

    def value(self, s: Array) -> Array:
        r""":math:`\rho(s)`."""
        raise NotImplementedError

    def derivative(self, s: Array) -> Array:
        r""":math:`\rho'(s)`, of either side at a kink."""
        raise NotImplementedError

    def second_derivative(self, s: Array) -> Array:
        r""":math:`\rho''(s)`, without the Dirac masses at kinks."""
        raise NotImplementedError

    def described(self, s: float) -> str:
        """A shortfall in the variable in which the loss was written, for error messages."""
        return f"shortfall {s:.4g}"

    @cached_property
    def knots(self) -> tuple[Array, Array, Array, Array]:
        r"""Shortfalls that cut the line into pieces, :math:`\rho'` below and above, :math:`\rho''`.

        The kinks, and for a loss that bends smoothly a ladder of step `4 scale` around the
        centre: between two knots the loss is resolved by a dozen Gauss–Legendre nodes.
        """
        ladder = () if self.scale is None else self.scale * np.arange(-40.0, 41.0, 4.0)
        s = np.array(sorted({*self.kinks, *ladder} or {0.0}), dtype=float)
        below, above = self.derivative(s), self.derivative(s)
        at = np.isin(s, self.kinks)
        below[at] = self.derivative(np.nextafter(s[at], -np.inf))
        above[at] = self.derivative(np.nextafter(s[at], np.inf))
        above = np.where(
            above - below > 1e-12 * (np.abs(above) + np.abs(below) + 1.0), above, below
        )
        return s, below, above, self.second_derivative(s)

    @cached_property
    def slopes_at_zero(self) -> Array:
        r""":math:`\rho'` at a prediction of zero, on the wrong side; if it jumps, on both."""
        s, below, above, _ = self.knots
        at = (s == self.anchor) & (above > below)
        if at.any():
            return np.append(above[at], below[at])
        return self.derivative(np.array([np.nextafter(self.anchor, np.inf)]))

    @cached_property
    def minimisers(self) -> tuple[float, float]:
        """Interval of shortfalls at which the loss is least, of length zero if there is but one.

        Both ends are the same infinity if the least value is only approached there.
        """
        far = 40.0 * (self.scale or 1.0) + float(np.abs(self.knots[0]).max())

        tolerance = 1e-12 * far

        def boundary(beyond: Callable[[float], bool], inside: float, outside: float) -> float:
            """Where `beyond` becomes true, by bisection to the last bit; next to zero, zero."""
            while inside != (middle := 0.5 * (inside + outside)) != outside:
                inside, outside = (inside, middle) if beyond(middle) else (middle, outside)
                if max(abs(inside), abs(outside)) < 1e-3 * tolerance:
                    return 0.0
            return outside

        def slope(s: float) -> float:
            return float(self.derivative(np.array([s]))[0])

        def flat(end: float) -> bool:
            """Whether the loss is constant from a kink to an end; elsewhere zero is underflow."""
            sign = np.sign(end)
            kinks = [k for k in self.kinks if sign * k < far]
            return slope(end) == 0 and any(
                slope(k + 1e-9 * sign * far) == 0 != slope(k - 1e-9 * sign * far) for k in kinks
            )

        for end in (-far, far):
            if np.sign(end) * slope(end) < 0 or (slope(end) == 0 and not flat(end)):
                infinity = math.copysign(math.inf, end)
                return infinity, infinity
        low = -np.inf if slope(-far) == 0 else boundary(lambda s: slope(s) < 0, far, -far)
        high = np.inf if slope(far) == 0 else boundary(lambda s: slope(s) > 0, -far, far)
        if abs(high - low) < tolerance:
            middle = 0.5 * (high + low) if abs(high + low) > tolerance else 0.0
            return middle, middle
        return low, 0.0 if abs(high) < tolerance else high

    @cached_property
    def least(self) -> float:
        """The least value of the loss; if it is only approached far out, as far as can be told."""
        end = next((s for s in self.minimisers[::-1] if np.isfinite(s)), None)
        if end is None:
            end = math.copysign(700.0 * (self.scale or 1.0), self.minimisers[0])
        return float(self.value(np.array([end]))[0])

    def best_constant(self, plus: float, minus: float) -> float:
        """Constant prediction of least expected loss, if labels ±1 have these probabilities.

        Raises
        ------
        InvalidArgumentError
            If the expected loss of constants has no minimum.
        """
        from scipy import optimize  # slow to import, and few models need it

        def slope(b: float, side: float) -> float:
            """Slope of the expected loss on the given side of b."""
            left = self.derivative(np.array([np.nextafter(self.anchor - b, -side * np.inf)]))
            right = self.derivative(np.array([np.nextafter(self.anchor + b, side * np.inf)]))
            return float(minus * right[0] - plus * left[0])

        for kink in self.kinks:
            for b in (self.anchor - kink, kink - self.anchor):
                if slope(b, -1.0) <= 0.0 <= slope(b, 1.0):
                    return b
        span = 1.0
        with np.errstate(over="ignore"):
            while slope(-span, 1.0) > 0.0 or slope(span, 1.0) < 0.0:
                span *= 2.0
                if span > 1e9 or not np.isfinite(slope(span, 1.0) - slope(-span, 1.0)):
                    raise InvalidArgumentError.because(
                        "intercept",
                        "cannot be fitted",
                        f"no constant minimises {self} if labels are +1 with probability {plus:g}",
                    )
        root: float = optimize.brentq(slope, -span, span, args=(1.0,), xtol=1e-15, rtol=1e-14)
        return root

    @cached_property
    def compiled(self) -> CompiledLoss:
        """The loss in the form that compiled code takes."""
        try:
            hash(self)
        except TypeError:
            return compiled.__wrapped__(self)
        return compiled(self)

    def __getstate__(self) -> dict[str, object]:  # what is large is made anew
        return {name: part for name, part in vars(self).items() if name != "compiled"}

    def proximal(self, u: Array, V: Array, tolerance: Array | float = 0.0) -> Array:
        r"""Proximal point: the `s` with :math:`s + V \rho'(s) \ni u`.

        Parameters
        ----------
        u, V : arrays that broadcast
            Where to evaluate, and the positive width :math:`V`.
        tolerance : array or float
            Accepted error of :math:`s + V \rho'(s)`; 0 means to rounding.
        """
        s_knot, left, right, _ = self.knots
        u, V = np.asarray(u, dtype=float), np.asarray(V, dtype=float)
        enter, leave = s_knot + V[..., None] * left, s_knot + V[..., None] * right
        V = np.broadcast_to(V, np.broadcast_shapes(u.shape, V.shape))
        # piece j lies between knots j-1 and j; the outer two are bounded by monotonicity of rho'
        piece = (enter <= u[..., None]).sum(-1)
        low = np.where(piece > 0, s_knot[np.maximum(piece - 1, 0)], u - V * left[0])
        last = len(s_knot)
        high = np.where(piece < last, s_knot[np.minimum(piece, last - 1)], u - V * right[-1])
        jumps = np.append(False, right > left)
        on_kink = jumps[piece]
        if on_kink.any():
            leave = np.broadcast_to(leave, (*piece.shape, last))
            on_kink &= (
                u <= np.take_along_axis(leave, np.maximum(piece - 1, 0)[..., None], -1)[..., 0]
            )
        bracket = low, np.where(on_kink, low, np.maximum(high, low))
        return self.proximal_between(np.broadcast_to(u, V.shape), bracket, V, tolerance)

    def proximal_between(
        self, u: Array, bracket: tuple[Array, Array], V: Array, tolerance: Array | float = 0.0
    ) -> Array:
        """Proximal points that are known to lie in brackets, arrays of the shape of `u`."""
        u_flat, V_flat = u.ravel(), V.ravel()

        def curve(s: Array, index: Integers) -> tuple[Array, Array]:
            v, gap = V_flat[index], u_flat[index] - s
            push, bend = v * self.derivative(s), v * self.second_derivative(s)
            if self.scale is None:
                return push - gap, 1.0 + bend
            with np.errstate(all="ignore"):  # where rho' decays exponentially its logarithm, which
                ratio = push / gap  # that of the gap must equal, is straight
                straight = (ratio - 1.0) / np.log(ratio) * (1.0 + bend / ratio)
            return push - gap, np.where((bend > 1.0) & (straight > 0.0), straight, 1.0 + bend)

        close = np.maximum(tolerance, ROUNDING * np.abs(u))
        return increasing_root(curve, bracket, close, start=u)


@lru_cache(maxsize=8)
def compiled(loss: Loss) -> CompiledLoss:
    """A loss in the form that compiled code takes: its knots, and polynomials on cells."""
    minimiser = next((end for end in loss.minimisers[::-1] if np.isfinite(end)), 0.0)
    functions = loss.derivative, loss.second_derivative, loss.value
    found = cells(functions, loss.kinks, loss.scale, minimiser)
    knots = np.array([*loss.knots, np.isin(loss.knots[0], loss.kinks)])
    return CompiledLoss(
        knots, found.table, found.first[:, 0], found.low, found.per_bin, loss.scale or 0.0
    )


def check_loss(loss: Loss) -> None:
    """Refuse a loss that is not finite, not convex, or not what it declares itself to be.

    Raises
    ------
    InvalidArgumentError
        If a function is wrong; the message names the function and the place.
    """
    width = loss.scale or max((abs(kink) for kink in loss.kinks), default=1.0) or 1.0
    s = width * np.linspace(-30.0, 30.0, 2401)
    s = s[np.abs(s[:, None] - np.array([*loss.kinks, np.inf])).min(1) > 2 * STEP * width]
    value, slope, bend = (
        sampled(name, getattr(loss, name), s, loss.described)
        for name in ("value", "derivative", "second_derivative")
    )
    convex = "because the theory needs a convex loss, whose slope never falls"
    if bend.min() < 0:
        raise InvalidArgumentError.because(
            "second_derivative",
            f"is {bend.min():g} at {loss.described(s[np.argmin(bend)])}",
            f"it must not be negative anywhere, {convex}",
        )
    _check_match(loss, "derivative", "value", s, slope, width=width)
    _check_match(loss, "second_derivative", "derivative", s, bend, width=width)
    rise = np.diff(slope)
    if rise.min() < -1e-12 * (1.0 + np.abs(slope).max()):
        raise InvalidArgumentError.because(
            "derivative",
            f"falls by {-rise.min():.3g} near {loss.described(s[np.argmin(rise)])}",
            f"it must rise or be constant, {convex}",
        )
    if loss.quadratic and not np.allclose(slope, s, rtol=1e-12, atol=0.0):
        raise InvalidArgumentError.because(
            "quadratic", "is True, but the derivative is not the shortfall", "set it to False"
        )
    pieces = np.searchsorted(loss.kinks, s)
    if loss.scale is None and any(np.ptp(bend[pieces == k]) > 1e-9 for k in np.unique(pieces)):
        raise InvalidArgumentError.because(
            "scale",
            "is missing",
            "give a length, because the second derivative is not constant between the kinks",
        )


def _check_match(loss: Loss, name: str, of: str, s: Array, given: Array, *, width: float) -> None:
    """Raise unless finite differences of one function agree with the values of the other."""
    function, step = getattr(loss, of), STEP * width
    error = np.abs((function(s + step) - function(s - step)) / (2 * step) - given)
    allowed = 1e-4 * (1.0 + np.abs(given)) / min(1.0, width)
    if (error > allowed).any():
        worst = s[np.argmax(error - allowed)]
        raise InvalidArgumentError.because(
            name,
            f"is off by {error.max():.3g} at {loss.described(worst)}",
            f"it must be the derivative of {of}; declare kinks, if there are any",
        )
