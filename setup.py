"""The compiled kernel; without a compiler the package is installed without it, and is slower."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "hiddenmanifold.kernel._kernel",
            ["src/hiddenmanifold/kernel/_kernel.c"],
            optional=True,
        )
    ]
)
