"""`predict`: scores of a table, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pairgram._support.files import replacing
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table

__all__ = ["predict", "scores_of_table"]


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores batches by a model; a function that other processes can be sent."""

    model: Any

    def __call__(self, rows: TableRows) -> tuple[NDArray[Any], Any]:
        return self.model.predict(rows.X), rows.kept


def _batches(model: Any, table: Table, keep: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    check_is_fitted(model)
    table = table.in_order()
    n_features = getattr(model, "n_features_in_", table.n_features)
    if table.n_features != n_features:
        raise ValueError(
            f"the table must have the {n_features} features of fit, got {table.n_features}: give "
            "scan their names, as features="
        )
    names = getattr(model, "feature_names_in_", None)
    if names is not None and table.feature_names not in (None, list(names)):
        raise ValueError(
            f"the table must have the features of fit, {list(names)}, got {table.feature_names}"
        )
    if table.layout.fill is None:
        table = table.filling(getattr(model, "missing_", None))
    return table.for_scores(keep).map(_Scores(_without_names(model)))


def _without_names(model: Any) -> Any:
    """Return a model that scores arrays whose names have been checked."""
    return model._without_names() if hasattr(model, "_without_names") else model


def scores_of_table(model: Any, table: Table) -> Iterator[NDArray[Any]]:
    """Yield the scores of the rows of a table, in their order, some at a time."""
    for scores, _ in _batches(model, table, ()):
        yield scores


def predict(
    model: Any,
    table: Table,
    *,
    output: str | os.PathLike[str] | None = None,
    keep: Sequence[str] | None = None,
) -> Any:
    """Score the rows of a table that may be larger than memory.

    Parameters
    ----------
    model : fitted model with `predict`
    table : table of `scan`
        Its label is not read. The scores have the order of the source, also for a table with
        ``group_queries=True``.
    output : path of a Parquet file, or None, default=None
        Where to write. The file is written completely or not at all.
    keep : list of str or None, default=None
        Columns of the table that stand before the scores. None takes the query id.

    Returns
    -------
    int or iterator of pyarrow.Table
        With `output`, the number of rows written. Otherwise batches of rows, in the order of the
        table. The last column is "score".

    Raises
    ------
    ValueError
        If the table has other features than the model, or lacks a column of `keep`.
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
    import pyarrow.parquet

    if not isinstance(table, Table):
        raise TypeError(f"table must be a table of pairgram.scan, got {type(table).__name__}")
    table = table.in_order()
    if keep is None:
        keep = [] if table.layout.qid is None else [table.layout.qid]
    names = table.names_of_columns
    for name in keep:
        if name not in names:
            raise ValueError(f"keep: the table must have a column {name!r}, got {names}")
    batches = _tables(_batches(model, table, tuple(keep)))
    if output is None:
        return batches
    n_rows = 0
    with replacing(output) as file:
        writer = None
        for batch in batches:
            writer = writer or pyarrow.parquet.ParquetWriter(file, batch.schema)
            writer.write_table(batch)
            n_rows += batch.num_rows
        if writer is None:
            raise ValueError("the table has no rows")
        writer.close()
    return n_rows


def _tables(batches: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
    import pyarrow

    for scores, kept in batches:
        column = pyarrow.array(np.asarray(scores))
        if kept is None:
            yield pyarrow.table({"score": column})
        else:
            yield kept.append_column("score", column)
