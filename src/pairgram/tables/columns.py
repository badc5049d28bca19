"""Which columns of a table are labels, query ids, weights and features, and the types they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.checks import ArgumentError, Vector, not_finite
from pairgram._support.column_kinds import kind_of, not_numbers
from pairgram._support.threads import resolve_n_threads
from pairgram.tables.rows import TableRows, counted, runs_of

# A number that no other text of this kind is equal to.
WHOLE = re.compile("0|-?[1-9][0-9]*")


def value_type(kind: Any) -> Any:
    """Return the type of the values of a column, which a dictionary may hold, without views."""
    import pyarrow

    return _plain_type(kind.value_type if pyarrow.types.is_dictionary(kind) else kind)


def _plain_type(kind: Any) -> Any:
    """Return a type without views of text or bytes, as polars writes them.

    pyarrow reads views, but can neither take rows of them nor decode dictionaries of them.
    """
    import pyarrow

    types = pyarrow.types
    if types.is_string_view(kind):
        return pyarrow.large_string()
    if types.is_binary_view(kind):
        return pyarrow.large_binary()
    if types.is_dictionary(kind):
        return pyarrow.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if types.is_list(kind):
        return pyarrow.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if types.is_large_list(kind):
        return pyarrow.large_list(kind.value_field.with_type(_plain_type(kind.value_type)))
    return kind


def plain_values(table: Any) -> Any:
    """Return a table whose text and bytes are no views, which pyarrow knows too little of."""
    import pyarrow

    for place, field in enumerate(table.schema):
        kind = _plain_type(field.type)
        if kind == field.type:
            continue
        column = table.column(place)
        if pyarrow.types.is_dictionary(kind):
            chunks = [
                pyarrow.DictionaryArray.from_arrays(
                    chunk.indices, chunk.dictionary.cast(kind.value_type), ordered=kind.ordered
                )
                for chunk in column.chunks
            ]
            column = pyarrow.chunked_array(chunks, kind)
        else:
            column = column.cast(kind)
        table = table.set_column(place, field.with_type(kind), column)
    return table


def is_number(kind: Any) -> bool:
    """Tell whether a type is one of numbers, booleans, or columns without any value."""
    import pyarrow

    return not pyarrow.types.is_dictionary(kind) and kind_of(kind) == "numbers"


def kind_of_values(kind: Any) -> str:
    """Return what messages call the values of a type. Values of different kinds are never equal.

    Numbers, booleans and columns without any value are of one kind.
    """
    import pyarrow

    types, kind = pyarrow.types, value_type(kind)
    if types.is_timestamp(kind):
        return f"times {'without' if kind.tz is None else 'with'} a time zone"
    found = kind_of(kind)
    return "values of another kind" if found == "objects" else found


def common_schema(schema: Any, own: Any) -> Any:
    """Return the schema of a table with types that hold the numbers of one more file too.

    Integers and floats become float64, and so do booleans and other numbers. Types that are no
    numbers stay as they are, and so do the names.
    """
    import pyarrow

    for place, field in enumerate(schema):
        at = own.get_field_index(field.name)
        if at < 0 or own.field(at).type == field.type:
            continue
        kinds = [value_type(kind) for kind in (field.type, own.field(at).type)]
        if pyarrow.types.is_null(kinds[0]):
            common = kinds[1]
        elif all(map(is_number, kinds)):
            common = pyarrow.float64()
            if all(
                pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) for kind in kinds
            ):
                pair = [pyarrow.schema([(field.name, kind)]) for kind in kinds]
                common = pyarrow.unify_schemas(pair, promote_options="permissive").field(0).type
        else:
            continue
        schema = schema.set(place, field.with_type(common))
    return schema


def with_floats(schema: Any, names: Sequence[str]) -> tuple[Any, frozenset[str]]:
    """Return the schema of files of text, some of whose columns hold numbers of any kind.

    Types are guessed by the first rows, which may lack the decimals or values of later ones.

    Returns
    -------
    schema : pyarrow.Schema
    whole : frozenset of str
        Those of the columns whose first rows are whole numbers.
    """
    import pyarrow

    whole = set()
    for name in names:
        place = schema.get_field_index(name)
        kind = schema.field(place).type
        if pyarrow.types.is_integer(kind):
            whole.add(name)
        if pyarrow.types.is_integer(kind) or pyarrow.types.is_null(kind):
            schema = schema.set(place, pyarrow.field(name, pyarrow.float64()))
    return schema, frozenset(whole)


def whole_numbers(column: Any) -> tuple[Any, int]:
    """Return a column of text as int64, and the first row of another text, or -1.

    Numbers have no leading zeros and plus signs: each is that of one text. Spaces around them do
    not count, and what pyarrow takes for a missing number is null.
    """
    import pyarrow.csv

    encoded = column.dictionary_encode()  # neighbouring ids are mostly equal
    texts = encoded.dictionary
    try:
        numbers = texts.cast(pyarrow.int64())
        if numbers.cast(texts.type).equals(texts):
            return numbers.take(encoded.indices), -1
    except pyarrow.ArrowInvalid:
        pass
    missing = set(pyarrow.csv.ConvertOptions().null_values)
    found: list[int | None] = []
    for code, text in enumerate(map(str.strip, texts.to_pylist())):
        known = WHOLE.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63
        if not known and text not in missing:
            return None, encoded.indices.index(code).as_py()
        found.append(int(text) if known else None)
    return pyarrow.array(found, pyarrow.int64()).take(encoded.indices), -1


# The width of a column of lists that the schema does not tell: that of the first list.
UNKNOWN_WIDTH = -1
# A float64 holds every whole number up to this one.
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True)
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
        The columns with one feature each, or one column of lists of numbers.
    label, qid, weight : str or None
    dtype : float32 or float64
        The type of the features.
    width : int or None
        The length of the lists, if there is one column of lists.
    padded : bool
        Whether all lists may be shorter than `width`: zeros take the place of the last features.
    fill : ndarray of shape (n_features,), or None
        What takes the place of missing values. With None they are an error.
    keep : tuple of str
        Further columns, which are handed through.
    """

    features: tuple[str, ...]
    label: str | None
    qid: str | None
    weight: str | None
    dtype: Any
    width: int | None = None
    fill: Vector | None = None
    keep: tuple[str, ...] = ()
    padded: bool = False

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.features) if self.width is None else self.width

    def names(self, features: bool = True) -> list[str]:
        """Return the names of the columns that are read, with or without the features."""
        own = [name for name in (self.label, self.qid, self.weight) if name is not None]
        own += self.keep
        return list(dict.fromkeys([*own, *(self.features if features else ())]))

    def name_of(self, feature: int) -> str:
        """Return what messages call a feature."""
        if self.width is None:
            return repr(self.features[feature])
        return repr(f"{self.features[0]}[{feature}]") if self.features else str(feature)

    def for_scores(self, keep: tuple[str, ...]) -> Columns:
        """Return the columns of features alone, and those that are handed through."""
        return replace(self, label=None, qid=None, weight=None, keep=keep)

    def rows(self, batch: Any, place: Place, features: bool = True) -> TableRows:
        """Return the rows of a pyarrow RecordBatch or Table that has these columns.

        Raises
        ------
        ValueError
            If a value is missing or no number, or if a label or weight is not finite. The message
            names the column, the file and the row.
        """
        y = None if self.label is None else self._numbers(batch, self.label, place)
        weights = None if self.weight is None else self._weights(batch, place)
        if self.qid is None:
            sizes, ids = np.array([batch.num_rows], np.int64), None
        else:
            sizes, ids = runs_of(_ids(batch, self.qid, place))
        X = self._features(batch, place) if features else None
        kept = batch.select(list(self.keep)) if self.keep else None
        return TableRows(X, y, weights, sizes, ids, place.first, place.partition, kept)

    def _numbers(self, batch: Any, name: str, place: Place) -> Vector:
        column = _column(batch, name)
        values = _array(column, np.float64, name, place)
        if (row := not_finite(values)) is not None:
            found = "a missing value" if np.isnan(values[row]) else values[row]
            raise placed_error(f"{place.row(row)}: column {name!r} must be finite, got {found}")
        if getattr(column.type, "bit_width", 0) >= 64 and np.abs(values).max() >= LARGEST_WHOLE:
            _refuse_rounded(column, values, name, place)
        return values

    def _weights(self, batch: Any, place: Place) -> Vector:
        assert self.weight is not None
        weights = self._numbers(batch, self.weight, place)
        if (weights < 0).any():
            row = int(np.argmax(weights < 0))
            raise placed_error(
                f"{place.row(row)}: column {self.weight!r} must hold weights >= 0, got "
                f"{weights[row]}"
            )
        return weights

    def _features(self, batch: Any, place: Place) -> NDArray[Any]:
        if self.width is not None:
            return self._lists(_column(batch, self.features[0]), place)
        arrays = [_array(_column(batch, name), self.dtype, name, place) for name in self.features]
        single = self.dtype == np.float32
        interleave: Any = _core.interleave_columns32 if single else _core.interleave_columns64
        fill = None if self.fill is None else np.require(self.fill, self.dtype, ["C", "A"])
        X, missing = interleave(arrays, fill, resolve_n_threads(None))
        if fill is None and missing.any():
            at = int(np.argmax(missing))
            raise self.missing_value(place, int(np.argmax(np.isnan(arrays[at]))), self.features[at])
        return np.asarray(X)

    def _lists(self, column: Any, place: Place) -> NDArray[Any]:
        import pyarrow.compute

        assert self.width is not None
        name, lengths = self.features[0], pyarrow.compute.list_value_length(column)
        lengths = np.asarray(pyarrow.compute.fill_null(lengths, -1))
        known = self.width != UNKNOWN_WIDTH
        width = self.width if known else max(0, int(lengths[0]))
        if self.padded and len(lengths):
            width = int(lengths[0])
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            found = "a missing value" if lengths[row] < 0 else f"{lengths[row]} numbers"
            raise placed_error(
                f"{place.row(row)}: column {name!r} must hold lists of {width} numbers, got {found}"
            )
        flat = _array(pyarrow.compute.list_flatten(column), self.dtype, name, place)
        X = flat.reshape(len(column), width)
        missing = np.isnan(X)
        if known and missing.any():
            if self.fill is None:
                row, at = np.argwhere(missing)[0]
                raise self.missing_value(place, int(row), f"{name}[{at}]")
            X = np.where(missing, self.fill[:width].astype(X.dtype), X)
        if self.padded and width < self.width:
            X = np.pad(X, ((0, 0), (0, self.width - width)))
        return np.require(X, None, ["C", "A"])

    def missing_value(self, place: Place, row: int, name: str) -> ValueError:
        """Return the error for a feature that is missing."""
        return placed_error(
            f"{place.row(row)}: column {name!r} has a missing value: give {{missing='zero'}} or "
            "{missing='mean'}, or fill it in before"
        )


