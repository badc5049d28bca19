"""Names of array types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "Vector"]

Rows = NDArray[np.int64]  # numbers of rows
Vector = NDArray[np.float64]
