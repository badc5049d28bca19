"""Rows of a table in memory, with the columns that a model of items or users knows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.arrays import features_among, require_columns
from pairgram.features.row_values import Chain
from pairgram.rankers.batch_fit import BatchFit
from pairgram.tables.table import Table

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator


def items_of(
    model: BaseEstimator | BatchFit, table: Table, column: str | None, argument: str
) -> tuple[Any, Any]:
    """Return rows of a table in memory, of those columns that a model knows, and a column of ids.

    The rows are a table of pyarrow if the model knows columns by their names.
    """
    layout = table.layout
    if column is not None:
        require_columns([column], table.names_of_columns, argument, "the table")
        table = replace(table, layout=replace(layout, qid=column))
    names = getattr(model, "feature_names_in_", None)
    known = layout.feature_names() if names is None else [str(name) for name in names]
    own = features_among(known, layout.features, column)
    if own and (names is not None or column in layout.features):
        table = table.with_features(own)
    fill = Chain.of(getattr(model, "feature_map_", None)).fill
    if fill is not None and names is not None:
        values = dict(zip(known, fill.fill_, strict=True))
        table = table.filling(
            np.array([values.get(one, np.nan) for one in table.layout.feature_names()])
        )
    elif table.layout.fill is None:
        table = table.with_gaps()
    found = table.rows()
    rows = found.X
    if table.layout.features and (names is not None or isinstance(model, BatchFit)):
        import pyarrow

        rows = pyarrow.table(dict(zip(table.layout.feature_names(), rows.T, strict=True)))
    return rows, None if table.layout.qid is None else found.query
