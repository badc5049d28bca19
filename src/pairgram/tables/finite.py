"""A pass over features that finds the first one that is infinite."""

from __future__ import annotations

from dataclasses import dataclass

from pairgram._support.checks import first_not_finite
from pairgram.tables.columns import Columns, Place, placed_error
from pairgram.tables.rows import TableRows

__all__ = ["FiniteTask"]


@dataclass(frozen=True)
class FiniteTask:
    """Raises a ValueError that names the row and the column of an infinite feature.

    Attributes
    ----------
    columns : Columns
    names : tuple of str
        What messages call the partitions.
    """

    columns: Columns
    names: tuple[str, ...]
    reads_features: bool = True
    needs_queries: bool = False

    def of_rows(self, rows: TableRows) -> int:
        """Check some rows."""
        found = first_not_finite(rows.X)
        if found is not None:
            what, row, column = found
            number = rows.partition
            name = self.names[number] if number < len(self.names) else f"partition {number}"
            place = Place(name, number, rows.first).row(row)
            raise placed_error(
                f"{place}: column {self.columns.name_of(column)} must be finite, got {what}"
            )
        return 0

    def join(self, first: int, second: int) -> int:
        """Check the rows of both."""
        return 0
