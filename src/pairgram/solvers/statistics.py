"""Compute the sums over rows, dense or sparse, from which statistics are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import BLOCK_ROWS, blocks
from pairgram._support.checks import AnyArray, Flags, Rows, Vector, not_finite, require_finite
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram.data.dataset import RankingData, count_varying, heaviest_of, less_shared
from pairgram.data.pairs import Pairs
from pairgram.features.feature_map import LinearNodes, dense, linear_nodes, node_map_of, rounding_of
from pairgram.features.inputs import factors_of

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, Sparse


def worth_densifying(data: RankingData) -> bool:
    """Tell whether dense blocks of whole queries are faster than sparse products for CSR X."""
    n_rows, n_features = data.X.shape
    longest = int(data.queries.sizes.max(initial=0))
    fits = longest * n_features * data.X.dtype.itemsize <= limits.now.dense_block_bytes
    return bool(fits and data.X.nnz > limits.now.dense_share * n_rows * n_features)


@dataclass(frozen=True, eq=False)
class SparseGram:
    """The factors of ``XᵀLX = Xᵀ diag(degree) X − Sᵀ Ω S`` for CSR rows.

    S are the sums of v·x over the rows of each level, that is, of each label in each query. The
    factors stay sparse, whereas centring would fill every row. Pairs with and without ties need
    only the sums per query and per level.

    Attributes
    ----------
    products : list of (factor, A, B)
        Sparse matrices of n_columns columns. The Gram matrix is the symmetric part of
        ``Σ factor AᵀB``. The others are subtracted from the first product.
    pair_weight : float
        Σ W, the sum of all pair weights.
    has_weight : ndarray of shape (n_queries,), bool
        The queries in which W is not 0.
    """

    products: list[tuple[int, Any, Any]]
    pair_weight: float
    has_weight: Flags

    @classmethod
    def of(
        cls,
        data: RankingData,
        settings: Pairs,
        *,
        targets: Vector | None = None,
    ) -> SparseGram:
        """Make the factors for the columns of X, followed by `targets` (n_rows, n_targets)."""
        rows = data.X.astype(np.float64, copy=False)
        if targets is not None:
            rows = scipy.sparse.hstack([rows, targets], format="csr")
        v, query, n_queries = data.v, data.queries.index(), data.queries.n_queries
        if settings.kind is not None:
            rows = less_shared(rows, query, v, heavy=True)
        total: AnyArray = np.bincount(query, v, minlength=n_queries)  # V of every query
        if settings.compiled in ("none", "kept"):
            level, level_query = query, np.arange(n_queries)
        else:
            labels, label = np.unique(data.y, return_inverse=True)
            keys, level = np.unique(query * len(labels) + label, return_inverse=True)
            level_query = keys // len(labels)
        level_weight = np.bincount(level, v, minlength=len(level_query))

        omega = None
        degree: AnyArray
        if settings.compiled == "none":
            degree = np.ones(len(level_query))
        elif settings.compiled == "kept":
            degree = total[level_query]
        elif settings.compiled == "dropped":
            # Nothing is subtracted from what outweighs it: the others of the heaviest level of a
            # query are added.
            heaviest = np.zeros(len(level_query), dtype=bool)
            heaviest[heaviest_of(level_query, level_weight)] = True
            others = np.bincount(level_query[~heaviest], level_weight[~heaviest], n_queries)
            degree = np.where(heaviest, others[level_query], total[level_query] - level_weight)
        else:
            omega = _omega_blocks(level_query, keys % len(labels), settings, data.y)
            degree = omega @ level_weight
        pair_weight: AnyArray = np.bincount(level_query, level_weight * degree, minlength=n_queries)
        factor = settings.factor(total, pair_weight)
        if data.query_weights is not None:
            factor = factor * data.query_weights

        weighted = _scaled(rows, np.sqrt(v * (factor[level_query] * degree)[level]))
        products = [(1, weighted, weighted)]
        if settings.compiled == "kept":
            sums = _scaled(_sum_rows(rows, v, query, n_queries), np.sqrt(factor))
            products.append((-1, sums, sums))
        if settings.compiled == "dropped":
            sums = _sum_rows(rows, v, level, len(level_query))
            sums = _scaled(sums, np.sqrt(factor[level_query]))
            at = scipy.sparse.csr_array(
                (np.ones(len(level_query)), (level_query, np.arange(len(level_query))))
            )
            first, others = at[:, heaviest] @ sums[heaviest], at[:, ~heaviest] @ sums[~heaviest]
            products += [(-2, first, others), (-1, others, others)]
            products.append((1, sums[~heaviest], sums[~heaviest]))
        if omega is not None:
            sums = _sum_rows(rows, v, level, len(level_query))
            products.append((-1, sums, _scaled(omega @ sums, factor[level_query])))
        return cls(products, float(factor @ pair_weight), factor * pair_weight > 0)

    def diagonal(self) -> tuple[Vector, Vector]:
        """Return the diagonal and the size of what was subtracted, each (n_columns,), in O(nnz).

        For a feature that does not vary, the diagonal is rounding error of this size.
        """
        parts = [
            factor * np.asarray(A.multiply(B).sum(axis=0)).ravel() for factor, A, B in self.products
        ]
        return np.sum(parts, axis=0), parts[0]

    def matrix(self) -> Vector:
        """Return the Gram matrix, (n_columns, n_columns).

        The first product takes O(Σ nnz(row)²) time.
        """
        order = self.products[0][1].shape[1]
        sums = np.zeros((order, order))
        for factor, A, B in self.products:
            for block_A, block_B in _worth_multiplying(A, B):
                with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
                    product = block_A.T @ block_B
                sums += factor * (product.toarray() if scipy.sparse.issparse(product) else product)
        return (sums + sums.T) / 2


# Room for the Gram matrix, a sparse product of its size, and a difference.
SPARSE_GRAM = 6
# Room for the Gram matrix of dense rows, its parts, and eigenvectors.
DENSE_GRAM = 4


# What needs no Gram matrix.
NO_GRAM = (
    "take fewer features, or fit sparse rows in memory by RankSVM, or by RankRLS without "
    "a constraint, which need no such matrix"
)


def require_gram(n_features: int, n_matrices: int) -> None:
    """Raise a MemoryError if so many matrices like the Gram matrix do not fit in free memory."""
    memory.require(
        f"the Gram matrix of {n_features} features, with its temporaries,",
        n_matrices * 8.0 * (n_features + 1) ** 2,
        NO_GRAM,
    )


def _worth_multiplying(A: Sparse, B: Sparse) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of two sparse matrices: all at once, or in dense blocks if that is faster."""
    n_rows, n_columns = A.shape
    if A.nnz <= limits.now.dense_share * n_rows * n_columns:
        yield A, B
        return
    step = max(1, limits.now.dense_block_bytes // (8 * n_columns))
    with single_threaded_blas:
        for rows in blocks(n_rows, step):
            block = A[rows].toarray()
            yield block, block if A is B else B[rows].toarray()


def _scaled(rows: Matrix, factor: Vector) -> Any:
    return scipy.sparse.diags_array(factor) @ rows


def _sum_rows(rows: Matrix, v: Vector, group: Rows, n_groups: int) -> Any:
    select = scipy.sparse.csr_array(
        (v, (group, np.arange(len(v)))), shape=(n_groups, len(v)), dtype=np.float64
    )
    return select @ rows


def _omega_blocks(
    level_query: Rows,
    level_label: Rows,
    settings: Pairs,
    y: Vector,
) -> Any:
    """Return ω between the levels of every query: block-diagonal CSR with Σ levels² entries."""
    table = settings.levels(y)
    values = np.unique(y)
    omega = values[:, None] + values if table is None else table[1]
    bounds = np.flatnonzero(np.diff(level_query, prepend=-1, append=-1))
    blocks = [
        scipy.sparse.coo_array(omega[np.ix_(level_label[begin:end], level_label[begin:end])])
        for begin, end in pairwise(bounds)
    ]
    return scipy.sparse.block_diag(blocks, format="csr")


# If a subtraction leaves less than this share of a feature's sum of squares, the rest is rounding
# error.
NOISE = 1e-13
# At least one feature must have a sum of squares of this size: otherwise a grid of ridges would
# leave the range of floating-point numbers.
SMALLEST_SQUARES = 1e-297


def sums_of(
    data: RankingData, settings: Pairs, *, may_vanish: bool = False
) -> tuple[Vector, float, Rows]:
    """Return the sums over [X, y], Σ W, and the number of queries in which each feature varies.

    It is a ValueError if X holds NaN or infinity, or if all features vary by next to nothing; with
    `may_vanish` they then count as constants, which is for a part of rows that were accepted. A
    linear map is applied to the sums of the inputs instead of the rows, if that loses no digits.
    """
    varying = np.zeros(data.n_features + 1, dtype=np.int64)  # the last is of any feature
    sums, pair_weight = _sums_of(data, settings, False, varying)
    squares = np.diag(sums)[:-1]
    if (most := squares.max(initial=0.0)) < SMALLEST_SQUARES:
        data.require_pair_weight(settings, pair_weight)
        makes_nodes = node_map_of(data.feature_map, data.X.dtype) is not None
        # What nodes make of rows that differ may be equal but for rounding.
        is_equal = makes_nodes and most == 0 and factors_of(data.feature_map) is None
        if varying[-1] and not (may_vanish or is_equal):
            origin = "X" if data.feature_map is None else "what the feature map makes"
            what = f"{origin} or the weights" if data.may_vanish else origin
            raise ValueError(
                f"{what} too small: of no feature do weighted squared differences add up to "
                f"{SMALLEST_SQUARES:g} or more, {most:.1g} at most: multiply X, as StandardScaler "
                "does"
            )
        sums[: len(squares)], sums[:, : len(squares)] = 0.0, 0.0
    return sums, pair_weight, varying[:-1]


def _sums_of(
    data: RankingData, settings: Pairs, constant: bool, varying: Rows
) -> tuple[Vector, float]:
    """Return the sums over [X, y] or [X, 1, y], and Σ W, and count the queries with differences."""
    varying[:] = 0
    nodes = None if data.feature_map is None else linear_nodes(data.feature_map)
    if nodes is not None and nodes.acts_on_sums():
        # The offsets of the nodes cancel in differences within pairs.
        offsets, inputs = settings.kind is None, replace(data, feature_map=nodes.before)
        of_inputs = np.zeros(inputs.n_features + 1, dtype=np.int64)
        sums, pair_weight = _sums_of(inputs, settings, offsets, of_inputs)
        varying[:] = of_inputs[-1]  # nodes are sums of the inputs
        if offsets:
            varying[:] = np.count_nonzero(inputs.has_pairs(settings))
        return _apply(nodes, sums, offsets), pair_weight
    scales = None
    if settings.kind is not None and data.feature_map is not None:
        scales = factors_of(data.feature_map)
    if scales is not None:
        inputs = replace(data, feature_map=None)
        sums, pair_weight = _sums_of(inputs, settings, constant, varying)
        scales = np.append(scales, np.ones(len(sums) - len(scales)))
        return sums * scales[:, None] * scales, pair_weight
    node_map = data.node_map()
    if node_map is not None:
        require_finite(data.X, "X")
    sparse = scipy.sparse.issparse(data.X) and data.feature_map is None
    known = data.known_sums(varying)
    if known is not None:
        sums, pair_weight = known
    elif sparse and not worth_densifying(data):
        require_gram(data.X.shape[1], SPARSE_GRAM)
        targets = data.targets(settings, constant=constant)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
            factors = SparseGram.of(data, settings, targets=targets)
            count_varying(data, settings.kind is None, factors.has_weight, varying)
            sums, pair_weight = factors.matrix(), factors.pair_weight
            clear_noise(sums, factors.diagonal()[1])
    else:
        parts: list[tuple[Vector, float]] = []
        with single_threaded_blas:
            for block in data.blocks(settings, constant=constant):
                part = _core.gram(
                    block.problem,
                    block.X,
                    block.targets,
                    map=block.node_map,
                    varying=varying,
                    n_threads=thread_count(),
                )
                parts = [part if not parts else (parts[0][0] + part[0], parts[0][1] + part[1])]
        sums, pair_weight = parts[0]
    if node_map is not None:  # outputs that differ only by rounding do not differ
        rounding = rounding_of(data.feature_map, data.X[:256])
        with np.errstate(over="ignore"):
            size = np.append(pair_weight * rounding**2, np.zeros(1 + constant))
        clear_noise(sums, size, 1.0)
    diagonal = np.diag(sums)
    if data.X.dtype == np.float32 and _leaves_float32(data, diagonal[: data.n_features]):
        wide = replace(data, X=data.X.astype(np.float64))
        return _sums_of(wide, settings, constant, varying)
    if (column := not_finite(diagonal)) is not None:
        data.require_finite_features()
        origin = "X" if data.feature_map is None else "the feature map"
        of_target = column == len(diagonal) - 1
        what = data.target_name if of_target else f"feature {column} of {origin}"
        if data.row_weights is not None or data.query_weights is not None:
            what = f"the weights or {what}"
        raise ValueError(f"{what} too large: the weighted sum of squared differences overflows")
    return sums, float(pair_weight)


def _apply(nodes: LinearNodes, sums: Vector, offsets: bool) -> Vector:
    """Return the sums over [AᵀX + b, y] from those over [X, 1, y]; without offsets from [X, y]."""
    T = np.zeros((len(sums), nodes.weights.shape[1] + 1))
    T[: len(nodes.weights), :-1], T[-1, -1] = nodes.weights, 1.0
    if offsets:
        T[-2, :-1] = nodes.bias
    with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        return np.asarray(T.T @ (sums @ T))


def _leaves_float32(data: RankingData, diagonal: Vector) -> bool:
    """Tell whether squares overflowed in float32, or vanished in a tiny column that is not 0."""
    if data.feature_map is not None or not np.isfinite(diagonal).all():
        return not np.isfinite(diagonal).all()
    still = np.flatnonzero(diagonal == 0)
    if not len(still):
        return False
    largest = abs(data.X[:, still]).max(axis=0)
    largest = largest.toarray() if scipy.sparse.issparse(largest) else largest
    return bool(((largest > 0) & (largest < 1e-15)).any())


def clear_noise(sums: Vector, size: Vector, share: float = NOISE) -> None:
    """Set to 0 the rows and columns of features for which only rounding error is left."""
    diagonal = np.diag(sums)
    noise = np.isfinite(diagonal) & (diagonal <= share * size) & (size > 0)
    sums[noise] = 0.0
    sums[:, noise] = 0.0


def mean_of(data: RankingData, settings: Pairs) -> tuple[float, Vector, Vector]:
    """Return (total weight, first row, weighted mean of the rows minus the first row) of [X, y]."""
    v, y = data.v, data.target(settings)
    total = float(v.sum())
    share = v / total if total > 0 else v
    first = dense(data.features(slice(0, 1)))[0]
    origin = np.append(first, y[0]).astype(np.float64)
    mean = np.append(np.zeros(len(first)), share @ (y - y[0]))
    if scipy.sparse.issparse(data.X) and data.feature_map is None:
        rows = less_shared(data.X.astype(np.float64), np.zeros(len(y), dtype=np.int64), v)
        mean[:-1] = share @ rows - dense(rows[[0]])[0] * share.sum()
        return total, origin, mean
    with np.errstate(invalid="ignore"):  # NaN and infinity are found in the sums
        for part in blocks(len(y), BLOCK_ROWS):
            mean[:-1] += share[part] @ (data.features(part) - origin[:-1])
    return total, origin, mean


def degrees_of(data: RankingData, settings: Pairs) -> float:
    """Return how many rows count, less one for each list; of all rows together, none less."""
    index, n_queries = data.queries.index(), data.queries.n_queries
    counted = np.bincount(index, data.v > 0, minlength=n_queries)
    if data.query_weights is not None:
        counted = counted * (data.query_weights > 0)
    less = settings.kind is not None and not settings.joins_all_rows
    return float(np.maximum(counted - less, 0).sum())
