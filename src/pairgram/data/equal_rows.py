"""Find rows that have the same values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.threads import resolve_n_threads

# Rows are compared in blocks of this many bytes.
COMPARED_BYTES = 16 << 20


def first_equal_rows(
    X: Any, rows: Rows, groups: Rows, others: list[Vector], n_threads: int | None
) -> Rows | None:
    """Return, for every place, the first place in its group that holds an equal row.

    The result is None if no two rows of a group are equal. Rows are compared by their values, so −0
    equals 0.

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
    X is read once, to multiply every row by a random vector. Only rows with equal products are
    compared.
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
        pending = pending[~same]  # these rows have equal marks, but differ
    return None if (first == np.arange(len(rows))).all() else first


def _marks(X: Any, n_threads: int | None) -> Vector:
    """Return the product of each row with a random vector: equal rows have equal products."""
    vector = _random_vector(X.shape[1])
    if not scipy.sparse.issparse(X):
        return _core.score_rows(X, vector, None, resolve_n_threads(n_threads))
    ordered = X if X.has_sorted_indices else X.sorted_indices()  # all sums are in one order
    return np.asarray(ordered @ vector)


@lru_cache(maxsize=16)
def _random_vector(n: int) -> Vector:
    vector = np.random.default_rng(0).uniform(0.5, 1.0, n)
    vector.flags.writeable = False
    return vector


def _equal(X: Any, a: Rows, b: Rows) -> NDArray[np.bool_]:
    """Tell for which i the rows a[i] and b[i] of X have the same values."""
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
