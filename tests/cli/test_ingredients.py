"""Ingredients with parameters as they are typed."""

import dataclasses
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import hiddenmanifold as hm
from hiddenmanifold.cli import app
from hiddenmanifold.cli.ingredient_options import families, ingredient, typeable

MODULES = {
    "activation": hm.activations,
    "projection": hm.projections,
    "teacher": hm.teachers,
    "loss": hm.losses,
}


def test_every_registered_name_is_known():
    for kind, module in MODULES.items():
        for name, cls in module.REGISTRY.items():
            assert ingredient(kind, name) == cls()


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("teacher", "sign:noise=0.1,flip=0.05", hm.teachers.Sign(noise=0.1, flip=0.05)),
        ("teacher", "logistic:slope=2", hm.teachers.Logistic(slope=2.0)),
        ("teacher", "steps:changes=-1,0,1,first=1", hm.teachers.Steps((-1.0, 0.0, 1.0), first=1)),
        ("teacher", "steps:first=1, changes=0.5", hm.teachers.Steps((0.5,), first=1)),
        ("loss", "huber:delta=0.5", hm.losses.Huber(delta=0.5)),
        ("loss", "quantile:level=0.8", hm.losses.Quantile(level=0.8)),
        ("loss", "binomial:trials=5", hm.losses.Binomial(trials=5)),
        ("prediction", "logistic:trials=5", hm.predictors.Logistic(5.0)),
        (
            "teacher",
            "poisson:rate=softplus,intercept=0.3,slope=0.6",
            hm.teachers.Poisson("softplus", intercept=0.3, slope=0.6),
        ),
        ("teacher", "real:function=tanh,noise=0.5", hm.teachers.Real("tanh", noise=0.5)),
        (
            "teacher",
            "real:noise=laplace(0.5),function=relu,kinks=-1,1",
            hm.teachers.Real("relu", noise="laplace(0.5)", kinks=(-1.0, 1.0)),
        ),
        ("teacher", "linear:noise=student(3,1),rho=2", hm.teachers.Linear("student(3,1)", rho=2.0)),
        (
            "teacher",
            "linear:noise=mixture(0.9,0.1,1,25)",
            hm.teachers.Linear("mixture(0.9,0.1,1,25)"),
        ),
        (
            "teacher",
            "ordered:values=0,1,2,cuts=-0.5,0.5,noise=0.2",
            hm.teachers.Ordered((0.0, 1.0, 2.0), (-0.5, 0.5), noise=0.2),
        ),
        ("teacher", "binomial:trials=3,slope=2", hm.teachers.Binomial(3, slope=2.0)),
        (
            "projection",
            "spectrum:eigenvalues=0.5,1.5,weights=1,1,d_over_p=2",
            hm.projections.Spectrum((0.5, 1.5), (1.0, 1.0), d_over_p=2.0),
        ),
    ],
)
def test_parameters_are_numbers_lists_of_numbers_and_names(kind, text, expected):
    assert ingredient(kind, text) == expected


def test_commas_in_the_noise_belong_to_it():
    typed = ingredient("teacher", "linear:noise=student(3,2)")
    assert typed.law == hm.noises.Student(3.0, 2.0)
    typed = ingredient("teacher", "linear:noise=mixture(0.75,0.25,1,25)")
    assert typed.law == hm.noises.Mixture((0.75, 0.25), (1.0, 25.0))


def test_a_matrix_is_read_from_a_file(tmp_path):
    F = np.random.default_rng(0).standard_normal((20, 30))
    np.save(tmp_path / "F.npy", F)
    found = ingredient("projection", f"matrix:F={tmp_path / 'F.npy'}")
    np.testing.assert_array_equal(found.F, F)


def test_a_file_that_could_run_code_is_refused(tmp_path):
    np.save(tmp_path / "F.npy", np.array([{"an": "object"}]), allow_pickle=True)
    for name in ("F.npy", "missing.npy"):
        with pytest.raises(hm.InvalidArgumentError, match="cannot be read|written by numpy.save"):
            ingredient("projection", f"matrix:F={tmp_path / name}")


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        ("loss", "logistik", "did you mean 'logistic'"),
        ("loss", "hugger:delta=1", "did you mean 'huber'"),
        ("activation", "sine", "one of 'sign'"),
        ("projection", "spectra", "did you mean 'spectrum'"),
        ("teacher", "sign:nose=1", "did you mean 'noise'"),
        ("teacher", "sign:0.1", "keys among noise, flip"),
        ("teacher", "sign:noise=", "a number"),
        ("teacher", "sign:noise=__import__('os')", "a number"),
        ("teacher", "sign:noise=0.1,0.2", "one number"),
        ("teacher", "sign:noise=0.1,noise=0.2", "has 'noise' twice"),
        ("teacher", "sign:flip=0.7", "at most 0.5"),
        ("loss", "hinge:delta=1", "there are no parameters"),
        ("loss", "binomial:trials=2.5", "a whole number"),
        ("loss", "quantile:level=two", "a number"),
        ("teacher", "real:function=tahn", "did you mean 'tanh'"),
        ("teacher", "real:function=tanh,sine", "a number"),
        ("teacher", "real:scale=exp", "is a function, which cannot be typed"),
        ("teacher", "real:noise=laplase(1)", "did you mean 'laplace'"),
        ("teacher", "linear:noise=student(3,1,2)", "student with at most 2 numbers"),
        ("teacher", "linear:noise=student(a)", "a name and numbers"),
        ("teacher", "poisson:rate=tanh", "not negative"),
        ("prediction", "expp", "did you mean 'exp'"),
        ("projection", "spectrum:d_over_p=1", "give it as eigenvalues="),
        ("projection", "spectrum", "give it as eigenvalues="),
    ],
)
def test_mistakes_are_explained(kind, text, complaint):
    with pytest.raises(hm.InvalidArgumentError, match=complaint):
        ingredient(kind, text)


def test_what_is_offered_can_be_built():
    for kind, (base, classes) in families().items():
        for name, cls in classes.items():
            assert issubclass(cls, base), f"{kind} {name}"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "compare", "features-needed"])
def test_the_help_page_names_every_ingredient_and_its_keys(command):
    environment = {"COLUMNS": "300", "TERMINAL_WIDTH": "300"}
    for _ in range(2):  # the second time it says the same
        text = CliRunner().invoke(app, [command, "--help"], env=environment).stdout
        for kind, (_, classes) in families().items():
            if kind == "resampling":  # that of ensembles, which have pages of their own
                continue
            assert f" --{kind} " in text
            for name, cls in classes.items():
                assert re.search(rf"\b{name}\b", text)
                keys = (field for field in dataclasses.fields(cls) if field.init)
                assert all(field.name in text for field in keys if typeable(field))
        assert "sign (noise, flip, threshold, rho)" in text
        assert "real (function, noise, kinks, rho)" in text
        assert "By default sign for labels" in text
        assert text.count("Names, with their keys") == 6
