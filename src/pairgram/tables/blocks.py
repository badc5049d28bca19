"""Blocks of a table as the data that statistics and scores are computed of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairgram._support.checks import Vector
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries
from pairgram.features.input_map import whole_map
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table

# Quantiles, landmarks and the widths of kernels are found from at most this many rows.
SAMPLE_ROWS = 100_000


def one_row(table: Table) -> RankingData:
    """Return data of the shape and type of a table, without reading it: one row of zeros."""
    return RankingData.delimit(np.zeros((1, table.n_features), table.layout.dtype), [0.0])


def data_of_block(pattern: RankingData, rows: TableRows, n_threads: int | None) -> RankingData:
    """Return the data of some rows of whole queries. Errors name features, not rows.

    Parameters
    ----------
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    rows : TableRows
        With labels.
    n_threads : int or None
    """
    assert rows.y is not None
    X = rows.X
    if pattern.applied is not None:
        X = pattern.applied.values(X, n_threads)
    weights = rows.weights
    if weights is not None:
        weights = np.where(weights < np.finfo(np.float64).tiny, 0.0, weights)
    return replace(
        pattern,
        X=X,
        y=rows.y,
        queries=Queries.of_sizes(rows.sizes, rows.ids),
        row_weights=weights,
        offset=None,
    )


@dataclass(frozen=True, eq=False)
class BlockReader:
    """Makes blocks of a table into the data that statistics and scores are computed of.

    Attributes
    ----------
    pattern : RankingData
        Some rows, with the fitted inputs and the fitted feature map.
    prior : callable or None
        Returns the scores of a prior for rows: see `Prior.scores`.
    n_threads : int or None
    exponent : int
        Labels are divided by two to this power, for what depends on their order alone.
    """

    pattern: RankingData
    prior: Callable[[Any, RankingData, int | None], Vector] | None
    n_threads: int | None
    exponent: int = 0

    @property
    def feature_map(self) -> Any:
        """The fitted map of the rows as the table has them, its inputs included."""
        return whole_map(self.pattern)

    def data(self, rows: TableRows) -> RankingData:
        """Return the data of some rows of whole queries. Errors name features, not rows."""
        if self.exponent and rows.y is not None:
            rows = replace(rows, y=np.ldexp(rows.y, -self.exponent))
        data = data_of_block(self.pattern, rows, self.n_threads)
        if self.prior is None:
            return data
        return data.plus_offset(self.prior(rows.X, data, self.n_threads))
