"""Hold rows out of a ridge problem by identities where they hold, and judge their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import blocks
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.features.base import linear_nodes, score_features
from pairgram.features.inputs import factors_of
from pairgram.metrics.comparisons import ComparisonMetric
from pairgram.metrics.metric import Metric
from pairgram.model_selection.judge import BaseJudge, Judge, Judged
from pairgram.model_selection.splits import GroupSplits, Splits
from pairgram.solvers.costs import have_sums, is_held_out_by_sums
from pairgram.solvers.formulation import PathJudge, RidgeModels
from pairgram.solvers.leave_group_out import rests_of_groups, scores_by_sums
from pairgram.solvers.leave_out_dual import (
    RowRegression,
    are_small,
    fold_scores,
    is_from_decomposition,
    is_one_regression,
    rows_without_folds,
    scores_without_folds,
)
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath, default_alphas
from pairgram.solvers.systems import Systems, systems_at_once

if TYPE_CHECKING:
    from pairgram.solvers.formulation import Coordinates, Statistics

# The ridges, descending; the solutions in the coordinates, (n_alphas, n_dimensions); and what
# held-out rows say of them.
Solved = tuple[Vector, Vector, Judged]

# Queries that hold nearly all of a direction are held out by refits if the geometric mean of its
# eigenvalue and the largest is more than this many ridges. The identities would lose more digits.
LARGEST_HELD = 1e2
# A smaller ridge counts as this share of λ_max.
SMALLEST_SHARE = 1e-200
# Scores that are further apart than this share of the range never tie. Compiled code has the same
# constant.
LARGEST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class PathTies:
    """Finds rows of a query that tie in all models of a ridge path.

    Two rows tie in every model without their query if no other query tells them apart. Rows that
    differ only in columns that vary in no other query are an example. The hold-out identities give
    such rows scores that differ by rounding errors, which depend on the held-out labels. The errors
    are at most ``64 ε (λ_max / alpha · (s + r) + r + m)``. Here s is the largest range of the
    targets of a query, r is the range of the scores of this query, and m is the largest size of its
    scores. Scores from a band form err by as much as that for λ_max if alpha is larger.

    If alpha is at least λ_max, this bound is so small that no two scores are that close by chance.
    Ties are found at such an alpha. The models of smaller ridges confirm them; there, scores that
    are further apart than ``1e-4 (s + r)`` never tie.

    Attributes
    ----------
    alphas : ndarray of shape (n_models,), descending
        The ridges at which to hold out. The first is at least λ_max; it is added if necessary.
    n_added : int
        The number of ridges that were added: 0 or 1.
    largest : float
        λ_max.
    spread : float
        s. For pointwise settings it is the largest size of the targets.
    rounding : float
        64 ε. For statistics of float32 rows it is ε / 16 of float32.
    least_ratio : float
        What takes the place of a smaller ``λ_max / alpha``.
    """

    alphas: Vector
    n_added: int
    largest: float
    spread: float
    rounding: float
    least_ratio: float = 0.0

    @classmethod
    def of(
        cls, data: RankingData, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> PathTies:
        """Choose the ridges at which rows of `data` are held out, given the requested ones."""
        return cls.at(ridge, alphas, spread_of(data, settings), ridge.rounding(data.dtype))

    @classmethod
    def at(cls, ridge: RidgePath, alphas: Vector, spread: float, rounding: float) -> PathTies:
        """Choose the ridges, given `spread` and `rounding` of the data; see the attributes."""
        largest = ridge.largest
        n_added = int(not alphas[0] >= largest)
        return cls(
            np.concatenate(([largest] * n_added, alphas)),
            n_added,
            largest,
            spread,
            rounding,
            0.0 if ridge.band is None else 1.0,
        )

    @property
    def _ratios(self) -> Vector:
        """Return ``λ_max / alpha``, (n_models,); it is finite for a ridge of 0 too."""
        least = max(SMALLEST_SHARE * self.largest, float(np.finfo(np.float64).tiny))
        return np.maximum(self.largest / np.maximum(self.alphas, least), self.least_ratio)

    def of_pairs(self, model: int) -> float:
        """Return the largest rounding error of a difference of two held-out scores."""
        share = self.rounding * float(self._ratios[model])
        return 2 * min(share, LARGEST_SHARE) * self.spread

    def join_differences(self, differences: Vector) -> Vector:
        """Return differences of held-out scores at the requested ridges; those of ties are 0.

        `differences`, (n_models, n_pairs), are those at all ridges. They are changed in place.
        """
        bounds = np.array([self.of_pairs(model) for model in range(len(self.alphas))])
        tied = np.flatnonzero(np.abs(differences[0]) <= bounds[0])
        close = differences[:, tied]
        close[np.abs(close) <= bounds[:, None]] = 0.0
        differences[:, tied] = close
        return differences[self.n_added :]

    def join(self, scores: Vector, queries: Queries, n_threads: int | None) -> Vector:
        """Return the scores at the requested ridges, (n_alphas, n_rows); ties get equal scores.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_rows), float64
            The scores at all ridges. They are changed in place.
        queries : Queries
            The queries of the held-out rows.
        n_threads : int or None
        """
        scores = np.ascontiguousarray(scores)
        _core.join_ties(
            scores,
            queries.offsets,
            queries.order,
            self._ratios,
            self.spread,
            self.rounding,
            resolve_n_threads(n_threads),
        )
        return scores[self.n_added :]


def spread_of(data: RankingData, settings: PairSettings) -> float:
    """Return the value of `PathTies.spread`."""
    targets = data.target(settings)
    if settings.pairs is None:
        return float(np.abs(targets).max(initial=0.0))
    queries = data.as_scope(settings).queries
    filled = queries.sizes > 0
    starts = queries.offsets[:-1][filled]
    grouped = queries.grouped(targets)
    highest, lowest = np.maximum.reduceat(grouped, starts), np.minimum.reduceat(grouped, starts)
    return float((highest - lowest).max(initial=0.0))


TWO_QUERIES = "leave-query-out needs two queries with pairs, one to fit to and one to hold out"
TWO_GROUPS = "leave-group-out needs two groups with pairs, one to fit to and one to hold out"
INSTEAD = "; give cv a splitter, or fit a validation set"


def leave_query_out(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    statistics: Callable[[], Statistics],
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row by the model fitted without its query, (n_alphas, n_rows).

    If there are groups of queries, the model is fitted without the row's group. The scores come
    from one decomposition of the statistics of all rows. With ``scope="global"`` each query's rows
    are subtracted (pairs with ties), or the model is refitted. A score is NaN if it would be
    rounding error. This happens if alpha is below 1e-10 of the largest eigenvalue, in a direction
    that only the query has. `require_leave_query_out` tells whether two queries have pairs.

    Parameters
    ----------
    data : RankingData
    settings : PairSettings
    ridge : RidgePath
        The decomposition of the statistics of all rows. Its feature scaling is kept.
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    statistics : callable
        Returns the statistics of all rows. Only refits need them.
    n_threads : int or None
    """
    if settings.joins_all_rows:
        return _leave_global_query_out(data, statistics(), ridge, alphas, n_threads)
    if ridge.is_dual:
        folds = data.rows_held_together()
        return scores_without_folds(data, settings, ridge, folds, alphas, n_threads)
    if is_held_out_by_sums(data, settings, len(alphas)):
        total = statistics()
        assert isinstance(total, PairSums)
        scores, held = scores_by_sums(data, ridge, alphas, n_threads, total.parts)
    else:
        scores, held = scores_in_primal(data, settings, ridge, alphas, n_threads)
    # Where a query holds nearly all of a large direction, what is left has lost its digits. A
    # direction that is not the largest has lost some to that one before.
    held = np.sqrt(held * (ridge.largest))
    if held.max() > LARGEST_HELD * alphas[-1]:
        _refit(data, settings, ridge.factor, alphas, held, scores, n_threads)
    return scores


