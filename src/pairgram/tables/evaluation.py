"""Metrics of a model on a table, which is read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.arrays import judged
from pairgram._support.checks import AnyArray, ArgumentError
from pairgram.data.blocks import Task
from pairgram.data.queries import Queries, warn_of_missing_queries
from pairgram.metrics.metric import (
    Metric,
    MetricSums,
    check_labels,
    per_query_scores,
    warn_of_relevant,
)
from pairgram.tables.columns import TableRows
from pairgram.tables.table import Table

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator


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


def _judged(model: Any, metrics: Sequence[Metric], per_query: bool, rows: TableRows) -> Any:
    """Return the values (n_metrics, n_queries) of some queries and ids, or their `MetricSums`."""
    assert rows.y is not None
    queries = Queries.of_sizes(rows.sizes, rows.ids)
    scores = np.asarray(judged(model, rows.X), np.float64)
    values = per_query_scores(metrics, rows.y, scores[None], queries)[:, 0]
    if per_query:
        return values, rows.ids
    weights = np.ones(len(rows.sizes))
    if rows.weights is not None:
        weights = np.add.reduceat(rows.weights, queries.offsets[:-1]) / rows.sizes
    return MetricSums.of(values, weights)


def _of_both(first: Any, second: Any) -> Any:
    """Return the values and ids of the queries of two results."""
    values = np.concatenate([first[0], second[0]], axis=1)
    return values, None if first[1] is None else np.concatenate([first[1], second[1]])


def evaluate_table(
    metrics: Sequence[Metric],
    table: Table,
    model: BaseEstimator,
    *,
    per_query: bool,
    of_lists: bool,
) -> dict[str, float | AnyArray]:
    """Return the metrics of a model on a table, which is read once."""
    if of_lists and not table.has_queries and table.layout.label is not None:
        n_rows = table.survey().n_rows
        warn_of_missing_queries("evaluate", n_rows, "one result list", of_table=True)
    if not hasattr(model, "predict"):
        raise TypeError(
            "with a table as y, score must be a fitted model with predict, got "
            f"{type(model).__name__}"
        )
    names = [metric.name for metric in metrics]
    table.require_labels("evaluate")
    if table.is_of_clicks:
        for metric in metrics:
            metric.require_clicks("metrics")
    table, model = table.for_model(model)
    block = partial(_judged, model, checked_metrics(metrics, table), per_query)
    found = table.reduce(Task(block, _of_both if per_query else MetricSums.join))
    if not per_query:
        return dict(zip(names, found.defined.tolist(), strict=True))
    values, ids = found
    return ({} if ids is None else {"qid": ids}) | dict(zip(names, values, strict=True))
