"""Which columns of a table are labels, ids, weights and features, and rows that were read."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import (
    advice_on_limit,
    entries_of,
    kind_of,
    not_numbers,
    read_rows,
    reads_as_number,
    real_array,
    require_numbers,
    with_plain_types,
)
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector, not_finite, verbatim
from pairgram._support.machine import thread_count
from pairgram.data.clicks import wrong_click
from pairgram.data.queries import as_ids, check_weights

if TYPE_CHECKING:
    import pyarrow

    from pairgram._support.types import FrameLike

# The place of a row has this many bits for its number in its partition.
PLACE_BITS = 40
# Files with these names begin with a line of column names.
WITH_HEADERS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


@dataclass(frozen=True, eq=False)
class TableRows:
    """Consecutive rows of a table.

    Attributes
    ----------
    X : C-contiguous ndarray or CSR array of shape (n_rows, n_features), float64 or float32, or None
        None if a pass does not read the features.
    y : ndarray of shape (n_rows,), float64, or None
        None if the table has no labels.
    weights : ndarray of shape (n_rows,), float64, or None
    sizes : ndarray of shape (n_runs,), int64
        A run consists of neighbouring rows of one query. Without query ids there is one run.
    ids : ndarray of shape (n_runs,), or None
        The query ids of the runs. Neighbours differ.
    first : int
        The number of the first row within its partition.
    partition : int
        The number of the partition in the table.
    kept : pyarrow.Table or None
        Further columns of a batch, which are handed through.
    groups : ndarray of shape (n_rows,), or None
        The ids of what is held out together, if a pass without features reads them.
    """

    X: Any
    y: Vector | None
    weights: Vector | None
    sizes: Rows
    ids: AnyArray | None
    first: int = 0
    partition: int = 0
    kept: Any = None
    groups: AnyArray | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    @property
    def query(self) -> Any:
        """The query ids of all rows, (n_rows,), or None."""
        return None if self.ids is None else np.repeat(self.ids, self.sizes)

    @property
    def n_bytes(self) -> int:
        """The bytes of the features."""
        X = () if self.X is None else self.X
        return sum(getattr(X, part).nbytes for part in ARRAYS if hasattr(X, part))

    @property
    def begins(self) -> Rows:
        """The places of the first rows of the runs: numbers that ascend in the whole table."""
        return (self.partition << PLACE_BITS) + self.first + np.cumsum(self.sizes) - self.sizes

    def runs(self, begin: int, end: int) -> TableRows | None:
        """Return the runs from `begin` to `end`, without a copy; None if there are none."""
        if begin >= end:
            return None
        start = int(self.sizes[:begin].sum())
        rows = slice(start, start + int(self.sizes[begin:end].sum()))
        return replace(
            self.changed(lambda values: values[rows]),
            sizes=self.sizes[begin:end],
            ids=None if self.ids is None else self.ids[begin:end],
            first=self.first + start,
        )

    def own(self) -> TableRows:
        """Return a copy that keeps no larger array alive."""
        return self.changed(lambda values: values.copy())

    def changed(self, function: Callable[[Any], Any]) -> TableRows:
        """Return the rows with what a function makes of their arrays, where they are."""
        return _with_arrays([self], lambda parts: function(parts[0]))


# The arrays of rows, and those that a CSR array consists of.
OF_ROWS = ("X", "y", "weights", "groups")
ARRAYS = ("data", "indices", "indptr")


def _with_arrays(parts: Sequence[TableRows], join: Callable[[list[Any]], Any]) -> TableRows:
    """Return the first part with what is made of every array of all parts."""
    arrays = {name: [getattr(rows, name) for rows in parts] for name in OF_ROWS}
    made: dict[str, Any]
    made = {name: None if found[0] is None else join(found) for name, found in arrays.items()}
    return replace(parts[0], kept=None, **made)


def _joined(parts: list[Any]) -> Any:
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def together(parts: Sequence[TableRows]) -> TableRows:
    """Return the rows of several parts of a table, one after the other."""
    sizes, ids = np.array([sum(rows.n_rows for rows in parts)], np.int64), None
    if parts[0].ids is not None:
        sizes, ids = runs_of(np.concatenate([rows.query for rows in parts]))
    return replace(_with_arrays(parts, _joined), sizes=sizes, ids=ids)


def counted(name: str) -> str:
    """Return from where the rows of a partition are counted, by its name."""
    if name.lower().endswith(WITH_HEADERS):
        return "counted from 0 after the header"
    return f"counted from 0{' there' if ' from row ' in name else ''}"


def shown_id(ids: AnyArray) -> str:
    """Return the first of some query ids for messages."""
    value = ids[0]
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    return repr(value.item() if isinstance(value, np.generic) else value)


def runs_of(ids: AnyArray) -> tuple[Rows, AnyArray]:
    """Return (sizes, ids) of the runs of equal ids, for ids of one row or more."""
    starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
    return np.diff(np.append(starts, len(ids))).astype(np.int64), ids[starts]


# What pandas reads as a missing value in files of text.
GAPS = frozenset(["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"])
GAPS |= {"1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


def value_type(kind: pyarrow.DataType) -> Any:
    """Return the type of the values of a column, which a dictionary may hold."""
    return getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind


def plain_values(table: pyarrow.Table) -> Any:
    """Return a table whose text and bytes are no views, which pyarrow knows too little of."""
    import pyarrow

    for place, one in enumerate(table.schema):
        kind = str(value_type(one.type))
        if not kind.endswith("_view"):
            continue
        column, plain = table.column(place), f"large_{kind.removesuffix('_view')}"
        if pyarrow.types.is_dictionary(one.type):
            chunks = [part.dictionary.cast(plain).take(part.indices) for part in column.chunks]
            column = pyarrow.chunked_array(chunks, plain)
        table = table.set_column(place, one.name, column.cast(plain))
    return table


def with_types(schema: pyarrow.Schema, kinds: Mapping[str, Any]) -> Any:
    """Return a schema with other types of some columns."""
    import pyarrow

    fields = [(one.name, kinds.get(one.name, one.type)) for one in schema]
    return pyarrow.schema(fields, schema.metadata)


def is_number(kind: pyarrow.DataType) -> bool:
    """Tell whether a type is one of numbers, booleans, or columns without any value."""
    return value_type(kind) is kind and kind_of(kind) == "numbers"


def kind_of_values(kind: pyarrow.DataType) -> str:
    """Return what messages call the values of a type. Values of different kinds are never equal.

    Numbers, booleans and columns without any value are of one kind.
    """
    kind = value_type(kind)
    found = kind_of(kind)
    if found == "times":
        return f"times {'without' if getattr(kind, 'tz', None) is None else 'with'} a time zone"
    return "values of another kind" if found == "objects" else found


def common_schema(schema: pyarrow.Schema, own: pyarrow.Schema) -> Any:
    """Return the schema of a table with the columns and the numbers of one more file.

    Integers and floats become float64, and so do booleans and other numbers. Decimals keep all
    their digits. Types that are no numbers stay as they are.
    """
    import pyarrow

    kinds = {one.name: one.type for one in own}
    for name in kinds.keys() & {*schema.names}:
        first, second = (value_type(kind) for kind in (schema.field(name).type, kinds[name]))
        if pyarrow.types.is_null(first):
            continue
        if first == second or not (is_number(first) and is_number(second)):
            kinds[name] = schema.field(name).type
            continue
        pair = [first, second]
        if any(map(pyarrow.types.is_decimal, pair)):  # the digits of 64 bits
            whole = pyarrow.decimal128(20, 0)
            pair = [whole if pyarrow.types.is_integer(kind) else kind for kind in pair]
        kinds[name] = pyarrow.float64()
        with suppress(pyarrow.ArrowTypeError):  # of booleans, or of more than 76 digits
            both = [pyarrow.schema([(name, kind)]) for kind in pair]
            kinds[name] = pyarrow.unify_schemas(both, promote_options="permissive").field(0).type
    known = {one.name: one.type for one in schema} | kinds
    return pyarrow.schema(known.items(), schema.metadata)


def require_width(column: str, wanted: int, width: int) -> None:
    """Raise a ValueError if a column has lists of another length than a fit saw; 0 is a number."""
    if width != wanted:
        one, other = (f"lists of {n} numbers" if n else "numbers" for n in (wanted, width))
        name = verbatim(repr(column))
        raise ArgumentError(
            None,
            f"column {name} of {{place}} must hold {one}, as in the fit, got {other}",
            place="the table",
        )


# A float64 holds every whole number up to this one.
LARGEST_WHOLE = 2.0**53
NOT_HELD = "must hold numbers that a float64 can hold"
NOT_WHOLE = (
    "must hold whole numbers without leading zeros and signs, as the first rows do, got {0!r}, "
    "which must not become the id of another query: for ids of text, begin all with a letter, or "
    "give scan the source pyarrow.dataset.dataset(path, format=pyarrow.dataset.CsvFileFormat("
    "convert_options=pyarrow.csv.ConvertOptions(column_types={{{1!r}: pyarrow.string()}})))"
)


@dataclass(frozen=True, eq=False)
class Place:
    """Where rows come from: the name of a partition, its number, and that of the first row."""

    name: str
    partition: int
    first: int

    def row(self, number: int) -> str:
        """Return the place of one of the rows."""
        return f"{self.name}, row {self.first + number}, {counted(self.name)}"


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns of a table are read, and how.

    Attributes
    ----------
    features : tuple of str
        The columns with one feature each, or with lists of numbers.
    label, qid, weight, groups : str or None
    dtype : float32 or float64
        The type of the features.
    widths : tuple of int
        The length of the lists of every column of features, 0 for numbers.
    is_named : bool
        Whether features have names: all but those of one column of lists and no other.
    width : int or None
        The number of features of LETOR files and arrays, which have no columns.
    fill : ndarray of shape (n_features,), or None
        What takes the place of missing values. With None they are an error.
    keep : tuple of str
        Further columns, which are handed through.
    sparse : bool
        Whether the source yields CSR arrays.
    propensity : str or None
        The column of propensities. The labels are then clicks / propensities.
    texts : mapping of str to frozenset of str, or None
        The columns of features that hold text, for a pipeline that encodes it, and the texts that
        stand for a missing one in each. Rows are then objects, in which None is missing text and
        NaN is a missing number. With None all features are numbers.
    parsed : mapping of str to {"number", "whole", "text"}
        The columns of files of text that are read as text, which is then made numbers, ids that
        are whole numbers, or ids that are text.
    refused : ArgumentError or None
        The error to raise when the features are read as numbers, if some of them are not.
    """

    features: tuple[str, ...]
    label: str | None
    qid: str | None
    weight: str | None
    dtype: Any
    widths: tuple[int, ...] = ()
    is_named: bool = True
    width: int | None = None
    fill: Vector | None = None
    keep: tuple[str, ...] = ()
    sparse: bool = False
    groups: str | None = None
    propensity: str | None = None
    texts: Mapping[str, frozenset[str]] | None = None
    parsed: Mapping[str, str] = field(default_factory=dict)
    refused: ArgumentError | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(max(1, one) for one in self.widths) if self.width is None else self.width

    @property
    def lists(self) -> dict[str, int]:
        """The columns of features, and the length of the lists of each, 0 for numbers."""
        return dict(zip(self.features, self.widths, strict=True))

    def feature_names(self) -> list[str]:
        """Return the names of the features; those of lists are like ``embedding[0]``."""
        pairs = self.lists.items()
        return [name for column, width in pairs for name in entries_of(column, width) or [column]]

    def names(self, features: bool = True) -> list[str]:
        """Return the names of the columns that are read, with or without the features."""
        groups = None if features else self.groups  # which only the survey of a table looks at
        told = (self.label, self.qid, self.weight, self.propensity, groups)
        own = [name for name in told if name is not None]
        own += self.keep
        return list(dict.fromkeys([*own, *(self.features if features else ())]))

    def name_of(self, feature: int) -> str:
        """Return what messages call a feature."""
        return repr(self.feature_names()[feature]) if self.features else str(feature)

    def for_scores(self, keep: tuple[str, ...]) -> Columns:
        """Return the columns of features alone, and those that are handed through."""
        return replace(
            self, label=None, qid=None, weight=None, groups=None, propensity=None, keep=keep
        )

    def rows(self, batch: pyarrow.Table, place: Place, features: bool = True) -> TableRows:
        """Return the rows of a pyarrow Table or RecordBatch that has these columns.

        Raises
        ------
        ValueError
            If a value is missing or no number, or if a label or weight is not finite. The message
            names the column, the file and the row.
        """
        for name in self.parsed.keys() & {*batch.schema.names}:
            column = _parsed(_column(batch, name), self.parsed[name], name, place)
            batch = batch.set_column(batch.schema.get_field_index(name), name, column)
        y, weights, chances = (
            None if name is None else _numbers(batch, name, place)
            for name in (self.label, self.weight, self.propensity)
        )
        for name, values in ((self.label, y), (self.weight, weights)):
            if values is not None and (row := not_finite(values)) is not None:
                found = "a missing value" if np.isnan(values[row]) else values[row]
                raise placed_error(f"{place.row(row)}: column {name!r} must be finite, got {found}")
        if weights is not None and (weights < 0).any():
            row = int(np.argmax(weights < 0))
            raise placed_error(
                f"{place.row(row)}: column {self.weight!r} must hold weights >= 0, got "
                f"{weights[row]}"
            )
        if y is not None and chances is not None:
            if (wrong := wrong_click(y, chances)) is not None:
                row, of_clicks, text = wrong
                name = self.label if of_clicks else self.propensity
                raise placed_error(f"{place.row(row)}: column {name!r} {text}")
            y = y / np.where(y > 0, chances, 1.0)
        sizes, ids, groups = np.array([batch.num_rows], np.int64), None, None
        if self.qid is not None:
            sizes, ids = runs_of(_ids(batch, self.qid, place, "the query id"))
        if self.groups is not None and not features:
            groups = _ids(batch, self.groups, place, "the group")
        X = self._features(batch, place) if features and self.features else None
        kept = batch.select(list(self.keep)) if self.keep else None
        return TableRows(X, y, weights, sizes, ids, place.first, place.partition, kept, groups)

    def _features(self, batch: pyarrow.Table, place: Place) -> AnyArray:
        if self.refused is not None:
            raise copy.copy(self.refused)
        if self.texts is None and not any(self.widths):
            columns = [_numbers(batch, name, place, self.dtype, False) for name in self.features]
            fill = None if self.fill is None else np.require(self.fill, self.dtype, ["C", "A"])
            X, missing = _core.interleave_columns(columns, fill, thread_count())
            return self.filled(X, place) if fill is None and missing.any() else X
        parts = [self._entries(batch, *column, place) for column in self.lists.items()]
        X = parts[0] if len(parts) == 1 else np.hstack(parts)
        return self.filled(X, place) if self.texts is None else np.asarray(X, object)

    def _entries(self, batch: pyarrow.Table, name: str, width: int, place: Place) -> AnyArray:
        """Return a column of numbers, lists or text, (n_rows, the features that it has)."""
        if self.texts is None:
            return _numbers(batch, name, place, self.dtype, False, width).reshape(-1, width or 1)
        if name in self.texts:
            return _texts(_column(batch, name), name, self.texts[name], place)[:, None]
        values = _numbers(batch, name, place, self.dtype, True, width).reshape(-1, width or 1)
        if (wrong := np.isinf(values)).any():
            row, found = int(np.argmax(wrong.any(axis=1))), values[wrong][0]
            raise placed_error(f"{place.row(row)}: column {name!r} must be finite, got {found}")
        return values

    def filled(self, X: Any, place: Place) -> Any:
        """Return rows with what takes the place of missing numbers.

        Raises
        ------
        ValueError
            If nothing does. The message names the first one.
        """
        missing = np.isnan(X.data if self.sparse else X)
        if not missing.any():
            return X
        if self.fill is not None and not self.sparse:
            return np.where(missing, self.fill.astype(X.dtype), X)
        at = np.argwhere(missing)[0]
        row, column = (X.tocoo().row[at[0]], X.indices[at[0]]) if self.sparse else at
        name = self.feature_names()[column] if self.features else str(column)
        error = placed_error(
            f"{place.row(int(row))}: column {name!r} has a missing value: ",
            "give {missing='zero'}, {missing='mean'} or {missing='median'}{=, or the ranker "
            "feature_map=Fill('median') or Fill(0)}, or fill it in before",
        )
        error.found, error.kinds = "NaN", {name: "a missing value"}
        raise error


