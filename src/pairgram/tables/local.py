"""The engine of one machine: it reads ahead in a thread while the caller's thread works."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from pairgram.tables.columns import Columns
from pairgram.tables.passes import Part, Progress, Task, fold, in_tree, placing
from pairgram.tables.rows import TableRows

S = TypeVar("S")

# So many batches wait to be worked on.
READ_AHEAD = 2


class LocalEngine:
    """Works on one partition after the other, and reads the next rows meanwhile."""

    def run(
        self, partitions: Sequence[Any], columns: Columns, task: Task[S], progress: Progress | None
    ) -> Part[S]:
        """Return the part of all rows; see `Engine`."""
        with _ReadAhead(partitions, columns, task.reads_features) as reader:

            def leaf(number: int) -> Part[S]:
                batches = _watched(reader.batches(number), progress)
                return fold(batches, task, partitions[number].name)

            return in_tree(0, len(partitions), leaf, lambda a, b: a.join(b, task))

    def map(
        self, partitions: Sequence[Any], columns: Columns, function: Callable[[TableRows], Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield what a function makes of every batch; see `Engine`."""
        with _ReadAhead(partitions, columns, True) as reader:
            for number, partition in enumerate(partitions):
                for batch in reader.batches(number):
                    with placing(partition.name, batch):
                        result = function(batch)
                    yield result, batch.n_rows


def _watched(batches: Iterator[TableRows], progress: Progress | None) -> Iterator[TableRows]:
    for batch in batches:
        yield batch
        if progress is not None:
            progress(batch.n_rows)


class _ReadAhead:
    """Reads all partitions in a thread, `READ_AHEAD` batches before they are asked for."""

    def __init__(self, partitions: Sequence[Any], columns: Columns, features: bool) -> None:
        self._partitions, self._columns, self._features = partitions, columns, features
        self._ready: queue.Queue[Any] = queue.Queue(READ_AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="pairgram-reader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        while self._thread.is_alive():  # it may wait for room
            try:
                self._ready.get_nowait()
            except queue.Empty:
                self._thread.join(0.01)

    def batches(self, number: int) -> Iterator[TableRows]:
        """Yield the batches of a partition. Partitions must be asked for in their order."""
        while True:
            kind, value = self._ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value

    def _read(self) -> None:
        try:
            for number, partition in enumerate(self._partitions):
                for batch in partition.batches(number, self._columns, self._features):
                    self._hand_over("batch", batch)
                self._hand_over("end", None)
        except _Stopped:
            pass
        except BaseException as error:
            with suppress(_Stopped):
                self._hand_over("error", error)

    def _hand_over(self, kind: str, value: Any) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put((kind, value), timeout=0.1)
                return
            except queue.Full:
                continue
        raise _Stopped


class _Stopped(Exception):
    """Nobody waits for further batches."""
