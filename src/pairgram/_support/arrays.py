"""Turn what callers give into arrays for compiled code, or say what its columns hold instead."""

from __future__ import annotations

import copy
import datetime
import re
import reprlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import check_array, validate_data

from pairgram._support.checks import (
    NO_COLUMN,
    AnyArray,
    ArgumentError,
    Rows,
    Vector,
    did_you_mean,
    verbatim,
)

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike, Sparse

_TIMES = "subtract a reference from times and divide by a unit, such as a day"
# For each kind, what the names of its types begin with in NumPy, pandas, polars or pyarrow, without
# regard to upper case; the classes of single values; and what to do. The first that fits counts.
_KINDS: dict[str, tuple[str, tuple[type, ...], str]] = {
    "numbers": ("bool|u?int[0-9]|float|longdouble|double|half|decimal|null", (), ""),
    "complex numbers": (
        "complex",
        (complex, np.complexfloating),
        "make columns of their real and imaginary parts",
    ),
    "text": (
        "str|large_string|utf8|bytes|categorical|enum",
        (str, bytes),
        "encode text as numbers, as OneHotEncoder does, or leave it out",
    ),
    "times": ("datetime|timestamp|period", (datetime.datetime, np.datetime64), _TIMES),
    "dates": ("date", (datetime.date,), _TIMES.replace("times", "dates")),
    "times of day": (
        r"time(32|64|$|\[)",
        (datetime.time,),
        "count times of day in a unit, such as hours",
    ),
    "durations": (
        "timedelta|duration",
        (datetime.timedelta, np.timedelta64),
        "divide durations by a unit, such as a day",
    ),
    "lists": (
        "(large_|fixed_size_)?list|array",
        (list, tuple, np.ndarray),
        "join lists to rows by numpy.vstack(lists), or name their column in a frame",
    ),
    "missing values": ("(?!)", (), "replace pandas.NA by numbers"),
    "objects": ("", (object,), "make numbers of such values, or leave them out"),
}
# The NumPy types of numbers that frames call otherwise.
_NUMPY = {"halffloat": "float16", "float": "float32", "double": "float64", "boolean": "bool"}


class NotNumbersError(ValueError, TypeError):
    """Columns hold something else than numbers.

    It is a TypeError too, because scikit-learn's checks of estimators want one for objects.
    """

    parameter: str | None = None  # as that of an ArgumentError


def kind_of(dtype: object) -> str:
    """Return what messages call the values of a type of NumPy, pandas, polars or pyarrow.

    Booleans and columns without any value are numbers. Dictionaries and categories are of the kind
    of their values. Types that are not known are "objects".
    """
    return _kind_of_name(_name_of(dtype))


def _name_of(dtype: object) -> str:
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    return re.sub(r"^(dictionary<values=|sparse\[)", "", name.lower())


@lru_cache(maxsize=256)
def _kind_of_name(name: str) -> str:
    return next(kind for kind, (begins, _, _) in _KINDS.items() if re.match(begins, name))


@lru_cache(maxsize=256)
def _kind_of_class(kind: type) -> str:
    if kind.__name__ == "NAType":  # of pandas, which is no number for NumPy
        return "missing values"
    for name, (_, classes, _) in _KINDS.items():
        if name == "objects" and (kind is type(None) or hasattr(kind, "__float__")):
            return "numbers"
        if issubclass(kind, classes):
            return name
    return "objects"


def not_numbers(found: Mapping[Any, str]) -> str:
    """Return a message about columns that do not hold numbers.

    Parameters
    ----------
    found : mapping of names or numbers of columns to the kinds of their values
        A kind may be followed by a value, as in ``text ('low' in row 3)``.
    """
    first = dict.fromkeys(found.values())
    kinds = dict.fromkeys(text.partition(" (")[0] for text in first)
    labels = [repr(label) for label in found][:10] + ["..."] * (len(found) > 10)
    return (
        f"column{'s' * (len(found) > 1)} {', '.join(labels)} must hold numbers, got "
        f"{', '.join(first)}: {'; '.join(_KINDS[kind][2] for kind in kinds)}"
    )


