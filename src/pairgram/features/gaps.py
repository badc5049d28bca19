"""Gaps: missing values of rows, which are NaN, and what takes their place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support.arrays import block_rows, blocks, real_array
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Vector,
    not_finite,
    require_finite,
    verbatim,
)
from pairgram._support.machine import resolve_n_threads
from pairgram._support.parameters import Missing
from pairgram._support.row_warnings import warn_of_empty_columns


def refuse_sparse() -> None:
    """Raise the ValueError for sparse rows, in which what is missing would have two meanings."""
    raise ArgumentError(
        "missing", "must be None for sparse rows, whose entries that are absent are 0"
    )


def has_gaps(X: AnyArray) -> bool:
    """Tell whether dense rows have a missing value."""
    size = block_rows(X.shape[1], X.dtype)
    return any(bool(np.isnan(X[rows]).any()) for rows in blocks(len(X), size))


def filled(X: Any, fill: Vector | None, n_threads: int | None = None) -> Any:
    """Return rows with what takes the place of missing values; X itself if there are none.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features), float64 or float32
        Sparse rows are returned as they are.
    fill : ndarray of shape (n_features,), or None
        With None, X is returned.
    n_threads : int or None
    """
    if fill is None or scipy.sparse.issparse(X) or not has_gaps(X):
        return X
    rows = np.require(X, None, ["C", "A"])
    return _core.fill_gaps(rows, fill.astype(X.dtype), resolve_n_threads(n_threads))


def known_means(
    X: AnyArray, weights: Vector | None, n_threads: int | None = None
) -> tuple[Vector, Vector]:
    """Return the weight of the rows that have a value, and their mean, for every column.

    The mean of a column without values is 0. That of equal values is this value: sums are of
    differences from a value of the column.

    Raises
    ------
    ValueError
        If X holds infinity, or if a mean overflows.
    """
    n_rows, n_features = X.shape
    pivot, unknown = np.zeros(n_features), np.ones(n_features, bool)
    begin, size = 0, 64
    while unknown.any() and begin < n_rows:
        part = X[begin : begin + size]
        known = ~np.isnan(part)
        at = np.flatnonzero(known.any(axis=0) & unknown)
        pivot[at] = part[known[:, at].argmax(axis=0), at]
        unknown[at] = False
        begin, size = begin + size, 2 * size
    threads = resolve_n_threads(n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _core.known_sums(X, pivot, weights, threads)
        means = np.divide(sums[1], sums[0], out=np.zeros(n_features), where=sums[0] > 0)
        means[sums[0] > 0] += pivot[sums[0] > 0]
    _require_finite(np.where(np.isnan(means), np.inf, means), X)
    return sums[0], means


def _require_finite(fill: Vector, X: AnyArray) -> None:
    """Raise a ValueError if a fill value is infinite, because X is, or is too large."""
    if np.isinf(fill).any():
        require_finite(filled(X, np.zeros(X.shape[1])), "X")
        raise ValueError(
            f"X too large: the mean of its column {np.argmax(np.isinf(fill))} overflows"
        )


def without_unknown(fill: Vector, missing: Missing, names: Sequence[Hashable] | None) -> Vector:
    """Return fill values with 0 in the place of NaN, for columns without a value; warn of these."""
    empty = np.flatnonzero(np.isnan(fill)).tolist()
    if not empty:
        return fill
    warn_of_empty_columns([str(j) if names is None else repr(names[j]) for j in empty], missing)
    return np.nan_to_num(fill, nan=0.0, posinf=np.inf, neginf=-np.inf)


def fill_values(
    missing: Missing,
    X: AnyArray,
    weights: Vector | None,
    names: Any = None,
    n_threads: int | None = None,
) -> Vector:
    """Return what takes the place of missing values of dense rows, (n_features,).

    Parameters
    ----------
    missing : {"zero", "mean", "median"}
    X : C-contiguous ndarray of shape (n_rows, n_features), float64 or float32
    weights : ndarray of shape (n_rows,), float64, or None
        How often a row counts. A row of weight 0 does not.
    names : sequence or None
        The names of the columns, for a warning.
    n_threads : int or None

    Raises
    ------
    ValueError
        If a mean or a median is not finite.
    """
    if missing == "zero":
        return np.zeros(X.shape[1])
    if missing == "mean":
        weight, fill = known_means(X, weights, n_threads)
        fill = np.where(weight > 0, fill, np.nan)
    else:
        fill = _core.known_medians(X, weights, resolve_n_threads(n_threads))
        _require_finite(fill, X)
    return without_unknown(fill, missing, names)


def fixed_fill(missing: Any) -> Vector | None:
    """Return the values of `missing` of statistics, of shape () for "zero"."""
    if missing is None:
        return None
    if isinstance(missing, str) and missing == "zero":
        return np.zeros(())
    if isinstance(missing, str) or np.ndim(missing) != 1:
        raise ArgumentError(
            "missing",
            "must be None, 'zero' or one value for each column, such as fill_values_ of a "
            f"model, got {verbatim(repr(missing))}: statistics that are merged must have one value "
            "in the place of what is missing",
        )
    values = real_array(missing, "missing")
    if (column := not_finite(values)) is not None:
        raise ArgumentError("missing", f"must be finite, got {values[column]} for column {column}")
    return values.copy()
