r"""One point of a learning curve in eighty digits: what double precision is judged by.

Nothing here is shared with the package. With :math:`k = \lambda/(\alpha e_1)`, :math:`a = e_3/e_1`
and :math:`N = e_2/(\alpha e_1^2)` the saddle point reads, sizes in units of p,

    V = D1/(alpha e1),  M = rho a T1,  Q = N D2 + rho a^2 T2,
    q_w = [N (D1 - D2) + rho a^2 (T1 - T2)]/k,

where D and T are sums over the spectrum at k, and the e are averages over labels and predictions.
Since V = k D1/lambda, the unknowns are the logarithms of k, of Q and of rho Q/M^2 - 1 for labels
+-1, of k and of the test error for real ones; an infinite alpha leaves Q alone. Differences are
taken as they come: there are digits to spare, and every solution is checked with more of them. The
minimiser of a convex problem is unique, so whatever start leads to a solution leads to this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise

from mpmath import mp, mpf
from mpmath.calculus.quadrature import GaussLegendre

DIGITS = {"closed forms": (80, 80, 110), "quadrature": (15, 30, 50)}
"""Digits with which a solution is looked for, found, and checked."""
GOOD = {"closed forms": 1e-20, "quadrature": 1e-12}
"""Largest error of a logarithm that the check may find."""
ROUGHLY = 1e-4
"""Error of a logarithm with which a solution is handed over to more digits."""
MOST = 120
"""Digits that no number needs more of."""
Sums = tuple[mpf, mpf, mpf, mpf]
"""D1, D2, T1 and T2."""


# features


@dataclass(frozen=True)
class Discrete:
    """Atoms: eigenvalues of the covariance, parts of the p directions, and of the field."""

    w: Sequence[float]
    share: Sequence[float]
    tau: Sequence[mpf]

    def __call__(self, k: mpf) -> Sums:
        atoms = [
            (mpf(s), mpf(t), w / (w + k))
            for s, t, w in zip(self.share, self.tau, self.w, strict=True)
        ]
        D1, D2 = (mp.fsum(s * r**j for s, _, r in atoms) for j in (1, 2))
        T1, T2 = (mp.fsum(t * r**j for _, t, r in atoms) for j in (1, 2))
        return D1, D2, T1, T2


def covariance(
    eigenvalues: Sequence[float], weights: Sequence[float], rho: float = 1.0
) -> Discrete:
    """The sums of given eigenvalues of Omega/p and weights t, taken as exact."""
    p = len(eigenvalues)
    with mp.workdps(MOST):
        tau = [mpf(t) / mpf(w) / mpf(rho) for w, t in zip(eigenvalues, weights, strict=True)]
        return Discrete([mpf(w) * p for w in eigenvalues], [mpf(1) / p] * p, tau)


@dataclass(frozen=True)
class Layer:
    """Neurons over the number p of features, coefficients of the activation, kind of matrix."""

    size: float
    kappa_1: float
    kappa_star: float
    kind: str = "gaussian"


@dataclass(frozen=True)
class Layers:
    """Layers above white data of dimension d/p, the last of size 1."""

    d: float
    layers: Sequence[Layer]

    def __call__(self, k: mpf) -> Sums:
        return self._at(len(self.layers), k)

    def _size(self, level: int) -> mpf:
        return mpf(self.layers[level - 1].size if level else self.d)

    def _at(self, level: int, k: mpf) -> Sums:
        """Neurons: activated linear features of what is below."""
        p = self._size(level)
        if level == 0:
            r = 1 / (1 + k * p)
            return p * r, p * r * r, r, r * r
        layer = self.layers[level - 1]
        noise = mpf(layer.kappa_star) ** 2 / p
        phi = k / (k + noise)
        D1, D2, T1, T2 = self._linear(level, (k + noise) / mpf(layer.kappa_1) ** 2)
        bar = 1 - phi
        D2 = bar**2 * p + 2 * phi * bar * D1 + phi**2 * D2
        return bar * p + phi * D1, D2, T1, bar * T1 + phi * T2

    def _linear(self, level: int, k: mpf) -> Sums:
        """Linear features, at the argument u of what is below that belongs to k."""
        p, size, gaussian = (*map(self._size, (level, level - 1)), self._gaussian(level))
        if not gaussian and p >= size:
            return self._at(level - 1, k)
        D1, D2, T1, T2 = self._at(level - 1, self._argument(level, k))
        E = D1 - D2
        f = 1 / (1 + E / (p - D1) - (0 if gaussian else E / (size - D1)))
        return D1, (1 - f) * D1 + f * D2, T1, (1 - f) * T1 + f * T2

    def _gaussian(self, level: int) -> bool:
        return self.layers[level - 1].kind == "gaussian"

    def _argument(self, level: int, k: mpf) -> mpf:
        """Where linear features have k = u (1 - D1/p), an orthogonal matrix over 1 - D1/size."""
        p, size, gaussian = (*map(self._size, (level, level - 1)), self._gaussian(level))
        if level == 1 and not gaussian:
            return k + 1 / p - 1 / size
        if level == 1:  # k = u (1 - (d/p)/(1 + u d))
            b = 1 - size / p - k * size
            root = mp.sqrt(b * b + 4 * size * k)
            return 2 * k / (b + root) if b > 0 else (root - b) / (2 * size)

        def excess(log_u: mpf) -> tuple[mpf, mpf]:
            D1, D2, *_ = self._at(level - 1, mp.exp(log_u))
            if p <= D1:
                return -mp.inf, mpf(1)
            E, stretch = D1 - D2, 1 - D1 / p
            if gaussian:
                return log_u + mp.log(stretch / k), 1 + E / (p - D1)
            return log_u + mp.log(stretch / (1 - D1 / size) / k), 1 + E / (p - D1) - E / (size - D1)

        variance = mpf(1)  # of what is below, which bounds u D1(u)
        for layer in self.layers[: level - 1]:
            variance = mpf(layer.kappa_1) ** 2 * variance + mpf(layer.kappa_star) ** 2
        return mp.exp(_increasing_root(excess, mp.log(k), mp.log(k + variance / p)))


def _increasing_root(function: Callable, low: mpf, high: mpf) -> mpf:
    """Newton's method within brackets, which are halved where it leaves them."""
    x = high
    for _ in range(1000):
        value, slope = function(x)
        low, high = (x, high) if value < 0 else (low, x)
        step = value / slope
        inside = low < x - step < high
        if abs(step) < mpf(10) ** (-0.5 * mp.dps):  # the next would double the digits
            return x - step
        x = x - step if inside else (low + high) / 2
    raise AssertionError("no argument of the features below was found")


