"""Numbers from callers as arrays that the kernels take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pairgram._support.sparse_input import checked_sparse
from pairgram._support.types import Vector

__all__ = ["column_names", "naming_columns", "readable", "real_array", "refuse_lossy"]

_COMPLEX = "Complex data not supported"  # in the words of scikit-learn


def readable(X: Any, name: str) -> Any:
    """Return rows that scikit-learn may read, before it does.

    Parameters
    ----------
    X : array-like, frame or sparse matrix
    name : str
        What the error message calls it.

    Raises
    ------
    ValueError
        If a sparse matrix is not sound (see `checked_sparse`), an array is masked, or complex.
    """
    if scipy.sparse.issparse(X):
        X = checked_sparse(X, name)
    elif _is_record_batch(X):  # which scikit-learn knows as a table alone
        import pyarrow

        return pyarrow.Table.from_batches([X])
    refuse_lossy(X, name)
    return X


def refuse_lossy(values: Any, name: str) -> None:
    """Raise a ValueError where a conversion to real numbers would lose something in silence.

    That is the mask of a masked array, where an entry is masked, and the imaginary parts of complex
    numbers, in an array or a flat list.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = np.argwhere(np.ma.getmaskarray(values))[0]
        place = ", ".join(f"{what} {k}" for what, k in zip(("row", "column"), at, strict=False))
        raise ValueError(
            f"{name} must not be masked, got a masked entry in {place}: leave such rows out, or "
            "fill them with numbers"
        )
    kinds = {type(value) for value in values} if isinstance(values, (list, tuple)) else ()
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") == "c" or any(
        issubclass(kind, (complex, np.complexfloating)) for kind in kinds
    ):
        raise ValueError(f"{_COMPLEX}: {name} must be real numbers, got {dtype or 'complex'}")


@contextmanager
def naming_columns(X: Any, name: str) -> Iterator[None]:
    """Make an error that says what is wrong with a frame's column say which column it is."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if (wrong := _wrong_column(X, name)) is not None:
            raise ValueError(wrong) from error
        raise


def _wrong_column(X: Any, name: str) -> str | None:
    """Say which column of a frame cannot be numbers, or which value of a matrix is complex."""
    names = column_names(X)
    if names is None:
        complex_list = isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind == "c"
        return f"{_COMPLEX}: {name} must be real numbers" if complex_list else None
    for number, label in enumerate(names):
        column = np.asarray(X.iloc[:, number] if hasattr(X, "iloc") else X[label])
        if (wrong := _wrong_value(column)) is not None:
            return f"column {label!r} of {name} must be real numbers, got {wrong}"
    return None


def _wrong_value(column: NDArray[Any]) -> str | None:
    """Say what of a column is no number; numbers as text are some, as to scikit-learn."""
    if column.dtype.kind in "biuf":
        return None
    if column.dtype.kind not in "OSTU":
        return str(column.dtype)
    for row, value in enumerate(column.tolist()):
        try:
            float("nan" if value is None else value)
        except (TypeError, ValueError):
            return f"{value!r} in row {row}"
    return None


def _is_record_batch(X: Any) -> bool:
    kind = type(X)
    return kind.__name__ == "RecordBatch" and kind.__module__.partition(".")[0] == "pyarrow"


def column_names(X: Any) -> list[Any] | None:
    """Return the column names of a frame, a pyarrow table included; None where X is none."""
    names = getattr(X, "column_names", None)  # pyarrow's columns are arrays
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None else list(names)


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
        If they are anything else: masked, complex, text and None (it names the row), times, ragged.
    """
    refuse_lossy(values, name)
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


def check_alphas(alphas: ArrayLike, name: str = "alphas", *, zero: bool = False) -> Vector:
    """Return `alphas` as a float64 vector in the caller's order, each finite and > 0.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
    name : str, default="alphas"
        What the error message calls them.
    zero : bool, default=False
        Whether 0 is taken too.

    Raises
    ------
    ValueError
        If it is empty, not one-dimensional, or holds a value that is not as described.
    """
    values: Vector = real_array(alphas, name)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty 1-d array, got shape {values.shape}")
    bad = ~(np.isfinite(values) & ((values >= 0) if zero else (values > 0)))
    if bad.any():
        least = ">= 0" if zero else "> 0"
        raise ValueError(f"{name} must be finite and {least}, got {values[np.argmax(bad)]}")
    return np.ascontiguousarray(values)
