"""Slow, independent reference solver for one point of an asymptotic learning curve.

Scalar code, adaptive quadrature in the Gaussian field ``xi`` and finite-difference Newton steps.
It shares nothing with the library it is meant to test. Start from ``solve``, at the bottom.

Every quantity that may be tiny is a sum of positive terms. With ``u(s)`` the shrinkage of the
teacher along an eigenvalue ``s`` of ``F F^T/d`` (average ``<.>_d``) and ``N >= 0`` the remaining
variance of the prediction, ``M = rho <u>_d`` and ``Q = rho <u^2>_d + N``, hence

    rho + Q - 2 M = rho <(1-u)^2>_d + N,      rho Q - M^2 = rho (rho Var_d(u) + N).

The unknowns are (log V, log Q, artanh(M/sqrt(rho Q)), b) in classification and
(log V, log tau^2), ``tau^2`` being the test error, in regression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erf, expit, ndtr

Array = NDArray[np.float64]
Function = Callable[[Array], Any]

FINE, COARSE = 1e-13, 1e-6  # relative tolerances of the integrals
GOOD = 1e-10  # largest acceptable error of the unknowns
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(15)
EDGE = 39.0  # exp(-EDGE^2/2) is below the smallest float
HALF_LINE = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 18.0, 26.0, EDGE])
LINE = np.unique(np.concatenate([-HALF_LINE, HALF_LINE]))
INNER = np.array([-16.0, -11, -8, -6, -4, -2, 0, 2, 4, 6, 8, 11, 16])
AROUND = np.array([-30.0, -9, -4, -1.5, 0, 1.5, 4, 9, 30])

ACTIVATIONS: dict[str, Function] = {
    "sign": np.sign,
    "erf": erf,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0.0),
    "identity": lambda z: z,
    "hard_tanh": lambda z: np.clip(z, -1.0, 1.0),
}


@dataclass(frozen=True)
class Problem:
    """One model; callables must accept numpy arrays, a custom loss being a function of y f.

    ``projection`` may also be ``("spectrum", eigenvalues of F^T F/d, weights)``; ``kinks`` lists
    the margins at which the derivatives of a custom loss jump, if any.
    """

    activation: str = "sign"
    projection: str | tuple[str, Any, Any] = "gaussian"
    teacher: str = "sign"
    loss: str = "square"
    intercept: bool = False
    rho: float = 1.0
    noise: float = 0.0
    flip: float = 0.0
    threshold: float = 0.0
    slope: float = 1.0
    probability: Function | None = None
    delta: float = 1.0
    value: Function | None = None
    derivative: Function | None = None
    second_derivative: Function | None = None
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse combinations that have no meaning."""
        unused = {
            "linear": (self.flip, self.threshold),
            "sign": (),
            "logistic": (self.noise,),
            "custom": (self.flip, self.threshold, self.noise),
        }[self.teacher]
        if any(unused):
            raise ValueError(f"a parameter of the problem has no meaning for {self.teacher} labels")
        if self.teacher == "linear" and self.loss not in ("square", "huber", "absolute"):
            raise ValueError("linear labels need a loss of the residual")


class DegenerateError(RuntimeError):
    """A loss with a kink pins the fit to it: exact recovery, or a constant prediction."""


def integrate(function: Function, breaks: Array, rtol: float, floor: float = 1e-290) -> Array:
    """Integrate rows of ``function(x)`` over [breaks[0], breaks[-1]], halving panels at will.

    A panel is halved until that changes no row by more than rtol times its integral, plus floor.
    """

    def panels(lo: Array, hi: Array) -> Array:
        x = 0.5 * (hi + lo)[:, None] + 0.5 * (hi - lo)[:, None] * POINTS
        values = np.asarray(function(x.ravel())).reshape(-1, *x.shape)
        return np.einsum("kpi,i->kp", values, WEIGHTS) * (0.5 * (hi - lo))

    lo, hi = breaks[:-1], breaks[1:]
    whole = panels(lo, hi)
    done, size = np.zeros(len(whole)), np.zeros(len(whole))
    for _ in range(60):
        middle = 0.5 * (lo + hi)
        left, right = panels(lo, middle), panels(middle, hi)
        scale = size + np.abs(left).sum(1) + np.abs(right).sum(1)
        error = np.abs(left + right - whole)
        bad = (error > (rtol * scale + floor)[:, None]).any(0)
        done += (left + right)[:, ~bad].sum(1)
        size += (np.abs(left) + np.abs(right))[:, ~bad].sum(1)
        if not bad.any():
            return done
        lo, hi = np.concatenate([lo[bad], middle[bad]]), np.concatenate([middle[bad], hi[bad]])
        whole = np.concatenate([left[:, bad], right[:, bad]], axis=1)
        if len(lo) > 2000:  # rounding errors only, or no regularity at all
            break
    return done + whole.sum(1)


