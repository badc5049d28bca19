"""Judge differences of scores of held-out comparisons, and choose what is held out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.model_selection import KFold

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram.comparisons.comparison_metrics import (
    ComparisonMetric,
    ComparisonScoring,
    comparison_metric,
)
from pairgram.data.dataset import RankingData
from pairgram.metrics.metric import MetricSums
from pairgram.model_selection.judge import NOT_STORED, BaseJudge, Judged, best_of, deviations_of
from pairgram.model_selection.splits import (
    FORWARD,
    N_SPLITS,
    GroupSplits,
    ListedSplits,
    Splits,
    make_splits,
    refuse_validation,
)

if TYPE_CHECKING:
    from pairgram._support.types import CV, Matrix

BY_ITEM, BY_COMPARISON, BY_GROUP = "leave-item-out", "leave-comparison-out", "leave-group-out"
# So many comparisons tell of most columns that they vary in those of several items.
FEW_COMPARISONS = 1000
# Some comparisons, and differences of their scores by all models, (n_models, n_comparisons).
_Kept = list[tuple[Rows, Vector]]
# The word for `cv` that makes folds of items.
BY_FOLDS_OF_ITEMS = "item-folds"


@dataclass(frozen=True, eq=False)
class ComparisonJudge(BaseJudge):
    """Which comparisons of items are held out, and how differences of their scores are judged.

    Attributes
    ----------
    data : RankingData
        The items, with the inputs and the map of the models.
    metric : ComparisonMetric
    splits : sequence of (training comparisons, test comparisons), or None
    validation : RankingData or None
        Other items, whose comparisons are judged.
    way : str
        What is held out together: `BY_ITEM`, `BY_COMPARISON` or `BY_GROUP`, for which there are no
        splits, or words for the splits or the validation set.
    share : float
        The share of its weight with which a comparison is judged each time: 1/2 if it is held out
        with its winner and with its loser.
    """

    metric: ComparisonMetric
    way: str
    share: float = 1.0

    @classmethod
    def make(
        cls,
        items: RankingData,
        cv: CV,
        validation: RankingData | None,
        scoring: ComparisonScoring,
        *,
        exact: bool = True,
        has_probabilities: bool = False,
    ) -> ComparisonJudge:
        """Choose the metric and what is held out.

        Parameters
        ----------
        items : RankingData
            Their columns tell whether they belong to single items.
        cv : None, str, int, splitter or iterable of splits
        validation : RankingData or None
            Other items, whose comparisons are judged instead. `cv` must then be None.
        scoring : str, ComparisonMetric or None
        exact : bool
            Whether what is held out is subtracted from one decomposition. Otherwise models are
            fitted anew, and None stands for folds.
        has_probabilities : bool
            Whether differences of scores are log-odds.

        Raises
        ------
        ValueError
            If `cv` or `scoring` is not as described, or if there is a single comparison.
        """
        preferences = items.preferences
        metric = comparison_metric(scoring, has_probabilities)
        if validation is None and preferences.n_pairs < 2:
            raise ValueError("a search holds comparisons out, so it needs two or more, got 1")
        judged = preferences if validation is None else validation.preferences
        if not (metric.defined(judged.margin) & (judged.w > 0)).any():
            raise ValueError(
                f"scoring={metric.name!r} counts no comparison: all that have weight are ties: "
                "give scoring='squared_error'"
            )
        if validation is not None:
            refuse_validation(cv, True)
            way = "validation set"
            return cls(items, metric, None, validation, way)
        cv = _default_way(items.X, preferences, exact) if cv is None else cv
        if isinstance(cv, str):
            _check_word(cv, preferences, exact)
        if isinstance(cv, str) and cv in (BY_ITEM, BY_COMPARISON, BY_GROUP):
            share = 0.5 if cv == BY_ITEM else 1.0
            return cls(items, metric, None, None, cv, share)
        if isinstance(cv, str) and cv == BY_FOLDS_OF_ITEMS:
            splits: Splits = _folds_of_items(preferences)
            way = f"{len(splits)} folds of items"
            return cls(items, metric, splits, None, way, 0.5)
        rows = _rows_of(preferences)
        if preferences.groups is not None:
            of_queries, _ = rows.queries.groups(preferences.groups)  # in the order of their ids
            rows = replace(rows, group_of=of_queries)
        splits = make_splits(cv, rows)
        what = "groups" if isinstance(splits, GroupSplits) else "comparisons"
        way = f"{len(splits)} splits of {what}"
        return cls(items, metric, splits, None, way)

    @property
    def rows(self) -> RankingData:
        """The comparisons that are split, as rows without features."""
        return _rows_of(self.data.preferences)

    @property
    def n_rows(self) -> int:
        """The number of comparisons that are split."""
        return self.data.preferences.n_pairs

    def scores_of(self, data: RankingData, rows: Rows | slice, coefs: Vector) -> Vector:
        """Return differences of scores of some comparisons of items by linear models."""
        of_items = data.scores(slice(None), coefs)
        return data.preferences.differences(of_items)[:, rows]

    def judge(self, scores: Vector) -> Judged:
        """Judge models by differences of scores, (n_models, n_held_out_comparisons).

        They are those of the test comparisons of all splits, or those of the validation set.
        """
        if self.splits is None:
            return self.judge_parts([(np.arange(scores.shape[1]), scores)], len(scores))
        sums, begin, kept = [], 0, self._kept(len(scores))
        for _, test in self.splits:
            part = scores[:, begin : begin + len(test)]
            begin += len(test)
            sums.append(self._judge_part(kept, test, part))
        whole = reduce(MetricSums.join, sums)
        of_splits = np.array([one.defined for one in sums])
        return self._stored(Judged(whole.defined, deviations_of(of_splits), of_splits), kept)

    def judge_parts(self, parts: Iterable[tuple[Rows, Vector]], n_models: int) -> Judged:
        """Judge parts of comparisons, and differences of scores by models without each part.

        A model that has a NaN among its scores, (n_models, n_comparisons of the part), gets NaN.
        """
        total, known, kept = None, np.ones(n_models, dtype=bool), self._kept(n_models)
        for rows, scores in parts:
            known &= np.isfinite(scores).all(axis=1)
            sums = self._judge_part(kept, rows, scores)
            total = sums if total is None else total.join(sums)
        assert total is not None
        means = np.where(known, total.defined, np.nan)
        return self._stored(Judged(means, total.deviations), kept)

    @property
    def _judged(self) -> RankingData:
        """The items whose comparisons are judged."""
        return self.data if self.validation is None else self.validation

    def _judge_part(self, kept: _Kept | None, rows: Rows, scores: Vector) -> MetricSums:
        """Return the sums of the metric over some comparisons, and keep their scores."""
        preferences, offset = self._judged.preferences, self._judged.offset
        if offset is not None:
            scores = scores + preferences.differences(offset)[rows]
        if kept is not None:
            kept.append((rows, scores))
        margin = preferences.margin[rows]
        values = self.metric.values(margin, scores)
        return self.metric.sums(margin, values, preferences.w[rows] * self.share)

    def _kept(self, n_models: int) -> _Kept | None:
        """Return where scores are kept; None if they would take too much memory."""
        n_bytes = 16 * n_models * self._judged.preferences.n_pairs
        return None if n_bytes > limits.now.path_bytes else []

    def _stored(self, judged: Judged, kept: _Kept | None) -> Judged:
        """Return what was judged, with the held-out scores of the best model if they are kept."""
        judged = judged._replace(stored={**NOT_STORED, "cv_": self.way})
        if kept is None or np.isnan(judged.means).all():
            return judged
        preferences, best = self._judged.preferences, best_of(judged.means, self.metric)
        times, scores, values = np.zeros((3, preferences.n_pairs))
        for rows, of_models in kept:  # a comparison may be held out several times
            margin, own = preferences.margin[rows], of_models[best]
            of_metric = self.metric.values(margin, own)
            np.add.at(times, rows, 1.0)
            np.add.at(scores, rows, own)
            np.add.at(values, rows, np.where(self.metric.defined(margin), of_metric, np.nan))
        with np.errstate(invalid="ignore"):
            scores, values = scores / times, values / times
        numbers = np.arange(len(scores))
        table = {"comparison": numbers, "weight": preferences.w, self.metric.name: values}
        stored = {"held_out_": scores, "per_query_": table}
        return judged._replace(stored={**judged.stored, **stored})


def _rows_of(preferences: Any) -> RankingData:
    """Return comparisons as rows without features, whose queries are the groups."""
    X = np.empty((preferences.n_pairs, 0))
    return RankingData(X, preferences.margin, preferences.queries, preferences.weight)


def _default_way(X: Matrix, preferences: Any, exact: bool) -> str | int:
    """Return what cv=None stands for."""
    if preferences.groups is not None:
        n_groups = preferences.queries.n_queries
        return BY_GROUP if exact else max(2, min(N_SPLITS, n_groups))
    some = preferences.w > 0  # others count as absent
    preferences = type(preferences)(preferences.winner[some], preferences.loser[some])
    if _items_recur(preferences) and not _own_columns(X, preferences):
        if exact:
            return BY_ITEM
        # An item that is in all comparisons leaves none to fit to.
        if all(len(train) for train, _ in _folds_of_items(preferences)):
            return BY_FOLDS_OF_ITEMS
    return BY_COMPARISON if exact else max(2, min(N_SPLITS, preferences.n_pairs))


def _check_word(cv: str, preferences: Any, exact: bool) -> None:
    """Raise a ValueError if a word says nothing, or nothing of these comparisons."""
    words = (BY_ITEM, BY_COMPARISON, BY_GROUP) if exact else ()
    known = (*words, BY_FOLDS_OF_ITEMS, FORWARD)
    if cv not in known:
        raise ArgumentError(
            "cv",
            "must be a number of folds, a splitter or splits of comparisons, None, "
            f"{', '.join(map(repr, known))} for y=Preferences(...), got {cv!r}",
        )
    if cv in (BY_GROUP, FORWARD):
        if preferences.groups is None:
            raise ArgumentError(
                "cv", f"{{argument}}={cv!r} needs the groups: give Preferences(groups=...)"
            )
        if preferences.queries.n_queries < 2:
            raise ArgumentError("cv", f"{{argument}}={cv!r} needs two groups or more, got 1")


def _folds_of_items(preferences: Any) -> ListedSplits:
    """Return splits that hold out all comparisons of every fold of items.

    A comparison is a test comparison once with the fold of its winner and once with that of its
    loser, which may be the same fold.
    """
    winner, loser, counted = preferences.winner, preferences.loser, preferences.w > 0
    items = np.union1d(winner[counted], loser[counted])
    fold_of = np.zeros(max(winner.max(), loser.max()) + 1, dtype=np.int64)
    n_folds = min(N_SPLITS, len(items))
    folds = KFold(n_folds, shuffle=True, random_state=0).split(items)
    for fold, (_, some) in enumerate(folds):
        fold_of[items[some]] = fold
    first, second = fold_of[winner], fold_of[loser]
    return ListedSplits(
        (
            np.flatnonzero((first != fold) & (second != fold)),
            np.concatenate([np.flatnonzero(first == fold), np.flatnonzero(second == fold)]),
        )
        for fold in range(n_folds)
    )


def _items_recur(preferences: Any) -> bool:
    """Tell whether an item is in more than one comparison."""
    items = np.concatenate([preferences.winner, preferences.loser])
    return bool((np.bincount(items) > 1).any())


def _own_columns(X: Matrix, preferences: Any) -> bool:
    """Tell whether half of the items or more have a column that varies in their comparisons alone.

    So it is for ids of items as columns: the model without an item knows nothing of it.
    """
    first, second = preferences.winner, preferences.loser
    rows = scipy.sparse.csr_array(X)  # whose columns become fewer
    owners = np.empty(0, np.int64)
    for end in (FEW_COMPARISONS, len(first)):  # most columns vary in the first of several items
        a, b = first[:end], second[:end]
        varies = (rows[a] - rows[b] != 0).astype(np.int64)
        places = np.concatenate([a, b]), np.tile(np.arange(len(a)), 2)
        shape = rows.shape[0], len(a)
        of_items = scipy.sparse.csr_array((np.ones(len(places[0]), np.int64), places), shape)
        both = (of_items @ varies).tocoo()  # how often a column varies in comparisons of an item
        counts = varies.sum(axis=0)
        is_owner = both.data == counts[both.col]
        owners = np.unique(both.row[is_owner])
        rows = rows[:, (counts == 0) | np.isin(np.arange(len(counts)), both.col[is_owner])]
    return 2 * len(owners) >= len(np.union1d(first, second))
