"""Judge scores of held-out rows by a metric, choose the best of many models, list the results."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._rooms import room_with, words_of
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector, verbatim
from pairgram._support.machine import cached_property
from pairgram.data.blocks import Dataset
from pairgram.data.dataset import RankingData, without_features
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries, first_equal_rows
from pairgram.features.inputs import prepared_as
from pairgram.metrics.evaluation import (
    RankingScorer,
    Scoring,
    get_metric,
    named_metric,
)
from pairgram.metrics.metric import Metric, MetricSums, check_labels, per_query_scores
from pairgram.model_selection.splits import (
    Folds,
    Splits,
    held_by_default,
    make_splits,
    refuse_validation,
)

if TYPE_CHECKING:
    from pairgram._support.types import CV


class Measure(Protocol):
    """What says which of several models are better: a metric, of lists or of others."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def greater_is_better(self) -> bool:
        """Whether greater is better."""


@dataclass(frozen=True)
class Criterion(ABC):
    """What a search that holds nothing out chooses by, in place of a metric."""

    name: str
    greater_is_better: bool = True

    @abstractmethod
    def require(
        self,
        settings: Sequence[Pairs],
        alphas: Vector | None,
        told: Mapping[str, bool],
        *,
        constrained: bool,
    ) -> None:
        """Raise a ValueError if it cannot choose, or if `told` says that rows are to be held out.

        `settings` and `alphas` are what is chosen from, and `constrained` tells whether weights
        have a constraint.
        """

    @abstractmethod
    def judge(self, data: RankingData) -> Any:
        """Return the `PathJudge` of rows."""


NOT_STORED: Mapping[str, Any] = {"held_out_": None, "per_query_": None}


class Judged(NamedTuple):
    """The metric of the held-out scores of some models.

    Attributes
    ----------
    means : ndarray of shape (n_models,)
        The mean of the metric over the queries of all held-out rows; NaN if it is undefined.
    deviations : ndarray of shape (n_models,)
        The standard deviation over splits, or over queries if there are no splits.
    splits : ndarray of shape (n_splits, n_models), or None
        The mean over the queries of the test rows, for every split.
    stored : dict of str to any
        The attributes of the best model: "_held", a `HeldOut`, or "held_out_" and "per_query_",
        which are None where they are not known, as in tables.
    """

    means: Vector
    deviations: Vector
    splits: Vector | None = None
    stored: Mapping[str, Any] = NOT_STORED

    @classmethod
    def of(cls, values: Vector, weights: Vector, split_of: Rows | None, n_splits: int) -> Judged:
        """Summarise the metric (n_models, n_queries): NaN in a query means that it has none."""
        one = np.zeros(len(weights), dtype=np.int64)
        means, deviations = _core.summarize(values, weights, one, 1)
        if split_of is None:
            return cls(means[:, 0], deviations[:, 0])
        splits = np.ascontiguousarray(_core.summarize(values, weights, split_of, n_splits)[0].T)
        return cls(means[:, 0], deviations_of(splits), splits)

    def take(self, models: Rows) -> Judged:
        """Return the values of some of the models."""
        splits = None if self.splits is None else self.splits[:, models]
        return Judged(self.means[models], self.deviations[models], splits)


class ModelJudge(Protocol):
    """What judges linear models by rows that they have not seen."""

    @property
    def metric(self) -> Any:
        """What it judges by."""

    @property
    def splits(self) -> Splits | None:
        """The (training rows, test rows) of every split, where rows have numbers."""

    def counts(self) -> Sequence[Any]:
        """Return how often every split trains on each row."""

    def judge_models(
        self,
        data: Dataset[RankingData],
        scored: Sequence[Dataset[RankingData]],
        coefs: Sequence[Vector],
    ) -> Judged:
        """Judge the models of every split, or of all rows."""