def refuse_repeated(names: Sequence[str], what: str) -> None:
    """Raise a ValueError if a list of columns names one twice."""
    if len(set(names)) < len(names):
        name = next(name for name in names if list(names).count(name) > 1)
        raise ArgumentError(what, f"must name every column once, got {verbatim(repr(name))} twice")


def placed_error(message: str, advice: str = "") -> ArgumentError:
    """Return an error whose message names the place of the rows already.

    Names of files and columns belong to the message, which is told as it is. The advice is a text
    of an `ArgumentError`, which names arguments.
    """
    return ArgumentError(None, advice, before=message, placed=True)


def changed(what: str) -> ArgumentError:
    """Return the error for a source whose rows are not those that an earlier pass read."""
    text = f"{{place}} changed while it was read: {verbatim(what)}"
    return ArgumentError(None, text, place="the table")


def _column(batch: pyarrow.RecordBatch, name: str) -> Any:
    """Return a column of a pyarrow batch or table as one array without a dictionary."""
    import pyarrow

    column = batch.column(name)
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pyarrow.ChunkedArray):  # of no chunks
        column = pyarrow.array([], column.type)
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def _no_numbers(column: pyarrow.ChunkedArray, name: str, place: Place) -> ArgumentError:
    """Return the error for a column of something else than numbers; of text, it names the first."""
    kind = kind_of(column.type)
    values = column.to_pylist() if kind == "text" else []
    wrong = (
        k for k, value in enumerate(values) if value is not None and not reads_as_number(value)
    )
    if (row := next(wrong, None)) is None:
        wanted = f"column {name!r} must hold numbers, got text: cast it to numbers"
        return placed_error(
            f"{place.name}: {wanted if kind == 'text' else not_numbers({name: kind})}"
        )
    text = values[row]
    advice = advice_on_limit(text) or ": turn such text into numbers, such as 0, 1, 2 for grades"
    return placed_error(
        f"{place.row(row)}: column {name!r} must hold numbers, got {text!r}{advice}"
    )


