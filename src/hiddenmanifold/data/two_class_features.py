r"""Two classes of real data as a mixture: from the measures of a sample to fits with any loss.

Over both classes the features have the covariance :math:`\Omega = \Sigma + u\mu\mu^\top`, and the
covariance :math:`u\mu` with the label, whose variance is u. The saddle point needs the functions of
:math:`\Sigma` and :math:`\mu` within a class. Removing a direction lowers the degrees of freedom
by :math:`c = uT_{11}/(1 + uT_1)`, a number below one. The intercept counts as one direction that is
not regularised, so that its own fluctuations, of order 1/n, are part of the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hiddenmanifold.arrays import Array, Columns, Integers
from hiddenmanifold.data.spectrum import Measures, nonnegative
from hiddenmanifold.errors import Status
from hiddenmanifold.features import Covariance, Features
from hiddenmanifold.features.projections import Gaussian
from hiddenmanifold.features.spectral_sums import Sums, discrete
from hiddenmanifold.losses import Loss
from hiddenmanifold.model import Model
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.results.observables import REGISTRY
from hiddenmanifold.teachers import Mixture
from hiddenmanifold.teachers.mixture import FARTHEST
from hiddenmanifold.theory.points import Points
from hiddenmanifold.theory.predictions import asymptotics

ACROSS = 120
"""Points along κ at which other measures are fitted to functions of known ones."""


@dataclass(frozen=True, eq=False)
class Within(Features):
    """Features within a class: of which there is any number, or p random ones of a kernel.

    Attributes
    ----------
    w, directions, tau : arrays (atoms,)
        Eigenvalues, numbers of directions, and parts of the squared distance of the classes.
    p : float
        How many features there are.
    projected : bool
        Whether these are random features, and the directions those of their kernel.
    rho : float
        That distance, see `teachers.Mixture`.
    intercept : bool
        Whether to count the intercept's direction.
    """

    fixed_ratio = 1.0
    w: Array
    directions: Array
    tau: Array
    p: float
    projected: bool
    rho: float = 1.0
    intercept: bool = True

    @classmethod
    def of(cls, measures: Measures, prior: float, p: float, *, projected: bool) -> Within:
        """The features within a class, from the measures of all samples."""
        u = 4.0 * prior * (1.0 - prior)
        known = measures.energies / measures.variance
        known *= min(1.0, (1.0 - 1e-6) / (1.0 + 1.0 / (u * FARTHEST)) / max(known.sum(), 1e-300))
        at = known > 1e-12
        w, tau, rho = np.ones(1), np.zeros(1), 1.0  # the classes cannot be distinguished
        if at.any():
            weights = u * known * measures.w
            found = Covariance.within_classes(tuple(measures.w[at]), tuple(weights[at]), prior)
            w, t = np.array(found.eigenvalues), np.array(found.teacher_weights)
            w, t, rho = w[w > 0], t[w > 0], min(found.rho, FARTHEST)
            tau = t / (w * found.rho)
        directions = _directions(measures, u * rho * tau, w)
        none, zero = np.zeros(len(w)), np.zeros(len(measures.w))
        atoms = (np.append(measures.w, w), np.append(directions, none), np.append(zero, tau))
        return cls(*atoms, p, projected, rho)

    @property
    def variance(self) -> float:
        return float(self.w @ self.directions)

    def sums(self, k: Array, gamma: Array, boost: Array | float = 1.0) -> Sums:
        p = np.full_like(k, self.p)
        if self.projected:
            found = Gaussian().of_layer(self._atoms, k / p, d=p, p=p).in_units(1.0 / p)
        else:
            found = discrete(k, self.p * self.w, self.directions / self.p, self.tau)
        if not self.intercept:
            return found
        return replace(found, D20=found.D20 + 1.0 / p)  # which nothing holds back

    def _atoms(self, x: Array, some: Integers) -> Sums:
        """The sums of all directions, as counts."""
        return discrete(x, self.w, self.directions, self.tau)

    def argument(self, product: Array) -> Array:
        """That of the measures at which κ D1 has a value."""
        x = np.geomspace(1e-14, 1e8, 600) * self.w.max()
        D1 = (x[:, None] + self.w) ** -1.0 @ (self.w * self.directions)
        made = x * (1.0 + D1) * (np.maximum(1.0 - D1 / self.p, 0.0) if self.projected else 1.0)
        good = made > 0.0
        found: Array = np.exp(np.interp(np.log(product), np.log(made[good]), np.log(x[good])))
        return found


@dataclass(frozen=True)
class Kernel:
    """The kernel of which a sample's features are random features, where they resolve it.

    Attributes
    ----------
    measures : Measures
        Those of the kernel.
    gamma, kappa : arrays
        The kernel's arguments that are resolved, in increasing order, and the sample's κ for each.
    """

    measures: Measures
    gamma: Array
    kappa: Array

    @classmethod
    def of(cls, measures: Measures, seen: float) -> Kernel:
        """The kernel of p features of given measures, of which D1 and T1 are the same."""
        least, top = max(measures.resolved, 1e-3 * measures.w.min()), 1e3 * measures.w.max()
        at = measures.at(np.geomspace(least, top, ACROSS))
        with np.errstate(divide="ignore", invalid="ignore"):
            gamma = at.kappa / (1.0 - at.D1 / seen)
            stretch = 1.0 - at.D11 / (seen - at.D1)
        shown = np.cumsum(~(stretch > 0.0)[::-1])[::-1] == 0  # from the largest down
        gamma, D1, U1 = gamma[shown], at.D1[shown], (at.variance - at.T1)[shown]
        left = gamma[:, None] / (measures.w + gamma[:, None])
        directions = nonnegative((1.0 - left) / D1[:, None], np.ones(len(gamma)))[0]
        lost = np.hstack([left, np.ones((len(gamma), 1))]) / U1[:, None]  # hidden: always lost
        energies = nonnegative(lost, np.ones(len(gamma)))[0][:-1]
        found = replace(measures, directions=directions, energies=energies)
        return cls(found, gamma, at.kappa[shown])

    def seen_at(self, gamma: Array) -> Array:
        """The sample's κ that shows the kernel at some arguments; NaN beyond."""
        kappa = np.exp(np.interp(np.log(gamma), np.log(self.gamma), np.log(self.kappa)))
        return np.where(gamma < self.gamma[0] * (1.0 - 1e-9), np.nan, kappa)


