"""Products of columns in closed form, where all queries share one list of things."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

import pairgram._core as _core
from pairgram._support.checks import Vector, require_finite
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.base import sides_of
from pairgram.solvers.cross_rows import Eigen
from pairgram.solvers.ridge_path import RidgePath, scale_factors, smallest_eigenvalue

# A weight may differ by so much from that of its query times that of its thing.
EQUAL_WEIGHTS = 8 * float(np.finfo(np.float64).eps)
# A query has lost its digits where it holds all but this share of a direction.
LEAST_REST = 1e-10


@dataclass(frozen=True, eq=False)
class CompleteLists:
    """Queries u that share one list of things v: ``L_q = c_q L`` for all of them.

    The statistics of the products are ``G = (Uᵀ C U) ⊗ S`` with ``S = Vᵀ L V``, whose eigenvectors
    are those of two small matrices.

    Attributes
    ----------
    left : ndarray of shape (n_queries, p), float64
    right : ndarray of shape (n_things, r), float64
    of_queries : ndarray of shape (n_queries,), float64
    of_things : ndarray of shape (n_things,), float64
        The weight of a row is the product of these.
    """

    left: Vector
    right: Vector
    of_queries: Vector
    of_things: Vector

    @classmethod
    def of(cls, data: RankingData, n_threads: int | None) -> Self | None:
        """Return the lists of rows with a map to products, or None if they are not complete."""
        sides, queries = sides_of(data.feature_map), data.queries
        if sides is None or not data.is_one_block or data.preferences is not None:
            return None
        n_kept = data.n_features - sides.n_left * sides.n_right
        grouped = data.group_of is not None
        if n_kept or grouped or data.free is not None or queries.n_filled < 2:
            return None
        n_things = len(data.y) // queries.n_queries
        if (queries.sizes != n_things).any():
            return None
        weights = queries.grouped(data.v).reshape(-1, n_things)
        query, thing = np.unravel_index(weights.argmax(), weights.shape)
        of_things = weights[query]
        of_queries = weights[:, thing] / (of_things[thing] or 1.0)
        products = np.outer(of_queries, of_things)
        if (np.abs(weights - products) > EQUAL_WEIGHTS * products).any():
            return None
        problem = data.problem(PairSettings(None))
        threads = resolve_n_threads(n_threads)
        found = _core.complete_lists(data.X, data.node_map(), problem, threads)
        if found is None or not all(np.isfinite(side).all() for side in found):
            return None
        if sides.left is None or sides.n_columns < data.X.shape[1]:
            require_finite(data.X, "X")  # also columns of no side
        return cls(*found, of_queries, of_things)

    def takes(self, settings: PairSettings) -> bool:
        """Tell whether the pairs are the same in all lists, whatever their labels."""
        return settings.pairs is None or (
            settings.pairs == "with_ties" and settings.scope == "query"
        )


class CompletePath(RidgePath):
    """Solutions of ``(G + alpha I) w = g`` of complete lists, and exact scores without each query.

    With ``UᵀCU = P diag(a) Pᵀ``, ``S = Q diag(s) Qᵀ``, ``Z = U P`` and ``h_q = Qᵀ Vᵀ L y_q``, the
    columns of ``W Q`` are ridge problems of their own, one for every eigenvalue of S:

        W = P X Qᵀ,  x_ij = (Zᵀ C h)_ij / (a_i s_j + alpha).

    They have the targets ``h_qj / s_j`` and the weights ``c_q s_j``. So one number for each turns
    the scores t of a query in the basis of S into those of the model without it:

        t⁻_qj = (t_qj − e_qj h_qj / s_j) / (1 − e_qj),
        e_qj = c_q s_j Σ_i Z_qi² / (a_i s_j + alpha).

    Time: ``9 (p³ + r³)`` flops for the eigenvectors, and for every ridge 2 p r (p + r) for the
    coefficients; held-out scores take ``4 q p r + 2 n r`` for n rows of q queries.

    Parameters
    ----------
    lists : CompleteLists
    data : RankingData
    settings : PairSettings
        What `CompleteLists.takes`.
    scale : bool
    n_threads : int or None
    """

    def __init__(
        self,
        lists: CompleteLists,
        data: RankingData,
        settings: PairSettings,
        *,
        scale: bool,
        n_threads: int | None,
    ) -> None:
        self.band, self.factor, self.is_dual = None, None, False
        data.require_pair_weight(settings, data.pair_weight(settings))
        self._lists, self._queries = lists, data.queries
        self._threads = resolve_n_threads(n_threads)
        b, V = lists.of_things, lists.right
        weight = settings.scatter_factor(lists.of_queries * b.sum()) * lists.of_queries
        if data.query_weights is not None:
            weight = weight * data.query_weights
        targets = self._queries.grouped(data.target(settings)).reshape(-1, len(b))
        if settings.pairs is not None:
            counted = b > 0
            V = V - V[np.argmax(counted)]  # equal values leave exactly 0
            V = V - b @ V / b.sum()
            targets = targets - (targets @ b / b.sum())[:, None]
        with single_threaded_blas:
            left = lists.left.T @ (weight[:, None] * lists.left)
            right = V.T @ (b[:, None] * V)
            u, v = (
                np.where(squares > 0, scale_factors(squares) if scale else 1.0, 0.0)
                for squares in (left.diagonal(), right.diagonal())
            )
            self._a, P = _positive(u[:, None] * left * u)
            self._s, Q = _positive(v[:, None] * right * v)
            self._P, self._Q = u[:, None] * P, v[:, None] * Q
            self._weight, self._Z = weight, lists.left @ self._P
            self._h = (targets * b) @ (V @ self._Q)
            self._g = self._Z.T @ (weight[:, None] * self._h)

    @property
    def largest(self) -> float:
        """λ_max, the largest eigenvalue."""
        return float(self._a.max(initial=0.0) * self._s.max(initial=0.0))

    def _inverse(self, alpha: float) -> Vector:
        """Return the eigenvalues of ``(G + alpha I)⁻¹``, (n_left, n_right)."""
        return 1 / (np.outer(self._a, self._s) + alpha)

    def coef(self, alphas: ArrayLike, damping: ArrayLike | None = None) -> Vector:
        """Return the solutions, shape (n_alphas, n_features)."""
        alphas = np.asarray(alphas, dtype=np.float64)
        out = np.empty((len(alphas), len(self._P) * len(self._Q)))

        def solve(number: int) -> None:
            W = self._P @ (self._g * self._inverse(alphas[number])) @ self._Q.T
            out[number] = W.ravel()

        _in_threads(solve, len(alphas), self._threads)
        return out

    def held_out_scores(self, alphas: Vector) -> Vector:
        """Return the scores of every row by the model without its query, (n_alphas, n_rows).

        Those of a query that leaves no digits of a direction are NaN.
        """
        Z, c, targets = self._Z, self._weight[:, None], self._h / self._s
        of_things = np.ascontiguousarray((self._lists.right @ self._Q).T)
        order = self._queries.order
        out = np.empty((len(alphas), len(Z) * of_things.shape[1]))

        def score(number: int) -> None:
            inverse = self._inverse(alphas[number])
            t = Z @ (self._g * inverse)
            own = c * (Z**2 @ (self._s * inverse))
            t = (t - own * targets) / np.where(1 - own > LEAST_REST, 1 - own, np.nan)
            scores = (t @ of_things).ravel()
            if order is None:
                out[number] = scores
            else:
                out[number, order] = scores

        _in_threads(score, len(alphas), self._threads)
        return out


def _in_threads(work: Callable[[int], None], count: int, n_threads: int) -> None:
    """Call `work` for each of some numbers; each writes only what is its own."""
    with single_threaded_blas, ThreadPoolExecutor(max(1, min(n_threads, count))) as pool:
        list(pool.map(work, range(count)))


def _positive(matrix: Vector) -> Eigen:
    """Return the eigenvalues above rounding error, and their eigenvectors."""
    found = Eigen.of(matrix)
    least = smallest_eigenvalue(len(matrix), found.values.max(initial=0.0))
    large = found.values > least
    return Eigen(found.values[large], np.ascontiguousarray(found.vectors[:, large]))
