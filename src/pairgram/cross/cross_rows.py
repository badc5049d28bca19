"""Products with the statistics of products of columns, which are never formed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.checks import Flags, Rows, Vector, require_finite
from pairgram._support.machine import thread_count
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.feature_map import FeatureMap
from pairgram.solvers.statistics import sums_of

# So many rows for each feature of the right side tell how it varies, for a preconditioner.
SAMPLED_ROWS = 32


class CrossRows:
    """Rows of products ``u ⊗ v`` behind k kept columns, with the pairs of several systems.

    A model of the products is a matrix W, and a product with ``XᵀLX`` is

        W ↦ Σ_q u_q ⊗ (V_qᵀ L_q V_q Wᵀ u_q)

    in ``4 n (k + r) + 4 q p r`` flops for q queries, p columns of u, and r of v. If the left side
    varies within queries, its runs of equal rows take the place of queries. The right sides are
    kept in the type of X, in the order of queries.

    Parameters
    ----------
    n_left, n_right : int
        The numbers of features of the sides.
    right : FeatureMap
        A fitted map to the kept columns and the right side.
    systems : sequence of RankingData
        The same rows with a map to products, and the row weights of each system.
    settings : Pairs
    """

    def __init__(
        self,
        n_left: int,
        n_right: int,
        right: FeatureMap,
        systems: Sequence[RankingData],
        settings: Pairs,
    ) -> None:
        first = systems[0]
        require_finite(first.X, "X")
        self._first, self._settings = first, settings
        self.n_features = first.n_features
        self._pairs = _core.cross_pairs(
            first.X,
            first.node_map(),
            [one.pairs_of_stored(settings) for one in systems],
            thread_count(),
        )
        self._n_left, self._n_right, self._right = n_left, n_right, right
        self._n_kept = self.n_features - self._n_left * self._n_right
        widest = max(self._n_left, self._n_kept + self._n_right)
        self._is_narrow = widest <= limits.now.widest_gram
        self._of_left: dict[int, Vector] = {}
        self._of_right: Vector | None = None

    def product(self, vectors: Vector, systems: Rows) -> Vector:
        """Return ``XᵀLX p`` for a vector of each of some systems, (n_vectors, n_features)."""
        return self._pairs.product(vectors, systems, thread_count())

    def transposed(self, z: Vector) -> Vector:
        """Return ``Xᵀ z`` for a number of every row, (n_features,)."""
        return self._pairs.transposed(z, thread_count())

    def squares(self, number: int) -> tuple[Vector, Vector, Flags]:
        """Return the diagonal of a system, what it was subtracted from, and what varies."""
        diagonal, size, left = self._pairs.squares(number, self._is_narrow, thread_count())
        if not np.isfinite(size).all():
            raise ValueError("X or the weights too large: squared differences overflow")
        if left is not None:
            self._of_left[number] = left
        return diagonal, size, diagonal > 0

    def _sample(self) -> RankingData:
        """Return queries with enough rows to tell how the right side varies, or all of them."""
        data, queries = self._first, self._first.queries
        wanted = SAMPLED_ROWS * (self._n_kept + self._n_right) / len(data.y)
        if wanted >= 1:
            return data
        chosen = np.zeros(queries.n_queries, dtype=bool)
        chosen[np.flatnonzero(self._pairs.counted(0))[:: int(1 / wanted)]] = True
        return data.take(np.flatnonzero(chosen[queries.index()]))

    def preconditioner(self, number: int, scale: bool) -> Kronecker | None:
        """Return the preconditioner of a system, or None, which stands for the diagonal.

        The statistics of the right side are those of the first system.
        """
        if scale and not self._pairs.is_constant:
            raise ValueError(
                "scale must be False where the left side of a Cross varies within queries, and its "
                "products are too many for a matrix"
            )
        if number not in self._of_left:
            return None
        if self._of_right is None:
            data = replace(self._sample(), feature_map=self._right)
            sums = sums_of(data, self._settings, may_vanish=True)[0]
            self._of_right = sums[:-1, :-1]
        k, left = self._n_kept, self._of_left[number]
        right = self._of_right[k:, k:]
        trace = float(np.trace(right))
        if not trace > 0:
            return None
        kept = self._of_right[:k, :k]
        if scale:
            left, right, kept = (_correlations(one) for one in (left, right, kept))
        else:
            right = right / trace
        return Kronecker(*(Eigen.of(one) for one in (kept, left, right)))


class Eigen(NamedTuple):
    """The eigenvalues ≥ 0 and eigenvectors, in columns, of a symmetric matrix."""

    values: Vector
    vectors: Vector

    @classmethod
    def of(cls, matrix: Vector) -> Eigen:
        """Decompose a matrix, in about 9 n³ flops."""
        values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
        return cls(np.maximum(values, 0.0), vectors)


@dataclass(frozen=True)
class Kronecker:
    """The preconditioner ``K ⊕ A ⊗ B`` for K of kept columns, A of the left side, B of the right.

    With ``A = Σ_q u_q u_qᵀ tr S_q`` and ``B = Σ_q S_q / Σ_q tr S_q`` for ``S_q = V_qᵀ L_q V_q``,
    this is the matrix itself where all S_q are multiples of each other.
    """

    kept: Eigen
    left: Eigen
    right: Eigen

    def at(self, alpha: float) -> Callable[[Vector], Vector]:
        """Return what multiplies a vector by about ``(G + alpha I)⁻¹``, for alpha > 0."""
        k, P, Q = len(self.kept.values), self.left.vectors, self.right.vectors
        of_kept = 1 / (self.kept.values + alpha)
        of_products = 1 / (np.outer(self.left.values, self.right.values) + alpha)

        def solve(residual: Vector) -> Vector:
            products = residual[k:].reshape(of_products.shape)
            kept = self.kept.vectors @ (of_kept * (residual[:k] @ self.kept.vectors))
            products = P @ (of_products * (P.T @ products @ Q)) @ Q.T
            return np.concatenate((kept, products.ravel()))

        return solve


def _correlations(matrix: Vector) -> Vector:
    """Return a positive semidefinite matrix with ones on its diagonal, but where it has zeros."""
    roots = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    factors = 1 / np.where(roots > 0, roots, 1.0)
    return factors[:, None] * matrix * factors
