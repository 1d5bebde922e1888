"""The compiled kernel; without a compiler the package is installed without it, and is slower."""

from setuptools import Extension, setup

KERNEL = "src/hiddenmanifold/kernel"

setup(
    ext_modules=[
        Extension(
            "hiddenmanifold.kernel._kernel",
            sources=[f"{KERNEL}/_kernel.c"],
            depends=[f"{KERNEL}/proximal_curve.h"],
            optional=True,
        )
    ]
)
