"""The blocks of a table, as data from which statistics and scores are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pairgram._support.checks import Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.data.blocks import Dataset, Task
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries
from pairgram.features.inputs import prepared_as
from pairgram.tables.columns import TableRows
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

    @classmethod
    def of(cls, table: Table, pattern: RankingData, prior: Any = None) -> Blocks[RankingData]:
        """Return the data of a table; see `data_of_block`."""
        return Blocks(table, pattern, partial(data_of_block, pattern, prior))

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
