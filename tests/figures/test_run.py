"""Running a figure: files, data that are used again and data that are not, plain refusals."""

import sys
from dataclasses import replace

import pytest

import hiddenmanifold as hm
from hiddenmanifold import figures
from hiddenmanifold.figures import figure_4, store
from hiddenmanifold.figures.curves import Axis
from hiddenmanifold.plotting import MissingExtraError


def small(monkeypatch):
    """Make the fastest figure even faster, and count how often it is computed."""
    calls = []
    compute = figure_4.compute

    def counted(parameters, *, progress=False):
        calls.append(parameters)
        return compute(parameters, progress=progress)

    monkeypatch.setattr(figure_4, "compute", counted)
    monkeypatch.setattr(figure_4, "QUICK", replace(figure_4.QUICK, n_over_d=Axis(1.0, 4.0, 2)))
    monkeypatch.setattr(figure_4, "FULL", replace(figure_4.FULL, n_over_d=Axis(1.0, 4.0, 3)))
    return calls


def test_run_writes_figure_and_data_and_computes_once(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    paths = figures.run(4, quick=True, directory=tmp_path / "new", progress=False)
    assert [path.name for path in paths] == [
        "figure_4.png",
        "figure_4.pdf",
        "figure_4.svg",
        "figure_4_quick_peak.nc",
        "figure_4_quick_threshold.nc",
    ]
    assert all(path.stat().st_size > 500 for path in paths)
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    before = [path.read_bytes() for path in paths]
    figures.run(4, quick=True, directory=tmp_path / "new", progress=False)
    assert len(calls) == 1
    assert [path.read_bytes() for path in paths] == before  # to the bit, drawn from stored data


def test_quick_data_never_serve_for_the_full_figure(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    quick = figures.datasets(4, quick=True, directory=tmp_path)
    full = figures.datasets(4, quick=False, directory=tmp_path)
    assert len(calls) == 2
    assert (quick["peak"].sizes["n_over_d"], full["peak"].sizes["n_over_d"]) == (2, 3)


def test_other_parameters_are_computed_anew(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    figures.datasets(4, quick=True, directory=tmp_path)
    monkeypatch.setattr(figure_4, "QUICK", replace(figure_4.QUICK, regularisation=1e-3))
    data = figures.datasets(4, quick=True, directory=tmp_path)
    assert len(calls) == 2
    assert (data["peak"].regularisation == 1e-3).all()


def test_another_version_computes_anew(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    figures.datasets(4, quick=True, directory=tmp_path)
    monkeypatch.setattr(store, "version", lambda package: "another")
    figures.datasets(4, quick=True, directory=tmp_path)
    assert len(calls) == 2


def test_a_missing_part_is_computed_again(tmp_path, monkeypatch):
    calls = small(monkeypatch)
    figures.datasets(4, quick=True, directory=tmp_path)
    (tmp_path / "figure_4_quick_threshold.nc").unlink()
    figures.datasets(4, quick=True, directory=tmp_path)
    assert len(calls) == 2
    assert (tmp_path / "figure_4_quick_threshold.nc").exists()


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"CDF\x01", "half"])
def test_a_broken_file_is_computed_again_with_a_warning(tmp_path, monkeypatch, damage):
    calls = small(monkeypatch)
    first = figures.datasets(4, quick=True, directory=tmp_path)
    path = tmp_path / "figure_4_quick_peak.nc"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage == "half" else damage)
    with pytest.warns(UserWarning, match="figure_4_quick_peak.nc cannot be read"):
        again = figures.datasets(4, quick=True, directory=tmp_path)
    assert len(calls) == 2
    assert again["peak"].equals(first["peak"])
    assert path.read_bytes() == whole


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
