"""Fit least squares to tables: a pass for the statistics, and one to hold queries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate, product
from typing import Any, NamedTuple

from pairgram._support.checks import ONE_QUERY, ArgumentError, Vector
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
from pairgram.model_selection.judge import Judge
from pairgram.rankers.prior import Prior
from pairgram.rankers.ridge import Candidate, RidgeSpec
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.hold_out import lists_out
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.path_judges import (
    INSTEAD,
    TWO_QUERIES,
    PathTies,
    spread_of,
)
from pairgram.solvers.ridge_path import RidgePath
from pairgram.solvers.statistics import require_gram
from pairgram.tables.columns import TableRows
from pairgram.tables.passes import join_by_key
from pairgram.tables.table import Table
from pairgram.tables.table_blocks import Blocks, data_of_block
from pairgram.tables.table_judge import Folds, TableJudge, linear_scores, parts_of


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
    folds: Folds | None,
) -> Found:
    """Return the statistics of a table, which is read once."""
    whole = not all(one.joins_all_rows for one in settings)  # one scope holds for all of them
    block = partial(_statistics, readers, settings, folds)
    return table.reduce(Task(block, join_by_key, needs_queries=whole))


def _statistics(
    readers: Sequence[Reader],
    settings: Sequence[Pairs],
    folds: Folds | None,
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
    by_identities = judge.leaves_out and judge.folds is None
    ridge = total.decompose(scale=scale, basis=by_identities)
    if alphas is None:
        alphas = ridge.default_alphas(coordinates.data.offset is not None)
    rounding = ridge.rounding(coordinates.data.dtype)
    ties = PathTies.at(ridge, alphas, whole.spread, rounding)
    if by_identities:
        if whole.n_with_pairs < 2:
            raise ArgumentError(None, f"{TWO_QUERIES}{{={INSTEAD}}}", found=ONE_QUERY)
        scores = partial(_left_out_scores, settings, ridge, ties)
    else:
        paths = [
            rest.path_at(ridge.factor) if judge.leaves_out else rest.decompose(scale=scale)
            for rest in rests
        ] or [ridge]
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


def _rests(parts: dict[int, Totals], folds: Folds, settings: Pairs) -> list[PairSums]:
    """Return the statistics of the folds that train the model of every fold that is held out."""
    own = [parts[fold] for fold in range(folds.n)]
    before, after = [[], *([one] for one in accumulate(own, Totals.join))], list[Totals]()
    rests: list[Totals] = []
    for fold in range(folds.n - 1, folds.first - 1, -1):
        rests.insert(0, reduce(Totals.join, before[fold] + ([] if folds.is_forward else after)))
        after = [reduce(Totals.join, [own[fold], *after])]
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
