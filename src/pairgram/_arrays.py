"""Numbers from callers as arrays that the kernels take."""

from __future__ import annotations

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
        If they are anything else: complex, text, times, ragged.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise ValueError(f"got {array.dtype}")
        is_float32 = array.dtype.kind == "f" and array.dtype.itemsize == 4
        dtype = np.float32 if keep_float32 and is_float32 else np.float64
        return np.require(array, dtype, requirements=("C", "A"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be real numbers: {error}") from None
