"""The Gram matrix of sparse rows by sparse products."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._memory import available_memory
from pairgram.data import DENSE_BLOCK_BYTES, RankingData
from pairgram.pairs import PairSettings

__all__ = ["sparse_gram", "worth_densifying"]


def worth_densifying(data: RankingData) -> bool:
    """Tell whether dense blocks of whole queries beat sparse products for CSR X.

    A sparse product takes about 40 times as long per entry of the result, and nnz² entries a row.
    """
    n_rows, n_features = data.X.shape
    longest = int(data.queries.sizes.max(initial=0))
    fits = longest * n_features * data.X.dtype.itemsize <= DENSE_BLOCK_BYTES
    return bool(fits and data.X.nnz > 0.15 * n_rows * n_features)


def sparse_gram(
    data: RankingData, settings: PairSettings, *, constant: bool = False
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Return (the sums over [X, y] or [X, 1, y] for CSR X, Σ W, the size of what was subtracted).

    Uses ``XᵀLX = Xᵀ diag(degree) X − Sᵀ Ω S`` with S = sums of v·x per level: sparsity is kept,
    where centring would fill every row. Kept and dropped pairs need sums per query and level alone.
    O(Σ nnz(row)²) for the first term. What is left of a feature that does not vary is rounding
    error of the size (n_features + 1,) that is returned.

    Raises
    ------
    MemoryError
        If the dense result would not fit into the memory at hand.
    """
    n_features = data.X.shape[1]
    needed = 6 * 8 * (n_features + 1) ** 2  # the result, a sparse product of its size, a difference
    if needed > available_memory():
        raise MemoryError(
            f"the Gram matrix of {n_features} features takes {needed / 2**30:.1f} GiB with its "
            f"temporaries, but {available_memory() / 2**30:.1f} GiB are free: use fewer features"
        )
    targets = data.targets(settings, constant=constant)
    rows = scipy.sparse.hstack([data.X.astype(np.float64), targets], format="csr")
    v, query, n_queries = data.v, data.queries.index(), data.queries.n_queries
    total: NDArray[Any] = np.bincount(query, v, minlength=n_queries)  # V of every query
    if settings.kind in ("none", "kept"):
        level, level_query = query, np.arange(n_queries)
    else:
        labels, label = np.unique(data.y, return_inverse=True)
        keys, level = np.unique(query * len(labels) + label, return_inverse=True)
        level_query = keys // len(labels)
    level_weight = np.bincount(level, v, minlength=len(level_query))

    omega = None
    degree: NDArray[Any]
    if settings.kind == "none":
        degree = np.ones(len(level_query))
    elif settings.kind == "kept":
        degree = total[level_query]
    elif settings.kind == "dropped":
        degree = total[level_query] - level_weight
        degree[np.bincount(level_query, minlength=n_queries)[level_query] == 1] = 0.0
    else:
        omega = _omega_blocks(level_query, keys % len(labels), settings, data.y)
        degree = omega @ level_weight
    pair_weight: NDArray[Any] = np.bincount(level_query, level_weight * degree, minlength=n_queries)
    factor = _query_factor(settings, total, pair_weight)
    if data.query_weights is not None:
        factor = factor * data.query_weights

    weighted = scipy.sparse.diags_array(np.sqrt(v * (factor[level_query] * degree)[level])) @ rows
    sums = np.asarray((weighted.T @ weighted).toarray(), dtype=np.float64)
    size = np.diag(sums).copy()
    if settings.kind in ("kept", "dropped"):
        sums -= _scatter_of_sums(rows, v, query, factor)
    if settings.kind == "dropped":
        sums += _scatter_of_sums(rows, v, level, factor[level_query])
    if omega is not None:
        level_sums = _sum_rows(rows, v, level, len(level_query))
        joined = scipy.sparse.diags_array(factor[level_query]) @ (omega @ level_sums)
        sums -= (level_sums.T @ joined).toarray()
    return (sums + sums.T) / 2, float(factor @ pair_weight), size


def _query_factor(
    settings: PairSettings, total: NDArray[np.float64], pair_weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    divisor = np.ones_like(total)
    if settings.weighting == "documents" and settings.kind != "none":
        divisor = total
    elif settings.weighting == "queries":
        divisor = total if settings.kind == "none" else pair_weight / 2
    return np.divide(1.0, divisor, out=np.zeros_like(divisor), where=divisor > 0)


def _sum_rows(rows: Any, v: NDArray[np.float64], group: NDArray[np.int64], n_groups: int) -> Any:
    select = scipy.sparse.csr_array(
        (v, (group, np.arange(len(v)))), shape=(n_groups, len(v)), dtype=np.float64
    )
    return select @ rows


def _scatter_of_sums(
    rows: Any, v: NDArray[np.float64], group: NDArray[np.int64], factor: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ_g factor_g s_g s_gᵀ with s_g = Σ v·row over the rows of group g."""
    sums = scipy.sparse.diags_array(np.sqrt(factor)) @ _sum_rows(rows, v, group, len(factor))
    return np.asarray((sums.T @ sums).toarray(), dtype=np.float64)


def _omega_blocks(
    level_query: NDArray[np.int64],
    level_label: NDArray[np.int64],
    settings: PairSettings,
    y: NDArray[np.float64],
) -> Any:
    """Return ω between the levels of every query, block-diagonal CSR of Σ levels² entries."""
    table = settings.levels(y)
    assert table is not None
    bounds = np.flatnonzero(np.diff(level_query, prepend=-1, append=-1))
    blocks = [
        table[1][np.ix_(level_label[begin:end], level_label[begin:end])]
        for begin, end in pairwise(bounds)
    ]
    return scipy.sparse.block_diag(blocks, format="csr")
