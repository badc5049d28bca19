"""What a table may be made of: files, frames, Arrow data, LETOR files and iterables."""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from itertools import repeat
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.parse import unquote

import numpy as np
from scipy.sparse import issparse

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
    AS_TEXT,
    LARGEST_WHOLE,
    WHOLE,
    Columns,
    Place,
    TableRows,
    changed,
    common_schema,
    copied,
    counted,
    in_batches,
    is_number,
    kind_of_values,
    placed_error,
    rows_of_arrays,
    rows_of_batches,
    to_arrow,
    unshared,
    value_type,
    whole_numbers,
    with_floats,
)
from pairgram.tables.passes import Partition
from pairgram.tables.survey import NO_FILES, SeenFiles


@dataclass(frozen=True, eq=False)
class LetorPartition(Partition):
    """A LETOR file, plain or compressed.

    Its ids are text, because one piece of the file does not know what ids another has.
    """

    path: str
    leaves_zeros_out = True  # so that the last columns may be absent

    @property
    def name(self) -> str:
        """The path."""
        return shown(self.path)

    @property
    def files(self) -> list[str]:
        """The path."""
        return [self.path]

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        n_lines, first = 0, 0
        with open(self.path, "rb") as raw, naming(self.path):
            for text in _pieces(raw, self.name):
                if any(line.partition(b"#")[0].strip() for line in io.BytesIO(text)):
                    try:
                        X, y, qid = read_letor(
                            io.BufferedReader(io.BytesIO(text)),
                            self.name,
                            columns.dtype,
                            columns.sparse,
                            n_features=columns.n_features,
                        )
                    except LetorError as error:
                        if error.line is not None:
                            error.line += n_lines  # those of the file, not of the piece
                        raise
                    qid = None if qid is None else as_text_ids(qid)
                    place = Place(self.name, number, first)
                    yield rows_of_arrays(X, y, qid, None, columns, place, features)
                    first += len(y)
                n_lines += text.count(b"\n")


def _pieces(raw: io.BufferedReader, name: str) -> Iterator[bytes]:
    """Yield the text of a file in pieces of whole lines."""
    kind, file = unpacked(raw)
    rest = b""
    while piece := _read(file, kind, name):
        whole, end, after = (rest + piece).rpartition(b"\n")
        rest = after
        if end:
            yield whole + end
    yield rest


def _read(file: IO[bytes], kind: str, name: str) -> bytes:
    try:
        return file.read(limits.now.piece_bytes)
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the system, not of the contents
        raise ValueError(
            f"{name}: found a damaged or cut-off {kind} stream, want a whole one: {error}"
        ) from None


# How the name of a folder says that its rows have no value.
NO_FOLDER_VALUE = "__HIVE_DEFAULT_PARTITION__"

# What errors of pyarrow come to, by words in them.
CAUSES = {
    "Integers with more than 64 bits": "a column holds integers of more than 64 bits, which "
    "pyarrow does not know: cast it to Int64 or Float64 before it is written",
    "newlines_in_values": "a value in quotes goes on in the next line: give the path of the file, "
    "or a dataset of CsvFileFormat(ParseOptions(newlines_in_values=True))",
    "Expected 1 columns, got": "its lines differ in their number of columns: want columns "
    "separated by commas in a file .csv and by tabs in a file .tsv, texts with commas in quotes, "
    "and numbers with a decimal point",
    "straddling object": "a value in quotes is longer than 1 MiB, or a quote is never closed: "
    "write a quote within a value twice, and the value in quotes",
    "codec can't decode": "it is not text in UTF-8: convert it first",
    "invalid UTF8 data": "it is not text in UTF-8: convert it first, as iconv -f LATIN1 -t UTF-8 "
    "does",
}

NEEDS_PYARROW = "pairgram.scan needs pyarrow for {}: pip install 'pairgram[parquet]'"


