"""The regularisation of least error, as an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hiddenmanifold.errors import InvalidArgumentError
from hiddenmanifold.results.observables import OBSERVABLES


@dataclass(frozen=True)
class Optimal:
    """The regularisation of least error, as an argument of `predict`; "optimal" is its short form.

    Parameters
    ----------
    minimise : {"generalisation_error", "clean_error", "test_loss", "calibration_error"}
        The error, or the observable, to make least.
    bounds : pair of float
        The λ among which to choose; 0 and inf include the limits.
    """

    minimise: Literal["generalisation_error", "clean_error", "test_loss", "calibration_error"] = (
        "generalisation_error"
    )
    bounds: tuple[float, float] = (0.0, math.inf)

    def __post_init__(self) -> None:
        observables = [o.name for o in OBSERVABLES if o.less_is_better]
        if self.minimise not in ("generalisation_error", "clean_error", *observables):
            errors = "'generalisation_error' or 'clean_error', or an observable of which less is "
            raise InvalidArgumentError(
                "minimise", self.minimise, errors + f"better: {', '.join(map(repr, observables))}"
            )
        try:
            low, high = (float(bound) for bound in self.bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 <= low < high:
            raise InvalidArgumentError(
                "bounds", self.bounds, "two numbers with 0 <= low < high <= inf"
            )
        object.__setattr__(self, "bounds", (low, high))

    @classmethod
    def asked_for(cls, regularisation: object) -> Optimal | None:
        """What an argument asks for, None if it is numbers."""
        if isinstance(regularisation, str) and regularisation == "optimal":
            return cls()
        if isinstance(regularisation, str) or regularisation is cls:
            allowed = "numbers, 'optimal' or Optimal(...)"
            raise InvalidArgumentError("regularisation", regularisation, allowed)
        return regularisation if isinstance(regularisation, cls) else None
