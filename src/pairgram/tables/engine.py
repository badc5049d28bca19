"""The interfaces of partitions, which hold rows, and of engines, which work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from pairgram.tables.columns import Columns
from pairgram.tables.parts import Part, Task
from pairgram.tables.rows import TableRows

__all__ = ["Engine", "Partition", "Progress", "name_of_places"]

S = TypeVar("S")

# Is told how many rows have been worked on since the last call.
Progress = Callable[[int], None]


def name_of_places(names: Iterable[str]) -> str:
    """Return a name for the column of the places of rows, while they are shuffled.

    None of the other columns has this name, in small or large letters.
    """
    known, name = {name.lower() for name in names}, "__pairgram_place__"
    while name in known:
        name += "_"
    return name


class Partition(Protocol):
    """Consecutive rows of a table, which can be read again and again."""

    @property
    def name(self) -> str:
        """What messages call the place: a file, or a part of the table."""

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows, some at a time. `number` is that of the partition."""


class Engine(Protocol):
    """Where a table is worked on."""

    def run(
        self, partitions: Sequence[Any], columns: Columns, task: Task[S], progress: Progress | None
    ) -> Part[S]:
        """Return the part of all rows.

        The parts of the partitions are joined by `in_tree`, in the order of the partitions.
        """

    def map(
        self, partitions: Sequence[Any], columns: Columns, function: Callable[[TableRows], Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield (what a function makes of a batch, its number of rows), in the rows' order."""
