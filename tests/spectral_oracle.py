r"""What features show of a teacher, slowly: from drawn matrices, and in hundreds of digits.

Nothing here is shared with the package. `sums` adds up the eigenvalues of a covariance, in units in
which one feature in p is 1/p; `Chain` takes the innermost argument of deep random features to the
outermost by the forward formulas, with all derivatives, in mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np
from scipy import integrate, special

NAMES = ("D20", "D02", "D21", "D12", "T20", "T02", "T21", "T12", "W", "dW", "B", "A", "S", "left")
"""All that the package calls the sums of features."""
DIGITS = 420


def kappas(sigma: Callable, variance: float = 1.0, kinks: Sequence[float] = ()) -> tuple:
    """Coefficients of an activation of a normal h of given variance, by adaptive quadrature."""
    scale = np.sqrt(variance)
    cuts = np.unique([-12.0, -4.0, 0.0, 4.0, 12.0, *(np.array(kinks) / scale)])

    def mean(power: Callable) -> float:
        def weighted(z: float) -> float:
            return power(z, sigma(scale * z)) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

        parts = zip(cuts[:-1], cuts[1:], strict=True)
        return sum(integrate.quad(weighted, a, b, epsabs=1e-15, epsrel=1e-13)[0] for a, b in parts)

    k0, k1 = mean(lambda z, s: s), mean(lambda z, s: z * s)
    noise = mean(lambda z, s: (s - k0 - k1 * z) ** 2)
    return k0, k1 / scale, np.sqrt(noise)


# finite size


@dataclass(frozen=True)
class Stage:
    """One layer: how its matrix is drawn, its coefficients, and its number of neurons."""

    kind: str
    kappa_1: float
    kappa_star: float
    size: float


def matrix(kind: str, d: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """A d by p matrix: normal entries, or an orthogonal one of columns of squared norm d."""
    Z = rng.standard_normal((d, p))
    if kind == "gaussian":
        return Z
    Q, R = np.linalg.qr(Z if p <= d else Z.T)
    Q = Q * np.sign(np.diag(R))
    return np.sqrt(d) * Q if p <= d else np.sqrt(p) * Q.T


def drawn(
    d: int, stages: Sequence[Stage], rng: np.random.Generator, boost: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Covariance Ω of the features and their covariance Φ with latent data, for drawn matrices.

    The latent data have variance `boost`.
    """
    Omega, Phi = boost * np.eye(d), boost * np.eye(d)
    for stage in stages:
        below, size = len(Omega), int(stage.size)
        F = matrix(stage.kind, below, size, rng)
        Omega = stage.kappa_1**2 * F.T @ Omega @ F / below + stage.kappa_star**2 * np.eye(size)
        Phi = stage.kappa_1 * Phi @ F / np.sqrt(below)
    return Omega, Phi


def measures(Omega: np.ndarray, Phi: np.ndarray, variance: float = 1.0) -> tuple:
    """Eigenvalues of Ω, and what each direction shows of a teacher's field of random weights.

    The field is of white data of given variance, and is seen to a fraction of its own variance.
    """
    w, v = np.linalg.eigh(Omega)
    keep = w > 1e-10 * w[-1]
    g = ((Phi @ v) ** 2).sum(0)[keep] / (len(Phi) * variance)
    return w[keep], g / w[keep], len(w)


def sums(k: float, w: np.ndarray, tau: np.ndarray, p: int) -> dict[str, float]:
    """All sums but those of a boost, over p directions of which those given are not zero."""
    r, s = w / (w + k), k / (w + k)
    hidden, blank = 1.0 - tau.sum(), 1.0 - len(w) / p
    powers = {"20": r * r, "02": s * s, "21": r * r * s, "12": r * s * s}
    out = {f"D{ab}": v.sum() / p for ab, v in powers.items()}
    out |= {f"T{ab}": tau @ v for ab, v in powers.items()}
    out["D02"] += blank
    out["T02"] += hidden
    T1 = tau @ r
    out["W"] = tau @ (r - T1) ** 2 + hidden * T1**2
    out["dW"] = -2 * out["T21"] + 2 * T1 * (tau @ (r * s))
    out["left"] = s.sum() / p
    return out


# infinite size


class Jet:
    """A number, its first two derivatives by one variable and the first by another."""

    def __init__(self, *parts):
        self.v, self.x, self.xx, self.b = parts

    @staticmethod
    def of(value):
        return value if isinstance(value, Jet) else Jet(value, 0, 0, 0)

    def __add__(self, other):
        o = Jet.of(other)
        return Jet(self.v + o.v, self.x + o.x, self.xx + o.xx, self.b + o.b)

    def __mul__(self, other):
        o = Jet.of(other)
        return Jet(
            self.v * o.v,
            self.x * o.v + self.v * o.x,
            self.xx * o.v + 2 * self.x * o.x + self.v * o.xx,
            self.b * o.v + self.v * o.b,
        )

    def __rtruediv__(self, numerator):
        q = 1 / self.v
        inverse = Jet(q, -self.x * q**2, 2 * self.x**2 * q**3 - self.xx * q**2, -self.b * q**2)
        return inverse * numerator

    def __sub__(self, other):
        return self + Jet.of(other) * -1

    def __rsub__(self, other):
        return Jet.of(other) - self

    def __truediv__(self, other):
        return self * (1 / Jet.of(other))

    __radd__, __rmul__ = __add__, __mul__


