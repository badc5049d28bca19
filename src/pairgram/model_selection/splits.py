"""Splitting data by queries."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRequest

from pairgram._support.checks import called_by, warn_caller
from pairgram.preferences.queries import CROSS_VALIDATION, MissingQueryWarning, Queries

__all__ = ["QueryKFold"]


class QueryKFold:
    """K-fold cross-validation that keeps the rows of a query together.

    Parameters
    ----------
    n_splits : int ≥ 2, default=5
    shuffle : bool, default=False
        Whether to draw the order of the queries; else it is that of their first rows.
    random_state : int, RandomState, Generator or None, default=None
        Of the shuffle.

    Notes
    -----
    Fold sizes, in queries, differ by at most one. Query ids come in as ``qid``, which
    scikit-learn's metadata routing passes on, or as ``groups``. The estimator needs the ids too,
    and only routed ``qid`` reaches it: with ``groups``, scikit-learn's cross-validation fits all
    rows as one query, of which a `MissingQueryWarning` warns there.

    An integer ``cv`` of scikit-learn's functions splits rows and cuts queries apart: give them
    ``QueryKFold(5)`` in place of 5.

    Examples
    --------
    >>> from pairgram import QueryKFold
    >>> splits = QueryKFold(2).split([[1], [2], [3]], qid=["a", "b", "a"])
    >>> [(train.tolist(), test.tolist()) for train, test in splits]
    [([1], [0, 2]), ([0, 2], [1])]
    """

    def __init__(
        self, n_splits: Any = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, Integral) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer >= 2, got {n_splits!r}")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, qid: Any = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield (training rows, test rows) of every fold.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
        y : ignored
        groups, qid : array-like of shape (n_rows,)
            Query ids, by either name.

        Raises
        ------
        ValueError
            If there are no ids, or fewer queries than folds.

        Warns
        -----
        MissingQueryWarning
            Where scikit-learn's cross-validation passes ``groups``, which the estimator does not
            see.
        """
        if (groups is None) == (qid is None):
            raise ValueError(
                "QueryKFold needs the query ids as qid or as groups, one of them; in "
                "cross-validation the estimator needs them too: call "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid, as "
                "params={'qid': qid} or to the search's fit, which hands it to both"
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if qid is None and called_by(CROSS_VALIDATION):
            warn_caller(
                "QueryKFold.split got groups, which the estimator does not see: without qid, "
                "cross-validation fits all rows as one query. Call "
                "sklearn.set_config(enable_metadata_routing=True) and pass params={'qid': qid}, or "
                "qid=qid to the search's fit",
                MissingQueryWarning,
            )
        queries = Queries.make(n_rows, qid=qid if groups is None else groups)
        if queries.n_queries < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} needs as many queries, got {queries.n_queries}"
            )
        numbers = np.arange(queries.n_queries)
        if self.shuffle:
            if isinstance(self.random_state, np.random.Generator):
                self.random_state.shuffle(numbers)
            else:
                check_random_state(self.random_state).shuffle(numbers)
        fold_of_query = np.empty(queries.n_queries, dtype=np.int64)
        for fold, members in enumerate(np.array_split(numbers, self.n_splits)):
            fold_of_query[members] = fold
        fold_of_row = fold_of_query[queries.index()]
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn's metadata routing hands to `split`: qid."""
        request = MetadataRequest(owner=self)
        request.split.add_request(param="qid", alias=True)
        return request

    def __repr__(self) -> str:
        """Return the call that makes this splitter."""
        return (
            f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, "
            f"random_state={self.random_state!r})"
        )