def _numbers(
    batch: pyarrow.Table,
    name: str,
    place: Place,
    dtype: Any = np.float64,
    exact: bool = True,
    width: int = 0,
) -> AnyArray:
    """Return a column as numbers of a type, those of lists one after the other; none is NaN.

    Lists must have `width` numbers, unless it is 0. If numbers are to be `exact`, whole numbers
    that a float64 rounds are an error.
    """
    import pyarrow.compute

    column = _column(batch, name)
    if width:
        lengths = pyarrow.compute.list_value_length(column)
        lengths = np.asarray(pyarrow.compute.fill_null(lengths, -1))
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            found = "a missing value" if lengths[row] < 0 else f"{lengths[row]} numbers"
            raise placed_error(
                f"{place.row(row)}: column {name!r} must hold lists of {width} numbers, got {found}"
            )
        column = pyarrow.compute.list_flatten(column)
    given, kind = column, pyarrow.from_numpy_dtype(dtype)
    if column.type != kind:
        if not is_number(column.type):
            raise _no_numbers(column, name, place)
        column = column.cast(kind, safe=False)
    values = np.require(column.to_numpy(zero_copy_only=False), dtype, ["C", "A"])
    whole = exact and str(given.type) in ("int64", "uint64")
    if whole and (np.abs(values) >= LARGEST_WHOLE).any():
        for row, number in enumerate(given.to_pylist()):
            if number is not None and float(number) != number:
                raise placed_error(f"{place.row(row)}: column {name!r} {NOT_HELD}, got {number}")
    return values


