"""Cut rows into blocks, if handling all of them at once would take too much memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["BLOCK_ROWS", "block_rows", "blocks"]

# A block has at most this many rows.
BLOCK_ROWS = 4096
# The mapped rows of a block take at most this many bytes.
BLOCK_BYTES = 16 << 20


def block_rows(width: int, dtype: Any = np.float64) -> int:
    """Return how many rows with `width` values are mapped, or made dense, at once."""
    row = int(np.dtype(dtype).itemsize) * max(1, width)
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // row))


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` rows. The last one may have fewer."""
    for begin in range(0, n_rows, size):
        yield slice(begin, min(begin + size, n_rows))
