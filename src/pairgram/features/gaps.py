"""Gaps: missing values of rows, which are NaN, and what takes their place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from pairgram._support.arrays import block_rows, blocks
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Vector,
    require_finite,
)
from pairgram._support.row_warnings import warn_of_empty_columns

# Columns whose medians are found are copied so many at a time: they share cache lines.
COLUMNS_AT_ONCE = 16
EQUAL_SHARE = 1e-12  # of all weight
# Rows of which sums are made at a time, in cache.
ROWS_AT_ONCE = 256


def refuse_sparse() -> None:
    """Raise the ValueError for sparse rows, in which what is missing would have two meanings."""
    raise ArgumentError("X", "must be dense to fill gaps: the entries that sparse rows lack are 0")


def filled(X: Any, fill: Vector | None) -> Any:
    """Return rows with what takes the place of missing values; X itself if there are none.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features), float64 or float32
        Sparse rows are returned as they are.
    fill : ndarray of shape (n_features,), or None
        With None, X is returned.
    """
    if fill is None or scipy.sparse.issparse(X):
        return X
    rows, fill = X, fill.astype(X.dtype)
    for part in blocks(len(X), block_rows(X.shape[1], X.dtype)):
        gaps = np.isnan(X[part])
        if gaps.any():
            rows = np.array(X, order="C") if rows is X else rows
            np.copyto(rows[part], fill, where=gaps)
    return rows


def known_means(X: AnyArray, weights: Vector | None) -> tuple[Vector, Vector]:
    """Return the weight of the rows that have a value, and their mean, for every column.

    The mean of a column without values is 0. That of equal values is this value: sums are of
    differences from a value of the column.

    Raises
    ------
    ValueError
        If X holds infinity, or if a mean overflows.
    """
    n_rows, n_features = X.shape
    pivot, sums = np.zeros(n_features), np.zeros((2, n_features))
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in blocks(n_rows, ROWS_AT_ONCE):
            x = X[rows]
            v = np.ones(len(x)) if weights is None else weights[rows]
            known = (x == x) & (v > 0)[:, None]
            if not sums[0].all():  # the first value of a column is its pivot
                first = x[known.argmax(axis=0), np.arange(n_features)]
                pivot = np.where(sums[0] > 0, pivot, first)
            differences = x - pivot
            if weights is not None:
                differences *= v[:, None]
            np.copyto(differences, 0.0, where=~known)
            sums += np.einsum("i,ij->j", v, known), differences.sum(axis=0)
        means = np.divide(sums[1], sums[0], out=np.zeros(n_features), where=sums[0] > 0)
        means[sums[0] > 0] += pivot[sums[0] > 0]
    _require_finite(np.where(np.isnan(means), np.inf, means), X)
    return sums[0], means


def known_medians(X: AnyArray, weights: Vector | None) -> Vector:
    """Return the medians of the columns over the rows that have a value and count, NaN without.

    A median is the middle of two values: the least up to which the values have half of the weight,
    and the least up to which they have more. A row of weight 2 is as two rows. Sums of weights that
    differ by less than 1e-12 of all weight are equal, so that rounding chooses no value.
    """
    medians = np.full(X.shape[1], np.nan)
    counts = slice(None) if weights is None else weights > 0
    for first in range(0, len(medians), COLUMNS_AT_ONCE):
        for j, column in enumerate(X[counts, first : first + COLUMNS_AT_ONCE].T.copy(), first):
            known = ~np.isnan(column)
            values, n = column[known].astype(np.float64), np.count_nonzero(known)
            if not n:
                continue
            if weights is None:
                low, high = np.partition(values, [(n - 1) // 2, n // 2])[[(n - 1) // 2, n // 2]]
            else:
                order = np.argsort(values, kind="stable")
                upto = np.cumsum(weights[counts][known][order])
                least = upto.searchsorted(upto[-1] * (0.5 - EQUAL_SHARE))
                above = upto.searchsorted(upto[-1] * (0.5 + EQUAL_SHARE), side="right")
                low, high = values[order[[least, above]]]
            medians[j] = low if low == high else low / 2 + high / 2
    return medians


def _require_finite(fill: Vector, X: AnyArray) -> None:
    """Raise a ValueError if a fill value is infinite, because X is, or is too large."""
    if np.isinf(fill).any():
        require_finite(filled(X, np.zeros(X.shape[1])), "X")
        raise ValueError(
            f"X too large: the mean of its column {np.argmax(np.isinf(fill))} overflows"
        )


def without_unknown(fill: Vector, missing: str, names: Sequence[Hashable] | None) -> Vector:
    """Return fill values with 0 in the place of NaN, for columns without a value; warn of these."""
    empty = np.flatnonzero(np.isnan(fill)).tolist()
    if not empty:
        return fill
    warn_of_empty_columns([str(j) if names is None else repr(names[j]) for j in empty], missing)
    return np.nan_to_num(fill, nan=0.0, posinf=np.inf, neginf=-np.inf)


def fill_values(
    value: str | AnyArray,
    X: AnyArray,
    weights: Vector | None,
    names: Any = None,
) -> Vector:
    """Return what takes the place of missing values of dense rows, (n_features,).

    Parameters
    ----------
    value : {"mean", "median"} or ndarray of shape () or (n_features,)
    X : C-contiguous ndarray of shape (n_rows, n_features), float64 or float32
    weights : ndarray of shape (n_rows,), float64, or None
        How often a row counts. A row of weight 0 does not.
    names : sequence or None
        The names of the columns, for a warning.

    Raises
    ------
    ValueError
        If a mean or a median is not finite.
    """
    if not isinstance(value, str):
        if value.ndim and len(value) != X.shape[1]:
            text = f"must be one for each of the {X.shape[1]} columns, got {len(value)}"
            raise ArgumentError("value", text)
        return np.array(np.broadcast_to(value, X.shape[1]))
    if value == "mean":
        weight, fill = known_means(X, weights)
        fill = np.where(weight > 0, fill, np.nan)
    else:
        fill = known_medians(X, weights)
        _require_finite(fill, X)
    return without_unknown(fill, value, names)