def whole_numbers(column: pyarrow.Array) -> Any:
    """Return a column of text as int64, or None if a text is no such number.

    Numbers have no leading zeros and plus signs, so that each is that of one text.
    """
    import pyarrow.compute

    texts = pyarrow.compute.utf8_trim_whitespace(column)
    with suppress(pyarrow.ArrowInvalid):
        numbers = texts.cast(pyarrow.int64())
        if numbers.cast(texts.type).equals(texts):
            return numbers
    return None


def _parsed(column: pyarrow.Array, kind: str, name: str, place: Place) -> Any:
    """Return a column of a file of text as what it is to be; see `Columns.parsed`."""
    import pyarrow.compute

    if not str(column.type).endswith("string"):
        return column
    compute, numbers = pyarrow.compute, None
    if kind != "number":
        column = compute.if_else(compute.equal(column, ""), None, column)
        numbers = column if kind == "text" else whole_numbers(column)
    else:
        column = compute.utf8_trim_whitespace(column)
        column = compute.if_else(compute.is_in(column, pyarrow.array(GAPS)), None, column)
        with suppress(pyarrow.ArrowInvalid):
            numbers = column.cast(pyarrow.float64())
            if (np.abs(np.asarray(numbers)) >= LARGEST_WHOLE).any():
                for row, text in enumerate(column.to_pylist()):
                    if text and re.fullmatch("[-+]?[0-9]+", text) and int(text) != float(text):
                        where = place.row(row)
                        raise placed_error(f"{where}: column {name!r} {NOT_HELD}, got {text}")
    if numbers is not None:
        return numbers
    if kind == "number":
        raise _no_numbers(column, name, place)
    row, text = next(
        (row, text)
        for row, text in enumerate(column.to_pylist())
        if text is not None and whole_numbers(pyarrow.array([text])) is None
    )
    raise placed_error(f"{place.row(row)}: column {name!r} {NOT_WHOLE.format(text, name)}")


