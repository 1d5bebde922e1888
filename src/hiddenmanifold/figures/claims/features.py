"""Gaussian and orthogonal features: section 3.2 of the text."""

from __future__ import annotations

from functools import partial

import numpy as np

from hiddenmanifold.api.needed import features_needed
from hiddenmanifold.api.thresholds import separability_threshold
from hiddenmanifold.figures.claims.judgement import WORST, Row, contest, strength, verdict
from hiddenmanifold.figures.figure_data import paper_model, worst_score


def orthogonal_beats_gaussian(loss: str, teacher: str, regularisation: float | str) -> Row:
    """Section 3.2."""
    models = (
        paper_model(loss=loss, teacher=teacher, projection=projection)
        for projection in ("orthogonal", "gaussian")
    )
    orthogonal, gaussian, worse, where = contest(
        models, np.geomspace(0.05, 20, 161), n_over_d=2.0, regularisation=regularisation
    )
    gain = np.max(1 - orthogonal / gaussian)
    return Row(
        f"orthogonal beats Gaussian always: {loss} loss, {strength(regularisation)}",
        "always",
        f"better by up to {100 * gain:.0f} %" + (f", {where}" if where else ""),
        verdict(not worse.any()),
        "around its own, earlier peak it is worse" if where else "",
    )


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
    n_over_d = np.append(3.0, np.geomspace(0.01, 100, 60))
    gaussian, orthogonal = (
        separability_threshold(
            paper_model(projection=projection), n_over_d=n_over_d
        ).p_over_n.values
        for projection in ("gaussian", "orthogonal")
    )
    return Row(
        "orthogonal features separate data with fewer",
        "fewer",
        f"p/n = {orthogonal[0]:.4f} against {gaussian[0]:.4f} at n/d = 3",
        verdict(bool(np.all(orthogonal < gaussian))),
        "at every n/d from 0.01 to 100",
    )


def structured_matrices_share_the_prediction() -> Row:
    """Section 3.2."""
    at = {"n_over_d": 2.0, "p_over_n": [0.25, 2.0], "regularisation": 0.1, "d": 256}
    hadamard, dct = (
        worst_score(paper_model(loss="square", projection=projection), "generalisation_error", **at)
        for projection in ("hadamard", "dct")
    )
    return Row(
        "Hadamard and DCT features share the orthogonal prediction",
        "share it",
        f"largest |z| {hadamard:.1f} and {dct:.1f}",
        verdict(max(hadamard, dct) < WORST),
        "square loss at p/n = 0.25 and 2, d = 256, 10 seeds, in standard errors",
    )


CLAIMS = (
    partial(orthogonal_beats_gaussian, "square", "linear", 1e-8),
    partial(orthogonal_beats_gaussian, "square", "linear", "optimal"),
    partial(orthogonal_beats_gaussian, "logistic", "sign", 1e-4),
    partial(orthogonal_beats_gaussian, "logistic", "sign", "optimal"),
    orthogonal_needs_fewer_features,
    orthogonal_separates_earlier,
    structured_matrices_share_the_prediction,
)