@dataclass(frozen=True, eq=False)
class BaseJudge(ABC):
    """What is held out of some rows, or of their comparisons.

    Attributes
    ----------
    data : RankingData
        The rows, with the inputs and the map of the models.
    metric : Measure
    splits : sequence of (training rows, test rows), or None
    validation : RankingData or None
        Rows to judge instead, as they were given. `splits` is then None.
    """

    data: RankingData
    metric: Measure
    splits: Splits | None
    validation: RankingData | None

    @property
    def n_rows(self) -> int:
        """The number of rows that are split."""
        return len(self.data.y)

    def of(self, data: RankingData) -> Self:
        """Return the same judge with the inputs and the map of `data`."""
        return replace(self, data=data)

    def scores_of(self, data: RankingData, rows: Rows | slice, coefs: Vector) -> Vector:
        """Return the scores of some rows of `data` by linear models, (n_models, n_rows)."""
        return data.scores(rows, coefs)

    def validation_scores(self, coefs: Vector) -> Vector:
        """Return the scores of the validation set by models of `data`, (n_models, n_rows)."""
        rows = prepared_as(self.validation, self.data)
        return self.scores_of(rows, slice(None), coefs)

    def shared(self, scores: Vector) -> Vector:
        """Return the scores, where those that must be equal are."""
        return scores

    @abstractmethod
    def judge(self, scores: Vector) -> Judged:
        """Judge models by their scores of all that is held out, (n_models, n_held_out_rows)."""

    def counts(self) -> list[Vector]:
        """Return how often every split trains on each row."""
        return [
            np.bincount(train, minlength=self.n_rows).astype(np.float64)
            for train, _ in self.splits or ()
        ]

    def judge_models(
        self,
        data: Dataset[RankingData],
        scored: Sequence[Dataset[RankingData]],
        coefs: Sequence[Vector],
    ) -> Judged:
        """Judge the models of every one of `counts`, or those of all rows.

        Parameters
        ----------
        data : Dataset of RankingData
            The rows, with the feature map of the models.
        scored : list of Dataset of RankingData
            The rows as the models of each split take them.
        coefs : list of ndarray of shape (n_models, n_features)
        """
        if self.splits is None:
            scores = [self.of(data.pattern).validation_scores(coefs[0])]
        else:
            scores = [
                self.scores_of(rows, test, coef)
                for (_, test), coef, own in zip(self.splits, coefs, scored, strict=True)
                for rows in own.each(lambda block: block)
            ]
        return self.judge(self.shared(np.hstack(scores)))


class Counted(NamedTuple):
    """Held-out rows of weight > 0: a row of weight 0 counts as absent.

    Attributes
    ----------
    data : RankingData
        Their labels and queries.
    rows : ndarray of int64, or slice
        Their numbers among all that are held out.
    weights : ndarray of shape (n_queries,)
        The weight of every query in a mean: the mean weight of its rows.
    """

    data: RankingData
    rows: Rows | slice
    weights: Vector

    @classmethod
    def of(cls, data: RankingData) -> Counted:
        """Leave out the rows that do not count."""
        rows: Rows | slice = slice(None)
        if data.row_weights is not None and not data.row_weights.all():
            rows = np.flatnonzero(data.row_weights)
            data = _in_order(data, rows)
        ones = np.minimum(data.queries.sizes, 1.0)
        return cls(data, rows, _mean_weights(data, ones) if data.may_vanish else ones)

    def values(self, metric: Metric, scores: Vector) -> Vector:
        """Return the metric of every query, (n_models, n_queries), for scores of all held-out rows.

        It is NaN where it is undefined, and for models that have NaN or infinity among their
        scores.
        """
        own, queries = scores[:, self.rows], self.data.queries
        known = np.isfinite(own).all(axis=1)
        values = np.full((len(own), queries.n_queries), np.nan)
        if known.any():
            finite = np.ascontiguousarray(own if known.all() else own[known])
            (values[known],) = per_query_scores((metric,), self.data.y, finite, queries)
        return values


