"""Judges of ridge paths, which hold rows or pairs of rows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import blocks
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import thread_count
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries, first_equal_rows
from pairgram.metrics.metric import Metric
from pairgram.model_selection.judge import BaseJudge, Judge, Judged, Measure, metric_of
from pairgram.solvers.formulation import PathJudge, RidgeModels
from pairgram.solvers.hold_out import (
    RowRegression,
    are_small,
    factors_without,
    fold_scores,
    folds_of,
    folds_out,
    hold_out,
    is_from_decomposition,
    is_one_regression,
    leave_query_out,
    leave_row_out,
    split_scores,
)
from pairgram.solvers.ridge_path import RidgePath, default_alphas
from pairgram.solvers.systems import Systems, systems_at_once

if TYPE_CHECKING:
    from pairgram.metrics.evaluation import Scoring
    from pairgram.solvers.formulation import Coordinates, Statistics

# The ridges, descending; the solutions in the coordinates, (n_alphas, n_dimensions); and what
# held-out rows say of them.
Solved = tuple[Vector, Vector, Judged]

LEAVE_PAIR_OUT = "leave-pair-out"
# Held-out pairs have scores in one matrix if their pivots are larger than this.
SMALLEST_PIVOT = 5e-11
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
    def of(cls, data: RankingData, settings: Pairs, ridge: RidgePath, alphas: Vector) -> PathTies:
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

    def join_differences(self, differences: Vector) -> Vector:
        """Return differences of held-out scores at the requested ridges; those of ties are 0.

        `differences`, (n_models, n_pairs), are those at all ridges. They are changed in place.
        """
        bounds = 2 * np.minimum(self.rounding * self._ratios, LARGEST_SHARE) * self.spread
        tied = np.flatnonzero(np.abs(differences[0]) <= bounds[0])
        close = differences[:, tied]
        close[np.abs(close) <= bounds[:, None]] = 0.0
        differences[:, tied] = close
        return differences[self.n_added :]

    def join(self, scores: Vector, queries: Queries) -> Vector:
        """Return the scores at the requested ridges, (n_alphas, n_rows); ties get equal scores.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_rows), float64
            The scores at all ridges. They are changed in place.
        queries : Queries
            The queries of the held-out rows.
        """
        scores = np.ascontiguousarray(scores)
        _core.join_ties(
            scores,
            queries.offsets,
            queries.order,
            self._ratios,
            self.spread,
            self.rounding,
            thread_count(),
        )
        return scores[self.n_added :]


def spread_of(data: RankingData, settings: Pairs) -> float:
    """Return the value of `PathTies.spread`."""
    targets = data.target(settings)
    if settings.kind is None:
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


def require_leave_query_out(data: RankingData, settings: Pairs) -> None:
    """Raise the ValueError of `leave_query_out`; only the labels are looked at."""
    joins = settings.joins_all_rows
    if joins and data.group_of is None:
        return
    has = np.ones(data.queries.n_queries, bool) if joins else data.has_pairs(settings)
    if data.group_of is not None:
        if len(np.unique(data.group_of[has])) < 2:
            raise ValueError(TWO_GROUPS + INSTEAD)
    elif has.sum() < 2:
        raise ValueError(TWO_QUERIES + INSTEAD)


def flops_of_refits(n_rows: int, n_features: int, settings: Pairs, n_refits: int) -> float:
    """Return the approximate number of flops of fitting a model `n_refits` times."""
    # With pairs with ties all rows are read only once, since held-out rows are subtracted.
    rows_read = n_rows if settings.compiled == "kept" else n_refits * n_rows
    return float(n_features) ** 2 * (rows_read + n_refits * 10.0 * n_features) if n_refits else 0.0


@dataclass(frozen=True, eq=False)
class HoldOut(PathJudge):
    """Holds out what a judge says, by the identities of least squares where they hold.

    Attributes
    ----------
    judge : BaseJudge
    """

    judge: BaseJudge

    @property
    def metric(self) -> Measure:
        """The metric that judges."""
        return self.judge.metric

    def of(self, data: RankingData) -> Self:
        """Return the same with another feature map of the rows, which the validation set shares."""
        return replace(self, judge=self.judge.of(data))

    def require(self, settings: Pairs, n_alphas: int) -> None:
        """Raise the ValueErrors of `judge_path`."""
        if self.judge.splits is not None:
            for number, (train, _) in enumerate(self.judge.splits):
                self.data.require_training_pairs(settings, number, train)
        elif self.judge.validation is None and not self.data.is_single_query:
            require_leave_query_out(self.data, settings)

    def needs_basis(self, settings: Pairs, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        if self.judge.validation is not None:
            return False
        data, splits = self.data, self.judge.splits
        if splits is not None:
            if not is_from_decomposition(data, settings, is_dual, splits):
                return False
            return is_one_regression(data, settings) or not are_small(folds_of(splits))
        if data.is_single_query:
            return settings.compiled in ("none", "kept")
        if settings.joins_all_rows:
            return is_dual and _of_all_rows(settings)
        return not (is_dual and are_small(data.held_together))

    def refitted(self, models: RidgeModels, alphas: Vector) -> Vector:
        """Return the scores of all test rows by models that are fitted to each split."""
        assert self.judge.splits is not None

        def coefs_of(rest: Statistics) -> Vector:
            return rest.decompose(scale=models.scale).coef(alphas)

        return np.hstack(split_scores(self.data, models.statistics(), self.judge.splits, coefs_of))

    def judge_constrained(
        self, coordinates: Coordinates, settings: Pairs, scale: bool, given: Vector | None
    ) -> Solved:
        """Judge the ridges of models under constraints: the model of every split is solved anew.

        Without `given`, there is a grid of ridges that depends on the data.
        """
        data, judge = coordinates.data, self.judge
        total = coordinates.statistics(settings)
        alphas, solved = coordinates.constrained(total, given, scale)

        def coefs_of(rest: Statistics) -> Vector:
            return coordinates.constrained(rest, alphas, scale)[1]

        if judge.validation is not None:
            scores = judge.validation_scores(solved)
        else:
            assert judge.splits is not None
            scores = np.hstack(split_scores(data, total, judge.splits, coefs_of))
        return alphas, solved, judge.judge(judge.shared(scores))

    def judge_steps(
        self, coordinates: Coordinates, settings: Pairs, scale: bool, given: Vector | None
    ) -> Solved | None:
        """Judge the ridges of wide sparse rows: all rows and the splits are solved together.

        As many are as memory holds, and at most eight, which one pass over X multiplies. The result
        is None if so many products are taken that direct solutions are faster.
        """
        data, judge = coordinates.data, self.judge
        splits, parts = judge.splits or (), [data, *map(data.counting, judge.counts())]
        alphas, solved, scores, left = given, np.empty(0), [], coordinates.most_products
        for group in blocks(len(parts), systems_at_once(data)):
            systems = Systems(parts[group], settings, left)
            if alphas is None:
                largest = systems.largest_eigenvalue(scale=scale)
                alphas = default_alphas(largest or 1.0, data.offset is not None)
            found = systems.solve(alphas, scale=scale)
            if found is None:
                return None
            left -= systems.n_products
            if group.start == 0:
                solved, found = found[0], found[1:]
            numbers = range(max(group.start - 1, 0), group.stop - 1)
            scores += [
                data.scores(splits[k][1], coefs) for k, coefs in zip(numbers, found, strict=True)
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
        scores = self._scores(models, ties.alphas)
        queries = self.judge.scored.queries
        return self.judge.judge(ties.join(self.judge.shared(scores), queries))

    def _scores(self, models: RidgeModels, alphas: Vector) -> Vector:
        """Return the scores of the held-out rows, (n_alphas, n_held_out_rows)."""
        data = self.data
        settings, ridge = models.settings, models.ridge
        if self.judge.validation is not None:
            return self.judge.validation_scores(models.coefs(ridge.coef(alphas)))
        if (splits := self.judge.splits) is not None:
            if not is_from_decomposition(data, settings, ridge.is_dual, splits):
                return self.refitted(models, alphas)
            return np.hstack(fold_scores(data, settings, ridge, splits, alphas))
        if data.is_single_query:
            return leave_row_out(data, settings, ridge, alphas, models.statistics)
        if ridge.is_dual and _of_all_rows(settings):
            return folds_out(data, settings, ridge, data.held_together, alphas)[0]
        return leave_query_out(data, settings, ridge, alphas, models.statistics)


@dataclass(frozen=True, eq=False)
class LeavePairOut(PathJudge):
    """Holds out every pair of rows with different labels, and counts those in the right order.

    The rows are those of one query, or all form pairs with each other.

    Attributes
    ----------
    accuracy : Metric
        Pairwise accuracy.
    first_equal : ndarray of shape (n_rows,), int64
        For each row, the number of the first row that has the same values. The two rows tie.
    """

    accuracy: Metric
    first_equal: Rows

    @property
    def metric(self) -> Metric:
        """Pairwise accuracy."""
        return self.accuracy

    @classmethod
    def make(cls, data: RankingData, scoring: Scoring) -> LeavePairOut:
        """Check the scoring, and find rows with equal values.

        Raises
        ------
        ValueError
            If `scoring` is anything but pairwise accuracy.
        """
        metric = metric_of("pairwise_accuracy" if scoring is None else scoring, data.y, True)
        if metric.name != "pairwise_accuracy":
            raise ValueError(
                f"cv={LEAVE_PAIR_OUT!r} knows single pairs, so scoring must be None or "
                f"'pairwise_accuracy', got {metric.name!r}"
            )
        rows, one = np.arange(len(data.y)), np.zeros(len(data.y), np.int64)
        first_equal = first_equal_rows(data.X, rows, one, [])
        return cls(data, metric, rows if first_equal is None else first_equal)

    def of(self, data: RankingData) -> LeavePairOut:
        """Return the same with another feature map."""
        return replace(self, data=replace(data, y=self.data.y))

    def require(self, settings: Pairs, n_alphas: int) -> None:
        """Raise a ValueError if there are several queries, or if the work would take too long."""
        data = self.data
        n_queries = data.queries.n_filled
        if n_queries > 1 and settings.scope != "global":
            raise ValueError(
                f"cv={LEAVE_PAIR_OUT!r} holds out pairs of one query, or of all rows with "
                f"scope='global', got {n_queries} queries"
            )
        # If a query has weight 1 in all, leaving rows out gives its other rows more weight.
        of_queries = settings.kind is None and settings.weighting == "queries" and n_queries > 1
        if of_queries or settings.compiled not in ("none", "kept"):
            raise ValueError(
                f"cv={LEAVE_PAIR_OUT!r} is for pairs='with_ties', or None without "
                f"weighting='queries', got pairs={settings.short!r}: give cv a splitter"
            )
        n_rows, rank = len(data.y), data.n_features
        n_solved = float(n_rows) ** 2 * n_alphas
        # Pairs that are solved one by one take as long as this many flops of a product.
        flops = (2.0 if self._have_one_weight else 12.0) * n_solved * rank
        if flops > limits.now.pair_flops:
            raise ValueError(
                f"cv={LEAVE_PAIR_OUT!r} of {n_rows} rows, rank {rank} and {n_alphas} alphas "
                f"takes the time of {flops:.0e} flops, at most {limits.now.pair_flops:.0e}: "
                "give fewer alphas, or cv a splitter"
            )

    def needs_basis(self, settings: Pairs, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        return True

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge every alpha by the share of held-out pairs in the right order.

        Only pairs with different labels count. The weight of a pair is the product of the weights
        of its rows, each ``v`` times the weight of its query. Equal scores count ½. The share is
        NaN if a difference of held-out scores would be rounding error, or if there is no pair. The
        features stay scaled as in `ridge`. There is no standard deviation, because pairs that share
        a row are not independent.

        Call `require` first.
        """
        data, weights = self.data, self._weights
        ties = PathTies.of(data, models.settings, models.ridge, models.alphas)
        right, total = np.zeros(len(models.alphas)), 0.0
        for i, j, found in self._differences(models, ties.alphas):
            found = ties.join_differences(found)
            found[:, self.first_equal[i] == self.first_equal[j]] *= 0.0
            if data.offset is not None:
                found += data.offset[i] - data.offset[j]
            weight = weights[i] * weights[j]
            right += (1 + np.sign(found)) / 2 @ weight
            total += weight.sum()
        return Judged(right / (total or np.nan), np.full(len(right), np.nan))

    @property
    def _weights(self) -> Vector:
        """The weights of rows. The weight of a pair is the product of those of its rows."""
        return self.data.v * self.data.query_weight_of_rows

    @property
    def _have_one_weight(self) -> bool:
        """Whether all rows that count have the same weight, so that all pairs leave the same."""
        return len(np.unique(self._weights[self._weights > 0])) < 2

    def _differences(
        self, models: RidgeModels, alphas: Vector
    ) -> Iterator[tuple[Rows, Rows, Vector]]:
        """Yield pairs of rows (i, j), and ``f_i − f_j`` by models without both, for all alphas.

        i has the higher label.
        """
        data = self.data
        counted = np.flatnonzero(self._weights > 0)
        higher = data.y[counted, None] > data.y[counted]
        regression = RowRegression.of(data, models.settings, models.ridge)
        rows = np.arange(len(data.y))
        z = np.empty((len(rows), len(regression.eigen.eigenvalues)))
        for part in blocks(len(rows), limits.now.held_rows):
            z[part] = regression.features(rows[part])
        step = max(1, limits.now.pair_entries // (len(alphas) * len(rows)))
        for part in blocks(len(counted), step):
            some, other = np.nonzero(higher[part])
            i, j = counted[part][some], counted[other]
            if self._have_one_weight:
                found = _without_both(regression, z, counted[part], alphas)
                yield i, j, found[:, some, j]
                continue
            pairs = np.column_stack([i, j]).ravel()
            for own in regression.units(pairs, np.arange(0, len(pairs) + 1, 2), z):
                both, here = np.asarray(own.rows), [own._replace(rows=slice(None))]
                scores, _ = hold_out(regression.eigen, alphas, here, len(both))
                yield both[::2], both[1::2], scores[:, ::2] - scores[:, 1::2]


def _without_both(regression: RowRegression, z: Vector, i: Rows, alphas: Vector) -> Vector:
    """Return ``f_i − f_j`` without rows i and j, (n_alphas, n_i, n_rows), for j of i's weight.

    These are ``f_B = (I − H_BB)⁻¹ (fit_B − H_BB y_B)`` for all pairs B at once.
    """
    data, eigen = regression.data, regression.eigen
    v, y = data.v[i[0]], data.target(regression.settings) - regression.mean_y
    factor = factors_without(data, regression.settings, np.array([2 * v]))[0]
    both = (regression.settings.kind is not None) / data.v.sum()
    out = np.zeros((len(alphas), len(i), len(z)))  # 0 where no pair is left to fit to
    scaled = np.empty_like(z)
    for found, alpha in zip(out, alphas if factor > 0 else (), strict=False):
        np.divide(z, eigen.eigenvalues + alpha / factor, out=scaled)
        h_j, fit_j = v * (np.einsum("jk,jk->j", scaled, z) + both), scaled @ eigen.projection
        h_i, h = h_j[i, None], v * (z[i] @ scaled.T + both)
        of_i = fit_j[i, None] - h_i * y[i, None] - h * y
        of_j = fit_j - h * y[i, None] - h_j * y
        pivot, larger = (1 - h_i) * (1 - h_j) - h * h, np.maximum(1 - h_i, 1 - h_j)
        sure = (larger > 0) & (pivot >= SMALLEST_PIVOT * larger)  # by rounding, it may be less
        found[:] = np.nan
        np.divide((1 - h_j - h) * of_i - (1 - h_i - h) * of_j, pivot, out=found, where=sure)
    return out


def is_cheap(data: RankingData, settings: Pairs, n_dimensions: int, form: str) -> bool:
    """Tell whether leaving out every query, or every row of one query, is exact and cheap.

    It is if the identities of least squares hold, or if all refits together take at most
    `Limits.refit_flops`. `n_dimensions` is the order of the system that is solved.
    """
    n_rows = len(data.y)
    if data.is_single_query:
        exact, n_refits = settings.compiled in ("none", "kept"), n_rows
    else:
        exact = not settings.joins_all_rows or (form == "dual" and _of_all_rows(settings))
        n_refits = data.held_together.n_queries
    if exact:
        return True
    flops = flops_of_refits(n_rows, n_dimensions, settings, n_refits)
    return flops <= limits.now.refit_flops


def _of_all_rows(settings: Pairs) -> bool:
    """Tell whether the pairs with ties of all rows are one regression on rows."""
    return settings.joins_all_rows and settings.compiled == "kept"
