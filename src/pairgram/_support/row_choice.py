"""Take some rows of whatever callers give as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support.arrays import column_names


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
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
