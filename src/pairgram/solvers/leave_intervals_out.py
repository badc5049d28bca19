"""Hold rows whose labels may be censored out of least squares, list by list or in folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import resolve_n_threads
from pairgram._support.parameters import check_flag
from pairgram.data.comparisons import CensoredRows
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.metrics.comparisons import ComparisonMetric, ComparisonScoring, comparison_metric
from pairgram.metrics.metric import MetricSums
from pairgram.model_selection.judge import NOT_STORED, Judged, best_of
from pairgram.model_selection.splits import Splits, default_cv, make_splits
from pairgram.solvers.leave_out import BY_GROUP, PathTies, leave_query_out
from pairgram.solvers.ridge_path import RidgePath

if TYPE_CHECKING:
    from pairgram._support.types import CV
    from pairgram.solvers.formulation import Statistics


@dataclass(frozen=True, eq=False)
class HeldOutIntervals:
    """Holds rows with censored labels out, and judges the pairs that held-out rows form.

    Pairs of n rows are up to n² / 2, so rows are held out and not pairs. The model without some
    rows knows none of their pairs, and is judged by those that they form with each other.

    Attributes
    ----------
    data : CensoredRows
    metric : ComparisonMetric
    way : str
        What is held out together: `BY_GROUP`, every list, or words for the splits.
    splits : tuple of (training rows, test rows), or None
    n_threads : int or None
    store : bool
        Whether to keep the held-out scores of the best model.
    """

    data: CensoredRows
    metric: ComparisonMetric
    way: str
    splits: Splits | None
    n_threads: int | None
    store: bool = False

    @classmethod
    def make(
        cls,
        data: RankingData,
        cv: CV,
        scoring: ComparisonScoring,
        n_threads: int | None,
        store: bool = False,
        *,
        refits: bool = False,
    ) -> HeldOutIntervals:
        """Choose the metric and what is held out.

        Without `cv` it is every list if there are several, and else folds of rows. `refits` says
        that models without some rows are fitted anew, so that None stands for folds.

        Raises
        ------
        ValueError
            If `cv`, `scoring` or `store` is not as described, or if no pair can be judged.
        """
        check_flag("store_held_out", store)
        assert isinstance(data, CensoredRows)
        metric = comparison_metric(scoring, False)
        below, compared = data.labels.pairs_of_rows
        if metric.name == "accuracy" and not below.any():
            raise ValueError(
                f"scoring={metric.name!r} counts no comparison: all are ties: "
                "give scoring='squared_error'"
            )
        n_lists = len(np.unique(data.queries.index()[compared > 0]))
        if cv is None and n_lists > 1 and not refits:
            cv = BY_GROUP
        if cv is None:
            cv = default_cv(data.queries.n_filled, len(data.y))
        if not isinstance(cv, str):
            splits = make_splits(cv, data)
            what = "queries" if isinstance(cv, int) and data.queries.n_filled > 1 else "rows"
            return cls(data, metric, f"{len(splits)} splits of {what}", splits, n_threads, store)
        if cv != BY_GROUP or refits:
            raise ArgumentError(
                "cv",
                "must be a number of folds, a splitter or splits of rows"
                + ("" if refits else f", None, {BY_GROUP!r}")
                + f" for labels of from_intervals, got {cv!r}",
            )
        if n_lists < 2:
            raise ArgumentError(
                "cv", f"{{argument}}={cv!r} needs two queries with comparisons, got {n_lists}"
            )
        return cls(data, metric, cv, None, n_threads, store)

    def of(self, data: RankingData) -> HeldOutIntervals:
        """Return the same, whatever the features of the rows."""
        return self

    def within(self, data: RankingData) -> HeldOutIntervals:
        """Return the same for the same rows in other coordinates."""
        assert isinstance(data, CensoredRows)
        return replace(self, data=data)

    def require(self, settings: PairSettings, n_alphas: int, form: str) -> None:
        """Raise a ValueError if a split has nothing to train on."""
        for number, (train, _) in enumerate(self.splits or ()):
            self.data.require_training_pairs(settings, number, train)

    def n_matrices(self, settings: PairSettings) -> int:
        """Return 0: the problem of comparisons is solved in the primal form."""
        return 0

    def needs_basis(self, settings: PairSettings, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        return self.splits is None

    def refits(self, settings: PairSettings, ridge: RidgePath) -> Splits | None:
        """Return the splits that need one fit each; None if there are none."""
        return self.splits

    def judge_path(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        statistics: Callable[[], Statistics],
        coefs: Callable[[Vector], Vector],
        scores: Vector | None = None,
    ) -> Judged:
        """Judge the models of all ridges; see `HeldOutRows.judge_path`."""
        data, ties = self.data, PathTies.of(self.data, settings, ridge, alphas)
        if scores is None:
            told = data, settings, ridge, ties.alphas, statistics, self.n_threads
            scores = leave_query_out(*told)
        return self.judge_scores(ties.join(scores, self._held_queries(), self.n_threads))

    def judge_splits(self, scores: Vector) -> Judged:
        """Judge models of every split, (n_models, n_test_rows), by the pairs of its test rows."""
        return self.judge_scores(scores)

    def judge_scores(self, scores: Vector) -> Judged:
        """Judge the scores of the held-out rows, (n_models, n_held_out_rows)."""
        tests: list[Any] = [np.arange(len(self.data.y))]
        if self.splits is not None:
            tests = [test for _, test in self.splits]
        sums, begin = [], 0
        for test in tests:
            sums.append(self._sums(test, scores[:, begin : begin + len(test)]))
            begin += len(test)
        whole = reduce(MetricSums.join, sums)
        if np.all(whole.weights == 0):
            raise ValueError(
                f"scoring={self.metric.name!r} has no pair of held-out rows to judge: take fewer "
                "folds, or other splits"
            )
        of_splits, deviations = None, whole.deviations
        if self.splits is not None:
            of_splits = np.array([one.defined for one in sums])
            known = ~np.isnan(of_splits)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.where(known, of_splits, 0.0).sum(axis=0) / known.sum(axis=0)
                squares = np.where(known, of_splits - mean, 0.0) ** 2
                deviations = np.sqrt(squares.sum(axis=0) / known.sum(axis=0))
        judged = Judged(whole.defined, deviations, of_splits, {**NOT_STORED, "cv_": self.way})
        if not self.store or np.isnan(judged.means).all():
            return judged
        best, rows = best_of(judged.means, self.metric), np.concatenate(tests)
        times = np.bincount(rows, minlength=len(self.data.y))
        with np.errstate(invalid="ignore"):  # rows that are never held out have NaN
            held_out = np.bincount(rows, scores[best], minlength=len(times)) / times
        return judged._replace(stored={**judged.stored, "held_out_": held_out})

    def _held_queries(self) -> Queries:
        """Return the lists of all held-out rows, split after split."""
        index, n_lists = self.data.queries.index(), self.data.queries.n_queries
        if self.splits is None:
            return self.data.queries
        ids = [number * n_lists + index[test] for number, (_, test) in enumerate(self.splits)]
        every = np.concatenate(ids)
        return Queries.make(len(every), qid=every)

    def _sums(self, rows: Rows, scores: Vector) -> MetricSums:
        """Return the sums of the metric over the pairs of some rows; a model with NaN has NaN."""
        part, finite = self.data.take(rows), np.asarray(np.isfinite(scores).all(axis=1))
        assert isinstance(part, CensoredRows)
        labels, n_lists = part.labels, part.queries.n_queries
        scores = np.ascontiguousarray(np.where(finite[:, None], scores, 0.0))
        below, compared = labels.pairs_of_rows
        if self.metric.name == "accuracy":
            if part.offset is not None:
                scores = scores + part.offset
            weights = below.astype(np.float64)
            found = labels.pairs.concordant(scores, resolve_n_threads(self.n_threads))
        else:
            weights = compared / 2
            bounds = ((part.low - one, part.high - one) for one in scores)
            found = np.array([labels.pairs.pull(*pair)[1] for pair in bounds])
        n_pairs: Vector = np.bincount(part.queries.index(), weights, n_lists).astype(np.float64)
        counted = n_pairs > 0
        sums = MetricSums.of(found[:, counted] / n_pairs[counted], n_pairs[counted])
        return sums._replace(means=np.where(finite, sums.means, np.nan))