@dataclass(frozen=True, eq=False)
class Source:
    """Where rows come from.

    Attributes
    ----------
    partitions : tuple of Partition
    schema : pyarrow.Schema or None
        None for arrays, which have no names of columns.
    n_features : int or None
        The number of features of arrays.
    has_queries : bool
        Whether arrays come with query ids.
    dtype : float32 or float64
        The type of the features of arrays.
    sparse : bool
        Whether arrays are CSR arrays.
    folders : frozenset of str
        Columns whose values stand in the names of folders, such as ``day=1``.
    later : dict of str to str
        Columns that the first file does not have, and the first file that has them.
    engine : callable or None
        Returns the engine that works on the source, given the names of the columns that are read.
        With None, the caller chooses one.
    files : SeenFiles
        The files that hold the rows, as they are before anything of them is read.
    """

    partitions: tuple[Partition, ...]
    schema: Any = None
    n_features: int | None = None
    has_queries: bool = True
    dtype: Any = np.float64
    sparse: bool = False
    folders: frozenset[str] = frozenset()
    later: Mapping[str, str] = field(default_factory=dict)
    engine: Any = None
    files: SeenFiles = NO_FILES

    def typed(self, columns: Columns) -> Source:
        """Return the source with the types that files of text are read as, given the columns."""
        files = [part for part in self.partitions if isinstance(part, _FragmentPartition)]
        if not files or not files[0].is_text:
            return self
        chosen = (*columns.features, columns.label, columns.weight, columns.propensity)
        numbers = [name for name in chosen if name is not None and name not in self.folders]
        schema, whole = with_floats(self.schema, numbers)
        for name in (columns.label, columns.weight):
            if name in numbers and _has_large_numbers(files[0], self.schema, name):
                whole |= {name}
        own = whole - {*columns.features}
        parts = [replace(part, schema=schema, whole=own) for part in files]
        for name in (columns.qid, columns.groups):
            if name is not None and name not in self.folders:
                parts, schema = _with_ids(parts, schema, name)
        return replace(self, schema=schema, partitions=tuple(parts))


def source_of(source: Any, qid: str | None = None) -> Source:
    """Find out what a source is.

    Parameters
    ----------
    source : any
    qid : str or None
        The column of query ids, which may stand in the names of folders.

    Raises
    ------
    TypeError
        If it is none of the sources that `scan` describes.
    ValueError
        If there is no file, or if a file is of no known kind.
    """
    if isinstance(source, (str, os.PathLike)):
        return _of_paths([source], qid)
    if (
        isinstance(source, (list, tuple))
        and source
        and all(isinstance(path, (str, os.PathLike)) for path in source)
    ):
        return _of_paths(source, qid)
    module = type(source).__module__.partition(".")[0]
    if module == "polars" and hasattr(source, "collect_schema") and hasattr(source, "collect"):
        return _of_lazy_frame(source)
    if module in ("dask", "dask_expr") and hasattr(source, "to_delayed"):
        return _of_dask(source)
    if module == "pyspark" and hasattr(source, "mapInArrow"):
        return _of_spark(source)
    if module in ("pandas", "polars", "pyarrow"):
        return _of_arrow(source)
    if callable(source):
        return _of_factory(source)
    raise TypeError(
        "source must be a path or a list of paths, a frame of pandas, polars, pyarrow, Dask or "
        "Spark, a pyarrow dataset, or a function that returns an iterator of batches, got "
        f"{type(source).__name__}"
    )


def pyarrow_for(what: str) -> Any:
    """Return pyarrow, or raise an ImportError that says how to install it."""
    try:
        import pyarrow.csv
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError(NEEDS_PYARROW.format(what)) from error
    return pyarrow


def _of_paths(paths: Sequence[Any], qid: str | None) -> Source:
    names = [os.fspath(path) for path in paths]
    found = [one for name in names for one in _expanded(name)]
    local = [name for name in found if "://" not in name and os.path.isfile(name)]
    if len(local) == len(found) and all(map(looks_like_letor, local)):
        files = SeenFiles.of(local)
        n_features = max(map(count_features, local))
        parts = tuple(map(LetorPartition, local))
        sparse = n_features > limits.now.widest_letor
        return Source(parts, None, n_features, has_ids(local[0]), sparse=sparse, files=files)
    arrow = pyarrow_for("files of columns")
    filesystem = None
    if any("://" in name for name in found):
        filesystem, found = _remote(found)
    chosen = found[0] if len(found) == 1 else found
    kind = _format(found)
    separated = kind in SEPARATORS
    if separated:  # a value in quotes may go on in the next line
        options = arrow.csv.ParseOptions(delimiter=SEPARATORS[kind], newlines_in_values=True)
        kind = arrow.dataset.CsvFileFormat(options)
    open_dataset = partial(arrow.dataset.dataset, chosen, format=kind, filesystem=filesystem)
    with naming(shown(names[0])), _readable(found[0]):
        dataset = open_dataset(partitioning="hive")
        if qid is not None and _merges(dataset, qid):
            folders = dataset.partitioning.schema
            folders = folders.set(folders.get_field_index(qid), arrow.field(qid, arrow.string()))
            dataset = open_dataset(partitioning=arrow.dataset.HivePartitioning(folders))
        _refuse_lakes(dataset, found, filesystem is None)
    if not dataset.files:
        raise ValueError(f"{shown(names[0])}: found no file to read")
    columns = dataset.schema.names
    if separated and len(columns) == 1 and re.search("[,;\t|]", columns[0]):
        raise ValueError(
            f"{shown(names[0])}: found a single column {columns[0]!r}: columns must be separated "
            "by commas in a file .csv, and by tabs in a file .tsv"
        )
    files = SeenFiles.of_dataset(dataset)
    schema, first = _common_schema(dataset)
    return _of_dataset(dataset, files, None if separated else schema, first)


