"""Make the compiled map of rows to hidden nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pairgram._core as _core


def native_nodes(
    dtype: Any,
    weights: NDArray[Any],
    bias: NDArray[Any],
    square: NDArray[Any] | None,
    segments: list[tuple[int, int, str]],
    *,
    origin: NDArray[Any] | None = None,
    tail: NDArray[Any] | None = None,
    in_double: bool = False,
    **options: Any,
) -> Any:
    """Return the compiled map for rows of a dtype. The arrays that describe it are converted.

    csrc/features/node_map.hpp gives its formula. With `in_double`, rows of float32 are mapped
    in float64, and the outputs are rounded.
    """
    single = np.dtype(dtype) == np.float32
    narrow = single and not in_double
    make: Any = _core.NodeMap32 if narrow else _core.NodeMap64
    arrays = [
        None if a is None else np.ascontiguousarray(a, np.float32 if narrow else np.float64)
        for a in (weights, bias, square, origin, tail)
    ]
    node_map = make(*arrays[:3], segments, origin=arrays[3], tail=arrays[4], **options)
    return _core.NodeMap32.in_double(node_map) if single and in_double else node_map
