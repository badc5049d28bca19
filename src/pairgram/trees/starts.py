"""Linear first, then trees: folds in which neither has seen what is held out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from pairgram._support.arrays import take_rows
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram.data.queries import as_ids
from pairgram.model_selection.splits import QueryKFold
from pairgram.rankers.linear_ranker import LinearSearch


class Start(NamedTuple):
    """One fold: where its trees start, and a linear model that has not seen what it holds out.

    Attributes
    ----------
    train, held : ndarray of int64
        The numbers of the rows.
    scores : ndarray of shape (n_train,)
        The scores of the training rows, each by models that have not seen its query.
    held_scores : ndarray of shape (n_held,)
        The scores of the rows that are held out, by `model`.
    model : fitted search
        The linear model of the training rows. Its scores are to be added to those of the trees.
    """

    train: Rows
    held: Rows
    scores: Vector
    held_scores: Vector
    model: Any


def starts(
    search: LinearSearch, X: Any, y: ArrayLike, qid: ArrayLike, cv: QueryKFold | None = None
) -> Iterator[Start]:
    """Yield, for every fold, where trees start that are to correct a linear model.

    Scores of a model on the rows that it was fitted to are too good, so that trees that start there
    learn too little. Here every training row starts with a score by models that have not seen its
    query, exactly as `held_out_` of a search has them. They have not seen the fold either: held-out
    scores of a search over all rows would leak the labels of the fold into the trees.

    Parameters
    ----------
    search : RankRLSCV, RankSVMCV or another search of this package
        It is cloned for every fold.
    X : array-like, frame or CSR matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    qid : array-like of shape (n_rows,), any hashable type
        Query ids. The rows of a query must stand together for LightGBM's own objectives.
    cv : QueryKFold or None, default=None
        None stands for ``QueryKFold(5, shuffle=True, random_state=0)``.

    Yields
    ------
    Start

    Raises
    ------
    TypeError
        If `search` holds nothing out.
    ValueError
        If an argument is not as described, or a row has no held-out score.

    Notes
    -----
    It takes a search for every fold, one after the other.

    Examples
    --------
    >>> from pairgram import RankRLSCV, make_ranking, trees
    >>> X, y, qid = make_ranking(random_state=0)
    >>> folds = list(trees.starts(RankRLSCV(feature_map="raw+quantile"), X, y, qid))
    >>> len(folds), folds[0].scores.shape, folds[0].held_scores.shape
    (5, (1600,), (400,))
    """
    if not isinstance(search, LinearSearch):
        raise TypeError(f"search must be a search, such as RankRLSCV(), got {search!r}")
    labels = np.asarray(y)
    ids = as_ids(qid, np.size(labels))
    folds = QueryKFold(5, shuffle=True, random_state=0) if cv is None else cv
    if not isinstance(folds, QueryKFold):
        raise ArgumentError("cv", f"must be a QueryKFold, such as QueryKFold(3), got {cv!r}")
    for train, held in folds.split(X, qid=ids):
        model: Any = clone(search)
        model.fit(take_rows(X, train), labels[train], qid=ids[train])
        scores = model.held_out_
        if scores is None:
            raise TypeError(f"search must hold rows out, got {search!r}")
        if not np.isfinite(scores).all():
            text = "must hold every row out: leave cv of the search to its default, or give folds"
            raise ArgumentError("search", text)
        yield Start(train, held, scores, model.predict(take_rows(X, held)), model)
