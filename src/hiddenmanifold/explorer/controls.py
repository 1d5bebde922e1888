"""The controls of the page; ingredients and their parameters come from the registries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache

import hiddenmanifold as hm
from hiddenmanifold.checks import INGREDIENT_KINDS
from hiddenmanifold.model import REGISTRIES
from hiddenmanifold.plotting.style import label
from hiddenmanifold.theory.points import RATIOS

AXES = ("p_over_n", "n_over_d", "n_over_p", "d_over_p", "regularisation")
HELD = {"n_over_d": "3", "p_over_n": "0.5", "d_over_p": "0.1"}
"""Ratios that can be held fixed, and where they begin."""
CLASSES = {"features": hm.kernels.REGISTRY, **REGISTRIES}
"""Classes by name of what is chosen on the page: kernels, and every kind of ingredient."""
RANDOM = "random"
"""The choice of random features."""
FEATURES = {
    RANDOM: "random features",
    **{name: f"{name} kernel" for name in hm.kernels.REGISTRY},
}
"""Random features, and the kernels that may take their place."""
KERNEL_AXES = ("n_over_d", "regularisation")
"""What may vary for a kernel, which has infinitely many features."""
QUANTITIES = {
    "generalisation_error": "generalisation error",
    "training_loss": "training loss",
    "training_error": "training error",
    "overlaps": "overlaps",
    "peak": "position of the peak",
}
PEAK_AXES = ("n_over_d", "d_over_p")
"""What may vary while a peak is sought along p/n."""
VANISHING = ("0", "0+", "0⁺")
"""Ways to type the limit λ → 0⁺."""
USUAL = "usual"
"""The choice of the prediction that suits labels and loss."""
FUNCTIONS = {
    "function": tuple(hm.teachers.functions_of_field.NAMED),
    "rate": ("exp", "softplus", "logistic", "relu", "absolute", "square"),
    "mean": ("exp", "softplus"),
    "probability": ("logistic",),
    "activation": ("relu", "erf", "tanh", "hard_tanh"),
}
"""Functions to choose from, by the parameter of a label rule or of a kernel that takes them."""
OVERLAPS = ("alignment", "m_s", "q_s", "q_w")
KERNEL_OVERLAPS = ("alignment", "M", "Q", "q_w")
SYMBOLS = {
    r"\varepsilon_g": "ε<sub>g</sub>",
    r"\varepsilon_t": "ε<sub>t</sub>",
    r"\lambda": "λ",
    r"M/\sqrt{\rho Q}": "M/√(ρQ)",
    "q_s": "q<sub>s</sub>",
    "q_w": "q<sub>w</sub>",
    "m_s": "m<sub>s</sub>",
    "$": "",
}
"""Formulas of the labels of plots, in the letters of a page."""


@dataclass(frozen=True)
class Field:
    """Something to choose or to type; its value is a text.

    Parameters
    ----------
    name : str
        Its name, in the address of a view as well.
    label : str
        What is written beside it.
    default : str
        Its value unless another is given.
    options : mapping
        Values to choose from, with what is written for each; none where a text is typed.
    decades : pair of float, optional
        Powers of ten at the ends of a slider.
    annotation : str
        The type of the parameter of an ingredient that the text stands for.
    """

    name: str
    label: str
    default: str
    options: Mapping[str, str] | None = None
    decades: tuple[float, float] | None = None
    annotation: str = "float"


def short(name: str) -> str:
    """The symbol of an axis, as p/n or λ."""
    return "λ" if name == "regularisation" else name.replace("_over_", "/")


def title_of(name: str) -> str:
    """The label of a quantity or an axis, without the marks of formulas."""
    text = label(name)
    for formula, letters in SYMBOLS.items():
        text = text.replace(formula, letters)
    return text


def _flag(name: str, label: str, default: str = "no") -> Field:
    return Field(name, label, default, {"no": "no", "yes": "yes"})


def parameters(kind: str, name: str) -> list[Field]:
    """The parameters of a registered ingredient that can be typed or chosen.

    These are numbers, lists of numbers, noise, and functions by name. Fields at which
    a function has kinks are left out: named functions declare their own.
    """
    found = []
    for field in fields(CLASSES[kind][name]):
        own, shown, default = f"{kind}.{name}.{field.name}", field.name, field.default
        if not field.init or field.name == "kinks":
            continue
        if isinstance(default, int | float):
            found.append(Field(own, shown, f"{default:g}", annotation=str(field.type)))
        elif isinstance(default, tuple):
            text = ", ".join(f"{part:g}" for part in default)
            found.append(Field(own, shown, text, annotation=str(field.type)))
        elif isinstance(default, str) and len(choices := FUNCTIONS.get(field.name, ())) > 1:
            options = {choice: choice for choice in choices}
            found.append(Field(own, shown, default, options, annotation="str"))
    return found


@cache
def page_fields() -> dict[str, Field]:
    """All fields by name, in the order of the page."""
    found = [Field("features", "features", RANDOM, FEATURES)]
    for kind, registry in CLASSES.items():
        if kind != "features":
            names = {name: name.replace("_", " ") for name in registry}
            found.append(Field(kind, kind, INGREDIENT_KINDS[kind].default, names))
        for name in registry:
            found += parameters(kind, name)
    axes = {name: short(name) for name in AXES}
    single = {name: short(name) for name in HELD}
    pairs = {
        f"{a},{b}": f"{short(a)} and {short(b)}" for a in HELD for b in HELD if a != b and a < b
    }
    found += [
        _flag("intercept", "fit an intercept"),
        Field("prediction", "prediction", USUAL, {n: n for n in (USUAL, *hm.predictors.REGISTRY)}),
        Field("quantity", "quantity", "generalisation_error", QUANTITIES),
        Field("mode", "view", "curve", {"curve": "curves", "map": "heat map"}),
        Field("x", "axis", "p_over_n", axes),
        Field("low", "from", "0.05"),
        Field("high", "to", "5"),
        Field("y", "vertical axis", "n_over_d", axes),
        Field("y_low", "from", "0.1"),
        Field("y_high", "to", "8"),
        Field("hold", "held fixed", "n_over_d", {**single, **pairs}),
        *(
            Field(name, title_of(name), value, decades=(-2.0, 2.0))
            for name, value in HELD.items()
            if name in RATIOS
        ),
        Field("regularisation", "regularisation, λ", "1e-4", decades=(-6.0, 3.0)),
        Field("points", "points", "automatic"),
        _flag("log_x", "logarithmic axis", "yes"),
        _flag("log_y", "logarithmic vertical axis"),
        _flag("threshold", "separability threshold", "yes"),
        _flag("kernel", "kernel limit p → ∞"),
        _flag("bayes", "Bayes-optimal error"),
        Field("d", "latent dimension d", "60"),
        Field("seeds", "seeds", "10"),
        Field("dots", "points", "8"),
    ]
    return {field.name: field for field in found}
