"""Ties of held-out scores: rows that a model without their query cannot tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram import _core
from pairgram._threads import resolve_n_threads
from pairgram.data import RankingData
from pairgram.pairs import PairSettings
from pairgram.queries import Queries
from pairgram.ridge import RidgePath, Vector

__all__ = ["PathTies", "first_equal_rows"]

Rows = NDArray[np.int64]
# Four times the largest error seen beside refits with 60 digits.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
# The statistics of float32 rows are summed in float32 within a block, and in float64 over blocks.
ROUNDING_OF_FLOAT32 = float(np.finfo(np.float32).eps) / 16
SMALLEST_SHARE = 1e-200  # of λ_max, that a ridge counts as
LARGEST_SHARE = 1e-4  # of the range, as in compiled code: scores further apart never tie
COMPARED_BYTES = 16 << 20  # of rows that are compared at once


@dataclass(frozen=True, eq=False)
class PathTies:
    """Finds rows of a query that tie in the models of a ridge path, whatever the ridge.

    A row that no other query tells from another, such as one that differs from it in columns that
    only this query has, ties with it in every model without the query. The hold-out identities give
    such rows scores that differ by rounding errors, which depend on the labels that were held out.
    The errors are at most ``64 ε (λ_max / alpha · (s + r) + r + m)``, with s the largest range of
    the targets of a query, r the range and m the largest size of the scores of this query. Where
    alpha is λ_max or more they are so small that no two scores are that close by chance: there the
    ties are found, and by models of smaller ridges they are confirmed: there scores that are
    further apart than 1e-4 of ``s + r`` never tie.

    Attributes
    ----------
    alphas : ndarray of shape (n_models,), descending
        The ridges to hold out at. The first is at least λ_max, and is added where need be.
    n_added : int
        How many of them were added: 0 or 1.
    largest : float
        λ_max.
    spread : float
        s; of pointwise settings the largest size of the targets.
    rounding : float
        64 ε; for statistics of float32 rows ε / 16 of float32.
    """

    alphas: Vector
    n_added: int
    largest: float
    spread: float
    rounding: float

    @classmethod
    def of(
        cls, data: RankingData, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> PathTies:
        """Choose the ridges at which rows of `data` are to be held out, given those wanted."""
        largest = float(ridge.eigenvalues.max(initial=0.0))
        n_added = int(not alphas[0] >= largest)
        return cls(
            np.concatenate(([largest] * n_added, alphas)),
            n_added,
            largest,
            _spread(data, settings),
            _rounding(data, ridge),
        )

    @property
    def _ratios(self) -> Vector:
        """Return ``λ_max / alpha``, (n_models,), finite for a ridge of 0 too."""
        least = max(SMALLEST_SHARE * self.largest, float(np.finfo(np.float64).tiny))
        return self.largest / np.maximum(self.alphas, least)

    def of_pairs(self, model: int) -> float:
        """Return how large the rounding error of a difference of two held-out scores may be."""
        share = self.rounding * float(self._ratios[model])
        return 2 * min(share, LARGEST_SHARE) * self.spread

    def join(self, scores: Vector, queries: Queries, n_threads: int | None) -> Vector:
        """Return the scores of the ridges that were wanted, (n_alphas, n_rows), ties joined.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_rows), float64
            Changed in place.
        queries : Queries
            Of the rows that were held out.
        n_threads : int or None
        """
        scores = np.ascontiguousarray(scores)
        _core.join_ties(
            scores,
            queries.offsets,
            queries.order,
            self._ratios,
            self.spread,
            self.rounding,
            resolve_n_threads(n_threads),
        )
        return scores[self.n_added :]


def _rounding(data: RankingData, ridge: RidgePath) -> float:
    """Return the rounding errors of held-out scores, relative to what `PathTies` says."""
    single = data.dtype == np.float32 and not ridge.is_dual
    return ROUNDING_OF_FLOAT32 if single else ROUNDING


def _spread(data: RankingData, settings: PairSettings) -> float:
    targets = settings.targets(data.y)
    if settings.pairs is None:
        return float(np.abs(targets).max(initial=0.0))
    queries = data.as_scope(settings).queries
    filled = queries.sizes > 0
    starts = queries.offsets[:-1][filled]
    grouped = queries.grouped(targets)
    highest, lowest = np.maximum.reduceat(grouped, starts), np.minimum.reduceat(grouped, starts)
    return float((highest - lowest).max(initial=0.0))


def first_equal_rows(
    X: Any, rows: Rows, groups: Rows, others: list[Vector], n_threads: int | None
) -> Rows | None:
    """Return for every place the first place of its group that holds an equal row; None: itself.

    Rows are compared by their values: −0 equals 0.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
    rows : ndarray of shape (n_places,), int64
        Numbers of rows of X.
    groups : ndarray of shape (n_places,), int64
        Rows of different groups are not compared.
    others : list of ndarray of shape (n_places,)
        Further values in which rows must be equal.
    n_threads : int or None

    Notes
    -----
    One pass over X: rows are compared only where their products with a random vector are equal.
    """
    marks = _marks(X, n_threads)[rows]
    ascending = np.sort(marks)
    if not (ascending[1:] == ascending[:-1]).any():
        return None
    first = np.arange(len(rows))
    order = np.lexsort((first, marks, *others, groups))
    alike = np.ones(max(len(rows) - 1, 0), dtype=bool)
    for values in (marks, *others, groups):
        alike &= values[order[1:]] == values[order[:-1]]
    runs = np.cumsum(np.concatenate(([0], ~alike)))  # a number for each run of rows to compare
    pending = np.flatnonzero(np.concatenate((alike, [False])) | np.concatenate(([False], alike)))
    while len(pending):
        starts = np.concatenate(([True], runs[pending[1:]] != runs[pending[:-1]]))
        leaders = pending[np.maximum.accumulate(np.where(starts, np.arange(len(pending)), 0))]
        same = _equal(X, rows[order[pending]], rows[order[leaders]])
        first[order[pending[same]]] = order[leaders[same]]
        pending = pending[~same]  # rows of one mark that differ after all
    return None if (first == np.arange(len(rows))).all() else first


def _marks(X: Any, n_threads: int | None) -> Vector:
    """Return a number for each row, equal where rows are: their products with a random vector."""
    vector = _random_vector(X.shape[1])
    if not scipy.sparse.issparse(X):
        return _core.score_rows(X, vector, None, resolve_n_threads(n_threads))
    ordered = X if X.has_sorted_indices else X.sorted_indices()  # so that sums are in one order
    return np.asarray(ordered @ vector)


@lru_cache(maxsize=16)
def _random_vector(n: int) -> Vector:
    vector = np.random.default_rng(0).uniform(0.5, 1.0, n)
    vector.flags.writeable = False
    return vector


def _equal(X: Any, a: Rows, b: Rows) -> NDArray[np.bool_]:
    """Tell which rows of X, a[i] and b[i], have the same values."""
    out = np.empty(len(a), dtype=bool)
    step = max(1, COMPARED_BYTES // (8 * max(1, X.shape[1])))
    for begin in range(0, len(a), step):
        part = slice(begin, begin + step)
        if scipy.sparse.issparse(X):
            differences = X[a[part]] != X[b[part]]
            out[part] = np.diff(differences.indptr) == 0
        else:
            out[part] = (X[a[part]] == X[b[part]]).all(axis=1)
    return out
