"""Judge models by rows of a table that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import ClassVar

import numpy as np

from pairgram._support.checks import ArgumentError, Vector
from pairgram.data.blocks import Dataset, Task
from pairgram.data.dataset import RankingData
from pairgram.metrics.evaluation import Scoring
from pairgram.metrics.metric import Metric, MetricSums, check_labels, warn_of_relevant
from pairgram.model_selection.judge import Judge, Judged, deviations_of, metric_of
from pairgram.tables.blocks import Blocks
from pairgram.tables.columns import TableRows
from pairgram.tables.folds import Folds, OutsideFold, parts_of
from pairgram.tables.passes import join_by_key
from pairgram.tables.table import Table

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

    def counts(self) -> list[OutsideFold]:
        """Return how often every split trains on each row of some rows."""
        folds = self.folds
        return [] if folds is None else [OutsideFold(folds, k) for k in range(folds.first, folds.n)]

    def judge_models(
        self,
        data: Dataset[RankingData],
        scored: Sequence[Dataset[RankingData]],
        coefs: Sequence[Vector],
    ) -> Judged:
        """Judge the models of every one of `counts`, or those of all rows, in one pass."""
        assert isinstance(data, Blocks)
        (found,) = self.judge(data.steps[:1], [(partial(linear_scores, coefs), 0)])
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
            judge = Judge.of_rows(data, metric)
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
    warn_of_relevant(metrics, survey.lowest, survey.highest, survey.n_rows)
    return [
        replace(metric, max_grade=survey.highest)
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
