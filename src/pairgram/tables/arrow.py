"""Rows of a table that come as batches of pyarrow, or as frames that become such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairgram.tables.columns import Columns, Place, kind_of_values, placed_error, plain_values
from pairgram.tables.rows import TableRows

# Rows are read in batches of about this many, in whatever pieces the source gives them.
BATCH_ROWS = 1 << 17
FEWEST_BATCH_ROWS = 1 << 16
# Types of polars that Arrow does not have.
WIDE = ("Int128", "UInt128")


def rows_of_batches(
    batches: Iterable[Any], number: int, name: str, columns: Columns, features: bool
) -> Iterator[TableRows]:
    """Yield the rows of pyarrow batches or tables; small ones are put together."""
    import pyarrow

    first, n_waiting, known = 0, 0, None
    waiting: list[Any] = []

    def rows() -> TableRows:
        table, place = waiting[0], Place(name, number, first)
        if len(waiting) > 1:
            try:
                table = pyarrow.concat_tables(waiting, promote_options="permissive")
            except pyarrow.ArrowException as error:
                raise placed_error(
                    f"{place.row(0)}, and on: the types of a column differ: {error}"
                ) from error
        return columns.rows(table, place, features)

    for batch in batches:
        if batch.num_rows == 0:
            continue
        if columns.qid is not None:  # ids of one type only can be compared
            kind = kind_of_values(batch.schema.field(columns.qid).type)
            known = kind if known is None else known
            if kind != known:
                raise placed_error(
                    f"{Place(name, number, first).row(n_waiting)}: column {columns.qid!r}, the "
                    f"query id, holds {kind}, but before {known}"
                )
        is_batch = isinstance(batch, pyarrow.RecordBatch)
        waiting.append(plain_values(pyarrow.Table.from_batches([batch]) if is_batch else batch))
        n_waiting += batch.num_rows
        if n_waiting >= FEWEST_BATCH_ROWS:
            yield rows()
            first, waiting, n_waiting = first + n_waiting, [], 0
    if waiting:
        yield rows()


def copied(table: Any) -> Any:
    """Return a pyarrow table with the same rows in memory of its own.

    Arrow's data may lie in arrays that somebody else writes to, and does not tell whether it does.
    """
    import pyarrow

    counter = pyarrow.MockOutputStream()
    _write(counter, table)
    buffer = pyarrow.allocate_buffer(counter.size())
    _write(pyarrow.FixedSizeBufferWriter(buffer), table)
    return pyarrow.ipc.open_stream(buffer).read_all()


def _write(sink: Any, table: Any) -> None:
    import pyarrow

    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def to_arrow(frame: Any) -> Any:
    """Return a frame of pandas or polars, or a record batch, as a pyarrow table."""
    import pyarrow

    if isinstance(frame, pyarrow.Table):
        return frame
    if isinstance(frame, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):
        schema = getattr(frame, "schema", None)
        for name, kind in schema.items() if isinstance(schema, Mapping) else ():
            if str(kind) in WIDE:
                raise ValueError(
                    f"column {name!r} holds {kind}, which Arrow does not have: cast it to Int64 or "
                    "Float64 before, or select other columns"
                )
        return frame.to_arrow()
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    raise TypeError(
        "batches must be frames of pandas or polars, pyarrow tables or record batches, or tuples "
        f"(X, y, qid) of arrays, got {type(frame).__name__}"
    )