def _texts(column: pyarrow.Array, name: str, gaps: frozenset[str], place: Place) -> AnyArray:
    """Return a column of text as objects, None where there is none or one that stands for that."""
    import pyarrow
    import pyarrow.compute

    types = pyarrow.types
    if column.null_count == len(column):
        return np.full(len(column), None)
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        row = int(np.argmin(np.asarray(column.is_null())))
        raise placed_error(
            f"{place.row(row)}: column {name!r} must hold text, as in the fit, got "
            f"{column[row].as_py()!r}, which no text is equal to: make the column text"
        )
    if gaps:
        is_gap = pyarrow.compute.is_in(column, pyarrow.array(sorted(gaps), column.type))
        column = pyarrow.compute.if_else(is_gap, None, column)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _ids(batch: pyarrow.RecordBatch, name: str, place: Place, what: str) -> AnyArray:
    """Return the ids of rows in a column: integers, or objects."""
    import pyarrow

    column = _column(batch, name)
    missing = column.is_null(nan_is_null=pyarrow.types.is_floating(column.type))
    if missing.true_count:
        row = int(np.argmax(np.asarray(missing)))
        raise placed_error(f"{place.row(row)}: column {name!r}, {what}, has a missing value")
    types = pyarrow.types
    if types.is_string(column.type) or types.is_large_string(column.type):
        # Ids of neighbouring rows are mostly equal: each is made a Python string once.
        encoded = column.dictionary_encode()
        texts = np.array(encoded.dictionary.to_pylist(), dtype=object)
        return texts[encoded.indices.to_numpy(zero_copy_only=False)]
    return np.asarray(column.to_numpy(zero_copy_only=False))


