"""Double descent for classification: section 3.1 of the text."""

from __future__ import annotations

from functools import partial

import numpy as np

from hiddenmanifold.api.predict import predict
from hiddenmanifold.api.thresholds import interpolation_peak, separability_threshold
from hiddenmanifold.figures.claims.judgement import Row, contest, error, strength, verdict
from hiddenmanifold.figures.figure_data import paper_model


def peak_of_the_square_loss() -> Row:
    """Section 3.1."""
    peak = interpolation_peak(paper_model(loss="square"), n_over_d=3.0, regularisation=[0, 1e-4])
    limit, small = peak.p_over_n.values
    return Row(
        "square loss: the peak is at p/n = 1",
        "1",
        f"{limit:.6f} at λ → 0, {small:.4f} at λ = 1e-4",
        verdict(limit == 1.0 and abs(small - 1) < 0.01),
    )


def peak_of_the_logistic_loss() -> Row:
    """Section 3.1."""
    threshold = float(separability_threshold(paper_model(), n_over_d=3.0).p_over_n)
    peak = interpolation_peak(paper_model(), n_over_d=3.0, regularisation=[1e-12, 1e-4])
    limit, small = peak.p_over_n.values
    return Row(
        "logistic loss: the peak is where data become separable",
        f"{threshold:.4f} (n/d = 3)",
        f"{limit:.4f} at λ = 1e-12, {small:.4f} at λ = 1e-4",
        verdict(abs(limit / threshold - 1) < 1e-3, remark=True),
        "the text reads the peak at λ = 1e-4, which is still to the right of the threshold",
    )


def training_loss_vanishes_at_the_peaks() -> Row:
    """Section 3.1."""
    losses = []
    for model, place in (
        (paper_model(loss="square"), 1.0),
        (paper_model(), float(separability_threshold(paper_model(), n_over_d=3.0).p_over_n)),
    ):
        beside = np.array([0.98, 1.02]) * place
        losses.append(predict(model, n_over_d=3.0, p_over_n=beside, regularisation=0).training_loss)
    before, after = np.array([loss.values for loss in losses]).T
    return Row(
        "the peaks are where the training loss reaches zero",
        "zero from the peak on",
        f"2 % before: {before[0]:.4f}, {before[1]:.4f}; 2 % after: {after[0]:g}, {after[1]:g}",
        verdict(bool(np.all(before > 0) and np.all(after == 0))),
        "square and logistic loss at λ → 0",
    )


def error_falls_beyond_the_peaks() -> Row:
    """Section 3.1."""
    p_over_n = np.geomspace(1.05, 1e3, 121)
    arguments = {"n_over_d": 3.0, "regularisation": 1e-4}
    square = error(paper_model(loss="square"), p_over_n=p_over_n, **arguments)
    logistic = error(paper_model(), p_over_n=0.4 * p_over_n, **arguments)
    return Row(
        "beyond the peaks the error falls monotonically",
        "falls",
        f"to {square[-1]:.4f} (square) and {logistic[-1]:.4f} (logistic)",
        verdict(bool(np.all(np.diff(square) < 0) and np.all(np.diff(logistic) < 0))),
        "λ = 1e-4, n/d = 3, from the peak to p/n of 1000 and 400",
    )


def cover() -> Row:
    """Section 3.1."""
    limit = 1 / float(separability_threshold(paper_model(), n_over_d=1e-9).p_over_n)
    return Row(
        "n/p at separability as n/d → 0 (Cover)",
        "2",
        f"{limit:.8f}",
        verdict(abs(limit - 2) < 1e-6),
    )


def separability_grows_with_samples() -> Row:
    """Section 3.1."""
    n_over_d = np.geomspace(0.01, 100, 60)
    alpha = 1 / separability_threshold(paper_model(), n_over_d=n_over_d).p_over_n.values
    return Row(
        "n/p at separability grows with n/d",
        "grows",
        f"from {alpha[0]:.3f} at n/d = 0.01 to {alpha[-1]:.2f} at 100",
        verdict(bool(np.all(np.diff(alpha) > 0))),
    )


def logistic_against_square(regularisation: float | str, expected: str) -> Row:
    """Section 3.1."""
    p_over_n = np.geomspace(0.02, 100, 241)
    models = paper_model(), paper_model(loss="square")
    logistic, square, worse, where = contest(
        models, p_over_n, n_over_d=3.0, regularisation=regularisation
    )
    threshold = float(separability_threshold(paper_model(), n_over_d=3.0).p_over_n)
    below = worse & (p_over_n < threshold / 2)
    note = f"separability at p/n = {threshold:.3f}"
    if below.any():
        most = np.max((logistic - square)[below])
        note += f"; below half of that it is worse by less than {most:.1g}"
    return Row(
        f"logistic beats square loss at {strength(regularisation)}, except near its peak",
        expected,
        f"{where}, by at most {np.max(logistic - square):.4f}" if where else "nowhere worse",
        verdict(not worse[p_over_n > 1.5 * threshold].any(), bool(below.any())),
        note,
    )


def kernel_limit(loss: str, printed: float) -> Row:
    """Section 3.1."""
    arguments = {"n_over_d": 3.0, "p_over_n": [10.0, np.inf], "regularisation": "optimal"}
    at_edge, limit = error(paper_model(loss=loss), **arguments)
    return Row(
        f"kernel limit of the {loss} loss at optimal λ, n/d = 3",
        f"{printed}",
        f"{limit:.6f}",
        verdict(round(float(limit), 2) == printed),
        f"at p/n = 10 it is {at_edge:.4f}: perhaps read at the edge of the plot",
    )


CLAIMS = (
    peak_of_the_square_loss,
    peak_of_the_logistic_loss,
    training_loss_vanishes_at_the_peaks,
    error_falls_beyond_the_peaks,
    cover,
    separability_grows_with_samples,
    partial(logistic_against_square, 1e-4, "worse in a small region around the peak"),
    partial(logistic_against_square, "optimal", "better"),
    partial(kernel_limit, "square", 0.17),
    partial(kernel_limit, "logistic", 0.16),
)
