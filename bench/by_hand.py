"""The same work written by hand with NumPy and SciPy, as fast as they go: what pairgram must beat.

All but `statistics_of_any_lengths` rely on queries of equal length whose rows stand together, which
pairgram does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import blas

Array = NDArray[Any]
Statistics = tuple[Array, Array]  # G (upper triangle, Fortran order) and g

BLOCK_BYTES = 2**20


def statistics_at_once(X: Array, y: Array, length: int) -> Statistics:
    """Centre all rows into one copy of X, then one syrk."""
    centred, labels = _centred(X, y, length)
    return blas.dsyrk(length, centred.T), length * (labels @ centred)


def statistics_by_blocks(X: Array, y: Array, length: int) -> Statistics:
    """Centre and multiply whole queries of about 1 MiB at a time, while they are in the cache."""
    syrk = blas.dsyrk if X.dtype == np.float64 else blas.ssyrk
    step = length * max(1, BLOCK_BYTES // (X[0].nbytes * length))
    n_features = X.shape[1]
    G = np.zeros((n_features, n_features), dtype=X.dtype, order="F")
    g = np.zeros(n_features)
    for begin in range(0, len(X), step):
        centred, labels = _centred(X[begin : begin + step], y[begin : begin + step], length)
        G = syrk(length, centred.T, 1.0, G, overwrite_c=True)
        g += length * (labels.astype(X.dtype, copy=False) @ centred)
    return G, g


def statistics_uncentred(X: Array, y: Array, length: int) -> Statistics:
    """The textbook's ``XᵀDX − (PᵀX)ᵀ(PᵀX)``: no copy, but digits cancel if rows share an offset."""
    sums = X.reshape(-1, length, X.shape[1]).sum(axis=1)
    label_sums = y.reshape(-1, length).sum(axis=1)
    G = blas.dsyrk(length, X.T)
    G = blas.dsyrk(-1.0, sums.T, 1.0, G, overwrite_c=True)
    return G, length * (y @ X) - label_sums @ sums


def statistics_of_any_lengths(X: Array, y: Array, qid: Array) -> Statistics:
    """For queries of any lengths: reduceat means, every row scaled by the root of its query's."""
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    sizes = np.diff(np.append(starts, len(qid)))
    root = np.sqrt(np.repeat(sizes, sizes))
    means = np.add.reduceat(X, starts, axis=0) / sizes[:, None]
    centred = X - np.repeat(means, sizes, axis=0)
    centred *= root[:, None]
    labels = root * (y - np.repeat(np.add.reduceat(y, starts) / sizes, sizes))
    return blas.dsyrk(1.0, centred.T), labels @ centred


def _centred(X: Array, y: Array, length: int) -> tuple[Array, Array]:
    rows = X.reshape(-1, length, X.shape[1])
    labels = y.reshape(-1, length)
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred.reshape(X.shape), (labels - labels.mean(axis=1, keepdims=True)).ravel()


def path(statistics: Statistics, alphas: Array) -> Array:
    """Return the weights for every ridge, (n_alphas, n_features), from one decomposition."""
    G, g = statistics
    eigenvalues, vectors = scipy.linalg.eigh(
        G, lower=False, driver="evd", overwrite_a=True, check_finite=False
    )
    return (g @ vectors / (eigenvalues + alphas[:, None])) @ vectors.T


def one_ridge(statistics: Statistics, alpha: float) -> Array:
    """Return the weights for one ridge, (n_features,), by Cholesky."""
    G, g = statistics
    G[np.diag_indices_from(G)] += alpha
    root = scipy.linalg.cho_factor(G, lower=False, overwrite_a=True, check_finite=False)
    return scipy.linalg.cho_solve(root, g, check_finite=False)


def held_out_scores(
    X: Array, y: Array, length: int, total: Statistics, queries: Iterable[int], alphas: Array
) -> Iterator[Array]:
    """Yield the scores (n_alphas, length) of each query by the models of all other queries.

    Its rows are subtracted from the total; then a decomposition for each query.
    """
    for query in queries:
        rows = slice(query * length, (query + 1) * length)
        G, g = statistics_at_once(X[rows], y[rows], length)
        yield path((total[0] - G, total[1] - g), alphas) @ X[rows].T


def dense_gram(X: Array, y: Array, length: int, pairs: str) -> Array:
    """Return XᵀLX by the Laplacian matrix of every query: slow, but plainly right."""
    rows = X.reshape(-1, length, X.shape[1])
    a, b = y.reshape(-1, length, 1), y.reshape(-1, 1, length)
    weights = {
        "with_ties": np.ones_like(a * b),
        "without_ties": (a != b).astype(np.float64),
        "gain_difference": np.abs(np.exp2(a) - np.exp2(b)),
    }[pairs]
    laplacian = -weights
    diagonal = np.arange(length)
    laplacian[:, diagonal, diagonal] += weights.sum(axis=2)
    return X.T @ (laplacian @ rows).reshape(X.shape)


def ndcg_and_map(y: Array, score: Array, length: int, k: int = 10) -> tuple[float, float]:
    """Return mean NDCG@k (gain 2^y − 1) and mean MAP: one sort serves both."""
    labels = y.reshape(-1, length)
    order = np.argsort(-score.reshape(-1, length), axis=1)
    ranked = np.take_along_axis(labels, order, axis=1)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ndcg = _ratio((np.exp2(ranked[:, :k]) - 1) @ discounts, _ideal(labels, discounts))
    relevant = ranked >= 1
    counts = np.cumsum(relevant, axis=1)
    precision = np.where(relevant, counts / np.arange(1, length + 1), 0.0)
    return ndcg.mean(), _ratio(precision.sum(axis=1), counts[:, -1]).mean()


def ndcg_of_many(y: Array, scores: Array, length: int, k: int = 10) -> Array:
    """Return mean NDCG@k of every score vector: the top k alone are sorted."""
    labels = y.reshape(-1, length)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = _ideal(labels, discounts)
    means = np.empty(len(scores))
    for i, score in enumerate(scores):
        lowered = -score.reshape(-1, length)
        top = np.argpartition(lowered, k, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(lowered, top, axis=1), axis=1)
        top = np.take_along_axis(top, order, axis=1)
        gains = np.exp2(np.take_along_axis(labels, top, axis=1)) - 1
        means[i] = _ratio(gains @ discounts, ideal).mean()
    return means


def _ideal(labels: Array, discounts: Array) -> Array:
    k = len(discounts)
    best = -np.sort(np.partition(-labels, k, axis=1)[:, :k], axis=1)
    return (np.exp2(best) - 1) @ discounts


def _ratio(value: Array, highest: Array) -> Array:
    return np.divide(value, highest, out=np.zeros_like(value), where=highest > 0)