class HeldOut(NamedTuple):
    """How one model ranks what is held out, of which the attributes of a search are made.

    Attributes
    ----------
    metric : str
    queries : Queries
        Those of the rows that are split, or of the validation set.
    tests : (ndarray of int64, ndarray of int64), or None
        The test rows, split after split, and the split of each; None without splits.
    counted : tuple
        The numbers of the held-out rows that count, their queries, and the weights of these.
    scores : ndarray of shape (n_held_out_rows,)
    values : ndarray of shape (n_queries,)
        The metric of the queries that count.
    """

    metric: str
    queries: Queries
    tests: tuple[Rows, Rows] | None
    counted: tuple[Rows | slice, Queries, Vector]
    scores: Vector
    values: Vector

    def of_rows(self) -> Vector:
        """Return the score of every row, the mean over the splits that hold it out, or NaN."""
        if self.tests is None:
            return self.scores
        (rows, _), n_rows = self.tests, self.queries.n_rows
        times = np.bincount(rows, minlength=n_rows)
        sums = np.bincount(rows, self.scores, minlength=n_rows)
        return np.where(times > 0, sums / np.maximum(times, 1), np.nan)

    def per_query(self) -> dict[str, Any]:
        """Return the metric of every query, with its id, split, size and weight."""
        counted, queries, weights = self.counted
        numbers = np.arange(len(self.scores))
        filled = np.flatnonzero(queries.sizes)
        starts = queries.grouped(np.arange(queries.n_rows))[queries.offsets[filled]]
        rows, table = numbers[counted][starts], {}
        if self.tests is not None:
            rows, table["split"] = (one[rows] for one in self.tests)
        number, ids = self.queries.index()[rows], self.queries.ids
        return {
            "qid": number if ids is None else ids[number],
            **table,
            "n": queries.sizes[filled],
            "weight": weights[filled],
            self.metric: self.values[filled],
        }


def _mean_weights(data: RankingData, weights: Vector) -> Vector:
    """Return the weight of every query: the mean weight of its rows, times its own."""
    queries = data.queries
    if data.row_weights is not None:
        totals = np.bincount(queries.index(), data.row_weights, minlength=queries.n_queries)
        weights = totals / np.maximum(queries.sizes, 1)
    return weights if data.query_weights is None else weights * data.query_weights


def _in_order(data: RankingData, rows: Rows) -> RankingData:
    """Return some rows without X; their queries keep their order, in which values are summed."""
    kept, numbers = np.unique(data.queries.index()[rows], return_inverse=True)
    order = None if (np.diff(numbers) >= 0).all() else np.argsort(numbers, kind="stable")
    lists = Queries.of_sizes(np.bincount(numbers), np.arange(len(kept)))
    weights = None if data.query_weights is None else data.query_weights[kept]
    some = without_features(data).take(rows)
    return replace(some, queries=replace(lists, order=order), query_weights=weights)


