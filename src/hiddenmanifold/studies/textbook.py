"""The criteria of Riley et al. (2019, 2020) for the least sample size of a prediction model.

Riley et al., Statistics in Medicine 38 (2019) 1262 (continuous outcomes) and 1276 (binary ones);
BMJ 368 (2020) m441. They ask for little overfitting of a regression without a penalty, on average,
by formulas that suppose that the optimism is small.
"""

from __future__ import annotations

import math

import numpy as np

from hiddenmanifold.checks import check_count, check_number
from hiddenmanifold.errors import InvalidArgumentError

OPTIMISM = 0.05
"""Largest difference of apparent and adjusted R²."""
MARGIN = 0.05
"""Largest error of the overall risk, with a confidence of 95 %."""
RESIDUALS = 234
"""Samples beside the predictors that determine a residual deviation within 10 %, with 95 %
confidence: 233 degrees of freedom and the intercept."""


def textbook_criteria(
    *,
    predictors: int,
    r2: float,
    prevalence: float | None = None,
    shrinkage: float = 0.9,
) -> dict[str, int]:
    """The least sample size by each criterion of Riley et al.; the largest one is required.

    Parameters
    ----------
    predictors : int
        Number of candidate parameters.
    r2 : float
        Anticipated R²: Cox and Snell's for a binary outcome.
    prevalence : float, optional
        Share of events of a binary outcome; None for a continuous one.
    shrinkage : float
        The expected calibration slope.

    Returns
    -------
    dict
        For a binary outcome `shrinkage`, `optimism` (of Nagelkerke's R², at most 0.05) and
        `overall_risk` (within 0.05); for a continuous one `shrinkage`, `optimism` (of R²) and
        `residual_deviation`. The criterion for the mean of a continuous outcome, which depends on
        its units, is left out.

    Raises
    ------
    InvalidArgumentError
        If R² exceeds what an outcome of this prevalence allows.

    Examples
    --------
    >>> from hiddenmanifold.studies.textbook import textbook_criteria
    >>> textbook_criteria(predictors=24, r2=0.288, prevalence=0.174)
    {'shrinkage': 623, 'optimism': 662, 'overall_risk': 221}
    """
    check_count("predictors", predictors)
    check_number("r2", r2, 0.0, 1.0, open_low=True)
    check_number("shrinkage", shrinkage, 0.0, 1.0, open_low=True)
    if shrinkage == 1.0:
        raise InvalidArgumentError("shrinkage", shrinkage, "below 1")
    if prevalence is None:
        return _continuous(predictors, r2, shrinkage)
    check_number("prevalence", prevalence, 0.0, 1.0, open_low=True)
    most = 1.0 - (prevalence**prevalence * (1.0 - prevalence) ** (1.0 - prevalence)) ** 2
    if not r2 < most:
        raise InvalidArgumentError("r2", r2, f"below {most:.4g} at a prevalence of {prevalence:g}")
    needed = r2 / (r2 + OPTIMISM * most)
    return {
        "shrinkage": _for_shrinkage(predictors, r2, shrinkage),
        "optimism": _for_shrinkage(predictors, r2, needed),
        "overall_risk": math.ceil((1.96 / MARGIN) ** 2 * prevalence * (1.0 - prevalence)),
    }


def _for_shrinkage(predictors: int, r2: float, shrinkage: float) -> int:
    """Samples at which the expected shrinkage factor of Van Houwelingen and Le Cessie is reached.

    No number of samples is enough for it if R² is as large as the factor: then it says nothing.
    """
    if r2 >= shrinkage:
        return predictors + 1
    return math.ceil(predictors / ((shrinkage - 1.0) * math.log1p(-r2 / shrinkage)))


def _continuous(predictors: int, r2: float, shrinkage: float) -> dict[str, int]:
    """The criteria for a continuous outcome."""
    n = np.arange(predictors + 2, 10_000_000 if predictors > 1000 else 1_000_000)
    apparent = (r2 * (n - predictors - 1) + predictors) / (n - 1)
    reached = 1.0 + (predictors - 2) / (n * np.log1p(-apparent)) >= shrinkage
    return {
        "shrinkage": int(n[reached.argmax()]),
        "optimism": math.ceil(1.0 + predictors * (1.0 - r2) / OPTIMISM),
        "residual_deviation": RESIDUALS + predictors,
    }