def require_numbers(X: RowsLike, name: str) -> None:
    """Raise a NotNumbersError if a column of an array or a frame holds something else.

    Sparse matrices, lists, and arrays or series that are not two-dimensional are left to other
    checks.
    """
    if found := _not_numbers_in(X):
        error = NotNumbersError(f"{name}: {not_numbers(found)}")
        error.parameter = name
        raise error


def _not_numbers_in(X: RowsLike) -> dict[Any, str]:
    """Return the kinds of the columns of an array or a frame that do not hold numbers."""
    found: dict[Any, str] = {}
    if getattr(X, "ndim", 2) != 2 or (isinstance(X, np.ndarray) and X.dtype.kind in "biufc"):
        return found
    for number, (label, dtype) in enumerate(_types_of(X)):
        kind = kind_of(dtype)
        if kind == "objects":  # the type says nothing
            kind = kind_of_values(_column(X, number, label))
        if kind != "numbers":
            found[label] = kind
    return found


def entries_of(column: object, width: int) -> list[str]:
    """Return the names of the features of a column of lists."""
    return [f"{column}[{entry}]" for entry in range(width)]


_FIRST_ENTRY = re.compile(r"(.+)\[0\]", re.DOTALL)


def columns_of(features: Sequence[str], known: Container[str]) -> tuple[list[str], dict[str, int]]:
    """Return the columns of features, some of which may be the entries of lists.

    Parameters
    ----------
    features : sequence of str
        Names of columns, or of all entries of a column of lists, in their order.
    known : container of str
        The names of all columns.

    Returns
    -------
    columns : list of str
    widths : dict of str to int
        How many entries a column has, if these are named.
    """
    columns: list[str] = []
    widths: dict[str, int] = {}
    for name in features:
        column = columns[-1] if columns else ""
        if column in widths and name == f"{column}[{widths[column]}]":
            widths[column] += 1
            continue
        first = _FIRST_ENTRY.fullmatch(name)
        if name not in known and first is not None and first[1] in known:
            name = first[1]
            widths[name] = 1
        columns.append(name)
    return columns, widths


def features_among(features: Sequence[str], known: Container[str], but: str | None) -> list[str]:
    """Return those of some features whose columns are known, without those of one column."""
    columns, widths = columns_of(features, known)
    own = (one for one in columns if one in known and one != but)
    return [name for one in own for name in (entries_of(one, widths.get(one, 0)) or [one])]


def with_entries(X: Any, name: str = "X") -> Any:
    """Return a frame in which columns of lists are replaced by those of their entries.

    Other rows are returned as they are.

    Raises
    ------
    ValueError
        If a list is missing, or has another length than the first one, or if other columns do not
        hold numbers.
    """
    names = column_names(X, name)
    found = {} if names is None else _not_numbers_in(X)
    if names is None or "lists" not in found.values():
        return X
    others = [label for label in names if found.get(label) != "lists"]
    numbers = iter(read_rows(select_columns(X, others, name), name).T if others else ())
    parts, entries = [], list[Any]()
    for number, label in enumerate(names):
        is_list = found.get(label) == "lists"
        part = _stacked(_column(X, number, label), label, name) if is_list else next(numbers)
        parts.append(part.reshape(len(part), -1))
        entries += entries_of(label, part.shape[1]) if is_list else [label]
    rows = np.hstack(parts)
    if hasattr(X, "iloc"):
        return type(X)(rows, columns=entries, index=X.index, copy=False)
    make = getattr(type(X), "from_pydict", None) or type(X)  # of pyarrow, or of polars
    return make(dict(zip(entries, rows.T, strict=True)))


