"""Draw a sample of queries whose statistics estimate those of all queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pairgram._support.types import Vector
from pairgram.problem.data import RankingData

__all__ = ["sample_queries"]

# A sample must have room for at least this many queries of the largest size.
FEWEST_QUERIES = 8


def sample_queries(data: RankingData, pair_weights: Vector, n_rows: int) -> RankingData | None:
    """Return about `n_rows` rows, in whole queries, whose Gram matrix estimates that of `data`.

    A query is taken with probability ``p = min(1, t · pair weight)``, and its weight is divided by
    p. The estimate is therefore unbiased, and no heavy query is missed. The queries are taken by
    systematic sampling in their order, so the choice depends only on the data. This takes
    O(n_queries) time, and the rows are copied.

    Parameters
    ----------
    data : RankingData
    pair_weights : ndarray of shape (n_queries,)
        The sum of the weights of the pairs of each query.
    n_rows : int
        Number of rows to aim at.

    Returns
    -------
    RankingData or None
        None if the sample would be more than half of the rows that have pairs, or if a query is
        longer than an eighth of the sample.
    """
    sizes = np.where(pair_weights > 0, data.queries.sizes, 0)
    if 2 * n_rows > sizes.sum() or FEWEST_QUERIES * sizes.max() > n_rows:
        return None
    share = _probabilities(pair_weights / pair_weights.max(), sizes, n_rows)
    taken = (np.diff(np.floor(np.cumsum(share) + 0.5), prepend=0.0) > 0) | (share >= 1)
    weights = np.ones(len(share)) if data.query_weights is None else data.query_weights
    weighted = replace(data, query_weights=weights / np.where(taken, share, 1.0))
    return weighted.take(np.flatnonzero(taken[data.queries.index()]))


def _probabilities(weights: Vector, sizes: NDArray[np.int64], n_rows: int) -> Vector:
    """Return ``min(1, t · weight)`` for every query; t is such that `n_rows` rows are expected."""
    sure = np.zeros(len(weights), dtype=bool)
    while True:
        left = n_rows - sizes[sure].sum()
        share = np.where(sure, 1.0, left / (weights * sizes)[~sure].sum() * weights)
        if not (share > 1).any():
            return share
        sure |= share >= 1