def _refit(
    data: RankingData,
    settings: PairSettings,
    factor: Vector | None,
    alphas: Vector,
    held: Vector,
    scores: Vector,
    n_threads: int | None,
) -> None:
    """Write the scores of what holds the largest directions, by models without its rows.

    It takes ``n d² + m d² log k`` flops for the m rows of k queries, and ``10 k d³``. The sums are
    added, and none is subtracted, which would lose the digits again.
    """
    limit = LARGEST_HELD * alphas[-1]
    tests = [test for test in data.rows_held_together() if held[test[0]] > limit]
    tests.sort(key=lambda test: -held[test[0]])
    most = limits.now.refit_flops / flops_of_refits(0, data.n_features, settings, 1)
    tests = tests[: min(int(most), limits.now.held_refits)]
    if not tests:
        return
    others = np.setdiff1d(np.arange(len(data.y)), np.concatenate(tests))
    rest = PairSums(settings, n_threads=n_threads)
    if len(others):
        rest = rest.with_rows(data.take(others), n_threads, may_vanish=True)
    for test, sums in _sums_without_each(data, tests, rest, n_threads):
        lost = alphas * LARGEST_HELD < held[test[0]]
        coefs = np.array([sums.solve_at(alpha, factor) for alpha in alphas[lost].tolist()])
        scores[np.ix_(lost, test)] = data.scores(test, coefs, n_threads)


