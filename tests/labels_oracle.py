"""Slow, independent reference for the saddle point with arbitrary labels and losses l(y, f).

Brute force: a grid in ``nu``, one in the label, one in the field, and a root search for every
proximal point. Nothing is shared with the library it is meant to test: no scale mixtures, no closed
forms of the averages, no special functions for the proximal point. Given ``nu ~ N(0, rho)`` the
field is ``omega = b + (M/rho) nu + S zeta``, ``S^2 = Q - M^2/rho``, independent of the label.
Panels end where the response to ``omega`` has a kink. The node counts of all grids grow, level by
level, until the solution no longer changes. Start from ``solve`` and ``metrics``, at the bottom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy import stats
from scipy.special import erfc, erfcx, expit, gammaln, logit, ndtr

GOOD = 1e-11  # largest change of the unknowns between the last two levels
QUARTERS = np.linspace(-11.0, 11.0, 5)  # ends of panels, in standard deviations
ORDERS = (12, 18, 24, 32, 44, 60, 84)  # nodes of a panel in the field or the noise, by level
SHARP = ("mixture", (1.0,), (0.0,))  # no noise


def normal(x, variance=1.0):
    """Return the centred normal density."""
    return np.exp(-0.5 * x**2 / variance) / np.sqrt(2.0 * np.pi * variance)


def panels(edges, order, splits=1):
    """Return nodes and weights of Gauss-Legendre panels, each first split into equal parts."""
    count = splits * (len(edges) - 1)
    edges = np.interp(np.arange(count + 1) / splits, np.arange(len(edges)), edges)
    x, w = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + x)).ravel(), (half * w).ravel()


def blurred_student(m, x, width, size):
    """Return the density at x of size * Student + width * zeta: two rules, near and far."""
    step = min(0.5, 0.19 * np.sqrt(m) * size.min() / width)
    z, p = np.polynomial.hermite_e.hermegauss(12)
    rules = [(np.arange(-9.0, 9.0, step), step), (z, p / normal(z) / np.sqrt(2.0 * np.pi))]
    x, size = np.broadcast_arrays(x, size)
    far, found = np.abs(x) > 40.0 * width, np.zeros(x.shape)
    for part, (nodes, weights) in zip((~far, far), rules, strict=True):
        for z, p in np.broadcast(nodes, weights * normal(nodes)):
            found[part] += p * (1.0 + ((x[part] - width * z) / size[part]) ** 2 / m) ** (
                -(m + 1) / 2
            )
    return found * np.exp(gammaln((m + 1) / 2) - gammaln(m / 2)) / np.sqrt(np.pi * m) / size


def blurred_density(noise, x, width, scale):
    """Return the density at x of scale * noise + width * zeta, zeta being standard normal."""
    kind, *given = noise
    if kind == "mixture":
        return sum(c * normal(x, width**2 + scale**2 * v) for c, v in zip(*given, strict=True))
    size, r = scale * given[-1], np.abs(x)
    if kind == "student":
        return blurred_student(given[0], x, width, size)
    if kind == "uniform":
        return (ndtr((size - r) / width) - ndtr((-size - r) / width)) / (2.0 * size)
    near, far = (width / size + sign * r / width for sign in (-1.0, 1.0))
    bell = np.exp(-0.5 * (x / width) ** 2)
    outside = np.exp(np.minimum(0.5 * (width / size) ** 2 - r / size, 0.0)) * erfc(near / 2**0.5)
    inside = bell * erfcx(np.maximum(near, 0.0) / 2**0.5)
    return (np.where(near > 0.0, inside, outside) + bell * erfcx(far / 2**0.5)) / (4.0 * size)


def blurred_edges(noise, width, scale):
    """Return the ends of panels that resolve that density, one row for every scale."""
    kind, *given = noise
    if kind == "mixture":
        return np.hstack([np.sqrt(width**2 + scale**2 * v)[:, None] * QUARTERS for v in given[1]])
    size, centre, tail = scale[:, None] * given[-1], width * QUARTERS, np.array([3, 8, 18, 40])
    if kind == "uniform":
        return np.hstack([centre - size, centre + size])
    if kind == "student":  # up to where the last finite moment has converged
        power = given[0] - np.searchsorted([1.0, 2.0], given[0])
        tail = 6.0 ** np.arange(min(17.0 / power, 40.0) / np.log10(6.0))
    tail = centre[-1] + size * tail
    return np.hstack([-tail, centre + 0.0 * size, tail])


@dataclass(frozen=True, eq=False)
class Labels:
    """A law of y given nu, not smooth at ``kinks``, with moments below ``power``.

    ``law(nu, level)`` lists numbers of nu, labels and probabilities. Additive labels tell the rest.
    """

    mean: Callable
    law: Callable
    kinks: tuple = ()
    power: float = np.inf
    noise: tuple | None = None
    scale: Callable | None = None

    def variance(self, nu):
        i, y, p = self.law(nu, 3)
        return np.bincount(i, (y - self.mean(nu)[i]) ** 2 * p) if self.power > 2.0 else np.inf


def table(y, p):
    """Return the rows, entries and probabilities of a matrix of labels."""
    y, p = np.broadcast_arrays(y, p)
    return np.indices(y.shape)[0].ravel(), y.ravel(), p.ravel()


def Additive(phi, noise=("none",), scale=None, kinks=()):
    """y = phi(nu) + scale(nu) * noise.

    The noise is ("none",), ("gaussian", variance), ("laplace", s), ("student", m, s),
    ("mixture", weights, variances) or ("uniform", half-width).
    """
    scale = scale or np.ones_like
    noise = {"none": SHARP, "gaussian": ("mixture", (1.0,), noise[1:])}.get(noise[0], noise)

    def law(nu, level, blur=1e-9):
        x, p = np.zeros(1), np.ones(1)
        if noise != SHARP:
            edges = np.unique(blurred_edges(noise, blur, np.ones(1)))
            x, p = panels(edges, ORDERS[level], 2 ** max(level - 2, 0))
            p = p * blurred_density(noise, x, blur, np.ones(1))
        return table(phi(nu)[:, None] + scale(nu)[:, None] * x, p)

    return Labels(phi, law, kinks, noise[1] if noise[0] == "student" else np.inf, noise, scale)


def Counts(kind, *given, kinks=()):
    """("poisson", rate), ("negative_binomial", rate, size) or ("binomial", trials, probability)."""

    def frozen(nu):
        if kind == "poisson":
            return stats.poisson(given[0](nu))
        if kind == "binomial":
            return stats.binom(given[0], given[1](nu))
        return stats.nbinom(given[1], given[1] / (given[1] + given[0](nu)))

    def law(nu, level):
        mean, variance = frozen(nu).stats()
        reach = 12.0 * np.sqrt(variance) + 45.0 * (1.0 + variance / np.maximum(mean, 1e-300))
        low = np.maximum(np.floor(mean - reach), 0.0)
        count = np.ceil(mean + reach - low).astype(int)
        i = np.repeat(np.arange(len(nu)), count)
        y = np.arange(len(i)) + np.repeat(low - np.cumsum(count) + count, count)
        return i, y, frozen(nu[i]).pmf(y)

    return Labels(lambda nu: frozen(nu).mean(), law, kinks)


def Discrete(values, probabilities, kinks=()):
    """Given values; probabilities(nu) has them along its first axis."""
    return Labels(
        lambda nu: np.asarray(values) @ probabilities(nu),
        lambda nu, level: table(np.asarray(values, dtype=float), np.transpose(probabilities(nu))),
        kinks,
    )


def Ordered(values, cuts, noise_variance=0.0):
    """values[k] where nu + noise lies between cuts[k-1] and cuts[k]."""
    width, edges = np.sqrt(noise_variance), np.array([-np.inf, *cuts, np.inf])[:, None]

    def probabilities(nu):
        if width == 0.0:
            return 1.0 * ((nu >= edges[:-1]) & (nu < edges[1:]))
        lo, hi = (edges[:-1] - nu) / width, (edges[1:] - nu) / width
        return np.where(lo > 0.0, ndtr(-lo) - ndtr(-hi), ndtr(hi) - ndtr(lo))

    near = np.add.outer(cuts, 3.5 * width * np.arange(-2, 3))
    return Discrete(values, probabilities, tuple(near.ravel()))


def Gamma(mean, shape, kinks=()):
    """Gamma law of the given mean and shape, so of variance mean^2/shape."""

    def law(nu, level):
        step = 0.4 / 1.5**level / max(1.0, np.sqrt(shape))
        t = np.arange(-42.0 / shape - 2.0, np.log(60.0 + 4.0 * shape), step)
        p = step * np.exp(shape * t - np.exp(t) - gammaln(shape))
        return table(mean(nu)[:, None] * np.exp(t) / shape, p)

    return Labels(mean, law, kinks)


def LogNormal(mean, variance, kinks=()):
    """Log-normal law of the given mean, log y having the given variance."""

    def law(nu, level):
        step, width = 0.5 / 1.5**level, np.sqrt(variance)
        z = np.arange(-11.0, 11.0 + 2.0 * width, step)
        return table(mean(nu)[:, None] * np.exp(width * z - 0.5 * variance), step * normal(z))

    return Labels(mean, law, kinks)


@dataclass(frozen=True)
class Loss:
    """l(y, f), its derivatives by f, and the f of least loss.

    A loss of r = y - f has ``slopes`` on either side of the ``ends``, where panels must end.
    """

    value: Callable
    d: Callable
    dd: Callable
    best: Callable
    ends: tuple = ()
    slopes: tuple | None = None

    def images(self, v):
        """Return the residuals y - omega between which the response is smooth."""
        return np.repeat(self.ends, 2) + v * np.ravel(self.slopes or ())


def of_residual(value, slope, curvature, ends, slopes):
    """Return a loss of r = y - f that is least at r = 0."""
    functions = (value, lambda r: -slope(r), curvature)
    return Loss(*(lambda y, f, g=g: g(y - f) for g in functions), lambda y: y, ends, slopes)


def quadratic(build, *given):
    """Return the loss c + s r + k r^2/2 of the residual: its ends, and (c, s, k) between them."""
    ends, *pieces = build(*given)
    (c, s, k), ends = np.transpose(pieces).astype(float), np.array(ends)
    return of_residual(
        lambda r, i=ends.searchsorted: c[i(r)] + s[i(r)] * r + 0.5 * k[i(r)] * r**2,
        lambda r, i=ends.searchsorted: s[i(r)] + k[i(r)] * r,
        lambda r, i=ends.searchsorted: k[i(r)],
        tuple(ends),
        tuple(np.transpose([s[:-1] + k[:-1] * ends, s[1:] + k[1:] * ends]).ravel()),
    )


Square = partial(quadratic, lambda: [(), (0, 0, 1)])
Huber = partial(quadratic, lambda d: [(-d, d), (-d * d / 2, -d, 0), (0, 0, 1), (-d * d / 2, d, 0)])
Absolute = partial(quadratic, lambda: [(0.0,), (0, -1, 0), (0, 1, 0)])
Quantile = partial(quadratic, lambda tau: [(0.0,), (0, tau - 1, 0), (0, tau, 0)])
Expectile = partial(quadratic, lambda tau: [(0.0,), (0, 0, 1 - tau), (0, 0, tau)])
Insensitive = partial(quadratic, lambda e: [(-e, e), (-e, -1, 0), (0, 0, 0), (-e, 1, 0)])
LogCosh = partial(
    of_residual,
    lambda r: np.logaddexp(r, -r) - np.log(2.0),
    np.tanh,
    lambda r: 4.0 * expit(2.0 * r) * expit(-2.0 * r),
    (-6.0, -3.0, -1.2, 0.0, 1.2, 3.0, 6.0),
    tuple(np.repeat(np.tanh([-6.0, -3.0, -1.2, 0.0, 1.2, 3.0, 6.0]), 2)),
)
PoissonLoss = partial(
    Loss, lambda y, f: np.exp(f) - y * f, lambda y, f: np.exp(f) - y, lambda y, f: np.exp(f), np.log
)
GammaLoss = partial(
    Loss,
    lambda y, f: y * np.exp(-f) + f,
    lambda y, f: 1.0 - y * np.exp(-f),
    lambda y, f: y * np.exp(-f),
    np.log,
)


def BinomialLoss(m):
    return Loss(
        lambda y, f: m * np.logaddexp(0.0, f) - y * f,
        lambda y, f: m * expit(f) - y,
        lambda y, f: m * expit(f) * expit(-f),
        lambda y: logit(y / m),
    )


def proximal(loss, v, y, omega, bracket):
    """Solve eta + v l'(y, eta) = omega by bisection, with Newton steps where they are safe."""
    lo, hi = bracket
    for end in (omega - v * loss.d(y, omega), loss.best(y)):
        lo = np.maximum(lo, np.minimum(omega, end))
        hi = np.minimum(hi, np.maximum(omega, end))
    eta, step = 0.5 * (lo + hi), hi - lo
    for _ in range(200):
        excess, slope = eta - omega + v * loss.d(y, eta), 1.0 + v * loss.dd(y, eta)
        lo, hi = np.where(excess < 0.0, eta, lo), np.where(excess < 0.0, hi, eta)
        newton, small = -excess / slope, 1e-9 * (1.0 + np.abs(eta))  # the next would be 1e-18
        inside = (eta + newton >= lo - small) & (eta + newton <= hi + small)
        safe = inside & (2.0 * np.abs(newton) <= np.abs(step) + small)
        step = np.where(safe, newton, 0.5 * (lo + hi) - eta)
        eta = eta + step
        if (np.abs(step) <= small).all():
            break
    return eta


