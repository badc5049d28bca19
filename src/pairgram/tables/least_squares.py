"""Fit least squares to tables: a pass for the statistics, and one to hold queries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np

from pairgram._support.checks import ONE_QUERY, ArgumentError, Rows, Vector
from pairgram._support.machine import single_threaded_blas
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
from pairgram.data.queries import Queries
from pairgram.features.base import node_map_of, rounding_of
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
from pairgram.solvers.statistics import NO_GRAM, clear_noise, mean_of, require_gram, sums_of
from pairgram.tables.blocks import Blocks
from pairgram.tables.columns import TableRows
from pairgram.tables.judge import Folds, TableJudge, linear_scores, parts_of
from pairgram.tables.passes import join_by_key
from pairgram.tables.survey import MOST_LEVELS, Survey
from pairgram.tables.table import Table


class LevelSums(NamedTuple):
    """The statistics of some rows, before the means of the labels are compared.

    Attributes
    ----------
    degrees : ndarray of shape (n_levels,)
        ``D_l``.
    weights : ndarray of shape (n_levels,)
    origin : ndarray of shape (n_features + 1,)
        One of the rows of [H, y], so that a large common offset costs no digits.
    means : ndarray of shape (n_levels, n_features + 1)
        The means of [H, y] over the rows of every label, less the origin.
    sums : ndarray of shape (n_features + 1, n_features + 1)
        ``Σ_l D_l S_l``.
    rounding : ndarray of shape (n_features,)
        The size of the rounding errors of H, if compiled code makes it, otherwise 0.
    n_rows : int
    """

    degrees: Vector
    weights: Vector
    origin: Vector
    means: Vector
    sums: Vector
    rounding: Vector
    n_rows: int

    def __add__(self, other: Any) -> LevelSums:
        """Return the statistics of the rows of both, by Chan's formula for every label."""
        weights = self.weights + other.weights
        share = np.divide(other.weights, weights, out=np.zeros_like(weights), where=weights > 0)
        difference = (other.origin - self.origin) + other.means - self.means
        between = self.degrees * self.weights * share
        with single_threaded_blas:
            sums = self.sums + other.sums + difference.T @ (between[:, None] * difference)
        means = self.means + share[:, None] * difference
        return self._replace(
            weights=weights,
            means=means,
            sums=sums,
            rounding=np.maximum(self.rounding, other.rounding),
            n_rows=self.n_rows + other.n_rows,
        )


