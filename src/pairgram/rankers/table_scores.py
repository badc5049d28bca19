"""`predict`: scores of a table, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import require_columns
from pairgram._support.checks import ArgumentError
from pairgram._support.files import replacing
from pairgram.tables.columns import refuse_repeated
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table, no_rows

# The name of the column of scores.
SCORE = "score"
# What the name of a Parquet file may end with.
ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores batches by a model; a function that other processes can be sent."""

    model: Any

    def __call__(self, rows: TableRows) -> tuple[NDArray[Any], Any]:
        return self.model.predict(rows.X), rows.kept


def _batches(model: Any, table: Table, keep: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    check_is_fitted(model)
    table, model = table.in_order().for_model(model)
    return table.for_scores(keep).each(_Scores(model))


def scores_of_table(model: Any, table: Table) -> NDArray[Any]:
    """Return the scores of the rows of a table, in their order."""
    found = [scores for scores, _ in _batches(model, table, ())]
    if not found:
        raise no_rows()
    return np.concatenate(found)


def predict(
    model: Any,
    table: Table,
    *,
    output: str | os.PathLike[str] | None = None,
    keep: Sequence[str] | str | None = None,
) -> Any:
    """Score the rows of a table that may be larger than memory.

    Parameters
    ----------
    model : fitted model with `predict`
    table : table of `scan`
        Its label is not read. The scores have the order of the source, also for a table with
        ``group_queries=True``. Spark may give the rows of a shuffled frame another order every
        time: have `keep` name the rows then.
    output : path of a Parquet file, or None, default=None
        Where to write. The file is written completely or not at all.
    keep : list of str, str or None, default=None
        Columns, or one column, of the table that stand before the scores. None takes the query id.

    Returns
    -------
    int or iterator of pyarrow.Table
        With `output`, the number of rows written. Otherwise batches of rows, in the order of the
        table. The last column is "score".

    Raises
    ------
    ValueError
        If the table has other features than the model, or lacks a column of `keep`. If `output` is
        a file that the table reads, or its name has another ending than .parquet or .pq.
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
    try:
        import pyarrow.parquet
    except ImportError as error:
        message = "pairgram.predict needs pyarrow: pip install 'pairgram[parquet]'"
        raise ImportError(message) from error
    if not isinstance(table, Table):
        raise TypeError(f"table must be a table of pairgram.scan, got {type(table).__name__}")
    if output is not None:
        ending = os.path.splitext(os.fspath(output))[1]
        if ending.lower() not in ("", *ENDINGS):
            raise ValueError(
                f"output is written as Parquet: want a name that ends with .parquet, got {ending}"
            )
        table.refuse_output(output)
    table = table.in_order()
    if keep is None:
        keep = [] if table.layout.qid is None else [table.layout.qid]
    keep = [keep] if isinstance(keep, str) else list(keep)
    refuse_repeated(keep, "keep")
    names = table.names_of_columns
    require_columns(keep, names, "keep", "the table")
    for name in keep:
        if name == SCORE:
            raise ArgumentError(
                "keep", f" must not name {name!r}, which is the column of the scores"
            )
    batches = _tables(_batches(model, table, tuple(keep)))
    if output is None:
        return batches
    n_rows = 0
    with replacing(output) as file:
        writer = None
        try:
            for batch in batches:
                writer = writer or pyarrow.parquet.ParquetWriter(file, batch.schema)
                writer.write_table(batch)
                n_rows += batch.num_rows
            if writer is None:
                raise no_rows()
            writer.close()
        except BaseException:
            if writer is not None:
                writer.is_open = False  # otherwise its finalizer writes to the closed file
            raise
    return n_rows


def _tables(batches: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
    import pyarrow

    for scores, kept in batches:
        column = pyarrow.array(np.asarray(scores))
        if kept is None:
            yield pyarrow.table({SCORE: column})
        else:
            yield kept.append_column(SCORE, column)
