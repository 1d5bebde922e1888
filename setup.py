"""The compiled extension; without a compiler the package is installed without it, and is slower."""

import sys
import sysconfig

from setuptools import Extension, setup

COMPILED = "src/hiddenmanifold/compiled"
OLDEST = "cp311"
"""The Python whose stable interface is used, so that one wheel serves it and all later ones."""
LIMITED = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            "hiddenmanifold.compiled._extension",
            sources=[f"{COMPILED}/_extension.c"],
            depends=[f"{COMPILED}/proximal_curve.h"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
            py_limited_api=LIMITED,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": OLDEST}} if LIMITED else {},
)
