"""Montanari, Ruan, Sohn and Yan, The generalization error of max-margin linear classifiers.

arXiv:1911.01544 (Annals of Statistics 2025). The largest margin κ⋆ and the error of its classifier
for Gaussian features of any covariance, by F_κ(c1, c2)² = E(κ - c1 YG - c2 Z)+²: stationary points
of F_κ(<h, W>, |h - <h, W>W|) + √ψ <G, h> under E h²/X = 1, where that minimum vanishes; X has the
law of the eigenvalues and W² their shares in the field. And random features, by the law of their
equivalent Gaussian ones.

Mapping: ψ = p/n; λ → 0 of the logistic loss, or the hinge; κ⋆ is our margin. An eigenvalue x with
the share g of the seen field has the eigenvalue x/p and teacher weight x g χρ/p, with χ the part of
the field that is seen.
"""

import numpy as np
import pytest
from scipy.special import ndtr

import hiddenmanifold as hm
from other_papers.gaussian import (
    LogisticLabel,
    PartLabel,
    ProbitLabel,
    law_of_field,
    positive_part,
    positive_square,
    solve,
)


def largest_margin(psi, label, X, law, shares):
    """Error and margin; X has the given law, and W² the shares."""
    V, weights = law_of_field(label)

    def equations(c1, c2, s, kappa):
        a = (kappa - c1 * V) / c2
        F = c2 * np.sqrt(weights @ positive_square(a))
        by_c1 = -c2 * weights @ (V * positive_part(a)) / F
        by_c2 = c2 * weights @ ndtr(a) / F
        D = by_c2 / c2 + s / X
        pull = c1 * by_c2 / c2 - by_c1

        def size(metric):
            return psi * law @ (metric / D**2) + pull**2 * shares @ (metric / D**2)

        return (
            pull / c1 * shares @ (1 / D) - 1,
            size(np.ones_like(X)) / (c1**2 + c2**2) - 1,
            size(1 / X) - 1,
            psi * law @ (1 / D) / F - 1,
        )

    c1, c2, _, kappa = solve(equations, (0.5, 0.8, 0.5, 0.5))
    return float(weights @ ndtr(-c1 / c2 * V)), kappa


def predicted(model, **ratios):
    ds = hm.predict(model, regularisation=0, **ratios)
    return [ds.generalisation_error, ds.margin]


LEVELS = {
    "isotropic": ([1.0], [1.0]),
    "two levels, field in the large one": ([2.0, 0.5, 0.5], [0.9, 0.05, 0.05]),
    "two levels, field in the small one": ([2.0, 0.5, 0.5], [0.1, 0.45, 0.45]),
    "six levels": ([0.1, 0.4, 0.8, 1.5, 2.0, 3.0], [0.1, 0.2, 0.1, 0.3, 0.2, 0.1]),
}


@pytest.mark.parametrize("psi", [0.7, 1.5, 4.0])
@pytest.mark.parametrize(("X", "shares"), LEVELS.values(), ids=LEVELS)
def test_correlated_features(agree, psi, X, shares):
    X, shares, rho = np.array(X), np.array(shares), 4.0
    model = hm.Model(
        features=hm.features.Covariance(X / len(X), X * shares * rho / len(X), rho),
        teacher=hm.teachers.Logistic(rho=rho),
        loss="logistic",
    )
    law = np.full(len(X), 1 / len(X))
    expected = largest_margin(psi, LogisticLabel(rho**0.5), X, law, shares)
    agree(predicted(model, p_over_n=psi), expected)


def erf_features(p_over_d):
    """Law of the eigenvalues of erf features, shares of the field, and the part that is seen."""
    linear, rest = 4 / (3 * np.pi), 2 / np.pi * np.arcsin(2 / 3) - 4 / (3 * np.pi)
    angle, weights = np.polynomial.legendre.leggauss(400)
    angle, weights = (angle + 1) * np.pi / 2, weights * np.pi / 2
    s = 1 + p_over_d + 2 * np.sqrt(p_over_d) * np.cos(angle)
    law = weights * 2 * np.sin(angle) ** 2 / (np.pi * s)
    s, law = np.append(s, 0.0), np.append(law, max(0.0, 1 - 1 / p_over_d))
    X = linear * s + rest
    field = p_over_d * law * linear * s / X
    return X, law, field / field.sum(), field.sum()


@pytest.mark.parametrize(("psi", "p_over_d"), [(0.8, 0.5), (1.0, 2.0), (2.0, 3.0), (5.0, 15.0)])
def test_random_features(agree, psi, p_over_d):
    X, law, shares, seen = erf_features(p_over_d)
    expected = largest_margin(psi, PartLabel(ProbitLabel(), seen), X, law, shares)
    model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="hinge")
    agree(predicted(model, p_over_n=psi, p_over_d=p_over_d), expected)
