"""Products of a Newton solver with the features H of the rows: H s, Hᵀ z and Hᵀ (AᵀDA) H s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.blocks import blocks
from pairgram._support.cached import cached_property
from pairgram._support.memory import available_memory
from pairgram._support.node_map import native_nodes
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram.feature_maps.base import ValueMap, is_known, unwhitened
from pairgram.problem.data import DENSE_BLOCK_BYTES, RankingData

__all__ = [
    "FeatureRows",
    "in_single",
    "make_rows",
    "scatter_diagonal",
    "with_stored_features",
    "without_whitening",
]


# Kernel values with landmarks are stored in place of features if there are at most this many
# landmarks for each feature.
MOST_LANDMARKS = 3
# Features are made in blocks of rows with this many bytes of features, of which threads share one.
MAP_BLOCK_BYTES = 64 << 20


class FeatureRows(Protocol):
    """The interface of products with the features H of all rows, ordered by query."""

    def scores(self, w: Vector) -> Vector:
        """Return H w, (n_rows,)."""
        ...

    def sum(self, z: Vector) -> Vector:
        """Return Hᵀ z, (n_features,)."""
        ...

    def hessian_product(self, pairs: _core.PairOperator, s: Vector) -> tuple[Vector, Vector]:
        """Return (Hᵀ (2 AᵀDA) H s, H s). In H s, queries without pairs may have 0 instead."""
        ...


@dataclass(frozen=True)
class DenseRows:
    """Dense rows in memory. A Hessian product reads them once."""

    H: NDArray[Any]
    order: NDArray[np.int64] | None
    n_threads: int

    def scores(self, w: Vector) -> Vector:
        return _core.score_rows(self.H, w, self.order, self.n_threads)

    def sum(self, z: Vector) -> Vector:
        return _core.sum_rows(self.H, z, self.order, self.n_threads)

    def hessian_product(self, pairs: _core.PairOperator, s: Vector) -> tuple[Vector, Vector]:
        return pairs.hessian_product(self.H, s, self.order, self.n_threads)


@dataclass(frozen=True)
class SparseRows:
    """Rows of a float64 CSR matrix, multiplied by SciPy."""

    H: Any
    n_threads: int

    def scores(self, w: Vector) -> Vector:
        return np.asarray(self.H @ w)

    def sum(self, z: Vector) -> Vector:
        return np.asarray(self.H.T @ z)

    def hessian_product(self, pairs: _core.PairOperator, s: Vector) -> tuple[Vector, Vector]:
        scores = self.scores(s)
        return self.sum(pairs.product(scores, self.n_threads)), scores


@dataclass(frozen=True)
class WhitenedRows:
    """Features K W of rows K. W is applied to vectors, in 2 · n_landmarks² flops per product."""

    rows: FeatureRows
    W: Vector

    def scores(self, w: Vector) -> Vector:
        return self.rows.scores(self.W @ w)

    def sum(self, z: Vector) -> Vector:
        return np.asarray(self.W.T @ self.rows.sum(z))

    def hessian_product(self, pairs: _core.PairOperator, s: Vector) -> tuple[Vector, Vector]:
        total, scores = self.rows.hessian_product(pairs, self.W @ s)
        return self.W.T @ total, scores


@dataclass(frozen=True)
class MappedRows:
    """Rows whose features are computed again, block by block, whenever they are read.

    A block holds whole queries and is computed once for a Hessian product. A query that is longer
    than a block is cut, and computed twice.
    """

    data: RankingData
    n_features: int
    n_threads: int

    @cached_property
    def _blocks(self) -> list[tuple[int, int, list[slice]]]:
        """Return (first query, last query, positions of the parts) of every block."""
        offsets = self.data.queries.offsets
        row_bytes = self.n_features * self.data.X.dtype.itemsize
        most = max(1, DENSE_BLOCK_BYTES // max(1, row_bytes))
        blocks = []
        first, n_queries = 0, self.data.queries.n_queries
        while first < n_queries:
            begin = int(offsets[first])
            last = int(np.searchsorted(offsets, begin + most, side="right")) - 1
            last = max(last, first + 1)
            end = int(offsets[last])
            parts = [slice(at, min(at + most, end)) for at in range(begin, end, most)]
            blocks.append((first, last, parts))
            first = last
        return blocks

    def _features(self, positions: slice) -> NDArray[Any]:
        order = self.data.queries.order
        H = self.data.features(positions if order is None else order[positions])
        single = H.dtype == np.float32
        return np.ascontiguousarray(H, dtype=np.float32 if single else np.float64)

    def scores(self, w: Vector) -> Vector:
        scores = np.empty(len(self.data.y))
        for _, _, parts in self._blocks:
            for part in parts:
                scores[part] = _core.score_rows(self._features(part), w, None, self.n_threads)
        return scores

    def sum(self, z: Vector) -> Vector:
        total = np.zeros(self.n_features)
        for _, _, parts in self._blocks:
            for part in parts:
                total += _core.sum_rows(self._features(part), z[part], None, self.n_threads)
        return total

    def hessian_product(self, pairs: _core.PairOperator, s: Vector) -> tuple[Vector, Vector]:
        scores, z = np.empty(len(self.data.y)), np.empty(len(self.data.y))
        total = np.zeros(self.n_features)
        H: Any = None
        for first, last, parts in self._blocks:
            for part in parts:
                H = self._features(part)
                scores[part] = _core.score_rows(H, s, None, self.n_threads)
            rows = slice(parts[0].start, parts[-1].stop) if parts else slice(0)
            z[rows] = pairs.product_of_queries(first, last, scores[rows])
            for part in parts:
                H = H if len(parts) == 1 else self._features(part)
                total += _core.sum_rows(H, z[part], None, self.n_threads)
        return total, scores


def make_rows(data: RankingData, n_threads: int, whitening: Vector | None = None) -> FeatureRows:
    """Return the features H of `data` for products: stored, or computed again at every use.

    With a `whitening` W, the features are ``H W``.
    """
    if whitening is not None:
        return WhitenedRows(make_rows(data, n_threads), whitening)
    if data.feature_map is not None:
        return MappedRows(data, data.n_features, n_threads)
    order = data.queries.order
    if scipy.sparse.issparse(data.X):
        H = data.X if order is None else data.X[order]
        return SparseRows(H.astype(np.float64), n_threads)
    return DenseRows(data.X, order, n_threads)


def with_stored_features(
    data: RankingData, dtype: type[np.floating[Any]], memory_limit: float | None
) -> RankingData:
    """Return `data` with stored features in place of X and the feature map, if these fit.

    Parameters
    ----------
    data : RankingData
    dtype : float32 or float64
        Type of the stored features. Sums over them are in double precision in any case.
    memory_limit : float or None
        Bytes that the features may take. None stands for half of the free memory.
    """
    if data.feature_map is None:
        return data
    limit = available_memory() / 2 if memory_limit is None else memory_limit
    n_rows, n_features = len(data.y), data.n_features
    if n_rows * n_features * np.dtype(dtype).itemsize > limit:
        return data
    H = np.empty((n_rows, n_features), dtype)
    store = _storing(data.feature_map, data.X)
    step = max(1, MAP_BLOCK_BYTES // max(1, 8 * n_features))
    for rows in blocks(n_rows, step):
        if store is None:
            H[rows] = data.features(rows)
        else:
            store(data.X[rows], H[rows])
    return replace(data, X=H, feature_map=None)


def _storing(feature_map: Any, X: Any) -> Callable[[Any, NDArray[Any]], None] | None:
    """Return a function that writes the features of rows into an array, rounded to its type.

    It is None if only Python can map the rows.
    """
    centred = isinstance(feature_map, ValueMap)
    dtype = np.dtype(np.float64) if centred else X.dtype
    compiled = centred or is_known(feature_map)
    nodes = feature_map.node_map(dtype) if compiled and not scipy.sparse.issparse(X) else None
    if nodes is None:
        return None
    shift, threads = (
        feature_map.shift if centred else None,
        resolve_n_threads(feature_map.n_threads),
    )

    def store(rows: Any, out: NDArray[Any]) -> None:
        rows = np.require(feature_map.checked(rows), dtype, ["C", "A"])
        nodes.store(rows, out, shift, threads)

    return store


def without_whitening(data: RankingData) -> tuple[RankingData, Vector | None]:
    """Return `data` with centred kernel values in place of Nyström features, and their whitening.

    This saves n · n_landmarks · n_features flops once, and adds n_landmarks · n_features flops to
    every product. If the map is not a Nyström map, or if it has far fewer features than landmarks,
    `data` are returned unchanged, with None.
    """
    parts = unwhitened(data.feature_map)
    if parts is None:
        return data, None
    values, whitening = parts
    n_landmarks, n_features = whitening.shape
    if n_landmarks > MOST_LANDMARKS * n_features:
        return data, None
    return replace(data, feature_map=values), whitening


def in_single(data: RankingData, memory_limit: float | None, n_threads: int) -> RankingData:
    """Return `data` with stored float32 features, if they fit, for a Gram matrix of low precision.

    Nyström features are made of centred kernel values by a product in float32, which shifts all of
    them by the same vector. This takes half of the time of a product in float64.
    """
    values, whitening = without_whitening(data)
    stored = with_stored_features(values, np.float32, memory_limit)
    if whitening is None:
        return stored
    if stored.feature_map is not None:
        return data
    n_features = whitening.shape[1]
    linear = [(0, n_features, "linear")]
    nodes = native_nodes(np.float32, whitening, np.zeros(n_features), None, linear)
    return replace(stored, X=nodes.map(stored.X, n_threads))


def scatter_diagonal(data: RankingData, factor: Vector) -> Vector:
    """Return ``Σ_q factor_q Σ_{i in q} v_i (h_ij − mean_qj)²`` for every feature, (n_features,).

    Values that are negative by rounding are set to 0. CSR features stay sparse.
    """
    v, index, queries = data.v, data.queries.index(), data.queries
    total = np.bincount(index, v, minlength=queries.n_queries)
    inverse = np.divide(factor, total, out=np.zeros_like(factor), where=total > 0)
    if data.feature_map is None and scipy.sparse.issparse(data.X):
        H = data.X.astype(np.float64)
        select = scipy.sparse.csr_array(
            (v, (index, np.arange(len(v)))), shape=(queries.n_queries, len(v))
        )
        squares = (factor[index] * v) @ H.power(2) - inverse @ (select @ H).power(2)
        return np.asarray(np.maximum(squares, 0.0)).ravel()
    result = np.zeros(data.n_features)
    numbers = np.arange(len(v))
    for query in np.flatnonzero(factor * total):
        rows = numbers[queries.rows(int(query))]
        origin = np.asarray(data.features(rows[:1])[0], dtype=np.float64)
        moment, square = np.zeros_like(result), np.zeros_like(result)
        for block in blocks(len(rows), 1024):
            part = rows[block]
            H = data.features(part) - origin
            moment += v[part] @ H
            square += v[part] @ (H * H)
        result += factor[query] * square - inverse[query] * moment**2
    return np.asarray(np.maximum(result, 0.0))
