"""What a ranker does with a table: it fits inputs and maps to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pairgram.feature_maps.input_map import whole_map
from pairgram.inputs.fit import check_inputs, inputs_of_moments
from pairgram.inputs.fitted import FittedInputs
from pairgram.problem.data import RankingData
from pairgram.rankers.table_blocks import SAMPLE_ROWS, BlockReader, one_row
from pairgram.tables.means import MomentsTask
from pairgram.tables.table import Table

__all__ = ["begin_fit", "block_readers", "same_columns"]

QUANTILES = ("quantile", "raw+quantile")


def begin_fit(model: Any, table: Table) -> Table:
    """Check that a model can be fitted to a table, and return it with its missing values filled.

    Raises
    ------
    ValueError
        If the table has no labels, or no query ids where pairs are formed within queries; or if
        the rows of a query do not stand together.
    """
    name = type(model).__name__
    table.require_labels(f"{name}.fit")
    has_queries = table.has_queries
    if model._needs_queries and not has_queries:
        otherwise = ", or give the model scope='global'" if hasattr(model, "scope") else ""
        raise ValueError(
            f"{name}.fit compares rows within queries: {table.advice_on_ids}{otherwise}"
        )
    table.survey()
    table = table.filled()
    model.n_features_in_ = table.n_features
    model.__dict__.pop("feature_names_in_", None)
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.uses_offset_, model.prior_ = False, None
    model.missing_ = table.layout.fill
    return table


def same_columns(model: Any, table: Table, other: Any) -> Table:
    """Return a validation table, after checking that it has the columns of the table of `fit`.

    Raises
    ------
    ValueError
        If it is no table, or has other features, no labels or no query ids.
    """
    if not isinstance(other, Table):
        raise ValueError(
            f"validation must be a table, as X is: use scan, got {type(other).__name__}"
        )
    other = other.widened(table.n_features).with_features(table.feature_names)
    if other.feature_names != table.feature_names or other.n_features != table.n_features:
        raise ValueError(
            "validation must have the features of the table of fit, "
            f"{table.feature_names or table.n_features}, got "
            f"{other.feature_names or other.n_features}"
        )
    if other.has_queries != table.has_queries:
        raise ValueError("validation must have query ids if the table of fit has, and only then")
    other.require_labels("validation")
    other.survey()
    fill = table.layout.fill
    filled: Table = other.filled() if fill is None else other.filling(fill)
    return filled


def block_readers(model: Any, table: Table, feature_map: Any) -> list[BlockReader]:
    """Return a reader for each of the inputs that the model chooses from; see `begin_fit`.

    A clone of `feature_map` is fitted to what each of them makes.

    Rows are drawn for what needs them: quantiles, landmarks and the widths of kernels are found
    from at most `SAMPLE_ROWS` rows, which do not depend on the partitions. Scales are exact.
    """
    kinds = [check_inputs(kind) for kind in model._kinds()]
    draws = feature_map is not None or any(kind in QUANTILES for kind in kinds)
    if draws:
        rows = table.sample(SAMPLE_ROWS).rows
        assert rows.y is not None
        data = RankingData.delimit(rows.X, rows.y, sample_weight=rows.weights)
    else:  # the type and the number of features are enough
        data = one_row(table)
    moments = None
    readers = []
    for kind in kinds:
        inputs: FittedInputs | None = None
        if kind in QUANTILES:
            inputs = model._fit_inputs(data, kind)
        elif kind is not None:
            model._refuse_inputs(kind)
            found = moments = moments or table.run(MomentsTask(model.n_threads))
            inputs = replace(
                inputs_of_moments(
                    kind, found.lowest, found.highest, found.mean, found.squares, found.weight
                ),
                feature_names_in_=getattr(model, "feature_names_in_", None),
            )
        own = model._with_map(data, feature_map, inputs)
        prior = model._prior_of(whole_map(own))
        if prior is not None:
            model.prior_ = prior.model if prior.coef is None else None
            own = own.plus_offset(np.zeros(len(own.y)))  # so that it is known to have offsets
            names = getattr(prior.model, "feature_names_in_", None)
            if names is not None and table.feature_names not in (None, list(names)):
                raise ValueError(
                    f"prior: the table must have its features, {list(names)}, got "
                    f"{table.feature_names}"
                )
            prior = prior.without_names()
        own = own.take(np.arange(1))  # which the maps and inputs do not need any more
        readers.append(BlockReader(own, None if prior is None else prior.scores, model.n_threads))
    return readers
