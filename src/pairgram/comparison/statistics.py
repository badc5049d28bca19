"""Tests and intervals for paired differences, many columns of them at once.

A row is a query, a column a comparison. NaN means that the metric is undefined in the query, which
the column then leaves out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

__all__ = ["bootstrap_intervals", "holm", "randomization_test", "t_test"]

Values = NDArray[np.float64]

# This many signs or counts of resampled queries are held at a time: 32 MiB.
_BLOCK = 1 << 22
# So many signs are enumerated at most, in 36 MiB.
_LONGEST_EXACT = 18
# Sums that differ by rounding alone count as equal.
_ROUNDING = 1e-12


def t_test(differences: Values) -> Values:
    """Return two-sided p-values of the paired t test, shape (n_columns,).

    They are 1 if all differences are 0, 0 if they are equal but not 0, and NaN for less than two.
    """
    n = (~np.isnan(differences)).sum(axis=0)
    filled = np.nan_to_num(differences, nan=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = filled.sum(axis=0) / n
        squares = (np.where(np.isnan(differences), 0.0, filled - means) ** 2).sum(axis=0)
        # The mean of equal differences has a rounding error, which is no deviation.
        equal = squares <= n * (_ROUNDING * means) ** 2
        statistic = np.where(equal, np.inf, np.abs(means) / np.sqrt(squares / (n - 1) / n))
        p: Values = 2 * student.sf(statistic, n - 1)
    p[(filled == 0).all(axis=0)] = 1.0
    p[n < 2] = np.nan
    return p


def randomization_test(
    differences: Values, n_permutations: int, rng: np.random.Generator
) -> Values:
    """Return two-sided p-values of the paired randomisation test, shape (n_columns,).

    Under the null hypothesis the two systems could be exchanged in any query, so every difference
    has either sign. The p-value is the fraction of the assignments of signs whose sum is at least
    as large in size as that of the data. All assignments are tried if they are at most
    `n_permutations`; differences of 0 have no sign. Otherwise as many are drawn, and those of the
    data count as one more. One draw of signs serves all columns.

    References
    ----------
    Smucker, Allan, Carterette (2007). A comparison of statistical significance tests for
    information retrieval evaluation. CIKM.
    """
    filled = np.nan_to_num(differences, nan=0.0)
    n_signs = (filled != 0).sum(axis=0)
    exact = n_signs <= min(_LONGEST_EXACT, np.log2(n_permutations))
    p = np.empty(filled.shape[1])
    for column in np.flatnonzero(exact):
        own = filled[filled[:, column] != 0, column]
        bits = np.arange(1 << len(own))[:, None] >> np.arange(len(own)) & 1
        p[column] = _as_extreme(bits, own[:, None])[0] / len(bits)
    drawn = filled[:, ~exact]
    if drawn.size:
        counts = np.zeros(drawn.shape[1])
        n_queries = len(drawn)
        rows = max(1, _BLOCK // n_queries)
        for begin in range(0, n_permutations, rows):
            size = min(rows, n_permutations - begin)
            packed = rng.integers(0, 256, (size, -(-n_queries // 8)), dtype=np.uint8)
            counts += _as_extreme(np.unpackbits(packed, axis=1, count=n_queries), drawn)
        p[~exact] = (counts + 1) / (n_permutations + 1)
    return p


def _as_extreme(bits: NDArray[Any], differences: Values) -> Values:
    """Return how many rows of signs make sums of at least the size of the plain ones."""
    total = differences.sum(axis=0)
    # With the sign -1 where the bit is 0: twice the sum of those with bit 1, minus all.
    sums = np.abs(2 * (bits.astype(np.float64) @ differences) - total)
    margin = _ROUNDING * np.abs(differences).sum(axis=0)
    counts: Values = (sums >= np.abs(total) - margin).sum(axis=0).astype(np.float64)
    return counts


def holm(p: Values) -> Values:
    """Return p-values corrected for their number by Holm's step-down method; NaN stays NaN.

    References
    ----------
    Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6.
    """
    corrected = np.full_like(p, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return corrected


def bootstrap_intervals(
    values: Values, n_resamples: int, confidence: float, rng: np.random.Generator
) -> tuple[Values, Values]:
    """Return the ends of percentile bootstrap intervals of the means of columns.

    Queries are drawn with replacement, the same ones for all columns. The ends are NaN for a column
    without values.
    """
    n_queries = len(values)
    known = (~np.isnan(values)).astype(np.float64)
    stacked = np.hstack([np.nan_to_num(values, nan=0.0), known])
    means = np.empty((n_resamples, values.shape[1]))
    rows = max(1, _BLOCK // n_queries)
    for begin in range(0, n_resamples, rows):
        size = min(rows, n_resamples - begin)
        drawn = rng.integers(0, n_queries, (size, n_queries))
        drawn += n_queries * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n_queries).reshape(size, n_queries)
        sums, weights = np.hsplit(counts.astype(np.float64) @ stacked, 2)
        with np.errstate(invalid="ignore"):
            means[begin : begin + size] = sums / weights
    tail = (1 - confidence) / 2
    low = np.full(values.shape[1], np.nan)
    high = low.copy()
    for column in np.flatnonzero(known.any(axis=0)):  # a resample may miss all known values
        ends = np.nanquantile(means[:, column], [tail, 1 - tail])
        low[column], high[column] = ends
    return low, high
