"""How estimators that choose settings hold rows out and score them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.model_selection import KFold, check_cv

from pairgram._support.types import Rows, Vector
from pairgram.least_squares.dual_gram import DualGram, Statistics
from pairgram.least_squares.held_out import leave_out
from pairgram.least_squares.held_out.dual_folds import (
    fold_scores,
    is_from_decomposition,
    leave_out_of_all_rows,
)
from pairgram.least_squares.held_out.ties import PathTies, first_equal_rows
from pairgram.least_squares.ridge_path import RidgePath
from pairgram.metrics import Metric, get_metric
from pairgram.metrics.metric import check_labels
from pairgram.metrics.scorer import RankingScorer
from pairgram.model_selection.splits import QueryKFold
from pairgram.preferences.pairs import PairSettings
from pairgram.preferences.queries import Queries
from pairgram.problem.data import RankingData

__all__ = ["HeldOutScoring", "choose", "is_validation_set", "make_splits", "metric_of"]

Splits = tuple[tuple[Rows, Rows], ...]
CACHED_ROWS = 4096  # of which folds over rows are kept for the next fit


@dataclass(frozen=True)
class HeldOutScoring:
    """How rows are held out of one data set, and how their scores are judged.

    Attributes
    ----------
    data : RankingData
    metric : Metric
    splits : tuple of (training rows, test rows), or None
    validation : RankingData or None
        Without it and without splits, every query is held out in turn, or every row of one query.
    scored : RankingData
        The held-out rows: the validation set; the test rows of all splits, one split after the
        other, where a query of each split stands for itself, without X; or all rows.
    first_equal : ndarray of shape (n_held_out_rows,), int64, or None
        For each held-out row the first of its query that has the same values, whose score it
        shares; of rows that are held out one by one, also the same label and weight. None: itself.
    n_threads : int or None
    """

    data: RankingData
    metric: Metric
    splits: Splits | None
    validation: RankingData | None
    scored: RankingData
    first_equal: Rows | None
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
        return cls._of_splits(data, splits, validation, scoring, n_threads)

    @classmethod
    def _of_splits(
        cls,
        data: RankingData,
        splits: Splits | None,
        validation: RankingData | None,
        scoring: Any,
        n_threads: int | None,
    ) -> HeldOutScoring:
        scored = held = data if validation is None else validation
        one_by_one = splits is None and validation is None and _is_one_query(data)
        metric = metric_of(scoring, scored.y, one_by_one)
        if splits is not None:
            scored = _test_rows(data, splits)
        try:
            check_labels((metric,), scored.y)
        except ValueError as error:
            raise ValueError(f"scoring={metric.name!r}: {error}") from None
        rows = np.arange(len(held.y))
        first_equal = first_equal_rows(
            held.X,
            rows if splits is None else np.concatenate([test for _, test in splits]),
            scored.queries.index(),
            [scored.y, scored.v] if one_by_one else [],
            n_threads,
        )
        return cls(data, metric, splits, validation, scored, first_equal, n_threads)

    @classmethod
    def of_targets(
        cls,
        data: RankingData,
        labels: Vector,
        cv: Any,
        validation: RankingData | None,
        scoring: Any,
        n_threads: int | None,
    ) -> list[HeldOutScoring]:
        """Do the same for each column of labels of shape (n_rows, n_targets), with equal splits."""
        splits = None if validation is not None else make_splits(cv, data)
        targets = [replace(data, y=y) for y in np.ascontiguousarray(labels.T)]
        return [cls._of_splits(one, splits, validation, scoring, n_threads) for one in targets]

    def of(self, data: RankingData) -> HeldOutScoring:
        """Return the same with another feature map, which the validation set shares."""
        valid = self.validation
        if valid is not None:
            valid = replace(valid, feature_map=data.feature_map)
        return replace(self, data=data, validation=valid)

    def require(self, settings: PairSettings, n_alphas: int, form: str) -> None:
        """Raise the ValueErrors of `scores`, from the labels and the sizes alone."""
        if self.splits is not None:
            for number, (train, _) in enumerate(self.splits):
                leave_out.require_training_pairs(self.data, settings, number, train)
        elif self.validation is None and _is_one_query(self.data):
            leave_out.require_leave_row_out(self.data, settings)
        elif self.validation is None and not (form == "dual" and _of_all_rows(settings)):
            leave_out.require_leave_query_out(self.data, settings)

    def n_matrices(self, settings: PairSettings) -> int:
        """Return how many matrices of the rows' size `scores` takes in the dual, at most."""
        if settings.kind not in ("none", "kept") or self.validation is not None:
            return 0
        return int(_of_all_rows(settings) or (self.splits is not None and _is_one_query(self.data)))

    def scores(
        self,
        total: Statistics,
        ridge: RidgePath,
        scale: bool,
        alphas: Vector,
        coefs: Callable[[Vector], Vector],
    ) -> Vector:
        """Return the mean held-out score for every alpha, (n_alphas,); NaN where undefined.

        `coefs` takes what `ridge` solves to the coefficients of the validation set's features.
        """
        ties = PathTies.of(self.data, total.settings, ridge, alphas)
        held = self._held_out(total, ridge, scale, ties.alphas, coefs)
        return self.mean_of_path(held, ties)

    def mean_of_path(self, held: Vector, ties: PathTies) -> Vector:
        """Return the means of scores that were held out at the ridges of `ties`, (n_alphas,)."""
        return self._mean(ties.join(self._shared(held), self.scored.queries, self.n_threads))

    def _held_out(
        self,
        total: Statistics,
        ridge: RidgePath,
        scale: bool,
        alphas: Vector,
        coefs: Callable[[Vector], Vector],
    ) -> Vector:
        """Return the scores of the held-out rows, (n_alphas, n_held_out_rows)."""
        if self.validation is not None:
            models = coefs(ridge.coef(alphas))
            return leave_out.predict_rows(self.validation, slice(None), models, self.n_threads)
        if self.splits is not None and is_from_decomposition(self.data, total, self.splits):
            assert isinstance(total, DualGram)
            parts = fold_scores(self.data, total, ridge, self.splits, alphas, self.n_threads)
            return np.hstack(parts)
        if self.splits is not None:
            return self.split_scores(total, lambda rest: rest.decompose(scale=scale).coef(alphas))
        if _is_one_query(self.data):
            return leave_out.leave_row_out(self.data, total, ridge, alphas, self.n_threads)
        if isinstance(total, DualGram) and _of_all_rows(total.settings):
            return leave_out_of_all_rows(self.data, total, ridge, alphas, self.n_threads)
        return leave_out.leave_query_out(self.data, total, ridge, alphas, self.n_threads)

    def split_scores(self, total: Statistics, coefs_of: Callable[[Any], Vector]) -> Vector:
        """Return the scores of all splits' test rows, (n_models, n_test_rows); see `held_out`."""
        assert self.splits is not None
        parts = leave_out.split_scores(self.data, total, self.splits, coefs_of, self.n_threads)
        return np.hstack(parts)

    def mean(self, scores: Vector) -> Vector:
        """Return the weighted mean of the metric over the queries of the held-out rows.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_held_out_rows), float64
            Rows as in `scored`; of a model with a NaN the mean is NaN. Rows of a query that have
            the same values share the score of the first.
        """
        return self._mean(self._shared(scores))

    def means_of_splits(self, parts: Sequence[Vector]) -> list[Vector]:
        """Return the means over the test rows of each split, given their scores in `parts`."""
        means, begin = [], 0
        for part in parts:
            end = begin + part.shape[1]
            scored, first_equal = self.scored.take(np.arange(begin, end)), self.first_equal
            if first_equal is not None:
                first_equal = first_equal[begin:end] - begin
            means.append(replace(self, scored=scored, first_equal=first_equal).mean(part))
            begin = end
        return means

    def _shared(self, scores: Vector) -> Vector:
        return scores if self.first_equal is None else scores[:, self.first_equal]

    def _mean(self, scores: Vector) -> Vector:
        data = self.scored
        if data.row_weights is not None and (data.row_weights == 0).any():
            seen = np.flatnonzero(data.row_weights > 0)  # weight 0: as if the row were absent
            data, scores = data.take(seen), scores[:, seen]
        queries = data.queries
        values = np.full((len(scores), queries.n_queries), np.nan)
        known = np.isfinite(scores).all(axis=1)
        if known.any():
            values[known] = self.metric.per_query_scores(
                data.y, np.ascontiguousarray(scores[known]), queries, self.n_threads
            )
        totals = np.bincount(queries.index(), data.v, minlength=queries.n_queries)
        weights = totals / np.maximum(queries.sizes, 1)
        if data.query_weights is not None:
            weights = weights * data.query_weights
        return np.atleast_1d(self.metric.mean(values, weights))


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


