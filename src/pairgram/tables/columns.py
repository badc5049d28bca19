"""Which columns of a table are labels, ids, weights and features, and rows that were read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

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
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def plain_values(table: pyarrow.Table) -> Any:
    """Return a table whose text and bytes are no views, which pyarrow knows too little of."""
    import pyarrow

    for place, field in enumerate(table.schema):
        kind = str(value_type(field.type))
        if not kind.endswith("_view"):
            continue
        column, plain = table.column(place), f"large_{kind.removesuffix('_view')}"
        if pyarrow.types.is_dictionary(field.type):
            chunks = [one.dictionary.cast(plain).take(one.indices) for one in column.chunks]
            column = pyarrow.chunked_array(chunks, plain)
        table = table.set_column(place, field.name, column.cast(plain))
    return table


def with_types(schema: pyarrow.Schema, kinds: Mapping[str, Any]) -> Any:
    """Return a schema with other types of some columns."""
    import pyarrow

    for name, kind in kinds.items():
        schema = schema.set(schema.get_field_index(name), pyarrow.field(name, kind))
    return schema


def is_number(kind: pyarrow.DataType) -> bool:
    """Tell whether a type is one of numbers, booleans, or columns without any value."""
    import pyarrow

    return not pyarrow.types.is_dictionary(kind) and kind_of(kind) == "numbers"


def kind_of_values(kind: pyarrow.DataType) -> str:
    """Return what messages call the values of a type. Values of different kinds are never equal.

    Numbers, booleans and columns without any value are of one kind.
    """
    import pyarrow

    types, kind = pyarrow.types, value_type(kind)
    if types.is_timestamp(kind):
        return f"times {'without' if kind.tz is None else 'with'} a time zone"
    found = kind_of(kind)
    return "values of another kind" if found == "objects" else found


def common_schema(schema: pyarrow.Schema, own: pyarrow.Schema) -> Any:
    """Return the schema of a table with the columns and the numbers of one more file.

    Integers and floats become float64, and so do booleans and other numbers. Decimals keep all
    their digits. Types that are no numbers stay as they are.
    """
    import pyarrow

    for field in own:
        at = schema.get_field_index(field.name)
        if at < 0:
            schema = schema.append(field)
            continue
        kinds = [value_type(kind) for kind in (schema.field(at).type, field.type)]
        if pyarrow.types.is_null(kinds[0]):
            schema = with_types(schema, {field.name: field.type})
        elif kinds[0] != kinds[1] and all(map(is_number, kinds)):
            if any(map(pyarrow.types.is_decimal, kinds)):  # the digits of 64 bits
                whole = pyarrow.decimal128(20, 0)
                kinds = [whole if pyarrow.types.is_integer(kind) else kind for kind in kinds]
            pair = [pyarrow.schema([(field.name, kind)]) for kind in kinds]
            common = pyarrow.float64()
            with suppress(pyarrow.ArrowTypeError):  # of booleans, or of more than 76 digits
                common = pyarrow.unify_schemas(pair, promote_options="permissive").field(0).type
            schema = with_types(schema, {field.name: common})
    return schema


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


# The width of a column of lists that the schema does not tell: that of the first list.
UNKNOWN_WIDTH = -1
# A float64 holds every whole number up to this one.
LARGEST_WHOLE = 2.0**53
NOT_HELD = "must hold numbers that a float64 can hold"


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
    width : int or None
        The length of the lists, if there is one column of lists and no other.
    widths : tuple of int
        The length of the lists of every column, 0 for numbers; none if there is one column, or if
        all hold numbers.
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
    refused : ArgumentError or None
        The error to raise when the features are read as numbers, if some of them are not.
    """

    features: tuple[str, ...]
    label: str | None
    qid: str | None
    weight: str | None
    dtype: Any
    width: int | None = None
    fill: Vector | None = None
    keep: tuple[str, ...] = ()
    sparse: bool = False
    groups: str | None = None
    propensity: str | None = None
    widths: tuple[int, ...] = ()
    texts: Mapping[str, frozenset[str]] | None = None
    refused: ArgumentError | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        if self.widths:
            return sum(max(width, 1) for width in self.widths)
        return len(self.features) if self.width is None else self.width

    def feature_names(self) -> list[str]:
        """Return the names of the features; those of lists are like ``embedding[0]``."""
        if self.width is not None:
            return entries_of(self.features[0], self.width) if self.features else []
        widths = self.widths or (0,) * len(self.features)
        names: list[str] = []
        for column, width in zip(self.features, widths, strict=True):
            names += entries_of(column, width) if width else [column]
        return names

    def names(self, features: bool = True) -> list[str]:
        """Return the names of the columns that are read, with or without the features."""
        groups = None if features else self.groups  # which only the survey of a table looks at
        told = (self.label, self.qid, self.weight, self.propensity, groups)
        own = [name for name in told if name is not None]
        own += self.keep
        return list(dict.fromkeys([*own, *(self.features if features else ())]))

    def exact(self) -> set[str | None]:
        """Return the columns whose whole numbers must not be rounded: they may be categories."""
        numbers = () if self.texts is None else {*self.features} - self.texts.keys()
        return {self.label, self.weight, *numbers}

    def name_of(self, feature: int) -> str:
        """Return what messages call a feature."""
        return repr(self.feature_names()[feature]) if self.features else str(feature)

    def for_scores(self, keep: tuple[str, ...]) -> Columns:
        """Return the columns of features alone, and those that are handed through."""
        return replace(
            self, label=None, qid=None, weight=None, groups=None, propensity=None, keep=keep
        )

    def rows(self, batch: pyarrow.RecordBatch, place: Place, features: bool = True) -> TableRows:
        """Return the rows of a pyarrow RecordBatch or Table that has these columns.

        Raises
        ------
        ValueError
            If a value is missing or no number, or if a label or weight is not finite. The message
            names the column, the file and the row.
        """
        y = None if self.label is None else self._numbers(batch, self.label, place)
        if y is not None and self.propensity is not None:
            y = self._debiased(y, batch, place)
        weights = None if self.weight is None else self._weights(batch, place)
        if self.qid is None:
            sizes, ids = np.array([batch.num_rows], np.int64), None
        else:
            sizes, ids = runs_of(_ids(batch, self.qid, place, "the query id"))
        groups = None
        if self.groups is not None and not features:
            groups = _ids(batch, self.groups, place, "the group")
        X = self._features(batch, place) if features else None
        kept = batch.select(list(self.keep)) if self.keep else None
        return TableRows(X, y, weights, sizes, ids, place.first, place.partition, kept, groups)

    def _numbers(self, batch: pyarrow.RecordBatch, name: str, place: Place) -> Vector:
        column = _column(batch, name)
        values = _array(column, np.float64, name, place)
        if (row := not_finite(values)) is not None:
            found = "a missing value" if np.isnan(values[row]) else values[row]
            raise placed_error(f"{place.row(row)}: column {name!r} must be finite, got {found}")
        _refuse_large(column, values, name, place)
        return values

    def _debiased(self, clicks: Vector, batch: pyarrow.RecordBatch, place: Place) -> Vector:
        """Return clicks / propensities."""
        name = self.propensity
        assert name is not None
        values = _array(_column(batch, name), np.float64, name, place)
        if (wrong := wrong_click(clicks, values)) is not None:
            row, of_clicks, text = wrong
            column = self.label if of_clicks else name
            raise placed_error(f"{place.row(row)}: column {column!r} {text}")
        return clicks / np.where(clicks > 0, values, 1.0)

    def _weights(self, batch: pyarrow.RecordBatch, place: Place) -> Vector:
        assert self.weight is not None
        weights = self._numbers(batch, self.weight, place)
        if (weights < 0).any():
            row = int(np.argmax(weights < 0))
            raise placed_error(
                f"{place.row(row)}: column {self.weight!r} must hold weights >= 0, got "
                f"{weights[row]}"
            )
        return weights

    def _features(self, batch: pyarrow.RecordBatch, place: Place) -> AnyArray:
        if self.refused is not None:
            raise copy.copy(self.refused)
        if self.width is not None:
            known = self.width != UNKNOWN_WIDTH
            X = self._lists(batch, self.features[0], self.width, place)
            X = self._filled(X, place) if known else X
            return np.require(X, None, ["C", "A"])
        if self.widths or self.texts is not None:
            dtype = self.dtype if self.texts is None else object
            X, at = np.empty((batch.num_rows, self.n_features), dtype), 0
            widths = self.widths or (0,) * len(self.features)
            for name, width in zip(self.features, widths, strict=True):
                until = at + max(width, 1)
                X[:, at:until] = self._column(batch, name, width, place)
                at = until
            return X if self.texts is not None else self._filled(X, place)
        arrays = [_array(_column(batch, name), self.dtype, name, place) for name in self.features]
        fill = None if self.fill is None else np.require(self.fill, self.dtype, ["C", "A"])
        X, missing = _core.interleave_columns(arrays, fill, thread_count())
        if fill is None and missing.any():
            at = int(np.argmax(missing))
            raise self.missing_value(place, int(np.argmax(np.isnan(arrays[at]))), self.features[at])
        return X

    def _column(self, batch: pyarrow.RecordBatch, name: str, width: int, place: Place) -> AnyArray:
        """Return a column of numbers, lists or text, (n_rows, the features that it has)."""
        if self.texts is not None and name in self.texts:
            return _texts(_column(batch, name), name, self.texts[name], place)[:, None]
        if width:
            values = self._lists(batch, name, width, place)
        else:
            column = _column(batch, name)
            values = _array(column, self.dtype, name, place)[:, None]
            if self.texts is not None:  # whole numbers may be categories
                _refuse_large(column, values[:, 0], name, place)
        if self.texts is not None and (wrong := np.isinf(values)).any():
            row, found = int(np.argmax(wrong.any(axis=1))), values[wrong][0]
            raise placed_error(f"{place.row(row)}: column {name!r} must be finite, got {found}")
        return values

    def _lists(self, batch: pyarrow.RecordBatch, name: str, width: int, place: Place) -> Vector:
        """Return the lists of a column as rows, in which missing numbers are NaN."""
        import pyarrow.compute

        column = _column(batch, name)
        lengths = pyarrow.compute.list_value_length(column)
        lengths = np.asarray(pyarrow.compute.fill_null(lengths, -1))
        if width == UNKNOWN_WIDTH:
            width = max(0, int(lengths[0]))
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            found = "a missing value" if lengths[row] < 0 else f"{lengths[row]} numbers"
            raise placed_error(
                f"{place.row(row)}: column {name!r} must hold lists of {width} numbers, got {found}"
            )
        flat = _array(pyarrow.compute.list_flatten(column), self.dtype, name, place)
        return flat.reshape(len(column), width)

    def _filled(self, X: Vector, place: Place) -> Vector:
        """Return rows with what takes the place of missing numbers."""
        missing = np.isnan(X)
        if not missing.any():
            return X
        if self.fill is None:
            row, at = np.argwhere(missing)[0]
            raise self.missing_value(place, int(row), self.feature_names()[at])
        return np.where(missing, self.fill[: X.shape[1]].astype(X.dtype), X)

    def missing_value(self, place: Place, row: int, name: str) -> ArgumentError:
        """Return the error for a feature that is missing."""
        error = placed_error(
            f"{place.row(row)}: column {name!r} has a missing value: ",
            "give {missing='zero'}, {missing='mean'} or {missing='median'}{=, or the ranker "
            "feature_map=Fill('median') or Fill(0)}, or fill it in before",
        )
        error.found, error.kinds = "NaN", {name: "a missing value"}
        return error


