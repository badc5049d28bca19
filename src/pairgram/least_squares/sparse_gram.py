"""Compute the Gram matrix of sparse rows by sparse products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support import memory
from pairgram._support.blocks import blocks
from pairgram._support.threads import single_threaded_blas
from pairgram.problem.data import DENSE_BLOCK_BYTES, RankingData
from pairgram.queries_and_pairs.pair_weights import PairSettings

__all__ = ["SparseGram", "count_varying", "sparse_gram", "worth_densifying"]

# A sparse product needs nnz² multiplications for a row, each about 40 times slower than those of a
# dense product. Above this share of entries other than 0, dense blocks are faster.
DENSE_SHARE = 0.15


def worth_densifying(data: RankingData) -> bool:
    """Tell whether dense blocks of whole queries are faster than sparse products for CSR X."""
    n_rows, n_features = data.X.shape
    longest = int(data.queries.sizes.max(initial=0))
    fits = longest * n_features * data.X.dtype.itemsize <= DENSE_BLOCK_BYTES
    return bool(fits and data.X.nnz > DENSE_SHARE * n_rows * n_features)


@dataclass(frozen=True, eq=False)
class SparseGram:
    """The factors of ``XᵀLX = Xᵀ diag(degree) X − Sᵀ Ω S`` for CSR rows.

    S are the sums of v·x over the rows of each level, that is, of each label in each query. The
    factors stay sparse, whereas centring would fill every row. Kept and dropped pairs need only
    the sums per query and per level.

    Attributes
    ----------
    products : list of (sign, A, B)
        Sparse matrices of n_columns columns. The Gram matrix is ``Σ sign AᵀB``. The others are
        subtracted from the first product.
    pair_weight : float
        Σ W, the sum of all pair weights.
    has_weight : ndarray of shape (n_queries,), bool
        The queries in which W is not 0.
    """

    products: list[tuple[int, Any, Any]]
    pair_weight: float
    has_weight: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        data: RankingData,
        settings: PairSettings,
        *,
        targets: NDArray[np.float64] | None = None,
    ) -> SparseGram:
        """Make the factors for the columns of X, followed by `targets` (n_rows, n_targets)."""
        rows = data.X.astype(np.float64, copy=False)
        if targets is not None:
            rows = scipy.sparse.hstack([rows, targets], format="csr")
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
        pair_weight: NDArray[Any] = np.bincount(
            level_query, level_weight * degree, minlength=n_queries
        )
        factor = _query_factor(settings, total, pair_weight)
        if data.query_weights is not None:
            factor = factor * data.query_weights

        weighted = _scaled(rows, np.sqrt(v * (factor[level_query] * degree)[level]))
        products = [(1, weighted, weighted)]
        if settings.kind in ("kept", "dropped"):
            sums = _scaled(_sum_rows(rows, v, query, n_queries), np.sqrt(factor))
            products.append((-1, sums, sums))
        if settings.kind == "dropped":
            sums = _sum_rows(rows, v, level, len(level_query))
            sums = _scaled(sums, np.sqrt(factor[level_query]))
            products.append((1, sums, sums))
        if omega is not None:
            sums = _sum_rows(rows, v, level, len(level_query))
            products.append((-1, sums, _scaled(omega @ sums, factor[level_query])))
        return cls(products, float(factor @ pair_weight), factor * pair_weight > 0)

    def diagonal(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the diagonal and the size of what was subtracted, each (n_columns,), in O(nnz).

        For a feature that does not vary, the diagonal is rounding error of this size.
        """
        parts = [
            sign * np.asarray(A.multiply(B).sum(axis=0)).ravel() for sign, A, B in self.products
        ]
        return np.sum(parts, axis=0), parts[0]

    def matrix(self) -> NDArray[np.float64]:
        """Return the Gram matrix, (n_columns, n_columns).

        The first product takes O(Σ nnz(row)²) time.
        """
        order = self.products[0][1].shape[1]
        sums = np.zeros((order, order))
        for sign, A, B in self.products:
            for block_A, block_B in _worth_multiplying(A, B):
                product = block_A.T @ block_B
                sums += sign * (product.toarray() if scipy.sparse.issparse(product) else product)
        return (sums + sums.T) / 2


def sparse_gram(
    data: RankingData,
    settings: PairSettings,
    *,
    constant: bool = False,
    varying: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Return (the sums over [X, y] or [X, 1, y], Σ W, the size of what was subtracted) for CSR X.

    The numbers of queries in which features vary are added to `varying`, (n_features + 1,).

    Raises
    ------
    MemoryError
        If the Gram matrix and its temporaries would not fit into free memory.
    """
    n_features = data.X.shape[1]
    memory.require(  # room for the result, a sparse product of its size, and a difference
        f"the Gram matrix of {n_features} features, with its temporaries,",
        6 * 8.0 * (n_features + 1) ** 2,
        "use fewer features",
    )
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        factors = SparseGram.of(data, settings, targets=data.targets(settings, constant=constant))
    if varying is not None:
        count_varying(data, settings.pairs is None, factors.has_weight, varying)
    return factors.matrix(), factors.pair_weight, factors.diagonal()[1]


def count_varying(
    data: RankingData, pointwise: bool, counted: NDArray[np.bool_], varying: NDArray[np.int64]
) -> None:
    """Add the numbers of queries in which features of CSR rows vary to `varying`.

    It has shape (n_features + 1,); the last entry is for any feature. Queries that are not
    `counted` do not count.
    """
    X = data.X
    if not X.has_canonical_format:  # duplicate entries are added up
        X = X.copy()
        X.sum_duplicates()
    dtype: Any = np.int32 if X.indices.dtype == X.indptr.dtype == np.int32 else np.int64
    _core.count_varying(
        np.ascontiguousarray(X.indptr, dtype),
        np.ascontiguousarray(X.indices, dtype),
        np.ascontiguousarray(X.data, np.float64),
        varying,
        data.queries.offsets,
        order=data.queries.order,
        row_weights=data.row_weights,
        counted=counted,
        pointwise=pointwise,
    )


def _worth_multiplying(A: Any, B: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of two sparse matrices: all at once, or in dense blocks if that is faster."""
    n_rows, n_columns = A.shape
    if A.nnz <= DENSE_SHARE * n_rows * n_columns:
        yield A, B
        return
    step = max(1, DENSE_BLOCK_BYTES // (8 * n_columns))
    with single_threaded_blas():
        for rows in blocks(n_rows, step):
            block = A[rows].toarray()
            yield block, block if A is B else B[rows].toarray()


def _scaled(rows: Any, factor: NDArray[np.float64]) -> Any:
    return scipy.sparse.diags_array(factor) @ rows


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


def _omega_blocks(
    level_query: NDArray[np.int64],
    level_label: NDArray[np.int64],
    settings: PairSettings,
    y: NDArray[np.float64],
) -> Any:
    """Return ω between the levels of every query: block-diagonal CSR with Σ levels² entries."""
    table = settings.levels(y)
    assert table is not None
    bounds = np.flatnonzero(np.diff(level_query, prepend=-1, append=-1))
    blocks = [
        scipy.sparse.coo_array(table[1][np.ix_(level_label[begin:end], level_label[begin:end])])
        for begin, end in pairwise(bounds)
    ]
    return scipy.sparse.block_diag(blocks, format="csr")
