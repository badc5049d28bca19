"""The engine of a Spark cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pairgram._support.threads import at_most_threads
from pairgram.tables.arrow import rows_of_batches
from pairgram.tables.columns import Columns
from pairgram.tables.engine import Progress
from pairgram.tables.parts import Part, Task, fold, join_by_id
from pairgram.tables.rows import TableRows

__all__ = ["SparkEngine"]

S = TypeVar("S")


class SparkEngine:
    """Works on every partition of a Spark DataFrame by ``mapInArrow``, without a shuffle.

    The partitions of Spark have no order that a reader could rely on. The rows of a query that is
    cut therefore find each other by the id, in the driver.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def run(
        self, partitions: Sequence[Any], columns: Columns, task: Task[S], progress: Progress | None
    ) -> Part[S]:
        """Return the part of all rows; see `Engine`."""
        frame = self._frame.select(_quoted(columns.names(task.reads_features)))
        rows = frame.mapInArrow(_PartOf(columns, task), "number int, result binary").collect()
        found = {row["number"]: pickle.loads(row["result"]) for row in rows}
        part: Part[S] = join_by_id([found[number] for number in sorted(found)], task)
        if progress is not None:
            progress(sum(part.n_rows))
        return part

    def map(
        self, partitions: Sequence[Any], columns: Columns, function: Callable[[TableRows], Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield what a function makes of every batch; see `Engine`."""
        frame = self._frame.select(_quoted(columns.names()))
        rows = frame.mapInArrow(_Map(columns, function), "number int, result binary")
        for row in rows.toLocalIterator():
            yield pickle.loads(row["result"])


def _quoted(names: list[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in names]


def _number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _packed(results: Iterable[Any]) -> Iterator[Any]:
    import pyarrow

    number = _number()
    for result in results:
        yield pyarrow.RecordBatch.from_arrays(
            [
                pyarrow.array([number], pyarrow.int32()),
                pyarrow.array([pickle.dumps(result, protocol=4)], pyarrow.binary()),
            ],
            ["number", "result"],
        )


@dataclass(frozen=True, eq=False)
class _PartOf:
    """Returns the part of the rows of a partition, in a worker."""

    columns: Columns
    task: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        number, name = _number(), f"partition {_number()}"
        with at_most_threads(1):
            rows = rows_of_batches(batches, number, name, self.columns, self.task.reads_features)
            yield from _packed([fold(rows, self.task, name)])


@dataclass(frozen=True, eq=False)
class _Map:
    """Returns what a function makes of every batch of a partition, in a worker."""

    columns: Columns
    function: Callable[[TableRows], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        number, name = _number(), f"partition {_number()}"
        with at_most_threads(1):
            rows = rows_of_batches(batches, number, name, self.columns, True)
            yield from _packed((self.function(batch), batch.n_rows) for batch in rows)
