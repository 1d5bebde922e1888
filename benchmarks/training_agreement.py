"""Training of drawn samples beside its theory: z-scores of 36 models by all gradient methods.

All kinds of features and labels, true nonlinear features, steps that are really taken. Times of a
model share samples, so that its z-scores are not independent.
"""

from __future__ import annotations

import numpy as np

import hiddenmanifold as hm
from given import EXAMPLES, power_law

D, SEEDS, N_TEST = 300, 10, 2000
QUANTITIES = ("generalisation_error", "mean_square_error", "training_loss", "Q", "M", "q_w")
layer, layered, teachers = hm.features.Layer, hm.features.RandomFeatures, hm.teachers
FEATURES = {
    "erf": layered("erf", "gaussian"),
    "tanh orthogonal": layered("tanh", "orthogonal"),
    "sign": layered("sign", "gaussian"),
    "relu": layered("relu", "gaussian"),
    "two layers": hm.features.Deep([layer("tanh", width=1.5), layer("erf", "orthogonal")]),
    "three layers": hm.features.Deep(
        [layer("tanh", width=1.5), layer("erf", width=1.2), layer("tanh")]
    ),
    "covariance": power_law(D, decay=0.6),
    "projected": hm.features.Projected(power_law(D, decay=0.4), "tanh"),
    "kernel": EXAMPLES["kernel"],
}
LABELS = {
    "linear": teachers.Linear(0.3),
    "sign": teachers.Sign(noise=0.2),
    "threshold": teachers.Sign(threshold=0.4),
    "logistic": teachers.Logistic(),
    "counts": teachers.Poisson(),
    "classes": teachers.Mixture(0.3),
}
METHODS = {
    "flow": {"times": [0.1, 1.0, 10.0, 300.0]},
    "flow, λ": {"times": [0.5, 5.0, 1e5], "regularisation": 0.1},
    "descent": {"times": [1, 10, 100], "speed": 0.6},
    "heavy ball": {"times": [2, 15, 60], "speed": 0.5, "momentum": 0.8},
    "Nesterov": {"times": [2, 15, 60], "speed": 0.5, "momentum": 0.9, "nesterov": True},
    "one pass": {"speed": 0.2},
}
PAIRS = [
    (features, labels)
    for i, features in enumerate(FEATURES)
    for j, labels in enumerate(LABELS)
    if (i + j) % 3
]
MODELS = [(*pair, list(METHODS)[(5 * i) % 6 - i // 6]) for i, pair in enumerate(PAIRS)]
"""Two thirds of the pairs of features and labels, each with one method."""


def compared(features: str, labels: str, method: str) -> np.ndarray | None:
    """The z-scores of a model, and a line about it; None if it is refused."""
    kind, options = FEATURES[features], dict(METHODS[method])
    once = method == "one pass"
    free = not once and labels in ("threshold", "classes", "counts")
    free = free or kind.mean != 0.0
    model = hm.Model(features=kind, teacher=LABELS[labels], loss="square", intercept=free)
    at = {"n_over_d": 1.3} | ({} if kind.fixed_ratio else {"p_over_n": 0.7})
    if (speed := options.pop("speed", None)) is not None:
        if once:
            options |= {"method": "one-pass", "step": speed}
        else:
            flow = hm.training(model, **at, times=1.0)
            options["step"] = speed * 2.0 / float(flow.largest_eigenvalue)
    try:
        d = kind.fixed_dimension or D
        ds = hm.compare_training(model, **at, **options, d=d, seeds=SEEDS, n_test=N_TEST)
    except (hm.IncompatibleIngredientsError, hm.InvalidArgumentError) as error:
        print(f"{features:15} {labels:9} {method:10}: refused, {str(error)[:80]}", flush=True)
        return None
    z = np.array([ds[f"{name}_z"].values.ravel() for name in QUANTITIES if f"{name}_z" in ds])
    rms = np.sqrt(np.mean(z**2))
    print(
        f"{features:15} {labels:9} {method:10}: root mean square {rms:.2f}, largest "
        f"{np.abs(z).max():.1f}",
        flush=True,
    )
    return z.ravel()


def main() -> None:
    """All models."""
    found = [z for names in MODELS if (z := compared(*names)) is not None]
    scores = np.concatenate(found)
    rms, largest = np.sqrt(np.mean(scores**2)), np.abs(scores).max()
    print(
        f"{len(found)} models, {len(scores)} z-scores: root mean square {rms:.2f}, largest "
        f"{largest:.1f}"
    )


if __name__ == "__main__":
    main()
