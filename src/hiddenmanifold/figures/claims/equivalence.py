"""The equivalent Gaussian model: section 2 of the text."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.figures.claims.judgement import WORST, Row, verdict
from hiddenmanifold.figures.curves import compared
from hiddenmanifold.figures.setting import paper_model


def coefficients_of_erf() -> Row:
    """Section 2.2."""
    kappas = paper_model(activation="erf").activation.kappas
    printed = (0.0, 2 / np.sqrt(3 * np.pi), 0.2003)
    return Row(
        "κ0, κ1, κ⋆ of erf",
        "0, 2/√(3π), 0.2003",
        "{:.6f}, {:.6f}, {:.6f}".format(*kappas),
        verdict(bool(np.allclose(kappas, printed, atol=1e-4)), remark=True),
        "0.2003 is truncated; rounded it is 0.2004",
    )


def coefficients_of_sign() -> Row:
    """Section 2.2."""
    kappas = paper_model().activation.kappas
    printed = (0.0, np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi))
    return Row(
        "κ0, κ1, κ⋆ of sign",
        "0, √(2/π), √(1-2/π)",
        "{:.6f}, {:.6f}, {:.6f}".format(*kappas),
        verdict(bool(np.allclose(kappas, printed, rtol=1e-12))),
    )


def small_dimensions_suffice() -> Row:
    """Figure 1."""
    scores = []
    for data in ("original", "equivalent"):
        ds = compared(
            paper_model(),
            n_over_d=3.0,
            p_over_n=[0.3, 2.0],
            regularisation=1e-3,
            d=200,
            seeds=10,
            data=data,
            progress=False,
        )
        scores.append(np.abs([ds.generalisation_error_z, ds.training_loss_z]).max())
    return Row(
        "theory, simulation and its Gaussian twin agree at d = 200",
        "agree",
        f"largest |z| {scores[0]:.1f} and {scores[1]:.1f}",
        verdict(max(scores) < WORST),
        "error and training loss at p/n = 0.3 and 2, 10 seeds, in standard errors",
    )


CLAIMS = (coefficients_of_erf, coefficients_of_sign, small_dimensions_suffice)
