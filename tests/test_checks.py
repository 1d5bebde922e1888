"""Names: the kinds of ingredients, and what is suggested for one that is mistyped."""

import pytest

import hiddenmanifold as hm
from hiddenmanifold.checks import INGREDIENT_KINDS, did_you_mean
from hiddenmanifold.model import BASES, REGISTRIES
from hiddenmanifold.results.ingredients import name_of


def test_every_kind_has_a_default_that_is_registered():
    assert INGREDIENT_KINDS.keys() == REGISTRIES.keys() == BASES.keys()
    for kind, about in INGREDIENT_KINDS.items():
        assert issubclass(REGISTRIES[kind][about.default], BASES[kind])


@pytest.mark.parametrize("kind", REGISTRIES)
def test_an_ingredient_knows_its_registered_name(kind):
    for name, cls in REGISTRIES[kind].items():
        assert name_of(kind, cls()) == name


def test_an_ingredient_without_a_registered_name_has_that_of_its_class():
    assert name_of("teacher", hm.teachers.Steps((0.0,))) == "steps"
    assert name_of("features", hm.features.Covariance([2.0, 1.0], [1.0, 0.5])) == "covariance"


def test_near_names_are_suggested():
    assert did_you_mean("generalisation_eror", ["clean", "generalisation_error"]) == (
        "; did you mean 'generalisation_error'?"
    )
    assert did_you_mean("q", ["auc"]) == ""
    assert did_you_mean("q_x", ["q_s", "q_w", "M"]).count(" or ") == 1