def choose(means: Vector, metric: Metric, otherwise: str = "") -> tuple[int, NDArray[np.int64]]:
    """Return the place of the first best mean, and the rank of every one from 1.

    Raises
    ------
    ValueError
        If all are NaN; `otherwise` tells other causes than what the data lack.
    """
    sign = 1 if metric.greater_is_better else -1
    ordered = np.where(np.isnan(means), -np.inf, sign * means)
    if np.isneginf(ordered).all():
        raise ValueError(
            f"scoring={metric.name!r} is undefined for every held-out query: none has what the "
            "metric needs, such as two rows with different labels among those that cv holds out "
            f"together{otherwise}"
        )
    return int(np.argmax(ordered)), np.searchsorted(np.sort(-ordered), -ordered) + 1


def make_splits(cv: Any, data: RankingData) -> Splits:
    """Return the (training rows, test rows) of every split as arrays of row numbers.

    Raises
    ------
    ValueError
        If there is none, one has an empty part, or rows are not row numbers; it names ``cv``.
    """
    n_rows = len(data.y)
    if isinstance(cv, str):
        raise ValueError(
            f"cv={cv!r}: a splitter, an integer, (training rows, test rows) pairs or a validation "
            "set is wanted; 'leave-pair-out' is for RankRLSCV, PointwiseELMCV and PairwiseELMCV"
        )
    if isinstance(cv, (list, tuple)):
        raw: Sequence[Any] = cv
    else:
        try:
            if isinstance(cv, Integral) and _is_one_query(data):
                folds = _kept_row_folds if n_rows <= CACHED_ROWS else _row_folds
                return folds(int(cv), n_rows)
            raw = _split(QueryKFold(cv) if isinstance(cv, Integral) else cv, data)
        except ValueError as error:  # of a splitter, which does not know the parameter
            raise ValueError(f"cv={cv!r}: {error}") from error
    if len(raw) == 0:
        raise ValueError("cv has no splits")
    return tuple(_as_split(number, split, n_rows) for number, split in enumerate(raw))