# losses


@dataclass(frozen=True)
class Piece:
    """Where -l' at the prox is h0 + h1 s, and the loss there l0 + l1 s + l2 s^2."""

    low: mpf
    high: mpf
    h0: mpf
    h1: mpf
    loss: tuple[mpf, mpf, mpf]


def pieces(loss: str, V: mpf, delta: float = 1.0) -> list[Piece]:
    """A piecewise linear response to the shortfall s: y - omega, or 1 - y omega."""
    inf, U, d = mp.inf, V + 1, mpf(delta)
    if loss == "square":
        return [Piece(-inf, inf, mpf(0), 1 / U, (0, 0, 1 / (2 * U * U)))]
    if loss == "hinge":
        bent = [Piece(mpf(0), V, mpf(0), 1 / V, (0, 0, 0))] if V else []
        return [*bent, Piece(V, inf, mpf(1), mpf(0), (-V, 1, 0))]
    if loss == "huber":
        edge, beyond, inside = U * d, -d * d * (V + 0.5), (1 / U, 1 / (2 * U * U))
    else:
        edge, beyond, inside, d = V, -V, (1 / V if V else 0, mpf(0)), mpf(1)
    middle = [Piece(-edge, edge, mpf(0), inside[0], (0, 0, inside[1]))] if edge else []
    left = Piece(-inf, -edge, -d, mpf(0), (beyond, -d, 0))
    return [left, *middle, Piece(edge, inf, d, mpf(0), (beyond, d, 0))]


