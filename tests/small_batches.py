"""Batches of few points, so that a small grid is several jobs, here and in worker processes."""

from hiddenmanifold.theory.bayes import fixed_points
from hiddenmanifold.theory.best_lambda import search
from hiddenmanifold.theory.labels_side.channel import Channel
from hiddenmanifold.theory.separability import line

SMALL = [
    (Channel, "batch", property(lambda self: 20 if self.closed_form else 7)),
    (fixed_points, "BATCH", 4),
    (line, "BATCH", 4),
    (search, "TOGETHER", 4),
]


def apply(setter=setattr) -> None:
    """Set them, for good in a worker process or by the setter of a fixture."""
    for owner, name, value in SMALL:
        setter(owner, name, value)
