"""Fit least squares to tables: a pass for the statistics, and one to hold queries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from pairgram._support.arrays import BLOCK_ROWS, blocks
from pairgram._support.checks import ONE_QUERY, ArgumentError, Rows, Vector
from pairgram._support.machine import single_threaded_blas
from pairgram._support.row_warnings import warn_of_equal_labels
from pairgram.data.dataset import LARGEST_PAIR_WEIGHT, SMALLEST_PAIR_WEIGHT, RankingData
from pairgram.data.pairs import PairSettings, no_pairs, no_training_pairs
from pairgram.data.queries import Queries
from pairgram.features.base import node_map_of
from pairgram.metrics.metric import Metric
from pairgram.model_selection.judge import Judge, Judged, TableJudge
from pairgram.model_selection.splits import Folds, default_cv, parts_of
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.leave_out import (
    INSTEAD,
    ROUNDING,
    ROUNDING_OF_FLOAT32,
    TWO_QUERIES,
    PathTies,
    scores_in_primal,
    spread_of,
)
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath
from pairgram.solvers.statistics import clear_noise, sums_of
from pairgram.tables.blocks import BlockReader
from pairgram.tables.columns import TableRows
from pairgram.tables.survey import MOST_LEVELS, Survey
from pairgram.tables.table import Table

if TYPE_CHECKING:
    from pairgram._support.types import CV


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
    spread : float
        The largest range of the targets of a block; see `PathTies`.
    """

    degrees: Vector
    weights: Vector
    origin: Vector
    means: Vector
    sums: Vector
    rounding: Vector
    n_rows: int
    spread: float

    def join(self, other: LevelSums) -> LevelSums:
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
            spread=max(self.spread, other.spread),
        )


@dataclass(frozen=True, eq=False)
class LevelPairs:
    """The pairs of all rows of a table, and how their statistics are summed.

    Attributes
    ----------
    settings : PairSettings
    within : PairSettings
        The settings by which rows of one label are compared with their mean.
    levels : ndarray of shape (n_levels,), ascending
    degrees : ndarray of shape (n_levels,)
        ``D_l``.
    pair_weights : ndarray of shape (n_levels, n_levels)
        ``V_l V_k ω(l, k)``.
    factor : float
        What the weighting multiplies sums by.
    """

    settings: PairSettings
    within: PairSettings
    levels: Vector
    degrees: Vector
    pair_weights: Vector
    factor: float

    @classmethod
    def of(cls, settings: PairSettings, survey: Survey) -> LevelPairs | None:
        """Return the pairs of a table, or None if their statistics need no weights of labels.

        Raises
        ------
        ValueError
            If the table has too many labels, or if ω is not as it must be.
        """
        if not settings.joins_all_rows or settings.kind == "kept":
            return None
        levels, weights = survey.levels, survey.level_weights
        if levels is None or weights is None:
            raise ArgumentError(
                None,
                f"{{pairs={settings.pairs!r}}} with {{scope='global'}} takes at most "
                f"{MOST_LEVELS:,} distinct labels in a table, got more: the weight of every label "
                "is needed first. Give {pairs='with_ties'}, which takes any labels",
            )
        found = settings.levels(levels)
        omega = 1.0 - np.eye(len(levels)) if found is None else found[1]
        with np.errstate(over="ignore", invalid="ignore"):  # the weight of all pairs is checked
            degrees, pair_weights = omega @ weights, weights[:, None] * omega * weights
            total, both = np.asarray(weights.sum()), np.asarray(pair_weights.sum())
        factor = float(settings.factor(total, both))
        within = PairSettings("with_ties", "query", "documents", settings.target)
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

    def sums(self, data: RankingData, n_threads: int | None) -> LevelSums:
        """Return the statistics of some rows."""
        numbers = self._numbers(data.y)
        queries = Queries.make(len(numbers), qid=numbers)
        assert queries.ids is not None
        labelled = replace(data, queries=queries, query_weights=self.degrees[queries.ids])
        sums, _ = sums_of(labelled, self.within, n_threads)
        n_levels = len(self.levels)
        targets = data.target(self.within)
        origin = np.append(data.features(slice(0, 1))[0], targets[0]).astype(np.float64)
        weights = np.bincount(numbers, data.v, minlength=n_levels).astype(np.float64)
        means = np.zeros((n_levels, len(origin)))
        share = data.v / np.where(weights > 0, weights, 1.0)[numbers]
        with single_threaded_blas:
            for rows in blocks(len(numbers), BLOCK_ROWS):
                values = np.column_stack([data.features(rows), targets[rows]]) - origin
                places = (numbers[rows], np.arange(len(values)))
                shape = (n_levels, len(values))
                means += scipy.sparse.csr_array((share[rows], places), shape) @ values
        rounding = np.zeros(len(origin) - 1)
        if node_map_of(data.feature_map, data.X.dtype) is not None:
            rounding = data.feature_map._rounding(data.X[:256])
        return LevelSums(
            self.degrees,
            weights,
            origin,
            means,
            sums,
            rounding,
            len(numbers),
            float(np.ptp(targets)),
        )

    def _numbers(self, y: Vector) -> Rows:
        numbers = np.searchsorted(self.levels, y)
        known = self.levels[np.minimum(numbers, len(self.levels) - 1)] == y
        if not known.all():
            raise ValueError(
                "the table changed while it was read: it has a new label "
                f"{y[int(np.argmin(known))]}"
            )
        return numbers

    def gram(self, found: LevelSums, counts: bool) -> PairSums:
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
        return PairSums.of_all_rows(
            sums, self.pair_weight, found.n_rows, self.settings, counts=counts
        )