def _stacked(lists: AnyArray, label: object, name: str) -> AnyArray:
    """Return lists of one length as rows, float64 or float32."""
    if lists.ndim == 1:
        sizes = [len(one) if hasattr(one, "__len__") else None for one in lists]
        width = next((size for size in sizes if size is not None), 0)
        if (row := next((i for i, size in enumerate(sizes) if size != width), None)) is not None:
            size = "a missing value" if sizes[row] is None else f"{sizes[row]} numbers"
            raise ArgumentError(
                name,
                f": {{place}}: column {verbatim(repr(label))} must hold lists of {width} numbers, "
                f"got {size}",
                row=row,
            )
        if width == 0:
            raise ArgumentError(
                name,
                f": column {verbatim(repr(label))} must hold lists of one number or more, got "
                "empty lists",
            )
        try:
            lists = np.array(lists.tolist())
            lists = lists.astype(np.float64) if lists.dtype.kind == "O" else lists
        except (TypeError, ValueError):  # also lists of lists of several lengths
            lists = np.empty(0)
    if lists.ndim != 2 or lists.dtype.kind not in "biuf":
        text = f": column {verbatim(repr(label))} must hold lists of numbers, and these are none"
        raise ArgumentError(name, text)
    narrow = np.result_type(lists.dtype, np.float32) == np.float32
    return lists.astype(np.float32 if narrow else np.float64, copy=False)


