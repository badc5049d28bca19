"""Fit rankers to the rows of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from pairgram._support import limits
from pairgram._support.checks import ArgumentError
from pairgram._support.machine import cached_property
from pairgram.data.dataset import RankingData
from pairgram.data.streams import as_stream
from pairgram.features.inputs import FittedInputs, inputs_of_moments, whole_map
from pairgram.features.row_values import Chain, Fill
from pairgram.model_selection.splits import held_by_default, refuse_validation
from pairgram.rankers.preparation import (
    QUANTILES,
    GivenRows,
    Preparation,
    Search,
    SpecOf,
)
from pairgram.rankers.prior import Prior
from pairgram.rankers.ridge import RidgeSpec
from pairgram.tables.least_squares import fit_ridges
from pairgram.tables.survey import Moments
from pairgram.tables.table import Table
from pairgram.tables.table_blocks import Blocks, one_row
from pairgram.tables.table_judge import Folds, TableJudge, table_metric

if TYPE_CHECKING:
    from pairgram.rankers.validation import Validation


class GivenTable(GivenRows):
    """The rows of a table, whose missing values are filled.

    Attributes
    ----------
    table : Table
    has_queries : bool
        Whether the table has query ids.
    prior : Prior or None
        What the parameter `prior` says. It is read when a reader is made, and the same for all.
    """

    prior: Prior | None = None
    _scores: Any = None  # of the prior

    def __init__(self, model: Any, table: Table, preparation: Preparation) -> None:
        """Check that the model can be fitted to the table.

        Raises
        ------
        ValueError
            If the model is fitted to no table; if the table has no labels, or no query ids where
            pairs are formed within queries; or if the rows of a query do not stand together.
        """
        if preparation.no_table:
            raise ValueError(preparation.no_table)
        name = type(model).__name__
        table.require_labels(f"{name}.fit")
        if table.is_of_clicks and not table.survey().labels.max() > 0:
            raise ArgumentError(
                None, f"the table has no click: {name}.fit wants labels above 0 where one clicked"
            )
        self.has_queries = table.has_queries
        if model._needs_queries:
            table.require_queries(None, f"{name}.fit compares rows within queries")
        table.survey()
        self._model, self._preparation, filler = model, preparation, preparation.filler
        self.table = table if filler is None else table.filled(filler.checked_value())
        model.n_features_in_ = self.table.n_features
        model.__dict__.pop("feature_names_in_", None)
        if self.table.feature_names is not None:
            model.feature_names_in_ = np.array(self.table.feature_names, dtype=object)

    def spec_of(self, spec: SpecOf) -> SpecOf:
        """Return what is fitted to rows like these: to labels or clicks."""
        return spec.of_clicks() if self.table.is_of_clicks else spec

    @property
    def fill(self) -> Fill | None:
        """What takes the place of missing values, or None."""
        filler, table = self._preparation.filler, self.table
        return filler and clone(filler)._of(table.layout.fill, table.feature_names)

    @cached_property
    def _drawn(self) -> RankingData:
        """At most `Limits.sample_rows` rows, which do not depend on the partitions."""
        rows = self.table.sample(limits.now.sample_rows).rows
        assert rows.y is not None
        return RankingData.delimit(rows.X, rows.y, sample_weight=rows.weights)

    @cached_property
    def _moments(self) -> Moments:
        """What scales are made of; they are exact."""
        return self.table.of_rows(Moments.of, Moments.join)

    def fitted(self, way: Chain) -> Blocks[RankingData]:
        """Return the blocks of the table with inputs, a map, and the scores of the prior.

        Quantiles, landmarks and the widths of kernels are found from rows that are drawn.
        """
        table, kind, preparation = self.table, way.kind, self._preparation
        draws = way.then is not None or kind in QUANTILES
        # Otherwise the type and the number of features are enough.
        data = self._drawn if draws else one_row(table)
        if table.feature_names is not None:
            data = replace(data, names=np.array(table.feature_names, dtype=object))
        inputs: FittedInputs | None = None
        if kind in QUANTILES:
            inputs = preparation.inputs(data, kind)
        elif kind is not None:
            found = self._moments
            variance = found.squares / (found.weight or 1.0)  # a fit refuses weights of 0
            known = found.lowest, found.highest, found.mean, variance
            inputs = inputs_of_moments(kind, *known, sum(table.n_rows()))
            inputs = replace(inputs, feature_names_in_=data.names)
        own = preparation.with_map(data, way.then, inputs)
        if preparation.prior is not None:
            self.prior = Prior.of(preparation.prior, whole_map(own), preparation.no_columns)
            own = own.plus_offset(np.zeros(len(own.y)))  # so that it is known to have offsets
            self._scores = self.prior.of_filled(table.feature_names, "the table").scores
        own = own.take(np.arange(1))  # which the maps and inputs do not need any more
        return Blocks.of(table, own, self._scores)

    def judge(
        self, data: Any, search: Search, validation: Validation, exact: bool = False
    ) -> TableJudge:
        """Return which rows a search holds out, and what judges them.

        If identities are `exact`, every query, or every group, is held out in turn unless `cv` says
        otherwise.
        """
        held, folds = self.table, None
        leaves_out = exact and validation is None and search.cv is None
        refuse_validation(search.cv, validation is not None)
        if validation is not None:
            held = same_columns(self.table, validation)
        else:
            survey, cv, groups = held.survey(), search.cv, held.survey().group_of
            n_held = survey.n_queries if groups is None else int(groups.max()) + 1
            n_bytes = 8.0 * n_held * (held.n_features + 1) ** 2
            each_group = leaves_out and groups is not None and n_bytes <= limits.now.groups_bytes
            if cv is None:
                cv = held_by_default(n_held, sum(held.n_rows()), each_group)
            folds = None if leaves_out and groups is None else Folds.of(held, cv)
            leaves_out &= folds is None or cv is None
        metric = table_metric(held, search.scoring)
        return TableJudge(held, metric, folds, leaves_out)

    def least_squares(self, spec: RidgeSpec, validation: Validation) -> dict[str, Any]:
        """Return the attributes of a model of least squares."""
        for one in spec.settings:
            if one.joins_all_rows and one.compiled != "kept":
                raise ArgumentError(
                    None,
                    f"{{pairs={one.kind!r}}} with {{scope='global'}} needs all rows in memory, "
                    "because the weight of every label is needed first: give rows that fit, or "
                    "{pairs='with_ties'}",
                )
        judge = None
        if spec.search is not None:
            all_rows = any(one.joins_all_rows for one in spec.settings)
            exact = spec.constraint is None and not all_rows
            judge = self.judge(None, spec.search, validation, exact)
        ways = [self.fitted(way) for way in spec.rows.ways]
        return fit_ridges(spec, ways, judge, self.prior, self._scores)


def same_columns(table: Table, other: Any) -> Any:
    """Return a validation table, after checking that it has the columns of the table of `fit`.

    Raises
    ------
    ValueError
        If it is no table, or has other features, no labels or no query ids.
    """
    given, other = other, as_stream(other)
    if other is None:
        raise ArgumentError(
            "validation", f"must be a table, as X is: use scan, got {type(given).__name__}"
        )
    other = other.with_features_of_fit(table.n_features, table.feature_names, "validation")
    if other.has_queries != table.has_queries:
        raise ArgumentError(
            "validation", "must have query ids if the table of fit has, and only then"
        )
    other.require_labels("validation")
    other.survey()
    return other.filling(table.layout.fill)
