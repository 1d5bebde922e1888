r"""The replica-symmetric free energy at zero temperature.

Written independently of the update equations, which are the conditions that it be stationary:

.. math:: f = \alpha\,E\big[\min_x \tfrac{(x-\omega)^2}{2V} + \ell(y, x)\big]
    - \tfrac12\hat v Q + \tfrac12\hat q V + \hat m M
    - \tfrac1{2\hat v}\big(\hat q D_1 + \hat m^2\rho T_1\big), \qquad k = \lambda/\hat v.

At the saddle point :math:`f = \alpha \times` training loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hiddenmanifold.model import Model
from hiddenmanifold.teachers import BinaryTeacher, Linear

Array = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """Overlaps, intercept and conjugate variables of one point."""

    V: float
    Q: float
    M: float
    intercept: float
    v_hat: float
    q_hat: float
    m_hat: float


def free_energy(model: Model, *, alpha: float, gamma: float, lam: float, state: State) -> float:
    """Free energy per feature of a model at any state, not only at the saddle point.

    Parameters
    ----------
    model : Model
        What is learned.
    alpha, gamma, lam : float
        n/p, d/p and the regularisation.
    state : State
        Where to evaluate; the overlaps must obey M² < rho Q.
    """
    sums = model.features.sums(np.array([lam / state.v_hat]), np.array([gamma]))
    noise, signal = state.q_hat * sums.D1[0], state.m_hat**2 * model.teacher.rho * sums.T1[0]
    return (
        alpha * moreau_average(model, state)
        - 0.5 * state.v_hat * state.Q
        + 0.5 * state.q_hat * state.V
        + state.m_hat * state.M
        - 0.5 * (noise + signal) / state.v_hat
    )


def moreau_average(model: Model, state: State) -> float:
    """Mean over labels and fields of min over s of (s - u)²/2V + rho(s), by adaptive quadrature."""
    from scipy import integrate

    loss, teacher, V = model.loss, model.teacher, state.V
    total = 0.0
    for y in (1, -1) if isinstance(teacher, BinaryTeacher) else (1,):
        if isinstance(teacher, Linear):
            variance = teacher.rho + teacher.noise + state.Q - 2 * state.M
            mean = -state.intercept
        else:
            variance, mean = state.Q, loss.anchor - y * state.intercept
        deviation = np.sqrt(variance)

        def integrand(xi: Array, y: int = y, mean: float = mean, sd: float = deviation) -> Array:
            u = mean - sd * xi
            s = loss.proximal(u, np.full_like(u, V))
            density = np.exp(-0.5 * xi**2) / np.sqrt(2 * np.pi)
            energy = (s - u) ** 2 / (2 * V) + loss.value(s)
            return energy * density * _label(teacher, state, y, xi)

        s, below, above, _ = loss.knots
        images = (mean - np.concatenate([s + V * below, s + V * above])) / deviation
        cuts = np.unique(np.clip([-9.0, -4.0, 0.0, 4.0, 9.0, *images], -9.0, 9.0))
        found = integrate.tanhsinh(integrand, cuts[:-1], cuts[1:], atol=1e-15, rtol=1e-12)
        assert found.success.all()
        total += float(found.integral.sum())
    return total


def _label(teacher: object, state: State, y: int, xi: Array) -> Array | float:
    """Probability of the label y at standardised fields xi along it; 1 for real labels."""
    if not isinstance(teacher, BinaryTeacher):
        return 1.0
    V0 = np.full_like(xi, teacher.rho - state.M**2 / state.Q)
    law: Array = teacher.label_law(y, state.M / np.sqrt(state.Q) * xi, V0)[0]
    return law
