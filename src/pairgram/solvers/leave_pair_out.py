"""Leave-pair-out: judge the order of two rows by the model that has seen neither."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.checks import Vector
from pairgram._support.rates import seconds_of
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import first_equal_rows
from pairgram.metrics.metric import Metric
from pairgram.model_selection.judge import Judged, metric_of
from pairgram.solvers.formulation import PathJudge, RidgeModels
from pairgram.solvers.leave_out import PathTies, refuse_long_refits
from pairgram.solvers.leave_out_dual import (
    SMALLEST_PIVOT,
    RowRegression,
    blocks_of_rows,
    factors_without,
    in_one_query,
)
from pairgram.solvers.ridge_path import RidgePath

if TYPE_CHECKING:
    from pairgram.metrics.evaluation import Scoring
    from pairgram.solvers.formulation import Statistics

LEAVE_PAIR_OUT = "leave-pair-out"
# Up to this many different ridges are solved by products of whole matrices. With more of them,
# pairs are solved one by one.
MAX_PRODUCTS = 32


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
    first_equal: NDArray[np.int64]

    @property
    def metric(self) -> Metric:
        """Pairwise accuracy."""
        return self.accuracy

    @classmethod
    def make(cls, data: RankingData, scoring: Scoring, n_threads: int | None) -> LeavePairOut:
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
        first_equal = first_equal_rows(data.X, rows, one, [], n_threads)
        return cls(data, n_threads, metric, rows if first_equal is None else first_equal)

    def of(self, data: RankingData) -> LeavePairOut:
        """Return the same with another feature map."""
        return replace(self, data=replace(data, y=self.data.y))

    def require(self, settings: PairSettings, n_alphas: int) -> float:
        """Raise a ValueError if there are several queries, or if the work would take too long.

        Otherwise return the seconds that `judge_path` is expected to take.
        """
        data = self.data
        n_queries = data.queries.n_filled
        if n_queries > 1 and settings.scope != "global":
            raise ValueError(
                f"cv={LEAVE_PAIR_OUT!r} holds out pairs of one query, or of all rows with "
                f"scope='global', got {n_queries} queries"
            )
        if self._is_refitted(settings):
            what = f"cv={LEAVE_PAIR_OUT!r} with pairs={settings.pairs!r}"
            _, sizes = np.unique(data.y[data.v > 0], return_counts=True)
            n_pairs = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2
            refuse_long_refits(data, settings, n_pairs, what)
            return 0.0
        factors = _factors_without_pairs(data, settings)
        # An elementwise operation on single pairs takes as long as 30 flops of a product.
        per_entry = 75.0 if factors is None else 2.0 * len(factors)
        n_rows, rank = len(data.y), data.n_features
        n_solved = float(n_rows) ** 2 * n_alphas
        flops = per_entry * n_solved * rank
        if flops > limits.now.pair_flops:
            raise ValueError(
                f"cv={LEAVE_PAIR_OUT!r} of {n_rows} rows, rank {rank} and {n_alphas} alphas "
                f"takes the time of {flops:.0e} flops, at most {limits.now.pair_flops:.0e}: "
                "give fewer alphas, or cv a splitter"
            )
        return seconds_of({"pair out": n_solved, "gram": flops / 2})

    def n_matrices(self, settings: PairSettings) -> int:
        """Return the largest number of n_rows × n_rows matrices of `judge_path` in dual form."""
        if self._is_refitted(settings):
            return 0
        return 2 if _factors_without_pairs(self.data, settings) is not None else 3

    def needs_basis(self, settings: PairSettings, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        return not self._is_refitted(settings)

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge every alpha by the share of held-out pairs in the right order.

        Only pairs with different labels count. The weight of a pair is the product of the weights
        of its rows, each ``v`` times the weight of its query. Equal scores count ½. The share is
        NaN if a difference of held-out scores would be rounding error, or if there is no pair. The
        features stay scaled as in `ridge`. There is no standard deviation, because pairs that share
        a row are not independent.

        Call `require` first.
        """
        settings, ridge, alphas = models.settings, models.ridge, models.alphas
        if self._is_refitted(settings):
            shares = self._by_refits(models.statistics(), ridge, alphas)
        else:
            shares = self._by_hat_matrix(settings, ridge, alphas)
        return Judged(shares, np.full(len(shares), np.nan))

    def _is_refitted(self, settings: PairSettings) -> bool:
        # If a query has weight 1 in all, leaving rows out gives its other rows more weight.
        if settings.kind == "none":
            return settings.weighting == "queries" and self.data.queries.n_filled > 1
        return settings.kind != "kept"

    @property
    def _weights(self) -> Vector:
        """The weights of rows. The weight of a pair is the product of those of its rows."""
        return self.data.v * self.data.query_weight_of_rows

    def _by_hat_matrix(self, settings: PairSettings, ridge: RidgePath, alphas: Vector) -> Vector:
        """Use ``f_B = (I − H_BB)⁻¹ (fit_B − H_BB y_B)`` for every pair B of rows."""
        v, y = self._weights, self.data.y
        pairs = _HeldOut.of(RowRegression.of(self.data, settings, ridge))
        counts = _Counts.of(self, settings, ridge, alphas)
        for at, alpha in enumerate(counts.ties.alphas):
            for rows, differences in pairs.differences(alpha):
                i, j = np.nonzero((y[rows, None] > y) & (v[rows, None] > 0) & (v > 0))
                counts.add(at, rows[i], j, differences[i, j])
        return counts.shares()

    def _by_refits(self, total: Statistics, ridge: RidgePath, alphas: Vector) -> Vector:
        data, v = self.data, self._weights
        counts = _Counts.of(self, total.settings, ridge, alphas)
        rows = np.arange(len(v))
        for pair in np.argwhere((data.y[:, None] > data.y) & (data.v[:, None] > 0) & (data.v > 0)):
            rest = total.without(data, np.delete(rows, pair), pair, self.n_threads)
            coefs = rest.path_at(ridge.factor).coef(counts.ties.alphas)
            scores = data.features(pair) @ coefs.T
            for at, difference in enumerate(scores[0] - scores[1]):
                counts.add(at, pair[:1], pair[1:], np.array([difference]))
        return counts.shares()


