"""How RankRLSCV holds rows out and scores them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from pairgram import held_out
from pairgram._scorer import RankingScorer
from pairgram.data import RankingData
from pairgram.dual import Statistics
from pairgram.metrics import Metric, get_metric
from pairgram.model_selection import QueryKFold
from pairgram.ridge import RidgePath, Vector

__all__ = ["HeldOutScoring", "is_validation_set", "metric_of"]

Rows = NDArray[np.int64]
Splits = list[tuple[Rows, Rows]]


@dataclass(frozen=True)
class HeldOutScoring:
    """Held-out scores of ridge paths fitted to one data set.

    Attributes
    ----------
    data : RankingData
    metric : Metric
    splits : list of (training rows, test rows), or None
    validation : RankingData or None
        Without it and without splits, every query is held out in turn, or every row of one query.
    n_threads : int or None
    """

    data: RankingData
    metric: Metric
    splits: Splits | None
    validation: RankingData | None
    n_threads: int | None

    @classmethod
    def make(
        cls,
        data: RankingData,
        cv: Any,
        validation: RankingData | None,
        scoring: Any,
        n_threads: int | None,
    ) -> HeldOutScoring:
        """Choose the metric and make the splits.

        Raises
        ------
        ValueError
            If the metric cannot take the labels (it names ``scoring``), or ``cv`` makes no sense.
        """
        splits = None if cv is None or validation is not None else make_splits(cv, data)
        scored = data if validation is None else validation
        one_by_one = cv is None and validation is None and _is_one_query(data)
        metric = metric_of(scoring, scored.y, one_by_one)
        self = cls(data, metric, splits, validation, n_threads)
        try:
            metric.per_query_scores(
                scored.y, np.zeros((1, len(scored.y))), scored.queries, n_threads
            )
        except ValueError as error:
            raise ValueError(f"scoring={metric.name!r}: {error}") from None
        return self

    def scores(self, total: Statistics, ridge: RidgePath, scale: bool, alphas: Vector) -> Vector:
        """Return the mean held-out score for every alpha, (n_alphas,); NaN where undefined."""
        data = self.data
        if self.validation is not None:
            held = held_out.predict_rows(self.validation, slice(None), ridge.coef(alphas))
            parts = [(self.validation, held)]
        elif self.splits is not None:
            scores = held_out.split_scores(data, total, self.splits, scale, alphas, self.n_threads)
            tests = (data.take(test) for _, test in self.splits)
            parts = list(zip(tests, scores, strict=True))
        else:
            one = _is_one_query(data)
            leave_out = held_out.leave_row_out if one else held_out.leave_query_out
            parts = [(data, leave_out(data, total, ridge, alphas, self.n_threads))]
        return self._mean(parts)

    def _mean(self, parts: Iterable[tuple[RankingData, Vector]]) -> Vector:
        """Return the weighted mean over all held-out queries; NaN scores make it NaN."""
        per_query, weights, unknown = [], [], np.array(False)
        for data, scores in parts:
            if data.row_weights is not None and (data.row_weights == 0).any():
                seen = np.flatnonzero(data.row_weights > 0)  # weight 0: as if the row were absent
                data, scores = data.take(seen), np.ascontiguousarray(scores[:, seen])
            queries = data.queries
            values = np.full((len(scores), queries.n_queries), np.nan)
            known = np.isfinite(scores).all(axis=1)
            if known.any():
                values[known] = self.metric.per_query_scores(
                    data.y, np.ascontiguousarray(scores[known]), queries, self.n_threads
                )
            per_query.append(values)
            totals = np.bincount(queries.index(), data.v, minlength=queries.n_queries)
            weight = totals / np.maximum(queries.sizes, 1)
            weights.append(weight if data.query_weights is None else weight * data.query_weights)
            unknown = unknown | ~known
        means = np.atleast_1d(
            self.metric.mean(np.concatenate(per_query, axis=1), np.concatenate(weights))
        )
        return np.where(unknown, np.nan, means)


def is_validation_set(cv: Any) -> bool:
    """Tell (X, y) and (X, y, qid) from a tuple of splits."""
    if not isinstance(cv, tuple) or len(cv) not in (2, 3):
        return False
    X = cv[0]
    return scipy.sparse.issparse(X) or hasattr(X, "columns") or getattr(X, "ndim", 0) == 2


def metric_of(scoring: Any, y: Vector, one_by_one: bool) -> Metric:
    """Return the metric that `scoring` names; None chooses by the labels."""
    if isinstance(scoring, Metric):
        return scoring
    if isinstance(scoring, RankingScorer):
        return scoring.metric
    if scoring is None:
        graded = (y >= 0).all() and (y == np.rint(y)).all() and y.max(initial=0) < 64
        scoring = "ndcg@10" if graded and not one_by_one else "pairwise_accuracy"
    return get_metric(scoring)


def make_splits(cv: Any, data: RankingData) -> Splits:
    """Return the (training rows, test rows) of every split as arrays of row numbers.

    Raises
    ------
    ValueError
        If there is none, one has an empty part, or rows are not row numbers; it names ``cv``.
    """
    n_rows = len(data.y)
    many_queries = data.queries.n_queries > 1
    splitter = QueryKFold(cv) if isinstance(cv, Integral) and many_queries else cv
    if isinstance(splitter, (list, tuple)):
        raw = list(splitter)
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            raw = list(
                check_cv(splitter).split(np.empty((n_rows, 1)), data.y, data.queries.index())
            )
    if not raw:
        raise ValueError("cv has no splits")
    return [_as_split(number, split, n_rows) for number, split in enumerate(raw)]


def _as_split(number: int, split: Any, n_rows: int) -> tuple[Rows, Rows]:
    try:
        train, test = split
    except (TypeError, ValueError):
        raise ValueError(
            f"cv must be None, a splitter, an integer, (training rows, test rows) pairs, or a "
            f"validation set (X, y, qid), but its element {number} is no such pair"
        ) from None
    parts = []
    for name, rows in (("training", np.asarray(train)), ("test", np.asarray(test))):
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
            raise ValueError(
                f"cv: the {name} rows of split {number} must be row numbers, at least one, got "
                f"an array of shape {rows.shape} and type {rows.dtype}"
            )
        if rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(f"cv: the {name} rows of split {number} leave 0..{n_rows - 1}")
        parts.append(rows.astype(np.int64))
    return parts[0], parts[1]


def _is_one_query(data: RankingData) -> bool:
    return bool(np.count_nonzero(data.queries.sizes) == 1)
