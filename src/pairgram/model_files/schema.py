"""How tables describe what a file holds, and the check of contents against them.

Contents may be anything that JSON and arrays can be, and the check never follows an index that it
has not looked at: a ValueError names the first setting or array that is not as described.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Arrays",
    "Record",
    "Setting",
    "Sizes",
    "brief",
    "check_arrays",
    "check_record",
    "choice",
    "integer",
    "is_integer",
    "list_of",
    "number",
    "optional",
    "require",
]

LARGEST_INTEGER = 2**63 - 1
LARGEST_NUMBER = float(np.finfo(np.float64).max)

Arrays = Mapping[str, NDArray[Any]]
Sizes = dict[str, int]  # the lengths of the arrays' dimensions, by the names that a table gives


class Setting(NamedTuple):
    """What a value of JSON must be: in words, and by a function that takes any."""

    wanted: str
    fits: Callable[[Any], bool]


# The settings of a record. A key that ends in "?" may be missing; a record may hold records.
Record = Mapping[str, Any]


class Array(NamedTuple):
    """What an array must be, apart from finite: of one of these dtypes, its dimensions by name.

    A dimension of one name has one length wherever it occurs, 1 at least, or 0 where its name
    begins with "n_".
    """

    dtypes: tuple[str, ...]
    dimensions: tuple[str, ...]


_BRIEF = reprlib.Repr()
_BRIEF.maxlevel = 2
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 60


def brief(value: Any) -> str:
    """Return a value for a message, however long and deep it is."""
    return _BRIEF.repr(value)


def require(condition: Any, message: str) -> None:
    """Raise a ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def is_integer(value: Any) -> bool:
    """Tell integers from all else that JSON holds, True and False included."""
    return isinstance(value, int) and not isinstance(value, bool)


def integer(low: int, high: int = LARGEST_INTEGER) -> Setting:
    """Return the setting of an integer in a range, both ends included."""
    upper = "2^63 - 1" if high == LARGEST_INTEGER else str(high)

    def fits(value: Any) -> bool:
        return is_integer(value) and low <= value <= high

    return Setting(f"an integer from {low} to {upper}", fits)


def number(
    low: float = -LARGEST_NUMBER, *, above: bool = False, high: float = LARGEST_NUMBER
) -> Setting:
    """Return the setting of a finite number from `low` on, or above it."""
    wanted = "a finite number"
    if low > -LARGEST_NUMBER:
        wanted += f" {'>' if above else '>='} {low:g}"

    def fits(value: Any) -> bool:
        if not (is_integer(value) or isinstance(value, float)):
            return False
        return low <= value <= high and not (above and value == low)  # False for NaN

    return Setting(wanted, fits)


def choice(*names: str) -> Setting:
    """Return the setting of one of these names."""
    return Setting(
        " or ".join(map(repr, names)), lambda value: isinstance(value, str) and value in names
    )


def optional(setting: Setting) -> Setting:
    """Return the setting of what another takes, or null."""
    return Setting(f"None or {setting.wanted}", lambda value: value is None or setting.fits(value))


def list_of(setting: Setting, what: str, length: int | None = None) -> Setting:
    """Return the setting of a list, one entry at least; `what` describes it."""

    def fits(value: Any) -> bool:
        if not isinstance(value, list) or not value:
            return False
        return len(value) == (length or len(value)) and all(map(setting.fits, value))

    return Setting(what, fits)


def check_record(record: Any, table: Record, name: str = "") -> None:
    """Raise a ValueError unless a record has the keys of its table, and values that fit."""
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
    """Return the lengths of the dimensions; a ValueError unless every array is as described.

    A key of the table that ends in "?" may be missing.
    """
    known = {key.rstrip("?"): key for key in table}
    sizes: Sizes = {}
    for name in arrays:
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
