"""The engine of a Dask cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import cloudpickle
from dask.delayed import delayed

from pairgram._support.machine import threads
from pairgram.tables.columns import Columns, TableRows, in_batches, rows_of_batches, to_arrow
from pairgram.tables.passes import AnyTask, Part, Partition, Progress, Work, fold, in_tree, mapped

# This many partitions are scored at a time for every thread of the cluster.
AHEAD = 2


@dataclass(frozen=True, eq=False)
class DaskPartition(Partition):
    """A partition of a frame of Dask, which is there when a worker reads it."""

    number: int
    frame: Any = None

    @property
    def name(self) -> str:
        """The number of the partition."""
        return f"partition {self.number}"

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        batches = in_batches(to_arrow(self.frame[columns.names(features)]))
        yield from rows_of_batches(batches, number, self.name, columns, features)


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Works on every partition in a task of Dask, and joins the results in a fixed tree of tasks.

    A task works in one thread. It holds no state: if a worker is lost, Dask repeats its tasks
    elsewhere, with the same bits.

    Parameters
    ----------
    client : distributed.Client or None
        None takes the client that is active, or else the threads of this process.
    frame : dask.dataframe.DataFrame or None
        The rows, if the partitions are not files.
    names : sequence of str
        The columns of the frame that every pass reads. Dask fuses small partitions, differently
        for every choice of columns, but the partitions of all passes must be the same.
    """

    client: Any = None
    frame: Any = None
    names: Sequence[str] = ()

    def run(
        self,
        partitions: Sequence[Partition],
        columns: Columns,
        task: AnyTask,
        progress: Progress | None,
    ) -> Part:
        """Return the part of all rows; see `LocalEngine`."""
        work = partial(fold, task=task)
        leaves = self._tasks(partitions, columns, task.reads_features, work)
        join = delayed(_packed(partial(Part.join, task=task)))
        root = in_tree(iter(leaves), len(leaves), partial(_task, join))
        part: Part = cloudpickle.loads(next(self._results([root])))
        if progress is not None:
            progress(sum(part.n_rows))
        return part

    def map(
        self,
        partitions: Sequence[Partition],
        columns: Columns,
        function: Work,
    ) -> Iterator[Any]:
        """Yield what a function makes of every batch; see `LocalEngine`."""
        work = partial(_listed, function)
        for found in self._results(self._tasks(partitions, columns, True, work)):
            yield from cloudpickle.loads(found)

    def _tasks(
        self, partitions: Sequence[Any], columns: Columns, features: bool, work: object
    ) -> list[Any]:
        """Return the tasks that work on the batches of every partition."""
        if self.frame is None:
            sources = [delayed(partition, traverse=False) for partition in partitions]
        else:
            names = list(dict.fromkeys([*self.names, *columns.names()]))
            parts = enumerate(self.frame[names].to_delayed())
            sources = [delayed(DaskPartition)(number, part) for number, part in parts]
        sent = delayed(_packed(partial(_worked, columns, features, work)))
        return [_task(sent, source, number) for number, source in enumerate(sources)]

    def _results(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of tasks in their order, some of which are computed ahead."""
        client = self.client
        if client is None:
            with suppress(ImportError, ValueError):
                from distributed import get_client

                client = get_client()
        if client is None:
            yield from (one.compute() for one in tasks)
            return
        waiting: deque[Any] = deque()
        for one in tasks:
            waiting.append(client.compute(one))
            if len(waiting) > AHEAD * max(1, sum(client.nthreads().values())):
                yield waiting.popleft().result()
        yield from (one.result() for one in waiting)


def _packed(value: object) -> bytes:
    """Return a task or a result as bytes.

    Dask would send arrays as pieces of a message, where they need not be aligned.
    """
    return cloudpickle.dumps(value, protocol=4)


def _task(function: object, *values: object) -> Any:
    """Return a task that calls a packed function."""
    return delayed(_called, pure=False)(function, *values)


def _called(function: bytes, *values: Any) -> bytes:
    given = [cloudpickle.loads(one) if isinstance(one, bytes) else one for one in values]
    with threads(1):
        return _packed(cloudpickle.loads(function)(*given))


def _worked(columns: Columns, features: bool, work: Any, source: Partition, number: int) -> Any:
    return work(source.batches(number, columns, features), name=source.name)


def _listed(function: Work, batches: Any, name: str) -> list[Any]:
    return list(mapped(function, batches, name))