# laws of the shortfall


@dataclass(frozen=True)
class NormalLaw:
    """Shortfalls of real labels: normal of variance tau^2."""

    tau: mpf

    def below(self, s: mpf) -> tuple[mpf, mpf, mpf]:
        """Moments of the shortfalls below s."""
        x = s / self.tau
        Phi, phi = mp.ncdf(x), mp.npdf(x)
        last = Phi - (x * phi if phi else 0)
        return Phi, -self.tau * phi, self.tau**2 * last


@dataclass(frozen=True)
class SignLaw:
    """Shortfalls 1 - m of labels +-1: m/sqrt(Q) has the density 2 phi(z) [eps + (1-2 eps) Phi(kz)].

    This is the law of noisy signs, some flipped with probability eps.
    """

    deviation: mpf
    slope: mpf
    flip: mpf

    def below(self, s: mpf) -> tuple[mpf, mpf, mpf]:
        """Moments of the shortfalls below s."""
        J0, J1, J2 = (a - b for a, b in zip(self.margins(mp.inf), self.margins(1 - s), strict=True))
        return J0, J0 - J1, J0 - 2 * J1 + J2

    def margins(self, m: mpf) -> tuple[mpf, mpf, mpf]:
        """Moments of the margins below m."""
        x, k = m / self.deviation, self.slope
        Phi, phi, r = mp.ncdf(x), mp.npdf(x), mp.sqrt(1 + k * k)
        xphi, tilt = (x * phi if phi else mpf(0)), mp.npdf(r * x) / (r * mp.sqrt(2 * mp.pi))
        under = mp.ncdf(k * x)
        B0 = Phi / 2 - owens_t(x, k)
        B1 = -phi * under + k * mp.ncdf(r * x) / (r * mp.sqrt(2 * mp.pi))
        B2 = -xphi * under + B0 - k * tilt / r
        A, B, e = (Phi, -phi, Phi - xphi), (B0, B1, B2), self.flip
        scales = (1, self.deviation, self.deviation**2)
        return tuple(
            2 * u * (e * a + (1 - 2 * e) * b) for u, a, b in zip(scales, A, B, strict=True)
        )

    def density(self) -> Callable:
        """That of a margin."""
        scale, slope, e = map(_number, (self.deviation, self.slope, self.flip))
        exp, erfc = (math.exp, math.erfc) if mp.dps <= 15 else (mp.exp, mp.erfc)
        height, root, most = _number(mp.sqrt(2 / mp.pi)) / scale, _number(mp.sqrt(2)), 4.7 * mp.dps

        def at(m: mpf) -> mpf:
            z = m / scale
            x = slope * z
            if x * x > most:  # one or zero, to all digits
                share = (1 - e) if x > 0 else e
            else:
                share = e + (1 - 2 * e) * erfc(-x / root) / 2
            return height * share * exp(-z * z / 2) if share else share

        return at


def owens_t(h: mpf, a: mpf) -> mpf:
    """Owen's function, by its series for a <= 1 and h >= 0."""
    if mp.isinf(h):
        return mpf(0)
    h = abs(h)
    if a > 1:
        one, other = mp.ncdf(h), mp.ncdf(a * h)
        return (one + other) / 2 - one * other - owens_t(a * h, 1 / a)
    least = mpf(10) ** -mp.dps
    with mp.workdps(mp.dps + 10):
        half = h * h / 2
        weight = mp.exp(-half)
        rest, power, total, j = 1 - weight, a, mpf(0), 0
        if weight < least:
            return mpf(0)
        while abs(rest * power) > least * a:
            total += power * rest / (2 * j + 1)
            j += 1
            weight *= half / j
            rest -= weight
            power *= -a * a
    return (mp.atan(a) - total) / (2 * mp.pi)


