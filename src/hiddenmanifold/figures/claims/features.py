"""Gaussian and orthogonal features: section 3.2 of the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from hiddenmanifold.figures.claims.judgement import WORST, Row, error, verdict
from hiddenmanifold.figures.curves import compared
from hiddenmanifold.figures.setting import paper_model
from hiddenmanifold.needs import features_needed
from hiddenmanifold.thresholds import separability_threshold


def _orthogonal_against_gaussian(loss: str, teacher: str, regularisation: Any) -> Row:
    p_over_n = np.geomspace(0.05, 20, 161)
    arguments = {"n_over_d": 2.0, "p_over_n": p_over_n, "regularisation": regularisation}
    gaussian, orthogonal = (
        error(paper_model(loss=loss, teacher=teacher, projection=projection), **arguments)
        for projection in ("gaussian", "orthogonal")
    )
    worse = ~(orthogonal <= gaussian * (1 + 1e-9))  # what could not be solved does not count as won
    name = "optimal λ" if regularisation == "optimal" else f"λ = {regularisation:g}"
    gain = np.max(1 - orthogonal / gaussian)
    computed = f"better by up to {100 * gain:.0f} %"
    if worse.any():
        computed += f", worse for p/n in [{p_over_n[worse].min():.2f}, {p_over_n[worse].max():.2f}]"
    return Row(
        f"orthogonal beats Gaussian always: {loss} loss, {name}",
        "always",
        computed,
        verdict(not worse.any()),
        "around its own, earlier peak it is worse" if worse.any() else "",
    )


def orthogonal_ridge_at_small_regularisation() -> Row:
    """Section 3.2."""
    return _orthogonal_against_gaussian("square", "linear", 1e-8)


def orthogonal_ridge_at_the_optimum() -> Row:
    """Section 3.2."""
    return _orthogonal_against_gaussian("square", "linear", "optimal")


def orthogonal_logistic_at_small_regularisation() -> Row:
    """Section 3.2."""
    return _orthogonal_against_gaussian("logistic", "sign", 1e-4)


def orthogonal_logistic_at_the_optimum() -> Row:
    """Section 3.2."""
    return _orthogonal_against_gaussian("logistic", "sign", "optimal")


def orthogonal_needs_fewer_features() -> Row:
    """Section 3.2."""
    gaussian, orthogonal = (
        features_needed(paper_model(loss="square", projection=projection), n_over_d=2.0).p_over_n
        for projection in ("gaussian", "orthogonal")
    )
    return Row(
        "orthogonal features reach the kernel limit with fewer",
        "fewer",
        f"5 % above it at p/n = {float(orthogonal):.1f} against {float(gaussian):.1f}",
        verdict(bool(orthogonal < gaussian)),
        "square loss on sign labels, n/d = 2, optimal λ",
    )


def orthogonal_separates_earlier() -> Row:
    """Section 3.2."""
    n_over_d = np.geomspace(0.01, 100, 60)
    gaussian, orthogonal = (
        separability_threshold(paper_model(projection=projection), n_over_d=n_over_d).values
        for projection in ("gaussian", "orthogonal")
    )
    at_3 = [
        float(separability_threshold(paper_model(projection=projection), n_over_d=3.0))
        for projection in ("orthogonal", "gaussian")
    ]
    return Row(
        "orthogonal features separate data with fewer",
        "fewer",
        "p/n = {:.4f} against {:.4f} at n/d = 3".format(*at_3),
        verdict(bool(np.all(orthogonal < gaussian))),
        "at every n/d from 0.01 to 100",
    )


def structured_matrices_share_the_prediction() -> Row:
    """Section 3.2."""
    scores = []
    for projection in ("hadamard", "dct"):
        ds = compared(
            paper_model(loss="square", projection=projection),
            n_over_d=2.0,
            p_over_n=[0.25, 2.0],
            regularisation=0.1,
            d=256,
            seeds=10,
            progress=False,
        )
        scores.append(np.abs(ds.generalisation_error_z.values).max())
    return Row(
        "Hadamard and DCT features share the orthogonal prediction",
        "share it",
        f"largest |z| {scores[0]:.1f} and {scores[1]:.1f}",
        verdict(max(scores) < WORST),
        "square loss at p/n = 0.25 and 2, d = 256, 10 seeds, in standard errors",
    )


CLAIMS = (
    orthogonal_ridge_at_small_regularisation,
    orthogonal_ridge_at_the_optimum,
    orthogonal_logistic_at_small_regularisation,
    orthogonal_logistic_at_the_optimum,
    orthogonal_needs_fewer_features,
    orthogonal_separates_earlier,
    structured_matrices_share_the_prediction,
)
