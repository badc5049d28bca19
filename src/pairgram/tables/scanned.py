"""`ScannedTable`: a table as the core asks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairgram.data.streams import Stream
from pairgram.tables.evaluation import evaluate_table
from pairgram.tables.table import Table


class ScannedTable(Table, Stream):
    """A table of `scan`; see `Stream`."""

    def evaluate(
        self, metrics: Sequence[Any], model: Any, *, per_query: bool, of_lists: bool
    ) -> dict[str, Any]:
        """Return metrics of a model on the rows; see `pairgram.evaluate`."""
        return evaluate_table(metrics, self, model, per_query=per_query, of_lists=of_lists)