@dataclass(frozen=True, eq=False)
class Judge(BaseJudge):
    """Which rows of one data set are held out, and how their scores are judged.

    Attributes
    ----------
    data : RankingData
    metric : Metric
    splits : sequence of (training rows, test rows), or None
    validation : RankingData or None
        The validation set, whose rows are as they were given. If this and `splits` are both None,
        every query is held out in turn, or every row if there is a single query.
    scored : RankingData
        The held-out rows: the validation set, the test rows of all splits, or all rows. The test
        rows stand one split after the other, without X, and the queries of different splits are
        different queries.
    tests : (ndarray of int64, ndarray of int64), or None
        The test rows of all splits, one split after the other, and the split of each.
    """

    metric: Metric
    scored: RankingData
    tests: tuple[Rows, Rows] | None = None

    @classmethod
    def make(
        cls,
        data: RankingData,
        cv: CV,
        validation: RankingData | None,
        scoring: Scoring,
        *,
        exact: bool = False,
    ) -> Judge:
        """Choose the metric and the splits.

        Parameters
        ----------
        data : RankingData
        cv : None, int, splitter or iterable of splits
        validation : RankingData or None
            The rows to hold out instead. `cv` must then be None.
        scoring : str, Metric, scorer or None
        exact : bool
            Whether None holds every query out in turn, or every row of a single query, in place of
            folds.

        Raises
        ------
        ValueError
            If there is a single row, if the metric cannot take the labels (the message names
            ``scoring``), or if ``cv`` makes no valid splits.
        """
        if cv is not None:
            refuse_validation(cv, validation is not None)
        if len(data.y) < 2:
            raise one_row_error()
        if cv is None and validation is None:
            cv = held_by_default(data.held_together.n_filled, len(data.y), exact)
        splits = None if cv is None else make_splits(cv, data)
        tests = None if splits is None else splits.test_rows()
        one_by_one = splits is None and validation is None and data.is_single_query
        scored = data if validation is None else validation
        metric = metric_of(scoring, scored.y, one_by_one)
        if metric.family == "ips_dcg" and validation is None:
            _refuse_cut_lists(data, splits)
        try:
            if metric.clip or scored.judgements is not None:
                labels = metric.judged_labels(scored.y, scored.judgements)
                scored = replace(scored, y=labels)
            if tests is not None:
                scored = _test_rows(scored, *tests)
            check_labels((metric,), scored.y, are_all=True)
        except ValueError as error:
            raise ValueError(f"scoring={metric.name!r}: {error}") from None
        return cls(data, metric, splits, validation, scored, tests)

    @property
    def one_by_one(self) -> bool:
        """Whether every row is held out on its own."""
        return self.splits is None and self.validation is None and self.data.is_single_query

    @cached_property
    def first_equal(self) -> Rows | None:
        """For each held-out row, the first row of its query that has the same values.

        These rows have the same score, before the offsets are added. Rows that are held out one by
        one must also have the same label, weight and offset. None if no two rows are equal.
        """
        held, scored, others = self.validation or self.data, self.scored, []
        rows = np.arange(len(held.y)) if self.tests is None else self.tests[0]
        if self.one_by_one:
            others = [one for one in (scored.y, scored.v, scored.offset) if one is not None]
        return first_equal_rows(held.X, rows, scored.queries.index(), others)

    def units(self) -> Rows | None:
        """Return what is held out together, (n_rows,), query by query.

        The result is None unless these are groups, or folds of queries or of the rows of one.
        """
        if self.splits is not None:
            return self._units_of_splits(self.splits)
        found = self.data.group_of
        return None if found is None else np.repeat(found, self.data.queries.sizes)

    def _units_of_splits(self, splits: Splits) -> Rows | None:
        queries, found = self.data.queries, splits.fold_of_rows(len(self.data.y))
        if found is None:
            return None
        found = queries.grouped(found)
        first = np.repeat(found[queries.offsets[:-1].clip(max=len(found) - 1)], queries.sizes)
        return found if queries.n_filled == 1 or (first == found).all() else None

    def judge_units(self, scores: Vector) -> Judged:
        """Judge scores of all rows, which stand query by query as the numbers of `units` do.

        Equal rows that are held out together have equal scores.
        """
        order = self.data.queries.order
        scores = scores if order is None else scores[:, np.argsort(order)]
        if self.tests is not None:
            scores = scores[:, self.tests[0]]
        return self.judge(self.shared(scores) if self.one_by_one else scores)

    def sums(self, scores: Vector) -> MetricSums:
        """Return the sums of the metric over all queries for scores, (n_models, n_rows).

        A model with a NaN among its scores gets NaN, also joined with sums of other rows.
        """
        counted, _ = self._counted
        if self.scored.offset is not None:
            scores = scores + self.scored.offset
        sums = MetricSums.of(counted.values(self.metric, scores), counted.weights)
        finite = np.isfinite(scores[:, counted.rows]).all(axis=1)
        return sums._replace(means=np.where(finite, sums.means, np.nan))

    def shared(self, scores: Vector) -> Vector:
        """Return the scores, where equal rows of a query get the score of the first of them.

        They are changed in place, model by model, as a copy of all would take their memory again.
        """
        if self.first_equal is not None:
            for of_model in scores:
                of_model[:] = of_model[self.first_equal]
        return scores

    @cached_property
    def _counted(self) -> tuple[Counted, Rows | None]:
        """The rows that count, and the split that holds out each of their queries, if any."""
        counted = Counted.of(self.scored)
        if self.tests is None:
            return counted, None
        split_of = np.zeros(counted.data.queries.n_queries, np.int64)
        split_of[counted.data.queries.index()] = self.tests[1][counted.rows]
        return counted, split_of

    def judge(self, scores: Vector) -> Judged:
        """Judge models by their scores of the held-out rows.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_held_out_rows), float64
            The columns are the rows of `scored`, whose offsets are added to the scores here. A
            model with a NaN among its scores gets NaN.
        """
        counted, split_of = self._counted
        if self.scored.offset is not None:
            scores = scores + self.scored.offset
        values = counted.values(self.metric, scores)
        judged = Judged.of(values, counted.weights, split_of, len(self.splits or ()))
        best = best_of(judged.means, self.metric)
        queries = (self.scored if self.tests is None else self.data).queries
        own = scores[best].copy(), values[best].copy()  # without those of the other models
        told = counted.rows, counted.data.queries, counted.weights
        held = HeldOut(self.metric.name, queries, self.tests, told, *own)
        return judged._replace(stored={"_held": held})


