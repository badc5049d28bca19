"""How many rows are handled at once where all of them would take too much memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["BLOCK_ROWS", "block_rows", "blocks"]

BLOCK_ROWS = 4096
BLOCK_BYTES = 16 << 20  # of the mapped rows of a block


def block_rows(width: int, dtype: Any = np.float64) -> int:
    """Return how many rows of so many values are mapped, or made dense, at once."""
    row = int(np.dtype(dtype).itemsize) * max(1, width)
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // row))


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Cut rows into blocks of `size`, the last of which may have fewer."""
    for begin in range(0, n_rows, size):
        yield slice(begin, min(begin + size, n_rows))
