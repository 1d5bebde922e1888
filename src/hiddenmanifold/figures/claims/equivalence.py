"""The equivalent Gaussian model: section 2 of the text."""

from __future__ import annotations

from functools import partial

import numpy as np

from hiddenmanifold.figures.claims.judgement import WORST, Row, verdict
from hiddenmanifold.figures.figure_data import paper_model, worst_score


def coefficients(
    activation: str, expected: str, printed: tuple[float, ...], digits: int, note: str = ""
) -> Row:
    """Section 2.2."""
    kappas = paper_model(activation=activation).activation.kappas
    return Row(
        f"κ0, κ1, κ⋆ of {activation}",
        expected,
        "{:.6f}, {:.6f}, {:.6f}".format(*kappas),
        verdict(bool(np.allclose(kappas, printed, rtol=0, atol=10.0**-digits)), bool(note)),
        note,
    )


def small_dimensions_suffice() -> Row:
    """Figure 1."""
    quantities = ("generalisation_error", "training_loss")
    at = {"n_over_d": 3.0, "p_over_n": [0.3, 2.0], "regularisation": 1e-3, "d": 200}
    own, twin = (
        worst_score(paper_model(), *quantities, **at, data=data)
        for data in ("original", "equivalent")
    )
    return Row(
        "theory, simulation and its Gaussian twin agree at d = 200",
        "agree",
        f"largest |z| {own:.1f} and {twin:.1f}",
        verdict(max(own, twin) < WORST),
        "error and training loss at p/n = 0.3 and 2, 10 seeds, in standard errors",
    )


ERF = (0.0, 2 / np.sqrt(3 * np.pi), 0.2003)
SIGN = (0.0, np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi))
TRUNCATED = "0.2003 is truncated; rounded it is 0.2004"
CLAIMS = (
    partial(coefficients, "erf", "0, 2/√(3π), 0.2003", ERF, 4, TRUNCATED),
    partial(coefficients, "sign", "0, √(2/π), √(1-2/π)", SIGN, 12),
    small_dimensions_suffice,
)
