"""Tables that describe the contents of a file, and the check of contents against them.

The contents may be any JSON and any arrays. The check never follows an index that it has not
checked. A ValueError names the first setting or array that is not as described.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairgram._support.parameters import Setting

Arrays = Mapping[str, NDArray[Any]]
Sizes = dict[str, int]  # the lengths of dimensions of arrays, by their names in a table


# The settings of a record. A key that ends in "?" may be missing. A record may contain records.
Record = Mapping[str, Any]


class Array(NamedTuple):
    """The description of an array: it is finite, has one of the dtypes, and has these dimensions.

    A dimension has a name, and the same length wherever the name occurs. The length is at least 1,
    or at least 0 if the name begins with "n_".
    """

    dtypes: tuple[str, ...]
    dimensions: tuple[str, ...]


# The dtypes of arrays.
FLOAT64, INT64 = ("float64",), ("int64",)
FLOATS, INDICES = ("float32", "float64"), ("int32", "int64")

Check = Callable[[Any, Arrays, Sizes], None]


def _nothing_more(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    """Check nothing, because settings and arrays do not depend on each other."""


class Kind(NamedTuple):
    """The settings and arrays of a model, a feature map or statistics in a file.

    After each of them is found as described, `relations` checks that they agree with each other.
    """

    settings: Record
    arrays: Mapping[str, Array]
    relations: Check = _nothing_more


_BRIEF = reprlib.Repr()
_BRIEF.maxlevel = 2
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 60


def brief(value: object) -> str:
    """Return a short text of a value for messages, however long and deep it is."""
    return _BRIEF.repr(value)


def require(condition: object, message: str) -> None:
    """Raise a ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def check_record(record: object, table: Record, name: str = "") -> None:
    """Raise a ValueError unless a record has the keys of its table and values that fit."""
    where = f"{name}." if name else ""
    if not isinstance(record, dict):
        raise ValueError(f"{name or 'settings'} must be an object of JSON, got {brief(record)}")
    known = {key.rstrip("?"): key for key in table}
    for key in record:
        require(key in known, f"{brief(where + key)} is no setting that this version knows")
    for key, written in known.items():
        if key not in record:
            require(written.endswith("?"), f"{where}{key} is missing")
            continue
        value, wanted = record[key], table[written]
        if not isinstance(wanted, Setting):
            check_record(value, wanted, f"{where}{key}")
        elif not wanted.fits(value):
            raise ValueError(f"{where}{key} must be {wanted.wanted}, got {brief(value)}")


def check_arrays(arrays: Arrays, table: Mapping[str, Array]) -> Sizes:
    """Check that every array is as described, and return the lengths of the dimensions.

    A key of the table that ends in "?" may be missing.
    """
    known = {key.rstrip("?"): key for key in table}
    sizes: Sizes = {}
    for name in sorted(arrays):
        require(name in known, f"{brief(name)} is no array that this version knows")
    for name, written in known.items():
        if name not in arrays:
            require(written.endswith("?"), f"{name} is missing")
            continue
        array, (dtypes, dimensions) = arrays[name], table[written]
        require(
            array.dtype.name in dtypes,
            f"{name} must be of {' or '.join(dtypes)}, got {array.dtype.name}",
        )
        shape = f"{name} must have shape ({', '.join(dimensions)}), got {array.shape}"
        require(array.ndim == len(dimensions), shape)
        for dimension, length in zip(dimensions, array.shape, strict=True):
            least = 0 if dimension.startswith("n_") else 1
            require(length >= least, shape)
            expected = sizes.setdefault(dimension, length)
            require(length == expected, f"{shape}, but {dimension} is {expected} elsewhere")
        require(np.isfinite(array).all(), f"{name} must be finite")
    return sizes