def _types_of(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (name or number, type) of every column of an array or a frame."""
    if isinstance(X, np.ndarray):
        return ((number, X.dtype) for number in range(X.shape[1]))
    names = getattr(X, "column_names", None)  # pyarrow
    if names is not None:
        return zip(names, X.schema.types, strict=True)
    return zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False)


def _column(X: Any, number: int, label: object) -> Any:
    if isinstance(X, np.ndarray):
        return X[:, number]
    return np.asarray(X.iloc[:, number] if hasattr(X, "iloc") else X[label])


def kind_of_values(column: AnyArray) -> str:
    """Return the kind of the first value that is no number, and the value, or "numbers"."""
    if column.dtype.kind != "O":
        return kind_of(column.dtype)
    kinds = {one: _kind_of_class(one) for one in set(map(type, column.tolist()))}
    if set(kinds.values()) <= {"numbers"}:
        return "numbers"
    row, value = next(
        (row, value) for row, value in enumerate(column.tolist()) if kinds[type(value)] != "numbers"
    )
    kind = kinds[type(value)]
    if kind == "lists":
        return kind
    text = f"{kind} ({reprlib.repr(value)} in row {row}"
    if kind == "objects":
        try:
            float(value)
        except (TypeError, ValueError) as error:
            text = f"{text}: {error}"
    return f"{text})"


def row_dtypes(X: RowsLike) -> Any:
    """Return the type of rows that are read, or the list of types, for scikit-learn.

    Frames of all packages are float32 if a float32 holds what the columns hold.
    """
    names = [_name_of(dtype) for _, dtype in _types_of(X)] if hasattr(X, "columns") else []
    plain = {_NUMPY.get(name, name) for name in names}
    known = all(re.fullmatch("bool|u?int(8|16|32|64)|float(16|32|64)", one) for one in plain)
    single = plain and known and np.result_type(*plain) == np.float32
    return np.float32 if single else [np.float64, np.float32]


# A block has at most this many rows.
BLOCK_ROWS = 4096
# The mapped rows of a block take at most this many bytes.
BLOCK_BYTES = 16 << 20


def block_rows(width: int, dtype: DTypeLike = np.float64) -> int:
    """Return how many rows with `width` values are mapped, or made dense, at once."""
    row = int(np.dtype(dtype).itemsize) * max(1, width)
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // row))


def blocks_of_parts(offsets: Rows, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of parts that have at most so many rows together, or one part."""
    first = 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` rows. The last one may have fewer."""
    for begin in range(0, n_rows, size):
        yield slice(begin, min(begin + size, n_rows))


def checked_sparse(X: Sparse, name: str) -> Any:
    """Return a sparse matrix whose structure has been checked, as CSR, CSC, BSR or COO.

    This is needed because SciPy's conversions, products and sums read and write outside of their
    arrays if an index is out of range.

    Parameters
    ----------
    X : sparse matrix or array, any format
        CSR and CSC matrices may be unsorted, and may have duplicates and unused entries at the end.
        X is not changed.
    name : str
        The name of X in error messages.

    Raises
    ------
    ValueError
        If X is not 2-d, if an index is out of range, if lengths disagree, or if `indptr` is not
        valid. The message says which, in SciPy's words.
    """
    if X.ndim != 2:
        raise ArgumentError(name, f"must be 2-d, (n_rows, n_features), got shape {X.shape}")
    try:
        return _sound(X)
    except (ArithmeticError, TypeError, ValueError) as error:
        text = f"must be a sparse matrix with sound indices, but in {X.format.upper()}: "
        raise ArgumentError(name, text + verbatim(error)) from None


def _sound(X: Any) -> Any:
    if X.format == "lil":  # whose lists SciPy copies without a look at their lengths
        lengths = [[*map(len, part)] for part in (X.rows, X.data)]
        if lengths[0] != lengths[1] or len(X.rows) != X.shape[0]:
            raise ValueError("rows must have as many indices as entries")
        X = X.tocsr()
    elif X.format in ("dok", "dia"):
        X = X.tocoo()  # uses only NumPy, and drops parts of diagonals outside of the matrix
    if X.format == "coo":
        return type(X)((X.data, X.coords), shape=X.shape)
    if X.format == "bsr" and any(
        size % part for size, part in zip(X.shape, X.blocksize, strict=True)
    ):
        raise ValueError(f"shape {X.shape} cannot be cut into blocks of {X.blocksize}")
    sound = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # as the check may change it
    if (np.diff(sound.indptr) < 0).any():  # SciPy asks this only if the last one is above 0
        raise ValueError("indptr must not decrease")
    sound.check_format()
    return sound


# What pyarrow and Dask call the index of a frame of pandas that has no name.
_INDEX = re.compile("__index_level_[0-9]+__|__null_dask_index__")
_COMPLEX = "Complex data not supported"  # scikit-learn uses these words


def readable(X: object, name: str) -> Any:
    """Check rows before scikit-learn reads them, and return them in a form that it can read.

    Parameters
    ----------
    X : array-like, frame or sparse matrix
    name : str
        The name of X in error messages.

    Raises
    ------
    ValueError
        If a sparse matrix is not sound (see `checked_sparse`), if an array is masked or complex, or
        if two columns of a frame have one name.
    """
    counts = Counter(column_names(X, name.partition(" ")[0]) or ())
    if repeated := [f"{label!r} {n} times" for label, n in counts.items() if n > 1]:
        raise ArgumentError(
            name, f"must have columns of different names, got {verbatim(', '.join(repeated))}"
        )
    if scipy.sparse.issparse(X):
        X = checked_sparse(X, name)
    elif _is_record_batch(X):  # scikit-learn can read it only as a table
        import pyarrow

        return pyarrow.Table.from_batches([X])
    refuse_lossy(X, name)
    return X


def read_rows(
    X: RowsLike,
    name: str = "X",
    *,
    estimator: BaseEstimator | None = None,
    reset: bool = False,
    sparse: str | bool = "csr",
) -> Any:
    """Return rows as a C-contiguous array or a CSR matrix, float64 or float32.

    They may still hold NaN or infinity.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        Frames of all packages are float32 if no column needs float64.
    name : str, default="X"
        The name of X in error messages.
    estimator : estimator or None
        The estimator whose names and number of features X must have, or sets with `reset`.
    reset : bool, default=False
        Whether this is a fit.
    sparse : "csr" or False, default="csr"
        Whether CSR rows are accepted.

    Raises
    ------
    ValueError
        If X is not as described. If columns hold times, text, lists or other objects, the message
        names them and says what to do.
    """
    dtypes = [np.float64, np.float32]
    if not is_plain(X):
        X = readable(X, name)
        if isinstance(X, (list, tuple)):
            array = np.asarray(X)
            # NumPy makes text of numbers beside text: the columns of text alone are wrong.
            X = readable(np.asarray(X, dtype=object) if array.dtype.kind in "US" else array, name)
        try:
            X = with_entries(X, name)
            require_numbers(X, name)
        except NotNumbersError:
            if estimator is not None and not reset:  # other columns than those of fit come first
                validate_data(estimator, X, reset=False, skip_check_array=True)
            raise
        dtypes = row_dtypes(X)
    options = {
        "accept_sparse": sparse,
        "dtype": dtypes,
        "order": "C",
        "ensure_all_finite": False,
    }
    if estimator is None:
        rows = check_array(X, input_name=name, **options)
    else:
        rows = validate_data(estimator, X, reset=reset, **options)
    # Frames of pandas may be of another byte order, or sparse with bits.
    return rows if is_native_float(rows.dtype) else rows.astype(np.float64)


def is_plain(values: object) -> TypeGuard[AnyArray]:
    """Tell whether values are an array of numbers, which loses nothing when it is read."""
    return type(values) is np.ndarray and values.dtype.kind in "biuf"


def is_ready(values: object, n_dimensions: int) -> TypeGuard[AnyArray]:
    """Tell whether values are an array of float64 or float32 with rows, in the machine's order."""
    return (
        type(values) is np.ndarray
        and values.ndim == n_dimensions
        and is_native_float(values.dtype)
        and values.size > 0
    )


def is_native_float(dtype: DTypeLike) -> bool:
    """Tell whether a dtype is NumPy's float64 or float32, in the byte order of the machine."""
    return isinstance(dtype, np.dtype) and dtype.char in "df" and dtype.isnative


def refuse_lossy(values: object, name: str) -> None:
    """Raise a ValueError if a conversion to real numbers would silently lose something.

    This is so for a masked array with a masked entry, and for complex numbers in an array or a flat
    list.
    """
    if is_plain(values):
        return
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = np.argwhere(np.ma.getmaskarray(values))[0]
        text = (
            "must not be masked, got a masked entry in {place}: leave such rows out, or fill them "
            "with numbers"
        )
        raise ArgumentError(name, text, **dict(zip(("row", "column"), at, strict=False)))
    kinds = (
        {*map(_kind_of_class, {*map(type, values)})} if isinstance(values, (list, tuple)) else ()
    )
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") == "c" or "complex numbers" in kinds:
        text = f"{_COMPLEX}: {{argument}} must be real numbers, got {dtype or 'complex'}"
        raise ArgumentError(name, text)


def object_array(values: Iterable[Any]) -> AnyArray:
    """Return an array of objects, (n_values,), also of values that NumPy would take for rows."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def refuse_index(X: object) -> None:
    """Raise a ValueError if rows to be fitted have the index of a frame of pandas as a column."""
    names = column_names(X) or ()
    index = [name for name in names if isinstance(name, str) and _INDEX.fullmatch(name)]
    if index:
        raise ValueError(
            f"X must not have the index of a frame of pandas as the column {index[0]!r}: drop the "
            "column, or rename it if it is a feature"
        )


def _is_record_batch(X: object) -> bool:
    kind = type(X)
    return kind.__name__ == "RecordBatch" and kind.__module__.partition(".")[0] == "pyarrow"


def column_names(X: object, name: str = "X") -> list[Any] | None:
    """Return the column names of a frame or a pyarrow table, or None for anything else.

    Raises
    ------
    ValueError
        If X, which the message calls `name`, is a LazyFrame of polars.
    """
    if type(X).__name__ == "LazyFrame":
        raise ArgumentError(name, f"is a LazyFrame: give {name}.collect(), or scan({name})")
    names = getattr(X, "column_names", None)  # the attribute `columns` of pyarrow holds arrays
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None else list(names)


def index_columns(frame: object) -> list[str]:
    """Return the columns that are the index of a frame of pandas, which Arrow and Parquet keep.

    Parameters
    ----------
    frame : anything
        A pyarrow schema, a pyarrow table or another frame. Nothing else has such columns.
    """
    names = column_names(frame) or getattr(frame, "names", None)
    if names is None:
        return []
    try:
        metadata = getattr(getattr(frame, "schema", frame), "pandas_metadata", None) or {}
        noted = [name for name in metadata["index_columns"] if isinstance(name, str)]
    except (KeyError, TypeError, ValueError):  # metadata that pandas did not write
        noted = []
    texts = [name for name in names if isinstance(name, str)]
    return [name for name in texts if name in noted or _INDEX.fullmatch(name)]


def select_columns(frame: Any, names: object, what: str) -> Any:
    """Return columns of a frame or a pyarrow table: a frame of those in a list, or one column.

    Raises
    ------
    ValueError
        If `frame` has no column names, or is a LazyFrame, or lacks one of the names. The message
        has `what`.
    """
    known = column_names(frame, "frame")
    if known is None:
        raise ArgumentError(
            what,
            f"must be a frame of pandas or polars, or a pyarrow table, to have columns by "
            f"name, got {type(frame).__name__}",
        )
    require_columns(names if isinstance(names, list) else [names], known, what)
    if isinstance(names, list) and hasattr(frame, "column_names"):
        return frame.select(names)
    return frame[names]


def require_columns(names: Iterable[Any], known: Sequence[Any], what: str, where: str = "") -> None:
    """Raise a ValueError that begins with `what` unless each name is that of just one column."""
    there = " in {place}" if where else ""
    for name in names:
        if (n := known.count(name)) > 1:
            text = f": {n} columns{there} have the name {verbatim(repr(name))}"
            raise ArgumentError(what, text, place=where)
        if n == 0:
            alike = did_you_mean(name, known).removeprefix(":")
            names_there = ", ".join(map(repr, known[:20])) + ", ..." * (len(known) > 20)
            others = f";{alike}" if alike else f", only {names_there}" * bool(known)
            text = f": there is no column {verbatim(repr(name))}{there}{verbatim(others)}"
            raise ArgumentError(what, text, place=where, found=NO_COLUMN)


def real_array(values: object, name: str, *, keep_float32: bool = False) -> AnyArray:
    """Return real numbers as a C-contiguous, aligned, native float64 array; copy only if needed.

    Parameters
    ----------
    values : array-like of bool, integers, floats, or objects of these types
    name : str
        The name of the values in error messages.
    keep_float32 : bool
        Whether float32, of either byte order, stays float32.

    Raises
    ------
    ValueError
        If they are anything else: masked, complex, text or None (the message names the row), times,
        or ragged.
    """
    if not is_plain(values):
        refuse_lossy(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise ValueError(f"got {array.dtype}")
        if array.dtype.kind == "O" and any(map(_is_no_number, array.flat)):
            raise ValueError("got text or None")  # NumPy would convert them
        is_float32 = array.dtype.kind == "f" and array.dtype.itemsize == 4
        dtype = np.float32 if keep_float32 and is_float32 else np.float64
        return np.require(array, dtype, requirements=("C", "A"))
    except (TypeError, ValueError) as error:
        raise _no_numbers(values, name, verbatim(error)) from None


def refuse_text(values: object, name: str) -> None:
    """Raise an ArgumentError for a series of text, of which scikit-learn tells what is missing."""
    dtype = getattr(values, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype) and kind_of(dtype) == "text":
        raise _no_numbers(values, name)


def _no_numbers(values: object, name: str, found: str = "got text") -> ArgumentError:
    """Return the error for values that are no real numbers; `found` says what if no entry does."""
    found, row, entry = _wrong_entry(values) or (found, None, None)
    advice = advice_on_limit(entry) if name == "y" else ""
    return ArgumentError(name, f"must be real numbers: {found}{advice}", row=row)


def _is_no_number(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes))


def _wrong_entry(values: object) -> tuple[str, int, Any] | None:
    """Return words on an entry of a vector that is text or None, its row, and the entry, if any is.

    It is the first that does not read as a number, or else the first.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return None
    if getattr(values, "ndim", 1) != 1:  # a frame iterates over its column names
        return None
    wrong = [(row, value) for row, value in enumerate(values) if _is_no_number(value)]
    if not wrong:
        return None
    row, value = next((one for one in wrong if not reads_as_number(one[1])), wrong[0])
    plain = value.item() if isinstance(value, np.generic) else value
    return f"got {verbatim(repr(plain))} in {{place}}", row, plain


def reads_as_number(value: object) -> bool:
    """Tell whether a value, such as text, reads as a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def advice_on_limit(value: object) -> str:
    """Return what to do with a label such as "<4.0"; nothing for any other value."""
    if not (isinstance(value, str) and value.lstrip()[:1] in tuple("<>≤≥")):
        return ""
    return ": Preferences.from_intervals takes values of which only a limit is known"


def judged(model: BaseEstimator, X: RowsLike) -> AnyArray:
    """Return ``model.predict(X)`` for a metric, which would take NaN for not retrieved."""
    scores = np.asarray(model.predict(X))
    if np.isnan(scores).any():
        raise ValueError(f"{type(model).__name__}.predict returned NaN, want numbers")
    return scores


def without_names(model: BaseEstimator) -> Any:
    """Return a fitted model that scores arrays whose column names have been checked."""
    if hasattr(model, "_without_names"):
        return model._without_names()
    if hasattr(getattr(model, "best_estimator_", None), "feature_names_in_"):
        return _OfFrames(model)
    if "feature_names_in_" not in getattr(model, "__dict__", ()):
        return _OfFrames(model) if hasattr(model, "feature_names_in_") else model
    other = copy.copy(model)
    del other.feature_names_in_
    return other


class _OfFrames:
    """Scores arrays by a model that was fitted to frames, whose columns it may choose by name.

    Parameters
    ----------
    model : fitted sklearn.pipeline.Pipeline, or search of scikit-learn
    """

    def __init__(self, model: BaseEstimator) -> None:
        self.model = model

    def predict(self, X: AnyArray) -> Any:
        """Return the scores of rows."""
        import pandas

        frame = pandas.DataFrame(X, columns=self.model.feature_names_in_)
        return self.model.predict(frame)


def check_alphas(alphas: ArrayLike, name: str = "alphas", *, zero: bool = False) -> Vector:
    """Return `alphas` as a float64 vector in the caller's order; each must be finite and > 0.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
    name : str, default="alphas"
        The name of the values in error messages.
    zero : bool, default=False
        Whether 0 is allowed too.

    Raises
    ------
    ValueError
        If there is no value, the array is not one-dimensional, or a value is not as described.
    """
    values = real_array(alphas, name)
    if values.ndim != 1 or values.size == 0:
        raise ArgumentError(name, f"must be a non-empty 1-d array, got shape {values.shape}")
    bad = ~(np.isfinite(values) & ((values >= 0) if zero else (values > 0)))
    if bad.any():
        least = ">= 0" if zero else "> 0"
        raise ArgumentError(name, f"must be finite and {least}, got {values[np.argmax(bad)]}")
    return np.ascontiguousarray(values)


def take_rows(X: Any, rows: Rows) -> Any:
    """Return some rows of an array, a CSR matrix or a frame. A frame stays one, with its names.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_rows, n_features), or frame
        A frame of pandas or polars, or a pyarrow table or record batch.
    rows : ndarray of int64
        The numbers of the rows, in the order wanted.
    """
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[rows]
    if column_names(X) is not None:
        return X.take(rows) if hasattr(X, "set_column") else X[rows]  # pyarrow or polars
    return (X if hasattr(X, "tocsr") else np.asarray(X))[rows]
