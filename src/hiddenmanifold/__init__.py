"""Exact learning curves of generalised linear models on random features.

Build a `Model` out of an activation, a projection, a teacher and a loss, `predict` its test and
training errors in the high-dimensional limit, and `simulate` it at finite size.

The folders, from the ingredients to what people see:

- ``features``, ``teachers``, ``losses``: inputs x, labels y and losses ℓ(y, f), each in two
  forms, at finite size and in the limit; ``model`` joins them and states the conventions;
- ``theory`` solves the limit n, p, d → ∞, ``simulation`` fits finite samples; they never import
  each other, and their agreement is the evidence;
- ``api`` has one module for each question, ``results`` the labelled datasets that answer it;
- ``data``, ``estimators``: real samples (X, y), and scikit-learn; ``studies``: planning before
  there is data;
- ``plotting``, ``figures``, ``cli``, ``explorer`` draw, reproduce the paper, and talk to people;
- ``numerics``, ``compiled``, ``parallel``, ``storage`` know no physics.
"""

from typing import Any

import lazy_loader

# names are imported when they are asked for: the command line answers before scipy is loaded
_attribute, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _attribute(name)


def __dir__() -> list[str]:
    return sorted(__all__)
