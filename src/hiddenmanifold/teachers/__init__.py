r"""Label rules: how a label is drawn from the teacher's field :math:`\nu = c\cdot\theta/\sqrt d`.

A binary teacher enters the theory through the probability of the label `y` given a Gaussian
field, :math:`Z_0(y, \omega) = E_{\nu \sim N(\omega, V_0)} P(y|\nu)`. It is written along the label,
:math:`Z_y(x) = Z_0(y, y x)`, with derivatives in `x`: then both labels look alike.
"""

from hiddenmanifold.teachers.base import (
    CERTAIN,
    BinaryTeacher,
    CompiledRows,
    ConstantLaw,
    LabelLaw,
    Law,
    Linear,
    Teacher,
    binary,
    real,
)
from hiddenmanifold.teachers.custom import Custom
from hiddenmanifold.teachers.mixture import Mixture
from hiddenmanifold.teachers.probit import Logistic, ProbitSum, Sign, Steps

__all__ = [
    "CERTAIN",
    "BinaryTeacher",
    "CompiledRows",
    "ConstantLaw",
    "Custom",
    "LabelLaw",
    "Law",
    "Linear",
    "Logistic",
    "Mixture",
    "ProbitSum",
    "Sign",
    "Steps",
    "Teacher",
    "binary",
    "real",
]

REGISTRY: dict[str, type[Teacher]] = {
    "linear": Linear,
    "sign": Sign,
    "logistic": Logistic,
    "mixture": Mixture,
}
