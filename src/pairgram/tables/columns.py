"""Which columns of a table are labels, ids, weights and features, and rows that were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import (
    advice_on_limit,
    entries_of,
    kind_of,
    not_numbers,
    reads_as_number,
)
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector, verbatim
from pairgram._support.machine import thread_count
from pairgram.data.clicks import wrong_click
from pairgram.features.gaps import filled

# The place of a row has this many bits for its number in its partition.
PLACE_BITS = 40
# Files with these names begin with a line of column names.
WITH_HEADERS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


@dataclass(frozen=True, eq=False)
class Place:
    """Where rows come from: the name of a partition, its number, and that of the first row."""

    name: str = ""
    partition: int = 0
    first: int = 0

    def row(self, number: int) -> str:
        """Return the place of one of the rows."""
        return f"{self.name}, row {self.first + number}, {counted(self.name)}"


@dataclass(frozen=True, eq=False)
class TableRows:
    """Consecutive rows of a table.

    Attributes
    ----------
    X : C-contiguous ndarray of shape (n_rows, n_features), float64 or float32, or None
        None if a pass does not read the features. With columns of text, they are objects.
    y : ndarray of shape (n_rows,), float64, or None
        None if the table has no labels.
    weights : ndarray of shape (n_rows,), float64, or None
    sizes : ndarray of shape (n_runs,), int64
        A run consists of neighbouring rows of one query. Without query ids there is one run.
    ids : ndarray of shape (n_runs,), or None
        The query ids of the runs. Neighbours differ.
    place : Place
        Where the rows come from.
    kept : pyarrow.Table or None
        Further columns of a batch, which are handed through.
    """

    X: Any
    y: Vector | None
    weights: Vector | None
    sizes: Rows
    ids: AnyArray | None
    place: Place = Place()
    kept: Any = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    @property
    def query(self) -> Any:
        """The query ids of all rows, (n_rows,), or None."""
        return None if self.ids is None else np.repeat(self.ids, self.sizes)

    @property
    def begins(self) -> Rows:
        """The places of the first rows of the runs: numbers that ascend in the whole table."""
        first = (self.place.partition << PLACE_BITS) + self.place.first
        return first + np.cumsum(self.sizes) - self.sizes

    def runs(self, begin: int, end: int) -> TableRows:
        """Return the runs from `begin` to `end`, without a copy."""
        start = int(self.sizes[:begin].sum())
        rows = slice(start, start + int(self.sizes[begin:end].sum()))
        return replace(
            _with_arrays([self], lambda parts: parts[0][rows]),
            sizes=self.sizes[begin:end],
            ids=None if self.ids is None else self.ids[begin:end],
            place=replace(self.place, first=self.place.first + start),
        )

    def taken(self, rows: Rows) -> TableRows:
        """Return some of the rows, as one run without an id."""
        taken = _with_arrays([self], lambda parts: parts[0][rows])
        return replace(taken, ids=None, sizes=np.array([len(rows)]))


def _with_arrays(parts: Sequence[TableRows], join: Callable[[list[Any]], Any]) -> TableRows:
    """Return the first part with what is made of every array of all parts."""
    made: dict[str, Any] = {"kept": None}
    for name in ("X", "y", "weights"):
        arrays = [getattr(rows, name) for rows in parts]
        made[name] = None if arrays[0] is None else join(arrays)
    return replace(parts[0], **made)


def together(parts: Sequence[TableRows]) -> TableRows:
    """Return the rows of several parts of a table, one after the other, as a copy."""
    sizes, ids = np.array([sum(rows.n_rows for rows in parts)], np.int64), None
    if parts[0].ids is not None:
        sizes, ids = runs_of(np.concatenate([rows.query for rows in parts]))
    return replace(_with_arrays(parts, np.concatenate), sizes=sizes, ids=ids)


def counted(name: str) -> str:
    """Return from where the rows of a partition are counted, by its name."""
    return f"counted from 0{' after the header' * name.lower().endswith(WITH_HEADERS)}"


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


def value_type(kind: Any) -> Any:
    """Return the type of the values of a column, which a dictionary may hold."""
    return getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind


def with_types(schema: Any, kinds: Mapping[str, Any]) -> Any:
    """Return a schema with other types of some columns."""
    import pyarrow

    fields = [(one.name, kinds.get(one.name, one.type)) for one in schema]
    return pyarrow.schema(fields, schema.metadata)


def is_number(kind: Any) -> bool:
    """Tell whether a type is one of numbers, booleans, or columns without any value."""
    return value_type(kind) is kind and kind_of(kind) == "numbers"


def kind_of_values(kind: Any) -> str:
    """Return what messages call the values of a type. Values of different kinds are never equal.

    Numbers, booleans and columns without any value are of one kind.
    """
    kind = value_type(kind)
    found = kind_of(kind)
    if found == "times":
        return f"times {'without' if getattr(kind, 'tz', None) is None else 'with'} a time zone"
    return "values of another kind" if found == "objects" else found


def common_schema(schema: Any, own: Any) -> Any:
    """Return the schema of a table with the columns and the numbers of one more file.

    Types hold the values of both, such as float64 for integers and floats, and for booleans and
    numbers. Types that do not go together, such as text and numbers, stay as they are.
    """
    import pyarrow

    kinds = {one.name: one.type for one in schema}
    for one in own:
        pair = [kinds.setdefault(one.name, one.type), one.type]
        if any(map(pyarrow.types.is_decimal, pair)):  # of which pyarrow takes one digit too few
            whole = pyarrow.decimal128(20, 0)
            pair = [whole if pyarrow.types.is_integer(kind) else kind for kind in pair]
        try:
            both = [pyarrow.schema([("", kind)]) for kind in pair]
            common = pyarrow.unify_schemas(both, promote_options="permissive")
            kinds[one.name] = common.field(0).type
        except pyarrow.ArrowTypeError:
            if all(is_number(value_type(kind)) for kind in pair):
                kinds[one.name] = pyarrow.float64()
    return pyarrow.schema(kinds.items(), schema.metadata)


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


# A float64 holds every whole number below this one.
LARGEST_WHOLE = 2.0**53
TEXT = ("string", "large_string")


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns of a table are read, and how.

    Attributes
    ----------
    features : mapping of str to int
        The columns with one feature each, 0, or the length of the lists of numbers that they have.
    label, qid, weight : str or None
    dtype : float32 or float64
        The type of the features.
    fill : ndarray of shape (n_features,), or None
        What takes the place of missing values. With None they are an error.
    keep : tuple of str
        Further columns, which are handed through.
    propensity : str or None
        The column of propensities. The labels are then clicks / propensities.
    schema : pyarrow.Schema or None
        All columns of the source, with the types that they are read as.
    is_text : bool
        Whether they stand in files of text, where an empty id is missing.
    texts : mapping of str to frozenset of str, or None
        The columns of features that hold text, for a pipeline that encodes it, and the texts that
        stand for a missing one in each. Rows are then objects, in which None is missing text and
        NaN is a missing number. With None all features are numbers.
    """

    features: Mapping[str, int]
    label: str | None
    qid: str | None
    weight: str | None = None
    dtype: Any = np.float64
    fill: Vector | None = None
    keep: tuple[str, ...] = ()
    propensity: str | None = None
    schema: Any = None
    is_text: bool = False
    texts: Mapping[str, frozenset[str]] | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(max(1, one) for one in self.features.values())

    def feature_names(self) -> list[str]:
        """Return the names of the features; those of lists are like ``embedding[0]``."""
        pairs = self.features.items()
        return [name for column, width in pairs for name in entries_of(column, width) or [column]]

    def names(self) -> list[str]:
        """Return the names of the columns that are read."""
        told = (self.label, self.qid, self.weight, self.propensity)
        return list(dict.fromkeys([*filter(None, told), *self.keep, *self.features]))

    def without_features(self) -> Columns:
        """Return the columns that the survey of a table looks at."""
        return replace(self, features={})

    def rows(self, batch: Any, place: Place) -> TableRows:
        """Return the rows of a pyarrow Table or RecordBatch that has these columns.

        Raises
        ------
        ValueError
            If a value is missing or no number, or if a label or weight is not finite. The message
            names the column, the file and the row.
        """

        def column(name: str) -> Column:
            return Column(batch, name, place)

        y = None if self.label is None else column(self.label).finite()
        weights = None
        if self.weight is not None:
            weight = column(self.weight)
            weights = told = weight.finite()
            weight.refuse(told < 0, lambda row: f"must hold weights >= 0, got {told[row]}")
        if y is not None and self.propensity is not None:
            chances = column(self.propensity).numbers()
            if (click := wrong_click(y, chances)) is not None:
                row, of_clicks, text = click
                name = self.label if of_clicks else self.propensity
                raise placed_error(f"{place.row(row)}: column {name!r} {text}")
            y = y / np.where(y > 0, chances, 1.0)
        sizes, ids = np.array([batch.num_rows], np.int64), None
        if self.qid is not None:
            sizes, ids = runs_of(column(self.qid).ids(self))
        X = self._features(batch, place) if self.features else None
        kept = batch.select(list(self.keep)) if self.keep else None
        return TableRows(X, y, weights, sizes, ids, place, kept)

    def _features(self, batch: Any, place: Place) -> AnyArray:
        parts, texts = [], self.texts
        for name, width in self.features.items():
            column = Column(batch, name, place)
            if texts is not None and name in texts:
                parts.append(column.texts(texts[name]))
                continue
            parts.append(column.numbers(self.dtype, texts is not None, width))
            if texts is not None:
                is_infinite = np.isinf(parts[-1]).reshape(batch.num_rows, -1).any(axis=1)
                column.refuse(is_infinite, lambda _: "must be finite, got infinity")
        if texts is None and not any(self.features.values()):
            fill = None if self.fill is None else np.require(self.fill, self.dtype, ["C", "A"])
            X, missing = _core.interleave_columns(parts, fill, thread_count())
            return self._filled(X, place) if fill is None and missing.any() else X
        parts = [part.reshape(batch.num_rows, -1) for part in parts]
        X = parts[0] if len(parts) == 1 else np.hstack(parts)
        return self._filled(X, place) if texts is None else np.asarray(X, object)

    def _filled(self, X: Any, place: Place) -> Any:
        """Return rows with what takes the place of missing numbers.

        Raises
        ------
        ValueError
            If nothing does. The message names the first one.
        """
        missing = np.isnan(X)
        if self.fill is not None or not missing.any():
            return filled(X, self.fill)
        row, column = np.argwhere(missing)[0]
        name = self.feature_names()[column]
        error = placed_error(
            f"{place.row(int(row))}: column {name!r} has a missing value: ",
            "give the ranker feature_map=Fill('median') or Fill(0), or fill it in before",
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


class Column:
    """A column of a batch as one array without a dictionary, and where its rows come from.

    Parameters
    ----------
    batch : pyarrow.Table
    name : str
    place : Place
    """

    def __init__(self, batch: Any, name: str, place: Place) -> None:
        column = batch.column(name)
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        is_plain = value_type(column.type) is column.type
        self.values = column if is_plain else column.dictionary_decode()
        self._name, self._place = name, place

    def refuse(self, wrong: Any, told: Callable[[int], object], which: str = "") -> None:
        """Raise a ValueError that names the first row that is wrong, if any is."""
        if np.any(wrong):
            row = int(np.argmax(wrong))
            where = self._place.row(row)
            raise placed_error(f"{where}: column {self._name!r}{which} {told(row)}")

    def numbers(self, dtype: Any = np.float64, exact: bool = True, width: int = 0) -> AnyArray:
        """Return numbers of a type, those of lists one after the other; none is NaN.

        Lists must have `width` numbers, unless it is 0. If numbers are to be `exact`, whole numbers
        that a float64 may have rounded are an error.
        """
        import pyarrow.compute

        values = self.values
        if width:
            lengths = pyarrow.compute.list_value_length(values).fill_null(-1).to_numpy()
            self.refuse(
                lengths != width,
                lambda row: (
                    f"must hold lists of {width} numbers, got "
                    f"{'a missing value' if lengths[row] < 0 else f'{lengths[row]} numbers'}"
                ),
            )
            values = pyarrow.compute.list_flatten(values)
        whole, kind = pyarrow.types.is_integer(values.type), pyarrow.from_numpy_dtype(dtype)
        if values.type != kind:
            if not is_number(values.type):
                self._refuse_others(values, exact)
            values = values.cast(kind, safe=False)
        found = np.require(values.to_numpy(zero_copy_only=False), dtype, ["C", "A"])
        if whole and exact:
            text = "must hold numbers that a float64 can hold, got"
            wrong = np.abs(found) >= LARGEST_WHOLE
            self.refuse(wrong, lambda row: f"{text} {self.values[row]}")
        return found

    def finite(self) -> Vector:
        """Return numbers, which must be finite."""
        values = self.numbers()
        self.refuse(
            ~np.isfinite(values),
            lambda row: (
                f"must be finite, got {'a missing value' if np.isnan(values[row]) else values[row]}"
            ),
        )
        return values

    def _refuse_others(self, values: Any, exact: bool) -> None:
        """Raise the error for a column of something else; of text, it names the first.

        What is not `exact`, a feature, may be text in all rows.
        """
        kind, given = kind_of(values.type), values.to_pylist()
        wrong = [one is not None and not reads_as_number(one) for one in given]
        if kind == "text" and (exact or not all(wrong)):
            otherwise = ": turn such text into numbers, such as 0, 1, 2 for grades"
            self.refuse(
                wrong,
                lambda row: (
                    f"must hold numbers, got {given[row]!r}"
                    f"{advice_on_limit(given[row]) or otherwise}"
                ),
            )
        raise placed_error(f"{self._place.name}: {not_numbers({self._name: kind})}")

    def texts(self, gaps: frozenset[str]) -> AnyArray:
        """Return text as objects, None where there is none or one that stands for that."""
        import pyarrow.compute

        values, known = self.values, np.asarray(self.values.is_valid())
        if not known.any():
            return np.full(len(values), None)
        if str(values.type) not in TEXT:
            self.refuse(
                known,
                lambda row: (
                    f"must hold text, as in the fit, got {values[row].as_py()!r}, which no "
                    "text is equal to: make the column text"
                ),
            )
        is_gap = pyarrow.compute.is_in(values, pyarrow.array(sorted(gaps), values.type))
        values = pyarrow.compute.if_else(is_gap, None, values)
        return np.asarray(values.to_numpy(zero_copy_only=False))

    def ids(self, columns: Columns) -> AnyArray:
        """Return query ids: integers, or objects. In a file of text, an empty one is missing.

        Those of another kind than the ids of other rows are refused: they would never be equal.
        """
        import pyarrow.compute

        values, are_texts = self.values, str(self.values.type) in TEXT
        which = ", the query id,"
        if columns.is_text and are_texts:
            values = pyarrow.compute.if_else(pyarrow.compute.equal(values, ""), None, values)
        missing = values.is_null(nan_is_null=str(values.type) in ("float", "double"))
        self.refuse(np.asarray(missing), lambda row: "has a missing value", which)
        known, kind = columns.schema.field(self._name).type, kind_of_values(values.type)
        is_told = value_type(known) is known and str(known) != "null"  # as frames of Dask may not
        if is_told and kind != kind_of_values(known):
            self.refuse(True, lambda _: f"holds {kind}, but before {kind_of_values(known)}", which)
        if not are_texts:
            return np.asarray(values.to_numpy(zero_copy_only=False))
        # Ids of neighbouring rows are mostly equal: each is made a Python string once.
        encoded = values.dictionary_encode()
        texts = np.array(encoded.dictionary.to_pylist(), dtype=object)
        return texts[encoded.indices.to_numpy(zero_copy_only=False)]


def rows_of_batches(
    batches: Iterable[Any], number: int, name: str, columns: Columns
) -> Iterator[TableRows]:
    """Yield the rows of batches, or of what else speaks Arrow; small ones are put together."""
    import pyarrow

    first = 0
    for table in _joined(batches):
        yield columns.rows(table, Place(name, number, first))
        first += table.num_rows
        # The ids of the next rows are of the same kinds.
        known = pyarrow.schema([(one.name, value_type(one.type)) for one in table.schema])
        columns = replace(columns, schema=known)


def _joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of some rows or more; small batches whose types go together are one."""
    import pyarrow

    waiting: list[Any] = []
    for batch in chain(batches, [None]):
        if batch is not None and len(batch):
            waiting.append(to_arrow(batch))
        enough = batch is None or sum(map(len, waiting)) >= limits.now.fewest_batch_rows
        if waiting and enough:
            with suppress(pyarrow.ArrowException):
                waiting = [pyarrow.concat_tables(waiting, promote_options="permissive")]
            yield from waiting
            waiting = []


def to_arrow(frame: Any) -> Any:
    """Return a frame, or what else speaks Arrow, as a pyarrow table."""
    import pyarrow

    package = type(frame).__module__.partition(".")[0]
    if package == "pandas":
        changed = {
            name: kind.subtype if hasattr(kind, "fill_value") else kind.newbyteorder("=")
            for name, kind in dict(frame.dtypes).items()  # that are sparse, or of another machine
            if hasattr(kind, "fill_value") or (isinstance(kind, np.dtype) and not kind.isnative)
        }
        frame = frame.astype(changed) if changed else frame
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    if not (hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")):
        raise TypeError(
            "batches must be frames, pyarrow tables, record batches or what else speaks Arrow, "
            f"such as pyarrow.table({{'price': array, ...}}), got {type(frame).__name__}"
        )
    if isinstance(frame, pyarrow.RecordBatch):  # which takes less time than the stream
        table = pyarrow.Table.from_batches([frame])
    else:
        table = frame.to_arrow() if package == "polars" else pyarrow.table(frame)
    # pyarrow knows too little of text and bytes that are views.
    views = [one for one in table.schema if str(one.type).endswith("_view")]
    plain = {one.name: f"large_{str(one.type).removesuffix('_view')}" for one in views}
    return table.cast(with_types(table.schema, plain)) if plain else table
