"""Responses of the weights on random features are traces of the inverse of a drawn Hessian."""

import numpy as np
import pytest

import hiddenmanifold as hm


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hiddenmanifold.errors.BlindFeaturesWarning")
@pytest.mark.parametrize(
    ("activation", "projection"),
    [("erf", "gaussian"), ("relu", "orthogonal"), (lambda x: x**2 - 1.0, "gaussian")],
    ids=["erf", "relu", "blind"],
)
def test_responses_are_traces_of_the_inverse_hessian(activation, projection):
    model = hm.Model(activation=activation, projection=projection, teacher="linear", loss="square")
    lam, d, n, p = 0.3, 300, 600, 360
    ds = hm.predict(model, n_over_d=n / d, p_over_d=p / d, regularisation=lam)
    rng = np.random.default_rng(0)
    drawn = model.features.draw(d, p, 1.0, rng)
    X, _ = drawn.sample(n, rng, equivalent=True)
    inverse = np.linalg.inv(X.T @ X / p + lam * np.eye(p))
    F = drawn.maps[0].F
    assert float(ds.V_w) == pytest.approx(np.trace(inverse) / p, rel=0.01)
    assert float(ds.V_s) == pytest.approx(np.trace(F @ inverse @ F.T) / (p * d), rel=0.02)
