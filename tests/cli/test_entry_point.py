"""The installed script, in a process of its own."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hiddenmanifold as hm

SCRIPT = Path(sys.executable).with_name("hiddenmanifold")
GRID = ("--n-over-d", "3", "--p-over-n", "0.5,1", "--lam", "1e-2")
HEAVY = {"matplotlib", "pandas", "sklearn", "xarray"}


@pytest.mark.slow
def test_the_script_predicts():
    done = subprocess.run(
        [SCRIPT, "predict", *GRID, "--csv", "-"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    model = hm.Model(activation="sign", projection="gaussian", teacher="sign", loss="logistic")
    ds = hm.predict(model, n_over_d=3.0, p_over_n=[0.5, 1.0], regularisation=1e-2)
    for value in ds.generalisation_error.values.tolist():
        assert repr(value) in done.stdout


@pytest.mark.slow
def test_the_script_refuses_in_one_sentence():
    done = subprocess.run(
        [SCRIPT, "predict", *GRID, "--loss", "hing"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert not done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "did you mean 'hinge'" in done.stderr


@pytest.mark.slow
def test_the_package_is_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "hiddenmanifold", "predikt"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    expected = "error: No such command 'predikt'. Did you mean 'predict'? See hiddenmanifold --help"
    assert done.stderr.strip() == expected


@pytest.mark.slow
@pytest.mark.parametrize("args", [("--help",), ("predict", *GRID, "--csv", "-")])
def test_a_reader_that_leaves_is_no_failure(tmp_path, args):
    picture = ("--plot", tmp_path / "a.svg") if "predict" in args else ()
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [SCRIPT, *args, *picture], check=False, stdout=theirs, stderr=subprocess.PIPE, timeout=120
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")
    assert all(path.exists() for path in picture[1:])  # and costs nothing


@pytest.mark.slow
def test_a_terminal_without_letters_gets_words():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    windows = {"PYTHONIOENCODING": "cp1252"}  # has the symbols of a few powers, and no Greek
    for args, setting in ((("predict", *GRID), plain), (("predict", "--help"), windows)):
        done = subprocess.run(
            [SCRIPT, *args], check=True, capture_output=True, env={**os.environ, **setting}
        )
        text = done.stdout.decode("cp1252" if setting is windows else "ascii")
        assert "lambda" in text
        assert "?" not in text


@pytest.mark.slow
def test_help_and_version_load_nothing_heavy():
    program = (
        "import sys\nfrom hiddenmanifold.cli import main\n"
        "for option in ('--help', '--version'):\n"
        "    sys.argv = ['hiddenmanifold', option]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    assert "Usage: hiddenmanifold" in done.stdout
    assert done.stdout.splitlines()[-1] == f"hiddenmanifold {hm.__version__}"
    assert "typer" in done.stderr.split()  # the probe sees what is there
    assert not HEAVY.intersection(done.stderr.split())


@pytest.mark.slow
def test_ctrl_c_prints_what_is_done():
    """As in a terminal: the bar is there, and the signal reaches the workers too."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [SCRIPT, "compare", *GRID, "--d", "50", "--seeds", "3000", "--n-test", "10"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"},
    )
    os.close(terminal)
    try:
        told = b""
        while not re.search(rb"\b[1-9]\d\d+/\d+  ", told):  # the bar counts hundreds
            told += os.read(master, 1024)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        told += rest_of(master)
    finally:
        process.kill()
        os.close(master)
    assert process.returncode == 130
    first_row = re.search(r"^ *0\.5 .*?(\d+) *$", out.decode(), flags=re.MULTILINE)
    assert 1 <= int(first_row[1]) < 3000  # seeds
    assert b"what was done is kept" in told
    assert b"Traceback" not in told


def rest_of(terminal):
    """What is left to read; a terminal that nobody writes to any more gives an error."""
    found = b""
    try:
        while piece := os.read(terminal, 65536):
            found += piece
    except OSError:
        pass
    return found