def deviations_of(splits: Vector) -> Vector:
    """Return the standard deviation of the values of every model over splits, (n_models,).

    Splits without a value, which have NaN, do not count.
    """
    one = np.zeros(len(splits), dtype=np.int64)
    return _core.summarize(np.ascontiguousarray(splits.T), np.ones(len(one)), one, 1)[1][:, 0]


def join_judged(parts: Sequence[Judged]) -> Judged:
    """Join the values of several groups of models, one after the other."""
    if len(parts) == 1:
        return parts[0]
    splits = [part.splits for part in parts if part.splits is not None]
    return Judged(
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.deviations for part in parts]),
        np.hstack(splits) if splits else None,
    )


def one_row_error() -> ValueError:
    """Return the error of a search with one row."""
    return ValueError("a search holds rows out, so X must have two or more, got 1 sample")


def _refuse_cut_lists(data: RankingData, splits: Splits | None) -> None:
    """Raise a ValueError if a split trains on rows of a list of clicks that it holds out.

    Without splits, whole lists are held out, or every row if there is one list alone.
    """
    queries, query, n_rows = data.queries, data.queries.index(), len(data.y)
    if splits is None and data.is_single_query:
        splits = Folds(np.arange(n_rows), n_rows)
    for number, (train, test) in enumerate(splits or ()):
        both = np.intersect1d(query[train], query[test])
        if len(both):
            raise ArgumentError(
                "cv",
                "must hold out whole lists of clicks, each of which needs a query id of its own in "
                f"qid; split {number} cuts query {verbatim(queries.name(int(both[0])))}",
            )


def metric_of(scoring: Scoring, y: Vector, one_by_one: bool) -> Metric:
    """Return the metric that `scoring` names. For None it depends on the labels."""
    if scoring is None:
        graded = (y >= 0).all() and (y == np.rint(y)).all() and y.max(initial=0) < 64
        return named_metric("ndcg@10" if graded and not one_by_one else "pairwise_accuracy")
    if isinstance(scoring, Metric):
        return scoring
    refuse_criterion(scoring)
    if isinstance(scoring, RankingScorer):
        return scoring.metric
    return named_metric(scoring) if isinstance(scoring, str) else get_metric(scoring)


def criterion_of(scoring: object) -> Criterion | None:
    """Return what chooses by itself, where `scoring` is it or its name; None for metrics."""
    if isinstance(scoring, str) and scoring in words_of("scoring"):
        scoring = room_with("scoring", scoring)
    return scoring if isinstance(scoring, Criterion) else None


def refuse_criterion(scoring: object) -> None:
    """Raise a ValueError if a search among models that hold rows out is to choose without."""
    own = criterion_of(scoring)
    if own is not None:
        raise ArgumentError(
            "scoring",
            f"must name a metric of rankings here: {own.name!r} is for RankRLSCV, PairwiseELMCV "
            "and PointwiseELMCV",
        )


def choose(means: Vector, metric: Measure) -> int:
    """Return the index of the first best mean.

    Raises
    ------
    ValueError
        If all means are NaN.
    """
    found = ordered(means, metric)
    best = int(np.argmax(found))
    if found[best] == -np.inf:
        raise ValueError(
            f"scoring={metric.name!r} is undefined for every held-out query: none has what the "
            "metric needs, such as two rows with different labels among those that "
            "are held out together, or every alpha is so small, or C so large, that held-out "
            "scores are rounding error"
        )
    return best


class Tried(NamedTuple):
    """Models of a search along a grid.

    Attributes
    ----------
    judged : Judged
    grid : dict of str to ndarray of shape (n_models,)
        The values of the parameters that form the grid, in the order in which models were judged.
    settings : dict of str to any
        What all models of the grid have in common, by parameter.
    """

    judged: Judged
    grid: Mapping[str, Vector]
    settings: Mapping[str, Any]


