"""Rows of a table that come as arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from pairgram._support.arrays import real_array
from pairgram._support.column_kinds import require_numbers
from pairgram.data.queries import as_ids, check_weights
from pairgram.tables.columns import Columns, Place, placed_error
from pairgram.tables.rows import TableRows, counted, runs_of


def rows_of_arrays(
    X: Any, y: Any, qid: Any, weights: Any, columns: Columns, place: Place, features: bool = True
) -> TableRows:
    """Return the rows of arrays, as a LETOR file or a caller's function gives them.

    Arrays of the type of `columns` are not copied. There must be a row.

    Raises
    ------
    ValueError
        If the shapes differ, or if a value is missing or not finite. The message names the place.
    """
    try:
        if scipy.sparse.issparse(X):
            raise ValueError("X must be dense, got a sparse matrix")
        require_numbers(X, "X")
        X = real_array(X, "X", keep_float32=True)
        n_rows = len(X)
        if X.ndim != 2 or X.shape[1] != columns.n_features:
            raise ValueError(f"X must have {columns.n_features} columns, got shape {X.shape}")
        y = real_array(y, "y")
        if y.shape != (n_rows,) or not np.isfinite(y).all():
            raise ValueError(f"y must be {n_rows} finite numbers, one for each row of X")
        weights = None if weights is None else check_weights(weights, n_rows, "weight")
        sizes, ids = np.array([n_rows], np.int64), None
        if qid is not None:
            sizes, ids = runs_of(as_ids(qid, n_rows))
    except ValueError as error:
        raise placed_error(
            f"{place.name}, rows from {place.first} on, {counted(place.name)}: {error}"
        ) from error
    if not features:
        return TableRows(None, y, weights, sizes, ids, place.first, place.partition)
    X = np.require(X, columns.dtype, ["C", "A"])
    missing = np.isnan(X)
    if missing.any():
        if columns.fill is None:
            row, column = np.argwhere(missing)[0]
            raise columns.missing_value(place, int(row), str(column))
        X = np.where(missing, columns.fill.astype(X.dtype), X)
    return TableRows(X, y, weights, sizes, ids, place.first, place.partition)


def unshared(rows: TableRows, X: Any, y: Any, weights: Any) -> TableRows:
    """Return rows of arrays that their owner can no more write to.

    Parameters
    ----------
    rows : TableRows
    X, y, weights : array-like
        What the rows were made of. Arrays that are copies already, or read-only, are not copied.
    """
    return replace(
        rows,
        X=_unshared(rows.X, X),
        y=_unshared(rows.y, y),
        weights=_unshared(rows.weights, weights),
    )


def _unshared(array: Any, given: Any) -> Any:
    own = array is None or (array is not given and array.base is None)
    return array if own or _is_constant(array) else array.copy()


def _is_constant(array: Any) -> bool:
    """Tell whether an array, and all memory that it is a view of, are read-only."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    try:
        return array is None or memoryview(array).readonly
    except TypeError:
        return False
