"""Products of columns in closed form, where all queries share one list of items."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Self

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

# A weight may differ by so much from that of its query times that of its item.
EQUAL_WEIGHTS = 8 * float(np.finfo(np.float64).eps)
# A query has lost its digits where it holds all but this share of a direction.
LEAST_REST = 1e-10
# Halvings of an interval of double precision.
BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class CompleteLists:
    """Queries u that share one list of items v: ``L_q = c_q L`` for all of them.

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
        if n_kept or grouped or queries.n_filled < 2:
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
        if sides.left is None or len(sides.columns) < data.X.shape[1]:
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

    Where multiples of a model E have no ridge, the best multiple m is known for every ridge, and
    the model is ``(G + alpha I)⁻¹ (g + alpha m E)``. What a query gets of E by the statistics
    without it has the form of t⁻, and so has the multiple that is best without it.

    Time: ``9 (p³ + r³)`` flops for the eigenvectors, and for every ridge 2 p r (p + r) for the
    coefficients; held-out scores take ``4 q p r + 2 n r`` for n rows of q queries, and 4 q p r more
    with E.

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
            has_free = data.free is not None
            self._a, P = _decomposed(u[:, None] * left * u, has_free)
            self._s, Q = _decomposed(v[:, None] * right * v, has_free)
            self._P, self._Q = u[:, None] * P, v[:, None] * Q
            self._weight, self._Z = weight, lists.left @ self._P
            self._h = (targets * b) @ (V @ self._Q)
            self._products = np.outer(self._a, self._s)
            # What the right side has outside of the range of G is rounding error.
            right_side = self._Z.T @ (weight[:, None] * self._h)
            self._g = np.where(self._products > 0, right_side, 0.0)
            self._free = np.zeros_like(self._g)
            if data.free is not None:
                free = self._P.T @ data.free.reshape(len(left), len(right)) @ self._Q
                least = smallest_eigenvalue(
                    free.size, float(left.diagonal().max() * right.diagonal().max())
                )
                if float((free**2 * self._products).sum()) > least:
                    self._free = free  # otherwise no pair of rows has another score by it

    @property
    def largest(self) -> float:
        """λ_max, the largest eigenvalue; with E, that of `EigenPath.beside`."""
        products, moved = self._products.ravel(), (self._free * self._products).ravel()
        weight = float(self._free.ravel() @ moved)
        if weight == 0:
            return float(products.max(initial=0.0))
        # Of D − D e eᵀ D / γ, between the two largest numbers of D (the secular equation).
        low, high = np.partition(np.append(products, 0.0), -2)[-2:].tolist()
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                is_above = float((moved**2 / (products - middle)).sum()) < weight
            low, high = (middle, high) if is_above else (low, middle)
        return float(max(low, weight))

    def _ridge(self, alpha: float) -> _Ridge:
        """Return what a ridge makes of the statistics."""
        shifted = self._products + alpha
        inverse = 1 / np.where(shifted > 0, shifted, np.inf)
        rest = np.where(shifted > 0, alpha * inverse, 1.0)
        own = float((self._free**2 * (self._products * inverse)).sum())
        return _Ridge(
            inverse, self._free * rest, float((self._free * self._g * inverse).sum()), own
        )

    def coef(self, alphas: ArrayLike, damping: ArrayLike | None = None) -> Vector:
        """Return the solutions, shape (n_alphas, n_features)."""
        alphas = np.asarray(alphas, dtype=np.float64)
        out = np.empty((len(alphas), len(self._P) * len(self._Q)))

        def solve(number: int) -> None:
            ridge = self._ridge(alphas[number])
            X = self._g * ridge.inverse + ridge.free * (ridge.along / (ridge.own or 1.0))
            out[number] = (self._P @ X @ self._Q.T).ravel()

        _in_threads(solve, len(alphas), self._threads)
        return out

    def held_out_scores(self, alphas: Vector) -> Vector:
        """Return the scores of every row by the model without its query, (n_alphas, n_rows).

        Those of a query that leaves no digits of a direction are NaN.
        """
        Z, c, s, h = self._Z, self._weight[:, None], self._s, self._h
        targets = h / np.where(s > 0, s, np.inf)
        of_things = np.ascontiguousarray((self._lists.right @ self._Q).T)
        order = self._queries.order
        out = np.empty((len(alphas), len(Z) * of_things.shape[1]))

        def score(number: int) -> None:
            ridge = self._ridge(alphas[number])
            own = c * (Z**2 @ (s * ridge.inverse))
            left = _if_digits(1 - own, 1.0)
            t = (Z @ (self._g * ridge.inverse) - own * targets) / left
            if ridge.own:
                of_free, other = Z @ ridge.free / left, c * (Z @ (self._free * ridge.inverse))
                along = ridge.along + (other * (s * t - h)).sum(axis=1)
                rest = ridge.own - (other * s * of_free).sum(axis=1)
                t += of_free * (along / _if_digits(rest, ridge.own))[:, None]
            scores = (t @ of_things).ravel()
            if order is None:
                out[number] = scores
            else:
                out[number, order] = scores

        _in_threads(score, len(alphas), self._threads)
        return out


class _Ridge(NamedTuple):
    """What one alpha makes of statistics G and g, in their basis, and of a model E without a ridge.

    Attributes
    ----------
    inverse : ndarray of shape (n_left, n_right)
        The eigenvalues of ``(G + alpha I)⁻¹``, 0 where G + alpha I has none.
    free : ndarray of shape (n_left, n_right)
        ``alpha (G + alpha I)⁻¹ E``.
    along, own : float
        ``Eᵀ (G + alpha I)⁻¹ g`` and ``1 − alpha Eᵀ (G + alpha I)⁻¹ E``, whose ratio is the best
        multiple of E; 0 without E.
    """

    inverse: Vector
    free: Vector
    along: float
    own: float


def _if_digits(rest: Vector, whole: float) -> Vector:
    """Return what is left of a number, NaN where it has lost its digits."""
    return np.where(rest > LEAST_REST * whole, rest, np.nan)


def _in_threads(work: Callable[[int], None], count: int, n_threads: int) -> None:
    """Call `work` for each of some numbers; each writes only what is its own."""
    with single_threaded_blas, ThreadPoolExecutor(max(1, min(n_threads, count))) as pool:
        list(pool.map(work, range(count)))


def _decomposed(matrix: Vector, whole: bool) -> Eigen:
    """Return the eigenvalues above rounding error, and their eigenvectors.

    With `whole` the others are there too, and are 0.
    """
    found = Eigen.of(matrix)
    large = found.values > smallest_eigenvalue(len(matrix), found.values.max(initial=0.0))
    if whole:
        return found._replace(values=np.where(large, found.values, 0.0))
    return Eigen(found.values[large], np.ascontiguousarray(found.vectors[:, large]))