@dataclass(frozen=True, eq=False)
class LevelPairs:
    """The pairs of all rows of a table, and how their statistics are summed.

    Attributes
    ----------
    settings : Pairs
    within : Pairs
        The settings by which rows of one label are compared with their mean.
    levels : ndarray of shape (n_levels,), ascending
    degrees : ndarray of shape (n_levels,)
        ``D_l``.
    pair_weights : ndarray of shape (n_levels, n_levels)
        ``V_l V_k ω(l, k)``.
    factor : float
        What the weighting multiplies sums by.
    """

    settings: Pairs
    within: Pairs
    levels: Vector
    degrees: Vector
    pair_weights: Vector
    factor: float

    @classmethod
    def of(cls, settings: Pairs, survey: Survey) -> LevelPairs | None:
        """Return the pairs of a table, or None if their statistics need no weights of labels.

        Raises
        ------
        ValueError
            If the table has too many labels, or if ω is not as it must be.
        """
        if not settings.joins_all_rows or settings.compiled == "kept":
            return None
        if survey.levels is None:
            raise ArgumentError(
                None,
                f"{{pairs={settings.kind!r}}} with {{scope='global'}} takes at most "
                f"{MOST_LEVELS:,} distinct labels in a table, got more: the weight of every label "
                "is needed first. Give {pairs='with_ties'}, which takes any labels",
            )
        levels, weights = survey.levels
        found = settings.levels(levels)
        omega = 1.0 - np.eye(len(levels)) if found is None else found[1]
        with np.errstate(over="ignore", invalid="ignore"):  # the weight of all pairs is checked
            degrees, pair_weights = omega @ weights, weights[:, None] * omega * weights
            total, both = np.asarray(weights.sum()), np.asarray(pair_weights.sum())
        factor = float(settings.factor(total, both))
        within = Pairs(weighting="documents", target=settings.target)
        return cls(settings, within, levels, degrees, pair_weights, factor)

    @property
    def pair_weight(self) -> float:
        """``Σ_ij W_ij`` over both orders of every pair and the diagonal."""
        return float(self.factor * self.pair_weights.sum())

    @property
    def n_with_pairs(self) -> int:
        """The number of labels whose rows form pairs; 0 unless rows of two labels count."""
        n_levels = int(np.count_nonzero(self.pair_weights.any(axis=1)))
        return n_levels if n_levels > 1 else 0

    def sums(self, data: RankingData) -> LevelSums:
        """Return the statistics of some rows."""
        numbers = self._numbers(data.y)
        queries = Queries.make(len(numbers), qid=numbers)
        assert queries.ids is not None
        labelled = replace(data, queries=queries, query_weights=self.degrees[queries.ids])
        sums, _, _ = sums_of(labelled, self.within)
        _, origin, _ = mean_of(data.take(np.arange(1)), self.within)
        weights, means = np.zeros(len(self.levels)), np.zeros((len(self.levels), len(sums)))
        for level in queries.ids.tolist():
            part = data.take(np.flatnonzero(numbers == level))
            weights[level], first, mean = mean_of(part, self.within)
            means[level] = first - origin + mean
        rounding = np.zeros(len(origin) - 1)
        if node_map_of(data.feature_map, data.X.dtype) is not None:
            rounding = rounding_of(data.feature_map, data.X[:256])
        return LevelSums(self.degrees, weights, origin, means, sums, rounding, len(numbers))

    def _numbers(self, y: Vector) -> Rows:
        numbers = np.searchsorted(self.levels, y)
        known = self.levels[np.minimum(numbers, len(self.levels) - 1)] == y
        if not known.all():
            raise ValueError(
                "the table changed while it was read: it has a new label "
                f"{y[int(np.argmin(known))]}"
            )
        return numbers

    def gram(self, found: LevelSums) -> PairSums:
        """Return the statistics of all pairs."""
        known = self.pair_weights.any(axis=1)
        means = found.means - found.means[known].mean(axis=0) if known.any() else found.means
        off = self.pair_weights - np.diag(np.diag(self.pair_weights))
        with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):
            laplacian = np.diag(off.sum(axis=1)) - off
            sums = self.factor * (found.sums + means.T @ laplacian @ means)
        sums = np.asarray((sums + sums.T) / 2)
        if found.rounding.any():  # outputs that differ only by rounding do not differ
            clear_noise(sums, np.append(self.pair_weight * found.rounding**2, 0.0), 1.0)
        return PairSums(
            self.settings,
            n_rows=found.n_rows,
            n_queries=1,
            sums=sums,
            sums_weight=self.pair_weight,
            varying=np.zeros(len(sums) - 1, np.int64),
        )


