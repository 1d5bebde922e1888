"""Running a figure: files, data that are used again and data that are not, plain refusals."""

import shutil
import sys
from dataclasses import replace

import pytest

import hiddenmanifold as hm
from hiddenmanifold import compiled, figures
from hiddenmanifold.errors import MissingExtraError
from hiddenmanifold.figures import figure_4, figure_cache
from hiddenmanifold.figures.figure_data import Axis

COMPUTED = {}


def small(monkeypatch):
    """Make the fastest figure even faster, and count how often it is asked for."""
    calls = []
    compute = figure_4.compute

    def counted(setting, **how):
        calls.append(setting)
        if str(setting) not in COMPUTED:
            COMPUTED[str(setting)] = compute(setting, **how)
        return COMPUTED[str(setting)]

    monkeypatch.setattr(figure_4, "compute", counted)
    for name, count in (("QUICK", 2), ("FULL", 3)):
        lines = {"n_over_d": Axis(1.0, 4.0, count)}
        monkeypatch.setattr(figure_4, name, replace(figure_4.FULL, lines=lines))
    return calls


@pytest.mark.slow
def test_run_writes_figure_and_data_and_computes_once(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    paths = figures.run(4, quick=True, directory=tmp_path / "new", progress=False)
    assert [path.name for path in paths] == [
        "figure_4_quick.png",
        "figure_4_quick.pdf",
        "figure_4_quick.svg",
        "figure_4_quick_peak.nc",
        "figure_4_quick_threshold.nc",
    ]
    assert all(path.stat().st_size > 500 for path in paths)
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())  # it simulates nothing
    before = [path.read_bytes() for path in paths]
    figures.run(4, quick=True, directory=tmp_path / "new", progress=False)
    assert len(calls) == 1
    assert [path.read_bytes() for path in paths] == before  # to the bit, drawn from stored data


@pytest.mark.slow
def test_quick_and_full_lie_side_by_side(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    quick = figures.run(4, quick=True, directory=tmp_path, progress=False)
    before = [path.read_bytes() for path in quick]
    full = figures.run(4, quick=False, directory=tmp_path, progress=False)
    assert [path.read_bytes() for path in quick] == before
    assert [path.name for path in full] == [path.name.replace("_quick", "") for path in quick]
    points = [
        figures.datasets(4, quick=quick, directory=tmp_path)["peak"].sizes["n_over_d"]
        for quick in (True, False)
    ]
    assert points == [2, 3]
    assert len(calls) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "computes"),
    [
        ("theory/features_side.py", True),
        ("compiled/_extension.c", True),
        ("compiled/proximal_curve.h", True),
        ("simulation/fit.py", True),
        ("losses/named.py", True),
        ("model.py", True),
        ("numerics/another.py", True),
        ("figures/figure_data.py", True),
        ("figures/figure_4.py", True),
        ("figures/figure_2.py", False),
        ("figures/drawing.py", False),
        ("figures/claims/features.py", False),
        ("plotting/style.py", False),
        ("cli/theory_commands.py", False),
    ],
)
def test_changed_sources_compute_anew(tmp_path, monkeypatch, source, computes):
    calls = small(monkeypatch)
    figures.datasets(4, quick=True, directory=tmp_path / "data")
    for change, expected in (("", 1), ("# a fix", 1 + computes)):
        package = tmp_path / f"changed by {len(change)}"
        shutil.copytree(figure_cache.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if change:
            with (package / source).open("a") as file:
                file.write(change)
        monkeypatch.setattr(figure_cache, "PACKAGE", package)
        figures.datasets(4, quick=True, directory=tmp_path / "data")
        assert len(calls) == expected


@pytest.mark.slow
def test_other_parameters_are_computed_anew(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    figures.datasets(4, quick=True, directory=tmp_path)
    monkeypatch.setattr(figure_4, "QUICK", replace(figure_4.QUICK, at={"regularisation": 1e-3}))
    data = figures.datasets(4, quick=True, directory=tmp_path)
    assert len(calls) == 2
    assert (data["peak"].regularisation == 1e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [None, b"", b"nonsense", b"CDF\x01"])
def test_a_missing_or_damaged_file_is_computed_anew(tmp_path, monkeypatch, damage):
    calls = small(monkeypatch)
    figures.datasets(4, quick=True, directory=tmp_path)
    path = tmp_path / "figure_4_quick_threshold.nc"
    whole = path.read_bytes()
    path.unlink() if damage is None else path.write_bytes(damage)
    figures.datasets(4, quick=True, directory=tmp_path)
    assert len(calls) == 2
    assert path.read_bytes() == whole


def test_another_engine_computes_anew(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    for engine, expected in (("compiled", 1), ("numpy", 2), ("numpy", 2)):
        monkeypatch.setattr(compiled, "engine", lambda name=engine: name)
        figures.datasets(4, quick=True, directory=tmp_path)
        assert len(calls) == expected


def test_without_matplotlib_nothing_is_computed(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hiddenmanifold\[plot\]'"):
        figures.run(4, quick=True, directory=tmp_path, progress=False)
    assert not calls
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [0, 8, "1", None])
def test_unknown_figures_are_refused(number, tmp_path):
    with pytest.raises(hm.InvalidArgumentError, match="one of 1, 2, 3, 4, 5, 6, 7"):
        figures.run(number, quick=True, directory=tmp_path)
