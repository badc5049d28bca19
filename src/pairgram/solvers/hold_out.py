"""Scores of held-out rows by models without their unit: a query, a fold, a row or an item.

Every kind of unit is a function that lists what the system of all rows loses, in the basis of its
eigenvectors. `hold_out` gives the scores. What identities do not hold for is refitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import blocks_of_parts
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import (
    cached_property,
    deadline,
    single_threaded_blas,
    thread_count,
)
from pairgram.data.dataset import RankingData, apply_half_laplacian, as_slice, without_features
from pairgram.data.pairs import Pairs, no_training_pairs
from pairgram.data.queries import Queries
from pairgram.features.feature_map import dense, score_features, unmade
from pairgram.model_selection.splits import GroupSplits, Splits
from pairgram.solvers.formulation import Statistics
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import BandPath, EigenPath, RidgePath, has_band, solve_ridge
from pairgram.solvers.statistics import mean_of

# Units that hold nearly all of a direction are held out by refits if the geometric mean of its
# eigenvalue and the largest is more than this many ridges. The identities would lose more digits.
LARGEST_HELD = 1e2
# L z is rounding error for rows whose weight is below this share of the largest.
SMALLEST_WEIGHT = 1e-10
# The band form gives held-out scores as differences from the targets. They lose digits where alpha
# is so many times λ_max, and the scores are as small beside the targets.
LARGEST_RIDGE = 1e3


class Units(NamedTuple):
    """Some units: what the system loses without each, and what is scored.

    Attributes
    ----------
    rows : ndarray of int64, or slice
        Where the scores belong, unit after unit.
    offsets : ndarray of shape (n_units + 1,), int64
        Where the rows of each unit begin and end.
    lost : ndarray of shape (n_rows, rank + 1), float64
        The rows B of all units, in the basis, unit after unit. The last column are the targets.
        Without a unit, the system is ``c (ZᵀZ − BᵀB)``.
    scored : ndarray of shape (n_rows, rank), float64
    scales : ndarray of shape (n_units,), float64, or None
        The factors c. If one is 0, the scores are 0. None stands for ones.
    levels : ndarray of shape (n_rows,), or number
        What is added to the scores.
    """

    rows: Rows | slice
    offsets: Rows
    lost: Vector
    scored: Vector
    scales: Vector | None = None
    levels: Vector | float = 0.0


def hold_out(
    eigen: EigenPath, alphas: Vector, units: Iterable[Units], n_rows: int
) -> tuple[Vector, Vector]:
    """Return the scores, (n_alphas, n_rows), and what the unit of each row holds, (n_rows,).

    A score is NaN if it would be rounding error. What a unit holds is the largest eigenvalue of a
    direction of which it has all but 1e-4, or 0. The alphas descend, and are ≥ 0.
    """
    scores, held = np.empty((len(alphas), n_rows)), np.empty(n_rows)
    path = eigen.eigenvalues, eigen.projection, alphas
    for own in units:
        deadline().require()
        with single_threaded_blas:
            found, of_units = _core.hold_out(
                *path, own.lost, own.scored, own.offsets, own.scales, thread_count()
            )
        scores[:, own.rows] = found + own.levels
        held[own.rows] = np.repeat(of_units, np.diff(own.offsets))
    return scores, held


def units_of_lists(
    labelled: RankingData,
    settings: Pairs,
    folds: Queries,
    rows_in_basis: Callable[[Rows | slice, RankingData], tuple[Vector, Vector]],
) -> Iterator[Units]:
    """List folds of whole lists: without one, its block of the half-Laplacian is lost.

    `rows_in_basis` returns two arrays of some rows in the basis. The rows of the first, (n_rows,
    rank + 1), may miss what is the same for all rows of a list, and their last column is free.
    Those of the second, (n_rows, rank), are scored.
    """
    order = np.arange(folds.n_rows) if folds.order is None else folds.order
    for first, last in blocks_of_parts(folds.offsets, limits.now.held_rows):
        offsets = folds.offsets[first : last + 1]
        rows = as_slice(order[offsets[0] : offsets[-1]])
        block = labelled.take(rows)
        lost, scored = rows_in_basis(rows, block)
        lost[:, -1] = block.target(settings)
        apply_half_laplacian(block.problem(settings), lost)
        yield Units(rows, offsets - offsets[0], lost, scored)


@dataclass(frozen=True, eq=False)
class RowRegression:
    """The pairs with ties of one query, or pointwise rows, as ridge regression on rows.

    With pairs with ties the objective is ``c Σ v (y − f − b)² + alpha ‖w‖²`` with an intercept b
    that has no ridge. Pointwise rows have the same objective without b. The factor c depends on the
    weight of the rows: without some of them, the ridge is ``alpha / c`` with the c of the others.

    Attributes
    ----------
    data : RankingData
        Rows of one query. If they came from several, the row weights include the query weights.
    settings : Pairs
    ridge : RidgePath
        The path of the problem of all rows.
    eigen : EigenPath
        That of `ridge`, divided by the factor. It belongs to ``Σ v z zᵀ``.
    factor : float
        The factor c of all rows.
    mean_y : float
        The mean target; 0 without an intercept.
    """

    data: RankingData
    settings: Pairs
    ridge: RidgePath
    eigen: EigenPath
    factor: float
    mean_y: float

    @classmethod
    def of(cls, data: RankingData, settings: Pairs, ridge: RidgePath) -> RowRegression:
        """Make the regression from the decomposed problem of all rows, for which it must hold."""
        data = in_one_query(data.as_scope(settings))
        v, eigen = data.v, ridge.eigen
        factor = float(factors_without(data, settings, np.zeros(1))[0]) or 1.0
        values, projection = eigen.eigenvalues / factor, eigen.projection / factor
        eigen = replace(eigen, eigenvalues=values, projection=projection)
        with_mean = settings.kind is not None and v.sum() > 0
        mean_y = float(v @ data.target(settings) / v.sum()) if with_mean else 0.0
        return cls(data, settings, ridge, eigen, factor, mean_y)

    def features(self, rows: Rows) -> Vector:
        """Return z, (n_rows, rank): the rows in the basis, measured from their mean."""
        if not self.ridge.is_dual:
            return self._products(rows)
        # In the dual form z follows from L z = factor · v (z − mean). A product with the basis
        # would lose half of the digits for a small eigenvalue.
        v = self.data.v[rows]
        told = v > SMALLEST_WEIGHT * self.data.v.max()
        z = self.ridge.rows_of_laplacian(rows)
        z /= np.where(told, self.factor * v, np.inf)[:, None]
        if not told.all():
            z[~told] = self._products(rows[~told])
        return z

    @cached_property
    def _mean_x(self) -> Vector:
        if self.settings.kind is None:
            return np.zeros(self.data.n_features)
        _, origin, offset = mean_of(self.data, self.settings)
        return (origin + offset)[:-1]

    def _products(self, rows: Rows) -> Vector:
        X = dense(self.data.features(rows))
        return np.asarray((X - self._mean_x) @ self.eigen.basis)

    def units(self, rows: Rows, offsets: Rows, z: Vector | None = None) -> Iterator[Units]:
        """List folds of rows, which stand fold after fold; `z` are all rows in the basis, if known.

        Scores are measured from the mean of the other rows, so that they are exactly 0 where no
        feature varies. Their mean target is the level. Both are 0 if no pair is left.
        """
        weight, targets = self.data.v.sum(), self.data.target(self.settings) - self.mean_y
        for first, last in blocks_of_parts(offsets, limits.now.held_rows):
            bounds = offsets[first : last + 1]
            part, bounds = rows[bounds[0] : bounds[-1]], bounds - bounds[0]
            v = self.data.v[part, None]
            scored = self.features(part) if z is None else z[part]
            lost, levels = np.column_stack([scored, targets[part]]), np.zeros(len(part))
            own = np.add.reduceat(v[:, 0], bounds[:-1])
            factors = factors_without(self.data, self.settings, own)
            if self.settings.kind is not None:
                # The means of the others are -share, since those of all rows are 0.
                left = np.where(factors > 0, weight - own, np.inf)[:, None]
                share = np.add.reduceat(v * lost, bounds[:-1]) / left
                of_rows = np.repeat(np.arange(last - first), np.diff(bounds))
                scored = scored + share[of_rows, :-1]
                lost += (share / (1 + np.sqrt(weight / left)))[of_rows]
                levels = np.where(factors > 0, self.mean_y - share[:, -1], 0.0)[of_rows]
            yield Units(part, bounds, np.sqrt(v) * lost, scored, factors, levels)


def in_one_query(data: RankingData) -> RankingData:
    """Return the rows of all queries as one query; query weights become part of row weights."""
    if data.queries.n_filled <= 1:
        return data
    weights = data.v * data.query_weight_of_rows
    queries = Queries.make(len(data.y))
    return replace(data, queries=queries, row_weights=weights, query_weights=None, group_of=None)


def factors_without(data: RankingData, settings: Pairs, weights: Vector) -> Vector:
    """Return the factor c of the remaining rows of a query, given the weights of those held out.

    It is 0 if no pair is left. The model is then constant.
    """
    weight = data.v.sum()
    left = weight - weights
    left = np.where(left > 1e-14 * weight, left, 0.0)
    return np.asarray(settings.scatter_factor(left) * data.query_weight_of_rows[0])


def is_one_regression(data: RankingData, settings: Pairs) -> bool:
    """Tell whether the rows form one `RowRegression`."""
    one = data.as_scope(settings).queries.n_filled == 1
    return one and settings.compiled in ("none", "kept")


def are_small(folds: Queries) -> bool:
    """Tell whether folds are held out by the band form of a system."""
    return has_band(folds.n_rows) and folds.sizes.max() <= limits.now.fold_share * folds.n_rows


def folds_out(
    data: RankingData, settings: Pairs, ridge: RidgePath, folds: Queries, alphas: Vector
) -> tuple[Vector, Vector]:
    """Return the scores of rows by models without their fold, and what the fold holds.

    Folds are any rows of a `RowRegression`, or those of `lists_out`.
    """
    n_rows = len(data.y)
    if is_one_regression(data, settings):
        regression = RowRegression.of(data, settings, ridge)
        rows = np.arange(n_rows) if folds.order is None else folds.order
        units = regression.units(rows, folds.offsets)
        return hold_out(regression.eigen, alphas, units, n_rows)
    return lists_out(data, settings, ridge, folds, alphas)


def lists_out(
    data: RankingData, settings: Pairs, ridge: RidgePath, folds: Queries, alphas: Vector
) -> tuple[Vector, Vector]:
    """Return `folds_out` of whole queries, or of any pointwise rows where they only give weights.

    In the primal form, `data` may be some of the queries that `ridge` is the path of. In the dual
    form, small folds are held out by the band form, which takes half of the time of eigenvectors.
    """
    n_rows = len(data.y)
    if not ridge.is_dual:
        return _queries_out(data, settings, ridge.eigen, folds, alphas)
    labelled = without_features(data).as_scope(settings)
    if settings.kind is None and settings.weighting != "queries":  # queries only give weights
        weights = data.v * data.query_weight_of_rows
        labelled = replace(labelled, queries=folds, row_weights=weights, query_weights=None)
    diagonal = _core.laplacian_diagonal(labelled.problem(settings))
    largest = float(diagonal.max(initial=0.0))
    if ridge.band is not None and are_small(folds):
        found = _by_band(data, labelled, settings, ridge.band, folds, alphas, largest)
        if found is not None:
            return found, np.zeros(n_rows)

    def rows_in_basis(part: Rows | slice, block: RankingData) -> tuple[Vector, Vector]:
        # z = K basis follows from L z = basis Λ. K is needed only for one row of each query, and
        # for rows with little or no weight or pairs.
        rows, problem = np.arange(n_rows)[part], block.problem(settings)
        pivots = _core.laplacian_pivots(problem, largest=largest)
        pivots = rows[pivots == np.arange(len(rows))]
        known = np.zeros((len(pivots), len(ridge.eigen.eigenvalues)))
        if len(pivots):
            known[:] = data.features(pivots) @ ridge.eigen.basis
        z = ridge.rows_of_laplacian(rows)
        _core.solve_laplacian(problem, z, known, largest=largest, n_threads=thread_count())
        return np.column_stack([z, np.empty(len(z))]), z

    units = units_of_lists(labelled, settings, folds, rows_in_basis)
    return hold_out(ridge.eigen, alphas, units, n_rows)


def _queries_out(
    data: RankingData, settings: Pairs, eigen: EigenPath, folds: Queries, alphas: Vector
) -> tuple[Vector, Vector]:
    """Return `folds_out` of whole queries in the primal form."""
    own = unmade(data.feature_map)
    if own is not None and data.is_one_block:
        found = own.folds_out(data, settings, eigen, folds, alphas)
        if found is not None:
            return found
    basis = eigen.basis

    def rows_in_basis(_: Rows | slice, block: RankingData) -> tuple[Vector, Vector]:
        X, queries = dense(block.features()).astype(np.float64, copy=False), block.queries
        lost = np.empty((len(X), basis.shape[1] + 1))
        differing = lost[:, :-1]
        with single_threaded_blas:
            if settings.kind is None:
                np.matmul(X, basis, out=differing)
                return lost, differing.copy()
            first = queries.starts()
            np.matmul(X - X[queries.first_rows()], basis, out=differing)
            return lost, differing + (X[first] @ basis)[queries.index()]

    units = units_of_lists(data, settings, folds, rows_in_basis)
    return hold_out(eigen, alphas, units, len(data.y))


def _by_band(
    data: RankingData,
    labelled: RankingData,
    settings: Pairs,
    band: BandPath,
    folds: Queries,
    alphas: Vector,
    largest: float,
) -> Vector | None:
    """Return the scores from the band form, or None if eigenvectors are needed.

    The system is that of the differences ``R f`` of scores, which the model without a fold gives at
    once. The scores f follow from ``L f = Rᵀ R f`` and from products with K for the rows for which
    this tells nothing, one of each query and rows with little or no weight or pairs.
    """
    if not band.serves(alphas) or alphas[0] > LARGEST_RIDGE * band.form.largest:
        return None
    problem = labelled.problem(settings)
    pivots = _core.laplacian_pivots(problem, largest=largest)
    is_pivot = pivots == np.arange(len(pivots))
    differences, levels = np.zeros((2, len(pivots), len(alphas)))
    for first, last in blocks_of_parts(folds.offsets, limits.now.held_rows):
        parts = [np.arange(len(pivots))[folds.rows(fold)] for fold in range(first, last)]
        known = [part[is_pivot[part]] for part in parts]
        rows, beside = np.concatenate(parts), np.concatenate(known)
        points = np.zeros((len(beside), len(pivots)))
        if len(beside):
            points[:] = data.features(beside)
            apply_half_laplacian(problem, points, axis=1)
        bounds = np.cumsum([0, *map(len, known)], dtype=np.int64)
        found = band.form.hold_out(alphas, band.target, parts, points, bounds)
        if found is None:
            return None
        differences[rows] = band.target[rows, None] - found[0].T
        levels[beside] = found[1].T
    apply_half_laplacian(problem, differences, adjoint=True)
    _core.solve_laplacian(
        problem, differences, levels[is_pivot], largest=largest, n_threads=thread_count()
    )
    return np.ascontiguousarray(differences.T)


def leave_query_out(
    data: RankingData,
    settings: Pairs,
    ridge: RidgePath,
    alphas: Vector,
    statistics: Callable[[], Statistics],
) -> Vector:
    """Return the scores of every row by the model fitted without its query, (n_alphas, n_rows).

    If there are groups of queries, the model is fitted without the row's group. A score is NaN if
    it would be rounding error. This happens if alpha is below 1e-10 of the largest eigenvalue, in a
    direction that only the query has.

    Parameters
    ----------
    data : RankingData
    settings : Pairs
    ridge : RidgePath
        The decomposition of the statistics of all rows. Its feature scaling is kept.
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    statistics : callable
        Returns the statistics of all rows. Only refits need them.
    """
    if settings.joins_all_rows or (not ridge.is_dual and _are_large_groups(data)):
        scores = np.empty((len(alphas), len(data.y)))
        tests = data.rows_held_together()
        for test, coefs in refits(data, statistics(), ridge, alphas, tests):
            scores[:, test] = data.scores(test, coefs)
        return scores
    scores, held = lists_out(data, settings, ridge, data.held_together, alphas)
    # Where a query holds nearly all of a large direction, what is left has lost its digits. A
    # direction that is not the largest has lost some to that one before.
    held = np.sqrt(held * ridge.largest)
    if not ridge.is_dual and held.max() > LARGEST_HELD * alphas[-1]:
        limit = LARGEST_HELD * alphas[-1]
        units = [(rows, rows) for rows in data.rows_held_together() if held[rows[0]] > limit]
        refit(data, settings, ridge.factor, alphas, units, held, scores)
    return scores


def _are_large_groups(data: RankingData) -> bool:
    """Tell whether groups have so many rows that a refit takes less time than identities."""
    if data.group_of is None:
        return False
    most = limits.now.group_rows * data.n_features * data.held_together.n_filled
    return len(data.y) > most


def leave_row_out(
    data: RankingData,
    settings: Pairs,
    ridge: RidgePath,
    alphas: Vector,
    statistics: Callable[[], Statistics],
) -> Vector:
    """Return the scores of every row of one query by the model fitted without the row.

    The parameters and the shape are those of `leave_query_out`. Models without each row have
    different origins. The score of a row is therefore ``wᵀ(x_i − mean(X))``, with the mean over the
    other rows. (The mean label of the other rows is not added. It falls as the label of the row
    left out rises, and would reverse the order of the rows if the ridge is large.) The mean offset
    of the other rows is subtracted as well.
    """
    rows, v = np.arange(len(data.y)), data.v
    if settings.compiled in ("none", "kept"):
        regression = RowRegression.of(data, settings, ridge)
        units = regression.units(rows, np.arange(len(rows) + 1))
        units = (own._replace(levels=0.0) for own in units)
        scores, _ = hold_out(regression.eigen, alphas, units, len(rows))
        if settings.kind is not None and data.offset is not None:
            known = factors_without(data, settings, v) > 0
            others = v @ data.offset - v * data.offset
            scores -= np.divide(others, v.sum() - v, out=np.zeros(len(rows)), where=known)
        return scores
    scores, features = np.empty((len(alphas), len(rows))), data.features()
    for test, coefs in refits(data, statistics(), ridge, alphas, rows[:, None]):
        others = np.where(rows == test, 0.0, v)
        share = others / others.sum() if others.sum() > 0 else others
        origin = coefs @ (share @ features)
        if data.offset is not None:
            origin += share @ data.offset
        scores[:, test] = score_features(data.features(test), coefs) - origin[:, None]
    return scores


def refits(
    data: RankingData, total: Statistics, ridge: RidgePath, alphas: Vector, tests: Iterable[Rows]
) -> Iterator[tuple[Rows, Vector]]:
    """Yield each of some parts of the rows, and the models of all other rows."""
    rows = np.arange(len(data.y))
    for test in tests:
        rest = total.without(data, np.setdiff1d(rows, test, assume_unique=True), test)
        yield test, rest.path_at(ridge.factor).coef(alphas)


def refit(
    data: RankingData,
    settings: Pairs,
    factor: Vector | None,
    alphas: Vector,
    units: list[tuple[Rows, Rows]],
    held: Vector,
    scores: Vector,
) -> None:
    """Write the scores of units that hold the largest directions, by models without their rows.

    A unit has rows, and places in `held` and `scores`. Sums of rows are added, and none is
    subtracted, which would lose the digits again.
    """
    most = limits.now.refit_flops / (10.0 * data.n_features**3)
    units = sorted(units, key=lambda unit: -held[unit[1][0]])
    units = units[: min(int(most), limits.now.held_refits)]
    if not units:
        return
    some = np.unique(np.concatenate([rows for rows, _ in units]))
    others = np.setdiff1d(np.arange(len(data.y)), some, assume_unique=True)
    rest = PairSums(settings)
    if len(others):
        rest = rest.with_rows(data.take(others), may_vanish=True)
    for rows, at in units:
        sums, more = rest, np.setdiff1d(some, rows, assume_unique=True)
        if len(more):
            sums = rest.with_rows(data.take(more), may_vanish=True)
        lost = alphas * LARGEST_HELD < held[at[0]]
        coefs = [solve_ridge(sums.G, sums.g, alpha, factor) for alpha in alphas[lost].tolist()]
        scores[np.ix_(lost, at)] = data.scores(rows, np.array(coefs))


def is_from_decomposition(
    data: RankingData, settings: Pairs, is_dual: bool, splits: Splits
) -> bool:
    """Tell whether `fold_scores` can take these splits.

    It can if the problem is in dual form, every row is a test row exactly once, the training rows
    of a split are all other rows, and the folds are either whole queries, or any rows of a
    pointwise problem, or any rows of one query with pairs with ties.
    """
    if not is_dual:
        return False
    fold = splits.fold_of_rows(len(data.y))
    if fold is None:
        return False
    by_rows = settings.kind is None and settings.weighting != "queries"
    whole = fold == fold[data.as_scope(settings).queries.first_rows()]
    return by_rows or is_one_regression(data, settings) or bool(whole.all())


def folds_of(splits: Splits) -> Queries:
    """Return the test rows of splits, each of which is a fold."""
    tests = [test for _, test in splits]
    return Queries(np.cumsum([0, *map(len, tests)], dtype=np.int64), np.concatenate(tests))


def fold_scores(
    data: RankingData, settings: Pairs, ridge: RidgePath, splits: Splits, alphas: Vector
) -> list[Vector]:
    """Return the scores of every fold by the models of all other rows, (n_alphas, n_test_rows).

    For these splits `is_from_decomposition` must be true. The scores are those of refits. For folds
    of rows of one query they differ from those of refits by a constant for each fold, because these
    models have an intercept. Scores that would be rounding error are NaN, as in `leave_query_out`.

    Every split must have training rows with pairs that count.
    """
    scores, _ = folds_out(data, settings, ridge, folds_of(splits), alphas)
    return [scores[:, test] for _, test in splits]


def split_scores(
    data: RankingData, total: Statistics, splits: Splits, coefs_of: Callable[[Any], Vector]
) -> list[Vector]:
    """Return the scores of every split's test rows by models of its training rows.

    If the test rows of a split are whole queries and the training rows are all other rows, only the
    statistics of the test rows are computed, and subtracted from those of all rows, which are
    `total`. `coefs_of` takes the statistics of the training rows, and returns models of shape
    (n_models, n_features). The scores have shape (n_models, n_test_rows).

    Raises
    ------
    ValueError
        If the training rows of a split have no pairs that count.
    """
    if (
        isinstance(total, PairSums)
        and isinstance(splits, GroupSplits)
        and data.group_of is not None
        and not total.settings.joins_all_rows
        and 8.0 * len(total.required()) ** 2 * data.held_together.n_filled < limits.now.groups_bytes
    ):
        rests: Iterator[Statistics] = _rests_of_groups(data, total, splits)
    else:
        rests = _rests(data, total, splits)
    return [
        data.scores(test, coefs_of(rest)) for (_, test), rest in zip(splits, rests, strict=True)
    ]


def _rests(data: RankingData, total: Statistics, splits: Splits) -> Iterator[Statistics]:
    """Yield the statistics of the training rows of every split."""
    for number, (train, test) in enumerate(splits):
        data.require_training_pairs(total.settings, number, train)
        yield total.without(data, train, test)


def _rests_of_groups(data: RankingData, total: PairSums, splits: GroupSplits) -> Iterator[PairSums]:
    """Yield the statistics of the training groups of every split; those of a group are made once.

    What is left is a difference where it keeps its digits, and otherwise a sum.
    """
    assert data.group_of is not None
    settings, present = total.settings, np.flatnonzero(data.held_together.sizes)
    with_pairs = np.unique(data.group_of[data.has_pairs(settings)])
    for number, train in enumerate(splits.trains):
        if not np.isin(train, with_pairs).any():
            raise no_training_pairs(number)
    own = (
        PairSums.of(data.take(rows), settings, may_vanish=True)
        for rows in data.rows_held_together()
    )
    parts = dict(zip(present.tolist(), own, strict=True))
    for train, test in zip(splits.trains, splits.tests, strict=True):
        rest = None
        if len(train) + len(test) == len(present) and not np.isin(test, train).any():
            rest = total.less(reduce(add, map(parts.__getitem__, test.tolist())))
        yield rest or reduce(add, map(parts.__getitem__, train.tolist()))
