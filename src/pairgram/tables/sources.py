"""What a table may be made of: files, datasets, what speaks Arrow, LETOR files and functions."""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np

from pairgram._support import limits
from pairgram._support.files import naming, shown
from pairgram.datasets.letor import (
    DAMAGE,
    LetorError,
    as_text_ids,
    count_features,
    has_ids,
    looks_like_letor,
    read_letor,
    unpacked,
)
from pairgram.tables.columns import (
    GAPS,
    Columns,
    TableRows,
    common_schema,
    counted,
    is_number,
    kind_of_values,
    placed_error,
    rows_of_batches,
    to_arrow,
    with_types,
)


def _letor(path: str, names: list[str], schema: Any) -> Iterator[Any]:
    """Yield the rows of a LETOR file, plain or compressed, some at a time.

    Its ids are text, because one piece of the file does not know what ids another has.
    """
    import pyarrow

    n_lines, name, width = 0, shown(path), schema.field("X").type.list_size
    with open(path, "rb") as raw, naming(path):
        kind, file = unpacked(raw)
        while lines := _lines(file, kind, name):
            if any(line.partition(b"#")[0].strip() for line in lines):
                piece: Any = io.BytesIO(b"".join(lines))
                try:
                    X, y, qid = read_letor(io.BufferedReader(piece), name, n_features=width)
                except LetorError as error:
                    if error.line is not None:
                        error.line += n_lines  # those of the file, not of the piece
                    raise
                lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), width)
                columns = {"X": lists, "y": y, "qid": None if qid is None else as_text_ids(qid)}
                yield pyarrow.table({name: columns[name] for name in names})
            n_lines += len(lines)


def letor_schema(width: int, has_ids: bool) -> Any:
    """Return the columns of LETOR files of so many features."""
    import pyarrow

    lists = pyarrow.list_(pyarrow.float64(), width)
    fields = [("X", lists), ("y", pyarrow.float64()), ("qid", pyarrow.string())]
    return pyarrow.schema(fields if has_ids else fields[:2])


def _lines(file: IO[bytes], kind: str, name: str) -> list[bytes]:
    """Return the next lines of a file, of about so many bytes as a limit says."""
    try:
        return file.readlines(limits.now.piece_bytes)
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the system, not of the contents
        raise ValueError(
            f"{name}: found a damaged or cut-off {kind} stream, want a whole one: {error}"
        ) from None


WIDE = (
    "a column holds integers of more than 64 bits, which pyarrow does not know: cast it to Int64 "
    "or Float64 before"
)
# What errors of pyarrow come to, by words in them.
CAUSES = {
    "Unrecognized filesystem": "pyarrow does not know such addresses: give scan a dataset, "
    "pyarrow.dataset.dataset(path, filesystem=fsspec.filesystem(...))",
    "Cannot parse URI": "pyarrow.dataset.dataset(paths, filesystem=...) takes patterns and signs",
    "Integers with more than 64 bits": WIDE,
    "_pli128": WIDE,
    "_plu128": WIDE,
    "newlines_in_values": "a value in quotes goes on in the next line: give the path of the file, "
    "or a dataset of CsvFileFormat(ParseOptions(newlines_in_values=True))",
    "Expected 1 columns, got": "its lines differ in their number of columns: want columns "
    "separated by commas in a file .csv and by tabs in a file .tsv, texts with commas in quotes, "
    "and numbers with a decimal point",
    "straddling object": "a value in quotes is longer than 1 MiB, or a quote is never closed: "
    "write a quote within a value twice, and the value in quotes",
    "codec can't decode": "it is not text in UTF-8: convert it first",
    "surrogates not allowed": "pyarrow takes names in UTF-8 alone: rename it",
    "Expected a local filesystem path": "scan takes one address, or a dataset of several: "
    "pyarrow.dataset.dataset(paths, filesystem=...)",
    "invalid UTF8 data": "it is not text in UTF-8: convert it first, as iconv -f LATIN1 -t UTF-8 "
    "does",
}

# What errors of pyarrow call columns and rows of files of text.
IN_COLUMN, AT_ROW = re.compile("In CSV column #([0-9]+)"), re.compile("Row #([0-9]+)")


