"""The Gram matrix of sparse rows: dense blocks where few entries are zero, sparse products else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pairgram.gram import RankingData
    from pairgram.pairs import PairSettings

__all__ = ["dense_blocks", "pair_degrees", "sparse_gram", "worth_densifying"]

DENSE_BLOCK_BYTES = 64 << 20


def worth_densifying(data: RankingData) -> bool:
    """Tell whether dense blocks of whole queries beat sparse products for CSR X.

    A sparse product takes about 40 times as long per entry of the result, and nnz² entries a row.
    """
    n_rows, n_features = data.X.shape
    longest = int(data.queries.sizes.max(initial=0))
    fits = longest * n_features * data.X.dtype.itemsize <= DENSE_BLOCK_BYTES
    return bool(fits and data.X.nnz > 0.15 * n_rows * n_features)


def dense_blocks(data: RankingData) -> Iterator[tuple[NDArray[np.int64] | slice, RankingData]]:
    """Yield (rows, their data) with dense X: all of it, or blocks of whole queries for CSR X."""
    if not scipy.sparse.issparse(data.X):
        yield slice(None), data
        return
    queries = data.queries
    order = np.arange(queries.n_rows) if queries.order is None else queries.order
    most = max(1, DENSE_BLOCK_BYTES // max(1, data.X.shape[1] * data.X.dtype.itemsize))
    first = 0
    while first < queries.n_queries:
        begin = queries.offsets[first]
        last = int(np.searchsorted(queries.offsets, begin + most, side="right")) - 1
        last = max(last, first + 1)
        rows = order[begin : queries.offsets[last]]
        if len(rows):
            block = data.take(rows)
            yield rows, replace(block, X=np.ascontiguousarray(block.X.toarray()))
        first = last


def sparse_gram(data: RankingData, settings: PairSettings) -> tuple[NDArray[np.float64], float]:
    """Return the sums over [X, y] for CSR X, and Σ W.

    Uses ``XᵀLX = Xᵀ diag(degree) X − Sᵀ Ω S`` with S = sums of v·x per query and level: sparsity
    is kept, where centring would fill every row. O(Σ nnz(row)²) for the first term.

    Raises
    ------
    MemoryError
        If the dense result would not fit into the memory at hand.
    """
    n_features = data.X.shape[1]
    needed = 3 * 8 * (n_features + 1) ** 2
    if needed > _available_memory():
        raise MemoryError(
            f"the Gram matrix of {n_features} features takes {needed / 2**30:.1f} GiB with its "
            f"temporaries, but {_available_memory() / 2**30:.1f} GiB are free: use fewer features"
        )
    y = settings.targets(data.y)
    rows = scipy.sparse.hstack([data.X.astype(np.float64), y[:, None]], format="csr")
    degree, level_of_row, omega, pair_weight = pair_degrees(data, settings)
    weighted = scipy.sparse.diags_array(np.sqrt(degree)) @ rows
    sums = np.asarray((weighted.T @ weighted).toarray(), dtype=np.float64)
    if omega is not None:
        weights = data.row_weights if data.row_weights is not None else np.ones(len(y))
        n_levels = omega.shape[0]
        select = scipy.sparse.csr_array(
            (weights, (level_of_row, np.arange(len(y)))), shape=(n_levels, len(y))
        )
        level_sums = select @ rows
        sums -= (level_sums.T @ (omega @ level_sums)).toarray()
    return (sums + sums.T) / 2, pair_weight


def pair_degrees(
    data: RankingData, settings: PairSettings
) -> tuple[NDArray[np.float64], NDArray[np.int64], Any, float]:
    """Return (degree of every row, its level, ω between levels, Σ W).

    Levels are those of (query, label) pairs, or of queries where the label does not matter; ω is
    sparse (n_levels, n_levels), query factors included; None for pointwise rows.
    """
    queries, y = data.queries, data.y
    v = data.row_weights if data.row_weights is not None else np.ones(len(y))
    query = queries.index()
    kind = settings.kind
    if kind in ("none", "kept"):
        level_query, level_of_row = np.arange(queries.n_queries), query
        level_label = np.zeros(queries.n_queries)
    else:
        labels, label_of_row = np.unique(y, return_inverse=True)
        keys, level_of_row = np.unique(query * len(labels) + label_of_row, return_inverse=True)
        level_query, level_label = keys // len(labels), labels[keys % len(labels)]
    level_weight = np.bincount(level_of_row, v, minlength=len(level_query))
    query_total = np.bincount(level_query, level_weight, minlength=queries.n_queries)
    omega = _omega_blocks(level_query, level_label, settings, y)
    degree_of_level = np.ones(len(level_query)) if kind == "none" else omega @ level_weight
    total = np.bincount(level_query, level_weight * degree_of_level, minlength=queries.n_queries)
    divisor: NDArray[Any] = np.ones(queries.n_queries)
    if settings.weighting == "documents" and kind != "none":
        divisor = query_total
    elif settings.weighting == "queries":
        divisor = query_total if kind == "none" else total / 2
    factor = np.divide(1.0, divisor, out=np.zeros_like(divisor), where=divisor > 0)
    if data.query_weights is not None:
        factor = factor * data.query_weights
    degree = v * (factor[level_query] * degree_of_level)[level_of_row]
    pair_weight = float(factor @ total)
    if kind == "none":
        return degree, level_of_row, None, pair_weight
    return degree, level_of_row, scipy.sparse.diags_array(factor[level_query]) @ omega, pair_weight


def _omega_blocks(
    level_query: NDArray[np.int64],
    level_label: NDArray[np.float64],
    settings: PairSettings,
    y: NDArray[np.float64],
) -> Any:
    """Return ω between the levels of every query, block-diagonal CSR."""
    bounds = np.searchsorted(level_query, np.arange(level_query[-1] + 2 if len(level_query) else 1))
    table = settings.levels(y)
    blocks = []
    for begin, end in pairwise(bounds):
        labels = level_label[begin:end]
        if settings.kind == "dropped":
            block = (labels[:, None] != labels).astype(float)
        elif table is not None:
            index = np.searchsorted(table[0], labels)
            block = table[1][np.ix_(index, index)]
        else:
            block = np.ones((len(labels), len(labels)))
        blocks.append(block)
    return scipy.sparse.block_diag(blocks, format="csr")


def _available_memory() -> float:
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
