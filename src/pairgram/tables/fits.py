"""Fit rankers to the rows of a table: least squares by statistics of its folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from pairgram._support import limits
from pairgram._support.checks import ONE_QUERY, ArgumentError, Vector
from pairgram._support.machine import cached_property
from pairgram._support.row_warnings import warn_of_equal_labels
from pairgram.data.blocks import Task
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import (
    LARGEST_PAIR_WEIGHT,
    SMALLEST_PAIR_WEIGHT,
    Pairs,
    no_pairs,
    no_training_pairs,
)
from pairgram.data.streams import as_stream
from pairgram.features.inputs import FittedInputs, inputs_of_moments, whole_map
from pairgram.features.row_values import Chain, Fill
from pairgram.model_selection.judge import Judge
from pairgram.model_selection.splits import held_by_default, refuse_validation
from pairgram.rankers.preparation import QUANTILES, GivenRows, Preparation, Search, SpecOf
from pairgram.rankers.prior import Prior
from pairgram.rankers.ridge import Candidate, RidgeSpec
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.hold_out import lists_out
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.path_judges import INSTEAD, TWO_QUERIES, PathTies, spread_of
from pairgram.solvers.ridge_path import RidgePath
from pairgram.solvers.statistics import require_gram
from pairgram.tables.columns import TableRows
from pairgram.tables.passes import join_by_key
from pairgram.tables.survey import Moments
from pairgram.tables.table import Table
from pairgram.tables.table_blocks import (
    Blocks,
    TableFolds,
    TableJudge,
    data_of_block,
    linear_scores,
    one_row,
    parts_of,
    table_metric,
)

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
        self._preparation, filler = preparation, preparation.filler
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
        return Blocks(table, own, partial(data_of_block, own, self._scores))

    def judge(
        self, data: Any, search: Search, validation: Validation, exact: bool = False
    ) -> TableJudge:
        """Return which rows a search holds out, and what judges them.

        If identities are `exact`, every query is held out in turn unless `cv` says otherwise.
        """
        held, folds, cv = self.table, None, search.cv
        leaves_out = exact and validation is None and cv is None
        refuse_validation(cv, validation is not None)
        if validation is not None:
            held = same_columns(self.table, validation)
        else:
            if cv is None:  # which warns if there are few queries
                cv = held_by_default(held.survey().n_queries, sum(held.n_rows()))
            folds = None if leaves_out else TableFolds.of(held, cv)
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


class Totals(NamedTuple):
    """The statistics of one fold, of the queries of some rows, for one combination of settings.

    Attributes
    ----------
    gram : PairSums
        Its feature map is None: what reads the rows has it.
    spread : float
        The largest range of the targets of a query, or of a block; see `PathTies`.
    n_with_pairs : int
        The number of queries that have pairs. If all rows form pairs with each other, it is the
        number of rows that have weight.
    """

    gram: PairSums
    spread: float
    n_with_pairs: int

    @classmethod
    def of(cls, data: RankingData, settings: Pairs) -> Totals:
        """Return the statistics of some rows."""
        gram = replace(PairSums.of(data, settings), feature_map=None)
        # Pairs of all rows may be pairs of rows of different blocks.
        counted = data.v > 0 if settings.joins_all_rows else data.has_pairs(settings)
        return cls(gram, spread_of(data, settings), int(counted.sum()))

    def join(self, other: Totals) -> Totals:
        """Return the statistics of both."""
        gram = replace(other.gram, settings=self.gram.settings)  # a sent ω is another object
        n_with_pairs = self.n_with_pairs + other.n_with_pairs
        return Totals(self.gram + gram, max(self.spread, other.spread), n_with_pairs)

    def has_pairs(self, settings: Pairs) -> bool:
        """Tell whether any pair counts."""
        return self.n_with_pairs > (1 if settings.joins_all_rows else 0)

    def with_pairs(self, settings: Pairs) -> PairSums:
        """Return the statistics of settings that are those of this process.

        Raises
        ------
        ValueError
            If no pair counts, or if weights overflow.
        """
        if not self.has_pairs(settings):
            raise no_pairs(settings, self.gram.n_rows)
        weight = self.gram.pair_weight
        if not SMALLEST_PAIR_WEIGHT <= weight <= LARGEST_PAIR_WEIGHT:
            raise ArgumentError(
                "weight",
                f": the weights of all pairs, products of two, add up to {weight:.1g}, want "
                f"{SMALLEST_PAIR_WEIGHT:g} to {LARGEST_PAIR_WEIGHT:g}",
            )
        return replace(self.gram, settings=settings)  # a sent ω is another object


# What makes rows of whole queries into data, and statistics by the number of this, the number of
# the settings, and the fold.
Reader = Callable[[TableRows], RankingData]
Found = dict[tuple[int, int, int], Totals]


def statistics_of(
    table: Table,
    readers: Sequence[Reader],
    settings: Sequence[Pairs],
    folds: TableFolds | None,
) -> Found:
    """Return the statistics of a table, which is read once."""
    whole = not all(one.joins_all_rows for one in settings)  # one scope holds for all of them
    block = partial(_statistics, readers, settings, folds)
    return table.reduce(Task(block, join_by_key, needs_queries=whole))


def _statistics(
    readers: Sequence[Reader],
    settings: Sequence[Pairs],
    folds: TableFolds | None,
    rows: TableRows,
) -> Found:
    """Return the statistics of some rows of whole queries, for every reader and fold."""
    return {
        (number, at, fold): Totals.of(data, one)
        for number, reader in enumerate(readers)
        for fold, data in parts_of(reader(rows), rows, folds)
        for at, one in enumerate(settings)
    }


def solve_path(
    parts: dict[int, Totals],
    coordinates: Coordinates,
    settings: Pairs,
    scale: bool,
    alphas: Vector | None,
    judge: TableJudge,
) -> tuple[Vector, Vector, Callable[[Judge, int], Vector]]:
    """Solve one combination of settings from the statistics of every fold.

    The coordinates then know the statistics of all rows.

    Returns
    -------
    alphas : ndarray of shape (n_alphas,), descending
    solved : ndarray of shape (n_alphas, n_dimensions)
        The models of all rows, in the coordinates.
    scores : callable
        What scores rows by models that have not seen them; see `HeldOutModels`.

    Raises
    ------
    ValueError
        If no pair counts, in all rows or without a fold; or if every query is to be held out
        and fewer than two have pairs.
    """
    whole = reduce(Totals.join, (parts[fold] for fold in sorted(parts)))
    total = whole.with_pairs(settings)
    coordinates.known[settings] = total
    rests = [] if judge.folds is None else _rests(parts, judge.folds, settings)
    if coordinates.constraint is not None:
        alphas, solved = coordinates.constrained(total, alphas, scale)
        found = [coordinates.constrained(rest, alphas, scale)[1] for rest in rests]
        return alphas, solved, partial(linear_scores, found or [solved])
    ridge = total.decompose(scale=scale, basis=judge.leaves_out)
    if alphas is None:
        alphas = ridge.default_alphas(coordinates.data.offset is not None)
    rounding = ridge.rounding(coordinates.data.dtype)
    ties = PathTies.at(ridge, alphas, whole.spread, rounding)
    if judge.leaves_out:
        if whole.n_with_pairs < 2:
            raise ArgumentError(None, f"{TWO_QUERIES}{{={INSTEAD}}}", found=ONE_QUERY)
        scores = partial(_left_out_scores, settings, ridge, ties)
    else:
        paths = [rest.decompose(scale=scale) for rest in rests] or [ridge]
        scores = partial(_fold_scores, [path.coef(ties.alphas) for path in paths], ties)
    return alphas, ridge.coef(alphas), scores


def _left_out_scores(
    settings: Pairs, ridge: RidgePath, ties: PathTies, judge: Judge, _: int
) -> Vector:
    """Return the scores of the rows of a judge by models without their queries."""
    data = judge.data
    found = lists_out(data, settings, ridge, data.held_together, ties.alphas)[0]
    return ties.join(judge.shared(found), data.queries)


def _fold_scores(coefs: Sequence[Vector], ties: PathTies, judge: Judge, fold: int) -> Vector:
    """Return the scores of the rows of a judge by models without their fold."""
    scores = linear_scores(coefs, judge, fold)
    return ties.join(scores, judge.data.queries)


def _rests(parts: dict[int, Totals], folds: TableFolds, settings: Pairs) -> list[PairSums]:
    """Return the statistics of all folds but one, for every fold."""
    own = [parts[fold] for fold in range(folds.n)]
    before = [*accumulate(own, Totals.join)]
    after = [*accumulate(reversed(own), lambda later, one: one.join(later))][::-1]
    rests = [
        reduce(Totals.join, before[:fold][-1:] + after[fold + 1 :][:1]) for fold in range(folds.n)
    ]
    for number, rest in enumerate(rests):
        if not rest.has_pairs(settings):
            raise no_training_pairs(number)
    return [rest.gram for rest in rests]


# A table takes memory for its Gram matrix, that of a block, and a solution.
TABLE_GRAM = 3


def fit_ridges(
    spec: RidgeSpec,
    ways: Sequence[Blocks[RankingData]],
    judge: TableJudge | None,
    prior: Prior | None,
    scores: Any,
) -> dict[str, Any]:
    """Return the attributes of the model that is fitted to a table, in one of several ways.

    The features are read once, and once more to judge scores. `scores` are those of the prior.
    """
    readers: list[Reader] = []
    all_coordinates, folds = [], None if judge is None else judge.folds
    for way in ways:
        require_gram(way.pattern.n_features, TABLE_GRAM)
        if any(spec.scales) or spec.constraint is not None:
            coordinates = spec._coordinates(way.pattern)
        else:
            coordinates = Coordinates.of_features(way.pattern, spec.settings)
        all_coordinates.append(coordinates)
        readers.append(partial(data_of_block, coordinates.data, scores))
    totals = statistics_of(ways[0].table, readers, spec.settings, folds)
    if judge is None:
        (settings,), (scale,), (coordinates,) = spec.settings, spec.scales, all_coordinates
        assert spec.alphas is not None
        total = totals[0, 0, 0].with_pairs(settings)
        coordinates.known[settings] = total
        coef, sums, _ = coordinates.solve(settings, spec.alphas[0], scale=scale)
        fitted = {"form_": "primal", "_column_sums": sums}
        fitted |= spec._kept(ways[0].pattern, prior, {"coef_": coef})
    else:
        solved, models = [], []
        pairs = [*enumerate(spec.settings)]
        for number, (at, settings), scale in product(range(len(ways)), pairs, spec.scales):
            parts = {key[-1]: one for key, one in totals.items() if key[:-1] == (number, at)}
            known = all_coordinates[number], settings, scale
            alphas, path, held_out = solve_path(parts, *known, spec._descending, judge)
            solved.append((ways[number].pattern, *known, alphas, path))
            models.append((held_out, number))
        judged = judge.judge(readers, models)
        candidates = [Candidate(*own, one) for own, one in zip(solved, judged, strict=True)]
        fitted = spec._chosen(candidates, judge.metric, prior)
    if spec.warns_of_ties and not any(one.gram.required()[-1, -1] > 0 for one in totals.values()):
        warn_of_equal_labels()
    return fitted
