"""Curves of LCDB 1.1 (Yan, Mohr and Viering 2025), predicted from few rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import hiddenmanifold as hm

FILE = Path(__file__).parents[2] / "benchmarks/learning_curve_database.csv"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "load", "rows", "most"),
    [("optdigits", load_digits, 1000, 0.16), ("optdigits", load_digits, 400, 0.16)]
    + [("iris", load_iris, 100, 0.2)],
)
def test_all_points_of_ridge_classifiers_are_within_two_bars(name, load, rows, most):
    known = pd.read_csv(FILE, comment="#").query("data == @name and learner == 'RidgeClassifier'")
    X, y = load(return_X_y=True)
    own = np.random.default_rng(0).permutation(len(y))[:rows]
    X = X[own][:, np.ptp(X[own], axis=0) > 0]
    data = hm.Data(X, y[own], "classification")
    ds = hm.learning_curve(
        data, n=known.n, regularisation=hm.from_ridge_alpha(1.0, data.p), on_refusal="keep"
    )
    measured = 0.5 * (known.validation + known.test).to_numpy()
    noise = np.abs(known.validation - known.test).to_numpy() / 2 / measured
    off = np.log(ds.generalisation_error.values / measured)
    bar = np.log(ds.generalisation_error_high / ds.generalisation_error_low).values / 2
    assert (np.abs(off) < 2.0 * np.hypot(bar, noise)).all()
    assert np.sqrt(np.mean(off**2)) < most
    if name == "optdigits":  # the peak, where no power law has one
        peak = known.n.to_numpy()[ds.generalisation_error.values.argmax()]
        assert 42 <= peak <= 54
