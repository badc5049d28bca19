"""The folds of the queries of a table, and what judges models by rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from pairgram._support.checks import ONE_QUERY, ArgumentError, Rows, Vector, verbatim
from pairgram.data.blocks import Dataset, Task
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries
from pairgram.metrics.evaluation import Scoring
from pairgram.metrics.metric import Metric, MetricSums, check_labels, warn_of_relevant
from pairgram.model_selection.judge import Judge, Judged, deviations_of, metric_of
from pairgram.model_selection.splits import FORWARD, QueryKFold
from pairgram.tables.columns import TableRows, changed
from pairgram.tables.passes import join_by_key
from pairgram.tables.table import Table
from pairgram.tables.table_blocks import Blocks


@dataclass(frozen=True, eq=False)
class Folds:
    """The folds of the queries of a table, which every partition of it knows.

    Attributes
    ----------
    n : int
        The number of folds. Every fold is held out, or only the later ones if `is_forward`.
    places : ndarray of shape (n_parts,), int64, ascending
        The places of first rows of queries, from which on the fold is another one.
    folds : ndarray of shape (n_parts,), int64
    is_forward : bool
        Whether a fold is held out by the model of the folds before it, not by that of all others.
    """

    n: int
    places: Rows
    folds: Rows
    is_forward: bool = False

    @classmethod
    def of(cls, table: Table, cv: object) -> Folds:
        """Return the folds of an int or a `QueryKFold`, which are those of the rows in memory.

        With None, every group is a fold, and so it is with "forward". The survey of the table knows
        where queries begin, and their groups.

        Raises
        ------
        ValueError
            If `cv` is something else, or if there are fewer queries than folds.
        """
        table.require_queries("cv", "needs query ids to make folds of")
        begins, groups = table.survey().begins, table.survey().group_of
        forward = isinstance(cv, str) and cv == FORWARD
        if forward and groups is None:
            raise ArgumentError(
                None,
                f"{{cv={cv!r}}} holds every group out by the model of the groups before it: give "
                "scan the column, as {groups=}",
            )
        if groups is not None and (forward or cv is None):
            folds, n = groups, int(groups.max()) + 1
            if n < 2:
                raise ArgumentError(
                    "groups", "must be two or more, one to fit to and one to hold out"
                )
        elif not isinstance(cv, (QueryKFold, Integral)):
            raise ValueError(
                f"cv must be None, a number of folds >= 2, a QueryKFold or {FORWARD!r} for a "
                f"table, whose rows have no numbers, got {cv!r}"
            )
        else:
            held, what = np.arange(len(begins)), "queries"
            if groups is not None:  # in the order of their first queries
                held, what = Queries.make(len(groups), qid=groups).index(), "groups"
            try:
                splitter = cv if isinstance(cv, QueryKFold) else QueryKFold(cv)
                folds = splitter.fold_of_query(int(held.max()) + 1, what)[held]
            except ValueError as error:
                found = ONE_QUERY if len(begins) == 1 else None
                raise ArgumentError(None, verbatim(f"cv={cv!r}: {error}"), found=found) from error
            n = splitter.n_splits
        first = np.flatnonzero(np.diff(folds, prepend=-1))
        return cls(n, begins[first], folds[first], forward)

    @property
    def first(self) -> int:
        """The first fold that is held out."""
        return int(self.is_forward)

    def trains(self, fold: int, folds: Any) -> Any:
        """Tell whether the model that judges a fold is fitted to other folds."""
        return folds < fold if self.is_forward else folds != fold

    def of_runs(self, rows: TableRows) -> Rows:
        """Return the fold of every query, (n_runs,).

        Raises
        ------
        ValueError
            If a fold does not begin with a query, because the rows have another order than before.
        """
        begins = rows.begins
        known = np.searchsorted(self.places, begins, side="right")
        within = np.searchsorted(self.places, begins + rows.sizes, side="left")
        if (within > known).any():
            raise changed("its rows came in another order than before")
        return self.folds[known - 1]


def parts_of(
    data: RankingData, rows: TableRows, folds: Folds | None
) -> list[tuple[int, RankingData]]:
    """Return (fold, its data) for the data of some rows of a table; fold 0 without folds."""
    if folds is None:
        return [(0, data)]
    fold_of_row = np.repeat(folds.of_runs(rows), rows.sizes)
    present = np.unique(fold_of_row).tolist()
    if len(present) == 1:
        return [(present[0], data)]
    return [(fold, data.take(np.flatnonzero(fold_of_row == fold))) for fold in present]


def outside_fold(folds: Folds, fold: int, rows: TableRows) -> Vector:
    """Return how often rows of a table count where one fold is held out."""
    known = folds.trains(fold, folds.of_runs(rows))
    return np.repeat(known, rows.sizes).astype(np.float64)


# What returns the scores of the rows of a judge by models that have not seen them,
# (n_models, n_rows), given the number of their fold among those that are held out; and the number
# of what makes rows of the table into the data of the models.
HeldOutModels = tuple[Callable[[Judge, int], Vector], int]


def linear_scores(coefs: Sequence[Vector], judge: Judge, fold: int) -> Vector:
    """Return the scores of the rows of a judge by linear models, (n_models, n_features).

    There are some for every fold that is held out, the last of which are those of the last fold.
    """
    scores = judge.data.scores(slice(None), coefs[fold])
    return judge.shared(scores)


@dataclass(frozen=True, eq=False)
class TableJudge:
    """Which rows of a table are held out, and how their scores are judged; see `Judge`.

    Attributes
    ----------
    held : Table
        The validation table, or the table of `fit` itself.
    metric : Metric
    folds : Folds or None
        None if there is a validation table, or if every query is held out in turn.
    leaves_out : bool
        Whether every query, or every group, is held out in turn. All rows then scale the features.
    """

    held: Table
    metric: Metric
    folds: Folds | None
    leaves_out: bool = False
    splits: ClassVar[None] = None  # as lists of rows, which a table has not

    def counts(self) -> list[Callable[[TableRows], Vector]]:
        """Return how often every split trains on each row of some rows."""
        folds = self.folds
        if folds is None:
            return []
        return [partial(outside_fold, folds, fold) for fold in range(folds.first, folds.n)]

    def judge_models(
        self,
        data: Dataset[RankingData],
        scored: Sequence[Dataset[RankingData]],
        coefs: Sequence[Vector],
    ) -> Judged:
        """Judge the models of every one of `counts`, or those of all rows, in one pass."""
        assert isinstance(data, Blocks)
        (found,) = self.judge([data.step], [(partial(linear_scores, coefs), 0)])
        return found

    def judge(
        self,
        readers: Sequence[Callable[[TableRows], RankingData]],
        candidates: Sequence[HeldOutModels],
    ) -> list[Judged]:
        """Judge the models of all candidates by rows that they have not seen, in one pass."""
        block = partial(_sums, readers, candidates, self.metric, self.folds)
        found = self.held.reduce(Task(block, join_by_key))
        judged = []
        for at in range(len(candidates)):
            own = {fold: found[number, fold] for number, fold in sorted(found) if number == at}
            whole, splits = reduce(MetricSums.join, own.values()), None
            deviations = whole.deviations
            if self.folds is not None:
                splits = np.full((self.folds.n - self.folds.first, len(whole.means)), np.nan)
                splits[[*own]] = [sums.defined for sums in own.values()]
                deviations = deviations_of(splits)
            judged.append(Judged(whole.defined, deviations, splits))
        return judged


def _sums(
    readers: Sequence[Callable[[TableRows], RankingData]],
    candidates: Sequence[HeldOutModels],
    metric: Metric,
    folds: Folds | None,
    rows: TableRows,
) -> dict[tuple[int, int], MetricSums]:
    """Return the sums of the metric over some whole queries, for every candidate and fold."""
    found = {}
    for number, reader in enumerate(readers):
        mine = [at for at, (_, own) in enumerate(candidates) if own == number]
        for number_of_fold, data in parts_of(reader(rows), rows, folds) if mine else ():
            fold = number_of_fold - (0 if folds is None else folds.first)
            if fold < 0:
                continue  # no model was fitted to groups before
            judge = Judge(data, metric, None, data, data)
            for at in mine:
                found[at, fold] = judge.sums(candidates[at][0](judge, fold))
    return found


def checked_metrics(metrics: Sequence[Metric], table: Table) -> list[Metric]:
    """Return metrics that have the same meaning in every block of a table.

    Raises
    ------
    ValueError
        If a metric does not take the labels of the table.
    """
    for metric in metrics:
        if metric.clip:
            raise ValueError(
                f"{metric!r} must have no clip for a table, whose clicks are divided by "
                "propensities as they are read: give rows in memory, or leave the clip out"
            )
    survey = table.survey()
    try:
        check_labels(metrics, survey.labels)
    except ArgumentError as error:  # it names a row of these few labels
        error.row, error.place = None, "the table"
        raise
    lowest, highest = survey.labels.min(), survey.labels.max()
    warn_of_relevant(metrics, lowest, highest, sum(table.n_rows()))
    return [
        replace(metric, max_grade=highest)
        if metric.family == "err" and metric.max_grade is None
        else metric
        for metric in metrics
    ]


def table_metric(table: Table, scoring: Scoring) -> Metric:
    """Return the metric that judges, by the range of the labels alone.

    Raises
    ------
    ValueError
        If the metric does not take the labels. The message names ``scoring``.
    """
    metric = metric_of(scoring, table.survey().labels, False)
    try:
        return checked_metrics([metric], table)[0]
    except ValueError as error:
        raise ValueError(f"scoring={metric.name!r}: {error}") from None