def gauss(x: Array) -> Array:
    """Return the standard normal density."""
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


@lru_cache
def kappas(activation: str) -> tuple[float, float, float]:
    """Return kappa_0, kappa_1 and kappa_*^2 (a sum of squares, so exactly zero when linear)."""
    f = ACTIVATIONS[activation]
    k0, k1 = integrate(
        lambda z: gauss(z) * np.array([f(z) + f(-z), z * (f(z) - f(-z))]), HALF_LINE, FINE
    )
    (rest,) = integrate(
        lambda z: gauss(z) * ((f(z) - k0 - k1 * z) ** 2 + (f(-z) - k0 + k1 * z) ** 2),
        HALF_LINE,
        FINE,
    )
    return float(k0), float(k1), float(rest) if rest > 1e-28 else 0.0


@dataclass(frozen=True)
class Spectrum:
    """Positive eigenvalues of F^T F/d with masses (p side), mass at zero on either side."""

    s: Array
    mass: Array
    zero_p: float
    zero_d: float
    gamma: float


@lru_cache
def random_spectrum(projection: str, gamma: float) -> Spectrum:
    """Quadrature of the Marchenko-Pastur density (panels graded towards 0), or two atoms."""
    zero_p, zero_d = max(0.0, 1.0 - gamma), max(0.0, 1.0 - 1.0 / gamma)
    if projection == "orthogonal":
        s, mass = (1.0 / gamma, gamma) if gamma < 1.0 else (1.0, 1.0)
        return Spectrum(np.array([s]), np.array([mass]), zero_p, zero_d, gamma)
    if projection != "gaussian":
        raise ValueError(f"unknown projection {projection!r}")
    y = 1.0 / gamma
    lo, width = ((1.0 - y) / (1.0 + np.sqrt(y))) ** 2, 4.0 * np.sqrt(y)
    edges = 0.5 * np.pi * np.concatenate([[0.0], 0.5 ** np.arange(50, -1, -1)])
    half = 0.5 * np.diff(edges)[:, None]
    angle = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * POINTS).ravel()
    sine, cosine = np.sin(angle), np.cos(angle)
    s = lo + width * sine**2
    density = (width * sine * cosine) ** 2 / (np.pi * y * s)
    return Spectrum(s, density * (half * WEIGHTS).ravel(), zero_p, zero_d, gamma)


def spectrum_of(problem: Problem, gamma: float) -> Spectrum:
    """Return the spectrum of the projection."""
    if isinstance(problem.projection, str):
        return random_spectrum(problem.projection, float(gamma))
    s, mass = (np.asarray(part, dtype=float) for part in problem.projection[1:])
    mass, positive = mass / mass.sum(), s > 1e-12 * s.max()
    zero_d = 1.0 - mass[positive].sum() / gamma
    zero_d = 0.0 if abs(zero_d) < 1e-12 else zero_d
    return Spectrum(s[positive], mass[positive], mass[~positive].sum(), zero_d, gamma)