def responses(loss, v, y, omega, middle):
    """Return f_out, minus its slope, and the loss at the proximal point.

    ``middle`` is a residual y - omega in each row, which tells the piece: every second one belongs
    to a jump of the slope, and there the proximal point stays at the kink.
    """
    piece, ends = loss.images(v).searchsorted(middle)[:, None], np.array([-np.inf, *loss.ends])
    stuck, kink = piece % 2 == 1, y - np.append(ends, np.inf)[piece // 2 + 1]
    with np.errstate(divide="ignore", over="ignore"):
        bracket = kink, np.where(stuck, kink, y - ends[piece // 2])
        eta = np.where(stuck, kink, proximal(loss, v, y, omega, bracket))
    bend = loss.dd(y, eta)
    f = np.where(stuck | (v * bend > 1.0), (eta - omega) / v, -loss.d(y, eta))
    return f, np.where(stuck, 1.0 / v, bend / (1.0 + v * bend)), loss.value(y, eta)


@lru_cache(8)
def nu_grid(labels, rho, level):
    """Return the nodes in nu that matter, and their weights."""
    edges = np.sqrt(rho) * np.linspace(-12.0, 12.0, 25)
    edges = np.unique(np.append(edges, np.clip(labels.kinks, edges[0], edges[-1])))
    nu, w = panels(edges, (8, 14, 20)[min(level, 2)], 2 ** max(level - 2, 0))
    w = w * normal(nu, rho)
    size = w * (1.0 + labels.mean(nu) ** 2)
    keep = size > 1e-18 * size.sum()
    return nu[keep], w[keep]


@lru_cache(8)
def grid(labels, rho, level, blur):
    """Return nu, y, weights, and the shift, noise and scale of the field, for all that matters.

    With ``blur`` only y - omega counts: then y is 0, and the field has the noise of the label.
    """
    nu, w = nu_grid(labels, rho, level)
    if blur:
        return nu, 0.0 * nu, w, labels.mean(nu), labels.noise, labels.scale(nu)
    i, y, p = labels.law(nu, level)
    size = w[i] * p * (1.0 + y**2 if labels.power > 2.0 else 1.0)
    keep = size > (1e-16 if level else 1e-11) * size.sum()
    return nu[i][keep], y[keep], (w[i] * p)[keep], 0.0, SHARP, np.ones(keep.sum())


def summed(function, points, field, ends, level):
    """Sum rows of function(nu, y, omega, middle of the panel) over a grid and over omega.

    ``field`` are b, M/rho and S. Panels end where y - omega is one of ``ends``.
    """
    nu, y, w, shift, noise, scale = points
    centre, edges = field[0] + field[1] * nu - shift, blurred_edges(noise, field[2], scale)
    cuts = np.clip((y - centre)[:, None] - ends, edges.min(1)[:, None], edges.max(1)[:, None])
    edges = np.sort(np.hstack([edges, cuts]), axis=1)
    used = np.diff(edges, axis=1) > 0.0
    if noise is SHARP:
        size, near = w * (1.0 + np.minimum(y**2, 1e8)), np.maximum(edges[:, :-1], -edges[:, 1:])
        mass = size[:, None] * np.exp(-0.5 * (np.maximum(near, 0.0) / field[2]) ** 2)
        used &= mass > 1e-19 * size.sum()
    row, column = np.nonzero(used)
    ends = edges[row, column], edges[row, column + 1]
    nodes, weights = np.polynomial.legendre.leggauss(ORDERS[level])
    total = 0.0
    for part in np.array_split(np.arange(len(row)), 1 + len(row) * len(nodes) // 15000):
        i, lo, hi = row[part], ends[0][part], ends[1][part]
        x = lo[:, None] + 0.5 * (hi - lo)[:, None] * (1.0 + nodes)
        p = (0.5 * w[i] * (hi - lo))[:, None] * weights
        p = p * blurred_density(noise, x, field[2], scale[i, None])
        terms = function(nu[i, None], y[i, None], centre[i, None] + x, centre[i] + 0.5 * (lo + hi))
        total = total + np.array([np.sum(p * term) for term in terms])
    return total


def averages(labels, loss, rho, x, level):
    """Return e1, e2, e3, e0 and the data loss at (log V, log Q, artanh(M/sqrt(rho Q)), b)."""
    v, root_q = np.exp(x[0]), np.exp(0.5 * x[1])
    field = x[3], root_q / np.sqrt(rho) * np.tanh(x[2]), root_q / np.cosh(x[2])

    def terms(nu, y, omega, middle):
        f, g, value = responses(loss, v, y, omega, y[:, 0] - middle)
        return g, f**2, nu * f, f, value

    blur = labels.noise is not None and loss.slopes is not None
    e = summed(terms, grid(labels, rho, level, blur), field, loss.images(v), level)
    e[2] = e[2] / rho + field[1] * e[0]
    return e


def features(e, gamma, lam, rho, kappas, *, orthogonal):
    """Return V, Q, M and q_w implied by alpha times the averages over the labels."""
    k1, ks = kappas[1] ** 2, kappas[2] ** 2
    ridge = lam + e[0] * ks
    x, y = e[0] * k1 / ridge, 1.0 / gamma
    if orthogonal:
        mass = min(gamma, 1.0)
        b1 = 1.0 / (1.0 + x / mass)
        b0, c0, c1 = mass * b1 + (1.0 - mass), mass * b1**2 + (1.0 - mass), b1**2
        c2 = c1 / mass
    else:
        low = 1.0 + (1.0 - y) * x
        root = np.sqrt(low**2 + 4.0 * y * x)
        b0 = 2.0 / (low + root) if low > 0.0 else (root - low) / (2.0 * y * x)
        o = 1.0 + y * x * b0
        b1, c0, c1 = b0 / o, b0 * o / root, b0 / (o * root)
        c2 = c1 * (2.0 * (1.0 + y) + (1.0 - y) ** 2 * x) / (root + 1.0)
    t = rho * e[2] ** 2 * k1 / gamma
    q_s = (e[1] * (k1 * c2 + ks * c1) + t * c2) / ridge**2
    q_w = (e[1] * (k1 * c1 + ks * c0) + t * c1) / ridge**2
    m = rho * e[2] * k1 * b1 / (gamma * ridge)
    return (k1 * b1 + ks * b0) / ridge, k1 * q_s + ks * q_w, m, q_w


def solve(
    labels, loss, *, alpha, gamma, lam, kappas, projection="gaussian", intercept=False, rho=1.0
):
    """Solve the saddle point at alpha = n/p, gamma = d/p, kappas = (kappa_0, kappa_1, kappa_*).

    ``residual`` is what the undamped equations still change, ``change`` what the last grid did.
    """
    free = 4 if intercept or kappas[0] != 0.0 else 3
    nu, w = nu_grid(labels, rho, 3)
    sides = {"gaussian": False, "orthogonal": True}

    def mapped(x, level):
        e = averages(labels, loss, rho, x, level)
        v, q, m, q_w = features(alpha * e, gamma, lam, rho, kappas, orthogonal=sides[projection])
        if not q > 1e-60:
            raise RuntimeError("the prediction collapses to a constant: Q = 0")
        shift = np.clip(e[3] / max(e[0], 1e-300), -1e6, 1e6)
        new = [np.log(v), np.log(q), np.arctanh(m / np.sqrt(rho * q)), x[3] + shift]
        return (new - x)[:free], q_w, e[4] + 0.5 * lam * q_w / alpha

    tilt = np.round(w @ (nu * labels.mean(nu)), 9)
    x, inverse, change = np.array([0.0, np.log(rho), np.sign(tilt) / 2, 0.0]), -np.eye(free), np.inf
    for level in range(len(ORDERS)):  # Broyden's method, or damped iteration where it fails
        start, last, (f, *rest) = x, change, mapped(x, level)
        for _ in range(300):
            limits = np.array([2.0, 2.0, 1.0, max(1.0, np.exp(0.5 * x[1]))])[:free]
            step = np.clip(-inverse @ f, -limits, limits)
            g, *new = mapped(x + np.pad(step, (0, 4 - free)), level)
            worse = not np.linalg.norm(g) < np.linalg.norm(f)
            if worse and np.linalg.norm(f) < 1e-11:
                break
            move = inverse @ (g - f)
            inverse = inverse + np.outer(step - move, step @ inverse) / (step @ move)
            inverse = -0.6 * np.eye(free) if worse else inverse
            x, f, rest = x + np.pad(step, (0, 4 - free)), g, new
            if np.linalg.norm(f) < (1e-13 if level else 1e-6):
                break
        unit = np.array([1.0, 1.0, 1.0, np.hypot(np.exp(0.5 * x[1]), x[3])])
        residual, change = np.abs(f / unit[:free]).max(), np.abs((x - start) / unit).max()
        if change < GOOD or last / 5.0 < change < 100.0 * GOOD:
            break
    if not (residual < 1e-10 and change < 100.0 * GOOD):
        raise RuntimeError(f"no convergence: residual {residual:.1e}, change {change:.1e}")
    q, m = np.exp(x[1]), np.exp(0.5 * x[1]) * np.sqrt(rho) * np.tanh(x[2])
    clean = w @ (labels.mean(nu) - x[3] - m / rho * nu) ** 2 + q / np.cosh(x[2]) ** 2
    rest[1] = rest[1] if labels.power > 1.0 else np.inf
    names = "V", "Q", "M", "b", "q_w", "training_loss", "clean_error", "generalisation_error"
    values = np.exp(x[0]), q, m, x[3], *rest, clean, clean + np.sum(w * labels.variance(nu))
    result = dict(zip(names, values, strict=True), residual=residual, change=change, rho=rho)
    return {key: float(value) for key, value in result.items()}


def metrics(labels, loss, solution, prediction="identity", size=1.0):
    """Return errors of size * link(f) on new data, P(y <= prediction), and the loss of f."""
    link, back = {
        "identity": (lambda f: f, lambda y: y),
        "exp": (np.exp, lambda y: np.log(np.maximum(y, 1e-300))),
        "logistic": (expit, lambda y: logit(np.clip(y, 1e-300, 1.0 - 1e-16))),
    }[prediction]
    rho, m, q, b = (solution[key] for key in ("rho", "M", "Q", "b"))
    field, last = (b, m / rho, np.sqrt(q - m**2 / rho)), np.inf
    blur = None not in (labels.noise, loss.slopes) and (prediction, size) == ("identity", 1.0)

    def terms(nu, y, omega, middle):
        error, below = y - size * link(omega), y <= size * link(middle[:, None])
        return error**2, np.abs(error), loss.value(y, omega), below

    for level in range(1, len(ORDERS)):
        points, (nu, w) = grid(labels, rho, level, blur), nu_grid(labels, rho, level)
        y = points[1][:, None]
        ends = np.hstack([y - back(y / size), np.array(loss.ends) + 0.0 * y])
        clean = (nu, labels.mean(nu), w, 0.0, SHARP, np.ones_like(nu))
        found = summed(terms, points, field, ends, level)
        found = np.append(found, summed(terms, clean, field, np.zeros(0), level)[0])
        if np.all(np.abs(found - last) <= 10.0 * GOOD * np.abs(found)):
            break
        last = found
    found[:3][np.array([2.0, 1.0, 1.0]) >= labels.power] = np.inf
    names = "squared_error", "absolute_error", "test_loss", "coverage", "clean_error"
    return dict(zip(names, map(float, found), strict=True))
