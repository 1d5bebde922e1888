"""ASCII replacements for symbols that a terminal may lack."""

from __future__ import annotations

import codecs

SPELT = "hiddenmanifold.spelt"
"""The name under which the spelling is known to `str.encode` and to streams."""
SPELLINGS = {
    "λ": "lambda",
    "κ": "kappa",
    "θ": "theta",
    "⋆": "*",
    "Σ": "sum",
    "√": "sqrt ",
    "∞": "inf",
    "²": "^2",
    "⁺": "+",
    "·": "*",
    "×": "x",
    "±": "+-",
    "→": "->",
    "—": "-",
    "−": "-",
    "⋮": ":",
    "…": "...",
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