class Totals(NamedTuple):
    """The statistics of one fold, of the queries of some rows, for one combination of settings.

    Attributes
    ----------
    gram : PairSums
        Its feature map is None: the reader of the rows has it.
    spread : float
        The largest range of the targets of a query; see `PathTies`.
    n_with_pairs : int
        The number of queries that have pairs. If all rows form pairs with each other, it is the
        number of rows that have weight, or, where weights depend on two labels, of labels whose
        rows have pairs.
    """

    gram: PairSums
    spread: float
    n_with_pairs: int

    def join(self, other: Totals) -> Totals:
        """Return the statistics of both."""
        others = replace(other.gram, settings=self.gram.settings)  # a sent ω is another object
        return Totals(
            self.gram + others,
            max(self.spread, other.spread),
            self.n_with_pairs + other.n_with_pairs,
        )

    def has_pairs(self, settings: PairSettings) -> bool:
        """Tell whether any pair counts."""
        return self.n_with_pairs > (1 if settings.joins_all_rows else 0)

    def with_pairs(self, settings: PairSettings) -> PairSums:
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


Key = tuple[int, PairSettings, int]  # the number of the reader, the settings, the fold
# The same by the number of the settings, because an ω that was sent elsewhere is another object.
Found = dict[tuple[int, int, int], Any]  # of Totals and of LevelSums