def rows_of_arrays(
    X: Any, y: Any, qid: Any, weights: Any, columns: Columns, place: Place, features: bool = True
) -> TableRows:
    """Return the rows of arrays, as a LETOR file or a caller's function gives them.

    Arrays of the type of `columns` are not copied. There must be a row.

    Raises
    ------
    ValueError
        If the shapes differ, or if a value is missing or not finite. The message names the place.
    """
    try:
        if scipy.sparse.issparse(X) != columns.sparse:
            kinds = ("dense", "sparse") if columns.sparse else ("sparse", "dense")
            raise ValueError("X must be {1} as in the first batch, got a {0} one".format(*kinds))
        if columns.sparse:
            X = read_rows(X)
        else:
            require_numbers(X, "X")
            X = real_array(X, "X", keep_float32=True)
        n_rows = X.shape[0]
        if X.ndim != 2 or X.shape[1] != columns.n_features:
            raise ValueError(f"X must have {columns.n_features} columns, got shape {X.shape}")
        y = real_array(y, "y")
        if y.shape != (n_rows,) or not np.isfinite(y).all():
            raise ValueError(f"y must be {n_rows} finite numbers, one for each row of X")
        weights = None if weights is None else check_weights(weights, n_rows, "weight")
        sizes, ids = np.array([n_rows], np.int64), None
        if qid is not None:
            sizes, ids = runs_of(as_ids(qid, n_rows))
    except ValueError as error:
        raise placed_error(
            f"{place.name}, rows from {place.first} on, {counted(place.name)}: {error}"
        ) from error
    if not features:
        return TableRows(None, y, weights, sizes, ids, place.first, place.partition)
    sparse, dtype = columns.sparse, columns.dtype
    X = X.astype(dtype, copy=False) if sparse else np.require(X, dtype, ["C", "A"])
    X = columns.filled(X, place)
    return TableRows(X, y, weights, sizes, ids, place.first, place.partition)


def in_batches(table: Any) -> Iterator[Any]:
    """Cut a pyarrow table into batches."""
    size = limits.now.batch_rows
    return (table.slice(begin, size) for begin in range(0, table.num_rows, size))


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
        if n_waiting >= limits.now.fewest_batch_rows:
            yield rows()
            first, waiting, n_waiting = first + n_waiting, [], 0
    if waiting:
        yield rows()


def copied(table: pyarrow.Table) -> Any:
    """Return a pyarrow table with the same rows in memory of its own.

    Arrow's data may lie in arrays that somebody else writes to, and does not tell whether it does.
    """
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pyarrow.ipc.open_stream(sink.getvalue()).read_all()


def to_arrow(frame: FrameLike) -> Any:
    """Return a frame, or what else speaks Arrow, as a pyarrow table."""
    import pyarrow

    if type(frame).__module__.partition(".")[0] == "pandas":
        frame = with_plain_types(frame, dense=True)
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        return pyarrow.table(frame)
    raise TypeError(
        "batches must be frames, pyarrow tables, record batches or what else speaks Arrow, or "
        f"tuples (X, y, qid) of arrays, got {type(frame).__name__}"
    )