class Totals(NamedTuple):
    """The statistics of one fold, of the queries of some rows, for one combination of settings.

    Attributes
    ----------
    gram : PairSums, or LevelSums while they are summed
        Its feature map is None: what reads the rows has it.
    spread : float
        The largest range of the targets of a query, or of a block; see `PathTies`.
    n_with_pairs : int
        The number of queries that have pairs. If all rows form pairs with each other, it is the
        number of rows that have weight, or, where weights depend on two labels, of labels whose
        rows have pairs.
    """

    gram: Any
    spread: float
    n_with_pairs: int

    @classmethod
    def of(cls, data: RankingData, settings: Pairs, levels: LevelPairs | None) -> Totals:
        """Return the statistics of some rows."""
        if levels is not None:
            spread = float(np.ptp(data.target(levels.within)))
            return cls(levels.sums(data), spread, levels.n_with_pairs)
        gram = replace(PairSums.of(data, settings), feature_map=None)
        # Pairs of all rows may be pairs of rows of different blocks.
        counted = data.v > 0 if settings.joins_all_rows else data.has_pairs(settings)
        return cls(gram, spread_of(data, settings), int(counted.sum()))

    def join(self, other: Totals) -> Totals:
        """Return the statistics of both."""
        gram, levels = other.gram, isinstance(other.gram, LevelSums)
        if not levels:  # a sent ω is another object
            gram = replace(gram, settings=self.gram.settings)
        n_with_pairs = self.n_with_pairs + (0 if levels else other.n_with_pairs)
        return Totals(self.gram + gram, max(self.spread, other.spread), n_with_pairs)

    def has_pairs(self, settings: Pairs) -> bool:
        """Tell whether any pair counts."""
        return self.n_with_pairs > (1 if settings.joins_all_rows else 0)

    def with_pairs(self, settings: Pairs) -> PairSums:
        """Return the statistics; it is a ValueError if no pair counts, or if weights overflow."""
        if not self.has_pairs(settings):
            raise no_pairs(settings, self.gram.n_rows)
        weight = self.gram.pair_weight
        if not SMALLEST_PAIR_WEIGHT <= weight <= LARGEST_PAIR_WEIGHT:
            raise ArgumentError(
                "weight",
                f": the weights of all pairs, products of two, add up to {weight:.1g}, want "
                f"{SMALLEST_PAIR_WEIGHT:g} to {LARGEST_PAIR_WEIGHT:g}",
            )
        return self.gram


# What makes rows of whole queries into data, and statistics by the number of this, by the settings
# (or their number, because an ω that was sent elsewhere is another object), and by the fold.
Reader = Callable[[TableRows], RankingData]
Found = dict[tuple[int, Any, int], Totals]


def statistics_of(
    table: Table,
    readers: Sequence[Reader],
    settings: Sequence[Pairs],
    folds: Folds | None,
) -> Found:
    """Return the statistics of a table, which is read once.

    Raises
    ------
    ValueError
        If the pairs of all rows need the weight of every label, and there are too many labels.
    """
    distinct, survey = tuple(dict.fromkeys(settings)), table.survey()
    whole = not all(one.joins_all_rows for one in distinct)  # one scope holds for all of them
    pairs = [(one, LevelPairs.of(one, survey)) for one in distinct]
    block = partial(_statistics, readers, pairs, folds)
    found = table.reduce(Task(block, join_by_key, needs_queries=whole))
    totals = {}
    for (number, at, fold), one in found.items():
        own, levels = pairs[at]
        gram = one.gram if levels is None else levels.gram(one.gram)
        totals[number, own, fold] = one._replace(gram=replace(gram, settings=own))
    return totals


def _statistics(
    readers: Sequence[Reader],
    pairs: Sequence[tuple[Pairs, LevelPairs | None]],
    folds: Folds | None,
    rows: TableRows,
) -> Found:
    """Return the statistics of some rows of whole queries, for every reader and fold."""
    return {
        (number, at, fold): Totals.of(data, *one)
        for number, reader in enumerate(readers)
        for fold, data in parts_of(reader(rows), rows, folds)
        for at, one in enumerate(pairs)
    }


def warn_of_equal_table(table: Table, totals: Found) -> None:
    """Warn if pairs of a table are all tied, as `LinearRanker` does for arrays."""
    if any(key[1].compiled != "kept" for key in totals):
        return
    if any(key[1].joins_all_rows for key in totals):
        levels = table.survey().levels  # None stands for many labels
        differ = levels is None or bool(np.count_nonzero(levels[1]) > 1)
    else:
        differ = any(one.spread > 0 for one in totals.values())
    if not differ:
        warn_of_equal_labels()


