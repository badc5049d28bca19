"""The engine of a Dask cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import cloudpickle
from dask.delayed import delayed

from pairgram._support.machine import threads
from pairgram.data.blocks import Task
from pairgram.tables.columns import Columns, TableRows, in_batches, rows_of_batches, to_arrow
from pairgram.tables.passes import Part, Partition, Partitions, Progress, fold, in_tree, placing

if TYPE_CHECKING:
    import pandas
    from distributed import Client

S = TypeVar("S")

# This many partitions are scored at a time for every thread of the cluster.
AHEAD = 2


@dataclass(frozen=True, eq=False)
class DaskPartition(Partition):
    """A partition of a frame of Dask, which is there when a worker reads it."""

    number: int
    frame: pandas.DataFrame | None = None

    @property
    def name(self) -> str:
        """The number of the partition."""
        return f"partition {self.number}"

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        assert self.frame is not None
        batches = in_batches(to_arrow(self.frame[columns.names(features)]))
        yield from rows_of_batches(batches, number, self.name, columns, features)


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

    keeps_order = True

    def __init__(
        self, client: Client | None = None, frame: Any = None, names: Sequence[str] = ()
    ) -> None:
        self._client, self._frame, self._names = client, frame, names

    def run(
        self, partitions: Partitions, columns: Columns, task: Task[S], progress: Progress | None
    ) -> Part[S]:
        """Return the part of all rows; see `Engine`."""
        sources = self._sources(partitions, columns.names())
        sent = delayed(_packed(task))
        read = delayed(columns, traverse=False)

        def leaf(number: int) -> Any:
            return delayed(_part_of, pure=False)(sources[number], number, read, sent)

        def join(first: object, second: object) -> Any:
            return delayed(_join, pure=False)(first, second, sent)

        part = cloudpickle.loads(self._result(in_tree(0, len(sources), leaf, join)))
        if progress is not None:
            progress(sum(part.n_rows))
        return part

    def map(
        self, partitions: Partitions, columns: Columns, function: Callable[[TableRows], Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield what a function makes of every batch; see `Engine`."""
        sources = self._sources(partitions, columns.names())
        sent = delayed(_packed(function))
        read = delayed(columns, traverse=False)
        mapped = [
            delayed(_map, pure=False)(source, number, read, sent)
            for number, source in enumerate(sources)
        ]
        client = self._known_client()
        if client is None:
            for one in mapped:
                yield from one.compute()
            return
        ahead = AHEAD * max(1, sum(client.nthreads().values()))
        waiting: deque[Any] = deque()
        for one in mapped:
            waiting.append(client.compute(one))
            if len(waiting) > ahead:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def _known_client(self) -> Any:
        if self._client is not None:
            return self._client
        try:
            from distributed import get_client

            return get_client()
        except (ImportError, ValueError):
            return None

    def _result(self, root: Any) -> Any:
        client = self._known_client()
        return root.compute() if client is None else client.compute(root).result()

    def _sources(self, partitions: Sequence[Any], names: list[str]) -> list[Any]:
        if self._frame is None:
            return [delayed(partition, traverse=False) for partition in partitions]
        names = list(dict.fromkeys([*self._names, *names]))
        parts = enumerate(self._frame[names].to_delayed())
        return [delayed(DaskPartition)(number, part) for number, part in parts]


def _packed(value: object) -> bytes:
    """Return a task or a result as bytes.

    Dask would send arrays as pieces of a message, where they need not be aligned.
    """
    return cloudpickle.dumps(value, protocol=4)


def _part_of(source: Partition, number: int, columns: Columns, packed: bytes) -> bytes:
    task = cloudpickle.loads(packed)
    with threads(1):
        batches = source.batches(number, columns, task.reads_features)
        return _packed(fold(batches, task, source.name))


def _map(source: Partition, number: int, columns: Columns, packed: bytes) -> list[tuple[Any, int]]:
    function, results = cloudpickle.loads(packed), []
    with threads(1):
        for batch in source.batches(number, columns, True):
            with placing(source.name, batch):
                results.append((function(batch), batch.n_rows))
    return results


def _join(first: bytes, second: bytes, packed: bytes) -> bytes:
    with threads(1):
        part = cloudpickle.loads(first)
        return _packed(part.join(cloudpickle.loads(second), cloudpickle.loads(packed)))