# What the folder of a table of a lake holds, and what reads the files that the table still has.
LAKES = {
    "_delta_log": "deltalake.DeltaTable(folder).to_pyarrow_dataset()",
    "metadata": "the scan().to_arrow() of a table of pyiceberg",
    ".hoodie": "the snapshot of a table of hudi",
}


def _refuse_lakes(dataset: Any, paths: Sequence[str], local: bool) -> None:
    """Refuse files of a table whose log says which of them still count."""
    from pyarrow.fs import FileSelector, FileType

    system = dataset.filesystem
    folders = {str(one) for file in dataset.files for one in PurePosixPath(file).parents}
    if not local:  # where nobody may look above the folder that is given
        given = tuple(path.rstrip("/") for path in paths)
        folders = {one for one in folders if one.startswith(given)}
    for folder in sorted(folders):
        for log, reader in LAKES.items():
            path = f"{folder}/{log}"
            if system.get_file_info(path).type == FileType.Directory and (
                log != "metadata"
                or any(
                    one.path.endswith(".metadata.json")
                    for one in system.get_file_info(FileSelector(path))
                )
            ):
                raise ValueError(
                    f"{shown(folder)} has {log!r}, which says which of its files still count: give "
                    f"{reader} in place of the files"
                )


def _common_schema(dataset: Any) -> tuple[Any, dict[str, str]]:
    """Return the schema of files that say their types, and the first file that has each column.

    The types are those of the first file with values, or types that hold the numbers of all.
    """
    import pyarrow

    schema, known = dataset.schema, None
    first: dict[str, str] = {}
    for fragment in dataset.get_fragments():
        with naming(shown(fragment.path)), _readable(fragment.path):
            own = fragment.physical_schema
        if known is None or not own.equals(known):
            known, schema = own, common_schema(schema, own)
            for field in own:
                if not pyarrow.types.is_null(field.type):
                    first.setdefault(field.name, shown(fragment.path))
    return schema, first


def _merges(dataset: Any, qid: str) -> bool:
    """Tell whether query ids in names of folders became numbers, but are not written as such.

    As numbers, "007" and "7" would be one query.
    """
    folders = dataset.partitioning.schema
    at = folders.get_field_index(qid)
    if at < 0 or not is_number(value_type(folders.field(at).type)):
        return False
    names = {name for path in dataset.files for name in path.split("/")[:-1]}
    pairs = [name.partition("=") for name in map(unquote, names)]
    texts = {text for key, _, text in pairs if key == qid}
    return any(WHOLE.fullmatch(text) is None for text in texts - {NO_FOLDER_VALUE})


def _expanded(name: str) -> list[str]:
    if "://" in name or os.path.exists(name):
        return [name]
    if not any(sign in name for sign in "*?["):
        raise FileNotFoundError(2, "No such file or directory", name)
    if found := sorted(glob.glob(name, recursive=True)):
        return found
    raise ValueError(f"{shown(name)}: no file has such a name")


