"""Bring the rows of every query together, where they do not stand together in the source."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, Rows
from pairgram.tables.columns import Columns, TableRows, in_batches, value_type
from pairgram.tables.passes import LocalEngine
from pairgram.tables.sources import pyarrow_for, source_of
from pairgram.tables.survey import hash_of_runs
from pairgram.tables.table import FIRST_ROWS, GAP, GROUPED, Table

if TYPE_CHECKING:
    import pyarrow

# Files that are too large are spread again, by other bits of the hashes, at most this often.
DEEPEST = 9
# The numbers and the hashes of rows stand in the last two columns. Others may have these names.
ROW, HASH = "__pairgram_row__", "__pairgram_hash__"


def grouped(table: Table) -> Table:
    """Return the rows of a table with those of every query together, in the order they had.

    An engine that works on a frame groups it where it is, in every pass. Other rows are read once,
    and checked. If they take more than `Limits.bucket_bytes`, they are kept in a temporary
    folder, which is removed with the last table that reads it.

    Raises
    ------
    ValueError
        If the table has no query ids or has sparse rows, or if workers of a cluster read files.
    """
    if not table.has_queries:
        raise ArgumentError("group_queries", f"needs query ids: {table.advice_on_ids}")
    table._known[GROUPED] = True
    if not isinstance(table.engine, LocalEngine):
        engine: Any = table.engine
        return replace(table, engine=engine.grouped(table.layout.qid), ungrouped=table, _known={})
    if table.layout.sparse:
        raise ArgumentError(
            "group_queries",
            "must be False for sparse rows: sort the source by query, or give fit the rows in "
            "memory, where those of a query may stand anywhere",
        )
    arrow = pyarrow_for("group_queries=True")
    known: dict[str, Any] = {}
    pieces = _checked(table, known)
    waiting: list[Any] = []
    n_bytes, folder = 0, None
    first_rows: list[Rows] = []
    for piece in pieces:
        waiting.append(piece)
        n_bytes += piece.nbytes
        if n_bytes > limits.now.bucket_bytes:
            break
    if n_bytes <= limits.now.bucket_bytes:
        if not waiting:
            return table
        source = source_of(_together(arrow.concat_tables(waiting), first_rows))
    else:
        folder = _Folder()
        spread = _spread(chain(waiting, pieces), folder.path, 0, first_rows)
        source = source_of(arrow.dataset.dataset(list(spread), format="ipc"))
    layout = table.layout if table.schema is not None else _array_columns(table, source.schema)
    known |= {"folder": folder, FIRST_ROWS: np.concatenate(first_rows)}
    return replace(
        table,
        layout=layout,
        schema=source.schema,
        partitions=source.partitions,
        ungrouped=table,
        files=source.files,
        _known=known,
    )


class _Folder:
    """A temporary folder, which is removed when nothing refers to this any more."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="pairgram-")
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a fork has a copy of the object, but not the folder
        shutil.rmtree(path, ignore_errors=True)


def _checked(table: Table, known: dict[str, Any]) -> Iterator[Any]:
    """Yield all columns of the rows as pyarrow tables without dictionaries, with both of our own.

    Rows are checked here, where messages can still say where they come from. Some models take
    missing features, so the error that names the first one is kept in `known`, for the others.
    """
    import pyarrow

    schema = table.schema
    columns = replace(table.layout, fill=np.full(table.n_features, np.nan))
    if schema is not None:
        columns = replace(columns, keep=tuple(schema.names))
        schema = pyarrow.schema([(field.name, value_type(field.type)) for field in schema])
    n_rows = 0
    with table.files.unchanged():
        for number, partition in enumerate(table.partitions):
            for rows in partition.batches(number, columns, columns.refused is None):
                piece = _of_arrays(rows) if schema is None else rows.kept.cast(schema)
                may_lack = table.missing is None and GAP not in known and rows.X is not None
                if may_lack and np.isnan(rows.X).any():
                    known[GAP] = _error_of_gap(table, number, partition)
                hashes = np.repeat(hash_of_runs(rows), rows.sizes)
                numbers = n_rows + np.arange(len(hashes))
                n_rows += len(hashes)
                piece = piece.append_column(ROW, pyarrow.array(numbers))
                yield piece.append_column(HASH, pyarrow.array(hashes))


