"""Check the structure of sparse matrices, which SciPy and compiled code trust without a check."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pairgram._core as _core

__all__ = ["checked_sparse"]


def checked_sparse(X: Any, name: str) -> Any:
    """Check the structure of a sparse matrix and return it, possibly in another sparse format.

    This is needed because SciPy's conversions, products and sums read and write outside of their
    arrays if an index is out of range.

    Parameters
    ----------
    X : sparse matrix or array, any format
        CSR and CSC matrices may be unsorted, and may have duplicates and unused entries at the end.
    name : str
        The name of X in error messages.

    Returns
    -------
    sparse matrix or array
        X itself, except for the formats LIL, DOK and DIA.

    Raises
    ------
    ValueError
        If X is not 2-d, if an index is out of range, if lengths disagree, or if `indptr` is not
        valid. The message names the index and the row, or the column in CSC.

    Notes
    -----
    The indices are read once, in about 0.15 ns each for 32 bits.
    """
    if X.ndim != 2:
        raise ValueError(f"{name} must be 2-d, (n_rows, n_features), got shape {X.shape}")
    if X.format == "lil":
        _check_lists(X, name)
        return X.tocsr()
    if X.format == "dok":
        keys = X.keys()
        for row, column in keys:
            if not (0 <= row < X.shape[0] and 0 <= column < X.shape[1]):
                raise _outside(name, X.shape, row, column)
    if X.format in ("dok", "dia"):
        X = X.tocoo()  # uses only NumPy, and drops parts of diagonals outside of the matrix
    if X.format == "coo":
        _check_coordinates(X, name)
    elif X.format == "csr":
        _check_compressed(X, name, X.shape, ("row", "column"))
    elif X.format == "csc":
        _check_compressed(X, name, X.shape[::-1], ("column", "row"))
    elif X.format == "bsr":
        _check_blocks(X, name)
    return X


def _check_compressed(
    X: Any, name: str, shape: tuple[int, int], lines: tuple[str, str], *, block: str = ""
) -> None:
    """Check that `indptr` has shape[0] + 1 entries and that `indices` are below shape[1]."""
    indptr, indices = (_indices(getattr(X, part), f"{name}.{part}") for part in _PARTS)
    line, other = (f"{block}{each}" for each in lines)
    if len(indptr) != shape[0] + 1:
        raise ValueError(
            f"{name} has {shape[0]} {line}s, so indptr must have length {shape[0] + 1}, got "
            f"{len(indptr)}"
        )
    if np.ndim(X.data) != 1 + 2 * bool(block):
        raise ValueError(f"{name}.data must be 1-d, got shape {np.shape(X.data)}")
    if len(indices) != len(X.data):
        raise ValueError(
            f"{name} must have as many indices as entries, got {len(indices)} indices and "
            f"{len(X.data)} entries in data"
        )
    if indptr[0] != 0:
        raise ValueError(f"{name} must have an indptr that begins with 0, got {indptr[0]}")
    if (at := _core.first_descent(indptr)) >= 0:
        raise ValueError(
            f"{name} must have an indptr that does not decrease, but {line} {at} begins at "
            f"{indptr[at]} and ends at {indptr[at + 1]}"
        )
    n_entries = int(indptr[-1])
    if n_entries > len(indices):
        at = int(np.searchsorted(indptr, len(indices), side="right")) - 1
        raise ValueError(
            f"{name} must have an indptr that ends within its {len(indices)} indices, but {line} "
            f"{at} ends at {indptr[at + 1]}"
        )
    if (at := _core.first_outside(indices[:n_entries], shape[1])) >= 0:
        number = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(
            f"{name} must have {other} indices of 0 to {shape[1] - 1}, got {indices[at]} in {line} "
            f"{number} (entry {at} of indices)"
        )


def _check_blocks(X: Any, name: str) -> None:
    if np.ndim(X.data) != 3 or 0 in X.data.shape[1:]:
        raise ValueError(f"{name} must have data of shape (n_blocks, R, C), got {X.data.shape}")
    sizes = X.data.shape[1:]
    if X.shape[0] % sizes[0] or X.shape[1] % sizes[1]:
        raise ValueError(f"{name} of shape {X.shape} cannot be cut into blocks of {sizes}")
    shape = (X.shape[0] // sizes[0], X.shape[1] // sizes[1])
    _check_compressed(X, name, shape, ("row", "column"), block="block ")


def _check_coordinates(X: Any, name: str) -> None:
    rows, columns = _indices(X.row, f"{name}.row"), _indices(X.col, f"{name}.col")
    if np.ndim(X.data) != 1 or not len(rows) == len(columns) == len(X.data):
        raise ValueError(
            f"{name} must have as many rows and columns as entries, got {len(rows)}, "
            f"{len(columns)} and shape {np.shape(X.data)}"
        )
    for axis, indices in enumerate((rows, columns)):
        if (at := _core.first_outside(indices, X.shape[axis])) >= 0:
            raise _outside(name, X.shape, rows[at], columns[at])


def _outside(name: str, shape: tuple[int, int], row: Any, column: Any) -> ValueError:
    return ValueError(
        f"{name} must have entries within its shape {shape}, got one in row {row}, column {column}"
    )


def _check_lists(X: Any, name: str) -> None:
    for part in (X.rows, X.data):
        if np.shape(part) != X.shape[:1]:
            raise ValueError(f"{name} must have a list for each of its {X.shape[0]} rows")
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            raise ValueError(
                f"{name} must have as many indices as entries, got {len(columns)} indices and "
                f"{len(values)} entries in row {row}"
            )
        lowest, highest = min(columns, default=0), max(columns, default=-1)
        if lowest < 0 or highest >= X.shape[1]:
            raise ValueError(
                f"{name} must have column indices of 0 to {X.shape[1] - 1}, got "
                f"{lowest if lowest < 0 else highest} in row {row}"
            )


_PARTS = ("indptr", "indices")


def _indices(values: Any, name: str) -> NDArray[Any]:
    """Return indices as an array for compiled code; copy them only if needed."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a 1-d array of integers, got shape {array.shape} and {array.dtype}"
        )
    dtype = np.int32 if array.dtype.itemsize == 4 and array.dtype.kind == "i" else np.int64
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be below 2^63, got {array.max()}")
    return np.require(array, dtype, ["C", "A"])