def solve_path(
    parts: dict[int, Totals],
    coordinates: Coordinates,
    settings: Pairs,
    scale: bool,
    alphas: Vector | None,
    judge: TableJudge,
) -> tuple[Coordinates, Vector, Vector, Callable[[Judge, int], Vector]]:
    """Solve one combination of settings from the statistics of every fold.

    Returns
    -------
    coordinates : Coordinates
        With the statistics of all rows.
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
    whole = _sum_of(parts)
    total = whole.with_pairs(settings)
    coordinates.known[settings] = total
    rests = [] if judge.folds is None else _rests(parts, judge.folds, settings)
    if coordinates.constraint is not None:
        alphas, solved = coordinates.constrained(total, alphas, scale)
        found = [coordinates.constrained(rest, alphas, scale)[1] for rest in rests]
        return coordinates, alphas, solved, partial(linear_scores, found or [solved])
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
    return coordinates, alphas, ridge.coef(alphas), scores


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
    own = [parts.get(fold) for fold in range(folds.n)]
    before = [None, *accumulate(own, _joined)]
    after: Totals | None = None
    rests: list[Any] = []
    for fold in range(folds.n - 1, folds.first - 1, -1):
        rests.insert(0, _joined(before[fold], None if folds.is_forward else after))
        after = _joined(own[fold], after)
    for number, rest in enumerate(rests):
        if rest is None or not rest.has_pairs(settings):
            raise no_training_pairs(number)
    return [rest.gram for rest in rests]


def _joined(first: Totals | None, second: Totals | None) -> Totals | None:
    found = [one for one in (first, second) if one is not None]
    return reduce(Totals.join, found) if found else None


def _sum_of(parts: dict[int, Totals]) -> Totals:
    """Return the statistics of several folds, joined in their order."""
    return reduce(Totals.join, (parts[fold] for fold in sorted(parts)))


def refuse_folds(settings: Sequence[Pairs]) -> None:
    """Raise a ValueError if pairs of a table cannot be held out in folds."""
    for one in settings:
        if one.joins_all_rows and one.compiled != "kept":
            raise ArgumentError(
                "cv",
                f": {{pairs={one.kind!r}}} with {{scope='global'}} cannot be held out of a table "
                "in folds, because the weight of every label is that of all rows: give "
                "{validation=} another table, or {pairs='with_ties'}",
            )


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
    table, advice = ways[0].table, NO_GRAM
    if table.layout.sparse:
        advice = (
            f"take fewer features, or a machine with {table.bytes_in_memory / 2**30:.3g} GiB "
            "for the sparse rows, which in memory need no such matrix, or RankSVM, which reads "
            "them again and again"
        )
    readers: list[Reader] = []
    all_coordinates, folds = [], None if judge is None else judge.folds
    for way in ways:
        require_gram(way.pattern.n_features, TABLE_GRAM, advice)
        if any(spec.scales) or spec.constraint is not None:
            coordinates = spec._coordinates(way.pattern)
        else:
            coordinates = Coordinates.of_features(way.pattern, spec.settings)
        all_coordinates.append(coordinates)
        readers += Blocks.of(table, coordinates.data, scores).steps
    totals = statistics_of(table, readers, spec.settings, folds)
    if judge is None:
        (settings,), (scale,), (coordinates,) = spec.settings, spec.scales, all_coordinates
        assert spec.alphas is not None
        total = totals[0, settings, 0].with_pairs(settings)
        coordinates.known[settings] = total
        coef, sums, _ = coordinates.solve(settings, spec.alphas[0], scale=scale)
        fitted = {"form_": "primal", "_column_sums": sums}
        fitted |= spec._kept(ways[0].pattern, prior, {"coef_": coef})
    else:
        solved, models = [], []
        for number, settings, scale in product(range(len(ways)), spec.settings, spec.scales):
            parts = {
                fold: one
                for (own, pairs, fold), one in totals.items()
                if (own, pairs) == (number, settings)
            }
            known = all_coordinates[number], settings, scale, spec._descending
            coordinates, alphas, path, held_out = solve_path(parts, *known, judge)
            solved.append((ways[number].pattern, coordinates, settings, scale, alphas, path))
            models.append((held_out, number))
        judged = judge.judge(readers, models)
        candidates = [Candidate(*own, one) for own, one in zip(solved, judged, strict=True)]
        fitted = spec._chosen(candidates, judge.metric, prior)
    warn_of_equal_table(table, totals)
    return fitted
