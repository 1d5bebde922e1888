"""The controls of the page; ingredients and their parameters come from the registries."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache

import hiddenmanifold as hm
from hiddenmanifold.checks import INGREDIENT_KINDS
from hiddenmanifold.explorer.explanations import ABOUT, described
from hiddenmanifold.model import REGISTRIES
from hiddenmanifold.plotting.style import label
from hiddenmanifold.theory.points import RATIOS

AXES = ("p_over_n", "n_over_d", "n_over_p", "d_over_p", "regularisation")
HELD = {"n_over_d": "3", "p_over_n": "0.5", "d_over_p": "0.1"}
"""Ratios that can be held fixed, and where they begin."""
CLASSES: Mapping[str, Mapping[str, type]] = {
    "features": hm.kernels.REGISTRY,
    **REGISTRIES,
    "teacher": ChainMap(
        {
            "classes": hm.teachers.Classes,
            "argmax": hm.teachers.Argmax,
            "softmax": hm.teachers.Softmax,
        },
        hm.teachers.REGISTRY,
    ),
}
"""Classes by name of what is chosen on the page: kernels, and every kind of ingredient."""
SEVERAL = {
    "classes": "classes, normal",
    "argmax": "classes, largest field",
    "softmax": "classes, softmax of fields",
}
"""Teachers of several classes, in words."""
NEEDED = {"K": ("3", "int"), "separation": ("2", "float"), "priors": ("equal", "shares")}
"""Parameters that have no usual value: one to begin with, and its kind."""
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
    "generalisation_error": "test error",
    "time": "training time",
    "members": "ensembles",
    "bias_variance": "bias & variance",
    "classes": "classes",
    "peak": "peak position",
    "training_loss": "training loss",
    "training_error": "training error",
    "overlaps": "overlaps",
}
PEAK_AXES = ("n_over_d", "d_over_p")
"""What may vary while a peak is sought along p/n."""
SEVERAL_FITS = ("time", "members", "bias_variance")
"""Questions that are answered for labels ±1 and numbers, at a given λ."""
MEMBERS = (1.0, 2.0, 5.0, 20.0, float("inf"))
"""Numbers of fits in an ensemble."""
INDEPENDENT = {
    "features": "random features",
    "samples": "samples",
    "both": "features and samples",
    "bootstrap": "bootstraps of one sample",
}
TIMES = (0.1, 1e5)
"""The first and the last time of gradient flow."""
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
CLASS_OVERLAPS = ("Q", "M", "q_w")
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
    about : str
        What it means, for the help beside it.
    """

    name: str
    label: str
    default: str
    options: Mapping[str, str] | None = None
    decades: tuple[float, float] | None = None
    annotation: str = "float"
    about: str = ""

    @property
    def flag(self) -> bool:
        """Whether it is a box to tick."""
        return self.options is not None and set(self.options) == {"no", "yes"}


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
    about = described(CLASSES[kind][name])
    for field in fields(CLASSES[kind][name]):
        own, default = f"{kind}.{name}.{field.name}", field.default
        shown = field.name.replace("_", " ")
        annotation, options = str(field.type), None
        if not field.init or field.name == "kinks":
            continue
        if isinstance(default, int | float):
            text = f"{default:g}"
        elif isinstance(default, tuple):
            text = ", ".join(f"{part:g}" for part in default)
        elif isinstance(default, str) and len(choices := FUNCTIONS.get(field.name, ())) > 1:
            text, annotation, options = default, "str", {choice: choice for choice in choices}
        elif default is None and field.name in NEEDED:
            text, annotation = NEEDED[field.name]
        else:
            continue
        told = about.get(field.name, "")
        found.append(Field(own, shown, text, options, annotation=annotation, about=told))
    return found


@cache
def page_fields() -> dict[str, Field]:
    """All fields by name, in the order of the page."""
    found = [Field("features", "features", RANDOM, FEATURES)]
    for kind, registry in CLASSES.items():
        if kind != "features":
            words = SEVERAL if kind == "teacher" else {}
            names = {name: words.get(name, name.replace("_", " ")) for name in registry}
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
        Field("quantity", "question", "generalisation_error", QUANTITIES),
        Field("independent", "members have their own", "features", INDEPENDENT),
        Field("time", "time, t", f"{TIMES[1]:g}", decades=(-1.0, 5.0)),
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
        _flag("threshold", "interpolation threshold", "yes"),
        _flag("kernel", "kernel limit p → ∞"),
        _flag("bayes", "Bayes-optimal error"),
        Field("d", "latent dimension d", "60"),
        Field("seeds", "seeds", "10"),
        Field("dots", "points", "8"),
    ]
    return {field.name: _helped(field) for field in found}


def _helped(field: Field) -> Field:
    return replace(field, about=ABOUT[field.name]) if field.name in ABOUT else field
