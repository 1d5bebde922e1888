"""The hidden manifold: section 3.3 of the text."""

from __future__ import annotations

import numpy as np

from hiddenmanifold.api.thresholds import interpolation_peak
from hiddenmanifold.figures.claims.judgement import Row, error, verdict
from hiddenmanifold.figures.figure_data import hidden_manifold


def peak_shrinks_with_regularisation() -> Row:
    """Section 3.3."""
    peak = interpolation_peak(hidden_manifold(), d_over_p=0.1, regularisation=[1e-6, 1e-4, 1e-2])
    place, height = 1 / peak.p_over_n.values, peak.generalisation_error.values
    return Row(
        "hidden manifold: the peak is at n/p = 1 and shrinks with λ",
        "1, shrinking",
        f"n/p = {place[0]:.4f}; heights " + ", ".join(f"{h:.3f}" for h in height),
        verdict(bool(abs(place[0] - 1) < 1e-2 and np.all(np.diff(height) < 0))),
        "d/p = 0.1, λ = 1e-6, 1e-4, 1e-2",
    )


def saturation() -> Row:
    """Section 3.3."""
    (value,) = error(hidden_manifold(), n_over_p=[np.inf], d_over_p=0.1, regularisation="optimal")
    return Row(
        "hidden manifold: error for n/p → ∞ at d/p = 0.1",
        "0.0325",
        f"{value:.7f}",
        verdict(round(float(value), 4) == 0.0325),
    )


def many_latent_dimensions_are_hopeless() -> Row:
    """Section 3.3."""
    errors = error(
        hidden_manifold(), n_over_p=1.0, d_over_p=[1.0, 10.0, 1e2, 1e4], regularisation="optimal"
    )
    return Row(
        "d/p ≫ 1: labels look random, only bad errors",
        "towards 1/2",
        ", ".join(f"{e:.3f}" for e in errors),
        verdict(bool(np.all(np.diff(errors) > 0) and errors[-1] > 0.49)),
        "d/p = 1, 10, 100, 10⁴ at n = p, optimal λ",
    )


def error_grows_with_latent_dimensions() -> Row:
    """Section 3.3."""
    d_over_p = np.geomspace(1e-3, 10, 41)
    errors = error(
        hidden_manifold(), n_over_p=[0.2, 1.0, 3.0], d_over_p=d_over_p, regularisation="optimal"
    )
    return Row(
        "the error deteriorates as d/p increases",
        "grows",
        f"from {errors[1, 0]:.3f} at d/p = 0.001 to {errors[1, -1]:.3f} at 10 (n = p)",
        verdict(bool(np.all(np.diff(errors, axis=1) > 0))),
        "n/p = 0.2, 1, 3; 41 values of d/p; optimal λ",
    )


def low_and_high_latent_dimension() -> Row:
    """Section 3.3."""
    low, high = error(
        hidden_manifold(), n_over_p=1.0, d_over_p=[0.01, 0.5], regularisation="optimal"
    )
    return Row(
        "good error at very low d/p, a rather bad one at d/p = 0.5",
        "good, bad",
        f"{low:.3f} at d/p = 0.01, {high:.3f} at 0.5",
        verdict(bool(low < 0.05 and high > 0.2)),
        "n = p, optimal λ",
    )


def overparametrised_learning() -> Row:
    """Section 3.3."""
    few, as_many, many = error(
        hidden_manifold(), n_over_d=[0.1, 1.0, 10.0], d_over_p=0.01, regularisation="optimal"
    )
    return Row(
        "small d/p: good error with p > n as long as roughly d ≲ n",
        "good from n ≈ d on",
        f"{few:.3f}, {as_many:.3f}, {many:.3f} for n/d = 0.1, 1, 10",
        verdict(bool(few > 0.35 and as_many < 0.3 and many < 0.1), remark=True),
        "d/p = 0.01, so p = 10 n even for the last; 'roughly' means n of several d",
    )


CLAIMS = (
    peak_shrinks_with_regularisation,
    saturation,
    many_latent_dimensions_are_hopeless,
    error_grows_with_latent_dimensions,
    low_and_high_latent_dimension,
    overparametrised_learning,
)