class Source(NamedTuple):
    """Where rows come from.

    Attributes
    ----------
    partitions : tuple of Partition
    schema : pyarrow.Schema
    engine : callable or None
        Returns the engine that works on the source, given the names of the columns that are read.
        With None, the caller chooses one.
    files : sequence of str
        The files that hold the rows, none of which may be written meanwhile.
    folders : collection of str
        The columns whose values stand in the names of folders, such as ``day=1``, not in files.
    is_text : bool
        Whether the rows stand in files of text, whose types are guessed.
    is_letor : bool
        Whether the rows stand in LETOR files, whose columns have no names.
    """

    partitions: tuple[Partition, ...]
    schema: Any
    engine: Any = None
    files: Sequence[str] = ()
    folders: Collection[str] = ()
    is_text: bool = False
    is_letor: bool = False

    def typed(self, columns: Columns) -> Columns:
        """Return the columns with the types that files of text are read as.

        Numbers are floats, because types are guessed by the first rows, which may lack the decimals
        of later ones. All else is text: as numbers, the ids "007" and "7" would be one query.
        """
        kinds, numbers = {}, {columns.label, columns.weight, columns.propensity}
        for one in self.schema if self.is_text else ():
            if one.name in columns.features and is_number(one.type):
                numbers.add(one.name)
            kind = "double" if one.name in numbers else "string"
            if one.name not in self.folders and (kind, str(one.type)) != ("double", "bool"):
                kinds[one.name] = kind
        return replace(columns, schema=with_types(self.schema, kinds), is_text=self.is_text)


def source_of(source: Any) -> Source:
    """Find out what a source is.

    Raises
    ------
    TypeError
        If it is none of the sources that `scan` describes.
    ValueError
        If there is no file, or if a file is of no known kind.
    """
    try:
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.fs  # noqa: F401
    except ImportError as error:
        text = "pairgram.scan needs pyarrow: pip install 'pairgram[parquet]'"
        raise ImportError(text) from error
    given = source if isinstance(source, (list, tuple)) else [source]
    if given and all(isinstance(path, (str, os.PathLike)) for path in given):
        return _of_paths([os.fspath(path) for path in given])
    module = type(source).__module__.partition(".")[0]
    if module in ("dask", "dask_expr") and hasattr(source, "to_delayed"):
        return _of_dask(source)
    if module == "pyspark" and hasattr(source, "mapInArrow"):
        return _of_spark(source)
    if callable(source):
        return _of_function(source)
    if hasattr(source, "to_pyarrow_dataset"):  # a table of deltalake
        source = source.to_pyarrow_dataset()
    if hasattr(source, "get_fragments"):
        return _of_dataset(source)
    with readable("the source"):
        return _of_arrow(source, module)


def _of_arrow(source: Any, module: str) -> Source:
    """Find out what rows are that a package gives to Arrow."""
    import pyarrow

    if module == "pyiceberg":
        found = source.scan() if hasattr(source, "scan") else source
        schema = found.to_arrow_batch_reader().schema
        return _of_stream(schema, lambda names, _: found.select(*names).to_arrow_batch_reader())
    if module == "polars" and hasattr(source, "collect"):  # a lazy frame
        schema = to_arrow(source.head(0).collect()).schema
        return _of_stream(schema, partial(_of_lazy_frame, source))
    if hasattr(source, "fetch_arrow_reader"):  # a relation of DuckDB
        read = pyarrow.RecordBatchReader.from_stream
        schema = read(source.limit(0)).schema
        return _of_stream(schema, lambda names, _: read(source.select(*names)))
    if module == "pandas":
        source = source.copy()  # which does not see later changes
    elif hasattr(source, "read_next_batch") or not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(
            "source must be a path or a list of paths, a frame, a dataset or a table that gives "
            "its rows to Arrow as often as it is asked, or a function that returns an iterator of "
            f"batches, got {type(source).__name__}"
        )
    table = to_arrow(source)
    return _of_stream(table.schema, partial(_of_table, table), "the table")


def _of_table(table: Any, names: list[str], _: object) -> list[Any]:
    return table.select(names).to_batches(limits.now.batch_rows)