def order_parameters(
    problem: Problem, spectrum: Spectrum, alpha: float, lam: float, e: Array
) -> dict[str, float]:
    """Map the channel averages (e1, e2, e3) to the order parameters."""
    _, k1, rest = kappas(problem.activation)
    rho, gamma, s, mass = problem.rho, spectrum.gamma, spectrum.s, spectrum.mass
    vh, qh, g = alpha * e[0], alpha * e[1], alpha * e[2]
    ridge = lam + vh * rest
    x = vh * k1**2 / ridge
    r = 1.0 / (1.0 + x * s)
    b0, b1 = mass @ r + spectrum.zero_p, mass @ (s * r)
    c0, c1, c2 = mass @ r**2 + spectrum.zero_p, mass @ (s * r**2), mass @ (s * r) ** 2
    t = rho * g**2 * k1**2 / gamma
    q_s = (qh * (k1**2 * c2 + rest * c1) + t * c2) / ridge**2
    q_w = (qh * (k1**2 * c1 + rest * c0) + t * c1) / ridge**2
    m_s = rho * g * k1 * b1 / (gamma * ridge)
    # variance over the d side of s/(1+xs), from whichever of s r and r = 1 - x s r varies less
    f, at_zero, unit = (r, 1.0, x) if x > 1.0 else (s * r, 0.0, 1.0)
    mean = mass @ f / gamma + spectrum.zero_d * at_zero
    variance = mass @ (f - mean) ** 2 / gamma + spectrum.zero_d * (at_zero - mean) ** 2
    variance *= (g * k1**2 / (ridge * unit)) ** 2
    other = t * rest * c1 + qh * (k1**4 * c2 + 2.0 * k1**2 * rest * c1 + rest**2 * c0)
    other /= ridge**2
    missing = (1.0 + s * k1**2 * (vh - g) / ridge) * r
    return {
        "V": (k1**2 * b1 + rest * b0) / ridge,
        "Q": k1**2 * q_s + rest * q_w,
        "M": k1 * m_s,
        "q_s": q_s,
        "q_w": q_w,
        "m_s": m_s,
        "V_s": b1 / ridge,
        "V_w": b0 / ridge,
        "angle": np.arcsinh(k1 * m_s / np.sqrt(rho * (rho * variance + other))),
        "excess": rho * (mass @ missing**2 / gamma + spectrum.zero_d) + other,
    }


def piecewise(problem: Problem) -> tuple[float, float, float] | None:
    """Return (c, lo, hi) when h = clip((1-m)/(V+c), lo, hi), None for a smooth loss."""
    inf, delta = np.inf, problem.delta
    return {
        "square": (1.0, -inf, inf),
        "squared_hinge": (1.0, 0.0, inf),
        "hinge": (0.0, 0.0, 1.0),
        "smoothed_hinge": (delta, 0.0, 1.0),
        "huber": (1.0, -delta, delta),
        "absolute": (0.0, -1.0, 1.0),
    }.get(problem.loss)


def smooth(problem: Problem) -> tuple[Function, Function, Function]:
    """Return the loss of the margin and its two derivatives."""
    if problem.loss == "logistic":
        return (
            lambda m: np.logaddexp(0.0, -m),
            lambda m: -expit(-m),
            lambda m: expit(m) * expit(-m),
        )
    if problem.loss != "custom":
        raise ValueError(f"unknown loss {problem.loss!r}")
    return problem.value, problem.derivative, problem.second_derivative


def prox(derivative: Function, second: Function, m: Array, v: float) -> Array:
    """Solve eta = m - v l'(eta) by Newton steps kept inside a shrinking bracket."""
    end = m - v * derivative(m)
    slack = 1e-15 * (np.abs(m) + np.abs(end))
    lo, hi = np.minimum(m, end) - slack, np.maximum(m, end) + slack
    eta, step = 0.5 * (lo + hi), hi - lo
    for _ in range(200):
        value, slope = eta - m + v * derivative(eta), 1.0 + v * second(eta)
        lo, hi = np.where(value < 0.0, eta, lo), np.where(value < 0.0, hi, eta)
        newton, middle = -value / slope, 0.5 * (lo + hi) - eta
        resolution = 1e-15 * (np.abs(eta) + np.abs(m) / slope)
        safe = (eta + newton >= lo) & (eta + newton <= hi) & (2.0 * np.abs(newton) <= np.abs(step))
        step = np.where(safe | (np.abs(newton) <= resolution), newton, middle)
        eta = np.clip(eta + step, lo, hi)
        if (np.abs(step) <= resolution).all():
            break
    return eta


def response(problem: Problem, v: float, r: Array) -> tuple[Array, Array, Array]:
    """Return h = -l'(prox), -dh/dm and the loss at the prox, where r = 1 - m."""
    shape = piecewise(problem)
    if shape is None:
        value, derivative, second = smooth(problem)
        eta = prox(derivative, second, 1.0 - r, v)
        curvature = second(eta)
        return -derivative(eta), curvature / (1.0 + v * curvature), value(eta)
    c, lo, hi = shape
    h = np.clip(r / (v + c), lo, hi)
    inside = (h > lo) & (h < hi)
    slope = np.where(inside, 1.0 / (v + c), 0.0)
    return h, slope, np.where(inside, 0.5 * c * h**2, h * (r - v * h) - 0.5 * c * h**2)


