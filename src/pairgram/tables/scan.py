"""`scan` describes a table by its source and the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.arrays import (
    columns_of,
    index_columns,
    kind_of,
    not_numbers,
    require_columns,
)
from pairgram._support.checks import (
    NO_COLUMN,
    NO_NUMBERS,
    ArgumentError,
    verbatim,
    warn_caller,
)
from pairgram._support.parameters import check_size
from pairgram.tables.columns import (
    Columns,
    TableRows,
    is_number,
    refuse_repeated,
    require_width,
    value_type,
)
from pairgram.tables.passes import LocalEngine
from pairgram.tables.scanned import ScannedTable
from pairgram.tables.sources import Source, source_of
from pairgram.tables.table import Table, no_rows

# The first column of `DataFrame.to_csv` in the file, and as pandas names it once it has been read.
NAMELESS = ("", "Unnamed: 0")

# The length of the lists of a column of lists that the schema does not tell.
UNKNOWN = -1
# The types of which float32 holds every number.
NARROW = {"float", "halffloat", "bool", "int8", "int16", "uint8", "uint16"}

if TYPE_CHECKING:
    from distributed import Client


def scan(
    source: object,
    *,
    label: str | None = None,
    qid: str | None = None,
    features: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str | None = None,
    weight: str | None = None,
    propensity: str | None = None,
    n_features: int | None = None,
    client: Client | None = None,
) -> Table:
    """Describe a table of rows that are read only when they are needed, as in polars.

    The table replaces X, y, qid and weights: ``fit(table)``, ``predict(table)``,
    ``evaluate(metrics, table, model)``. It may be larger than memory. Its rows are read in blocks,
    once for every pass of an algorithm. The rows of a query must stand together, but may continue
    in the next file or block: sort other rows first, with DuckDB or polars. `predict` needs no
    queries.

    Parameters
    ----------
    source : path, list of paths, frame, dataset or function
        - A file, a folder, a pattern such as ``"data/*.parquet"``, or a list of these: Parquet,
          Arrow, CSV (.csv, commas) and TSV files (.tsv, tabs), and LETOR files, plain or
          compressed. One address such as ``s3://bucket/folder`` is opened by pyarrow, without
          patterns; with fsspec, give ``pyarrow.dataset.dataset(paths, filesystem=...)``.
          Files have the columns of all of them together, and miss the values of those that they
          lack. Folder names such as ``day=1`` become a column. A file may hold a column of the same
          name, whose values are replaced, only in Arrow's type of the folder: int32 or string.
        - A table of deltalake or pyiceberg, a ``pyarrow.dataset``, or a relation of DuckDB, which
          is asked anew in every pass: let it end in ``ORDER BY`` the query.
        - A frame of pandas or polars, lazy or not, a table or record batch of pyarrow, or what else
          speaks Arrow's C stream. Later changes of a frame of pandas are not seen: the table has
          the rows of the time of `scan`. Do not change arrays from which you made a frame or a
          table without a copy.
        - A dataframe of Dask or Spark. Its partitions are worked on where they are. Dask makes text
          of columns of lists, unless ``dask.config.set({"dataframe.convert-string": False})`` comes
          before.
        - A function without arguments that returns an iterator of frames or record batches. It is
          called for every pass, and must yield the same rows each time. A batch is copied before
          the next one is asked for, so the function may reuse its memory. Arrays are columns of
          one: ``pyarrow.table({"price": prices, "label": y, "query": qid})``.
    label : str or None, default=None
        The column of relevance labels, any real numbers. Only `predict` needs none.
    qid : str or None, default=None
        The column of query ids: whole numbers, text or times. In CSV, TSV and LETOR files, ids are
        text, so that "007" and "7" are two queries, and an empty id is missing.
    features : list of str, str or None, default=None
        The columns that are features, of numbers or of lists of numbers, such as embeddings. Each
        entry of a list is a feature, and all lists of a column have the same length. Such features
        may also be named by their entries, as in ``feature_names_in_`` of a fitted model:
        ``["embedding[0]", "embedding[1]"]``. None takes all columns except those that other
        arguments name, those of `exclude`, the index of a frame of pandas, which Parquet files
        keep, and, for files and datasets of pyarrow, columns from folder names such as ``day=1``.
        Booleans count as 0 and 1, and dictionaries as their values. Named columns may hold other
        values, such as text, which only a fitted Pipeline takes: `predict` and `evaluate` read the
        columns that its steps read. A text that pandas reads as missing is missing in CSV and TSV
        files too, unless the fit has seen it as a category.
    exclude : list of str, str or None, default=None
        The columns that are not features, such as titles, if you do not give `features`.
    weight : str or None, default=None
        The column of row weights, finite and ≥ 0, as `sample_weight` of `RankRLS.fit`.
    propensity : str or None, default=None
        The column of propensities, as those of `Clicks`. The label is then the column
        of clicks.
    n_features : int or None, default=None
        The number of features of LETOR files, which omit zeros. None takes the largest index that
        they contain, at most 8,192: `load_letor` reads wider files as sparse rows. Validation
        tables, and tables that a model scores, get the features of the table of `fit` in any case.
        For other sources it must be None.
    client : distributed.Client or None, default=None
        A Dask cluster that reads the files and works on them. Its workers must see the files.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If there is no such file or column, or if a feature that was not named is not a number.
        Named features that are no numbers, unless a Pipeline reads them, and errors in rows are
        found when they are read; the message then names the file, the column and the row. A later
        pass raises this error if the number of rows has changed.
    TypeError
        If `source` is none of the sources above.
    ImportError
        If pyarrow is missing.

    Notes
    -----
    Files are read anew in every pass. Do not write them during a fit: only a change of their number
    of rows is noticed. If a file was rewritten, `scan` it again.

    A first pass reads only labels, query ids and weights. For frames of Dask it reads all columns,
    as every pass does, because Dask's partitions depend on the columns. The pass counts rows, and
    checks that the rows of each query stand together. Random samples of rows, such as landmarks, or
    those for the width of a kernel or for quantiles of more than 100,000 rows, are drawn by hashes
    of row numbers. They therefore depend only on the order of the rows. ``scope="global"`` takes
    the pairs "with_ties" alone, as others need the weight of every label first. Blocks are joined
    in a fixed tree: the same files give the same bits in every run.

    Scores of a Spark frame have the order in which Spark collects its rows. After a shuffle, as by
    ``repartition`` or ``dropDuplicates``, a cluster may collect them in another order every time.
    Persist such a frame if the order or the bits matter, or identify the rows by ``keep=`` of
    `predict`. To keep the order, Spark reads all columns of a frame that is scored, though it sends
    Python only those of the model: select columns before you shuffle.

    Means and medians of columns take one more pass. Medians are those of at most 100,000 rows that
    are drawn.

    Features are float32 if every column is float32 or narrower, otherwise float64. LETOR files are
    read as float64, and so are features, labels and weights of CSV and TSV files. Where Parquet or
    Arrow files have different types of numbers for a column, it is read as a type that holds all,
    such as float64 for integers and floats.

    Examples
    --------
    >>> import pairgram
    >>> X, y, qid = pairgram.make_ranking(random_state=0)
    >>> pairgram.dump_letor("train.txt", X, y, qid=qid)
    >>> table = pairgram.scan("train.txt")
    >>> pairgram.RankRLSCV().fit(table).predict(table).shape
    (2000,)
    """
    found = source_of(source)
    named = {"label": label, "qid": qid, "weight": weight, "propensity": propensity}
    columns = _columns(found, named, features, exclude)
    engine: Any = LocalEngine()
    if found.engine is not None:
        if client is not None:
            raise ValueError("client must be None for a frame of Dask or Spark, which has its own")
        engine = found.engine(columns.names())
    elif client is not None:
        try:
            from pairgram.tables.dask import DaskEngine
        except ImportError as error:
            raise ImportError("client needs Dask: pip install 'pairgram[dask]'") from error
        engine = DaskEngine(client)
    table = _measured(
        ScannedTable(columns, found.partitions, engine, found.files, found.folders, found.is_letor)
    )
    if features is not None:
        own = table.layout.features
        for name, width in columns_of(_listed(features), own)[1].items():
            require_width(name, width, own[name])
    if n_features is not None:
        check_size("n_features", n_features)
        table = table.widened(n_features)
        if table.n_features != n_features or not table.is_letor:
            raise ValueError(
                f"n_features must be None, or for LETOR files at least the {table.n_features} "
                f"features of the source, got {n_features}"
            )
    return table


def read_labels(source: object, label: str | None, qid: str | None = None) -> tuple[Any, Any]:
    """Return the labels and ids of all rows in memory, without reading other columns.

    Parameters
    ----------
    source, label, qid : as in `scan`

    Returns
    -------
    y : ndarray of shape (n_rows,), float64, or None
    ids : ndarray of shape (n_rows,), or None

    Raises
    ------
    ValueError
        As in `scan`, and if a value is missing.
    """
    found = source_of(source)
    columns = found.typed(Columns({}, **_told(found, {"label": label, "qid": qid})))
    rows = Table(columns, found.partitions, LocalEngine()).whole()
    return rows.y, rows.query


def _measured(table: ScannedTable) -> ScannedTable:
    """Return the table with the lengths of all lists: those of the first ones."""
    known = table.layout.features
    unknown = [name for name, width in known.items() if width == UNKNOWN]
    if not unknown:
        return table
    first = next(table.for_scores(tuple(unknown), features={}).each(_first_lengths), None)
    if first is None:
        raise no_rows()
    features = {**known, **dict(zip(unknown, first, strict=True))}
    return replace(table, layout=replace(table.layout, features=features))


def _first_lengths(rows: TableRows) -> list[int]:
    """Return the lengths of the first lists of the columns that are kept; 0 for none."""
    firsts = [column.drop_null().slice(0, 1).to_pylist() for column in rows.kept.columns]
    return [len(first[0]) if first else 0 for first in firsts]


def _columns(source: Source, named: dict[str, Any], features: Any, exclude: Any) -> Columns:
    """Return what is read.

    `named` are the columns that are no features, by arguments of `scan`.
    """
    told = _told(source, named, features=features, exclude=exclude)
    names = ["X"] if source.is_letor else _features(source, named, features, exclude)
    widths: dict[str, int] = {}
    wrong, narrow = {}, True
    for name in names:
        kind = value_type(source.schema.field(name).type)
        entry = kind.value_type if kind_of(kind) == "lists" else kind
        widths[name] = 0 if entry is kind else getattr(kind, "list_size", 0) or UNKNOWN
        narrow &= str(entry) in NARROW
        if not is_number(entry):
            wrong[name] = kind_of(kind)
    if wrong and (features is None or "lists" in wrong.values()):
        refused = ArgumentError(
            "features",
            f": {verbatim(not_numbers(wrong))}; give the columns that are features by {{features=}}"
            f", or those that are not by {{exclude=}}"
            f"{', and query ids by {qid=}' * (named['qid'] is None)}"
            "{=; a fitted model has its own as feature_names_in_}",
            found=NO_NUMBERS,
        )
        refused.kinds = wrong
        raise refused
    dtype = np.float32 if narrow and not source.is_text else np.float64
    return source.typed(Columns(widths, dtype=dtype, **told))


def _features(source: Source, named: dict[str, Any], features: Any, exclude: Any) -> list[str]:
    """Return the names of the columns that are features."""
    known, left_out = source.schema.names, _listed(exclude)
    if features is not None and exclude is not None:
        raise ArgumentError(
            "exclude", f"must be None with {{features=}}, got {verbatim(repr(exclude))}"
        )
    require_columns(left_out, known, "exclude", "the table")
    if features is None:
        own = {*named.values(), *left_out, *index_columns(source.schema), *source.folders}
        first = known[0]
        if first in NAMELESS and first not in own:
            own.add(first)
            text = (
                f"the first column has no name{' but that of pandas' * bool(first)} and is left "
                "out, as the row numbers of pandas' to_csv: name the features"
            )
            warn_caller(text, UserWarning)
        names = [name for name in known if name not in own]
    else:
        names = columns_of(_listed(features), known)[0]
    require_columns(names, known, "features", "the table")
    refuse_repeated(names, "features")
    for name, value in named.items():
        if value in names:
            raise ArgumentError(
                "features",
                f"must not name {verbatim(repr(value))}, which is the column of {{{name}=}}",
            )
    if not names:
        raise ArgumentError("features", "must name a column or more", found=NO_COLUMN)
    return names


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else [*map(str, () if names is None else names)]


def _told(source: Source, named: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the columns that are no features, by arguments, which must be in the source.

    The columns of arrays have names of their own, so that nothing may be told of them.
    """
    if source.is_letor:
        for name, value in (named | others).items():
            if value is not None:
                raise ArgumentError(
                    name,
                    f"must be None for LETOR files, whose columns have no names, got "
                    f"{verbatim(repr(value))}",
                )
        return {"label": "y", "qid": "qid" if "qid" in source.schema.names else None}
    qid = named["qid"]
    for name, value in named.items():
        if value is not None:
            require_columns([value], source.schema.names, name, "the table")
            if value == qid and name != "qid":
                raise ArgumentError(
                    "qid",
                    f"must not name {verbatim(repr(qid))}, which is the column of {{{name}=}}",
                )
    return named
