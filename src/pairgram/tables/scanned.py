"""`ScannedTable`: a table as the core asks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairgram.data.streams import Stream
from pairgram.tables.evaluation import evaluate_table
from pairgram.tables.fits import fit_table
from pairgram.tables.items import items_of
from pairgram.tables.scores import arrays_of, scores_of_table
from pairgram.tables.statistics import added
from pairgram.tables.table import Table


class ScannedTable(Table, Stream):
    """A table of `scan`, which answers what the core asks of a `Stream`."""

    def fitted(self, model: Any, spec: Any, validation: Any) -> dict[str, Any]:
        """Return the attributes of a ranker that is fitted to the rows."""
        return fit_table(self, model, spec, validation)

    def scores(self, model: Any) -> Any:
        """Return the scores of the rows by a fitted model."""
        return scores_of_table(model, self)

    def statistics(self, total: Any) -> Any:
        """Return statistics with the rows added."""
        return added(total, self)

    def arrays(self, model: Any) -> tuple[Any, Any, Any]:
        """Return a model of arrays, all rows that it scores, and their query ids or None."""
        return arrays_of(model, self)

    def items(self, model: Any, column: str | None, argument: str) -> tuple[Any, Any]:
        """Return all rows with the columns that a model knows, and a column of ids or None."""
        return items_of(model, self, column, argument)

    def evaluate(
        self, metrics: Sequence[Any], model: Any, *, per_query: bool, of_lists: bool
    ) -> dict[str, Any]:
        """Return metrics of a model on the rows; see `pairgram.evaluate`."""
        return evaluate_table(metrics, self, model, per_query=per_query, of_lists=of_lists)
