"""ASCII replacements for symbols that a terminal may lack."""

from __future__ import annotations

import codecs

SPELT = "hiddenmanifold.spelt"
"""The name under which the spelling is known to `str.encode` and to streams."""
SPELLINGS = {
    "–": "-",
    "α": "alpha",
    "κ": "kappa",
    "λ": "lambda",
    "ρ": "rho",
    "σ": "sigma",
    "θ": "theta",
    "è": "e",
    "⋆": "*",
    "Σ": "sum",
    "√": "sqrt ",
    "∞": "inf",
    "²": "^2",
    "½": "1/2",
    "ᵀ": "'",
    "⁺": "+",
    "·": "*",
    "×": "x",
    "±": "+-",
    "≈": "~",
    "≤": "<=",
    "→": "->",
    "—": "-",
    "−": "-",
    "⋮": ":",
    "…": "...",
    "\N{NO-BREAK SPACE}": " ",
}


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(SPELLINGS.get(letter, "?") for letter in lacking), error.end


codecs.register_error(SPELT, _spell)


def legible(text: str, encoding: str) -> str:
    """The text as an encoding can show it."""
    return text.encode(encoding, SPELT).decode(encoding)
