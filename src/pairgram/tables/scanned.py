"""`ScannedTable`: a table as the core asks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import add
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairgram._support import limits
from pairgram._support.arrays import judged
from pairgram.data.blocks import Task
from pairgram.data.dataset import RankingData
from pairgram.data.hashed_ids import QueryIds
from pairgram.data.queries import Queries, warn_of_missing_queries
from pairgram.data.streams import Stream
from pairgram.metrics.metric import Metric, MetricSums, per_query_scores
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.pairgram import Pairgram
from pairgram.tables.columns import TableRows
from pairgram.tables.fits import GivenTable
from pairgram.tables.table import Table, no_rows
from pairgram.tables.table_blocks import checked_metrics, data_of_block, one_row


class ScannedTable(Table, Stream):
    """A table of `scan`, which answers what the core asks of a `Stream`."""

    def fitted(self, model: Any, spec: Any, validation: Any) -> dict[str, Any]:
        """Return the attributes of a ranker that is fitted to the rows."""
        given = GivenTable(model, self, spec.rows)
        return given.with_told(given.spec_of(spec).fit_stream(given, validation))

    def scored(self, model: Any, keep: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
        """Return batches of scores by a fitted model, and of the columns that are kept."""
        check_is_fitted(model)
        table, model = self.for_model(model)
        return table.for_scores(keep).each(lambda rows: (model.predict(rows.X), rows.kept))

    def scores(self, model: Any) -> Any:
        """Return the scores of the rows by a fitted model, in their order."""
        found = [scores for scores, _ in self.scored(model)]
        if not found:
            raise no_rows()
        return np.concatenate(found)

    def statistics(self, total: Any) -> Any:
        """Return statistics with the rows added, in one pass over their features."""
        settings = total.settings
        if self.is_of_clicks:
            settings.require_clicks()
        self.require_labels("Pairgram")
        if not (settings.joins_all_rows or settings.kind is None):
            otherwise = ", or give the statistics scope='global'"
            self.require_queries(None, "Pairgram compares rows within queries", otherwise)
        total._require_names(self.feature_names)
        self.survey()
        fill = total._fill_of(self.n_features, is_sparse=False)
        table = self if fill is None else self.filling(fill)
        first, feature_map = total._total.sums is None, total._total.feature_map
        if feature_map is not None and first:
            rows = table.sample(limits.now.sample_rows).rows.X
            feature_map = total._total.fitted_map(rows, table.feature_names)
        empty = total._of(
            PairSums(settings, feature_map, table.feature_names, fill=fill),
            QueryIds.of(total.ids),
        )
        pattern = replace(one_row(table), feature_map=feature_map)
        block, needs_queries = partial(_added, empty, pattern), not settings.joins_all_rows

        def added(one: Pairgram, other: Pairgram) -> Pairgram:
            return one._combine(other, 1)

        found = table.reduce(Task(block, added, needs_queries=needs_queries))
        return found if first else added(total, found)

    def arrays(self, model: Any) -> tuple[Any, Any, Any]:
        """Return a model of arrays, all rows that it scores, and their query ids or None."""
        check_is_fitted(model)
        table, model = self.for_model(model)
        rows = table.rows()
        return model, rows.X, rows.query

    def evaluate(
        self, metrics: Sequence[Metric], model: Any, *, per_query: bool, of_lists: bool
    ) -> dict[str, Any]:
        """Return metrics of a model on the rows, which are read once; see `pairgram.evaluate`."""
        if of_lists and not self.has_queries and not self.is_letor:
            n_rows = sum(self.n_rows())
            warn_of_missing_queries("evaluate", n_rows, "one result list", of_table=True)
        if not hasattr(model, "predict"):
            raise TypeError(
                "with a table as y, score must be a fitted model with predict, got "
                f"{type(model).__name__}"
            )
        self.require_labels("evaluate")
        for metric in metrics if self.is_of_clicks else ():
            metric.require_clicks("metrics")
        table, model = self.for_model(model)
        block = partial(_judged, model, checked_metrics(metrics, table), per_query)
        found = table.reduce(Task(block, add if per_query else MetricSums.join))
        own: dict[str, Any] = {}
        if not per_query:
            values = found.defined.tolist()
        else:
            values = np.concatenate([one for one, _ in found], axis=1)
            if self.layout.qid is not None:
                own["qid"] = np.concatenate([ids for _, ids in found])
        return own | dict(zip([metric.name for metric in metrics], values, strict=True))


def _added(empty: Pairgram, pattern: RankingData, rows: TableRows) -> Pairgram:
    """Return the statistics of some rows of whole queries, with the settings of empty ones."""
    data = data_of_block(pattern, None, rows)
    ids = empty._ids_with(data)
    return empty._of(empty._total.with_rows(data), ids)


def _judged(model: Any, metrics: Sequence[Metric], per_query: bool, rows: TableRows) -> Any:
    """Return a list of the values (n_metrics, n_queries) of some queries with the ids of these.

    If it is not `per_query`, return their `MetricSums`.
    """
    assert rows.y is not None
    queries = Queries.of_sizes(rows.sizes, rows.ids)
    scores = np.asarray(judged(model, rows.X), np.float64)
    values = per_query_scores(metrics, rows.y, scores[None], queries)[:, 0]
    if per_query:
        return [(values, rows.ids)]
    weights = np.ones(len(rows.sizes))
    if rows.weights is not None:
        weights = np.add.reduceat(rows.weights, queries.offsets[:-1]) / rows.sizes
    return MetricSums.of(values, weights)
