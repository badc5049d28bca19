"""Numbers from callers as arrays that the kernels take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["real_array"]


def real_array(values: ArrayLike, name: str, *, keep_float32: bool = False) -> NDArray[Any]:
    """Return real numbers as a C-contiguous, aligned, native float64 array, copied if need be.

    Parameters
    ----------
    values : array-like of bool, integers, floats, or objects that are such
    name : str
        What the error message calls them.
    keep_float32 : bool
        float32 of either byte order stays float32.

    Raises
    ------
    ValueError
        If they are anything else: complex, text and None (it names the row), times, ragged.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise ValueError(f"got {array.dtype}")
        if array.dtype.kind == "O" and any(map(_is_no_number, array.flat)):
            raise ValueError("got text or None")  # which NumPy would convert
        is_float32 = array.dtype.kind == "f" and array.dtype.itemsize == 4
        dtype = np.float32 if keep_float32 and is_float32 else np.float64
        return np.require(array, dtype, requirements=("C", "A"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be real numbers: {_wrong_entry(values) or error}") from None


def _is_no_number(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes))


def _wrong_entry(values: Any) -> str | None:
    """Tell which entry of a vector is text or None, as an error message does; None otherwise."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return None
    if getattr(values, "ndim", 1) != 1:  # a frame iterates over its column names
        return None
    for row, value in enumerate(values):
        if _is_no_number(value):
            plain = value.item() if isinstance(value, np.generic) else value
            return f"got {plain!r} in row {row}"
    return None
