"""What is found out about a table before fits, and the ids that passes have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector, require_finite
from pairgram._support.machine import cached_property, thread_count
from pairgram.data.hashed_ids import hash_ids, mix
from pairgram.tables.columns import TableRows, together


class Moments(NamedTuple):
    """Moments of columns from which inputs are scaled, (n_features,) each, and the rows' weight."""

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

    @classmethod
    def of(cls, rows: TableRows) -> Moments:
        """Return the moments of some rows. Rows of weight 0 are as if absent."""
        X, weights = rows.X, rows.weights
        found: Any = _core.column_moments(X, weights, thread_count())
        if not np.isfinite(found[-1]).all():
            require_finite(X, "X")
        lowest, highest, pivot, mean, squares = found
        weight = float(rows.n_rows if weights is None else weights.sum())
        return cls(lowest, highest, pivot, mean, squares, weight)

    def join(self, other: Moments) -> Moments:
        """Return the moments of the rows of both, by Chan's formula."""
        if self.weight == 0 or other.weight == 0:
            return other if self.weight == 0 else self
        weight = self.weight + other.weight
        difference = other.pivot - self.pivot + (other.mean_less_pivot - self.mean_less_pivot)
        share = other.weight / weight
        return Moments(
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.pivot,
            self.mean_less_pivot + share * difference,
            self.squares + other.squares + self.weight * share * difference**2,
            weight,
        )


class Drawn(NamedTuple):
    """Rows that were drawn, in the order of their numbers.

    Attributes
    ----------
    numbers : ndarray of shape (n_rows,), int64
        The numbers of the rows in the table.
    rows : TableRows
        Their ids are not kept: all rows are one run.
    """

    numbers: Rows
    rows: TableRows

    def drawn(self, size: int) -> Drawn:
        """Return the `size` rows with the smallest hashes of their numbers."""
        numbers, rows = self
        kept = np.arange(len(numbers))
        if len(numbers) > size:
            hashes = mix(numbers.astype(np.uint64))
            kept = np.sort(np.argpartition(hashes, size - 1)[:size])
        return Drawn(numbers[kept], rows.taken(kept))


def drawn_of(size: int, before: Sequence[int], with_gaps: bool, rows: TableRows) -> Drawn:
    """Draw some rows, which must be finite unless they may have gaps.

    The draw depends on the order of the rows alone, not on the partitions: `before` are the
    numbers of rows before each.
    """
    if not with_gaps:
        require_finite(rows.X, "X")
    first = before[rows.place.partition] + rows.place.first
    return Drawn(np.arange(first, first + rows.n_rows), rows).drawn(size)


def join_drawn(size: int, first: Drawn, second: Drawn) -> Drawn:
    """Return those that are drawn of both."""
    numbers = np.concatenate([first.numbers, second.numbers])
    return Drawn(numbers, together([first.rows, second.rows])).drawn(size)


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of a table without its features.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
        A few labels, which a metric accepts only if it accepts all of the table: the lowest, the
        highest, and one that is no whole number, if there is any.
    parts : tuple of (places, hashes)
        For queries in any order, the places of their first rows; see `TableRows.begins`. The hashes
        of their ids; None if they have none.
    """

    labels: Vector
    parts: tuple[tuple[Rows, Any], ...]

    @classmethod
    def of(cls, rows: TableRows) -> Survey:
        """Return the survey of some rows of whole queries."""
        y = np.zeros(1) if rows.y is None else rows.y
        return cls(_few(y), ((rows.begins, hash_of_runs(rows)),))

    def join(self, other: Survey) -> Survey:
        """Return the survey of the rows of both."""
        labels = _few(np.concatenate([self.labels, other.labels]))
        return Survey(labels, self.parts + other.parts)

    @cached_property
    def queries(self) -> tuple[Rows, Any]:
        """What `parts` are for all queries, in the order of the rows."""
        places, hashes = zip(*self.parts, strict=True)
        begins = np.concatenate(places)
        order = np.argsort(begins)
        return begins[order], None if hashes[0] is None else np.concatenate(hashes)[order]

    @property
    def begins(self) -> Rows:
        """The places of the first rows of all queries, ascending, (n_queries,)."""
        return self.queries[0]

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.begins)

    @property
    def scattered(self) -> int | None:
        """The hash of the first query whose rows do not stand together."""
        hashes = self.queries[1]
        if hashes is None:
            return None
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        again = first[counts > 1]
        return int(hashes[again.min()]) if len(again) else None


def _few(y: Vector) -> Vector:
    """Return the lowest and the highest label, and one that is no whole number, if there is any."""
    return np.array([y.min(), y.max(), *y[y != np.rint(y)][:1]])


def hash_of_runs(rows: TableRows) -> Any:
    """Return the hash of the query id of every run, (n_runs,), uint64; None without ids."""
    return None if rows.ids is None else hash_ids(rows.ids)


def ids_with(number: int, rows: TableRows) -> Any:
    """Return the query id that has a hash, in an array; it is empty if no row has the id."""
    assert rows.ids is not None
    return rows.ids[hash_of_runs(rows) == np.uint64(number)][:1]
