r"""Kernel machines of scikit-learn as models, and models as `KernelRidge`, `SVC` or `SVR`.

For white inputs x of d columns, whose squared norm is about d, scikit-learn's kernels are functions
of the cosine t: the Gaussian one :math:`\exp(-\gamma|x-x'|^2)` is :math:`\exp(-2\gamma d\,(1-t))`,
and the polynomial one :math:`(\gamma\,x\cdot x' + c)^m` is :math:`(\gamma d\,t + c)^m`. The lengths
of inputs fluctuate, by a part of order :math:`1/\sqrt d`, which does not matter in the limit.
"""

from __future__ import annotations

from typing import Any

from hiddenmanifold.checks import check_count, check_number
from hiddenmanifold.errors import InvalidArgumentError, MissingExtraError, shown
from hiddenmanifold.features import kernels
from hiddenmanifold.losses import Absolute, Hinge, Insensitive, Square
from hiddenmanifold.model import Model
from hiddenmanifold.results.ingredients import name_of

RECOGNISED = ("KernelRidge", "SVC", "SVR")
WITH_KERNEL = "a hiddenmanifold.Model with a kernel"


def from_kernel_machine(estimator: Any, d: int) -> tuple[dict[str, Any], float]:
    """The kernel, the loss and the λ of scikit-learn's `KernelRidge`, `SVC` or `SVR`.

    Parameters
    ----------
    estimator : KernelRidge, SVC or SVR
        With the kernel "rbf", "poly" or "polynomial", "linear" or "cosine".
    d : int
        Number of columns of the inputs, which are white: uncorrelated columns of variance 1.

    Returns
    -------
    dict, float
        The arguments `kernel`, `loss` and `intercept` of a `Model`, and λ: the `alpha` of
        `KernelRidge`, the 1/C of the others.

    Raises
    ------
    InvalidArgumentError
        If the estimator has a kernel or an option that has no counterpart here.

    Examples
    --------
    >>> import hiddenmanifold as hm
    >>> from sklearn.svm import SVC
    >>> machine, lam = hm.from_kernel_machine(SVC(C=2.0), d=100)
    >>> model = hm.Model(**machine, teacher="sign")
    >>> ds = hm.predict(model, n=300, d=100, regularisation=lam)
    >>> float(ds.generalisation_error.round(4))
    0.1379
    """
    d = check_count("d", d)
    name = type(estimator).__name__
    if name not in RECOGNISED:
        hint = f"; did you mean {estimator.__name__}()?" if isinstance(estimator, type) else ""
        allowed = f"one of {', '.join(RECOGNISED)}{hint}"
        raise InvalidArgumentError("estimator", estimator, allowed)
    if getattr(estimator, "class_weight", None) is not None:
        raise InvalidArgumentError.because(
            "class_weight", "is not converted", "give class_weight=None, and weights= to the Model"
        )
    kernel = _kernel(estimator, d)
    if name == "KernelRidge":
        check_number("alpha", estimator.alpha, 0.0)
        return {"kernel": kernel, "loss": Square(), "intercept": False}, float(estimator.alpha)
    check_number("C", estimator.C, 0.0, open_low=True)
    if name == "SVC":
        return {"kernel": kernel, "loss": Hinge(), "intercept": True}, 1.0 / estimator.C
    check_number("epsilon", estimator.epsilon, 0.0)
    width = float(estimator.epsilon)
    loss = Insensitive(width) if width else Absolute()
    return {"kernel": kernel, "loss": loss, "intercept": True}, 1.0 / estimator.C


def _kernel(estimator: Any, d: int) -> kernels.KernelFunction:
    """The kernel of an estimator of white inputs with d columns."""
    name = estimator.kernel
    if not isinstance(name, str) or name not in ("rbf", "poly", "polynomial", "linear", "cosine"):
        raise InvalidArgumentError.because(
            "kernel",
            f"{shown(name)} has no counterpart here",
            "give rbf, poly, linear or cosine; scikit-learn's laplacian is a function of another "
            "distance, and its sigmoid kernel is not positive definite",
        )
    if name in ("linear", "cosine"):
        return kernels.Polynomial(1, 0.0, d**-0.5 if name == "linear" else 1.0)
    gamma = estimator.gamma
    if gamma is None or (isinstance(gamma, str) and gamma in ("scale", "auto")):
        gamma = 1.0 / d  # the variance of white inputs is 1
    check_number("gamma", gamma, 0.0, open_low=True)
    if name == "rbf":
        return kernels.RBF((2.0 * gamma * d) ** -0.5)
    check_number("coef0", estimator.coef0, 0.0)
    return kernels.Polynomial(estimator.degree, float(estimator.coef0), (gamma * d) ** -0.5)


def to_kernel_machine(model: Model, regularisation: float) -> Any:
    """The estimator of scikit-learn that fits a model with a kernel, on its Gram matrix.

    It is given ``kernel.gram(X)`` to fit, and ``kernel.gram(X_new, X)`` to predict.

    Parameters
    ----------
    model : Model
        A model with a kernel: of the square loss and without intercept for `KernelRidge`; of the
        loss hinge for `SVC`, insensitive or absolute for `SVR`, which both fit an intercept.
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
    if not isinstance(model, Model):
        raise InvalidArgumentError("model", model, WITH_KERNEL)
    if not model.features.infinite:
        raise InvalidArgumentError("model", model, WITH_KERNEL)
    check_number("regularisation", regularisation, 0.0, open_low=True)
    try:
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.svm import SVC, SVR
    except ImportError:
        raise MissingExtraError("to_kernel_machine", "sklearn", "data") from None
    loss, C = model.loss, 1.0 / regularisation
    if isinstance(loss, Square) and not model.intercept:
        return KernelRidge(alpha=regularisation, kernel="precomputed")
    if isinstance(loss, Hinge) and model.intercept:
        return SVC(C=C, kernel="precomputed")
    if isinstance(loss, Insensitive | Absolute) and model.intercept:
        return SVR(C=C, epsilon=getattr(loss, "width", 0.0), kernel="precomputed")
    intercept = "with" if model.intercept else "without"
    raise InvalidArgumentError.because(
        "model",
        f"has the loss {name_of('loss', loss)} {intercept} intercept, for which scikit-learn has "
        "no kernel machine",
        "give the square loss without intercept, or hinge, insensitive or absolute with one",
    )
