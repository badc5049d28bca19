"""Data sets with two methods, `reduce` and `each`: rows in memory are one block, tables many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse

from pairgram._support.checks import Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries
from pairgram.features.inputs import prepared_as, whole_map
from pairgram.tables.columns import TableRows
from pairgram.tables.passes import Task
from pairgram.tables.table import Table

B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S")


def one_row(table: Table) -> RankingData:
    """Return data of the shape and type of a table, without reading it: one row of zeros."""
    shape, dtype = (1, table.n_features), table.layout.dtype
    made = scipy.sparse.csr_array(shape, dtype=dtype) if table.layout.sparse else None
    return RankingData.delimit(np.zeros(shape, dtype) if made is None else made, [0.0])


def data_of_block(pattern: RankingData, rows: TableRows) -> RankingData:
    """Return the data of some rows of whole queries. Errors name features, not rows.

    Parameters
    ----------
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    rows : TableRows
        With labels.
    """
    assert rows.y is not None
    X = rows.X
    if X is None:  # a pass that does not read the features
        X, pattern = np.empty((rows.n_rows, 0)), replace(pattern, feature_map=None, applied=None)
    weights = rows.weights
    if weights is not None:
        weights = np.where(weights < np.finfo(np.float64).tiny, 0.0, weights)
    return prepared_as(
        replace(
            pattern,
            X=X,
            y=rows.y,
            queries=Queries.of_sizes(rows.sizes, rows.ids),
            row_weights=weights,
            offset=None,
        ),
        pattern,
    )


@dataclass(frozen=True, eq=False)
class BlockReader:
    """Turns blocks of a table into the data from which statistics and scores are computed.

    Attributes
    ----------
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    prior : callable or None
        Returns the scores of a prior for rows: see `Prior.scores`.
    """

    pattern: RankingData
    prior: Callable[[Any, RankingData], Vector] | None

    @property
    def feature_map(self) -> Any:
        """The fitted map of the rows as the table has them, its inputs included."""
        return whole_map(self.pattern)

    def data(self, rows: TableRows) -> RankingData:
        """Return the data of some rows of whole queries. Errors name features, not rows.

        Without features, the data have neither these nor the scores of the prior.
        """
        data = data_of_block(self.pattern, rows)
        if self.prior is None or rows.X is None:
            return data
        return data.plus_offset(self.prior(rows.X, data))


@dataclass(frozen=True, eq=False)
class Arrays(Generic[B]):
    """Rows in memory: a single block, beyond which no query goes on.

    Attributes
    ----------
    whole : the block
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    is_read : bool
        Whether blocks are made anew whenever rows are worked on. This one stays in memory.
    """

    whole: B
    pattern: RankingData
    is_read: bool = False

    @staticmethod
    def of(data: RankingData) -> Arrays[RankingData]:
        """Return the data set of some rows."""
        return Arrays(data, data)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.pattern.y)

    @property
    def labels(self) -> Vector:
        """All labels."""
        return self.pattern.y

    def reduce(self, task: Task[S]) -> S:
        """Return what a task makes of the block."""
        return task.block(self.whole)

    def each(self, function: Callable[[B], S]) -> Iterator[S]:
        """Yield what a function makes of the block."""
        yield function(self.whole)

    def through(self, prepare: Callable[[B], C]) -> Arrays[C]:
        """Return the data set of what a function makes of the block, once."""
        return Arrays(prepare(self.whole), self.pattern)

    def counting(self, counts: Vector) -> Arrays[B]:
        """Return the data set whose row weights are multiplied by counts."""
        block: Any = self.whole
        return Arrays(block.counting(counts), self.pattern)


@dataclass(frozen=True, eq=False)
class Blocks(Generic[B]):
    """The blocks of a table.

    Attributes
    ----------
    table : Table
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    steps : tuple of callable
        What makes rows of the table into blocks, one after the other.
    is_read : bool
        Whether blocks are made anew whenever rows are worked on, as these are.
    """

    table: Table
    pattern: RankingData
    steps: tuple[Callable[[Any], Any], ...]
    is_read: bool = True

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.table.survey().n_rows

    @property
    def labels(self) -> Vector:
        """A few labels, the lowest and the highest among them."""
        return self.table.survey().labels

    def reduce(self, task: Task[S]) -> S:
        """Return what a task makes of all blocks, which are read once."""
        block = partial(_of_rows, self.steps, task.block)
        return self.table.reduce(task._replace(block=block, needs_queries=True))

    def each(self, function: Callable[[B], S]) -> Iterator[S]:
        """Yield what a function makes of every batch of rows, which may cut queries."""
        return self.table.each(partial(_in_turn, (*self.steps, function)))

    def through(self, prepare: Callable[[B], C]) -> Blocks[C]:
        """Return the data set of what a function makes of every block, whenever it is read."""
        return Blocks(self.table, self.pattern, (*self.steps, prepare))

    def counting(self, counts: Callable[[TableRows], Vector]) -> Blocks[B]:
        """Return the data set whose row weights are multiplied by counts of the table's rows."""
        first, *others = self.steps
        return Blocks(self.table, self.pattern, (partial(_counted, first, counts), *others))


# Rows in blocks of whole queries, which are worked on by two verbs: `reduce` and `each`.
Dataset = Arrays[B] | Blocks[B]


def _counted(
    data: Callable[[TableRows], RankingData], counts: Callable[[TableRows], Vector], rows: TableRows
) -> RankingData:
    """Make rows of a table into data whose row weights are multiplied by counts."""
    return data(rows).counting(counts(rows))


def _in_turn(steps: tuple[Callable[[Any], Any], ...], value: object) -> Any:
    """Call several functions, each with the result of the one before."""
    for step in steps:
        value = step(value)
    return value


def _of_rows(
    steps: tuple[Callable[[Any], Any], ...], function: Callable[[Any], S], rows: TableRows
) -> S:
    """Return what a function makes of the block that `steps` make of rows of whole queries."""
    prepared = _in_turn(steps, rows)
    with single_threaded_blas:
        return function(prepared)
