"""Ridges of wide sparse rows without a matrix, for several sets of weights at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.checks import Vector, require_finite
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData, apply_half_laplacian
from pairgram.data.pairs import PairSettings
from pairgram.solvers.ridge_path import DEFAULT_POWERS, scale_factors
from pairgram.solvers.statistics import NOISE, SMALLEST_SQUARES, count_varying

# The steps end when the residual falls below this share of the right-hand side,
TOLERANCE = 1e-10
# or below this if many ridges are solved.
PATH_TOLERANCE = 1e-8
# A ridge starts from the best combination of this many solutions of larger ridges.
KEPT_SOLUTIONS = 8
# One pass over X multiplies at most this many vectors.
WIDEST_PRODUCT = 8
# A solution whose true residual is no smaller than this share of the one before it is not improved
# further: the rest is rounding error.
PROGRESS = 0.5
# A residual r leaves an error of at most ‖r‖ / alpha. If that is more than this share of the first
# solution, larger ridges come before, each so many times the next: features that outnumber the rows
# leave directions in which only the ridge decides, and residuals hardly see them. The solutions of
# larger ridges do, and those of smaller ones start from them.
LARGEST_ERROR, RIDGE_STEP = 1e-6, 10.0
EPSILON = float(np.finfo(np.float64).eps)


def systems_at_once(data: RankingData) -> int:
    """Return how many systems of these rows to solve together: what a product takes, or memory."""
    vectors = len(DEFAULT_POWERS) + 24  # of n_features: solutions, their products, directions
    each = 8.0 * (vectors * data.X.shape[1] + 5 * data.X.shape[0])
    return max(1, min(WIDEST_PRODUCT, int(memory.available_memory() / 2 // each)))


class SparseSystems:
    """Systems ``(XᵀLX + alpha I) w = XᵀLy`` of CSR rows, solved without forming their matrices.

    Parameters
    ----------
    systems : sequence of RankingData
        The same CSR rows and targets, without a feature map, with the row weights of each system.
    settings : PairSettings
    n_threads : int or None, default=None
    most_products : float, default=infinity
        `solve` gives up once so many vectors were multiplied.

    Attributes
    ----------
    n_products : int
        How many vectors were multiplied.

    Notes
    -----
    A step of conjugate gradients multiplies by XᵀLX in O(nnz + n_rows) time. All systems take their
    steps together, so that X is read once a step. The number of steps grows with the square root of
    ``λ_max / alpha``. The preconditioner is the diagonal of ``XᵀLX + alpha I``.

    Ridges are solved from the largest down. Each starts from the Galerkin solution in the span of
    the last 8 solutions, whose products with XᵀLX are kept. All shifts of a system would share one
    Krylov space, but a preconditioner leaves no shifts: ``D (G + alpha I) D = D G D + alpha D²``.
    Without one, columns of different scale take thousands of steps. With it, the 34 default ridges
    of 160,000 × 20,000 rows take no more products than the shared space and its residuals do.

    A small first ridge comes after larger ones of which the solutions are not returned. Directions
    in which no pair differs would otherwise keep what the preconditioner has put there.

    The memory is X, 4 vectors of n_rows per system, and about n_alphas + 24 vectors of n_features
    per system.
    """

    def __init__(
        self,
        systems: Sequence[RankingData],
        settings: PairSettings,
        n_threads: int | None = None,
        most_products: float = inf,
    ) -> None:
        X = systems[0].X
        self.n_products, self._most_products = 0, most_products
        require_finite(X, "X")
        self._systems = [one.as_scope(settings) for one in systems]
        self._settings, self._threads = settings, resolve_n_threads(n_threads)
        self._X, self._n_features = X, X.shape[1]
        self._problems = [one.problem(settings) for one in self._systems]
        index = np.result_type(X.indptr, X.indices)
        self._pairs = _core.sparse_pairs(
            np.ascontiguousarray(X.indptr, index),
            np.ascontiguousarray(X.indices, index),
            np.ascontiguousarray(X.data),
            self._n_features,
            self._problems,
        )
        self._right_sides = [
            self._right_side(data, problem)
            for data, problem in zip(self._systems, self._problems, strict=True)
        ]
        self._diagonals = [self._diagonal(number) for number in range(len(systems))]

    def solve(self, alphas: Vector, *, scale: bool = False) -> NDArray[np.float64] | None:
        """Return the coefficients of all systems, shape (n_systems, n_alphas, n_features).

        The result is None if `most_products` do not suffice.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,), descending, ≥ 0
            The ridges. For 0 the solution has the minimum norm.
        scale : bool, default=False
            Whether each system scales its features, as in `Pairgram.solve`.

        Warns
        -----
        ConvergenceWarning
            If 10,000 steps do not bring the residual of a ridge below 1e-10 of the right-hand side,
            or below 1e-8 with several ridges, nor below what rounding errors may leave.
        """
        tolerance = TOLERANCE if len(alphas) == 1 else PATH_TOLERANCE
        factors = [self._factor(number, scale) for number in range(len(self._systems))]
        descents = [
            Descent(factor * side, factor**2 * diagonal, factor**2 * size, alphas, tolerance)
            for factor, side, (diagonal, size, _) in zip(
                factors, self._right_sides, self._diagonals, strict=True
            )
        ]
        with single_threaded_blas:  # waking other threads takes longer than a sum over features
            while live := [number for number, one in enumerate(descents) if not one.is_done]:
                if self.n_products >= self._most_products:
                    return None
                vectors = np.array([factors[number] * descents[number].vector for number in live])
                for number, product in zip(live, self.products(vectors, live), strict=True):
                    descents[number].take(factors[number] * product)
        unsolved = [alpha for one in descents for alpha in one.unsolved]
        if unsolved:
            warnings.warn(
                f"{limits.now.gradient_steps} steps of conjugate gradients do not solve "
                f"for alpha={max(unsolved):g}: scale the features to like size, or take a larger "
                "alpha",
                ConvergenceWarning,
                stacklevel=3,
            )
        return np.array(
            [factor * one.solutions for factor, one in zip(factors, descents, strict=True)]
        )

    def products(self, vectors: Vector, systems: Sequence[int]) -> Vector:
        """Return ``XᵀLX p`` for a vector of each of some systems, (n_vectors, n_features)."""
        numbers = np.array(systems, dtype=np.int64)
        self.n_products += len(numbers)
        return np.asarray(self._pairs.product(vectors, numbers, self._threads))

    def largest_eigenvalue(self, *, scale: bool = False) -> float:
        """Return λ_max of the first system to about 1e-14, by the Lanczos method."""
        factor = self._factor(0, scale)
        if self._n_features == 1:
            return float(factor[0] ** 2 * self._diagonals[0][0][0])
        matrix = LinearOperator(
            (self._n_features,) * 2,
            matvec=lambda w: factor * self.products((factor * w.ravel())[None], [0])[0],
            dtype=np.float64,
        )
        start = factor * self._right_sides[0]
        if not start.any():
            start = factor**2 * self._diagonals[0][0]
        if not start.any():  # no feature varies
            return 0.0
        # Its error is of the order of the square of the tolerance.
        return float(eigsh(matrix, 1, v0=start, tol=1e-8, return_eigenvectors=False)[0])

    def _factor(self, number: int, scale: bool) -> Vector:
        """Return what the features of a system are multiplied by, (n_features,)."""
        diagonal, _, constant = self._diagonals[number]
        factor = scale_factors(diagonal) if scale else np.ones(self._n_features)
        factor[constant] = 0.0  # what a product has there is rounding error
        return factor

    def _right_side(self, data: RankingData, problem: _core.RankingProblem) -> Vector:
        """Return ``XᵀLy``, (n_features,)."""
        z = data.target(self._settings).copy()
        for adjoint in (False, True):
            apply_half_laplacian(problem, z, adjoint=adjoint, n_threads=self._threads)
        return np.asarray(self._X.T @ z, dtype=np.float64)

    def _diagonal(self, number: int) -> tuple[Vector, Vector, NDArray[np.bool_]]:
        """Return the diagonal of ``XᵀLX``, sums of squares, and which features do not vary.

        Each has shape (n_features,). The diagonal is 0 for features that do not vary, and for
        others of which it has rounding error alone. The sums are those of values as they are, from
        which the diagonal loses digits.
        """
        data, settings = self._systems[number], self._settings
        data.require_pair_weight(settings, _core.pair_weight(self._problems[number]))
        diagonal, size = self._pairs.diagonal(number)
        varying = np.zeros(len(diagonal) + 1, dtype=np.int64)
        count_varying(data, settings.pairs is None, self._pairs.counted(number), varying)
        if size.max(initial=0.0) < SMALLEST_SQUARES and varying.any():
            raise ValueError(
                "X or the weights too small: squared differences of its features vanish: multiply "
                "X, as StandardScaler does"
            )
        return np.where(diagonal > NOISE * size, diagonal, 0.0), size, varying[:-1] == 0


class Descent:
    """The ridges of one system ``(G + alpha I) w = b``, from the largest down.

    Whoever drives it multiplies `vector` by G and hands the product to `take`, until `is_done`.

    Parameters
    ----------
    b : ndarray of shape (n_features,), float64
    diagonal : ndarray of shape (n_features,), float64
        The diagonal of G.
    size : ndarray of shape (n_features,), float64
        What the diagonal would be if no origin were taken off the features.
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    tolerance : float
        The share of b below which true residuals are to fall.

    Attributes
    ----------
    vector : ndarray of shape (n_features,)
        A direction, or a solution whose true residual is to be found.
    is_done : bool
    unsolved : list of float
        The alphas whose true residuals are larger than they should be.
    """

    def __init__(
        self, b: Vector, diagonal: Vector, size: Vector, alphas: Vector, tolerance: float
    ) -> None:
        self._b, self._diagonal, self._alphas, self._n_added = b, diagonal, alphas, 0
        self._varied, self._whole = np.sqrt(diagonal), np.sqrt(size)
        self._wanted = tolerance * float(np.linalg.norm(b))
        self._solved: list[Vector] = []
        self._products: list[Vector] = []  # of the last solutions
        self.unsolved: list[float] = []
        self.is_done = not len(alphas)
        if not self.is_done:
            self._begin()

    @property
    def solutions(self) -> NDArray[np.float64]:
        """The solutions so far, (n_solved, n_features)."""
        return np.array(self._solved[self._n_added :])

    def take(self, product: Vector) -> None:
        """Go one step on, with G times `vector`."""
        if self._checks:
            self._check(product)
            return
        alpha = self._alphas[len(self._solved)]
        along = product + alpha * self.vector
        length = self._size / float(self.vector @ along)
        self._w += length * self.vector
        self._residual -= length * along
        self._steps += 1
        self._next_direction()

    def _begin(self) -> None:
        """Start with the next ridge."""
        alpha = self._alphas[len(self._solved)]
        shifted = self._diagonal + alpha
        usable = alpha > 0 and bool((shifted > 0).all())
        # For alpha 0 a preconditioner would change which norm is least.
        self._preconditioner = 1 / shifted if usable else np.ones(len(shifted))
        self._w, self._residual = self._start(alpha)
        self._steps, self._before = 0, np.inf
        self._restart()

    def _start(self, alpha: float) -> tuple[Vector, Vector]:
        """Return the Galerkin solution in the span of the last solutions, and its residual."""
        b, count = self._b, len(self._products)
        lengths = [float(np.linalg.norm(w)) for w in self._solved[len(self._solved) - count :]]
        if not any(lengths):
            return np.zeros(len(b)), b.copy()
        kept = [number for number, length in enumerate(lengths, -count) if length > 0]
        scales = np.array([1 / lengths[number] for number in kept])[:, None]
        span = scales * np.array([self._solved[number] for number in kept])
        products = scales * np.array([self._products[number] for number in kept])
        values, vectors = np.linalg.eigh(span @ span.T)
        large = values > 1e-13 * values[-1]
        basis = vectors[:, large] / np.sqrt(values[large])
        reduced = basis.T @ (span @ products.T) @ basis
        reduced = (reduced + reduced.T) / 2 + alpha * np.eye(len(reduced))
        weights = basis @ np.linalg.lstsq(reduced, basis.T @ (span @ b), rcond=None)[0]
        w = weights @ span
        return w, b - weights @ products - alpha * w

    def _restart(self) -> None:
        """Begin to descend along the residual."""
        self._size, self.vector, self._checks = 0.0, np.zeros(len(self._b)), False
        self._next_direction()

    def _next_direction(self) -> None:
        """Choose the next direction, or the solution to be checked."""
        small = float(np.linalg.norm(self._residual)) <= self._wanted
        if small or self._steps >= limits.now.gradient_steps:
            self.vector, self._checks = self._w, True
            return
        preconditioned = self._preconditioner * self._residual
        size = float(self._residual @ preconditioned)
        share = size / self._size if self._size > 0 else 0.0
        self._size, self.vector = size, preconditioned + share * self.vector

    def _check(self, product: Vector) -> None:
        """Accept the solution if its true residual is small, or go on from it."""
        alpha = self._alphas[len(self._solved)]
        self._residual = self._b - product - alpha * self._w
        found = float(np.linalg.norm(self._residual))
        ends = self._steps >= limits.now.gradient_steps or found > PROGRESS * self._before
        if found > self._wanted and not ends:
            self._before = found
            self._restart()
            return
        unsure = not self._solved and found > LARGEST_ERROR * alpha * np.linalg.norm(self._w)
        if unsure and not self._n_added and 0 < alpha < self._diagonal.max() / RIDGE_STEP:
            self._add_ridges()
            return
        asked = len(self._solved) >= self._n_added
        if asked and found > max(self._wanted, self._rounding()):
            self.unsolved.append(alpha)
        self._solved.append(self._w)
        self._products = [*self._products[-KEPT_SOLUTIONS + 1 :], product]
        self.is_done = len(self._solved) == len(self._alphas)
        if not self.is_done:
            self._begin()

    def _add_ridges(self) -> None:
        """Begin anew with larger ridges before the first."""
        first = float(self._alphas[0])
        self._n_added = max(1, int(np.log(self._diagonal.max() / first) / np.log(RIDGE_STEP)))
        added = first * RIDGE_STEP ** np.arange(self._n_added, 0.0, -1.0)
        self._alphas = np.concatenate((added, self._alphas))
        self._begin()

    def _rounding(self) -> float:
        """Return about the rounding error of a true residual: of X w, and of Xᵀ times the rest."""
        w = np.abs(self._w)
        scores, sums = self._whole @ w, np.linalg.norm(self._whole)
        return float(EPSILON * (np.linalg.norm(self._varied) * scores + sums * (self._varied @ w)))