class Results(NamedTuple):
    """What a search along several grids tells of all models; `table` is its `cv_results_`.

    Attributes
    ----------
    tried : list of Tried
        Their grids have the same size.
    order : ndarray of shape (n_models,), int64
        For every place of a grid in the caller's order, the place where it was judged.
    metric : Measure
    """

    tried: Sequence[Tried]
    order: Rows
    metric: Measure

    def table(self) -> dict[str, Any]:
        """Return the table of all models, in the caller's order."""
        judged, grids, settings = zip(*self.tried, strict=True)
        order = self.order
        columns = {name: np.concatenate([one[name][order] for one in grids]) for name in grids[0]}
        for name in settings[0]:
            columns[name] = np.repeat(column_of([one[name] for one in settings]), len(order))
        every = join_judged([one.take(order) for one in judged])
        return search_results(columns, every, -ordered(every.means, self.metric))


def choose_among(
    tried: Sequence[Tried], order: Rows, metric: Measure
) -> tuple[int, int, dict[str, Any]]:
    """Return which grid has the best model, its place there, and attributes of the search.

    `order` and `metric` are those of `Results`.
    """
    means = np.concatenate([one.judged.means for one in tried])
    number, at = divmod(choose(means, metric), len(order))
    chosen = tried[number].judged
    kept = [one._replace(judged=one.judged._replace(stored=NOT_STORED)) for one in tried]
    return (
        number,
        at,
        {
            "scoring_": metric,
            "scores_": chosen.means[order],
            "best_score_": float(chosen.means[at]),
            "best_index_": number * len(order) + int(np.argmax(order == at)),
            "_results": Results(kept, order, metric),
            **chosen.stored,
        },
    )


def in_order_of(values: Vector | None, n_values: int) -> Rows:
    """Return the place of every value in ascending order; None stands for values that ascend."""
    if values is None:
        return np.arange(n_values)
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def best_of(means: Vector, metric: Measure) -> int:
    """Return the index of the first best mean, of which one is a number."""
    return int(np.argmax(ordered(means, metric)))


def ordered(means: Vector, metric: Measure) -> Vector:
    """Return numbers of which the largest is the best mean; NaN becomes the smallest."""
    sign = 1 if metric.greater_is_better else -1
    return np.where(np.isnan(means), -np.inf, sign * means)


def _test_rows(data: RankingData, rows: Rows, split: Rows) -> RankingData:
    """Return test rows without X. Different splits have different queries."""
    n_queries = data.queries.n_queries
    queries = Queries.make(len(rows), qid=split * n_queries + data.queries.index()[rows])
    assert queries.ids is not None
    return RankingData(
        np.empty((len(rows), 0)),
        data.y[rows],
        queries,
        None if data.row_weights is None else data.row_weights[rows],
        None if data.query_weights is None else data.query_weights[queries.ids % n_queries],
        offset=None if data.offset is None else data.offset[rows],
    )


def search_results(
    columns: Mapping[str, AnyArray], judged: Judged, lower: Vector
) -> dict[str, Any]:
    """Return the table of a search, with a row for every combination of settings.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        For every parameter, its value in every row.
    judged : Judged
    lower : ndarray of shape (n_rows,)
        Numbers of which the lowest is the best, whose rank is 1.

    Returns
    -------
    dict
        The columns ``params`` (a list of dicts), ``param_…``, ``split…_test_score`` (if there are
        splits), ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    """
    if "feature_map" in columns:  # what a caller fits again must not be that of the model
        maps = {id(one): copy.copy(one) for one in columns["feature_map"]}
        made = column_of([maps[id(one)] for one in columns["feature_map"]])
        columns = {**columns, "feature_map": made}
    names, lists = list(columns), [values.tolist() for values in columns.values()]
    table: dict[str, Any] = {
        "params": [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]
    }
    table |= {f"param_{name}": values for name, values in columns.items()}
    for number, part in enumerate(() if judged.splits is None else judged.splits):
        table[f"split{number}_test_score"] = part
    table["mean_test_score"] = judged.means
    table["std_test_score"] = judged.deviations
    table["rank_test_score"] = np.searchsorted(np.sort(lower), lower) + 1
    return table


def column_of(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return objects as an array of shape (n_values,), even if they are sequences themselves."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def as_list(value: object, name: str) -> list[Any]:
    """Return the settings to choose from as a list; a single setting becomes a list of one."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"{name}: a list of settings to choose from must not be empty")
        return list(value)
    return [value]
