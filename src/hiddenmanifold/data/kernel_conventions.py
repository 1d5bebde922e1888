r"""Kernel machines of scikit-learn as models, and models as `KernelRidge`, `SVC` or `SVR`.

For white inputs x of d columns, whose squared norm is about d, scikit-learn's kernels are functions
of the cosine t: the Gaussian one :math:`\exp(-\gamma|x-x'|^2)` is :math:`\exp(-2\gamma d\,(1-t))`,
and the polynomial one :math:`(\gamma\,x\cdot x' + c)^m` is :math:`(\gamma d\,t + c)^m`. The lengths
of inputs fluctuate, by a part of order :math:`1/\sqrt d`, which does not matter in the limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hiddenmanifold.checks import check_count, check_number
from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError, shown
from hiddenmanifold.features import kernels
from hiddenmanifold.losses import Absolute, ConvexLoss, Hinge, Insensitive, Square
from hiddenmanifold.model import Model

RECOGNISED = ("KernelRidge", "SVC", "SVR")


class KernelMachine(NamedTuple):
    """What a kernel machine minimises: arguments of `hiddenmanifold.Model`, and λ."""

    kernel: kernels.KernelFunction
    loss: ConvexLoss
    intercept: bool
    regularisation: float


def from_kernel_machine(estimator: Any, d: int) -> KernelMachine:
    """The kernel, loss, intercept and λ of scikit-learn's `KernelRidge`, `SVC` or `SVR`.

    Parameters
    ----------
    estimator : KernelRidge, SVC or SVR
        With the kernel "rbf", "poly" or "polynomial", "linear" or "cosine".
    d : int
        Number of columns of the inputs, which are white: uncorrelated columns of variance 1.

    Returns
    -------
    KernelMachine
        ``kernel``, ``loss`` and ``intercept``, for a `Model`, and ``regularisation``.

    Raises
    ------
    InvalidArgumentError
        If the estimator has a kernel or an option that has no counterpart here.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> from sklearn.svm import SVC
    >>> kernel, loss, intercept, lam = hm.from_kernel_machine(SVC(C=2.0), d=100)
    >>> model = hm.Model(kernel=kernel, loss=loss, intercept=intercept, teacher="sign")
    >>> ds = hm.predict(model, n=300, d=100, regularisation=lam)
    >>> float(ds.generalisation_error.round(4))
    0.1379
    """
    d = check_count("d", d)
    name = type(estimator).__name__
    if name not in RECOGNISED:
        raise InvalidArgumentError("estimator", estimator, f"one of {', '.join(RECOGNISED)}")
    if getattr(estimator, "class_weight", None) is not None:
        raise InvalidArgumentError.because(
            "class_weight", "has no counterpart here", "give None: classes count as they come"
        )
    kernel = _kernel(estimator, d)
    if name == "KernelRidge":
        check_number("alpha", estimator.alpha, 0.0)
        return KernelMachine(kernel, Square(), False, float(estimator.alpha))
    check_number("C", estimator.C, 0.0, open_low=True)
    loss: ConvexLoss = Hinge()
    if name == "SVR":
        check_number("epsilon", estimator.epsilon, 0.0)
        loss = Insensitive(float(estimator.epsilon)) if estimator.epsilon else Absolute()
    return KernelMachine(kernel, loss, True, 1.0 / estimator.C)


def _kernel(estimator: Any, d: int) -> kernels.KernelFunction:
    """The kernel of an estimator of white inputs with d columns."""
    name, gamma = estimator.kernel, estimator.gamma
    if gamma in (None, "scale", "auto"):
        gamma = 1.0 / d  # the variance of white inputs is 1
    check_number("gamma", gamma, 0.0, open_low=True)
    if name == "rbf":
        return kernels.RBF((2.0 * gamma * d) ** -0.5)
    if name in ("poly", "polynomial"):
        return kernels.Polynomial(estimator.degree, float(estimator.coef0), (gamma * d) ** -0.5)
    if name in ("linear", "cosine"):
        return kernels.Polynomial(1, 0.0, d**-0.5 if name == "linear" else 1.0)
    raise InvalidArgumentError.because(
        "kernel",
        f"{shown(name)} has no counterpart here",
        "give rbf, poly, linear or cosine; scikit-learn's laplacian is a function of another "
        "distance, and its sigmoid not positive definite",
    )


def to_kernel_machine(model: Model, regularisation: float) -> Any:
    """The estimator of scikit-learn that fits a model with a kernel, on its Gram matrix.

    It is given ``kernel.gram(X)`` to fit, and ``kernel.gram(X_new, X)`` to predict.

    Parameters
    ----------
    model : Model
        A model with a kernel: of the square loss and without intercept for `KernelRidge`; of the
        loss hinge for `SVC`, or insensitive for `SVR`, which both fit an intercept.
    regularisation : float
        The λ of the model, positive.

    Returns
    -------
    KernelRidge, SVC or SVR
        Not fitted, with ``kernel="precomputed"``; alpha = λ, or C = 1/λ.

    Raises
    ------
    InvalidArgumentError
        If scikit-learn has no such estimator.
    MissingExtraError
        If scikit-learn is not installed.
    """
    if not model.features.infinite:
        raise InvalidArgumentError("model", model, "one with a kernel")
    check_number("regularisation", regularisation, 0.0, open_low=True)
    try:
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.svm import SVC, SVR
    except ImportError:
        raise MissingExtraError("to_kernel_machine", "sklearn", "data") from None
    loss = model.loss
    if isinstance(loss, Square) and not model.intercept:
        return KernelRidge(alpha=regularisation, kernel="precomputed")
    if isinstance(loss, Hinge) and model.intercept:
        return SVC(C=1.0 / regularisation, kernel="precomputed")
    if isinstance(loss, Insensitive) and model.intercept:
        return SVR(C=1.0 / regularisation, epsilon=loss.width, kernel="precomputed")
    raise InvalidArgumentError(
        "model",
        model,
        "one of the square loss without an intercept, or of the loss hinge or insensitive with "
        "intercept=True: scikit-learn has no other kernel machines",
    )
