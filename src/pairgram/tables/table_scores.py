"""Score the rows of a table by a fitted model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any

from pairgram._support.arrays import require_columns
from pairgram._support.checks import ArgumentError
from pairgram._support.files import WRITTEN, replacing
from pairgram.data.streams import as_stream
from pairgram.tables.columns import refuse_repeated
from pairgram.tables.table import no_rows

# The name of the column of scores.
SCORE = "score"
# What separates columns of text.
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def predict(
    model: Any,
    table: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    keep: Sequence[str] | str | None = None,
) -> Any:
    """Score the rows of a table that may be larger than memory.

    Parameters
    ----------
    model : fitted model with `predict`
        A Pipeline that encodes text scores named columns of text too; its scores are those of
        `row_scorer`, and the columns that it drops need not be there.
    table : table of `scan`
        Its label is not read. The scores have the order of the source. Spark may give the rows of a
        shuffled frame another order every time: have `keep` name the rows then.
    output : path or None, default=None
        Where to write. The end of the name decides the format: Parquet (.parquet, .pq or none),
        Arrow (.arrow, .ipc, .feather), CSV (.csv, commas) or TSV (.tsv, tabs). The file is written
        completely or not at all.
    keep : list of str, str or None, default=None
        Columns, or one column, of the table that stand before the scores. None takes the query id.
        A column of CSV and TSV files is text as it stands there, a number as well, unless it is a
        feature, label or weight; folders such as ``day=1`` hold what pyarrow takes them for.

    Returns
    -------
    int or iterator of pyarrow.Table
        With `output`, the number of rows written. Otherwise batches of rows, in the order of the
        table. The last column is "score".

    Raises
    ------
    ValueError
        If the table has other features than the model, or lacks a column of `keep`. If `output` is
        a file that the table reads, or its name has another ending than these.
    OSError
        If the file cannot be written. There is then no new file, and an old one is unchanged.

    Examples
    --------
    >>> import pairgram
    >>> X, y, qid = pairgram.make_ranking(random_state=0)
    >>> pairgram.dump_letor("train.txt", X, y, qid=qid)
    >>> table = pairgram.scan("train.txt")
    >>> model = pairgram.RankRLSCV().fit(table)
    >>> pairgram.predict(model, table, output="scores.parquet")
    2000
    """
    if as_stream(table) is None:
        raise TypeError(f"table must be a table of pairgram.scan, got {type(table).__name__}")
    if output is not None:
        ending = os.path.splitext(os.fspath(output))[1].lower()
        if ending not in ("", *WRITTEN):
            raise ValueError(
                f"output is a file of columns: want a name that ends with {', '.join(WRITTEN)}, "
                f"got {ending}"
            )
        table.refuse_output(output)
    if keep is None:
        keep = [] if table.layout.qid is None else [table.layout.qid]
    keep = [keep] if isinstance(keep, str) else list(keep)
    refuse_repeated(keep, "keep")
    require_columns(keep, table.layout.schema.names, "keep", "the table")
    if SCORE in keep:
        raise ArgumentError("keep", f"must not name {SCORE!r}, which is the column of the scores")
    batches = _tables(table.scored(model, tuple(keep)))
    if output is None:
        return batches
    with replacing(output) as file:
        return write_tables(file, ending, batches)


def write_tables(file: IO[bytes], ending: str, batches: Iterator[Any]) -> int:
    """Write tables of pyarrow with the same columns to an open file; return the number of rows.

    The file is Parquet unless its `ending` is another one of `WRITTEN`.

    Raises
    ------
    ValueError
        If there are no rows, or a column that text cannot hold, such as one of lists.
    """
    n_rows, first = 0, next(batches, None)
    if first is None:
        raise no_rows()
    with _writer(file, ending, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_table(batch)
            n_rows += batch.num_rows
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


def _tables(batches: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
    import pyarrow

    for scores, kept in batches:
        column = pyarrow.array(scores)
        yield pyarrow.table({SCORE: column}) if kept is None else kept.append_column(SCORE, column)