@dataclass(frozen=True)
class Averages:
    """e1, e2, the mean of m h (which gives e3), and the mean loss at the prox."""

    e1: mpf
    e2: mpf
    mh: mpf
    loss: mpf


def piecewise(law: NormalLaw | SignLaw, parts: Sequence[Piece]) -> Averages:
    """Averages over shortfalls of a piecewise linear response."""
    below = cache(law.below)
    e1 = e2 = mh = loss = mpf(0)
    for part in parts:
        J0, J1, J2 = (b - a for a, b in zip(below(part.low), below(part.high), strict=True))
        h0, h1 = part.h0, part.h1
        e1 += h1 * J0
        e2 += h0 * h0 * J0 + 2 * h0 * h1 * J1 + h1 * h1 * J2
        mh += h0 * (J0 - J1) + h1 * (J1 - J2)
        loss += part.loss[0] * J0 + part.loss[1] * J1 + part.loss[2] * J2
    return Averages(e1, e2, mh, loss)


REACH = (0.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0)
"""Edges of panels on both sides of zero: the poles of the logistic function are at i pi, ..."""
WIDTHS = (0.0, 3.0, 6.0, 9.0, 12.0)
"""Edges in units of the widths of normal functions."""


def logistic(law: SignLaw, V: mpf) -> Averages:
    """Averages of the logistic loss, over the prox eta; far on the wrong side it is linear."""
    end = min(edge for edge in REACH if edge > 2.3 * mp.dps - 8)
    tail = Piece(1 + end + V, mp.inf, mpf(1), mpf(0), (-1 - V, 1, 0))
    with mp.workdps(MOST // 2):  # its moments are differences
        far = piecewise(law, [tail])
    sums = [far.e1, far.e2, far.mh, far.loss]
    sizes = tuple(map(_rounded, (law.deviation, law.deviation / law.slope, V)))
    density, V = law.density(), _number(V)
    for eta, weight, h, bend, value in _nodes(sizes, end, mp.prec):
        omega = eta - V * h
        share = weight * density(omega)
        if share:
            stretched = share * (1 + V * bend)
            terms = (share * bend, stretched * h * h, stretched * omega * h, stretched * value)
            sums = [a + b for a, b in zip(sums, terms, strict=True)]
    return Averages(*sums)


def _number(x: mpf) -> mpf | float:
    """A float, which is fast, if no more digits are asked for."""
    return float(x) if mp.dps <= 15 else x


def _rounded(size: mpf) -> float:
    """Near enough for panels, and the same for all that is near."""
    return 2.0 ** (round(4 * math.log2(size)) / 4) if size > 0 else 0.0


@lru_cache(4)
def _nodes(sizes: tuple[float, float, float], end: float, prec: int) -> list[tuple[mpf, ...]]:
    """Nodes of Gauss and Legendre on panels, 24 or 48 on each: eta, weight, -l', l'' and l."""
    nodes = []
    rule = GaussLegendre(mp).calc_nodes(5 if mp.dps > 40 else 4, prec)
    for low, high in pairwise(_edges(*sizes, end)):
        middle, half = (mpf(high) + mpf(low)) / 2, (mpf(high) - mpf(low)) / 2
        for node, weight in rule:
            eta = middle + half * node
            decay = mp.exp(-abs(eta))
            h = (decay if eta > 0 else 1) / (1 + decay)
            value = mp.log(1 + decay) - min(eta, 0) if eta < 5 else -mp.log(1 - h)
            found = (eta, half * weight, h, decay / (1 + decay) ** 2, value)
            nodes.append(tuple(map(_number, found)))
    return nodes


def _edges(deviation: float, width: float, V: float, end: float) -> list[float]:
    """Edges of panels in eta: those of the loss, and where the normal functions bend."""

    def prox(omega: float) -> float:
        low, high = omega, omega + V
        for _ in range(60):
            eta = (low + high) / 2
            h = 1 / (1 + math.exp(eta)) if eta < 700 else 0.0
            low, high = (low, eta) if eta - V * h > omega else (eta, high)
        return low

    bends = {prox(s * size * w) for size in (deviation, width) for w in WIDTHS for s in (1, -1)}
    edges = bends | {sign * edge for edge in REACH for sign in (1, -1)}
    low, high = max(-end, prox(-15 * deviation)), min(end, prox(15 * deviation))
    return sorted({min(max(edge, low), high) for edge in edges})


# the saddle point


@dataclass(frozen=True)
class Problem:
    """One point: features, labels (real if `sign` is false), loss, n/p and lambda."""

    features: Callable[[mpf], Sums]
    loss: str
    n_over_p: float
    regularisation: float
    sign: bool = True
    noise: float = 0.0
    flip: float = 0.0
    rho: float = 1.0
    delta: float = 1.0

    @property
    def method(self) -> str:
        """How the averages are computed."""
        return "quadrature" if self.loss == "logistic" else "closed forms"

    @cached_property
    def _numbers(self) -> tuple[mpf, mpf, mpf, mpf]:
        names = ("n_over_p", "regularisation", "rho", "noise")
        return tuple(mpf(getattr(self, name)) for name in names)

    def law(self, Q: mpf, R: mpf) -> SignLaw:
        """That of the shortfalls of labels +-1, at R = rho Q/M^2 - 1."""
        *_, rho, noise = self._numbers
        rest = rho * R / (1 + R) + noise
        return SignLaw(mp.sqrt(Q), mp.sqrt(rho / (1 + R) / rest), mpf(self.flip))

    def averages(self, V: mpf, Q: mpf, *R: mpf) -> Averages:
        """Those at given overlaps; for real labels Q is the test error instead."""
        law = self.law(Q, *R) if self.sign else NormalLaw(mp.sqrt(Q))
        if self.loss == "logistic":
            return logistic(law, V)
        return piecewise(law, pieces(self.loss, V, self.delta))

    def residual(self, x: Sequence[mpf]) -> list[mpf]:
        """Logarithms of what the unknowns exp(x) are off by, after one turn of the equations.

        Only averages have as few digits as are asked for: what they leave is a small difference.
        """
        alpha, lam, rho, noise = self._numbers
        digits = mp.dps
        with mp.workdps(MOST):
            k, Q, *R = map(mp.exp, x)
            D1, D2, T1, T2 = self.features(k)
            with mp.workdps(digits):
                e = self.averages(k * D1 / lam, Q, *R)
            N = e.e2 / (alpha * mpf(e.e1) ** 2)
            first = _log(alpha * e.e1 * k / lam)
            if not self.sign:
                return [first, _log((N * D2 + rho * (1 - 2 * T1 + T2) + noise) / Q)]
            a = self._slope(e, Q, *R)
            deficit = (N * D2 / rho + a * a * (T2 - T1**2)) / (a * T1) ** 2
            return [first, _log((N * D2 + rho * a * a * T2) / Q), _log(deficit / R[0])]

    def near(self) -> list[mpf]:
        """Unknowns near the solution, found from afar."""
        return _walk(self)

    def _slope(self, e: Averages, Q: mpf, R: mpf) -> mpf:
        """The ratio e3/e1, from M e3 = E[m h] + Q e1."""
        return (mpf(e.mh) / e.e1 + Q) / mp.sqrt(mpf(self.rho) * Q / (1 + R))

    def solution(self, x: Sequence[mpf], error: float) -> Solution:
        """All overlaps and errors at given unknowns."""
        alpha, lam, rho, noise = self._numbers
        k, Q, *R = map(mp.exp, x)
        with mp.workdps(MOST):
            D1, D2, T1, T2 = self.features(k)
            D11, T11 = D1 - D2, T1 - T2
        V = k * D1 / lam
        e = self.averages(V, Q, *R)
        N, a = e.e2 / (alpha * e.e1**2), self._slope(e, Q, *R) if self.sign else mpf(1)
        q_w = (N * D11 + rho * a * a * T11) / k
        found, M = N * D2 + rho * a * a * T2, rho * a * T1
        wrong = self._wrong(*R) if self.sign else Q
        return Solution(V, found, M, q_w, wrong, e.loss + lam * q_w / (2 * alpha), error)

    def _wrong(self, R: mpf) -> mpf:
        """Probability of a wrong label."""
        *_, rho, noise = self._numbers
        angle = mp.atan2(mp.sqrt(rho * R / (1 + R) + noise), mp.sqrt(rho / (1 + R)))
        return self.flip + (1 - 2 * mpf(self.flip)) * angle / mp.pi


def _log(x: mpf) -> mpf:
    return mp.log(x) if x > 0 else mp.inf


@dataclass(frozen=True)
class Solution:
    """Overlaps and errors, and how far the logarithms of the unknowns may be off."""

    V: mpf
    Q: mpf
    M: mpf
    q_w: mpf
    generalisation_error: mpf
    training_loss: mpf
    error: float


# solving it


def solve(problem: Problem, start: Sequence[float] | None = None) -> Solution:
    """The solution, from given V, Q and clean error (for real labels V and the test error).

    Without a start, or where none is found from it, it is looked for from afar.
    """
    if mp.isinf(problem.n_over_p):
        given = {field.name: getattr(problem, field.name) for field in fields(problem)}
        problem, start = Plenty(**given), None
    rough, digits, more = DIGITS[problem.method]
    with mp.workdps(rough):
        found = start and _newton(problem, _unknowns(problem, *start), ROUGHLY, 20)
        x = found[0] if found else problem.near()
    with mp.workdps(digits):
        found = _newton(problem, x, mpf(10) ** (-0.6 * digits))
    assert found, f"no solution of {problem} was found"
    x, matrix = found
    with mp.workdps(more):
        error = mp.norm(_against(matrix, problem.residual(x)), mp.inf)
        assert error < GOOD[problem.method], f"{problem} is solved to {mp.nstr(error, 2)} only"
    with mp.workdps(digits):
        return problem.solution(x, float(error))


def _unknowns(problem: Problem, V: float, Q: float, clean: float | None = None) -> list[mpf]:
    """The logarithms that are sought, from overlaps that may be wrong."""
    target = mpf(problem.regularisation) * mpf(V)
    low, high = mp.log(target) - 50, mp.log(target) + 5
    while mp.exp(high) * problem.features(mp.exp(high))[0] < target:
        high += 5
    for _ in range(60):
        k = (low + high) / 2
        enough = mp.exp(k) * problem.features(mp.exp(k))[0] > target
        low, high = (low, k) if enough else (k, high)
    return [low, mp.log(Q), *([] if clean is None else [2 * mp.log(mp.tan(mp.pi * clean))])]


def _walk(problem: Problem) -> list[mpf]:
    """Unknowns near the solution, from where any start will do: by steps in n/p, then lambda."""
    ends = [mp.log(problem.n_over_p), mp.log(problem.regularisation)]
    begins = [min(ends[0], mp.log(2)), max(ends[1], mp.log(0.1))]
    known: list[tuple[mpf, list[mpf]]] = []
    at, pace = mpf(0), mpf(0)
    while at < 2 or not known:
        there = min(at + pace, mpf(1 if at < 1 else 2))
        parts = min(there, 1), max(there - 1, 0)
        n_over_p, lam = (
            mp.exp(a + (b - a) * part) for a, b, part in zip(begins, ends, parts, strict=True)
        )
        near = replace(problem, n_over_p=n_over_p, regularisation=lam)
        guess = _extrapolated(known, there) if known else _unknowns(near, 1, 1, *[0.25] * near.sign)
        found = _newton(near, guess, ROUGHLY, 12 if known else 100)
        if found is None:
            pace /= 4
            assert pace > 1e-6, f"no way to {problem} was found"
        else:
            known, at, pace = [*known[-1:], (there, found[0])], there, pace * 2 or mpf(1) / 8
    return known[-1][1]


def _extrapolated(known: list[tuple[mpf, list[mpf]]], at: mpf) -> list[mpf]:
    """What is next on the line through the last two solutions."""
    (t1, x1), (t2, x2) = known[0], known[-1]
    if t1 == t2:
        return x2
    return [b + (b - a) * (at - t2) / (t2 - t1) for a, b in zip(x1, x2, strict=True)]


def _newton(
    problem: Problem, x: list[mpf], tolerance: mpf, most: int = 60
) -> tuple[list[mpf], mp.matrix] | None:
    """Newton's method, its steps bounded and halved; a matrix serves while it does well."""
    F, matrix = _linearised(problem, x)
    for _ in range(most):
        step = _against(matrix, F)
        size = mp.norm(step, mp.inf)
        if not mp.isfinite(size):
            return None
        if size < tolerance:
            return [a - b for a, b in zip(x, step, strict=True)], matrix
        length = 1 if size < 2 else 2 / size
        for _ in range(12):
            nearer = [a - length * b for a, b in zip(x, step, strict=True)]
            F = problem.residual(nearer)
            left = mp.norm(_against(matrix, F), mp.inf)
            if left < size:
                break
            length /= 2
        else:
            return None
        x = nearer
        F, matrix = _linearised(problem, x) if left > 1e-3 * size else (F, matrix)
    return None


def _against(matrix: mp.matrix, F: list[mpf]) -> mp.matrix:
    """The inverse matrix times the residual: what an unknown is off by."""
    try:
        with mp.workdps(MOST):
            return mp.lu_solve(matrix, mp.matrix(F))
    except ZeroDivisionError:
        return mp.matrix([mp.inf])


def _linearised(problem: Problem, x: list[mpf]) -> tuple[list[mpf], mp.matrix]:
    """The residual, and its derivatives by differences that keep a third of the digits."""
    F, h = problem.residual(x), mpf(10) ** -(mp.dps // 3)
    matrix = mp.matrix(len(x))
    for j in range(len(x)):
        with mp.workdps(MOST):
            beside = [v + h * (i == j) for i, v in enumerate(x)]
        moved = problem.residual(beside)
        with mp.workdps(MOST):
            for i, (a, b) in enumerate(zip(F, moved, strict=True)):
                matrix[i, j] = (b - a) / h
    return F, matrix


class Plenty(Problem):
    """Infinite data: w minimises the mean loss over Q, and lambda does not matter."""

    @cached_property
    def _chi(self) -> mpf:
        """The visible part of the field."""
        with mp.workdps(MOST):
            return self.features(mpf(10) ** (-3 * MOST))[2]

    def residual(self, x: Sequence[mpf]) -> list[mpf]:
        """What E[m h] is off by, in units of the mean loss."""
        if not self.sign:
            return [x[0]]
        e = self.averages(mpf(0), mp.exp(x[0]), 1 / self._chi - 1)
        return [e.mh / e.loss]

    def near(self) -> list[mpf]:
        """A logarithm of Q between signs of the residual."""
        if not self.sign:
            return [mpf(0)]
        x, pace = mpf(0), mpf(2)
        while self.residual([x])[0] < 0:
            x -= pace
        while self.residual([x + pace])[0] > 0:
            x += pace
        low, high = (self.residual([v])[0] for v in (x, x + pace))
        return [x + pace * low / (low - high)]

    def solution(self, x: Sequence[mpf], error: float) -> Solution:
        rho, noise, chi = mpf(self.rho), mpf(self.noise), self._chi
        Q, R = mp.exp(x[0]), 1 / chi - 1
        if not self.sign:
            wrong = rho * (1 - chi) + noise
            e = self.averages(mpf(0), wrong)
            return Solution(mpf(0), rho * chi, rho * chi, mp.nan, wrong, e.loss, error)
        e = self.averages(mpf(0), Q, R)
        return Solution(mpf(0), Q, mp.sqrt(rho * Q * chi), mp.nan, self._wrong(R), e.loss, error)