def _sums_without_each(
    data: RankingData, tests: Sequence[Rows], rest: PairSums, n_threads: int | None
) -> Iterator[tuple[Rows, PairSums]]:
    """Yield each of some queries, and the sums of all others with those of the `rest`."""
    if len(tests) == 1:
        yield tests[0], rest
        return
    halves = tests[: len(tests) // 2], tests[len(tests) // 2 :]
    for own, others in (halves, halves[::-1]):
        rows = data.take(np.sort(np.concatenate(others)))
        more = rest.with_rows(rows, n_threads, may_vanish=True)
        yield from _sums_without_each(data, own, more, n_threads)


def scores_in_primal(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None = None,
) -> tuple[Vector, Vector]:
    """Return `leave_query_out` of some of the queries that `ridge` is the path of.

    `ridge` is in primal form, and pairs are formed within queries. Beside the scores, it returns
    for every row the largest eigenvalue of a direction of which its query, or its group of queries,
    has all but 1e-4; 0 if there is none. Groups need rows that are one block.
    """
    order: Rows | slice = slice(None)
    if data.group_of is not None:
        order = np.argsort(data.group_of[data.queries.index()], kind="stable")
        data = data.take(order)
    folds = None if data.group_of is None else _bounds_of_groups(data)
    basis = ridge.eigen.basis
    mapped = data.feature_map is not None and settings.pairs is not None
    nodes = linear_nodes(data.feature_map) if mapped else None
    if nodes is not None:  # offsets cancel in differences
        data, basis = replace(data, feature_map=nodes.before), nodes.weights @ basis
    elif mapped and (factors := factors_of(data.feature_map)) is not None:
        data, basis = replace(data, feature_map=None), factors[:, None] * basis
    basis = np.ascontiguousarray(basis)
    eigen, threads = ridge.eigen, resolve_n_threads(n_threads)
    scores, held = np.empty((len(alphas), len(data.y))), np.empty(len(data.y))
    with single_threaded_blas:
        for block in data.blocks(settings):
            rows = order if isinstance(block.rows, slice) else block.rows
            found = _core.leave_query_out(
                block.problem,
                block.X,
                block.targets,
                basis=basis,
                eigenvalues=eigen.eigenvalues,
                projection=eigen.projection,
                alphas=alphas,
                map=block.node_map,
                folds=folds,
                n_threads=threads,
            )
            if isinstance(rows, slice):
                return found
            scores[:, rows], held[rows] = found
    return scores, held


def _bounds_of_groups(data: RankingData) -> Rows:
    """Return the queries with which groups begin, and their number; queries stand by group."""
    assert data.group_of is not None
    first = np.flatnonzero(np.diff(data.group_of, prepend=-1))
    return np.append(first, len(data.group_of)).astype(np.int64)


def require_leave_query_out(data: RankingData, settings: PairSettings) -> None:
    """Raise the ValueError of `leave_query_out`; only the labels are looked at."""
    if settings.joins_all_rows:
        return
    has = data.has_pairs(settings)
    if data.group_of is not None:
        if len(np.unique(data.group_of[has])) < 2:
            raise ValueError(TWO_GROUPS + INSTEAD)
    elif has.sum() < 2:
        raise ValueError(TWO_QUERIES + INSTEAD)


def leave_row_out(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    statistics: Callable[[], Statistics],
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row of one query by the model fitted without the row.

    The result has shape (n_alphas, n_rows). The parameters are those of `leave_query_out`.

    Models without each row have different origins. The score of a row is therefore
    ``wᵀ(x_i − mean(X))``, with the mean over the other rows. (The mean label of the other rows is
    not added. It falls as the label of the row left out rises, and would reverse the order of the
    rows if the ridge is large.) The mean offset of the other rows is subtracted as well.

    With pairs with ties, one query is ridge regression at ``alpha / (V − v_i)`` with an intercept
    that has no ridge, and the hat matrix gives its exact leave-one-out residuals. For pointwise
    rows the same holds without the intercept. For other pairs, the model is refitted for every row.
    """
    if settings.kind in ("none", "kept"):
        regression, n_rows = RowRegression.of(data, settings, ridge), len(data.y)
        bounds = np.arange(n_rows + 1)
        scores, _ = regression.hold_out(bounds[:-1], bounds, alphas, n_threads)
        if regression.intercept and data.offset is not None:
            offset, left = data.offset, regression.weight - data.v
            known = regression.factors_without(data.v) > 0
            others = data.v @ offset - data.v * offset
            scores -= np.divide(others, left, out=np.zeros(n_rows), where=known)
        return scores
    total, n_rows = statistics(), len(data.y)
    scores = np.empty((len(alphas), n_rows))
    rows = np.arange(n_rows)
    v, features = data.v, data.features()
    for row in rows:
        test = rows[row : row + 1]
        rest = total.without(data, np.delete(rows, row), test, n_threads)
        coefs = rest.path_at(ridge.factor).coef(alphas)
        others = np.where(rows == row, 0.0, v)
        share = others / others.sum() if others.sum() > 0 else others
        origin = coefs @ (share @ features)
        if data.offset is not None:
            origin += share @ data.offset
        scores[:, row] = score_features(data.features(test), coefs, n_threads)[:, 0] - origin
    return scores


def split_scores(
    data: RankingData,
    total: Statistics,
    splits: Splits,
    coefs_of: Callable[[Any], Vector],
    n_threads: int | None = None,
) -> list[Vector]:
    """Return the scores of every split's test rows by models of its training rows.

    If the test rows of a split are whole queries and the training rows are all other rows, only the
    statistics of the test rows are computed, and subtracted from those of all rows.

    Parameters
    ----------
    data : RankingData
    total : Pairgram or DualGram
        The statistics of all rows.
    splits : sequence of (training rows, test rows)
    coefs_of : callable
        Takes the statistics of the training rows, and returns models of shape (n_models,
        n_features).
    n_threads : int or None

    Returns
    -------
    list of ndarray of shape (n_models, n_test_rows), float64

    Raises
    ------
    ValueError
        If the training rows of a split have no pairs that count.
    """
    results = []
    if (
        isinstance(total, PairSums)
        and isinstance(splits, GroupSplits)
        and data.group_of is not None
        and (have_sums(data, total.settings))
    ):
        rests = rests_of_groups(data, total, splits, n_threads)
        for rest, groups in zip(rests, splits.tests, strict=True):
            results.append(data.scores(splits.rows(groups), coefs_of(rest), n_threads))
        return results
    for number, (train, test) in enumerate(splits):
        data.require_training_pairs(total.settings, number, train)
        left = total.without(data, train, test, n_threads)
        results.append(data.scores(test, coefs_of(left), n_threads))
    return results


def _leave_global_query_out(
    data: RankingData,
    total: Statistics,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None,
) -> Vector:
    scores = np.empty((len(alphas), len(data.y)))
    rows = np.arange(len(data.y))
    for test in data.rows_held_together():
        rest = total.without(data, np.setdiff1d(rows, test), test, n_threads)
        coefs = rest.path_at(ridge.factor).coef(alphas)
        scores[:, test] = data.scores(test, coefs, n_threads)
    return scores


def flops_of_refits(n_rows: int, n_features: int, settings: PairSettings, n_refits: int) -> float:
    """Return the approximate number of flops of fitting a model `n_refits` times."""
    # With pairs with ties all rows are read only once, since held-out rows are subtracted.
    rows_read = n_rows if settings.kind == "kept" else n_refits * n_rows
    return float(n_features) ** 2 * (rows_read + n_refits * 10.0 * n_features) if n_refits else 0.0


def refuse_long_refits(data: RankingData, settings: PairSettings, n_refits: int, what: str) -> None:
    """Raise a ValueError if refits would take more than `Limits.refit_flops`."""
    n_rows, n_features = len(data.y), data.n_features
    flops = flops_of_refits(n_rows, n_features, settings, n_refits)
    if flops > limits.now.refit_flops:
        raise ValueError(
            f"{what} needs {n_refits} refits of {n_rows} rows and {n_features} features "
            f"({flops:.0e} flops, at most {limits.now.refit_flops:.0e}): give cv a splitter "
            "such as QueryKFold, or fit a validation set"
        )


@dataclass(frozen=True, eq=False)
class HoldOut(PathJudge):
    """Holds out what a judge says, by the identities of least squares where they hold.

    Attributes
    ----------
    judge : BaseJudge
    """

    judge: BaseJudge

    @property
    def metric(self) -> Metric | ComparisonMetric:
        """The metric that judges."""
        return self.judge.metric

    def of(self, data: RankingData) -> Self:
        """Return the same with another feature map of the rows, which the validation set shares."""
        return replace(self, judge=self.judge.of(data))

    def require(self, settings: PairSettings, n_alphas: int) -> float:
        """Raise the ValueErrors of `judge_path`; nothing takes more than `costs` tells."""
        if self.judge.splits is not None:
            for number, (train, _) in enumerate(self.judge.splits):
                self.data.require_training_pairs(settings, number, train)
        elif self.judge.validation is None and not self.data.is_single_query:
            require_leave_query_out(self.data, settings)
        return 0.0

    def n_matrices(self, settings: PairSettings) -> int:
        """Return the largest number of n_rows × n_rows matrices of `judge_path` in dual form."""
        if settings.kind not in ("none", "kept") or self.judge.validation is not None:
            return 0
        rows_of_one = self.judge.splits is not None and self.data.is_single_query
        return int(_of_all_rows(settings) or rows_of_one)

    def needs_basis(self, settings: PairSettings, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        if self.judge.validation is not None:
            return False
        data, splits = self.data, self.judge.splits
        if splits is not None:
            if not is_from_decomposition(data, settings, is_dual, splits):
                return False
            sizes = [len(test) for _, test in splits]
            return is_one_regression(data, settings) or not are_small(sizes, len(data.y))
        if data.is_single_query:
            return settings.kind in ("none", "kept")
        if settings.joins_all_rows:
            return is_dual and _of_all_rows(settings)
        return not (is_dual and are_small(data.held_together.sizes.tolist(), len(data.y)))

    def refits(self, settings: PairSettings, ridge: RidgePath) -> Splits | None:
        """Return the splits that need one fit each; None if there are none."""
        splits = self.judge.splits
        if splits is None or is_from_decomposition(self.data, settings, ridge.is_dual, splits):
            return None
        return splits

    def judge_constrained(
        self, coordinates: Coordinates, settings: PairSettings, scale: bool, given: Vector | None
    ) -> Solved:
        """Judge the ridges of models under constraints: the model of every split is solved anew.

        Without `given`, there is a grid of ridges that depends on the data.
        """
        data, judge = coordinates.data, self.judge
        total = coordinates.statistics(settings, self.n_threads)
        alphas, solved = coordinates.constrained(total, given, scale)

        def coefs_of(rest: Statistics) -> Vector:
            return coordinates.constrained(rest, alphas, scale)[1]

        if judge.validation is not None:
            scores = judge.validation_scores(solved)
        else:
            assert judge.splits is not None
            scores = np.hstack(split_scores(data, total, judge.splits, coefs_of, self.n_threads))
        return alphas, solved, judge.judge(judge.shared(scores))

    def judge_steps(
        self, coordinates: Coordinates, settings: PairSettings, scale: bool, given: Vector | None
    ) -> Solved | None:
        """Judge the ridges of wide sparse rows: all rows and the splits are solved together.

        As many are as memory holds, and at most eight, which one pass over X multiplies. The result
        is None if so many products are taken that direct solutions are faster.
        """
        data, judge = coordinates.data, self.judge
        splits, parts = judge.splits or (), [data, *map(data.counting, judge.counts())]
        alphas, solved, scores, left = given, np.empty(0), [], coordinates.most_products
        for group in blocks(len(parts), systems_at_once(data)):
            systems = Systems(parts[group], settings, self.n_threads, left)
            if alphas is None:
                largest = systems.largest_eigenvalue(scale=scale)
                alphas = default_alphas(largest or 1.0, data.offset is not None)
            found = systems.solve(alphas, scale=scale)
            if found is None:
                return None
            left -= systems.n_products
            if group.start == 0:
                solved, found = found[0], found[1:]
            tests = splits[max(group.start - 1, 0) : group.stop - 1]
            scores += [
                data.scores(test, coefs, self.n_threads)
                for (_, test), coefs in zip(tests, found, strict=True)
            ]
        assert alphas is not None
        if judge.validation is not None:
            scores = [judge.validation_scores(coordinates.coefs(solved))]
        return alphas, solved, judge.judge(judge.shared(np.hstack(scores)))


@dataclass(frozen=True, eq=False)
class HeldOutRows(HoldOut):
    """Holds out the rows that a `Judge` says."""

    judge: Judge

    def of(self, data: RankingData) -> Self:
        """Return the same with another feature map, which the validation set shares."""
        data = replace(data, y=self.data.y)
        return replace(self, data=data, judge=self.judge.of(data))

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows."""
        ties = PathTies.of(self.data, models.settings, models.ridge, models.alphas)
        scores = models.scores
        if scores is None:
            scores = self._scores(models, ties.alphas)
        queries = self.judge.scored.queries
        return self.judge.judge(ties.join(self.judge.shared(scores), queries, self.n_threads))

    def _scores(self, models: RidgeModels, alphas: Vector) -> Vector:
        """Return the scores of the held-out rows, (n_alphas, n_held_out_rows)."""
        data, threads = self.data, self.n_threads
        settings, ridge = models.settings, models.ridge
        if self.judge.validation is not None:
            return self.judge.validation_scores(models.coefs(ridge.coef(alphas)))
        if self.judge.splits is not None:
            parts = fold_scores(data, settings, ridge, self.judge.splits, alphas, threads)
            return np.hstack(parts)
        if data.is_single_query:
            return leave_row_out(data, settings, ridge, alphas, models.statistics, threads)
        if ridge.is_dual and _of_all_rows(settings):
            folds = data.rows_held_together()
            return rows_without_folds(data, settings, ridge, folds, alphas, threads)
        return leave_query_out(data, settings, ridge, alphas, models.statistics, threads)


def is_cheap(data: RankingData, settings: PairSettings, n_dimensions: int, form: str) -> bool:
    """Tell whether leaving out every query, or every row of one query, is exact and cheap.

    It is if the identities of least squares hold, or if all refits together take at most
    `Limits.refit_flops`. `n_dimensions` is the order of the system that is solved.
    """
    n_rows = len(data.y)
    if data.is_single_query:
        exact, n_refits = settings.kind in ("none", "kept"), n_rows
    else:
        exact = not settings.joins_all_rows or (form == "dual" and _of_all_rows(settings))
        n_refits = data.held_together.n_queries
    if exact:
        return True
    flops = flops_of_refits(n_rows, n_dimensions, settings, n_refits)
    return flops <= limits.now.refit_flops


def _of_all_rows(settings: PairSettings) -> bool:
    """Tell whether the pairs with ties of all rows are one regression on rows."""
    return settings.joins_all_rows and settings.kind == "kept"
