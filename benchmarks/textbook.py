"""Saddle-point equations of random-features logistic classification, solved the textbook way.

Sign activation, Gaussian projection, sign teacher with rho = 1 and ridge-penalised logistic loss:
adaptive quadrature over the channel, a bracketed root search for every proximal map, and plain
fixed-point iteration, one point at a time.
"""

from collections.abc import Callable
from math import acos, erfc, exp, log1p, pi, sqrt

from scipy.integrate import quad
from scipy.optimize import brentq

KAPPA_1 = sqrt(2 / pi)
KAPPA_STAR = sqrt(1 - 2 / pi)

Overlaps = tuple[float, float, float, float, float]


def sigmoid(x: float) -> float:
    """Return the logistic function without overflow."""
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))


def logistic_loss(margin: float) -> float:
    """Return log(1 + exp(-margin)) without overflow."""
    return max(-margin, 0.0) + log1p(exp(-abs(margin)))


def proximal(omega: float, V: float) -> float:
    """Return the minimiser of (x - omega)^2 / (2 V) + log(1 + exp(-x))."""
    return brentq(lambda x: x - omega - V * sigmoid(-x), omega, omega + V + 1)


def stieltjes(z: float, gamma: float) -> tuple[float, float]:
    """Return g(-z) and g'(-z) of the Marchenko-Pastur law of F F^T / p, for z > 0."""
    root = sqrt((z + 1 + gamma) ** 2 - 4 * gamma)
    g = (root - (1 + z - gamma)) / (2 * z * gamma)
    return g, g * (1 + gamma * g) / root


def expectation(integrand: Callable[[float], float]) -> float:
    """Return the average of the integrand over a standard Gaussian variable."""
    return quad(lambda xi: exp(-xi * xi / 2) / sqrt(2 * pi) * integrand(xi), -10, 10)[0]


def order_parameters(overlaps: Overlaps) -> tuple[float, float, float]:
    """Return V, Q and M, which are all the channel depends on."""
    V_s, q_s, m_s, V_w, q_w = overlaps
    V = KAPPA_1**2 * V_s + KAPPA_STAR**2 * V_w
    return V, KAPPA_1**2 * q_s + KAPPA_STAR**2 * q_w, KAPPA_1 * m_s


def update_hats(overlaps: Overlaps, alpha: float, gamma: float) -> Overlaps:
    """Return the hat variables, with the two labels contributing equally by symmetry."""
    V, Q, M = order_parameters(overlaps)
    V_0 = 1 - M * M / Q

    def weight(xi: float) -> float:
        return erfc(-M / sqrt(2 * Q * V_0) * xi) / 2

    def weight_derivative(xi: float) -> float:
        return exp(-((M * xi) ** 2) / (2 * Q * V_0)) / sqrt(2 * pi * V_0)

    def shrinkage(xi: float) -> float:
        eta = proximal(sqrt(Q) * xi, V)
        curvature = sigmoid(eta) * sigmoid(-eta)
        return V * curvature / (1 + V * curvature)

    def displacement(xi: float) -> float:
        return proximal(sqrt(Q) * xi, V) - sqrt(Q) * xi

    i_V = 2 * expectation(lambda xi: weight(xi) * shrinkage(xi))
    i_q = 2 * expectation(lambda xi: weight(xi) * displacement(xi) ** 2)
    i_m = 2 * expectation(lambda xi: weight_derivative(xi) * displacement(xi))
    return (
        alpha * KAPPA_1**2 / (gamma * V) * i_V,
        alpha * KAPPA_1**2 / (gamma * V**2) * i_q,
        alpha * KAPPA_1 / (gamma * V) * i_m,
        alpha * KAPPA_STAR**2 / V * i_V,
        alpha * KAPPA_STAR**2 / V**2 * i_q,
    )


def update_overlaps(averages: Overlaps, gamma: float, lam: float) -> Overlaps:
    """Return the overlaps given the hat variables."""
    V_s_hat, q_s_hat, m_s_hat, V_w_hat, q_w_hat = averages
    ridge = lam + V_w_hat
    z = ridge / V_s_hat
    g, dg = stieltjes(z, gamma)
    signal = m_s_hat**2 + q_s_hat
    cross = (-z * g + z * z * dg) / (ridge * V_s_hat)
    return (
        (1 - z * g) / V_s_hat,
        signal / V_s_hat**2 * (1 - 2 * z * g + z * z * dg) - q_w_hat * cross,
        m_s_hat / V_s_hat * (1 - z * g),
        gamma / ridge * (1 / gamma - 1 + z * g),
        gamma * q_w_hat / ridge**2 * (1 / gamma - 1 + z * z * dg) - gamma * signal * cross,
    )


def training_loss(overlaps: Overlaps, alpha: float, lam: float) -> float:
    """Return the training loss per sample, ridge penalty included."""
    V, Q, M = order_parameters(overlaps)
    slope = M / sqrt(2 * Q * (1 - M * M / Q))
    data = expectation(lambda xi: erfc(-slope * xi) * logistic_loss(proximal(sqrt(Q) * xi, V)))
    return lam * overlaps[4] / (2 * alpha) + data


def solve(
    alpha: float, gamma: float, lam: float, *, tol: float = 1e-7, max_iterations: int = 5000
) -> dict[str, float]:
    """Iterate the saddle-point equations at one point until the overlaps settle."""
    overlaps: Overlaps = (1.0, 1.0, 0.1, 1.0, 1.0)
    change, iterations = float("inf"), 0
    while change >= tol and iterations < max_iterations:
        previous = overlaps
        overlaps = update_overlaps(update_hats(previous, alpha, gamma), gamma, lam)
        change = max(abs(b - a) / abs(b) for a, b in zip(previous, overlaps, strict=True))
        iterations += 1
    _, Q, M = order_parameters(overlaps)
    result = dict(zip(("V_s", "q_s", "m_s", "V_w", "q_w"), overlaps, strict=True))
    result |= {"generalisation_error": acos(M / sqrt(Q)) / pi}
    result |= {"training_loss": training_loss(overlaps, alpha, lam)}
    return result | {"iterations": iterations, "converged": change < tol}
