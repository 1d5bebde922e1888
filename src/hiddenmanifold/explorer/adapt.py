"""What else changes when a choice is made: axes, losses and labels that suit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hiddenmanifold.explorer.controls import (
    KERNEL_AXES,
    PEAK_AXES,
    RANDOM,
    SEVERAL,
    SEVERAL_FITS,
)
from hiddenmanifold.explorer.parse import fitting_loss, read
from hiddenmanifold.explorer.view import is_kernel, possible_holds

RANGES = {"regularisation": ("1e-6", "100")}
"""Where an axis begins and ends when it is chosen."""
RANGE = ("0.05", "5")
GIVEN_LAM = "1e-4"


def adapted(texts: Mapping[str, str], changed: Sequence[str]) -> dict[str, str]:
    """The texts of all fields after one was changed by hand.

    A newly chosen axis gets its usual ends, a question the axes, labels and loss that it can be
    asked of, and what is held fixed fits the axes.
    """
    texts = dict(texts)
    if len(changed) == 1:
        (name,) = changed
        if name in ("x", "y"):
            low, high = ("low", "high") if name == "x" else ("y_low", "y_high")
            texts[low], texts[high] = RANGES.get(texts[name], RANGE)
        if name == "quantity":
            _of_question(texts)
        if name == "features" and is_kernel(texts):
            _of_kernel(texts)
        if name in ("teacher", "quantity"):
            _of_labels(texts)
    possible = possible_holds(texts)
    if possible and possible != [""] and texts["hold"] not in possible:
        texts["hold"] = possible[0]
    return texts


def _of_question(texts: dict[str, str]) -> None:
    question = texts["quantity"]
    if question in ("peak", "classes", *SEVERAL_FITS):
        texts["mode"] = "curve"
    if question == "peak" and texts["x"] not in PEAK_AXES:
        texts |= {"x": "n_over_d", "low": "0.05", "high": "8", "log_x": "no"}
    if question in ("peak", *SEVERAL_FITS) and texts["regularisation"] == "optimal":
        texts["regularisation"] = GIVEN_LAM
    if question == "classes":
        if texts["teacher"] not in SEVERAL:
            texts["teacher"] = "classes"
        if texts["regularisation"] == "optimal":
            texts["regularisation"] = "0.01"
    elif question in ("peak", *SEVERAL_FITS) and texts["teacher"] in SEVERAL:
        texts["teacher"] = "sign"
    if question == "time":
        texts |= {"loss": "square", "features": RANDOM, "log_x": "yes"}


def _of_kernel(texts: dict[str, str]) -> None:
    if texts["x"] not in KERNEL_AXES or texts["mode"] == "map":
        texts |= {"mode": "curve", "x": "n_over_d", "low": RANGE[0], "high": RANGE[1]}
    if texts["quantity"] in ("peak", "time"):
        texts["quantity"] = "generalisation_error"


def _of_labels(texts: dict[str, str]) -> None:
    """A loss that suits the labels, and a question that can be asked of them."""
    several = texts["teacher"] in SEVERAL
    if several and texts["quantity"] in ("peak", *SEVERAL_FITS):
        texts["quantity"] = "generalisation_error"
    if not several and texts["quantity"] == "classes":
        texts["quantity"] = "generalisation_error"
    if several and texts["regularisation"] == "optimal":
        texts["regularisation"] = "0.01"
    if (loss := fitting_loss(read(texts).complaints.get("loss", ""))) is not None:
        texts["loss"] = loss
    if texts["quantity"] == "training_error" and "quantity" in read(texts).complaints:
        texts["quantity"] = "generalisation_error"