@dataclass(frozen=True, eq=False)
class _Counts:
    """The weight of all pairs, and of those in the right order, for every alpha.

    Attributes
    ----------
    ties : PathTies
        Pairs must be added for its first alpha before the others.
    weights : ndarray of shape (n_rows,)
        Weights of rows.
    first_equal : ndarray of shape (n_rows,), int64
        Rows with the same values have the same number.
    offset : ndarray of shape (n_rows,), or None
        What is added to the scores before their order is judged.
    tied : ndarray of shape (n_rows, n_rows), bool
        The pairs whose difference at the first alpha is rounding error.
    right, weight : ndarray of shape (n_models,)
        The weight of the pairs in the right order, and of all pairs.
    """

    ties: PathTies
    weights: Vector
    first_equal: NDArray[np.int64]
    offset: Vector | None
    tied: NDArray[np.bool_]
    right: Vector
    weight: Vector

    @classmethod
    def of(
        cls, held_out: LeavePairOut, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> _Counts:
        """Return empty counts for the rows of `held_out`."""
        ties = PathTies.of(held_out.data, settings, ridge, alphas)
        n_rows, n_models = len(held_out.data.y), len(ties.alphas)
        return cls(
            ties,
            held_out._weights,
            held_out.first_equal,
            held_out.data.offset,
            np.zeros((n_rows, n_rows), dtype=bool),
            np.zeros(n_models),
            np.zeros(n_models),
        )

    def add(self, at: int, i: NDArray[np.int64], j: NDArray[np.int64], differences: Vector) -> None:
        """Add pairs of rows i and j by the differences of their scores; i has the higher label."""
        tied = np.abs(differences) <= self.ties.of_pairs(at)
        if at == 0:
            self.tied[i, j] = tied
        tied &= self.tied[i, j]
        tied |= self.first_equal[i] == self.first_equal[j]
        unsure = np.isnan(differences)
        differences = np.where(tied, 0.0, differences)
        if self.offset is not None:
            differences += self.offset[i] - self.offset[j]
        credit = np.where(differences == 0, 0.5, np.where(differences > 0, 1.0, 0.0))
        credit[unsure] = np.nan
        weights = self.weights[i] * self.weights[j]
        self.right[at] += weights @ credit
        self.weight[at] += weights.sum()

    def shares(self) -> Vector:
        """Return the share of pairs in the right order, for every requested alpha."""
        known = self.weight > 0
        out = np.full(len(known), np.nan)
        np.divide(self.right, self.weight, out=out, where=known)
        return out[self.ties.n_added :]


def _factors_without_pairs(data: RankingData, settings: PairSettings) -> Vector | None:
    """Return the different factors of objectives without a pair of rows, or None if too many."""
    data = in_one_query(data)
    levels = np.unique(data.v)
    if len(levels) > MAX_PRODUCTS:
        return None
    values = np.unique(factors_without(data, settings, np.add.outer(levels, levels).ravel()))
    return values if len(values) <= MAX_PRODUCTS else None


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """The 2 × 2 systems of all pairs of rows."""

    regression: RowRegression
    z: Vector
    v: Vector
    y: Vector
    values: Vector | None  # as `_factors_without_pairs` returns them

    @classmethod
    def of(cls, regression: RowRegression) -> _HeldOut:
        """Prepare the systems: map all rows into the basis."""
        data, v = regression.data, regression.data.v
        z = np.empty((len(v), len(regression.eigen.eigenvalues)))
        for rows in blocks_of_rows(*z.shape):
            z[rows] = regression.features(rows)
        values = _factors_without_pairs(data, regression.settings)
        return cls(regression, z, v, data.target(regression.settings), values)

    def differences(self, alpha: float) -> Iterator[tuple[NDArray[np.int64], Vector]]:
        """Yield rows i, and ``f_i − f_j`` by the model without i and j, (len(i), n_rows)."""
        n_rows = len(self.v)
        step = 1 if self.values is None else max(1, limits.now.pair_entries // n_rows)
        scratch = np.empty_like(self.z if self.values is None else self.z[:0])
        for begin in range(0, n_rows, step):
            rows = np.arange(begin, min(begin + step, n_rows))
            factors = self.regression.factors_without(self.v[rows, None] + self.v)
            out = np.zeros(factors.shape)  # 0 where no pair is left to fit to
            if self.values is None:
                ridges = np.divide(
                    alpha, factors[0], out=np.full(n_rows, np.inf), where=factors[0] > 0
                )
                np.add(self.regression.eigen.eigenvalues, ridges[:, None], out=scratch)
                inverse = np.divide(1.0, scratch, out=scratch)
                out[0] = np.where(factors[0] > 0, self._solved(rows, inverse)[0], 0.0)
            else:
                for value in self.values[self.values > 0]:
                    inverse = 1 / (self.regression.eigen.eigenvalues + alpha / value)
                    np.copyto(out, self._solved(rows, inverse), where=factors == value)
            yield rows, out

    def _solved(self, rows: NDArray[np.int64], inverse: Vector) -> Vector:
        """Solve for pairs of rows i with all j; `inverse` has shape (rank,) or (n_rows, rank)."""
        z, v, y, projection = self.z, self.v, self.y, self.regression.eigen.projection
        both = self.regression.intercept / self.regression.weight
        of_j = z * inverse
        k_jj = np.einsum("jk,jk->j", of_j, z) + both
        fit_j = of_j @ projection
        k_ij = z[rows] @ of_j.T + both
        if inverse.ndim == 1:
            k_ii, fit_i = k_jj[rows, None], fit_j[rows, None]
        else:
            k_ii = (np.square(z[rows]) @ inverse.T) + both
            fit_i = (z[rows] * projection) @ inverse.T
        h_ii, h_jj, h_ij, h_ji = v[rows, None] * k_ii, v * k_jj, k_ij * v, v[rows, None] * k_ij
        y_i = y[rows, None] - self.regression.mean_y
        y_j = y - self.regression.mean_y
        g_i = fit_i - h_ii * y_i - h_ij * y_j
        g_j = fit_j - h_ji * y_i - h_jj * y_j
        pivot = (1 - h_ii) * (1 - h_jj) - h_ij * h_ji
        numerator = (1 - h_jj - h_ji) * g_i - (1 - h_ii - h_ij) * g_j
        larger = np.maximum(1 - h_ii, 1 - h_jj)  # by rounding, it may be 0 or less
        sure = (larger > 0) & (pivot >= SMALLEST_PIVOT * larger)
        out = np.full(k_ij.shape, np.nan)
        np.divide(numerator, pivot, out=out, where=sure)
        return out
