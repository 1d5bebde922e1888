r"""The functions of κ through which class means enter: K × K matrices beside the scalar sums.

.. math:: T_{ab} = \sum_i \frac{t_i}{w_i}\, r_i^a (1 - r_i)^b, \qquad
    t_i^{cc'} = (v_i\cdot\mu_c)(v_i\cdot\mu_{c'})/p

of the means of the classes, whose mean is the origin: :math:`T\pi = 0`. Features of white latent
data have a scalar function times the Gram matrix of the means there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.features import Covariance, Features
from hiddenmanifold.features.spectral_sums import Sums
from hiddenmanifold.teachers import Classes


@dataclass(frozen=True)
class LabelSums:
    """T1, T2, T1 - T2 and T21 in contrasts, at a batch of points: (points, K - 1, K - 1)."""

    T1: Array
    T2: Array
    T11: Array
    T21: Array

    @property
    def kept(self) -> Array:
        """The inverse of 1 + T1: the part of the labels that is not fitted."""
        return np.linalg.inv(np.eye(self.T1.shape[1]) + self.T1).astype(float)


@dataclass(frozen=True)
class LabelFunctions:
    r"""Label functions in K - 1 contrasts: :math:`W^\top\Pi^{1/2} T \Pi^{1/2} W`.

    Attributes
    ----------
    shares : array (K,)
        Probabilities of the classes.
    gram : array (K - 1, K - 1)
        What the Gram matrix of the means is in contrasts.
    basis : array (K, K - 1)
        W, orthonormal and orthogonal to the roots of the shares.
    variances, along : arrays (p,), (K - 1, p), optional
        Of features of a covariance within classes, its eigenvalues, and the means along each
        eigenvector in contrasts. Where they are not given, features are those of white data.
    """

    shares: Array
    gram: Array
    basis: Array
    variances: Array | None = None
    along: Array | None = None

    @classmethod
    def of(cls, teacher: Classes, features: Features | None = None) -> LabelFunctions:
        """Those of normal classes; features of a covariance have means of their own."""
        shares = teacher.shares
        roots = np.sqrt(shares)
        full = np.linalg.svd(roots[:, None])[0]
        basis = full[:, 1:]
        gram = basis.T @ (roots[:, None] * teacher.centred_gram * roots) @ basis
        if teacher.means is None or not isinstance(features, Covariance):
            return cls(shares, 0.5 * (gram + gram.T), basis)
        w = len(features.eigenvalues) * np.array(features.eigenvalues)
        seen = w > 0.0
        along = basis.T @ (roots[:, None] * teacher.coordinates[:, seen])
        return cls(shares, 0.5 * (gram + gram.T), basis, w[seen], along)

    @property
    def number(self) -> int:
        """Number of classes."""
        return len(self.shares)

    def at(self, sums: Sums, k: Array) -> LabelSums:
        """The label functions where the scalar sums are given, at k."""
        if self.variances is not None:
            return self._weighted(k)
        scalars = (sums.T1, sums.T20, sums.T11, sums.T21)
        return LabelSums(*(scalar[:, None, None] * self.gram for scalar in scalars))

    def _weighted(self, k: Array) -> LabelSums:
        """The label functions at k of a covariance within classes."""
        w, k = self.variances, k[:, None]
        assert w is not None
        over = 1.0 / (w + k)
        with np.errstate(under="ignore"):
            weights = (over, w * over**2, k * over**2, w * over * (k * over) * over)
        return LabelSums(*(self._summed(part) for part in weights))

    def _summed(self, weights: Array) -> Array:
        """Sums over eigenvectors with weights (..., p) of products of the means along these."""
        assert self.along is not None
        products = self.along[:, None] * self.along
        found: Array = np.einsum("...p,abp->...ab", weights, products, optimize=True)
        return found

    def pair(self, features: Features, k: Array, gamma: float) -> tuple[Array, Array]:
        """D2 (m, m) and T2 in contrasts (m, m, K - 1, K - 1) at all pairs of some k (m,)."""
        first, second = (values.ravel() for values in np.meshgrid(k, k, indexing="ij"))
        sums = features.pair_sums(first, second, np.full_like(first, gamma))
        D2, T2 = (np.reshape(part, (len(k), len(k))) for part in (sums.D2, sums.T2))
        if self.variances is not None:
            w = self.variances
            over = 1.0 / (w + k[:, None])
            return D2, self._summed(w * over[:, None] * over)
        return D2, T2[..., None, None] * self.gram

    def pulled(self, features: Features, k: Array, gamma: float) -> Array:
        r"""The diagonal of T2 of all samples at all pairs of some k (K, m, m).

        With :math:`T^\Omega = T_1(1 + \Pi T_1)^{-1}` it is that of its divided differences.
        """
        m = len(k)
        T1 = self.at(features.sums(k, np.full(m, gamma)), k).T1
        kept = np.linalg.inv(np.eye(T1.shape[1]) + T1)
        T2 = self.pair(features, k, gamma)[1]
        inner = kept[:, None] @ (T2 + T1[:, None] @ T1) @ kept
        return self.diagonal(inner.reshape(m * m, *T1.shape[1:])).T.reshape(-1, m, m)

    def of_classes(self, contrasts: Array) -> Array:
        """Numbers of each class (K, columns) from those of contrasts (K - 1, columns)."""
        found: Array = (self.basis @ contrasts) / np.sqrt(self.shares)[:, None]
        return found

    def in_contrasts(self, classes: Array) -> Array:
        """Contrasts (K - 1, columns) of numbers of each class (K, columns)."""
        found: Array = self.basis.T @ (np.sqrt(self.shares)[:, None] * classes)
        return found

    @property
    def outer_shares(self) -> Array:
        """The matrix of products of shares."""
        return np.outer(self.shares, self.shares)

    def in_scores(self, contrasts: Array) -> Array:
        """Second moments of scores (points, K, K) from those of contrasts."""
        wide = np.sqrt(self.shares)[:, None] * self.basis
        found: Array = wide @ contrasts @ wide.T
        return found

    def diagonal(self, contrasts: Array) -> Array:
        r"""The diagonal (points, K) of :math:`\Pi^{-1/2} W (\cdot) W^\top \Pi^{-1/2}`."""
        found: Array = np.einsum("ci,pij,cj->pc", self.basis, contrasts, self.basis) / self.shares
        return found

    def means(self, contrasts: Array) -> Array:
        """Means of all scores in each class (points, class, score) from a matrix of contrasts."""
        roots = np.sqrt(self.shares)[:, None]
        scores: Array = (roots * self.basis) @ contrasts @ (self.basis / roots).T
        return scores.swapaxes(1, 2)
