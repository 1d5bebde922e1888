"""What differs between systems, simulated on this one: files, symbols, processes and folders."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hiddenmanifold.cli.ascii_symbols import SPELLINGS, legible

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hiddenmanifold"
MODULES = sorted(SOURCE.rglob("*.py"))
NEEDED = {
    "read_text": {"encoding"},
    "write_text": {"encoding", "newline"},
    "to_csv": {"lineterminator"},
}
"""What systems would otherwise choose by themselves."""
RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{i}" for port in ("com", "lpt") for i in range(10)),
}


def careless(text):
    """Calls that write or read text as the system likes it."""
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name | ast.Attribute):
            continue
        name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
        needed = NEEDED.get(name, set())
        if name == "open":
            modes = [a.value for a in call.args[-1:] if isinstance(a, ast.Constant)]
            mode = modes[0] if modes else "" if call.args else "r"
            needed = {"encoding"} if "b" not in mode and mode else set()
            needed |= {"newline"} if "w" in mode and needed else set()
        if needed.difference(keyword.arg for keyword in call.keywords):
            yield ast.unparse(call)


@pytest.mark.slow
def test_files_of_text_are_the_same_on_every_system():
    calls = re.compile(r"\b(open|read_text|write_text|to_csv)\(")
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    concerned = {path: text for path, text in texts.items() if calls.search(text)}
    assert len(concerned) > 5
    assert [call for text in concerned.values() for call in careless(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        *('p.write_text("a")', 'p.write_text("a", encoding="utf-8")', "p.read_text()"),
        *("p.open()", 'p.open("w")', 'open("a", "w", encoding="utf-8")', "t.to_csv(p)"),
    ],
)
def test_a_careless_call_is_seen(text):
    assert list(careless(text))


def test_names_of_files_are_allowed_everywhere():
    names = [path.relative_to(ROOT).as_posix() for path in SOURCE.rglob("*")]
    assert len({name.lower() for name in names}) == len(names) > len(MODULES)
    for name in names:
        assert RESERVED.isdisjoint(part.partition(".")[0] for part in name.lower().split("/")), name
        assert not re.search(r'[<>:"|?*\\]|[ .](/|$)', name), name


def shown(path):
    """The texts of a module that a terminal may show."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    if "cli" in path.parts:  # there they are the help
        documents = set()
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in documents:
            yield text


@pytest.mark.slow
def test_every_symbol_has_a_spelling():
    drawn = {"explorer", "figures", "plotting"}
    in_pattern = {"€", "£"}  # of tables that are read
    for path in MODULES:
        if drawn.isdisjoint(path.parts):
            for text in shown(path):
                unknown = {letter for letter in text if not letter.isascii()} - in_pattern
                assert unknown <= SPELLINGS.keys(), (path, text)
    assert legible("λ ≤ ½ σ", "ascii") == "lambda <= 1/2 sigma"


WITHOUT = """
import os, signal, sys
import dask, loky, matplotlib.pyplot, pandas, rich.console, scipy.stats, sklearn, xarray

ABSENT = {
    os: "fork forkpty fork_exec getuid geteuid getgid getpgid killpg nice register_at_fork "
        "sched_getaffinity setsid sysconf uname wait3 wait4 mkfifo chown lchown O_CLOEXEC",
    signal: "SIGALRM SIGHUP SIGQUIT SIGUSR1 alarm pthread_kill setitimer",
}
for module, names in ABSENT.items():
    for name in names.split():
        vars(module).pop(name, None)
for name in ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None  # importing it is an error

import hiddenmanifold as hm
from hiddenmanifold.parallel import workers

model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
sizes = {"n_over_d": 2.0, "p_over_n": [0.5, 2.0], "regularisation": 0.1, "d": 20, "seeds": 2}
workers.LONG = 0.0  # in processes
one, two = (hm.simulate(model, **sizes, workers=k, progress=False) for k in (1, 2))
assert two.attrs["workers"] == 2
one, two = (ds.drop_vars("seconds").drop_attrs() for ds in (one, two))
print(one.identical(two))
"""


@pytest.mark.slow
def test_nothing_is_used_that_windows_lacks(tmp_path):
    # `make lint` also checks the types of the sources as on Windows
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


@pytest.mark.slow
def test_neither_home_nor_the_current_folder_is_written(tmp_path):
    here, wanted = tmp_path / "here", tmp_path / "wanted"
    here.mkdir()
    wanted.mkdir()
    here.chmod(0o555)  # root could write all the same, and would be seen
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "MPLCONFIG"))}
    nowhere = Path(os.devnull, "home")  # where not even root can
    grid = ("--n-over-d", "3", "--p-over-n", "0.5,1", "--lam", "1e-2")
    files = [wanted / "a.csv", wanted / "a.svg"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hiddenmanifold",
            "predict",
            *grid,
            "--csv",
            files[0],
            "--plot",
            files[1],
        ],
        cwd=here,
        env={**environment, "HOME": str(nowhere), "USERPROFILE": str(nowhere)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(wanted.iterdir()) == files
    assert list(here.iterdir()) == []
