"""Judge scores of held-out rows whose labels may be censored by the pairs that they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import cached_property
from pairgram._support.parameters import check_flag
from pairgram.data.comparisons import CensoredRows
from pairgram.data.dataset import RankingData
from pairgram.data.preferences import CensoredLabels
from pairgram.data.queries import Queries
from pairgram.metrics.comparisons import (
    ComparisonMetric,
    ComparisonScoring,
    comparison_metric,
    interval_values,
)
from pairgram.metrics.metric import MetricSums
from pairgram.model_selection.comparison_judge import BY_GROUP, ComparisonJudge
from pairgram.model_selection.judge import NOT_STORED, BaseJudge, Judged, best_of, deviations_of
from pairgram.model_selection.splits import held_by_default, make_splits, refuse_validation

if TYPE_CHECKING:
    from pairgram._support.types import CV


@dataclass(frozen=True, eq=False)
class IntervalJudge(BaseJudge):
    """Which rows with censored labels are held out, judged by the pairs that they form.

    n rows form up to n² / 2 pairs, so rows are held out and not pairs. The model without some rows
    knows none of their pairs, and is judged by the pairs that they form with each other.

    Attributes
    ----------
    data : RankingData
        The rows, with the inputs and the map of the models.
    metric : ComparisonMetric
    splits : sequence of (training rows, test rows), or None
    validation : RankingData or None
        Other rows, whose pairs are judged.
    n_threads : int or None
    way : str
        What is held out together: `BY_GROUP`, every list, or words for the splits or the
        validation set.
    store : bool
        Whether to keep the held-out scores of the best model.
    """

    metric: ComparisonMetric
    way: str
    store: bool = False

    @classmethod
    def make(
        cls,
        data: RankingData,
        cv: CV,
        validation: RankingData | None,
        scoring: ComparisonScoring,
        n_threads: int | None,
        store: bool = False,
        *,
        exact: bool = True,
    ) -> IntervalJudge:
        """Choose the metric and what is held out; the parameters are those of `ComparisonJudge`.

        Without `cv` it is every list if there are several, and else folds of rows. Where models
        without some rows are fitted anew, it is folds.

        Raises
        ------
        ValueError
            If `cv`, `scoring` or `store` is not as described, or if no pair can be judged.
        """
        check_flag("store_held_out", store)
        metric = comparison_metric(scoring, False)
        rows = _rows_of(data if validation is None else validation)
        below, compared = rows.labels.pairs_of_rows
        if metric.name == "accuracy" and not below.any():
            raise ValueError(
                f"scoring={metric.name!r} counts no comparison: all are ties: "
                "give scoring='squared_error'"
            )
        if validation is not None:
            refuse_validation(cv, True)
            return cls(data, metric, None, validation, n_threads, "validation set", store)
        n_lists = len(np.unique(rows.queries.index()[compared > 0]))
        if cv is None:
            each = exact and n_lists > 1
            cv = held_by_default(rows.queries.n_filled, len(rows.y), each) or BY_GROUP
        if not isinstance(cv, str):
            splits = make_splits(cv, rows)
            what = "queries" if isinstance(cv, int) and rows.queries.n_filled > 1 else "rows"
            way = f"{len(splits)} splits of {what}"
            return cls(data, metric, splits, None, n_threads, way, store)
        if cv != BY_GROUP or not exact:
            raise ArgumentError(
                "cv",
                "must be a number of folds, a splitter or splits of rows"
                + (f", None, {BY_GROUP!r}" if exact else "")
                + f" for labels of from_intervals, got {cv!r}",
            )
        if n_lists < 2:
            raise ArgumentError(
                "cv", f"{{argument}}={cv!r} needs two queries with comparisons, got {n_lists}"
            )
        return cls(data, metric, None, None, n_threads, cv, store)

    @property
    def rows(self) -> RankingData:
        """The rows that are split, without features."""
        return self._judged if self.validation is None else self.data

    @cached_property
    def _judged(self) -> CensoredRows:
        """The rows whose pairs are judged, without features."""
        return _rows_of(self.data if self.validation is None else self.validation)

    def judge(self, scores: Vector) -> Judged:
        """Judge models by the scores of the held-out rows, (n_models, n_held_out_rows)."""
        tests: list[Any] = [np.arange(len(self._judged.y))]
        if self.splits is not None:
            tests = [test for _, test in self.splits]
        parts, begin = [], 0
        for test in tests:
            parts.append((test, scores[:, begin : begin + len(test)]))
            begin += len(test)
        sums = [self._sums(*part) for part in parts]
        whole = reduce(MetricSums.join, sums)
        if np.all(whole.weights == 0):
            raise ValueError(
                f"scoring={self.metric.name!r} has no pair of held-out rows to judge: take fewer "
                "folds, or other splits"
            )
        of_splits, deviations = None, whole.deviations
        if self.splits is not None:
            of_splits = np.array([one.defined for one in sums])
            deviations = deviations_of(of_splits)
        judged = Judged(whole.defined, deviations, of_splits, {**NOT_STORED, "cv_": self.way})
        if not self.store or np.isnan(judged.means).all():
            return judged
        best, rows = best_of(judged.means, self.metric), np.concatenate(tests)
        given, offset = scores[best], self._judged.offset
        if offset is not None:
            given = given + offset[rows]
        times = np.bincount(rows, minlength=len(self._judged.y))
        with np.errstate(invalid="ignore"):  # rows that are never held out have NaN
            held_out = np.bincount(rows, given, minlength=len(times)) / times
        stored = {"held_out_": held_out, "per_query_": self._table(parts, best)}
        return judged._replace(stored={**judged.stored, **stored})

    def _table(self, parts: Sequence[tuple[Rows, Vector]], best: int) -> dict[str, Any]:
        """Return the metric of one model in every list of the test rows, split after split."""
        lists, values, weights = [], [], []
        for rows, scores in parts:
            found, n_pairs = self._values(rows, scores[best : best + 1])
            lists.append(self._part(rows).labels.lists.ids)
            values.append(found[0])
            weights.append(n_pairs)
        numbers: Rows = np.concatenate(lists)
        ids = self._judged.queries.ids
        return {
            "qid": numbers if ids is None else ids[numbers],
            "weight": np.concatenate(weights).astype(np.float64),
            self.metric.name: np.concatenate(values),
        }

    @property
    def held_queries(self) -> Queries:
        """The lists of all held-out rows, split after split."""
        index, n_lists = self._judged.queries.index(), self._judged.queries.n_queries
        if self.splits is None:
            return self._judged.queries
        ids = [number * n_lists + index[test] for number, (_, test) in enumerate(self.splits)]
        every = np.concatenate(ids)
        return Queries.make(len(every), qid=every)

    def _sums(self, rows: Rows, scores: Vector) -> MetricSums:
        """Return the sums of the metric over the pairs of some rows."""
        values, n_pairs = self._values(rows, scores)
        finite = np.isfinite(scores).all(axis=1)
        sums = MetricSums.of(values, n_pairs)
        return sums._replace(means=np.where(finite, sums.means, np.nan))

    def _values(self, rows: Rows, scores: Vector) -> tuple[Vector, Vector]:
        """Return the metric in every list of some rows, and the numbers of its pairs."""
        part = self._part(rows)
        return interval_values(self.metric, part.labels, part.offset, scores, self.n_threads)

    def _part(self, rows: Rows) -> CensoredRows:
        """Return some of the judged rows; the ids of their lists are the numbers of these."""
        part = self._judged.take(rows)
        assert isinstance(part, CensoredRows)
        return part


def judge_of_comparisons(
    data: RankingData,
    cv: CV,
    validation: RankingData | None,
    scoring: ComparisonScoring,
    n_threads: int | None,
    store: bool,
    *,
    exact: bool,
    has_probabilities: bool = False,
) -> ComparisonJudge | IntervalJudge:
    """Return what holds comparisons out, or rows if their labels may be censored.

    The parameters are those of `ComparisonJudge.make`. Probabilities are of listed comparisons.
    """
    told = data, cv, validation, scoring, n_threads, store
    judged = data if validation is None else validation
    if has_probabilities or not isinstance(judged.preferences, CensoredLabels):
        return ComparisonJudge.make(*told, exact=exact, has_probabilities=has_probabilities)
    return IntervalJudge.make(*told, exact=exact)


def _rows_of(data: RankingData) -> CensoredRows:
    """Return rows with censored labels, without features."""
    assert isinstance(data.preferences, CensoredLabels)
    return CensoredRows.of(np.empty((len(data.y), 0)), data.preferences, data.offset)