def _of_lazy_frame(frame: Any, names: list[str], _: object) -> Iterable[Any]:
    frame = frame.select(names)
    if not hasattr(frame, "collect_batches"):
        return [frame.collect()]
    return frame.collect_batches(chunk_size=limits.now.batch_rows, maintain_order=True)


def _of_stream(schema: Any, *told: Any) -> Source:
    return Source((Partition(*told),), schema)


@dataclass(frozen=True, eq=False)
class Partition:
    """Consecutive rows of a table, which can be read again and again.

    Attributes
    ----------
    stream : callable
        Yields Arrow's batches, or frames, given names of columns, and the schema that says the
        types which columns are read as.
    name : str
        What messages call the place: a file, or a part of the table.
    """

    stream: Callable[[list[str], Any], Iterable[Any]]
    name: str = "the source"

    def batches(self, number: int, columns: Columns) -> Iterator[TableRows]:
        """Yield the rows, some at a time. `number` is that of the partition."""
        names = columns.names() or columns.schema.names[:1]  # one tells how many rows there are
        with readable(self.name):
            batches = self.stream(names, columns.schema)
            yield from rows_of_batches(batches, number, self.name, columns)


# Files of columns ---------------------------------------------------------------------------------

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "feather",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
}
SEPARATORS = {"csv": ",", "tsv": "\t"}


def _of_paths(names: list[str]) -> Source:
    import pyarrow

    found = names
    if "://" not in names[0]:
        found = [one for name in names for one in _expanded(name)]
        if all(os.path.isfile(name) and looks_like_letor(name) for name in found):
            return _of_letor(found)
    kind = _format(found)
    if kind in SEPARATORS:  # a value in quotes may go on in the next line
        options = pyarrow.csv.ParseOptions(delimiter=SEPARATORS[kind], newlines_in_values=True)
        numbers = pyarrow.csv.ConvertOptions(null_values=sorted(GAPS))
        kind = pyarrow.dataset.CsvFileFormat(options, convert_options=numbers)
    with naming(shown(names[0])), readable(found[0]):
        dataset = pyarrow.dataset.dataset(
            found[0] if len(found) == 1 else found,
            format=kind,
            partitioning="hive",
        )
    _refuse_lakes(dataset)
    if not dataset.files:
        raise ValueError(f"{shown(names[0])}: found no file to read")
    return _of_dataset(dataset, unites=True)


def _of_letor(paths: list[str]) -> Source:
    width = max(map(count_features, paths))
    if width > limits.now.widest_letor:
        raise ValueError(
            f"{shown(paths[0])}: found {width} features, more than the {limits.now.widest_letor} "
            "that a table has as dense rows: pairgram.load_letor(path, sparse=True) reads them"
        )
    ids = {has_ids(path): shown(path) for path in paths}
    if len(ids) > 1:
        raise ValueError(
            f"query ids must be in all files or none: {ids[True]} has, {ids[False]} not"
        )
    parts = tuple(Partition(partial(_letor, path), shown(path)) for path in paths)
    return Source(parts, letor_schema(width, True in ids), files=paths, is_letor=True)


def _expanded(name: str) -> list[str]:
    """Return the paths on this machine that a path or a pattern stands for."""
    if os.path.exists(name):
        return [name]
    if not any(sign in name for sign in "*?["):
        raise FileNotFoundError(2, "No such file or directory", name)
    if found := sorted(glob.glob(name, recursive=True)):
        return found
    raise ValueError(f"{shown(name)}: no file has such a name")


def _format(paths: Sequence[str]) -> str:
    """Return the format of files, by the name of the first one; a folder holds Parquet files."""
    name = paths[0]
    if os.path.isdir(name):
        inside = sorted(glob.iglob(f"{glob.escape(name)}/**", recursive=True))
        shown_ones = (one for one in inside if not re.search(r"[/\\][_.]", one[len(name) :]))
        name = next(filter(os.path.isfile, shown_ones), "")
    kind = next((FORMATS[end] for end in FORMATS if name.lower().endswith(end)), None)
    if kind is None and os.path.isfile(name):
        raise ValueError(
            f"{shown(name)}: found no LETOR file, and a name that does not end with one of "
            f"{', '.join(FORMATS)}"
        )
    return kind or "parquet"


