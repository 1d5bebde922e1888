"""Tolerances of a solution and limits on the effort to find it: values that are passed down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerances:
    """How exact a solution must be to be called converged; datasets record it in their attributes.

    Parameters
    ----------
    residual : float
        Largest relative residual of the undamped equations.
    quadrature : float
        Largest relative error of the unknowns that a finer quadrature still finds.
    conditioning : float
        Largest estimated effect of rounding on the unknowns. Estimates exceed the true effect by
        ten to a hundred times, so that the default keeps eight digits.
    target : float
        Estimated error of the unknowns at which a point is left alone. It is a hundredth of what is
        tolerated, since errors are estimated and Newton's method gets there in one more turn.
    """

    residual: float = 1e-9
    quadrature: float = 1e-9
    conditioning: float = 1e-7
    target: float = 1e-11

    @property
    def attributes(self) -> dict[str, float]:
        """The tolerances as attributes of a dataset."""
        return {f"{name}_tolerance": value for name, value in vars(self).items()}


STANDARD = Tolerances()
"""The default tolerances."""


@dataclass(frozen=True)
class Effort:
    """Effort spent on a batch of points: it changes the time, but no converged answer.

    Parameters
    ----------
    max_iterations : int
        Evaluations of the equations in one Newton solve. Points that converge need 5 to 15; twice
        as many cost a fifth more where points are hard, and rescue none.
    stride : int
        In a large batch, one of every `stride` points is solved first, to start the others from.
    few : int, optional
        Points that are all solved at once: another round of calls would cost more than it saves.
        The default was measured for the engine in use.
    longest_walk : int
        Evaluations after which a point's walk in λ is given up.
    longest_extreme : int
        The same for a walk without cancellation, whose evaluations cost some ten times as much.
    """

    max_iterations: int = 30
    stride: int = 16
    few: int | None = None
    longest_walk: int = 2000
    longest_extreme: int = 600
