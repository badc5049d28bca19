"""What replaces missing values of a table: means and medians of columns, in passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pairgram._support import limits
from pairgram._support.checks import Rows, Vector
from pairgram.features.gaps import known_means
from pairgram.tables.columns import TableRows

# The bounds of a median are this many standard errors away from that of a sample. They miss the
# median of all rows once in three million columns, for which one more pass is made.
ERRORS = 5.0
# Sums of weights that differ by less than this share of all weight are equal, as in compiled code.
EQUAL_SHARE = 1e-12


class Means(NamedTuple):
    """The weight of the rows that have a value, and their weighted mean, for every column."""

    weights: Vector
    means: Vector

    @classmethod
    def of(cls, rows: TableRows) -> Means:
        """Return the means of some rows, where they are not NaN."""
        return cls(*known_means(rows.X, rows.weights))

    def join(self, other: Means) -> Means:
        """Return the means of the rows of both."""
        total = self.weights + other.weights
        share = np.divide(other.weights, total, out=np.zeros(len(total)), where=total > 0)
        return Means(total, self.means + share * (other.means - self.means))


class Tally(NamedTuple):
    """What is known of columns of some rows that have a value, and a weight above 0.

    Attributes
    ----------
    weight, below : ndarray of shape (n_columns,)
        The weight of these rows, and of those whose value is below the lower bound.
    values, counts : list of ndarray
        The different values within the bounds, and their weights, for every column.
    """

    weight: Vector
    below: Vector
    values: list[Vector]
    counts: list[Vector]

    @classmethod
    def of(cls, columns: Rows, low: Vector, high: Vector, rows: TableRows) -> Tally:
        """Return what is known of some rows, given bounds of their columns."""
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        X = rows.X[weights > 0]
        weights = weights[weights > 0]
        weight, below = np.zeros((2, len(columns)))
        values, counts = [], []
        for k, column in enumerate(columns.tolist()):
            x = X[:, column]
            weight[k] = weights[~np.isnan(x)].sum()
            below[k] = weights[x < low[k]].sum()
            within = (x >= low[k]) & (x <= high[k])
            one = _summed(x[within].astype(np.float64), weights[within])
            values.append(one[0])
            counts.append(one[1])
        return cls(weight, below, values, counts)

    def join(self, other: Tally) -> Tally:
        """Return what is known of the rows of both."""
        pairs = [
            _summed(*map(np.concatenate, (values, counts)))
            for values, counts in zip(
                zip(self.values, other.values, strict=True),
                zip(self.counts, other.counts, strict=True),
                strict=True,
            )
        ]
        return Tally(
            self.weight + other.weight,
            self.below + other.below,
            [values for values, _ in pairs],
            [counts for _, counts in pairs],
        )

    def median(self, column: int) -> tuple[float, float]:
        """Return the values up to which there is half of the weight, and more than half.

        Minus infinity or infinity stands for a value below or above the bounds, NaN for none.
        """
        total = self.weight[column]
        if not total > 0:
            return np.nan, np.nan
        upto = self.below[column] + np.cumsum(self.counts[column])
        known = np.append(self.values[column], np.inf)
        half = total * (0.5 - EQUAL_SHARE), total * (0.5 + EQUAL_SHARE)
        low = -np.inf if self.below[column] >= half[0] else known[np.searchsorted(upto, half[0])]
        return float(low), float(known[np.searchsorted(upto, half[1], side="right")])


def _summed(values: Vector, weights: Vector) -> tuple[Vector, Vector]:
    """Return the different values in their order, and the sum of the weights of each."""
    known, place = np.unique(values, return_inverse=True)
    return known, np.asarray(np.bincount(place, weights, len(known)), np.float64)


def means_of(table: Any) -> Vector:
    """Return the means of the columns of a table whose missing values are NaN; NaN for none."""
    found = table.of_rows(Means.of, Means.join)
    return np.where(found.weights > 0, found.means, np.nan)


def medians_of(table: Any) -> Vector:
    """Return the medians of the columns of a table whose missing values are NaN; NaN for none.

    Rows that are drawn bound the median of every column. A pass counts what is below the bounds,
    and keeps what is within them. Columns that would take more than `Limits.median_bytes` together
    are taken in several passes. Drawn rows that are all rows tell the medians themselves.
    """
    n_features = table.n_features
    drawn = table.sample(limits.now.median_rows, with_gaps=True).rows
    every = np.arange(n_features)
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    tally = Tally.of(every, low, high, drawn)
    n_rows = sum(table.n_rows())
    found = np.array([tally.median(k) for k in range(n_features)])
    if drawn.n_rows < n_rows:
        weights = np.ones(drawn.n_rows) if drawn.weights is None else drawn.weights
        known = tally.weight / max(float(weights.sum()), np.finfo(float).tiny)
        shares = np.maximum(known, 1 / drawn.n_rows)
        n_alike = known * weights.sum() ** 2 / max(float(weights @ weights), np.finfo(float).tiny)
        for k in range(n_features):
            kept, low[k], high[k] = _bounds(tally, k, float(n_alike[k]))
            shares[k] *= kept
        left = every
        while len(left):
            for columns in _groups(left, 16.0 * n_rows * shares[left]):
                block = partial(Tally.of, columns, low[columns], high[columns])
                tally = table.of_rows(block, Tally.join)
                found[columns] = [tally.median(k) for k in range(len(columns))]
            below, above = (found == -np.inf).any(axis=1), (found == np.inf).any(axis=1)
            missed = (below & (low > -np.inf)) | (above & (high < np.inf))
            low[missed & below], high[missed & above] = -np.inf, np.inf
            shares[missed] = 1.0
            left = np.flatnonzero(missed)
    first, second = found.T
    with np.errstate(invalid="ignore"):
        return np.where(first == second, first, first / 2 + second / 2)


def _bounds(tally: Tally, column: int, n_alike: float) -> tuple[float, float, float]:
    """Return the share of the values that bounds of a median keep, and the bounds.

    `n_alike` is how many values of one weight tell as much as those that were drawn.
    """
    values = tally.values[column]
    share = ERRORS * 0.5 / np.sqrt(n_alike) if n_alike > 0 else 1.0
    if not share < 0.5:
        return 1.0, -np.inf, np.inf
    upto = np.cumsum(tally.counts[column]) / tally.weight[column]
    low, high = np.searchsorted(upto, (0.5 - share, 0.5 + share)).clip(max=len(values) - 1)
    return 2 * share, values[low], values[high]


def _groups(columns: Rows, sizes: Vector) -> Iterator[Rows]:
    """Yield columns whose sizes add up to at most `Limits.median_bytes`, or one column."""
    begin, total = 0, 0.0
    for end, size in enumerate(sizes.tolist()):
        if end > begin and total + size > limits.now.median_bytes:
            yield columns[begin:end]
            begin, total = end, 0.0
        total += size
    if begin < len(columns):
        yield columns[begin:]
