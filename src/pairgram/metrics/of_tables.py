"""Metrics of a table, whose queries are judged block by block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairgram._support.types import Vector
from pairgram.metrics.metric import Metric, check_labels, per_query_scores, warn_of_relevant
from pairgram.queries_and_pairs.queries import Queries
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table

__all__ = ["MetricSums", "checked_metrics", "evaluate_table"]


class MetricSums(NamedTuple):
    """The mean of a metric over queries, and the squared differences from it.

    Attributes
    ----------
    weights, means, squares : ndarray of shape (n_models,), float64
    """

    weights: Vector
    means: Vector
    squares: Vector

    @classmethod
    def of(cls, values: Vector, weights: Vector) -> MetricSums:
        """Return the sums of values (n_models, n_queries); NaN where the metric is undefined."""
        known = ~np.isnan(values)
        own = np.where(known, weights, 0.0)
        total = own.sum(axis=1)
        share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        filled = np.where(known, values, 0.0)
        means = (own * filled).sum(axis=1) * share
        return cls(total, means, (own * (filled - means[:, None]) ** 2).sum(axis=1))

    def join(self, other: MetricSums) -> MetricSums:
        """Return the sums of the queries of both, by Chan's formula."""
        total = self.weights + other.weights
        share = np.divide(other.weights, total, out=np.zeros_like(total), where=total > 0)
        difference = other.means - self.means
        return MetricSums(
            total,
            self.means + share * difference,
            self.squares + other.squares + self.weights * share * difference**2,
        )

    @property
    def defined(self) -> Vector:
        """The means, NaN where no query has a value."""
        return np.where(self.weights > 0, self.means, np.nan)

    @property
    def deviations(self) -> Vector:
        """The standard deviations over queries."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.squares / self.weights)


def checked_metrics(metrics: Sequence[Metric], table: Table) -> list[Metric]:
    """Return metrics that have the same meaning in every block of a table.

    Raises
    ------
    ValueError
        If a metric does not take the labels of the table.
    """
    survey = table.survey()
    try:
        check_labels(metrics, survey.labels)
    except ValueError as error:  # it names a row of these few labels
        raise ValueError(re.sub(r" in row \d+", " in the table", str(error))) from None
    warn_of_relevant(metrics, survey.lowest, survey.highest, survey.n_rows)
    return [
        replace(metric, max_grade=survey.highest)
        if metric.family == "err" and metric.max_grade is None
        else metric
        for metric in metrics
    ]


@dataclass(frozen=True, eq=False)
class EvaluateTask:
    """Judges the scores of a model: the values of every query, or their mean."""

    model: Any
    metrics: tuple[Metric, ...]
    per_query: bool
    n_threads: int | None
    reads_features: bool = True
    needs_queries: bool = True

    def of_rows(self, rows: TableRows) -> Any:
        """Return the values (n_metrics, n_queries) of some queries, or their `MetricSums`."""
        assert rows.y is not None
        scores = np.asarray(self.model.predict(rows.X), np.float64)
        queries = Queries.of_sizes(rows.sizes, rows.ids)
        values = per_query_scores(self.metrics, rows.y, scores[None], queries, self.n_threads)[:, 0]
        if self.per_query:
            return values, rows.ids
        weights = np.ones(len(rows.sizes))
        if rows.weights is not None:
            weights = np.add.reduceat(rows.weights, queries.offsets[:-1]) / rows.sizes
        return MetricSums.of(values, weights)

    def join(self, first: Any, second: Any) -> Any:
        """Return the values of the queries of both."""
        if not self.per_query:
            return first.join(second)
        values = np.concatenate([first[0], second[0]], axis=1)
        return values, None if first[1] is None else np.concatenate([first[1], second[1]])


def evaluate_table(
    metrics: Sequence[Metric],
    table: Table,
    model: Any,
    per_query: bool,
    n_threads: int | None,
) -> dict[str, float | NDArray[Any]]:
    """Return the metrics of a model on a table, which is read once."""
    if not hasattr(model, "predict"):
        raise TypeError(
            "with a table as y, score must be a fitted model with predict, got "
            f"{type(model).__name__}"
        )
    names = [metric.name for metric in metrics]
    table.require_labels("evaluate")
    table, model = table.for_model(model)
    task = EvaluateTask(model, tuple(checked_metrics(metrics, table)), per_query, n_threads)
    found = table.run(task)
    if not per_query:
        return dict(zip(names, found.defined.tolist(), strict=True))
    values, ids = found
    return ({} if ids is None else {"qid": ids}) | dict(zip(names, values, strict=True))
