"""Which modules does a question pass through, in which order?

``python benchmarks/walks.py`` traces four calls (the second of each, when nothing is imported any
more) and prints for each how many modules and functions it enters, how often control moves from
one module to another, and the modules in the order in which they are first entered.
"""

import sys
import warnings

import hiddenmanifold as hm

INSIDE = hm.__file__.removesuffix("__init__.py")
MODEL = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
POINTS = {"n_over_d": 3.0, "p_over_n": [0.3, 1.0]}
ONE = {"n_over_d": 3.0, "p_over_n": 1.0}
QUIET = {"workers": 1, "progress": False}
WALKS = {
    "predict": lambda: hm.predict(MODEL, **POINTS, regularisation=0.1, **QUIET),
    "best λ": lambda: hm.predict(MODEL, **ONE, regularisation="optimal", **QUIET),
    "compare": lambda: hm.compare(MODEL, **ONE, regularisation=0.1, d=30, seeds=2, **QUIET),
    "separability": lambda: hm.separability_threshold(MODEL, n_over_d=3.0, **QUIET),
}


def trace(call):
    """Functions entered in order, as (module, function)."""
    entered = []

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(INSIDE):
            module = code.co_filename.removeprefix(INSIDE).removesuffix(".py")
            entered.append((module.removesuffix("/__init__"), code.co_qualname, code))

    call()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def main() -> None:
    warnings.simplefilter("ignore")
    for name, call in WALKS.items():
        entered = trace(call)
        modules = [module for module, _, _ in entered]
        switches = sum(a != b for a, b in zip(modules, modules[1:], strict=False))
        functions = {code for _, _, code in entered}
        entries = f"{len(set(modules))} modules, {len(functions)} functions, {len(entered)} calls"
        print(f"{name}: {entries}, {switches} switches of module")
        print("  " + " → ".join(dict.fromkeys(modules)))


if __name__ == "__main__":
    main()
