"""`Table`: rows that are read when they are needed, again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from pairgram._support.types import Vector
from pairgram.tables.columns import Columns, Missing
from pairgram.tables.engine import Engine, Progress
from pairgram.tables.means import MeansTask
from pairgram.tables.parts import Task
from pairgram.tables.rows import TableRows
from pairgram.tables.sample import Drawn, DrawTask
from pairgram.tables.survey import NameOf, Survey, SurveyTask

__all__ = ["Table", "refuse_arguments"]

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that are read when they are needed. `scan` makes tables.

    Attributes
    ----------
    columns : Columns
    missing : {"zero", "mean"} or None
    ungrouped : Table or None
        The rows as the source has them, if those of every query were brought together.
    """

    layout: Columns
    schema: Any
    partitions: tuple[Any, ...]
    engine: Engine
    missing: Missing | None = None
    source_has_queries: bool = False
    progress: Progress | None = None
    ungrouped: Table | None = None
    _known: dict[str, Any] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the feature columns; None for arrays and for one column of lists."""
        columns = self.layout
        return None if columns.width is not None or not columns.features else [*columns.features]

    @property
    def names_of_columns(self) -> list[str]:
        """The names of all columns of the source; none for arrays."""
        return [] if self.schema is None else list(self.schema.names)

    @property
    def has_queries(self) -> bool:
        """Whether rows have query ids."""
        return self.layout.qid is not None or self.source_has_queries

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.layout.n_features

    def run(self, task: Task[S]) -> S:
        """Return the result of a task for all rows, which are read once.

        Raises
        ------
        ValueError
            If there are no rows; or if the source has other numbers of rows than in an earlier
            pass.
        """
        part = self.engine.run(self.partitions, self.layout, task, self.progress)
        before = self._known.setdefault("n_rows", part.n_rows)
        if before != part.n_rows:
            raise ValueError(
                f"the table changed while it was read: it had {sum(before)} rows, and has "
                f"{sum(part.n_rows)}"
            )
        result = part.close(task)
        if result is None:
            raise ValueError("the table has no rows")
        return result

    def map(self, function: Callable[[TableRows], Any]) -> Iterator[Any]:
        """Yield what a function makes of every batch of rows, in the order of the rows."""
        for result, n_rows in self.engine.map(self.partitions, self.layout, function):
            if self.progress is not None:
                self.progress(n_rows)
            yield result

    def survey(self) -> Survey:
        """Return what is known of labels, ids and weights. The first call reads them.

        Raises
        ------
        ValueError
            If the rows of a query do not stand together.
        """
        found: Survey | None = self._known.get("survey")
        if found is not None:
            return found
        found = self.run(SurveyTask())
        if found.scattered is not None:
            names = self.run(NameOf(found.scattered))
            raise ValueError(
                f"the rows of query {names[0]!r} do not stand together: sort the table by "
                f"{self.layout.qid or 'query id'}, or give group_queries=True"
            )
        self._known["survey"] = found
        return found

    def sample(self, size: int) -> Drawn:
        """Return at most so many rows, drawn by the hashes of their numbers in the table."""
        self.survey()
        before = np.cumsum([0, *self._known["n_rows"]]).tolist()
        return self.run(DrawTask(size, tuple(before)))

    def filled(self) -> Table:
        """Return the same table with what takes the place of missing values, as `missing` says.

        The means of columns are taken over the rows that have a value, with their weights. This
        reads the rows once. The mean of a column without values is 0.
        """
        if self.missing is None:
            return self
        fill = np.zeros(self.n_features)
        if self.missing == "mean":
            fill = self.filling(np.full(self.n_features, np.nan)).run(MeansTask()).means
        return self.filling(fill)

    def filling(self, fill: Vector | None) -> Table:
        """Return the same table, with values that take the place of missing ones."""
        return replace(self, layout=replace(self.layout, fill=fill))

    def watched(self, progress: Progress | None) -> Table:
        """Return the same table, which tells `progress` how many rows have been worked on."""
        return replace(self, progress=progress)

    def in_order(self) -> Table:
        """Return the rows in the order of the source, where those of a query may be apart."""
        if self.ungrouped is None:
            return self
        return self.ungrouped.filling(self.layout.fill).watched(self.progress)

    def for_scores(self, keep: tuple[str, ...] = ()) -> Table:
        """Return the same rows without labels, ids and weights; `keep` names further columns."""
        return replace(self, layout=self.layout.for_scores(keep))


def refuse_arguments(**arguments: Any) -> None:
    """Raise a ValueError if `fit` gets more than a table."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{name} must be None if X is a table: give scan the name of the column"
            )