def landmarks(problem: Problem, v: float) -> tuple[Array, float]:
    """Return the r = 1 - m where the response has kinks or bends, and where the prox is zero."""
    shape = piecewise(problem)
    if shape is None:
        _, derivative, _ = smooth(problem)
        eta = np.concatenate([AROUND, np.asarray(problem.kinks, dtype=float)])
        return 1.0 - eta - v * derivative(eta), float(1.0 - v * derivative(np.zeros(1))[0])
    c, lo, hi = shape
    bounds = np.array([lo, hi])
    at_zero = np.clip(1.0 / c, lo, hi) if c > 0.0 else hi
    return (v + c) * bounds[np.isfinite(bounds)], float(1.0 + v * at_zero)


@lru_cache
def ties(probability: Function, rho: float) -> tuple[Array, bool]:
    """Return where P(y=1|nu) crosses 1/2, and whether it starts above."""
    grid = np.sqrt(rho) * np.linspace(-12.0, 12.0, 4000)
    above = np.asarray(probability(grid)) > 0.5
    roots = [
        brentq(lambda nu: float(probability(np.array([nu]))[0]) - 0.5, *grid[i : i + 2])
        for i in np.flatnonzero(above[1:] != above[:-1])
    ]
    return np.array(roots), bool(above[0])


def crossings(problem: Problem) -> tuple[Array, bool]:
    """Return where the noiseless label changes along nu, and whether it starts positive."""
    if problem.teacher == "custom":
        return ties(problem.probability, problem.rho)
    return np.array([-problem.threshold]), False


def clean_law(problem: Problem, centre: Array, v0: float) -> tuple[Array, Array]:
    """Return the probabilities of the noiseless labels +1 and -1 when nu ~ N(centre, v0)."""
    roots, positive = crossings(problem)
    edges = np.concatenate([[-np.inf], roots, [np.inf]])[:, None]
    z = (edges - centre) / np.sqrt(v0)
    lo, hi = z[:-1], z[1:]
    masses = np.where(lo > 0.0, ndtr(-lo) - ndtr(-hi), ndtr(hi) - ndtr(lo))
    masses = np.where(np.isposinf(hi), ndtr(-lo), masses)
    even, odd = masses[::2].sum(0), masses[1::2].sum(0)
    return (even, odd) if positive else (odd, even)


