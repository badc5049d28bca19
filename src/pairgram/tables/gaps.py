"""What replaces missing values of a table: means and medians of columns, in passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from pairgram._support import limits
from pairgram._support.checks import Rows, Vector
from pairgram.features.gaps import known_means, known_medians
from pairgram.tables.columns import TableRows

# The bounds of a median are this many standard errors away from that of a sample. They miss the
# median of all rows once in three million columns, for which one more pass is made.
ERRORS = 5.0


def means_of(table: Any) -> Vector:
    """Return the means of the columns of a table whose missing values are NaN; NaN for none."""
    weights, means = table.of_rows(_means, _join_means)
    return np.where(weights > 0, means, np.nan)


def _means(rows: TableRows) -> Any:
    return known_means(rows.X, rows.weights)


def _join_means(first: Any, second: Any) -> Any:
    total = first[0] + second[0]
    share = np.divide(second[0], total, out=np.zeros(len(total)), where=total > 0)
    return total, first[1] + share * (second[1] - first[1])


def medians_of(table: Any) -> Vector:
    """Return the medians of the columns of a table whose missing values are NaN; NaN for none.

    Rows that are drawn bound the median of every column. A pass counts what is beyond the bounds,
    and keeps what is within them. Columns that would take more than `Limits.median_bytes` together
    are taken in several passes. Drawn rows that are all rows tell the medians themselves.
    """
    drawn = table.sample(limits.now.median_rows, with_gaps=True).rows
    n_rows, X, weights = sum(table.n_rows()), drawn.X, _weights(drawn)
    if drawn.n_rows == n_rows:
        return known_medians(X, drawn.weights)
    bounds = np.array([_bounds(x, weights) for x in X.T]).reshape(-1, 3)
    found, left = np.full(len(bounds), np.nan), np.arange(len(bounds))
    while len(left):
        for columns in _groups(left, 16.0 * n_rows * bounds[left, 2]):
            block = partial(_tally, columns, bounds[columns])
            found[columns] = [_median(*one) for one in table.of_rows(block, _join_tallies)]
        missed = ~np.isfinite(found[left]) & np.isfinite(bounds[left, :2]).any(axis=1)
        left = left[missed]
        bounds[left] = -np.inf, np.inf, 1.0
    return found


def _weights(rows: TableRows) -> Vector:
    return np.ones(rows.n_rows) if rows.weights is None else rows.weights


def _bounds(x: Vector, weights: Vector) -> tuple[float, float, float]:
    """Return bounds of the median of a column, and the share of the rows that they keep."""
    known = ~np.isnan(x) & (weights > 0)
    x, weights = x[known], weights[known]
    share = ERRORS * 0.5 * np.sqrt(weights @ weights) / weights.sum() if len(x) else 1.0
    if not share < 0.5:
        return -np.inf, np.inf, 1.0
    order = np.argsort(x)
    upto = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(upto, (0.5 - share, 0.5 + share)).clip(max=len(x) - 1)
    return x[order[low]], x[order[high]], 2 * share * max(len(x), 1) / len(known)


def _tally(columns: Rows, bounds: Vector, rows: TableRows) -> list[tuple[Any, ...]]:
    """Return what is known of columns of some rows that have a value, and a weight above 0.

    It is their weight below the bounds and above them, and the different values within and their
    weights.
    """
    weights = _weights(rows)
    X, weights = rows.X[weights > 0], weights[weights > 0]
    found = []
    for column, (low, high, _) in zip(columns.tolist(), bounds, strict=True):
        x = X[:, column].astype(np.float64)  # side by side, for what reads it again and again
        within = (x >= low) & (x <= high)
        inner = _summed(x[within], weights[within])
        found.append((weights @ (x < low), weights @ (x > high), *inner))
    return found


def _join_tallies(first: Any, second: Any) -> Any:
    pairs = (zip(*both, strict=True) for both in zip(first, second, strict=True))
    return [
        (sum(below), sum(above), *_summed(*map(np.concatenate, within)))
        for below, above, *within in pairs
    ]


def _summed(values: Vector, weights: Vector) -> tuple[Vector, Vector]:
    """Return the different values in their order, and the sum of the weights of each."""
    known, place = np.unique(values, return_inverse=True)
    return known, np.asarray(np.bincount(place, weights, len(known)), np.float64)


def _median(below: float, above: float, values: Vector, weights: Vector) -> float:
    """Return the median of a column; one beyond the bounds is infinite, and NaN stands for none."""
    x = np.concatenate([[-np.inf, np.inf], values])
    with np.errstate(invalid="ignore"):
        return known_medians(x[:, None], np.concatenate([[below, above], weights]))[0]


def _groups(columns: Rows, sizes: Vector) -> Iterator[Rows]:
    """Yield columns whose sizes add up to at most `Limits.median_bytes`, or one column."""
    begin = 0
    while begin < len(columns):
        upto = np.cumsum(sizes[begin:])
        end = begin + max(1, int(np.searchsorted(upto, limits.now.median_bytes, side="right")))
        yield columns[begin:end]
        begin = end
