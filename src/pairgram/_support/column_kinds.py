"""What columns hold: numbers, or something else that is refused with one message."""

from __future__ import annotations

import datetime
import re
import reprlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

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
        "give scan a column of lists as its only feature, or stack it by np.vstack",
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


def kind_of(dtype: Any) -> str:
    """Return what messages call the values of a type of NumPy, pandas, polars or pyarrow.

    Booleans and columns without any value are numbers. Dictionaries and categories are of the kind
    of their values. Types that are not known are "objects".
    """
    return _kind_of_name(_name_of(dtype))


def _name_of(dtype: Any) -> str:
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


def require_numbers(X: Any, name: str) -> None:
    """Raise a NotNumbersError if a column of an array or a frame holds something else.

    Sparse matrices, lists, and arrays or series that are not two-dimensional are left to other
    checks.
    """
    if getattr(X, "ndim", 2) != 2 or (isinstance(X, np.ndarray) and X.dtype.kind in "biufc"):
        return
    found = {}
    for number, (label, dtype) in enumerate(_types_of(X)):
        kind = kind_of(dtype)
        if kind == "objects":  # the type says nothing
            kind = _kind_of_values(_column(X, number, label))
        if kind != "numbers":
            found[label] = kind
    if found:
        error = NotNumbersError(f"{name}: {not_numbers(found)}")
        error.parameter = name
        raise error


def _types_of(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (name or number, type) of every column of an array or a frame."""
    if isinstance(X, np.ndarray):
        return ((number, X.dtype) for number in range(X.shape[1]))
    names = getattr(X, "column_names", None)  # pyarrow
    if names is not None:
        return zip(names, X.schema.types, strict=True)
    return zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False)


def _column(X: Any, number: int, label: Any) -> Any:
    if isinstance(X, np.ndarray):
        return X[:, number]
    return np.asarray(X.iloc[:, number] if hasattr(X, "iloc") else X[label])


def _kind_of_values(column: Any) -> str:
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


def row_dtypes(X: Any) -> Any:
    """Return the type of rows that are read, or the list of types, for scikit-learn.

    Frames of all packages are float32 if a float32 holds what the columns hold.
    """
    names = [_name_of(dtype) for _, dtype in _types_of(X)] if hasattr(X, "columns") else []
    plain = {_NUMPY.get(name, name) for name in names}
    known = all(re.fullmatch("bool|u?int(8|16|32|64)|float(16|32|64)", one) for one in plain)
    single = plain and known and np.result_type(*plain) == np.float32
    return np.float32 if single else [np.float64, np.float32]
