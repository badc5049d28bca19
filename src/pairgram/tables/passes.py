"""Passes over a table, in this process or by engines, and queries that are cut by parts."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, verbatim
from pairgram.data.blocks import Task
from pairgram.tables.columns import Columns, TableRows, counted, shown_id

K = TypeVar("K")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Part(Generic[S]):
    """The result for consecutive rows of a table. Their first and last query may be cut.

    Attributes
    ----------
    head, tail : TableRows or None
        The rows of the first query and of the last one, which may go on before and after these
        rows. If all rows are of one query, there is no tail.
    body : result of the queries between them, or None
    n_rows : tuple of int
        The number of rows of every partition.
    """

    head: TableRows | None = None
    body: S | None = None
    tail: TableRows | None = None
    n_rows: tuple[int, ...] = ()

    @classmethod
    def of_rows(cls, rows: TableRows, task: Task[S]) -> Part[S]:
        """Return the part of rows that are in memory."""
        if not task.needs_queries:
            return cls(body=task.block(rows))
        n_runs = len(rows.sizes)
        inner = rows.runs(1, n_runs - 1)
        head, tail = rows.runs(0, 1), rows.runs(n_runs - 1, n_runs) if n_runs > 1 else None
        body = None if inner is None else task.block(inner)
        return cls(_open(head), body, _open(tail))

    def join(self, other: Part[S], task: Task[S]) -> Part[S]:
        """Return the part of these rows and of those that follow them."""
        n_rows = self.n_rows + other.n_rows
        if not task.needs_queries:
            return Part(body=_join(task, self.body, other.body), n_rows=n_rows)
        if self.head is None or other.head is None:  # one of them has no rows
            return replace(other if self.head is None else self, n_rows=n_rows)
        last = self.head if self.tail is None else self.tail
        if _same_query(last, other.head):
            whole = [_open(last.then(other.head))]
        else:
            whole = [last, other.head]
        head = self.head if self.tail is not None else whole.pop(0)
        tail = other.tail
        if tail is None and whole:
            tail = whole.pop()
        results = [_of_query(task, rows) for rows in whole if rows is not None]
        body = self.body
        for result in (*results, other.body):
            body = _join(task, body, result)
        return Part(head, body, tail, n_rows)

    def close(self, task: Task[S]) -> S | None:
        """Return the result of all rows, whose first and last query are whole; None for none."""
        result = self.body
        if self.head is not None:
            result = _join(task, _of_query(task, self.head), result)
        if self.tail is not None:
            result = _join(task, result, _of_query(task, self.tail))
        return result


def _of_query(task: Task[S], rows: TableRows) -> S:
    """Return the result for the rows of one query, which errors name."""
    try:
        return task.block(rows)
    except ValueError as error:
        if rows.ids is None:
            raise
        raise _located(error, f"query {shown_id(rows.ids)}: ")  # noqa: B904  it has its cause


def _located(error: ValueError, where: str, placed: bool = False) -> ArgumentError:
    """Return the error, whose message begins with `where`. One that is `placed` stays as it is."""
    if not isinstance(error, ArgumentError):
        found = ArgumentError(None, before=f"{where}{error}", placed=placed)
        found.__cause__ = error
        return found
    if not error.placed:
        error.before, error.placed = where + error.before, placed
    return error


def _join(task: Task[S], first: S | None, second: S | None) -> S | None:
    if first is None or second is None:
        return second if first is None else first
    return task.join(first, second)


def _open(rows: TableRows | None) -> TableRows | None:
    """Return rows of one query that wait for more of them, as a copy of their own."""
    if rows is None:
        return None
    if rows.n_bytes > limits.now.query_bytes:
        name = "the table" if rows.ids is None else f"query {verbatim(shown_id(rows.ids))}"
        raise ArgumentError(
            None,
            f"{name} has more than {limits.now.query_bytes >> 20} MiB of rows, which must be in "
            "memory together to be compared: give {qid=} shorter queries, or take fewer columns",
        )
    return rows.own()


def _same_query(first: TableRows, second: TableRows) -> bool:
    if first.ids is None or second.ids is None:
        return first.ids is second.ids
    return bool(first.ids[0] == second.ids[0])


def fold(
    batches: Iterator[TableRows], task: Task[S], name: str = "", is_table: bool = False
) -> Part[S]:
    """Return the part of a partition, whose rows are read one batch after the other.

    Errors name the place of the rows: `name`, and their numbers in it. No query of a partition that
    `is_table`, the whole table, goes on outside: a single batch is then not cut.
    """
    part: Part[S] = Part()
    n_rows = 0
    if is_table:
        first = list(islice(batches, 2))
        if len(first) == 1:
            with placing(name, first[0]):
                return Part(body=task.block(first[0]), n_rows=(first[0].n_rows,))
        batches = chain(_popped(first), batches)
    for batch in batches:
        with placing(name, batch):
            part = part.join(Part.of_rows(batch, task), task)
        n_rows += batch.n_rows
    return replace(part, n_rows=(n_rows,))


def _popped(batches: list[TableRows]) -> Iterator[TableRows]:
    """Yield batches, which a list does not keep alive."""
    while batches:
        yield batches.pop(0)


@contextmanager
def placing(name: str, rows: TableRows) -> Iterator[None]:
    """Within this context, a ValueError names the place of some rows, if it does not already.

    Without a `name`, it names none.
    """
    try:
        yield
    except ValueError as error:
        if not name:
            raise
        last = rows.first + rows.n_rows - 1
        where = f"{name}, rows {rows.first} to {last}, {counted(name)}: "
        raise _located(error, where, placed=True)  # noqa: B904  it has its cause


def join_by_id(parts: list[Part[S]], task: Task[S]) -> Part[S]:
    """Return the part of all rows, whose partitions have no order: open queries meet by their ids.

    The rows of an open query are put together in the order of the partitions' numbers.
    """
    n_rows = tuple(count for part in parts for count in part.n_rows)
    body: S | None = None
    if parts:
        bodies = [part.body for part in parts]
        body = in_tree(0, len(parts), lambda at: bodies[at], partial(_join, task))
    waiting: dict[Any, TableRows] = {}
    for part in parts:
        for rows in (part.head, part.tail):
            if rows is not None:
                name = None if rows.ids is None else rows.ids[0]
                known = waiting.get(name)
                joined = rows if known is None else _open(known.then(rows))
                assert joined is not None
                waiting[name] = joined
    for rows in waiting.values():
        body = _join(task, body, _of_query(task, rows))
    return Part(body=body, n_rows=n_rows)


def join_by_key(first: dict[K, Any], second: dict[K, Any]) -> dict[K, Any]:
    """Return the results of both by their keys; two of one key are joined by their own `join`."""
    joined = dict(first)
    for key, found in second.items():
        joined[key] = joined[key].join(found) if key in joined else found
    return joined


def in_tree(first: int, last: int, leaf: Callable[[int], T], join: Callable[[T, T], T]) -> T:
    """Return the results of leaves ``first … last − 1``, joined in a tree of their number alone.

    Leaves are asked for in their order. At most ``log2(last − first) + 1`` results wait.
    """
    if last - first == 1:
        return leaf(first)
    middle = (first + last + 1) // 2
    left = in_tree(first, middle, leaf, join)
    return join(left, in_tree(middle, last, leaf, join))


# Is told how many rows have been worked on since the last call.
Progress = Callable[[int], None]


class Partition(ABC):
    """Consecutive rows of a table, which can be read again and again."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call the place: a file, or a part of the table."""

    @property
    def files(self) -> Sequence[str]:
        """The paths of the files on this machine that are read."""
        return ()

    @property
    def is_text(self) -> bool:
        """Whether the rows stand in files of text, whose types are guessed."""
        return False

    @property
    def folders(self) -> Collection[str]:
        """The columns whose values stand in the names of folders, not in files."""
        return ()

    @property
    def leaves_zeros_out(self) -> bool:
        """Whether rows hold no zeros, so that the last features may be absent."""
        return False

    @abstractmethod
    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows, some at a time. `number` is that of the partition."""

    def with_texts(self, names: Iterable[str]) -> Self:
        """Return the partition, of which some columns are text, if its types are guessed."""
        return self


Partitions: TypeAlias = Sequence[Partition]


class Engine(Protocol):
    """Where a table is worked on.

    Attributes
    ----------
    keeps_order : bool
        Whether partitions have an order, in which all results are joined.
    """

    keeps_order: bool

    def run(
        self, partitions: Partitions, columns: Columns, task: Task[S], progress: Progress | None
    ) -> Part[S]:
        """Return the part of all rows.

        The parts of the partitions are joined by `in_tree`, in the order of the partitions.
        """

    def map(
        self, partitions: Partitions, columns: Columns, function: Callable[[TableRows], Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield (what a function makes of a batch, its number of rows), in the rows' order."""


