"""Help for every symbol and field of the page, in the words of the glossary."""

from __future__ import annotations

import re
from inspect import cleandoc

ABOUT = {
    "features": "Inputs of the linear model: random features σ(Fᵀc/√d) of latent data c, or those "
    "of a kernel, which are infinitely many.",
    "activation": "The function σ that is applied to the projected data; the features are "
    "x = σ(Fᵀc/√d).",
    "projection": "The random d × p matrix F of the features, with independent normal entries or "
    "orthogonal rows.",
    "teacher": "The rule that makes the labels from the field ν = c·θ/√d, the projection of the "
    "latent data on the teacher's weights θ.",
    "loss": "The convex function ℓ(y, f) of label and score, whose sum over the samples is "
    "minimised together with λ|w|²/2. Of several classes a loss for labels ±1 is fitted to each "
    "class against the others.",
    "intercept": "A constant b that is added to the score and not penalised.",
    "prediction": "The function of the score f by which labels are predicted: usually the sign for "
    "labels ±1, and f itself or the mean that the loss estimates for numbers.",
    "quantity": "What is drawn.",
    "independent": "What every member of the ensemble draws for itself; all else is the same for "
    "all members.",
    "time": "Time of gradient flow on the sum of the losses, from zero weights; gradient descent "
    "with a small step η passes time t in t/η steps.",
    "x": "The ratio, or the regularisation, along the horizontal axis.",
    "hold": "The ratio of n (samples), p (features) and d (latent dimension) that does not vary.",
    "n_over_d": "Training samples n for each dimension d of the latent data.",
    "p_over_n": "Features p for each training sample n: below 1 there are fewer weights than "
    "samples, above 1 more.",
    "d_over_p": "Dimensions d of the latent data for each feature p.",
    "regularisation": "The penalty λ of the objective, the sum of losses plus λ|w|²/2. 0⁺ is the "
    "limit of no penalty, and optimal the λ of the smallest test error.",
    "points": "Number of points of a curve, or of a side of a heat map. Automatic curves have more "
    "where they bend.",
    "threshold": "Where interpolation becomes possible: every training sample can be at the "
    "minimum of its loss. The test error peaks near it.",
    "kernel": "The limit of infinitely many random features, p → ∞ at fixed n/d: a kernel machine.",
    "bayes": "The smallest test error of any method that knows the model.",
    "d": "Latent dimension of the simulation; n and p follow from the ratios.",
    "seeds": "Independent draws of features, teacher and samples that are averaged.",
    "dots": "Number of places along the axis that are simulated.",
}
"""What a field means, by its name."""
PARAMETERS = {
    "delta": "Where the loss turns from a square to a line, in units of its argument.",
    "level": "The quantile or expectile of the labels that is estimated, between 0 and 1.",
    "width": "Residuals up to this size cost nothing.",
    "rho": "Variance of the field ν, the second moment of the teacher's weights.",
    "intercept": "A named function is taken at intercept + slope ν.",
    "slope": "A named function is taken at intercept + slope ν.",
    "activation": "The function σ of the neurons.",
    "hidden_layers": "Number of hidden layers of the network.",
    "weight_variance": "Variance of the weights, in units of their number.",
    "bias_variance": "Variance of the biases.",
}
"""Parameters that docstrings explain by a formula, or by a word on another ingredient."""
ENTRY = re.compile(r"^(\w[\w, ]*) : .*\n((?: {4}.*\n?)+)", re.MULTILINE)
MARKS = {
    r"\sqrt": "√",
    r"\Delta": "Δ",
    r"\delta": "δ",
    r"\ge": "≥",
    r"\le": "≤",
    r"\nu": "ν",
    r"\rho": "ρ",
    r"\xi": "ξ",
    r"\epsilon": "ε",
    r"\mathrm": "",
    ":math:": "",
}
"""Formulas of docstrings, in the letters of a page."""


def described(cls: type) -> dict[str, str]:
    """What the parameters of an ingredient mean, from its docstring and those of its bases."""
    found = dict(PARAMETERS)
    # cleandoc: later Pythons take the indentation out themselves
    documented = "\n\n".join(cleandoc(base.__doc__ or "") for base in reversed(cls.__mro__))
    for names, text in ENTRY.findall(documented):
        plain = " ".join(text.split())
        for mark, letters in MARKS.items():
            plain = plain.replace(mark, letters)
        for name in names.split(", "):
            found[name] = re.sub(r"[`{}\\]", "", plain)
    return found
