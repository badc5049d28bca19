"""`query_permutation_importance`: how much a metric falls when a column is shuffled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_random_state

import pairgram
from pairgram.data.queries import Queries


def query_permutation_importance(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    qid: ArrayLike,
    scoring: Any = "ndcg@10",
    n_repeats: int = 5,
    across: bool = False,
    random_state: Any = None,
    n_threads: int | None = None,
) -> Bunch:
    """Measure how much a metric falls when the values of one column are shuffled.

    Values are shuffled within every query, so that a column that only tells queries apart, which
    cannot change a ranking, has the importance 0. scikit-learn's `permutation_importance` shuffles
    over all rows, and cannot hand query ids to a metric.

    Parameters
    ----------
    model : fitted model with `predict`
        A ranker of this package, or any other. A linear ranker needs no prediction for each
        shuffled column.
    X : array-like of shape (n_rows, n_features), frame of pandas or polars, or pyarrow table
        Rows that the model was not fitted to. The model gets frames as frames, with their names.
    y : array-like of shape (n_rows,)
        Relevance labels.
    qid : array-like of shape (n_rows,)
        Query ids, of any hashable type.
    scoring : str or Metric, default="ndcg@10"
        As in `evaluate`.
    n_repeats : int, default=5
        How often each column is shuffled.
    across : bool, default=False
        Whether values are shuffled over all rows, in place of within queries.
    random_state : int, RandomState or None, default=None
    n_threads : int or None, default=None

    Returns
    -------
    Bunch
        As of scikit-learn: ``importances`` of shape (n_features, n_repeats), the falls of the
        metric (rises, for a metric of which less is better); ``importances_mean`` and
        ``importances_std`` of shape (n_features,). Besides, ``score``, the metric of the rows as
        they are, and ``feature_names``, a list of str, or None for arrays.

    Raises
    ------
    ValueError
        If an argument is not as described, if the metric does not take the labels, or if the model
        does not take X, as when columns stand in another order than in `fit`.

    References
    ----------
    Breiman. Random forests. Machine Learning 45, 2001. §10.

    Examples
    --------
    >>> from pairgram import RankRLS, make_ranking, query_permutation_importance
    >>> X, y, qid = make_ranking(n_features=5, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> found = query_permutation_importance(model, X, y, qid=qid, random_state=0)
    >>> found.importances.shape
    (5, 5)
    """
    if not isinstance(n_repeats, int) or isinstance(n_repeats, bool) or n_repeats < 1:
        raise ValueError(f"n_repeats must be an integer >= 1, got {n_repeats!r}")
    if qid is None:
        raise ValueError("qid must be the query ids of the rows, got None")
    metric = pairgram.get_metric(scoring) if isinstance(scoring, str) else scoring
    sign = 1.0 if metric.greater_is_better else -1.0
    rng = check_random_state(random_state)
    # `columns` of pyarrow are no names.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    X = np.asarray(X) if names is None else X
    shape = getattr(X, "shape", "none")  # as of a lazy frame
    if len(shape) != 2:
        raise ValueError(f"X must have rows of columns, got shape {shape}")
    n_rows, n_features = X.shape
    queries = Queries.make(n_rows, qid=qid)
    query = np.zeros(n_rows, np.int64) if across else queries.index()
    if np.shape(y) != (n_rows,):
        found = np.shape(y)
        raise ValueError(f"y must have a label for each of the {n_rows} rows of X, got {found}")
    together = np.argsort(query, kind="stable")

    def mean(scores: NDArray[Any]) -> float:
        found = pairgram.evaluate(metric, y, scores, qid, n_threads=n_threads)
        return float(next(iter(found.values())))

    own = np.asarray(model.predict(X), np.float64)
    baseline, weights = mean(own), _weights(model, n_features)
    importances = np.empty((n_features, n_repeats))
    order = np.empty(n_rows, np.int64)
    for j in range(n_features):
        values = None if weights is None else np.asarray(_column(X, j), np.float64)
        for repeat in range(n_repeats):
            order[together] = np.lexsort((rng.random_sample(n_rows), query))
            if weights is not None and values is not None:
                scores = own + weights[j] * (values[order] - values)
            else:
                scores = model.predict(_with_shuffled(X, j, order))
            importances[j, repeat] = sign * (baseline - mean(scores))
    return Bunch(
        importances=importances,
        importances_mean=importances.mean(axis=1),
        importances_std=importances.std(axis=1),
        score=baseline,
        feature_names=None if names is None else [str(name) for name in names],
    )


def _weights(model: Any, n_features: int) -> NDArray[np.float64] | None:
    """Return the weights of the columns of a linear ranker; None if predictions are needed."""
    plain = (
        hasattr(model, "_file_kind")
        and model.feature_map_ is None
        and model.inputs_ is None
        and model.missing_ is None
        and getattr(model, "prior_", None) is None
    )
    weights = np.asarray(model.coef_, np.float64) if plain else None
    return weights if weights is not None and weights.shape == (n_features,) else None


def _column(X: Any, j: int) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    return X.column(j) if hasattr(X, "set_column") else X[:, j]


def _with_shuffled(X: Any, j: int, order: NDArray[np.int64]) -> Any:
    """Return rows with column j in another order. A column of a frame keeps its type."""
    column = _column(X, j)
    if hasattr(X, "isetitem"):  # pandas
        rows = X.copy(deep=False)
        rows.isetitem(j, column.array.take(order))
        return rows
    if hasattr(X, "set_column"):  # pyarrow
        return X.set_column(j, X.field(j), column.take(order))
    if hasattr(X, "replace_column"):  # polars
        return X.clone().replace_column(j, column[order])
    rows = X.copy(order="K")
    rows[:, j] = column[order]
    return rows
