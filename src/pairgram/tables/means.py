"""Statistics of the columns of a table, which are joined over its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import require_finite
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram.tables.rows import TableRows

__all__ = ["Means", "MeansTask", "Moments", "MomentsTask"]


class Means(NamedTuple):
    """The weight of the rows that have a value, and their weighted sum, for every column."""

    weights: Vector
    sums: Vector

    @property
    def means(self) -> Vector:
        """The weighted means, (n_features,); 0 for columns without values."""
        return np.asarray(
            np.divide(self.sums, self.weights, out=np.zeros_like(self.sums), where=self.weights > 0)
        )


@dataclass(frozen=True)
class MeansTask:
    """Finds the means of columns over the rows where they are not NaN."""

    reads_features: bool = True
    needs_queries: bool = False

    def of_rows(self, rows: TableRows) -> Means:
        """Return the sums of some rows."""
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        known = ~np.isnan(rows.X)
        return Means(weights @ known, weights @ np.where(known, rows.X, 0.0))

    def join(self, first: Means, second: Means) -> Means:
        """Return the sums of the rows of both."""
        return Means(first.weights + second.weights, first.sums + second.sums)


class Moments(NamedTuple):
    """What scaled inputs are made of: (n_features,) each, and the weight of the rows."""

    lowest: Vector
    highest: Vector
    pivot: Vector  # a row; without it, a large offset would cost the digits of the mean
    mean_less_pivot: Vector
    squares: Vector  # of differences from the mean
    weight: float

    @property
    def mean(self) -> Vector:
        """The weighted means, (n_features,)."""
        return self.pivot + self.mean_less_pivot


@dataclass(frozen=True)
class MomentsTask:
    """Finds the ranges, the means and the squared differences from them of all columns."""

    n_threads: int | None = None
    reads_features: bool = True
    needs_queries: bool = False

    def of_rows(self, rows: TableRows) -> Moments:
        """Return the moments of some rows. Rows of weight 0 are as if absent."""
        found: Any = _core.column_moments(rows.X, rows.weights, resolve_n_threads(self.n_threads))
        weight = float(rows.n_rows if rows.weights is None else rows.weights.sum())
        if not np.isfinite(found[-1]).all():
            require_finite(rows.X, "X")
        lowest, highest, pivot, mean, squares = found
        return Moments(lowest, highest, pivot, mean, squares, weight)

    def join(self, first: Moments, second: Moments) -> Moments:
        """Return the moments of the rows of both, by Chan's formula."""
        if first.weight == 0 or second.weight == 0:
            return second if first.weight == 0 else first
        weight = first.weight + second.weight
        difference = second.pivot - first.pivot + (second.mean_less_pivot - first.mean_less_pivot)
        share = second.weight / weight
        return Moments(
            np.minimum(first.lowest, second.lowest),
            np.maximum(first.highest, second.highest),
            first.pivot,
            first.mean_less_pivot + share * difference,
            first.squares + second.squares + first.weight * share * difference**2,
            weight,
        )