def _refuse_large(column: pyarrow.Array, values: Vector, name: str, place: Place) -> None:
    """Raise a ValueError if different large whole numbers have become equal floats."""
    import pyarrow

    if not (pyarrow.types.is_integer(column.type) and column.type.bit_width >= 64):
        return
    if not (np.abs(values) >= LARGEST_WHOLE).any():
        return
    for row, number in enumerate(column.to_pylist()):
        if number is not None and float(number) != number:
            raise placed_error(f"{place.row(row)}: column {name!r} {NOT_HELD}, got {number}")


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


def _array(column: pyarrow.ChunkedArray, dtype: DTypeLike, name: str, place: Place) -> AnyArray:
    """Return a column as numbers of a type; missing values become NaN."""
    import pyarrow
    import pyarrow.compute

    kind = pyarrow.float32() if np.dtype(dtype) == np.float32 else pyarrow.float64()
    types = pyarrow.types
    if column.type != kind:
        if not is_number(column.type):
            raise _no_numbers(column, name, place)
        if types.is_boolean(column.type):
            column = column.cast(pyarrow.int8())
        column = column.cast(kind, safe=False)
    if column.null_count:
        column = pyarrow.compute.fill_null(column, float("nan"))
    return np.require(column.to_numpy(zero_copy_only=False), dtype, ["C", "A"])


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
    if columns.sparse:
        X = X.astype(columns.dtype, copy=False)
        missing = np.isnan(X.data)
    else:
        X = np.require(X, columns.dtype, ["C", "A"])
        missing = np.isnan(X)
    if missing.any():
        if columns.fill is None or columns.sparse:
            at = np.argwhere(missing)[0]
            row, column = (X.tocoo().row[at[0]], X.indices[at[0]]) if columns.sparse else at
            raise columns.missing_value(place, int(row), str(column))
        X = np.where(missing, columns.fill.astype(X.dtype), X)
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
