"""Build the package as it is released and try it in clean environments, for `make check-wheel`.

The wheel is installed by every Python that is given; the source is installed once more where there
is no compiler. Each environment shows its version and its help, and makes one prediction.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = """
import hiddenmanifold as hm
model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
ds = hm.predict(model, n_over_d=3.0, p_over_n=0.35, regularisation=1e-4)
print(ds.engine, ds.generalisation_error.values.round(4))
"""

NO_COMPILER = {"CC": "no-compiler", "DISTUTILS_USE_SDK": "1"}
"""An environment in which none is found; on Windows, the second says that PATH leads to one."""


def run(*command, **more):
    """What a command prints; its errors are shown, and end everything."""
    done = subprocess.run(
        [*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, **more
    )
    return done.stdout.strip()


def built(folder):
    """The wheel and the source distribution, after a look at their descriptions."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    print(run(sys.executable, "-m", "twine", "check", "--strict", wheel, source))
    return wheel, source


def tried(python, file, folder, engine, environment=None):
    """Install a file into a new environment of some Python, and use it."""
    if python == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        run(python, "-m", "venv", folder)
    bin = folder / ("Scripts" if os.name == "nt" else "bin")
    env = {**os.environ, **(environment or {})}
    run(bin / "python", "-m", "pip", "install", "--quiet", file, env=env)
    version = run(bin / "hiddenmanifold", "--version", cwd=folder)
    assert "Usage" in run(bin / "hiddenmanifold", "--help", cwd=folder)
    found = run(bin / "python", "-c", FIRST, cwd=folder)
    assert found == f"{engine} 0.3548", found
    print(f"{file.name} in {run(bin / 'python', '--version')}: {version}, {found}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    asked = parser.parse_args().pythons
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wheel, source = built(place / "dist")
        for i, python in enumerate(asked):
            tried(python, wheel, place / f"wheel{i}", "compiled")
        tried(asked[0], source, place / "source", "numpy", NO_COMPILER)
