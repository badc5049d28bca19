"""The features of the rows of RankSVM: stored, or computed again at every use."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import blocks
from pairgram._support.checks import Vector
from pairgram.data.dataset import RankingData
from pairgram.features.feature_map import unwhitened

# Kernel values with landmarks are stored in place of features if there are at most this many
# landmarks for each feature.
MOST_LANDMARKS = 3
# Features are made in blocks of rows with this many bytes of features, of which threads share one.
MAP_BLOCK_BYTES = 64 << 20


def make_rows(data: RankingData, whitening: Vector | None = None) -> _core.RowFeatures:
    """Return the features H of `data` for products: stored, or computed again at every use.

    With a `whitening` W, the features are ``H W``. Features that are computed again come in blocks
    of rows; a query that is longer than a block is computed twice for a Hessian product.
    """
    if whitening is not None:
        return _core.whitened_features(make_rows(data), whitening)
    order, n_features = data.queries.order, data.n_features
    if data.feature_map is not None:
        at_once = max(1, limits.now.dense_block_bytes // max(1, 8 * n_features))
        return _core.made_features(len(data.y), n_features, at_once, partial(_features, data))
    if scipy.sparse.issparse(data.X):
        H = data.X if order is None else data.X[order]
        indptr, indices = H.indptr.astype(np.int64), H.indices.astype(np.int32)
        return _core.sparse_features(indptr, indices, H.data.astype(np.float64), n_features)
    return _core.dense_features(data.X, order)


def _features(data: RankingData, begin: int, end: int) -> Vector:
    """Return the features of the rows at some positions in the order of the queries."""
    order, rows = data.queries.order, slice(begin, end)
    H = data.features(rows if order is None else order[rows])
    return np.ascontiguousarray(H, dtype=np.float64)


def with_stored_features(data: RankingData, dtype: type[np.floating[Any]]) -> RankingData:
    """Return `data` with stored features in place of X and the map, if half the memory holds them.

    Parameters
    ----------
    data : RankingData
    dtype : float32 or float64
        Type of the stored features. Sums over them are in double precision in any case.
    """
    if data.feature_map is None:
        return data
    n_rows, n_features = len(data.y), data.n_features
    n_bytes = n_rows * n_features * np.dtype(dtype).itemsize
    if not memory.fits(2 * n_bytes):
        return data
    H = np.empty((n_rows, n_features), dtype)
    for rows in blocks(n_rows, max(1, MAP_BLOCK_BYTES // max(1, 8 * n_features))):
        H[rows] = data.features(rows)
    return replace(data, X=H, feature_map=None)


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


def scatter_diagonal(data: RankingData, factor: Vector) -> Vector:
    """Return ``Σ_q factor_q Σ_{i in q} v_i (h_ij − mean_qj)²`` for every feature, (n_features,).

    Values that are negative by rounding are set to 0.
    """
    v, index, queries = data.v, data.queries.index(), data.queries
    total = np.bincount(index, v, minlength=queries.n_queries)
    inverse = np.divide(factor, total, out=np.zeros_like(factor), where=total > 0)
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
    return np.maximum(result, 0.0)
