"""A sample of the search of random labels, losses and predictions against brute force."""

import any_labels
import pytest

import hiddenmanifold as hm

# quick ones, among them every kind of labels and the losses of label and score
SOLVED = (0, 1, 2, 5, 7, 8, 9, 10, 15, 18, 19, 20)
CHECKED = (10_000, 10_001, 10_003, 10_006, 10_007, 10_008, 10_009, 10_011, 10_012, 10_013)


def judged(seed, *, solve):
    """Whether a model converged; if so, it agrees with the reference."""
    status, error, model, point = any_labels.compared(seed, solve=solve)
    assert status or error <= any_labels.TOLERANCE, (error, model, point)
    return status == hm.Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize("seed", SOLVED)
def test_random_models_have_the_solution_of_the_reference(seed):
    assert judged(seed, solve=True)


@pytest.mark.slow
def test_solutions_of_random_models_solve_the_equations_of_the_reference():
    converged = [judged(seed, solve=False) for seed in CHECKED]
    assert sum(converged) >= 0.9 * len(converged)
