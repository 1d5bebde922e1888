"""The compiled extension; without a compiler the package is installed without it, and is slower."""

from setuptools import Extension, setup

COMPILED = "src/hiddenmanifold/compiled"

setup(
    ext_modules=[
        Extension(
            "hiddenmanifold.compiled._extension",
            sources=[f"{COMPILED}/_extension.c"],
            depends=[f"{COMPILED}/proximal_curve.h"],
            optional=True,
        )
    ]
)
