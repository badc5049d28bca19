"""Hold comparisons out of least squares: one by one, or all of an item, a group or a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._support.arrays import blocks
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import deadline, resolve_n_threads, single_threaded_blas
from pairgram._support.parameters import check_flag
from pairgram.data.comparisons import ComparedRows
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.preferences import Preferences
from pairgram.data.queries import Queries
from pairgram.metrics.comparisons import (
    ComparisonMetric,
    ComparisonScoring,
    comparison_metric,
)
from pairgram.metrics.metric import MetricSums
from pairgram.model_selection.judge import NOT_STORED, Judged, best_of
from pairgram.model_selection.splits import N_SPLITS, Splits, make_splits
from pairgram.solvers.leave_out import (
    LARGEST_HELD,
    PathTies,
    leave_query_out,
    scores_in_primal,
)
from pairgram.solvers.leave_out_dual import SMALLEST_PIVOT
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath
from pairgram.tables.blocks import Dataset

if TYPE_CHECKING:
    from pairgram._support.types import CV, Matrix
    from pairgram.solvers.formulation import Statistics

BY_ITEM, BY_COMPARISON, BY_GROUP = "leave-item-out", "leave-comparison-out", "leave-group-out"
# Holding rows out takes so many times the flops of their product with the basis, for each alpha.
FLOPS_OF_ROWS = 20.0
# Comparisons are judged in blocks of this many scores.
BLOCK_SCORES = 1 << 20


@dataclass(frozen=True, eq=False)
class HeldOutComparisons:
    """Holds comparisons out, and judges the differences of their scores.

    Attributes
    ----------
    data : ComparedRows
        The comparisons as rows of a regression.
    preferences : Preferences
    metric : ComparisonMetric
    way : str
        What is held out together: `BY_ITEM`, `BY_COMPARISON`, `BY_GROUP`, or words for the splits.
    splits : tuple of (training comparisons, test comparisons), or None
    n_threads : int or None
    store : bool
        Whether to keep the held-out scores of the best model.
    """

    data: ComparedRows
    preferences: Preferences
    metric: ComparisonMetric
    way: str
    splits: Splits | None
    n_threads: int | None
    store: bool = False

    @classmethod
    def make(
        cls,
        data: RankingData,
        X: Matrix,
        preferences: Preferences,
        cv: CV,
        scoring: ComparisonScoring,
        n_threads: int | None,
        store: bool = False,
        *,
        refits: bool = False,
        has_probabilities: bool = False,
    ) -> HeldOutComparisons:
        """Choose the metric and what is held out.

        Parameters
        ----------
        data : RankingData
            The comparisons as rows of a regression.
        X : array or CSR matrix of shape (n_items, n_columns)
            The items, which tell whether columns belong to single ones.
        preferences : Preferences
        cv : None, str, int, splitter or iterable of splits
        scoring : str, ComparisonMetric or None
        n_threads : int or None
        store : bool
        refits : bool
            Whether models without some comparisons are fitted anew, so that None stands for folds.
        has_probabilities : bool
            Whether differences of scores are log-odds.

        Raises
        ------
        ValueError
            If `cv`, `scoring` or `store` is not as described, or if there is a single comparison.
        """
        check_flag("store_held_out", store)
        assert isinstance(data, ComparedRows)
        metric = comparison_metric(scoring, has_probabilities)
        if preferences.n_pairs < 2:
            raise ValueError("a search holds comparisons out, so it needs two or more, got 1")
        if not (metric.defined(preferences.margin) & (preferences.w > 0)).any():
            raise ValueError(
                f"scoring={metric.name!r} counts no comparison: all that have weight are ties: "
                "give scoring='squared_error'"
            )
        has_groups = preferences.groups is not None
        if cv is None and refits:
            n_parts = preferences.queries.n_queries if has_groups else preferences.n_pairs
            cv = max(2, min(N_SPLITS, n_parts))
        if cv is None:
            cv = BY_GROUP if has_groups else BY_COMPARISON
            if not has_groups and _items_recur(preferences) and not _own_columns(X, preferences):
                cv = BY_ITEM
        if not isinstance(cv, str):
            splits = make_splits(cv, data)
            what = "groups" if has_groups and isinstance(cv, int) else "comparisons"
            way = f"{len(splits)} splits of {what}"
            return cls(data, preferences, metric, way, splits, n_threads, store)
        known = (BY_ITEM, BY_COMPARISON, BY_GROUP)
        if cv not in known or refits:
            raise ArgumentError(
                "cv",
                "must be a number of folds, a splitter or splits of comparisons"
                + ("" if refits else ", None, " + ", ".join(map(repr, known)))
                + f" for y=Preferences(...), got {cv!r}",
            )
        if cv == BY_GROUP:
            if not has_groups:
                raise ArgumentError(
                    "cv", f"{{argument}}={cv!r} needs the groups: give Preferences(groups=...)"
                )
            if preferences.queries.n_queries < 2:
                raise ArgumentError("cv", f"{{argument}}={cv!r} needs two groups or more, got 1")
        return cls(data, preferences, metric, cv, None, n_threads, store)

    def of(self, data: RankingData) -> HeldOutComparisons:
        """Return the same, whatever the features of the items."""
        return self

    def within(self, data: RankingData) -> HeldOutComparisons:
        """Return the same for the same comparisons in other coordinates."""
        assert isinstance(data, ComparedRows)
        return replace(self, data=data)

    def require(self, settings: PairSettings, n_alphas: int, form: str) -> float:
        """Raise a ValueError if a split has nothing to train on, or return 0 seconds."""
        for number, (train, _) in enumerate(self.splits or ()):
            self.data.require_training_pairs(settings, number, train)
        return 0.0

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
        ties = PathTies.of(self.data, settings, ridge, alphas)
        if scores is not None:
            return self.judge_splits(ties.join_differences(scores))
        alphas = ties.alphas
        if self.way == BY_COMPARISON:
            return self._judge(ties, _one_by_one(self.data, ridge, alphas))
        if self.way == BY_GROUP:
            found = leave_query_out(self.data, settings, ridge, alphas, statistics, self.n_threads)
            return self._judge(ties, _in_blocks(found))
        return self._judge(ties, self._by_item(settings, ridge, alphas), 2)

    def counts(self) -> list[Vector]:
        """Return how often every split trains on each comparison."""
        n_pairs = self.preferences.n_pairs
        return [
            np.bincount(train, minlength=n_pairs).astype(np.float64)
            for train, _ in self.splits or ()
        ]

    def judge_models(
        self,
        data: Dataset[RankingData],
        scored: Sequence[Dataset[RankingData]],
        coefs: Sequence[Vector],
    ) -> Judged:
        """Judge the models of every one of `counts`; see `Judge.judge_models`."""
        parts = []
        for (_, test), coef, own in zip(self.splits or (), coefs, scored, strict=True):
            (items,) = own.each(lambda block: block)
            of_items = items.scores(slice(None), coef, self.n_threads)
            parts.append(self.preferences.differences(of_items)[:, test])
        return self.judge_splits(np.hstack(parts))

    def judge_splits(self, scores: Vector) -> Judged:
        """Judge models of every split, (n_models, n_test_comparisons), by its test comparisons."""
        assert self.splits is not None
        sums, begin, kept = [], 0, self._kept(len(scores))
        for _, test in self.splits:
            part = scores[:, begin : begin + len(test)]
            begin += len(test)
            sums.append(self._judge_part(kept, test, part))
        whole = reduce(MetricSums.join, sums)
        of_splits = np.array([one.defined for one in sums])
        known = ~np.isnan(of_splits)
        with np.errstate(invalid="ignore", divide="ignore"):
            n_known = known.sum(axis=0)
            mean = np.where(known, of_splits, 0.0).sum(axis=0) / n_known
            squares = np.where(known, of_splits - mean, 0.0) ** 2
            deviations = np.sqrt(squares.sum(axis=0) / n_known)
        return self._stored(Judged(whole.defined, deviations, of_splits), kept)

    def _judge_part(
        self, kept: _Kept, rows: Rows, scores: Vector, share: float = 1.0
    ) -> MetricSums:
        """Return the sums of the metric over some comparisons, and keep what is stored."""
        if self.data.offset is not None:
            scores = scores + self.data.offset[rows]
        margin = self.preferences.margin[rows]
        values = self.metric.values(margin, scores)
        if self.store:
            kept.add(rows, scores, np.where(self.metric.defined(margin), values, np.nan))
        return self.metric.sums(margin, values, self.preferences.w[rows] * share)

    def _kept(self, n_models: int) -> _Kept:
        n_kept = self.preferences.n_pairs if self.store else 0
        shape = n_models, n_kept
        return _Kept(np.zeros(shape), np.zeros(shape), np.zeros(n_kept))

    def _judge(
        self, ties: PathTies, parts: Iterator[tuple[Rows, Vector]], n_times: int = 1
    ) -> Judged:
        """Judge parts of comparisons and their scores, (n_models, n_comparisons of the part).

        The models are those at the ridges of `ties`. Every comparison is there `n_times`. A model
        that has a NaN among its scores gets NaN.
        """
        n_models = len(ties.alphas) - ties.n_added
        total, known, kept = None, np.ones(n_models, dtype=bool), self._kept(n_models)
        for rows, of_ridges in parts:
            scores = ties.join_differences(of_ridges)
            known &= np.isfinite(scores).all(axis=1)
            sums = self._judge_part(kept, rows, scores, 1 / n_times)
            total = sums if total is None else total.join(sums)
        assert total is not None
        means = np.where(known, total.defined, np.nan)
        return self._stored(Judged(means, total.deviations), kept)

    def _stored(self, judged: Judged, kept: _Kept) -> Judged:
        """Return what was judged, with the held-out scores of the best model if they are kept."""
        judged = judged._replace(stored={**NOT_STORED, "cv_": self.way})
        if not self.store or np.isnan(judged.means).all():
            return judged
        best = best_of(judged.means, self.metric)
        with np.errstate(invalid="ignore"):
            scores, values = kept.scores[best] / kept.times, kept.values[best] / kept.times
        table = {"comparison": np.arange(len(scores)), self.metric.name: values}
        stored = {"held_out_": scores, "per_query_": table}
        return judged._replace(stored={**judged.stored, **stored})

    def _by_item(
        self, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> Iterator[tuple[Any, Vector]]:
        """Yield comparisons and their scores by models without the winner, and without the loser.

        The comparisons of an item are subtracted from the statistics. Every comparison stands in a
        list of those of its winner and in one of those of its loser.
        """
        data = self.data
        pairs, threads = data.comparisons, resolve_n_threads(self.n_threads)
        offsets, numbers = pairs.offsets(), pairs.pairs()
        eigen, most = ridge.eigen, max(1, BLOCK_SCORES // len(alphas))
        rank, n_items = len(eigen.eigenvalues), len(offsets) - 1
        of_items = n_items * rank * (2 * rank + 4 * len(alphas))
        downdates = of_items < FLOPS_OF_ROWS * len(numbers) * len(alphas)
        with single_threaded_blas:
            in_basis = np.ascontiguousarray(data.X.H @ eigen.basis)
        rotated = replace(data, X=replace(data.X, H=in_basis), is_cut=False)
        own_basis = RidgePath(replace(eigen, basis=np.eye(rank)))
        first = 0
        while first < n_items:
            last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
            last = max(last, first + 1)
            bounds = offsets[first : last + 1] - offsets[first]
            rows = numbers[offsets[first] : offsets[last]]
            if downdates:
                with single_threaded_blas:
                    scores, held = pairs.leave_items_out(
                        in_basis,
                        data.target(settings),
                        eigenvalues=eigen.eigenvalues,
                        projection=eigen.projection,
                        alphas=alphas,
                        first=first,
                        last=last,
                        n_threads=threads,
                    )
            else:
                part = replace(rotated.take(rows), queries=Queries(bounds))
                of_rows = np.zeros(len(rows))
                scores = scores_in_primal(part, settings, own_basis, alphas, threads, of_rows)
                held = np.zeros(last - first)
                filled = bounds[:-1] < bounds[1:]
                held[filled] = of_rows[bounds[:-1][filled]]
            for item in np.flatnonzero(held > LARGEST_HELD * alphas[-1]).tolist():
                own = slice(bounds[item], bounds[item + 1])
                self._refit(settings, ridge, alphas, rows[own], held[item], scores[:, own])
            yield rows, scores
            first = last

    def _refit(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        test: Rows,
        held: float,
        scores: Vector,
    ) -> None:
        """Write the scores of an item that holds a large direction, by models without it."""
        lost = alphas * LARGEST_HELD < held
        train = np.setdiff1d(np.arange(len(self.data.y)), test)
        rest = PairSums.of(self.data.take(train), settings, self.n_threads, may_vanish=True)
        coefs = rest.path_at(ridge.factor).coef(alphas[lost])
        scores[lost] = self.data.scores(test, coefs, self.n_threads)


class _Kept(NamedTuple):
    """Sums of what was held out of every comparison; of none if nothing is stored.

    Attributes
    ----------
    scores, values : ndarray of shape (n_models, n_pairs) or (n_models, 0)
    times : ndarray of shape (n_pairs,) or (0,)
        How often each was held out.
    """

    scores: Vector
    values: Vector
    times: Vector

    def add(self, rows: Rows, scores: Vector, values: Vector) -> None:
        """Add scores and values of some comparisons, which may repeat."""
        np.add.at(self.times, rows, 1.0)
        for whole, part in ((self.scores, scores), (self.values, values)):
            for of_model, own in zip(whole, part, strict=True):
                np.add.at(of_model, rows, own)


def _in_blocks(scores: Vector) -> Iterator[tuple[Any, Vector]]:
    """Cut scores, (n_models, n_comparisons), into blocks that a cache holds."""
    for rows in blocks(scores.shape[1], max(1, BLOCK_SCORES // len(scores))):
        yield np.arange(rows.start, rows.stop), scores[:, rows]


def _one_by_one(
    data: ComparedRows, ridge: RidgePath, alphas: Vector
) -> Iterator[tuple[Any, Vector]]:
    """Yield comparisons and their scores by the models without them.

    The score is ``(f − h m) / (1 − h)`` with the fit f of all, the margin m, and the leverage
    ``h = w zᵀ (Λ + alpha)⁻¹ z`` of the difference z in the eigenbasis. It is NaN where it would be
    rounding error.
    """
    eigen = ridge.eigen
    inverse = 1 / (eigen.eigenvalues[:, None] + alphas)
    weights, targets = data.v, data.target(PairSettings(None))
    with single_threaded_blas:
        in_basis = data.X.H @ eigen.basis
        fits = in_basis @ (eigen.projection[:, None] * inverse)
        first, second = data.X.first, data.X.second
        for rows in blocks(len(targets), max(1, BLOCK_SCORES // (8 * len(alphas)))):
            deadline().require()
            z = in_basis[first[rows]] - in_basis[second[rows]]
            fit = fits[first[rows]] - fits[second[rows]]
            own = weights[rows, None] * (np.square(z, out=z) @ inverse)
            fit -= own * targets[rows, None]
            np.subtract(1.0, own, out=own)
            own[own < SMALLEST_PIVOT] = np.nan
            fit /= own
            yield np.arange(rows.start, rows.stop), np.ascontiguousarray(fit.T)


def _items_recur(preferences: Preferences) -> bool:
    """Tell whether an item is in more than one comparison."""
    items = np.concatenate([preferences.winner, preferences.loser])
    return bool((np.bincount(items) > 1).any())


def _own_columns(X: Matrix, preferences: Preferences) -> bool:
    """Tell whether half of the items or more have a column that varies in their comparisons alone.

    So it is for ids of items as columns: the model without an item knows nothing of it.
    """
    first, second = preferences.winner, preferences.loser
    # The two items of the first comparison in which a column varies, as long as they are in all
    # such comparisons; -1 before the first, and -2 for another.
    owners = np.full((2, X.shape[1]), -1, dtype=np.int64)
    begin, step = 0, 64
    while begin < len(first) and (owners != -2).any():
        a, b = first[begin : begin + step], second[begin : begin + step]
        rows, columns = _varying(X[a] - X[b], (owners != -2).any(axis=0))
        a, b = a[rows], b[rows]
        fresh, at = np.unique(columns, return_index=True)
        at, fresh = at[owners[0, fresh] == -1], fresh[owners[0, fresh] == -1]
        owners[0, fresh], owners[1, fresh] = a[at], b[at]
        for of in owners:
            of[columns[(a != of[columns]) & (b != of[columns])]] = -2
        begin, step = begin + step, 2 * step
    own = np.unique(owners[owners >= 0])
    return 2 * len(own) >= len(np.union1d(first, second))


def _varying(X: Matrix, asked: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Return the rows and the columns of the entries other than 0 in the columns asked for."""
    if scipy.sparse.issparse(X):
        entries: Any = X.tocoo()
        kept = asked[entries.col] & (entries.data != 0)
        return entries.row[kept], entries.col[kept]
    numbers = np.flatnonzero(asked)
    rows, columns = np.nonzero(X[:, numbers])
    return rows, numbers[columns]
