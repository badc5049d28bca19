"""Data sets of a fit: rows that are given as arrays, or a table of `scan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.cached import cached_property
from pairgram._support.checks import ArgumentError
from pairgram.data.dataset import RankingData, RowInfo
from pairgram.features.base import is_known
from pairgram.features.input_map import whole_map
from pairgram.features.inputs import FittedInputs, check_inputs, inputs_of_moments
from pairgram.model_selection.judge import Judge, TableJudge, table_metric
from pairgram.model_selection.splits import Folds, default_cv
from pairgram.tables.blocks import SAMPLE_ROWS, Arrays, BlockReader, Blocks, Dataset, one_row
from pairgram.tables.survey import Moments, MomentsTask
from pairgram.tables.table import Table, as_table


def rows_of_fit(model: Any, X: Any, y: ArrayLike | None, info: RowInfo) -> ArrayRows | TableRows:
    """Check the rows that `fit` is given, and return them."""
    table = as_table(X, y=y, **info._asdict())
    if table is not None:
        return TableRows(model, begin_fit(model, table))
    return ArrayRows(model, X, y, info)


class ArrayRows:
    """Rows that `fit` is given as arrays.

    Attributes
    ----------
    has_queries : bool
        Whether queries were given, by ids or by sizes.
    """

    def __init__(self, model: Any, X: Any, y: ArrayLike | None, info: RowInfo) -> None:
        self._model, self._X, self.has_queries = model, X, info.has_queries
        self._data: RankingData = model._check_rows(X, y, info)
        self._has_columns = not model._no_columns
        if not self._has_columns:  # the scores of a prior are the same for all maps
            self._data = model._with_prior(X, self._data)
        model._warn_of_missing_queries(self._data, info)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self._data.y)

    def fitted(self, kind: str | None, feature_map: Any) -> Arrays[RankingData]:
        """Return the rows with inputs and a clone of a feature map that are fitted to them.

        The scores of the model's prior are added to their offset.
        """
        model, data = self._model, self._data
        data = model._with_map(data, feature_map, model._fit_inputs(data, kind))
        if self._has_columns:
            data = model._with_prior(self._X, data)
        return Arrays(data, data)

    def judge(self, data: Dataset[RankingData], maps: Sequence[Any], validation: Any) -> Judge:
        """Return which rows a search holds out, and what judges them.

        Parameters
        ----------
        data : Dataset of RankingData
            The rows, with the inputs alone, if there is one kind of them.
        maps : list of transformer or None
            The feature maps to choose from.
        validation : a value as in `RankSVMCV.fit`
        """
        model, pattern = self._model, data.pattern
        ours = any(feature_map is None or is_known(feature_map) for feature_map in maps)
        held_map = whole_map(pattern) if ours else maps[0]
        cv, held = model._held_rows(held_map, self.has_queries, model.cv, validation)
        if cv is None and held is None:
            cv = default_cv(pattern.queries.n_filled, len(pattern.y))
        return Judge.make(pattern, cv, held, model.scoring, model.n_threads, model.store_held_out)


class TableRows:
    """The rows of a table, whose missing values are filled."""

    def __init__(self, model: Any, table: Table) -> None:
        self._model, self.table, self.has_queries = model, table, table.has_queries

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.table.survey().n_rows

    @cached_property
    def _drawn(self) -> RankingData:
        """At most `SAMPLE_ROWS` rows, which do not depend on the partitions."""
        rows = self.table.sample(SAMPLE_ROWS).rows
        assert rows.y is not None
        return RankingData.delimit(rows.X, rows.y, sample_weight=rows.weights)

    @cached_property
    def _moments(self) -> Moments:
        """What scales are made of; they are exact."""
        return self.table.reduce(MomentsTask(self._model.n_threads))

    def reader(self, kind: str | None, feature_map: Any) -> BlockReader:
        """Return what makes rows of the table into blocks with inputs and a map.

        Quantiles, landmarks and the widths of kernels are found from rows that are drawn.
        """
        model, table, kind = self._model, self.table, check_inputs(kind)
        draws = feature_map is not None or kind in QUANTILES
        data = self._drawn if draws else one_row(table)  # the type and the number of features
        inputs: FittedInputs | None = None
        if kind in QUANTILES:
            inputs = model._fit_inputs(data, kind)
        elif kind is not None:
            model._refuse_inputs(kind)
            found = self._moments
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
                raise ArgumentError(
                    "prior",
                    f": the table must have its features, {list(names)}, got {table.feature_names}",
                )
            prior = prior.without_names()
        own = own.take(np.arange(1))  # which the maps and inputs do not need any more
        return BlockReader(own, None if prior is None else prior.scores, model.n_threads)

    def fitted(self, kind: str | None, feature_map: Any) -> Blocks[RankingData]:
        """Return the blocks of the table with inputs, a map, and the scores of the prior."""
        reader = self.reader(kind, feature_map)
        return Blocks(self.table, reader.pattern, (reader.data,))

    def judge(self, data: Dataset[RankingData], maps: Sequence[Any], validation: Any) -> TableJudge:
        """Return which rows a search holds out, and what judges them."""
        model, table, folds = self._model, self.table, None
        if model.store_held_out:
            raise ValueError("store_held_out must be False for a table: its rows are not kept")
        if validation is not None:
            if model.cv is not None:
                raise ValueError(
                    f"give cv or validation, not both: got cv={model.cv!r} and a table"
                )
            table = same_columns(model, table, validation)
        else:
            if not all(feature_map is None or is_known(feature_map) for feature_map in maps):
                raise ValueError(
                    "feature_map must be one of this package for folds of a table, because others "
                    "are fitted to the rows of every split: give validation= another table"
                )
            survey = table.survey()
            cv = default_cv(survey.n_queries, survey.n_rows) if model.cv is None else model.cv
            folds = Folds.of(table, cv)
        metric = table_metric(table, model.scoring)
        return TableJudge(table, metric, folds, model.n_threads)


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
    given, other = other, as_table(other)
    if other is None:
        raise ArgumentError(
            "validation", f" must be a table, as X is: use scan, got {type(given).__name__}"
        )
    other = other.widened(table.n_features).with_features(table.feature_names)
    if other.feature_names != table.feature_names or other.n_features != table.n_features:
        raise ArgumentError(
            "validation",
            " must have the features of the table of fit, "
            f"{table.feature_names or table.n_features}, got "
            f"{other.feature_names or other.n_features}",
        )
    if other.has_queries != table.has_queries:
        raise ArgumentError(
            "validation", " must have query ids if the table of fit has, and only then"
        )
    other.require_labels("validation")
    other.survey()
    fill = table.layout.fill
    filled: Table = other.filled() if fill is None else other.filling(fill)
    return filled


def block_readers(model: Any, table: Table, feature_map: Any) -> list[BlockReader]:
    """Return a reader for each of the inputs that the model chooses from; see `begin_fit`.

    A clone of `feature_map` is fitted to what each of them makes.
    """
    rows = TableRows(model, table)
    return [rows.reader(kind, feature_map) for kind in model._kinds()]