@dataclass(frozen=True)
class Chain:
    """Layers of random features of white data of dimension d, sizes in units of p."""

    d: float
    stages: Sequence[Stage]

    def __call__(self, k: float, boost: float = 1.0) -> dict[str, mp.mpf]:
        """All sums at k, and `D1`, `T1`, `U1`, `unlearned`."""
        with mp.workdps(DIGITS):
            return self._sums(*self._solved(mp.mpf(k), mp.mpf(boost)))

    def forward(self, u, boost):
        """The outermost k, D1, T1, size and rank at an innermost argument, as jets by log u."""
        u, boost = Jet(u, u, u, 0), Jet(boost, 0, 0, boost)
        size = rank = mp.mpf(self.d)
        T = 1 / (1 + u * size / boost)
        D, stages = T * size, list(self.stages)
        for last in reversed(range(len(stages))):
            if stages[last].kappa_1 == 0:  # nothing but white noise, whatever is below
                size = rank = mp.mpf(stages[last].size)
                D = size / (1 + u * size / mp.mpf(stages[last].kappa_star) ** 2)
                T, stages = Jet.of(mp.mpf(0)), stages[last + 1 :]
                break
        for stage in stages:
            p, k1, ks = (mp.mpf(v) for v in (stage.size, stage.kappa_1, stage.kappa_star))
            if stage.kind == "gaussian":
                u = u * (1 - D / p)
            elif p < size:
                u = u * (1 - D / p) / (1 - D / size)
            if D.v >= p:  # no k is negative: the argument must be larger
                return None
            if ks:
                k = u * k1**2 - ks**2 / p
                phi = k / (k + ks**2 / p)
                D, u, rank = (1 - phi) * p + phi * D, k, p
            else:
                u, rank = u * k1**2, min(p, rank)
            size = p
            if u.v <= 0:
                return None
        return u, D, T, size, rank

    def _solved(self, k, boost):
        """The jets at the innermost argument that belongs to k: Newton's method from above."""
        u = mp.mpf(10) ** -150
        while (found := self.forward(u, boost)) is None or found[0].v < k:
            u *= 10**10
        for _ in range(2000):
            step = (found[0].v - k) / (found[0].x / u)
            u -= step
            found = self.forward(u, boost)
            assert found is not None, "Newton's method left the convex branch"
            if abs(step) < u * mp.mpf(10) ** (-DIGITS // 2):
                return found
        raise AssertionError("no argument found")

    @staticmethod
    def _sums(k, D, T, size, rank):
        slope, bend, bright = k.x / k.v, k.xx / k.v - (k.x / k.v) ** 2, k.b / k.v

        def derivatives(q):
            first = q.x / slope
            return first, (q.xx - first * bend) / slope**2, q.b - first * bright

        (D11, turn, B), D1 = derivatives(D), D.v
        (T11, tilt, A), T1 = derivatives(T), T.v
        D11, turn, T11, tilt = -D11, -turn, -T11, -tilt
        out = {
            "D20": D1 - D11,
            "D02": size - D1 - D11,
            "D21": (D11 + turn) / 2,
            "D12": (D11 - turn) / 2,
            "T20": T1 - T11,
            "T02": 1 - T1 - T11,
            "T21": (T11 + tilt) / 2,
            "T12": (T11 - tilt) / 2,
            "W": T1 - T11 - T1**2,
            "dW": -T11 - tilt + 2 * T1 * T11,
        }
        more = {"B": B, "A": A, "S": T1 - A, "left": rank - D1}
        return {**out, **more, "D1": D1, "T1": T1, "U1": 1 - T1, "unlearned": size - D1}


# the Bayes-optimal error


def bayes_overlap(tau: np.ndarray, n: float, rho: float, noise: float, *, sign: bool) -> float:
    """Overlap of the best predictor of labels of a noisy rule, by plain iteration.

    The field has independent normal coefficients, of parts `tau` of its variance rho, along as many
    visible directions.
    """
    xi = np.linspace(-12.0, 12.0, 1201)  # the trapezoidal rule is as good as it gets
    weight = np.exp(-0.5 * xi**2)
    weight /= weight.sum()
    q = 0.0
    for _ in range(4000):
        V = rho - q + noise
        if sign:
            x = np.sqrt(q / V) * xi
            log_both = special.log_ndtr(x) + special.log_ndtr(-x)
            information = weight @ np.exp(-(x**2) - log_both) / (2 * np.pi * V)
        else:
            information = 1.0 / V
        u = n * information * rho * tau
        previous, q = q, rho * float((tau * u / (1 + u)).sum())
        if abs(q - previous) < 1e-15 * rho:
            break
    return q