# What the folder of a table of a lake holds, how a name in there ends, and what reads the files
# that the table still has.
LAKES = {
    "_delta_log": ("", "deltalake.DeltaTable(folder)"),
    "metadata": (".metadata.json", "the table of pyiceberg"),
    ".hoodie": ("", "the snapshot of a table of hudi"),
}


def _refuse_lakes(dataset: Any) -> None:
    """Refuse files of a table whose log says which of them still count."""
    from pyarrow.fs import FileSelector

    folders = {folder for file in dataset.files for folder in PurePosixPath(file).parents}
    for folder in map(str, sorted(folders)):
        for log, (ending, reader) in LAKES.items():
            inside, selector = [], FileSelector(f"{folder}/{log}", allow_not_found=True)
            with suppress(OSError):  # nobody may look above the folder that is given
                inside = dataset.filesystem.get_file_info(selector)
            if any(one.path.endswith(ending) for one in inside):
                raise ValueError(
                    f"{shown(folder)} has {log!r}, which says which of its files still count: give "
                    f"scan {reader} in place of the files"
                )


def _of_dataset(dataset: Any, *, unites: bool = False) -> Source:
    """Return the files of a dataset of pyarrow.

    If it `unites` files, their columns are those of all of them, with types that hold all numbers.
    """
    from pyarrow.dataset import get_partition_keys

    files, is_text, schema = _files_of(dataset), _is_text(dataset), dataset.schema
    folders: set[str] = set()
    try:
        fragments = list(dataset.get_fragments()) if hasattr(dataset, "files") else []
    except ValueError:  # a filter, without which fragments would be read
        fragments = []
    if not fragments:
        if getattr(dataset, "files", None) == []:
            raise ValueError("source must have rows, got no file")
        own = getattr(getattr(dataset, "partitioning", None), "schema", None)
        if own is not None and own.names != schema.names:  # as those are without any folder
            folders.update(own.names)
        part = Partition(partial(_of_filtered, dataset), "the dataset")
        return Source((part,), schema, None, files, folders, is_text)
    parts: list[Partition] = []
    texts: dict[tuple[str, Any], str] = {}
    for fragment in fragments:
        path, keys = fragment.path, get_partition_keys(fragment.partition_expression)
        _require_own_names(path, keys, texts)
        folders.update(keys)
        with naming(shown(path)), readable(path):
            if unites:
                schema = common_schema(schema, fragment.physical_schema)
            parts.append(Partition(partial(_of_file, fragment, shown(path)), shown(path)))
    return Source(tuple(parts), schema, None, files, folders, is_text)


def _files_of(dataset: Any) -> list[str]:
    """Return the paths of the files of a dataset of pyarrow; none for rows."""
    children = [path for child in getattr(dataset, "children", ()) for path in _files_of(child)]
    return [*getattr(dataset, "files", ()), *children]


def _require_own_names(path: str, keys: dict[str, Any], texts: dict[tuple[str, Any], str]) -> None:
    """Refuse folders of other names with one value, such as q=007 and q=7, which would merge.

    `keys` has the values that stand in the names of the folders of a file, and `texts` the names of
    folders up to now, by (column, value).
    """
    for folder in path.split("/"):
        name, _, text = folder.partition("=")
        if name in keys:
            known = texts.setdefault((name, keys[name]), text)
            if known != text:
                raise ValueError(
                    f"{shown(path)}: the folders {name}={known} and {name}={text} have one value, "
                    f"{keys[name]!r}: name them alike, or write the column into the files"
                )


def _of_filtered(dataset: Any, names: list[str], _: object) -> Any:
    options = _scan_options(getattr(dataset, "format", None))
    return dataset.to_batches(columns=names, batch_size=limits.now.batch_rows, **options)