def _directions(measures: Measures, t: Array, w: Array) -> Array:
    """Numbers of directions within a class, by their sums at many κ; `t` adds up to u rho."""
    top = float(measures.w.max())
    kappa = np.geomspace(1e-2 * float(measures.w.min()), 1e3 * top, ACROSS)[:, None]
    r, own = w / (w + kappa), measures.w / (measures.w + kappa)
    D1 = own @ measures.directions
    taken = ((r * (1.0 - r)) @ t) / (1.0 + r @ t)
    goal = np.maximum(D1 - taken, 0.1 * D1)
    return nonnegative(own / goal[:, None], np.ones(ACROSS))[0]


def mixed(features: Within, prior: float, loss: Loss, n: Array, lam: Array) -> Columns:
    """Fits to n samples at λ: the columns of `predict`.

    Where they do not converge, as if the best score is a constant, the intercept costs a sample
    instead of fluctuating.
    """

    def solved(features: Within, some: Integers, spent: float) -> Columns:
        teacher = Mixture(prior, rho=features.rho)
        model = Model(features=features, teacher=teacher, loss=loss, intercept=True)
        points = Points.of((n[some] - spent) / features.p, np.ones(len(some)), lam[some])
        observables = {"test_loss": REGISTRY["test_loss"].expected}
        return asymptotics(model, points, Workers(1), observables=observables)

    found = solved(features, np.arange(len(n)), 0.0)
    lost = np.flatnonzero(found["status"] != Status.CONVERGED)
    if lost.size:
        for name, values in solved(replace(features, intercept=False), lost, 1.0).items():
            found[name][lost] = values
    return found
