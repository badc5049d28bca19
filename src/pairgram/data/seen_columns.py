"""`SeenColumns`: what statistics remember of the columns of rows, for `drift`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import min_max_axis

import pairgram._core as _core
from pairgram._support.checks import Vector, require_finite
from pairgram._support.machine import resolve_n_threads
from pairgram.data.dataset import RankingData, count_varying, less_shared
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries

# The pivot of a column is the middle one of so many of its first values.
_FIRST = 63


@dataclass(frozen=True, eq=False)
class SeenColumns:
    """Sums over queries of every column, and the range of its values.

    N is the weight of the rows of a query that have a value, A the weight of all its rows, and S
    the sum of ``w (x − pivot)`` over those with a value. The weight w of a row is multiplied by
    that of its query.

    Attributes
    ----------
    pivot : ndarray of shape (n_columns,), float64
        A value of the column, so that a large offset costs no digits. It is 0 where sparse rows
        lack an entry.
    sums : ndarray of shape (9, n_columns), float64
        Σ N, Σ S, Σ w (x − pivot)², Σ N², Σ N S, Σ S², Σ N A, Σ A² and Σ A over queries. They are
        not finite if squares overflow.
    range : ndarray of shape (2, n_columns), float64
        The least and the greatest value ever seen; infinity and −infinity without values.
    queries : ndarray of shape (4, n_columns), int64
        How many queries were ever seen, with a value, with a missing value, and with values that
        differ. Subtraction leaves these and the range as they are.
    """

    pivot: Vector
    sums: Vector
    range: Vector
    queries: NDArray[np.int64]

    @classmethod
    def of(cls, data: RankingData, n_threads: int | None, *, by_rows: bool = False) -> SeenColumns:
        """Return what is seen of some rows; dense ones may hold NaN, which are missing values.

        With `by_rows`, every row is a query of its own.
        """
        X, weights = data.X, data.row_weights
        if data.query_weights is not None:
            weights = data.v * data.query_weight_of_rows
        offsets, order = data.queries.offsets, data.queries.order
        if by_rows:
            offsets, order = np.arange(len(data.y) + 1), None
        if scipy.sparse.issparse(X):
            return cls._of_sparse(X, weights, data, by_rows)
        if data.watch is not None and data.watch.is_filled and not by_rows:
            return cls(data.watch.pivot, *data.watch.found)
        pivot = _pivot_of(X)
        found = _core.seen_columns(X, pivot, offsets, order, weights, resolve_n_threads(n_threads))
        return cls(pivot, *found)

    @classmethod
    def of_settings(
        cls, data: RankingData, settings: PairSettings, n_threads: int | None
    ) -> SeenColumns:
        """Return what is seen of rows. Where no query is told, rows that need none are alone."""
        without_queries = data.queries.ids is None and data.queries.n_queries == 1
        needs_none = settings.joins_all_rows or settings.pairs is None
        needs_none |= data.preferences is not None
        return cls.of(data, n_threads, by_rows=without_queries and needs_none)

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # `arrays` and `drift` look at what overflowed
    def _of_sparse(
        cls, X: Any, weights: Vector | None, data: RankingData, by_rows: bool
    ) -> SeenColumns:
        require_finite(X, "X")
        varying = np.zeros(X.shape[1] + 1, dtype=np.int64)
        if not by_rows:
            count_varying(data, False, np.ones(data.queries.n_queries, bool), varying)
        ones, v = np.ones(X.shape[1]), np.ones(X.shape[0]) if weights is None else weights
        counted = v > 0
        index = np.arange(len(v)) if by_rows else data.queries.index()
        index, v = index[counted], v[counted]
        X = scipy.sparse.csr_array(X[counted], dtype=np.float64)
        X.sum_duplicates()
        ends = min_max_axis(X, axis=0) if len(v) else (np.inf * ones, -np.inf * ones)
        pivot, X = X[:1].sum(axis=0), less_shared(X, np.zeros(len(v), dtype=np.int64), v)
        pivot = pivot - X[:1].sum(axis=0)
        places = (v, (index, np.arange(len(v))))
        S = scipy.sparse.csr_array(places, shape=(int(index.max(initial=0)) + 1, len(v))) @ X
        A = np.bincount(index, v, minlength=S.shape[0])
        n_queries = np.count_nonzero(A)
        NN, NS, SS = A @ A * ones, A @ S, S.power(2).sum(axis=0)
        sums = [v.sum() * ones, S.sum(axis=0), v @ X.power(2), NN, NS, SS, NN, NN, v.sum() * ones]
        queries = np.outer([n_queries, n_queries, 0, 0], ones).astype(np.int64)
        queries[3] = varying[:-1]
        return cls(pivot, np.array(sums), np.array(ends), queries)

    def from_pivot(self, pivot: Vector) -> SeenColumns:
        """Return the same with sums of differences from another pivot."""
        N, S, squares, NN, NS, SS, *others = self.sums
        with np.errstate(over="ignore", invalid="ignore"):
            d = self.pivot - pivot
            squares = np.maximum(squares + d * (2 * S + d * N), 0.0)  # NaN stays
            shifted = [S + d * N, squares]
            by_query = [NN, NS + d * NN, np.maximum(SS + d * (2 * NS + d * NN), 0.0)]
        return replace(self, pivot=pivot, sums=np.array([N, *shifted, *by_query, *others]))

    def joined(self, other: SeenColumns) -> SeenColumns:
        """Return what is seen of the queries of both."""
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.sums + other.from_pivot(self.pivot).sums
        low, high = np.minimum(self.range, other.range)[0], np.maximum(self.range, other.range)[1]
        return SeenColumns(self.pivot, sums, np.array([low, high]), self.queries + other.queries)

    def less(self, other: SeenColumns) -> SeenColumns:
        """Return the sums without those of another; what was ever seen stays."""
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.sums - other.from_pivot(self.pivot).sums
        signed = sums[[1, 4]]
        sums = np.maximum(sums, 0.0)  # NaN stays
        sums[[1, 4]] = signed
        return replace(self, sums=sums)

    def times(self, factor: float) -> SeenColumns:
        """Return what is seen if every query counts `factor` times; with 0, nothing is."""
        if factor == 0:
            nothing = np.array([[np.inf], [-np.inf]]) * np.ones_like(self.pivot)
            none = np.zeros_like(self.queries)
            return SeenColumns(self.pivot, np.zeros_like(self.sums), nothing, none)
        powers = np.array([1, 1, 1, 2, 2, 2, 2, 2, 1])
        with np.errstate(over="ignore", under="ignore"):
            return replace(self, sums=self.sums * (factor**powers)[:, None])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a file, which are finite; none if the sums are not."""
        if not np.isfinite(self.sums).all():
            return {}
        return {
            "seen_pivot": self.pivot,
            "seen_sums": self.sums,
            "seen_range": np.where(self.queries[1] > 0, self.range, 0.0),
            "seen_queries": self.queries,
        }

    @classmethod
    def of_file(cls, arrays: dict[str, NDArray[Any]]) -> SeenColumns | None:
        """Return what `arrays` gave; None if a file does not hold it, as those before 0.3."""
        if "seen_sums" not in arrays:
            return None
        queries = arrays["seen_queries"]
        nothing = np.array([[np.inf], [-np.inf]])
        range_ = np.where(queries[1] > 0, arrays["seen_range"], nothing)
        return cls(arrays["seen_pivot"], arrays["seen_sums"], range_, queries)

    @property
    def mean_from_pivot(self) -> Vector:
        """The weighted means of values less the pivot, (n_columns,); NaN without values."""
        return _share(self.sums[1], self.sums[0])

    @property
    def variance(self) -> Vector:
        """The weighted variances of the values, (n_columns,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.maximum(_share(self.sums[2], self.sums[0]) - self.mean_from_pivot**2, 0.0)

    @property
    def missing(self) -> Vector:
        """The shares of rows without a value, (n_columns,)."""
        return np.maximum(0.0, 1 - _share(self.sums[0], self.sums[8]))


class ColumnWatch:
    """Measures columns while a Gram matrix is made of their rows, which are then in the cache.

    Attributes
    ----------
    pivot : ndarray of shape (n_columns,), float64
    found : tuple of ndarray
        The sums, the range and the queries of `SeenColumns`.
    is_filled : bool
        Whether they were asked for, and so written.
    """

    def __init__(self, data: RankingData) -> None:
        d = data.X.shape[1]
        self.pivot, self.is_filled = _pivot_of(data.X), False
        self.found = np.empty((9, d)), np.empty((2, d)), np.empty((4, d), np.int64)
        self._queries, self._weights = data.queries, data.row_weights
        if data.query_weights is not None:
            self._weights = data.v * data.query_weight_of_rows

    @classmethod
    def on(cls, data: RankingData) -> RankingData:
        """Return the data with a watch on its columns, if it is dense."""
        return data if scipy.sparse.issparse(data.X) else replace(data, watch=cls(data))

    def arrays_of(self, queries: Queries) -> tuple[Any, ...] | None:
        """Return what compiled code fills; None where the rows form other queries."""
        if queries is not self._queries:
            return None
        self.is_filled = True
        return self.pivot, self._weights, *self.found


def _pivot_of(X: Any) -> Vector:
    """Return the middle one of the first values of every column, or 0 if it is not finite."""
    first = np.sort(X[:_FIRST], axis=0).astype(np.float64)  # NaN stands last
    if not len(first):
        return np.zeros(X.shape[1])
    known = np.count_nonzero(~np.isnan(first), axis=0)
    middle = first[np.maximum(known - 1, 0) // 2, np.arange(X.shape[1])]
    return np.where(np.isfinite(middle), middle, 0.0)


def _share(part: Vector, whole: Vector) -> Vector:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.asarray(part / whole)
