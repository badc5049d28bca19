"""`TableRows`: rows of a table, in the runs of rows of one query in which they stand there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support.checks import Vector

# The place of a row has so many bits for its number in its partition.
PLACE_BITS = 40
# Files with these names begin with a line of column names.
WITH_HEADERS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


@dataclass(frozen=True, eq=False)
class TableRows:
    """Consecutive rows of a table.

    Attributes
    ----------
    X : C-contiguous ndarray of shape (n_rows, n_features), float64 or float32, or None
        None if a pass does not read the features.
    y : ndarray of shape (n_rows,), float64, or None
        None if the table has no labels.
    weights : ndarray of shape (n_rows,), float64, or None
    sizes : ndarray of shape (n_runs,), int64
        A run consists of neighbouring rows of one query. Without query ids there is one run.
    ids : ndarray of shape (n_runs,), or None
        The query ids of the runs. Neighbours differ.
    first : int
        The number of the first row within its partition.
    partition : int
        The number of the partition in the table.
    kept : pyarrow.Table or None
        Further columns of a batch, which are handed through.
    """

    X: Any
    y: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    sizes: NDArray[np.int64]
    ids: NDArray[Any] | None
    first: int = 0
    partition: int = 0
    kept: Any = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    @property
    def begins(self) -> NDArray[np.int64]:
        """The places of the first rows of the runs: numbers that ascend in the whole table."""
        return (self.partition << PLACE_BITS) + self.first + np.cumsum(self.sizes) - self.sizes

    @property
    def n_bytes(self) -> int:
        """The size of the features in memory."""
        return 0 if self.X is None else int(self.X.nbytes)

    def runs(self, begin: int, end: int) -> TableRows | None:
        """Return the runs from `begin` to `end`, without a copy; None if there are none."""
        if begin >= end:
            return None
        start = int(self.sizes[:begin].sum())
        rows = slice(start, start + int(self.sizes[begin:end].sum()))
        return TableRows(
            None if self.X is None else self.X[rows],
            None if self.y is None else self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.sizes[begin:end],
            None if self.ids is None else self.ids[begin:end],
            self.first + start,
            self.partition,
        )

    def then(self, other: TableRows) -> TableRows:
        """Return these rows of one run and further rows of the same run."""
        return TableRows(
            None if self.X is None else np.concatenate([self.X, other.X]),
            None if self.y is None else np.concatenate([self.y, _of(other.y)]),
            None if self.weights is None else np.concatenate([self.weights, _of(other.weights)]),
            self.sizes + other.sizes,
            self.ids,
            self.first,
            self.partition,
        )

    def own(self) -> TableRows:
        """Return a copy that keeps no larger array alive."""
        return TableRows(
            None if self.X is None else self.X.copy(),
            None if self.y is None else self.y.copy(),
            None if self.weights is None else self.weights.copy(),
            self.sizes,
            self.ids,
            self.first,
            self.partition,
        )


def _of(values: Vector | None) -> Vector:
    assert values is not None
    return values


def counted(name: str) -> str:
    """Return whence the rows of a partition are counted, by its name."""
    if name.lower().endswith(WITH_HEADERS):
        return "counted from 0 after the header"
    return f"counted from 0{' there' if ' from row ' in name else ''}"


def shown_id(ids: NDArray[Any]) -> str:
    """Return the first of some query ids for messages."""
    value = ids[0]
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    return repr(value.item() if isinstance(value, np.generic) else value)


def runs_of(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return (sizes, ids) of the runs of equal ids, for ids of one row or more."""
    starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
    return np.diff(np.append(starts, len(ids))).astype(np.int64), ids[starts]
