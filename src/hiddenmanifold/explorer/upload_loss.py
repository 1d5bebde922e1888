"""The loss that is fitted to an uploaded file: one that is chosen, or that of the page's curves."""

from __future__ import annotations

from collections.abc import Iterator

import hiddenmanifold as hm
from hiddenmanifold.checks import Task
from hiddenmanifold.explorer.parse import loss_of
from hiddenmanifold.results.ingredients import name_of

RELATED = {"logistic": "softmax", "softmax": "logistic", "hinge": "squared_hinge"}
"""What takes the place of a loss that does not suit the labels; of others the square loss does."""
LABELS = {
    Task.REGRESSION: "numbers",
    Task.CLASSIFICATION: "two classes",
    Task.CLASSES: "more than two classes",
}


def loss_of_file(data: hm.Data, name: str, page: str) -> tuple[hm.losses.ConvexLoss, str]:
    """The loss for a sample, and a sentence that tells where it comes from.

    Parameters
    ----------
    data : Data
        The sample.
    name : str
        The loss that was chosen; that of the page if empty.
    page : str
        The query of the page's view, or the part of it that tells the loss.

    Raises
    ------
    InvalidArgumentError
        If a chosen loss does not suit the labels.
    """
    if name:
        return data.accepted("softmax" if _joint(data, name) else name), ""
    own = loss_of(page)
    known, labels = name_of("loss", own), LABELS[data.task]
    loss = next(_suitable(data, own, known))
    found = name_of("loss", loss)
    words, used = known.replace("_", " "), found.replace("_", " ")
    if found == known:
        return loss, f"Fitted with the {words} loss, as in Explore."
    if {found, known} == {"logistic", "softmax"}:
        return (
            loss,
            f"Fitted with the {used} loss, which is for {labels} what {words} is in Explore.",
        )
    why = f"The {words} loss of Explore does not suit {labels}"
    return loss, f"{why}: fitted with the {used} loss instead."


def _joint(data: hm.Data, name: str) -> bool:
    """Whether the logistic loss is fitted to all of several classes jointly, as softmax."""
    return name == "logistic" and data.task is Task.CLASSES


def _suitable(
    data: hm.Data, own: hm.losses.ConvexLoss, name: str
) -> Iterator[hm.losses.ConvexLoss]:
    """The losses that suit the labels, the nearest first."""
    for loss in (own, RELATED.get(name, "square"), "square"):
        try:
            if not (loss is own and _joint(data, name)):
                yield data.accepted(loss)
        except hm.InvalidArgumentError:
            continue
