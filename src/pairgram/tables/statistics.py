"""Statistics of the rows of a table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from pairgram._support import limits
from pairgram._support.checks import ArgumentError, Vector
from pairgram.data.blocks import Task
from pairgram.data.dataset import RankingData
from pairgram.data.hashed_ids import IdSet, QueryIds
from pairgram.features.gaps import refuse_sparse
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.pairgram import Pairgram
from pairgram.tables.blocks import data_of_block, one_row
from pairgram.tables.columns import TableRows
from pairgram.tables.table import Table


def added(statistics: Pairgram, table: Table) -> Pairgram:
    """Return statistics with the rows of a table added, in one pass over its features."""
    if table.is_of_clicks:
        statistics.settings.require_clicks()
    if table.layout.features and table.layout.label is None:
        raise ValueError("Pairgram needs labels: give scan the column, as label=")
    if not (
        table.has_queries or statistics.settings.joins_all_rows or statistics.settings.kind is None
    ):
        raise ArgumentError(
            None,
            f"Pairgram compares rows within queries: {table.advice_on_ids}, or give the "
            "statistics scope='global'",
        )
    statistics._require_names(table.feature_names)
    table.survey()
    fill = _fill_of(statistics, table)
    table = table.filled() if fill is None else table.filling(fill)
    first, feature_map = statistics._total.sums is None, statistics._total.feature_map
    if feature_map is not None and first:
        rows = table.sample(limits.now.sample_rows).rows.X
        feature_map = statistics._total.fitted_map(rows, table.feature_names)
    empty = statistics._of(
        PairSums(statistics.settings, feature_map, table.feature_names, fill=fill),
        QueryIds(None if statistics.ids is None else IdSet()),
    )
    pattern = replace(one_row(table), feature_map=feature_map)
    needs_queries = not statistics.settings.joins_all_rows
    block = partial(_of_table, empty, pattern)
    found = table.reduce(Task(block, _joined, needs_queries=needs_queries))
    return found if first else statistics._combine(found, 1)


def _fill_of(statistics: Pairgram, table: Table) -> Vector | None:
    """Return what takes the place of missing values of a table, which may say "zero" itself."""
    if table.missing not in (None, "zero"):
        raise ArgumentError(
            "missing",
            "{=of scan }must be 'zero' or None: statistics do not hold means and medians, "
            "which would differ from table to table{=. Give the values themselves, such as "
            "Pairgram(feature_map=model.feature_map_)}",
        )
    is_sparse = bool(table.layout.sparse)
    fill = statistics._fill_of(table.n_features, is_sparse=is_sparse)
    if table.missing is None:
        return fill
    if is_sparse:
        refuse_sparse()
    if fill is not None and fill.any():
        raise ArgumentError(
            "missing", "{=of scan }must not be given: the statistics have other values than 0"
        )
    return np.zeros(table.n_features)


def _of_table(empty: Pairgram, pattern: RankingData, rows: TableRows) -> Pairgram:
    """Return the statistics of some rows of whole queries, with the settings of empty ones."""
    data = data_of_block(pattern, rows)
    ids = empty._ids_with(data)
    total = empty._total.with_rows(data, counts=True)
    return empty._of(total, ids)


def _joined(first: Pairgram, second: Pairgram) -> Pairgram:
    return first._combine(second, 1)
