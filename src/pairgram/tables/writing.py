"""Write batches of columns to a file: Parquet, Arrow, or text with commas or tabs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from pairgram.tables.table import no_rows

# What separates columns of text.
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def write_batches(file: IO[bytes], ending: str, batches: Iterator[Any]) -> int:
    """Write tables of pyarrow with the same columns to an open file; return the number of rows.

    The file is Parquet unless its `ending` is another one of `WRITTEN`.

    Raises
    ------
    ValueError
        If there are no rows, or a column that text cannot hold, such as one of lists.
    """
    n_rows, writer = 0, None
    try:
        for batch in batches:
            writer = writer or _writer(file, ending, batch.schema)
            writer.write_table(batch)
            n_rows += batch.num_rows
        if writer is None:
            raise no_rows()
        writer.close()
    except BaseException:
        if hasattr(writer, "is_open"):
            writer.is_open = False  # otherwise its finalizer writes to the closed file
        raise
    return n_rows


def _writer(file: IO[bytes], ending: str, schema: Any) -> Any:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    if ending in SEPARATORS:
        plain = pyarrow.csv.WriteOptions(delimiter=SEPARATORS[ending], quoting_style="needed")
        return pyarrow.csv.CSVWriter(file, schema, write_options=plain)
    if ending in (".arrow", ".ipc", ".feather"):
        return pyarrow.ipc.new_file(file, schema)
    return pyarrow.parquet.ParquetWriter(file, schema)