# This many batches wait to be worked on.
READ_AHEAD = 2


class LocalEngine:
    """Works on one partition after the other, and reads the next rows meanwhile."""

    keeps_order = True

    def run(
        self, partitions: Partitions, columns: Columns, task: Task[S], progress: Progress | None
    ) -> Part[S]:
        """Return the part of all rows; see `Engine`."""
        with _ReadAhead(partitions, columns, task.reads_features) as reader:

            def leaf(number: int) -> Part[S]:
                return fold(
                    reader.batches(number, progress),
                    task,
                    partitions[number].name,
                    len(partitions) == 1,
                )

            return in_tree(0, len(partitions), leaf, lambda a, b: a.join(b, task))

    def map(
        self, partitions: Partitions, columns: Columns, function: Callable[[TableRows], Any]
    ) -> Iterator[tuple[Any, int]]:
        """Yield what a function makes of every batch; see `Engine`."""
        with _ReadAhead(partitions, columns, True) as reader:
            for number, partition in enumerate(partitions):
                for batch in reader.batches(number):
                    with placing(partition.name, batch):
                        result = function(batch)
                    yield result, batch.n_rows


class _ReadAhead:
    """Reads all partitions in a thread, `READ_AHEAD` batches before they are asked for."""

    def __init__(self, partitions: Partitions, columns: Columns, features: bool) -> None:
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

    def batches(self, number: int, progress: Progress | None = None) -> Iterator[TableRows]:
        """Yield the batches of a partition. Partitions must be asked for in their order.

        `progress` is told of a batch when the next one is asked for.
        """
        while True:
            kind, value = self._ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
            if progress is not None:
                progress(value.n_rows)

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

    def _hand_over(self, kind: str, value: object) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put((kind, value), timeout=0.1)
                return
            except queue.Full:
                continue
        raise _Stopped


class _Stopped(Exception):
    """Nobody waits for further batches."""
