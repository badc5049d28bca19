"""Draw rows of a table by the hashes of their numbers, whatever the partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairgram._support.checks import require_finite
from pairgram.queries_and_pairs.id_hashes import mix
from pairgram.tables.rows import TableRows

__all__ = ["DrawTask", "Drawn"]


class Drawn(NamedTuple):
    """Rows that were drawn, in the order of their numbers.

    Attributes
    ----------
    numbers : ndarray of shape (n_rows,), int64
        The numbers of the rows in the table.
    rows : TableRows
        Their ids are not kept: all rows are one run.
    """

    numbers: NDArray[np.int64]
    rows: TableRows


@dataclass(frozen=True)
class DrawTask:
    """Draws the `size` rows with the smallest hashes of their numbers.

    The draw depends on the order of the rows alone, not on the partitions.

    Attributes
    ----------
    size : int
    before : tuple of int
        The number of rows before every partition.
    """

    size: int
    before: tuple[int, ...]
    reads_features: bool = True
    needs_queries: bool = False

    def of_rows(self, rows: TableRows) -> Drawn:
        """Return those that were drawn of some rows, whose features must be finite."""
        require_finite(rows.X, "X")
        numbers = self.before[rows.partition] + rows.first + np.arange(rows.n_rows)
        return self._smallest(numbers, replace(rows, ids=None))

    def join(self, first: Drawn, second: Drawn) -> Drawn:
        """Return those that are drawn of both."""
        numbers = np.concatenate([first.numbers, second.numbers])
        one = np.array([1])  # `then` adds the sizes of two runs
        rows = replace(first.rows, sizes=one).then(replace(second.rows, sizes=one))
        return self._smallest(numbers, rows)

    def _smallest(self, numbers: NDArray[np.int64], rows: TableRows) -> Drawn:
        if len(numbers) > self.size:
            hashes = mix(numbers.astype(np.uint64))
            kept = np.sort(np.argpartition(hashes, self.size - 1)[: self.size])
            numbers = numbers[kept]
            rows = replace(
                rows,
                X=None if rows.X is None else rows.X[kept],
                y=None if rows.y is None else rows.y[kept],
                weights=None if rows.weights is None else rows.weights[kept],
            )
        return Drawn(numbers, replace(rows, sizes=np.array([len(numbers)])))