@dataclass(frozen=True, eq=False)
class StatisticsTask:
    """Sums the statistics for every reader, all settings of pairs, and every fold."""

    readers: tuple[BlockReader, ...]
    settings: tuple[PairSettings, ...]
    levels: tuple[LevelPairs | None, ...]
    counts: bool
    folds: Folds | None
    n_threads: int | None
    reads_features: bool = True
    needs_queries: bool = True

    def block(self, rows: TableRows) -> Found:
        """Return the statistics of some rows of whole queries."""
        found: Found = {}
        for number, reader in enumerate(self.readers):
            for fold, own in parts_of(reader.data(rows), rows, self.folds):
                for at, (settings, levels) in enumerate(
                    zip(self.settings, self.levels, strict=True)
                ):
                    found[number, at, fold] = (
                        self._totals(own, settings)
                        if levels is None
                        else levels.sums(own, self.n_threads)
                    )
        return found

    def _totals(self, data: RankingData, settings: PairSettings) -> Totals:
        gram = PairSums.of(data, settings, self.n_threads, counts=self.counts)
        gram = replace(gram, feature_map=None)
        # Pairs of all rows may be pairs of rows of different blocks.
        counted = data.v > 0 if settings.joins_all_rows else data.has_pairs(settings)
        return Totals(gram, spread_of(data, settings), int(counted.sum()))

    def join(self, first: Found, second: Found) -> Found:
        """Return the statistics of the rows of both."""
        joined = dict(first)
        for key, totals in second.items():
            joined[key] = joined[key].join(totals) if key in joined else totals
        return joined

    def totals(self, found: Found) -> dict[Key, Totals]:
        """Return the statistics of all rows."""
        totals = {}
        for (number, at, fold), one in found.items():
            settings, levels = self.settings[at], self.levels[at]
            if levels is not None:
                gram = levels.gram(one, self.counts)
                one = Totals(gram, one.spread, levels.n_with_pairs)
            gram = replace(one.gram, settings=settings)
            totals[number, settings, fold] = one._replace(gram=gram)
        return totals


def statistics_of(
    table: Table,
    readers: Sequence[BlockReader],
    settings: Sequence[PairSettings],
    counts: bool,
    folds: Folds | None,
    n_threads: int | None,
) -> dict[Key, Totals]:
    """Return the statistics of a table, which is read once.

    With `counts`, they count the queries in which each feature varies, as scaling needs.

    Raises
    ------
    ValueError
        If the pairs of all rows need the weight of every label, and there are too many labels.
    """
    distinct = tuple(dict.fromkeys(settings))
    whole = not all(one.joins_all_rows for one in distinct)  # one scope holds for all of them
    survey = table.survey()
    task = StatisticsTask(
        tuple(readers),
        distinct,
        tuple(LevelPairs.of(one, survey) for one in distinct),
        counts,
        folds,
        n_threads,
        needs_queries=whole,
    )
    return task.totals(table.reduce(task))


def warn_of_equal_table(table: Table, totals: dict[Key, Totals]) -> None:
    """Warn if pairs of a table are all tied, as `LinearRanker` does for arrays."""

    def differ() -> bool:
        if not any(key[1].joins_all_rows for key in totals):
            return any(one.spread > 0 for one in totals.values())
        weights = table.survey().level_weights  # None stands for many labels
        return weights is None or bool(np.count_nonzero(weights) > 1)

    if all(key[1].kind == "kept" for key in totals):
        warn_of_equal_labels(differ)