def _of_file(fragment: Any, name: str, names: list[str], schema: Any) -> Iterator[Any]:
    """Yield the batches of a file that pyarrow reads."""
    own, is_text = fragment.physical_schema, _is_text(fragment)
    for column in () if is_text else {*own.names}.intersection(names, schema.names):
        # pyarrow would make numbers of text, or cut times to dates.
        kinds = [kind_of_values(one.field(column).type) for one in (own, schema)]
        if str(own.field(column).type) != "null" and kinds[0] != kinds[1]:
            raise placed_error(
                f"{name}: column {column!r} holds {kinds[0]}, but {kinds[1]} in other files"
            )
    # Row group by row group, because pyarrow would read ahead, as we do ourselves.
    pieces = getattr(fragment, "split_by_row_group", lambda: [fragment])()
    with readable(name, own.names if is_text else ()):
        for piece in pieces:
            yield from piece.to_batches(
                columns=names,
                schema=schema,
                batch_size=limits.now.batch_rows,
                batch_readahead=0,
                fragment_readahead=0,
                **_scan_options(fragment.format),
            )


@contextmanager
def readable(path: str, names: Sequence[str] = ()) -> Iterator[None]:
    """Within this context, pyarrow's errors are ValueErrors that name a file.

    Columns of files of text are told by their names, if these are given, and rows as ours are.
    """
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeError, KeyError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # an error of the system, not of the contents
        known = (cause for words, cause in CAUSES.items() if words in str(error))
        text = next(known, str(error))
        if names:
            text = IN_COLUMN.sub(lambda found: f"column {names[int(found[1])]!r}", text)
            text = AT_ROW.sub(  # whose first row is the header, number 1
                lambda found: f"row {int(found[1]) - 2}, {counted(path)}", text
            )
        raise ValueError(f"{shown(path)}: cannot be read: {text}") from error


def _is_text(dataset: Any) -> bool:
    import pyarrow.dataset

    return isinstance(getattr(dataset, "format", None), pyarrow.dataset.CsvFileFormat)


def _scan_options(kind: Any) -> dict[str, Any]:
    """Return options to read Parquet files by, which verify the checksums of pages.

    None are given to another format, or to one that has options of its own.
    """
    from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

    options = ParquetFragmentScanOptions
    if isinstance(kind, ParquetFileFormat) and kind.default_fragment_scan_options == options():
        own = options(page_checksum_verification=True, pre_buffer=False)
        return {"fragment_scan_options": own}
    return {}


# Clusters and functions ---------------------------------------------------------------------------


def _of_dask(frame: Any) -> Source:
    import pyarrow

    from pairgram.tables.dask import DaskEngine

    schema = pyarrow.Schema.from_pandas(frame._meta, preserve_index=False)
    parts = tuple(part_of_frame(number, None) for number in range(frame.npartitions))
    frame = frame.rename(columns=str)  # Arrow has no other names
    return Source(parts, schema, engine=partial(DaskEngine, None, frame, part_of_frame))


def part_of_frame(number: int, frame: Any) -> Partition:
    """Return the partition of a frame of Dask, which is there when a worker reads it."""
    return Partition(partial(_of_partition, frame), f"partition {number}")


def _of_partition(frame: Any, names: list[str], schema: object) -> list[Any]:
    return _of_table(to_arrow(frame[names]), names, schema)


def _of_spark(frame: Any) -> Source:
    from pyspark.sql.pandas.types import to_arrow_schema

    from pairgram.tables.spark import SparkEngine

    named = {}
    if "timezone" in signature(to_arrow_schema).parameters:  # which times need, if it is there
        named["timezone"] = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = to_arrow_schema(frame.schema, **named)
    return Source((), schema, engine=lambda _names: SparkEngine(frame))


def _of_function(function: Callable[[], Any]) -> Source:
    iterators = function(), function()
    if iterators[0] is iterators[1] and isinstance(iterators[0], Iterator):
        raise ValueError(
            "source must return a new iterator for every pass, got the same one twice: make it "
            "within the function"
        )
    first = next(iter(iterators[0]), None)
    if first is None:
        raise ValueError("source must yield batches, got none")
    with readable("the source"):
        schema = to_arrow(first).schema
    return _of_stream(schema, partial(_copies, function))


def _copies(function: Callable[[], Any], names: list[str], _: object) -> Iterator[Any]:
    """Yield copies of what a function yields, because it may use its memory again.

    Arrow's data may lie in arrays that somebody else writes to, and does not tell whether it does.
    """
    for one in function():
        table = to_arrow(one).select(names)
        yield table.take(np.arange(len(table)))