def _error_of_gap(table: Table, number: int, partition: Any) -> ArgumentError | None:
    """Return the error that names the first missing feature of a partition."""
    try:
        for _ in partition.batches(number, table.layout, True):
            pass
    except ArgumentError as error:
        return error.with_traceback(None)
    return None


def _of_arrays(rows: TableRows) -> Any:
    """Return rows of arrays as a pyarrow table, of which one column holds lists of features."""
    import pyarrow

    assert rows.ids is not None
    features = pyarrow.FixedSizeListArray.from_arrays(rows.X.ravel(), rows.X.shape[1])
    columns = {
        "features": features,
        "label": pyarrow.array(rows.y),
        "qid": pyarrow.array(rows.query),
    }
    if rows.weights is not None:
        columns["weight"] = pyarrow.array(rows.weights)
    return pyarrow.table(columns)


def _array_columns(table: Table, schema: pyarrow.Schema) -> Columns:
    return replace(
        table.layout,
        features=("features",),
        label="label",
        qid="qid",
        padded=table.leaves_zeros_out,
        weight="weight" if "weight" in schema.names else None,
    )


def _together(table: pyarrow.Table, first_rows: list[Rows]) -> Any:
    """Return the rows of a table with those of every query together; queries keep their order.

    The numbers of their first rows are added to a list.
    """
    hashes = _hashes(table).to_numpy()
    _, first, queries = np.unique(hashes, return_index=True, return_inverse=True)
    first_rows.append(np.sort(table.column(table.num_columns - 2).to_numpy()[first]))
    table = table.select(range(table.num_columns - 2))
    return table.take(np.argsort(first[queries], kind="stable"))


def _spread(
    pieces: Iterable[Any], folder: str, depth: int, first_rows: list[Rows]
) -> Iterator[str]:
    """Write rows to files that hold whole queries, and yield the paths of the files."""
    import pyarrow.compute

    places: dict[int, str] = {}
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for piece in pieces:
            buckets = _buckets(piece, depth)
            piece = piece.take(np.argsort(buckets, kind="stable"))
            ends = np.cumsum(np.bincount(buckets, minlength=1 << limits.now.bucket_bits)).tolist()
            for bucket in np.unique(buckets).tolist():
                if bucket not in writers:
                    places[bucket] = _new_path(folder)
                    writer = pyarrow.ipc.new_file(places[bucket], piece.schema)
                    writers[bucket] = stack.enter_context(writer)
                begin = ends[bucket - 1] if bucket else 0
                writers[bucket].write_table(piece.slice(begin, ends[bucket] - begin))
    for _, path in sorted(places.items()):
        with pyarrow.memory_map(path) as file:
            table = pyarrow.ipc.open_file(file).read_all()
            several = len(pyarrow.compute.unique(_hashes(table))) > 1
            if table.nbytes > limits.now.bucket_bytes and several and depth < DEEPEST:
                yield from _spread(in_batches(table), folder, depth + 1, first_rows)
            else:
                yield _written(_together(table, first_rows), folder)
            del table
        os.remove(path)


def _hashes(table: pyarrow.Table) -> Any:
    return table.column(table.num_columns - 1)


def _buckets(piece: pyarrow.Table, depth: int) -> Rows:
    hashes = _hashes(piece).to_numpy() >> np.uint64(limits.now.bucket_bits * depth)
    return (hashes % np.uint64(1 << limits.now.bucket_bits)).astype(np.int64)


def _new_path(folder: str) -> str:
    handle, path = tempfile.mkstemp(".arrow", dir=folder)
    os.close(handle)
    return path


def _written(table: pyarrow.Table, folder: str) -> str:
    import pyarrow

    path = _new_path(folder)
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, limits.now.batch_rows)
    return path