@dataclass(frozen=True, eq=False)
class TablePath:
    """The models of a path of ridges, and what a pass over the rows needs to judge them.

    Attributes
    ----------
    reader : int
        The number of the reader of the rows.
    settings : PairSettings
    scale : bool
    coordinates : Coordinates
    alphas : ndarray of shape (n_alphas,), descending
    solved : ndarray of shape (n_alphas, n_dimensions)
        The models of all rows, in the coordinates.
    ties : PathTies or None
        Where rows are held out by identities that leave rounding errors.
    ridge : RidgePath or None
        The path of all rows, if every query is held out in turn.
    coefs : ndarray of shape (n_folds, n_models, n_dimensions), or None
        The models without each fold, or the models of all rows for a validation table.
    """

    reader: int
    settings: PairSettings
    scale: bool
    coordinates: Coordinates
    alphas: Vector
    solved: Vector
    ties: PathTies | None
    ridge: RidgePath | None
    coefs: Vector | None

    @classmethod
    def of(
        cls,
        totals: dict[Key, Totals],
        reader: int,
        coordinates: Coordinates,
        settings: PairSettings,
        scale: bool,
        given: Vector | None,
        folds: Folds | None,
        leaves_out: bool,
    ) -> TablePath:
        """Solve one combination of settings.

        Raises
        ------
        ValueError
            If no pair counts, in all rows or without a fold; or if every query is to be held out
            and fewer than two have pairs.
        """
        parts = {key[2]: found for key, found in totals.items() if key[:2] == (reader, settings)}
        whole = _sum_of(parts)
        total = whole.with_pairs(settings)
        coordinates = replace(coordinates, _known={settings: total})
        alphas = None if given is None else np.sort(given)[::-1].copy()
        rests = []
        for fold in range(0 if folds is None else folds.n):
            rest = {number: part for number, part in parts.items() if number != fold}
            if not rest or not _sum_of(rest).has_pairs(settings):
                raise no_training_pairs(fold)
            rests.append(_sum_of(rest).gram)
        if coordinates.constraints is not None:
            alphas, solved = coordinates.constrained(total, alphas, scale)
            found = [coordinates.constrained(rest, alphas, scale)[1] for rest in rests]
            coefs = np.stack(found or [solved])
            return cls(reader, settings, scale, coordinates, alphas, solved, None, None, coefs)
        ridge = total.decompose(scale=scale, basis=leaves_out and folds is None)
        started = coordinates.data.offset is not None
        alphas = ridge.default_alphas(started) if alphas is None else alphas
        rounding = ROUNDING_OF_FLOAT32 if coordinates.data.dtype == np.float32 else ROUNDING
        ties = PathTies.at(ridge, alphas, whole.spread, rounding)
        solved = ridge.coef(alphas)
        if leaves_out and folds is None:
            if whole.n_with_pairs < 2:
                raise ArgumentError(None, f"{TWO_QUERIES}{{={INSTEAD}}}", found=ONE_QUERY)
            return cls(reader, settings, scale, coordinates, alphas, solved, ties, ridge, None)
        paths = [rest.decompose(scale=scale) for rest in rests] or [ridge]
        coefs = np.stack([path.coef(ties.alphas) for path in paths])
        return cls(reader, settings, scale, coordinates, alphas, solved, ties, None, coefs)

    def scores(self, judge: Judge, fold: int) -> Vector:
        """Return the scores of the rows of a judge by the models without a fold."""
        data, threads = judge.data, judge.n_threads
        if self.coefs is not None:
            scores = data.scores(slice(None), self.coefs[fold], threads)
        else:
            assert self.ridge is not None and self.ties is not None
            scores = scores_in_primal(data, self.settings, self.ridge, self.ties.alphas, threads)
        scores = judge.shared(scores)
        return scores if self.ties is None else self.ties.join(scores, data.queries, threads)


def _sum_of(parts: dict[int, Totals]) -> Totals:
    """Return the statistics of several folds, joined in their order."""
    return reduce(Totals.join, (parts[fold] for fold in sorted(parts)))


def folds_of(
    table: Table, cv: CV, settings: Sequence[PairSettings], constrained: bool
) -> Folds | None:
    """Return the folds of queries, or None if every query is held out in turn.

    Raises
    ------
    ValueError
        If `cv` is no number of folds and no `QueryKFold`, or if there are fewer queries than folds.
    """
    if cv is None and not (constrained or any(one.joins_all_rows for one in settings)):
        return None
    for one in settings:
        if one.joins_all_rows and one.kind != "kept":
            raise ArgumentError(
                "cv",
                f": {{pairs={one.pairs!r}}} with {{scope='global'}} cannot be held out of a table "
                "in folds, because the weight of every label is that of all rows: give "
                "{validation=} another table, or {pairs='with_ties'}",
            )
    survey = table.survey()
    return Folds.of(table, default_cv(survey.n_queries, survey.n_rows) if cv is None else cv)


def judge_table(
    table: Table,
    readers: Sequence[BlockReader],
    paths: Sequence[TablePath],
    metric: Metric,
    folds: Folds | None,
    n_threads: int | None,
) -> list[Judged]:
    """Judge the models of all paths by rows that they have not seen, in one pass over a table."""
    # The pass needs no statistics, which would be sent to every worker.
    empty = Coordinates(readers[0].pattern)
    sent = tuple(replace(path, coordinates=empty) for path in paths)
    judge = TableJudge(table, metric, folds, n_threads)
    return judge.judge([reader.data for reader in readers], sent)
