"""Data sets with two methods, `reduce` and `each`: rows in memory are one block, others many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from pairgram._support.checks import Vector
from pairgram.data.dataset import RankingData

B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S")


class Task(NamedTuple, Generic[S]):
    """What is computed of a table: results of blocks of rows, which can be joined.

    Attributes
    ----------
    block : callable
        Returns the result for some rows.
    join : callable
        Returns the result for the rows of two results. This must be associative up to rounding.
        Results are joined in the order of the rows.
    reads_features : bool
        Whether the features are read, and not only labels, ids and weights.
    needs_queries : bool
        Whether `block` must get all rows of its queries.
    """

    block: Callable[[Any], S]
    join: Callable[[S, S], S]
    reads_features: bool = True
    needs_queries: bool = True


class Dataset(ABC, Generic[B]):
    """Rows in blocks of whole queries.

    Attributes
    ----------
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    is_read : bool
        Whether blocks are made anew whenever rows are worked on.
    """

    pattern: RankingData
    is_read: ClassVar[bool]

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def labels(self) -> Vector:
        """Labels, the lowest and the highest among them."""

    @abstractmethod
    def reduce(self, task: Task[S]) -> S:
        """Return what a task makes of all blocks, which are read once."""

    @abstractmethod
    def each(self, function: Callable[[B], S]) -> Iterator[S]:
        """Yield what a function makes of every block."""

    @abstractmethod
    def through(self, prepare: Callable[[B], C]) -> Dataset[C]:
        """Return the data set of what a function makes of every block."""

    @abstractmethod
    def counting(self, counts: Any) -> Dataset[B]:
        """Return the data set whose row weights are multiplied by counts."""


@dataclass(frozen=True, eq=False)
class Arrays(Dataset[B]):
    """Rows in memory: a single block, beyond which no query goes on.

    Attributes
    ----------
    whole : the block
    pattern, is_read : as those of `Dataset`
    """

    whole: B
    pattern: RankingData
    is_read = False

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