def _split(splitter: Any, data: RankingData) -> list[Any]:
    if isinstance(splitter, QueryKFold):
        return list(splitter.split(data.y, qid=data.queries.index()))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        X = np.empty((len(data.y), 1))
        return list(check_cv(splitter).split(X, data.y, data.queries.index()))


def _row_folds(n_splits: int, n_rows: int) -> Splits:
    """Rows of one query often stand in an order that says something about them, so it is mixed."""
    folds = KFold(n_splits, shuffle=True, random_state=0)
    splits = tuple(folds.split(np.empty((n_rows, 1))))
    for rows in chain.from_iterable(splits):
        rows.flags.writeable = False  # they may be shared
    return splits


_kept_row_folds = lru_cache(maxsize=16)(_row_folds)  # problems of a batch often have equal sizes


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


def _test_rows(data: RankingData, splits: Splits) -> RankingData:
    """Return the test rows of all splits, without X; a query of each split is one of its own."""
    rows = np.concatenate([test for _, test in splits])
    n_queries = data.queries.n_queries
    if n_queries == 1:
        bounds = np.cumsum([0, *(len(test) for _, test in splits)], dtype=np.int64)
        queries = Queries(bounds, None, np.arange(len(splits)))
    else:
        split = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
        queries = Queries.make(len(rows), qid=split * n_queries + data.queries.index()[rows])
    assert queries.ids is not None
    return RankingData(
        np.empty((len(rows), 0)),
        data.y[rows],
        queries,
        None if data.row_weights is None else data.row_weights[rows],
        None if data.query_weights is None else data.query_weights[queries.ids % n_queries],
    )


def _of_all_rows(settings: PairSettings) -> bool:
    """Tell whether kept pairs of all rows are one regression on rows."""
    return settings.scope == "global" and settings.kind == "kept"


def _is_one_query(data: RankingData) -> bool:
    return bool(np.count_nonzero(data.queries.sizes) == 1)
