"""Products with the statistics of CSR rows, which are never formed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Flags, Rows, Vector, require_finite
from pairgram._support.machine import thread_count
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs


class SparseRows:
    """CSR rows, or CSR items of comparisons, with the pairs of several systems.

    A product with ``XᵀLX`` takes O(nnz + n_rows) time. Where X has very many columns, X is read
    twice in it. A product of six vectors with 400,000 × 100,000 rows takes more than their share of
    entries: the numbers of its columns do not fit into the near cache.

    Parameters
    ----------
    systems : sequence of RankingData
        The same rows, with the row weights of each system.
    settings : Pairs
    """

    def __init__(self, systems: Sequence[RankingData], settings: Pairs) -> None:
        X = systems[0].stored
        require_finite(X, "X")
        self._systems, self._settings = systems, settings
        self.n_features = int(X.shape[1])
        self._pairs = _core.sparse_pairs(
            np.ascontiguousarray(X.indptr, np.int64),
            np.ascontiguousarray(X.indices, np.int32),
            np.ascontiguousarray(X.data),
            self.n_features,
            [one.pairs_of_stored(settings) for one in systems],
        )

    def product(self, vectors: Vector, systems: Rows) -> Vector:
        """Return ``XᵀLX p`` for a vector of each of some systems, (n_vectors, n_features)."""
        return self._pairs.product(vectors, systems, thread_count())

    def transposed(self, z: Vector) -> Vector:
        """Return ``Xᵀ z`` for a number of every row, (n_features,)."""
        return np.asarray(self._systems[0].stored.T @ z, dtype=np.float64)

    def squares(self, number: int) -> tuple[Vector, Vector, Flags]:
        """Return the diagonal of a system, what it was subtracted from, and what varies."""
        diagonal, size = self._pairs.diagonal(number, thread_count())
        counted, data = self._pairs.counted(number), self._systems[number]
        return diagonal, size, data.varying(self._settings, counted, diagonal, size)

    def preconditioner(self, number: int, scale: bool) -> None:
        """Return None, which stands for the diagonal."""