def _remote(names: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the file system of addresses, and the paths there; patterns are resolved.

    The name of a file that exists is no pattern.
    """
    if not any(sign in name for name in names for sign in "*?["):
        from pyarrow.fs import FileSystem

        try:
            pairs = [FileSystem.from_uri(name) for name in names]
            return pairs[0][0], [path for _, path in pairs]
        except ValueError:  # a kind of address that fsspec may know
            pass
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f"{shown(names[0])}: pyarrow does not know such addresses or patterns, and fsspec is "
            "missing: pip install fsspec"
        ) from error

    systems = [fsspec.core.url_to_fs(name) for name in names]
    found = []
    for system, path in systems:
        pattern = any(sign in path for sign in "*?[") and not system.exists(path)
        found += sorted(system.glob(path)) if pattern else [path]
    if not found:
        raise ValueError(f"{shown(names[0])}: no file has such a name")
    return systems[0][0], found


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


def _format(names: Sequence[str]) -> str:
    """Return the format of files, by their names; a folder holds Parquet files."""
    for name in names:
        path = name
        if os.path.isdir(name):
            inner = (
                os.path.join(folder, file)
                for folder, _, files in sorted(os.walk(name))
                for file in sorted(files)
                if not re.search(r"(^|[/\\])[_.]", os.path.join(folder[len(name) :], file))
            )
            path = next(inner, "")
        kind = next((FORMATS[end] for end in FORMATS if path.lower().endswith(end)), None)
        if kind is not None:
            return kind
        if os.path.isfile(path):
            raise ValueError(
                f"{shown(path)}: found no LETOR file, and a name that does not end with one of "
                f"{', '.join(FORMATS)}"
            )
    return "parquet"


def _of_dataset(
    dataset: Any, files: SeenFiles, schema: Any = None, first: Mapping[str, str] | None = None
) -> Source:
    """Return the files of a dataset, whose columns are read as the types of a schema.

    `first` names the first file that has each column.
    """
    from pyarrow.dataset import get_partition_keys

    schema = dataset.schema if schema is None else schema
    parts: list[Any] = []
    folders = set()
    for fragment in dataset.get_fragments():
        folders |= get_partition_keys(fragment.partition_expression).keys()
        pieces = [fragment]
        path = getattr(fragment, "path", "the dataset")
        with naming(shown(path)), _readable(path):
            if hasattr(fragment, "row_groups"):  # which reads the end of the file
                pieces = _groups(fragment)
        parts += [_FragmentPartition(piece, schema, first or {}) for piece in pieces]
    if not parts:
        raise ValueError("source must have rows, got Parquet files without any")
    later = {name: file for name, file in (first or {}).items() if name not in schema.names}
    return Source(tuple(parts), schema, folders=frozenset(folders), later=later, files=files)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Within this context, pyarrow's errors are ValueErrors that name a file."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # an error of the system, not of the contents
        # An error of a folder names the file in it.
        named = re.search(r"'([^']*)'", str(error)) if os.path.isdir(path) else None
        file = named[1] if named is not None and os.path.isfile(named[1]) else path
        raise ValueError(f"{shown(file)}: cannot be read: {_plain_cause(error)}") from error


def _plain_cause(error: Exception) -> str:
    """Return what pyarrow says, or what it comes to for a user of `scan`."""
    return next((cause for words, cause in CAUSES.items() if words in str(error)), str(error))


def first_texts(part: Any, schema: Any, name: str) -> Any:
    """Return the first rows of a column of a file of text, as they are written, or None."""
    import pyarrow

    place = schema.get_field_index(name)
    as_text = schema.set(place, pyarrow.field(name, pyarrow.string()))
    with naming(part.name), _readable(part.name):
        heads = part.fragment.to_batches(columns=[name], schema=as_text, batch_readahead=0)
        head = next(heads, None)
    return None if head is None else head.column(0)


def _has_large_numbers(part: Any, schema: Any, name: str | None) -> bool:
    """Tell whether pyarrow made floats of whole numbers because they take more than 64 bits."""
    import pyarrow

    if name is None or not pyarrow.types.is_floating(schema.field(name).type):
        return False
    texts = first_texts(part, schema, name)
    found = [] if texts is None else texts.unique().to_pylist()
    return bool(found) and all(text and WHOLE.fullmatch(text.strip()) for text in found)


def _with_ids(parts: list[Any], schema: Any, name: str) -> tuple[list[Any], Any]:
    """Return files of text and their schema, given the column of query ids.

    Ids are whole numbers if they are in the first rows of every file, and text otherwise: as
    numbers, "007" and "7" would be one query. Later rows that differ are refused when they are
    read.

    Raises
    ------
    ValueError
        If the ids are text of an unknown encoding. The message names the file.
    """
    import pyarrow

    place = schema.get_field_index(name)
    kind = schema.field(place).type
    if pyarrow.types.is_binary(kind):
        raise ValueError(
            f"{parts[0].name}: column {name!r}, the query id, must hold text in UTF-8, got bytes "
            "of another encoding: save the file as UTF-8"
        )
    if is_number(kind):
        as_text = schema.set(place, pyarrow.field(name, pyarrow.string()))
        schema = schema.set(place, pyarrow.field(name, pyarrow.int64()))
        for part in parts:
            texts = first_texts(part, schema, name)
            if texts is not None and whole_numbers(texts)[1] >= 0:
                schema = as_text
                break
    return [replace(part, schema=schema, ids=(*part.ids, name)) for part in parts], schema


def _groups(fragment: Any) -> list[Any]:
    """Return pieces of a Parquet file, of neighbouring row groups."""
    fragment.ensure_complete_metadata()
    pieces: list[list[int]] = []
    n_rows = limits.now.partition_rows
    for group in fragment.row_groups:
        n_rows += group.num_rows
        if n_rows > limits.now.partition_rows or not pieces:
            pieces.append([])
            n_rows = group.num_rows
        pieces[-1].append(group.id)
    return [fragment.subset(row_group_ids=ids) for ids in pieces]


def _as_text(schema: Any, names: Iterable[str]) -> Any:
    """Return a schema in which some columns are text."""
    import pyarrow

    for name in names:
        schema = schema.set(schema.get_field_index(name), pyarrow.field(name, pyarrow.string()))
    return schema


@dataclass(frozen=True, eq=False)
class _FragmentPartition(Partition):
    """A file that pyarrow reads, or some row groups of it.

    Attributes
    ----------
    fragment : pyarrow.dataset.Fragment
    schema : pyarrow.Schema
        The types that the columns are read as.
    first : mapping of str to str
        The first file that has each column; empty if the schema comes from elsewhere.
    whole : frozenset of str
        Columns of a file of text that are read as floats, and whose first rows are whole numbers.
    ids : tuple of str
        The columns of ids of a file of text: of queries and of groups.
    both : frozenset of str
        Columns of a file of text whose text is read too.
    """

    fragment: Any
    schema: Any
    first: Mapping[str, str] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    ids: tuple[str, ...] = ()
    both: frozenset[str] = frozenset()

    @property
    def is_text(self) -> bool:
        """Whether the file is text, whose types are guessed."""
        return _is_text(self.fragment)

    @property
    def files(self) -> list[str]:
        """The path of a file on this machine; none for others."""
        from pyarrow.fs import LocalFileSystem

        local = isinstance(getattr(self.fragment, "filesystem", None), LocalFileSystem)
        return [str(self.fragment.path)] if local else []

    @property
    def name(self) -> str:
        """The path."""
        groups = getattr(self.fragment, "row_groups", None)
        path = shown(getattr(self.fragment, "path", "the dataset"))
        if groups and groups[0].id > 0:
            return f"{path}, from row group {groups[0].id} on"
        return path

    @property
    def folders(self) -> set[str]:
        """The columns whose values stand in the names of the folders, not in the file."""
        from pyarrow.dataset import get_partition_keys

        return set(get_partition_keys(self.fragment.partition_expression))

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        import pyarrow

        names = columns.names(features)
        try:
            yield from rows_of_batches(self._read(names), number, self.name, columns, features)
        except (pyarrow.ArrowException, OSError) as error:
            message = f"{self.name}: cannot be read: {self._cause(error, names)}"
            raise ValueError(message) from error

    def _cause(self, error: Exception, names: list[str]) -> str:
        """Return an error of pyarrow in words that name the column, where there is one."""
        import pyarrow

        if not isinstance(error, pyarrow.ArrowInvalid | pyarrow.ArrowNotImplementedError):
            return _plain_cause(error)
        own = self.fragment.physical_schema
        cause = re.sub(
            r"In CSV column #([0-9]+)",
            lambda one: f"column {own.names[int(one[1])]!r}",
            _plain_cause(error),
        )
        cause = re.sub(  # whose first row is the header, number 1
            r"Row #([0-9]+)", lambda one: f"row {int(one[1]) - 2}, {counted(self.name)}", cause
        )
        others = [name for name in names if not _same_column(own, self.schema, name)]
        others = [name for name in others if own.get_field_index(name) >= 0]
        if not others or self.is_text:
            return cause
        name = others[0]
        return f"{self._differing(own, name)}: {cause}"

    def _differing(self, own: Any, name: str) -> str:
        """Return words for the types of a column here and in the first file that has it."""
        there = self.first.get(name, "the schema of the dataset")
        return (
            f"column {name!r} holds {_in_words(own.field(name).type)}, but in {there} "
            f"{_in_words(self.schema.field(name).type)}"
        )

    def _read(self, names: list[str]) -> Iterator[Any]:
        """Yield batches of the columns with the given names."""
        if hasattr(self.fragment, "row_groups"):
            from pyarrow.parquet import ParquetFile

            with self.fragment.filesystem.open_input_file(self.fragment.path) as raw:
                file = ParquetFile(raw, page_checksum_verification=True)
                self._require_same_groups(file.metadata)
                own = file.schema_arrow
                self._require(own, names)
                if not self.folders.intersection(names) and all(
                    _same_column(own, self.schema, name) for name in names
                ):
                    # Datasets read ahead by many row groups, which takes more memory and time.
                    for group in self.fragment.row_groups:
                        yield from _batches_of(file, group, names)
                    return
        self._require(self.fragment.physical_schema, names)
        schema, first = self.schema, 0
        schema = _as_text(schema, filter(self._are_whole, self.ids))
        read = partial(
            self.fragment.to_batches,
            batch_size=limits.now.batch_rows,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=_verifying(self.fragment.format),
        )
        both = sorted(self.both.intersection(names))
        # The bytes of a file alone decide where its batches end, not what is read of them.
        texts = read(columns=both, schema=_as_text(schema, both)) if both else repeat(None)
        for batch, text in zip(read(columns=names, schema=schema), texts, strict=bool(both)):
            for name in both:
                batch = batch.append_column(AS_TEXT + name, text.column(name))
            for name in self.whole.intersection(names):
                self._refuse_rounded(batch, name, first)
            for name in {*self.ids}.intersection(names):
                batch = self._with_ids(batch, name, first)
            yield batch
            first += batch.num_rows

    def _require_same_groups(self, now: Any) -> None:
        """Raise a ValueError if a Parquet file has other row groups than `scan` saw."""
        before, name = self.fragment.metadata.num_row_groups, shown(self.fragment.path)
        if now.num_row_groups != before:
            raise changed(f"{name} had {before} row groups, and has {now.num_row_groups}")
        for group in self.fragment.row_groups:
            n_rows = now.row_group(group.id).num_rows
            if n_rows != group.num_rows:
                raise changed(
                    f"{name} had {group.num_rows} rows in row group {group.id}, and has {n_rows}"
                )

    def _are_whole(self, name: str) -> bool:
        """Tell whether the ids of a column are whole numbers."""
        import pyarrow

        return bool(pyarrow.types.is_integer(self.schema.field(name).type))

    def _with_ids(self, batch: Any, name: str, first: int) -> Any:
        """Return a batch whose ids are numbers if all are, and null if they are empty."""
        import pyarrow.compute

        at = batch.schema.get_field_index(name)
        column = batch.column(at)
        if not self._are_whole(name):
            if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
                column = pyarrow.compute.if_else(pyarrow.compute.equal(column, ""), None, column)
            return batch.set_column(at, name, column)
        numbers, row = whole_numbers(column)
        if row >= 0:
            raise placed_error(
                f"{Place(self.name, 0, first).row(row)}: column {name!r} must hold whole "
                "numbers without leading zeros and signs, as the first rows do, got "
                f"{column[row].as_py()!r}, which must not become the id of another "
                "query: for ids of text, begin all with a letter, or give scan the source "
                "pyarrow.dataset.dataset(path, format=pyarrow.dataset.CsvFileFormat(convert_options"
                f"=pyarrow.csv.ConvertOptions(column_types={{{name!r}: pyarrow.string()}})))"
            )
        return batch.set_column(at, name, numbers)

    def with_texts(self, names: Iterable[str], both: Iterable[str] = ()) -> _FragmentPartition:
        """Return the file, of which some columns are text; see `Partition`."""
        if not self.is_text:
            return self
        texts = set(names) - self.folders
        schema, whole = _as_text(self.schema, texts), self.whole - texts
        ids, both = tuple(name for name in self.ids if name not in texts), {*both} - self.folders
        return replace(self, schema=schema, whole=whole, ids=ids, both=frozenset(both))

    def _refuse_rounded(self, batch: Any, name: str, first: int) -> None:
        """Raise a ValueError if a column of whole numbers has ones that floats may round."""
        values = batch.column(name).to_numpy(zero_copy_only=False)
        large = np.abs(values) >= LARGEST_WHOLE  # 2**53 + 1 is rounded to 2**53
        if large.any():
            row = int(np.argmax(large))
            raise placed_error(
                f"{Place(self.name, 0, first).row(row)}: column {name!r} holds whole numbers, and "
                f"must hold ones below 2**53, which a float64 can hold, got {values[row]:.0f}"
            )

    def _require(self, own: Any, names: list[str]) -> None:
        """Raise a ValueError if the file lacks a column, or has values of another kind than others.

        pyarrow would fill it with nulls, make numbers of text, or cut times to dates.
        """
        names = [name for name in names if name not in self.folders]
        for name in () if self.is_text else set(names).intersection(own.names, self.schema.names):
            kinds = own.field(name).type, self.schema.field(name).type
            if str(kinds[0]) != "null" and len(set(map(kind_of_values, kinds))) > 1:
                raise placed_error(f"{self.name}: {self._differing(own, name)}")
        for name in names:
            if name not in own.names:
                raise placed_error(f"{self.name}: the file has no column {name!r}")


def _is_text(dataset: Any) -> bool:
    import pyarrow.dataset

    return isinstance(getattr(dataset, "format", None), pyarrow.dataset.CsvFileFormat)


def _in_words(kind: Any) -> str:
    return f"{kind_of_values(kind)} ({kind})"


def _verifying(kind: Any) -> Any:
    """Return options to read Parquet files by, which verify the checksums of pages.

    None takes those of the format: it is no format of Parquet, or it has options of its own.
    """
    from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

    options = ParquetFragmentScanOptions
    if isinstance(kind, ParquetFileFormat) and kind.default_fragment_scan_options == options():
        return options(page_checksum_verification=True)
    return None


def _same_column(own: Any, schema: Any, name: str) -> bool:
    index = own.get_field_index(name)
    return bool(index >= 0 and own.field(index).type == schema.field(name).type)


def _batches_of(file: Any, group: Any, names: list[str]) -> Iterator[Any]:
    """Yield the rows of a row group: a small one at once."""
    if group.num_rows > limits.now.row_group_rows:
        yield from file.iter_batches(limits.now.batch_rows, row_groups=[group.id], columns=names)
        return
    table = file.read_row_group(group.id, columns=names)
    yield from in_batches(table)


def _of_arrow(frame: Any) -> Source:
    arrow = pyarrow_for("frames")
    if isinstance(frame, arrow.dataset.Dataset):
        files = SeenFiles.of_dataset(frame)
        try:
            next(iter(frame.get_fragments()), None)
        except ValueError:  # a filter, without which fragments would be read
            return Source((_DatasetPartition(frame),), frame.schema, files=files)
        if hasattr(frame, "files"):
            return _of_dataset(frame, files)
        return Source((_DatasetPartition(frame),), frame.schema, files=files)
    if isinstance(frame, arrow.RecordBatch):
        frame = arrow.Table.from_batches([frame])
    if type(frame).__module__.partition(".")[0] == "pandas":
        frame = _snapshot(frame)
    table = frame if isinstance(frame, arrow.Table) else to_arrow(frame)
    size = limits.now.partition_rows
    starts = range(0, max(1, table.num_rows), size)
    parts = [_FramePartition(table.slice(start, size), start, frame) for start in starts]
    return Source(tuple(parts), table.schema)


def _snapshot(frame: Any) -> Any:
    """Return a frame of pandas that does not see later changes of the given one.

    Where pandas copies on write, nothing is copied now, but what is changed later.
    """
    import pandas

    major = int(pandas.__version__.partition(".")[0])
    on_write = major >= 3 or pandas.get_option("mode.copy_on_write") is True
    return frame.copy(deep=not on_write)


@dataclass(frozen=True, eq=False)
class _FramePartition(Partition):
    """Rows of a pyarrow table in memory, from row `start` of `frame` on.

    A frame of pandas notices that others write to it for as long as it is kept.
    """

    table: Any
    start: int
    frame: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the rows alone to another process, where they have memory of their own."""
        return _FramePartition, (self.table, self.start)

    @property
    def name(self) -> str:
        """The rows of the table."""
        return "the table" if self.start == 0 else f"the table from row {self.start} on"

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        table = self.table.select(columns.names(features))
        yield from rows_of_batches(in_batches(table), number, self.name, columns, features)


@dataclass(frozen=True, eq=False)
class _DatasetPartition(Partition):
    """A pyarrow dataset without files."""

    dataset: Any
    name: str = "the dataset"

    @property
    def is_text(self) -> bool:
        """Whether its files are text."""
        return _is_text(self.dataset)

    @property
    def folders(self) -> set[str]:
        """The columns whose values stand in the names of the folders, not in the files."""
        schema = getattr(getattr(self.dataset, "partitioning", None), "schema", None)
        return set() if schema is None else set(schema.names)

    @property
    def files(self) -> list[str]:
        """The paths of the files, if the dataset has any."""
        return list(getattr(self.dataset, "files", ()))

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        batches = self.dataset.to_batches(
            columns=columns.names(features),
            batch_size=limits.now.batch_rows,
            fragment_scan_options=_verifying(getattr(self.dataset, "format", None)),
        )
        with _readable(self.name):
            yield from rows_of_batches(batches, number, self.name, columns, features)


def _of_dask(frame: Any) -> Source:
    arrow = pyarrow_for("Dask")
    from pairgram.tables.dask import DaskEngine, DaskPartition

    schema = arrow.Schema.from_pandas(frame._meta, preserve_index=False)
    parts = tuple(map(DaskPartition, range(frame.npartitions)))
    frame = frame.rename(columns=str)  # Arrow has no other names
    return Source(parts, schema, engine=partial(DaskEngine, None, frame))


def _of_spark(frame: Any) -> Source:
    pyarrow_for("Spark")
    from pyspark.sql.pandas.types import to_arrow_schema

    from pairgram.tables.spark import SparkEngine

    named = {}
    if "timezone" in signature(to_arrow_schema).parameters:  # which times need, if it is there
        named["timezone"] = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = to_arrow_schema(frame.schema, **named)
    return Source((), schema, engine=lambda _names: SparkEngine(frame))


def _of_lazy_frame(frame: Any) -> Source:
    pyarrow_for("polars")
    schema = to_arrow(frame.head(0).collect()).schema
    return Source((_LazyPartition(frame),), schema)


@dataclass(frozen=True, eq=False)
class _LazyPartition(Partition):
    """A lazy frame of polars, which reads the columns that are needed."""

    frame: Any
    name: str = "the lazy frame"

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        frame = self.frame.select(columns.names(features))
        if hasattr(frame, "collect_batches"):
            frames = frame.collect_batches(chunk_size=limits.now.batch_rows, maintain_order=True)
        else:
            frames = [frame.collect()]
        batches = (one.to_arrow() for one in frames)
        yield from rows_of_batches(batches, number, self.name, columns, features)


def _of_factory(factory: Callable[[], Any]) -> Source:
    iterators = factory(), factory()
    if iterators[0] is iterators[1] and isinstance(iterators[0], Iterator):
        raise ValueError(
            "source must return a new iterator for every pass, got the same one twice: make it "
            "within the function"
        )
    first = next(iter(iterators[0]), None)
    if first is None:
        raise ValueError("source must yield batches, got none")
    part = _FactoryPartition(factory)
    if isinstance(first, (tuple, list)):
        if len(first) not in (2, 3, 4):
            raise ValueError(
                "batches must be (X, y), (X, y, qid) or (X, y, qid, weight), got a tuple of "
                f"{len(first)}"
            )
        X = first[0]
        if np.ndim(X) != 2:
            raise ValueError(f"batches must have X of two dimensions, got {np.ndim(X)}")
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        has_queries = len(first) > 2 and first[2] is not None
        return Source((part,), None, X.shape[1], has_queries, dtype, issparse(X))
    pyarrow_for("frames")
    return Source((part,), to_arrow(first).schema)


@dataclass(frozen=True, eq=False)
class _FactoryPartition(Partition):
    """What a function yields, which is called for every pass over the rows.

    A batch is copied before the next one is asked for, because the function may use its memory
    again. Batches wait for each other: small ones are put together, and others are read ahead.
    """

    factory: Callable[[], Any]
    name: str = "the source"

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        if columns.features:
            names = columns.names(features)
            frames = (copied(to_arrow(frame).select(names)) for frame in self.factory())
            yield from rows_of_batches(frames, number, self.name, columns, features)
            return
        first, before = 0, None
        for batch in self.factory():
            X, y, qid, weights = (*batch, None, None)[:4]
            if np.shape(X)[0]:
                place = Place(self.name, number, first)
                own = (qid is not None, weights is not None)
                before = before or own
                for what, had, has in zip(("query ids", "weights"), before, own, strict=True):
                    if had != has:
                        raise placed_error(
                            f"{self.name}, rows from {first} on, counted from 0: batches must all "
                            f"have {what} or none, got a batch {'with' if has else 'without'}"
                        )
                rows = rows_of_arrays(X, y, qid, weights, columns, place, features)
                yield unshared(rows, X, y, weights)
                first += rows.n_rows