def _refuse_rounded(column: Any, values: Vector, name: str, place: Place) -> None:
    """Raise a ValueError if different large whole numbers have become equal floats."""
    import pyarrow

    if not pyarrow.types.is_integer(column.type):
        return
    numbers = column.to_numpy(zero_copy_only=False)
    rounded = values.astype(object) != numbers.astype(object)
    if rounded.any():
        row = int(np.argmax(rounded))
        raise placed_error(
            f"{place.row(row)}: column {name!r} must hold numbers that a float64 can hold, got "
            f"{numbers[row]}"
        )


def refuse_repeated(names: Sequence[str], what: str) -> None:
    """Raise a ValueError if a list of columns names one twice."""
    if len(set(names)) < len(names):
        name = next(name for name in names if list(names).count(name) > 1)
        raise ArgumentError(what, f" must name every column once, got {name!r} twice")


def placed_error(message: str) -> ValueError:
    """Return an error whose message names the place of the rows already."""
    error = ArgumentError(None, message)
    error.placed = True  # type: ignore[attr-defined]
    return error


def _column(batch: Any, name: str) -> Any:
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


def _array(column: Any, dtype: Any, name: str, place: Place) -> NDArray[Any]:
    """Return a column as numbers of a type; missing values become NaN."""
    import pyarrow
    import pyarrow.compute

    kind = pyarrow.float32() if np.dtype(dtype) == np.float32 else pyarrow.float64()
    types = pyarrow.types
    if column.type != kind:
        if not is_number(column.type):
            raise placed_error(f"{place.name}: {not_numbers({name: kind_of(column.type)})}")
        if types.is_boolean(column.type):
            column = column.cast(pyarrow.int8())
        column = column.cast(kind, safe=False)
    if column.null_count:
        column = pyarrow.compute.fill_null(column, float("nan"))
    return np.require(column.to_numpy(zero_copy_only=False), dtype, ["C", "A"])


def _ids(batch: Any, name: str, place: Place) -> NDArray[Any]:
    """Return the query ids of rows: integers, or objects."""
    import pyarrow

    column = _column(batch, name)
    missing = column.is_null(nan_is_null=pyarrow.types.is_floating(column.type))
    if missing.true_count:
        row = int(np.argmax(np.asarray(missing)))
        raise placed_error(f"{place.row(row)}: column {name!r}, the query id, has a missing value")
    types = pyarrow.types
    if types.is_string(column.type) or types.is_large_string(column.type):
        # Ids of neighbouring rows are mostly equal: each is made a Python string once.
        encoded = column.dictionary_encode()
        texts = np.array(encoded.dictionary.to_pylist(), dtype=object)
        return np.asarray(texts[encoded.indices.to_numpy(zero_copy_only=False)])
    return np.asarray(column.to_numpy(zero_copy_only=False))