def label_law(problem: Problem, centre: Array, v0: float, rtol: float) -> tuple[Array, ...]:
    """Return Z0(+1), Z0(-1) and dZ0(+1)/d centre when nu ~ N(centre, v0)."""
    keep, t, slope = 1.0 - 2.0 * problem.flip, problem.threshold, problem.slope
    if problem.teacher == "sign":
        width = np.sqrt(v0 + problem.noise)
        z = (centre + t) / width
        up, down, bump = ndtr(z), ndtr(-z), gauss(z) / width
    else:

        def rows(z: Array, part: Array) -> Array:
            nu = part[:, None] + np.sqrt(v0) * z
            if problem.teacher == "logistic":
                up, down = expit(slope * (nu + t)), expit(-slope * (nu + t))
                bump = slope * up * down
            else:
                up = np.asarray(problem.probability(nu.ravel())).reshape(nu.shape)
                down, bump = 1.0 - up, z * up / np.sqrt(v0)
            return (gauss(z) * np.array([up, down, bump])).reshape(-1, z.size)

        # 1 - P is only known to rounding errors
        floor = 1e-290 if problem.teacher == "logistic" else 3e-17 / min(1.0, np.sqrt(v0))
        blocks = [
            integrate(partial(rows, part=part), INNER, 0.1 * rtol, floor).reshape(3, -1)
            for part in np.array_split(centre, 1 + len(centre) // 60)
        ]
        up, down, bump = np.concatenate(blocks, axis=1)
    return problem.flip + keep * up, problem.flip + keep * down, keep * bump


def classification_channel(
    problem: Problem, point: Array, rtol: float, full: bool = False
) -> Array:
    """Return e1, e2, e3, e0, data loss (and test, clean and training errors) by quadrature."""
    v, root_q = np.exp(point[0]), np.exp(0.5 * point[1])
    k, v0 = np.sqrt(problem.rho) * np.tanh(point[2]), problem.rho / np.cosh(point[2]) ** 2
    b = point[3] if len(point) > 3 else 0.0
    kinks, at_zero = landmarks(problem, v)
    m = 1.0 - np.append(kinks, at_zero)
    fields = np.concatenate([m - b, -m - b, [-b]]) / root_q
    if k != 0.0:
        scales = {"sign": problem.noise, "logistic": problem.slope**-2.0}
        widths = np.sqrt([v0 + scales.get(problem.teacher, 0.0), v0])[: 1 + full]
        steps = (crossings(problem)[0][:, None, None] + widths[:, None] * AROUND) / k
        fields = np.concatenate([fields, steps.ravel()])
    breaks = np.unique(np.concatenate([LINE, fields[np.abs(fields) < EDGE]]))

    def rows(xi: Array) -> Array:
        omega, density = root_q * xi + b, gauss(xi)
        up, down, bump = (density * part for part in label_law(problem, k * xi, v0, rtol))
        h, slope, loss = response(problem, v, 1.0 - omega)
        h_down, slope_down, loss_down = response(problem, v, 1.0 + omega)
        result = [
            up * slope + down * slope_down,
            up * h**2 + down * h_down**2,
            bump * (h + h_down),
            up * h - down * h_down,
            up * loss + down * loss_down,
        ]
        if full:
            clean_up, clean_down = clean_law(problem, k * xi, v0)
            result += [
                np.where(omega > 0.0, down, up),
                density * np.where(omega > 0.0, clean_down, clean_up),
                up * (1.0 - omega > at_zero) + down * (1.0 + omega > at_zero),
            ]
        return np.array(result)

    return integrate(rows, breaks, rtol)


def regression_channel(problem: Problem, point: Array, rtol: float) -> Array:
    """Return e1, e2, e3 = e1, e0 = 0 and the data loss, the residual being N(0, tau^2)."""
    v, tau = np.exp(point[0]), np.exp(0.5 * point[1])
    kinks = landmarks(problem, v)[0] / tau
    breaks = np.unique(np.concatenate([LINE, kinks[np.abs(kinks) < EDGE]]))

    def rows(xi: Array) -> Array:
        h, slope, loss = response(problem, v, tau * xi)
        return gauss(xi) * np.array([slope, h**2, slope, np.zeros_like(h), loss])

    return integrate(rows, breaks, rtol)


def symmetric(problem: Problem) -> bool:
    """Tell whether (nu, y) and (-nu, -y) have the same law, so that a free intercept is zero."""
    if problem.teacher != "custom":
        return problem.threshold == 0.0
    nu = np.sqrt(problem.rho) * np.linspace(0.0, 12.0, 997)
    total = np.asarray(problem.probability(nu)) + np.asarray(problem.probability(-nu))
    return bool(np.abs(total - 1.0).max() < 1e-14)


@dataclass(frozen=True)
class System:
    """The closed equations in the unknowns described at the top."""

    problem: Problem
    spectrum: Spectrum
    alpha: float
    lam: float

    @property
    def linear(self) -> bool:
        return self.problem.teacher == "linear"

    @property
    def free(self) -> bool:
        biased = self.problem.intercept or kappas(self.problem.activation)[0] != 0.0
        return biased and not symmetric(self.problem)

    def averages(self, x: Array, rtol: float, full: bool = False) -> Array:
        """Return the channel averages at the point x."""
        if self.linear:
            return regression_channel(self.problem, x, rtol)
        return classification_channel(self.problem, x, rtol, full)

    def mapped(self, e: Array) -> dict[str, float]:
        """Return the order parameters that the channel averages imply."""
        return order_parameters(self.problem, self.spectrum, self.alpha, self.lam, e)

    def residual(self, x: Array, rtol: float = FINE) -> Array:
        """Return the violation of every equation."""
        e = self.averages(x, rtol)
        new = self.mapped(e)
        if self.linear:
            return np.log([new["V"], self.problem.noise + new["excess"]]) - x
        f = np.array([np.log(new["V"]), np.log(new["Q"]), new["angle"]]) - x[:3]
        return np.append(f, e[3] / np.sqrt(e[1])) if self.free else f

    def guess(self, start: dict[str, float]) -> Array:
        """Return the unknowns that correspond to a starting point."""
        rho, (v, q, m) = self.problem.rho, (start[key] for key in "VQM")
        if self.linear:
            tau2 = start.get("generalisation_error", rho + self.problem.noise + q - 2.0 * m)
            return np.log([v, max(tau2, 1e-16 * rho)])
        cosine = np.clip(m / np.sqrt(rho * q), -1.0 + 1e-13, 1.0 - 1e-13)
        x = np.array([np.log(v), np.log(q), np.arctanh(cosine)])
        return np.append(x, start.get("intercept", 0.0)) if self.free else x

    def balanced(self, x: Array) -> Array:
        """Move the intercept towards e0 = 0 (e0 decreases with it)."""

        def averages(b: float) -> Array:
            return self.averages(np.append(x[:3], b), COARSE)

        b, reach, e = x[3], np.exp(0.5 * x[1]), averages(x[3])
        if abs(e[3]) <= reach * e[0]:
            return np.append(x[:3], b + e[3] / e[0] if e[0] > 0.0 else b)
        side = np.sign(e[3])
        other = b + side * reach
        while side * averages(other)[3] > 0.0:
            reach *= 2.0
            other += side * reach
        return np.append(x[:3], brentq(lambda b: averages(b)[3], b, other, xtol=1e-2 * reach))

    def relaxed(self, x: Array) -> Array:
        """Iterate the equations, damped, until they nearly hold."""
        count, bottom = (1000, -80.0) if self.linear else (60, -40.0)
        for _ in range(count):
            x = self.balanced(x) if self.free else x
            f = self.residual(x, COARSE)
            if np.abs(f).max() < 1e-3:
                break
            x = x.copy()
            x[:3] += 0.7 * np.clip(f[:3], -3.0, 3.0)
            if x[1] < bottom:
                raise DegenerateError("V = tau = 0" if self.linear else "V = Q = 0")
        return x

    def newton(self, x: Array) -> tuple[Array, float]:
        """Newton's method; also returns the last full step, an estimate of the error."""
        f, size = self.residual(x), np.inf
        for _ in range(25):
            steps = np.full(len(x), 1e-6)
            steps[3:] = 1e-5 * np.exp(0.5 * x[1])
            moved = [(self.residual(x + h) - f) / h.sum() for h in np.diag(steps)]
            move = np.linalg.lstsq(np.array(moved).T, -f)[0]
            size = float(np.abs(move).max())
            move *= min(1.0, 2.0 / max(size, 1e-300))
            for damping in 0.5 ** np.arange(8):
                f_new = self.residual(x + damping * move)
                if np.linalg.norm(f_new) < np.linalg.norm(f):
                    break
            else:
                break
            x, f = x + damping * move, f_new
            if size < 1e-13:
                break
        return x, size

    def descended(self, x: Array) -> tuple[Array, float]:
        """Follow the solution down from a large penalty, extrapolating in log lambda."""
        target, level, stride = np.log(self.lam), np.log(max(self.lam, 1.0)), 2.0
        system = replace(self, lam=np.exp(level))
        x, size = system.newton(system.relaxed(x))
        tangent = np.zeros_like(x)
        while level > target and stride > 1e-2:
            lower = max(level - stride, target)
            y, size = replace(self, lam=np.exp(lower)).newton(x + tangent * (lower - level))
            if size < GOOD:
                tangent = (y - x) / (lower - level)
                x, level, stride = y, lower, 1.5 * stride
            else:
                stride /= 3.0
        return x, size


def solve(
    problem: Problem,
    alpha: float,
    gamma: float,
    lam: float,
    start: dict[str, float] | None = None,
) -> dict[str, float]:
    """Solve the saddle-point equations at one (alpha, gamma, lambda)."""
    system = System(problem, spectrum_of(problem, gamma), alpha, lam)
    cold = {"V": 1.0, "Q": 0.5 * problem.rho, "M": 0.3 * problem.rho}
    step = np.inf
    if start is not None:
        x, step = system.newton(system.guess(start))
    if not step < GOOD:
        x, step = system.newton(system.relaxed(system.guess(cold)))
    if not step < GOOD:
        x, step = system.descended(system.guess(cold))
    if not step < GOOD:
        raise RuntimeError("no convergence, or slowly towards a degenerate solution V = Q = 0")

    e = system.averages(x, FINE, full=True)
    result = system.mapped(e)
    del result["angle"]
    excess = result.pop("excess")
    errors = (problem.noise + excess, excess, np.nan) if system.linear else e[5:]
    result["intercept"] = x[3] if system.free else 0.0
    result["training_loss"] = e[4] + 0.5 * lam * result["q_w"] / alpha
    names = ("generalisation_error", "clean_error", "training_error")
    result |= zip(names, errors, strict=True)
    return {key: float(value) for key, value in result.items()}
