r"""Label rules: how a label is drawn from the teacher's field :math:`\nu = c\cdot\theta/\sqrt d`.

A binary teacher enters the theory through the probability of the label `y` given a Gaussian
field, :math:`Z_0(y, \omega) = E_{\nu \sim N(\omega, V_0)} P(y|\nu)`. It is written along the label,
:math:`Z_y(x) = Z_0(y, y x)`, with derivatives in `x`: then both labels look alike (`base`,
`probit`, `custom`, `mixture`).

Labels that are numbers enter through their law given the field itself: a mixture of normals for a
function plus noise (`real`, `noises`), probabilities or a density at points for all others
(`label_points`, `counts`, `densities`).

Labels of more than two classes are in `several_classes`, for classes that are drawn first, and in
`classes_of_fields` for those that depend on several fields (`gumbel_noise`: their averages).
"""

from typing import cast

from hiddenmanifold.teachers.base import (
    CERTAIN,
    BinaryTeacher,
    CompiledRows,
    ConstantLaw,
    LabelLaw,
    Law,
    Teacher,
    binary,
)
from hiddenmanifold.teachers.classes_of_fields import Argmax, FieldClasses, Softmax
from hiddenmanifold.teachers.counts import Binomial, Discrete, NegativeBinomial, Ordered, Poisson
from hiddenmanifold.teachers.custom import Custom
from hiddenmanifold.teachers.densities import Density, Gamma, LogNormal
from hiddenmanifold.teachers.label_points import PointTeacher
from hiddenmanifold.teachers.mixture import Mixture
from hiddenmanifold.teachers.probit import Logistic, ProbitSum, Sign, Steps
from hiddenmanifold.teachers.real import LabelMoments, Linear, Real, RealTeacher
from hiddenmanifold.teachers.several_classes import Classes, ClassTeacher, several

__all__ = [
    "CERTAIN",
    "Argmax",
    "Binomial",
    "BinaryTeacher",
    "ClassTeacher",
    "Classes",
    "CompiledRows",
    "ConstantLaw",
    "Custom",
    "Density",
    "Discrete",
    "FieldClasses",
    "Gamma",
    "LabelLaw",
    "LabelMoments",
    "Law",
    "Linear",
    "LogNormal",
    "Logistic",
    "Mixture",
    "NegativeBinomial",
    "Ordered",
    "PointTeacher",
    "Poisson",
    "ProbitSum",
    "Real",
    "RealTeacher",
    "Sign",
    "Softmax",
    "Steps",
    "Teacher",
    "binary",
    "real",
    "several",
]

REGISTRY: dict[str, type[Teacher]] = {
    "linear": Linear,
    "sign": Sign,
    "logistic": Logistic,
    "mixture": Mixture,
    "real": Real,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "binomial": Binomial,
    "ordered": Ordered,
    "gamma": Gamma,
    "log_normal": LogNormal,
}


def real(teacher: Teacher) -> RealTeacher:
    """A teacher whose labels are numbers."""
    return cast("RealTeacher", teacher)
