"""Passes over a table, in this process or by engines, and queries that are cut by parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, verbatim
from pairgram.data.blocks import Task
from pairgram.tables.columns import Columns, TableRows, counted, shown_id, together

K = TypeVar("K")
T = TypeVar("T")
# What is computed of a table, whatever it is; and what is made of some of its rows.
AnyTask = Task[Any]
Work = Callable[[TableRows], Any]
# Results, each with the number of rows that have been worked on since the one before.
Results = Iterator[tuple[Any, int]]
# Is told how many rows have been worked on since the last call.
Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Part:
    """The result for consecutive rows of a table. Their first and last query may be cut.

    Attributes
    ----------
    open : tuple of TableRows
        The rows of the first query, and of the last one if it is another, which may go on before
        and after these rows.
    body : result of the other queries, or None
    n_rows : tuple of int
        The number of rows of every partition.
    """

    open: tuple[TableRows, ...] = ()
    body: Any = None
    n_rows: tuple[int, ...] = ()

    @classmethod
    def of_rows(cls, rows: TableRows, task: AnyTask) -> Part:
        """Return the part of rows that are in memory."""
        if not task.needs_queries:
            return cls(body=task.block(rows))
        last = len(rows.sizes) - 1
        ends = tuple(_open(rows.runs(run, run + 1)) for run in sorted({0, last}))
        return cls(ends, task.block(rows.runs(1, last)) if last > 1 else None)

    def join(self, other: Part, task: AnyTask) -> Part:
        """Return the part of these rows and of those that follow them."""
        rows, at = [*self.open, *other.open], len(self.open)
        if 0 < at < len(rows) and _same_query(rows[at - 1], rows[at]):
            rows[at - 1 : at + 1] = [_open(together(rows[at - 1 : at + 1]))]
        inner = (_of_query(task, one) for one in rows[1:-1])
        body = join_all(task, [self.body, *inner, other.body])
        return Part((*rows[:1], *rows[1:][-1:]), body, self.n_rows + other.n_rows)

    def close(self, task: AnyTask) -> Any:
        """Return the result of all rows, whose first and last query are whole; None for none."""
        queries = [_of_query(task, rows) for rows in self.open]
        return join_all(task, [*queries[:1], self.body, *queries[1:]])


def join_all(task: AnyTask, results: Sequence[Any]) -> Any:
    """Return the result of all rows, given those of some after others; None stands for no rows."""
    found: Any = None
    for one in results:
        found = one if found is None else found if one is None else task.join(found, one)
    return found


def _of_query(task: AnyTask, rows: TableRows) -> Any:
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


def _open(rows: TableRows) -> TableRows:
    """Return rows of one query that wait for more of them, as a copy of their own."""
    if rows.X is not None and rows.X.nbytes > limits.now.query_bytes:
        name = "the table" if rows.ids is None else f"query {verbatim(shown_id(rows.ids))}"
        raise ArgumentError(
            None,
            f"{name} has more than {limits.now.query_bytes >> 20} MiB of rows, which must be in "
            "memory together to be compared: give {qid=} shorter queries, or take fewer columns",
        )
    return together([rows])


def _same_query(first: TableRows, second: TableRows) -> bool:
    if first.ids is None or second.ids is None:
        return first.ids is second.ids
    return bool(first.ids[0] == second.ids[0])


def fold(task: AnyTask, batches: Iterable[TableRows]) -> Results:
    """Yield None for every batch of a partition, and then the part of its rows."""
    part, n_rows = Part(), 0
    for batch in batches:
        with placing(batch):
            part = part.join(Part.of_rows(batch, task), task)
        n_rows += batch.n_rows
        yield None, batch.n_rows
    yield replace(part, n_rows=(n_rows,)), 0


def mapped(function: Work, batches: Iterable[TableRows]) -> Results:
    """Yield what a function makes of every batch of a partition."""
    for batch in batches:
        with placing(batch):
            result = function(batch)
        yield result, batch.n_rows


@contextmanager
def placing(rows: TableRows) -> Iterator[None]:
    """Within this context, a ValueError names the place of some rows, if it does not already."""
    try:
        yield
    except ValueError as error:
        name, first = rows.place.name, rows.place.first
        where = f"{name}, rows {first} to {first + rows.n_rows - 1}, {counted(name)}: "
        raise _located(error, where, placed=True)  # noqa: B904  it has its cause


def join_by_id(parts: list[Part], task: AnyTask) -> Part:
    """Return the part of all rows, whose partitions have no order: open queries meet by their ids.

    The rows of an open query are put together in the order of the partitions' numbers.
    """
    waiting: dict[Any, list[Part]] = {}
    for part in parts:
        for rows in part.open:
            name = None if rows.ids is None else rows.ids[0]
            waiting.setdefault(name, []).append(Part((rows,)))
    pieces = [replace(part, open=()) for part in parts]
    pieces += [part for same in waiting.values() for part in same]
    return in_tree(iter([*pieces, Part()]), len(pieces) + 1, lambda a, b: a.join(b, task))


def join_by_key(first: dict[K, Any], second: dict[K, Any]) -> dict[K, Any]:
    """Return the results of both by their keys; two of one key are joined by their own `join`."""
    joined = dict(first)
    for key, found in second.items():
        joined[key] = joined[key].join(found) if key in joined else found
    return joined


def in_tree(leaves: Iterator[T], n_leaves: int, join: Callable[[T, T], T]) -> T:
    """Return the results of so many leaves, joined in a tree of their number alone.

    Leaves are asked for in their order. At most ``log2(n_leaves) + 1`` results wait.
    """
    if n_leaves == 1:
        return next(leaves)
    left = in_tree(leaves, (n_leaves + 1) // 2, join)
    return join(left, in_tree(leaves, n_leaves // 2, join))


# This many batches wait to be worked on.
READ_AHEAD = 2


class LocalEngine:
    """Works on one partition after the other, and reads the next rows meanwhile."""

    def each(
        self,
        partitions: Sequence[Any],
        columns: Columns,
        function: Callable[..., Results],
        ordered: bool,
    ) -> Results:
        """Yield what a function yields for the batches of every partition.

        Results have the order of the partitions, and of their rows if they must be `ordered`.
        """
        with closing(_ahead(partitions, columns)) as ready:
            for _ in partitions:
                yield from function(iter(partial(next, ready), None))


def _ahead(partitions: Sequence[Any], columns: Columns) -> Generator[Any]:
    """Yield the batches of all partitions, and None after each partition; a thread reads ahead."""
    batches: Iterator[Any] = (
        batch
        for number, partition in enumerate(partitions)
        for batch in chain(partition.batches(number, columns), [None])
    )
    pool = ThreadPoolExecutor(1, "pairgram-reader")
    try:
        waiting = deque(pool.submit(next, batches, None) for _ in range(READ_AHEAD))
        while True:
            yield waiting.popleft().result()
            waiting.append(pool.submit(next, batches, None))
    finally:
        pool.shutdown(cancel_futures=True)
