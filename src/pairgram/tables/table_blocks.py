"""The blocks of a table as data, the folds of its queries, and what judges models by rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np

from pairgram._support.checks import ONE_QUERY, ArgumentError, Rows, Vector, verbatim
from pairgram._support.machine import single_threaded_blas
from pairgram.data.blocks import Dataset, Task
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries
from pairgram.features.inputs import prepared_as
from pairgram.metrics.evaluation import Scoring
from pairgram.metrics.metric import Metric, MetricSums, check_labels, warn_of_relevant
from pairgram.model_selection.judge import Judge, Judged, deviations_of, metric_of
from pairgram.model_selection.splits import QueryKFold
from pairgram.tables.columns import TableRows, changed
from pairgram.tables.passes import join_by_key
from pairgram.tables.table import Table

B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S")


def one_row(table: Table) -> RankingData:
    """Return data of the shape and type of a table, without reading it: one row of zeros."""
    X = np.zeros((1, table.n_features), table.layout.dtype)
    return RankingData.delimit(X, np.zeros(1))


def data_of_block(
    pattern: RankingData, prior: Callable[[Any, RankingData], Vector] | None, rows: TableRows
) -> RankingData:
    """Return the data of some rows of whole queries. Errors name features, not rows.

    Parameters
    ----------
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    prior : callable or None
        Returns the scores of a prior for rows: see `Prior.scores`.
    rows : TableRows
        With labels. Without features, the data have neither these nor the scores of the prior.
    """
    assert rows.y is not None
    X, weights = rows.X, rows.weights
    if X is None:  # a pass that does not read the features
        X, pattern = np.empty((rows.n_rows, 0)), replace(pattern, feature_map=None, applied=None)
    if weights is not None:
        weights = np.where(weights < np.finfo(np.float64).tiny, 0.0, weights)
    queries = Queries.of_sizes(rows.sizes, rows.ids)
    data = replace(pattern, X=X, y=rows.y, queries=queries, row_weights=weights, offset=None)
    data = prepared_as(data, pattern)
    if prior is None or rows.X is None:
        return data
    return data.plus_offset(prior(X, data))


@dataclass(frozen=True, eq=False)
class Blocks(Dataset[B]):
    """The blocks of a table.

    Attributes
    ----------
    table : Table
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    step : callable
        Makes rows of the table into a block.
    """

    table: Table
    pattern: RankingData
    step: Callable[[TableRows], Any]
    is_read = True

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.table.n_rows())

    @property
    def labels(self) -> Vector:
        """A few labels, the lowest and the highest among them."""
        return self.table.survey().labels

    def reduce(self, task: Task[S]) -> S:
        """Return what a task makes of all blocks, which are read once."""
        block = partial(_in_turn, self.step, task.block)
        return self.table.reduce(task._replace(block=block, needs_queries=True))

    def each(self, function: Callable[[B], S]) -> Iterator[S]:
        """Yield what a function makes of every batch of rows, which may cut queries."""
        return self.table.each(partial(_in_turn, self.step, function))

    def through(self, prepare: Callable[[B], C]) -> Blocks[C]:
        """Return the data set of what a function makes of every block, whenever it is read."""
        return Blocks(self.table, self.pattern, partial(_in_turn, self.step, prepare))

    def counting(self, counts: Callable[[TableRows], Vector]) -> Blocks[B]:
        """Return the data set whose row weights are multiplied by counts of the table's rows."""
        return replace(self, step=lambda rows: self.step(rows).counting(counts(rows)))


def _in_turn(first: Callable[[Any], Any], then: Callable[[Any], S], rows: object) -> S:
    """Return what a function makes of what another one makes of rows."""
    prepared = first(rows)
    with single_threaded_blas:
        return then(prepared)


@dataclass(frozen=True, eq=False)
class TableFolds:
    """The folds of the queries of a table, which every partition of it knows.

    Attributes
    ----------
    n : int
        The number of folds.
    places : ndarray of shape (n_parts,), int64, ascending
        The places of first rows of queries, from which on the fold is another one.
    folds : ndarray of shape (n_parts,), int64
    """

    n: int
    places: Rows
    folds: Rows

    @classmethod
    def of(cls, table: Table, cv: object) -> TableFolds:
        """Return the folds of an int or a `QueryKFold`, which are those of the rows in memory.

        The survey of the table knows where queries begin.

        Raises
        ------
        ValueError
            If `cv` is something else, or if there are fewer queries than folds.
        """
        table.require_queries("cv", "needs query ids to make folds of")
        if not isinstance(cv, (QueryKFold, Integral)):
            raise ValueError(
                "cv must be None, a number of folds >= 2 or a QueryKFold for a table, whose rows "
                f"have no numbers, got {cv!r}"
            )
        begins = table.survey().begins
        try:
            splitter = cv if isinstance(cv, QueryKFold) else QueryKFold(cv)
            folds = splitter.fold_of_query(len(begins), "queries")
        except ValueError as error:
            found = ONE_QUERY if len(begins) == 1 else None
            raise ArgumentError(None, verbatim(f"cv={cv!r}: {error}"), found=found) from error
        first = np.flatnonzero(np.diff(folds, prepend=-1))
        return cls(splitter.n_splits, begins[first], folds[first])

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
    data: RankingData, rows: TableRows, folds: TableFolds | None
) -> list[tuple[int, RankingData]]:
    """Return (fold, its data) for the data of some rows of a table; fold 0 without folds."""
    if folds is None:
        return [(0, data)]
    fold_of_row = np.repeat(folds.of_runs(rows), rows.sizes)
    present = np.unique(fold_of_row).tolist()
    if len(present) == 1:
        return [(present[0], data)]
    return [(fold, data.take(np.flatnonzero(fold_of_row == fold))) for fold in present]


def outside_fold(folds: TableFolds, fold: int, rows: TableRows) -> Vector:
    """Return how often rows of a table count where one fold is held out."""
    return np.repeat(folds.of_runs(rows) != fold, rows.sizes).astype(np.float64)


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
    folds : TableFolds or None
        None if there is a validation table, or if every query is held out in turn.
    leaves_out : bool
        Whether every query is held out in turn. All rows then scale the features.
    """

    held: Table
    metric: Metric
    folds: TableFolds | None
    leaves_out: bool = False
    splits: ClassVar[None] = None  # as lists of rows, which a table has not

    def counts(self) -> list[Callable[[TableRows], Vector]]:
        """Return how often every split trains on each row of some rows."""
        folds = self.folds
        if folds is None:
            return []
        return [partial(outside_fold, folds, fold) for fold in range(folds.n)]

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
                splits = np.full((self.folds.n, len(whole.means)), np.nan)
                splits[[*own]] = [sums.defined for sums in own.values()]
                deviations = deviations_of(splits)
            judged.append(Judged(whole.defined, deviations, splits))
        return judged


def _sums(
    readers: Sequence[Callable[[TableRows], RankingData]],
    candidates: Sequence[HeldOutModels],
    metric: Metric,
    folds: TableFolds | None,
    rows: TableRows,
) -> dict[tuple[int, int], MetricSums]:
    """Return the sums of the metric over some whole queries, for every candidate and fold."""
    found = {}
    for number, reader in enumerate(readers):
        mine = [at for at, (_, own) in enumerate(candidates) if own == number]
        for fold, data in parts_of(reader(rows), rows, folds) if mine else ():
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
