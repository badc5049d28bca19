"""Ridges of wide rows without a matrix, for several sets of weights at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from scipy.linalg import eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning

from pairgram._support import limits, machine as memory
from pairgram._support.checks import Flags, Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.base import unmade
from pairgram.solvers.ridge_path import DEFAULT_POWERS, scale_factors
from pairgram.solvers.sparse_rows import SparseRows
from pairgram.solvers.statistics import NOISE, SMALLEST_SQUARES

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
# The largest eigenvalue is found to this share, and looked at once in so many steps. The first ones
# find it exactly where there are few features.
EIGEN_TOLERANCE, EIGEN_STEPS = 1e-8, 20
EPSILON = float(np.finfo(np.float64).eps)


def systems_at_once(data: RankingData) -> int:
    """Return how many systems of these rows to solve together: what a product takes, or memory."""
    vectors = len(DEFAULT_POWERS) + 40  # of n_features: solutions, their span, directions
    each = 8.0 * (vectors * data.n_features + 5 * data.X.shape[0])
    return max(1, min(WIDEST_PRODUCT, int(memory.available_memory() / 2 // each)))


class Systems:
    """Systems ``(XᵀLX + alpha I) w = XᵀLy``, solved without forming their matrices.

    Parameters
    ----------
    systems : sequence of RankingData
        The same rows and targets, with the row weights of each system: CSR rows without a feature
        map, rows with unmade features, or the same comparisons of CSR items.
    settings : Pairs
    most_products : float, default=infinity
        `solve` gives up once so many vectors were multiplied.

    Attributes
    ----------
    n_products : int
        How many vectors were multiplied.

    Notes
    -----
    A step of conjugate gradients multiplies by XᵀLX, as `SparseRows` says. All
    systems take their steps together, so that X is read once a step. The number of steps grows with
    the square root of the condition that the preconditioner leaves.

    Ridges are solved from the largest down. Each starts from the Galerkin solution in the span of
    the last 8 solutions, whose products with XᵀLX are kept. All shifts of a system would share one
    Krylov space, but a preconditioner leaves no shifts: ``D (G + alpha I) D = D G D + alpha D²``.
    Without one, columns of different scale take thousands of steps. With it, the 34 default ridges
    of 160,000 × 20,000 rows take no more products than the shared space and its residuals do.

    A small first ridge comes after larger ones of which the solutions are not returned. Directions
    in which no pair differs would otherwise keep what the preconditioner has put there.

    The memory is that of the rows, 4 vectors of n_rows per system, and about n_alphas + 40 vectors
    of n_features per system.
    """

    def __init__(
        self, systems: Sequence[RankingData], settings: Pairs, most_products: float = inf
    ) -> None:
        self.n_products, self._most_products = 0, most_products
        self._systems = [one.as_scope(settings) for one in systems]
        self._settings = settings
        own = unmade(systems[0].feature_map)
        of_rows = SparseRows if own is None else own.rows_of
        with single_threaded_blas:
            self._rows = of_rows(self._systems, settings)
            self._n_features = self._rows.n_features
            self._right_sides = [self._rows.transposed(one.pull(settings)) for one in self._systems]
            self._diagonals = [self._diagonal(number) for number in range(len(systems))]

    def solve(self, alphas: Vector, *, scale: bool = False) -> Vector | None:
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
        found = np.empty((len(factors), len(alphas), self._n_features))
        descents = []
        for number, (factor, side, out) in enumerate(
            zip(factors, self._right_sides, found, strict=True)
        ):
            diagonal, size, _ = self._diagonals[number]
            squares = factor**2 * np.array([diagonal, size])
            precondition = self._rows.preconditioner(number, scale) or Diagonal(squares[0])
            descents.append(Descent(factor * side, squares, precondition, alphas, tolerance, out))
        with single_threaded_blas:
            while live := [number for number, one in enumerate(descents) if not one.is_done]:
                if self.n_products >= self._most_products:
                    return None
                directions = np.array(
                    [factors[number] * descents[number].vector for number in live]
                )
                for number, product in zip(live, self.products(directions, live), strict=True):
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
        found *= np.array(factors)[:, None]
        return found

    def products(self, vectors: Vector, systems: Sequence[int]) -> Vector:
        """Return ``XᵀLX p`` for a vector of each of some systems, (n_vectors, n_features)."""
        numbers = np.array(systems, dtype=np.int64)
        self.n_products += len(numbers)
        with single_threaded_blas:
            return self._rows.product(vectors, numbers)

    def largest_eigenvalue(self, *, scale: bool = False) -> float:
        """Return λ_max of the first system, to 1e-8 and mostly to far more, by Lanczos steps.

        The vectors are not made orthogonal again, which leaves the largest eigenvalue as it is. Its
        relative error is at most the square of the residual over the gap to the next eigenvalue.
        """
        factor = self._factor(0, scale)
        vector = factor * self._right_sides[0]
        if not vector.any():
            vector = factor**2 * self._diagonals[0][0]
        if not vector.any():
            return 0.0
        vector /= np.linalg.norm(vector)
        before, beside = np.zeros(len(vector)), 0.0
        diagonal: list[float] = []
        below: list[float] = []
        with single_threaded_blas:
            while True:
                product = factor * self.products((factor * vector)[None], [0])[0]
                product -= beside * before
                diagonal.append(float(vector @ product))
                product -= diagonal[-1] * vector
                beside = float(np.linalg.norm(product))
                n_steps = len(diagonal)
                ends = n_steps == limits.now.gradient_steps or beside <= EPSILON * max(diagonal)
                if ends or n_steps % EIGEN_STEPS == 0:
                    two = (max(0, n_steps - 2), n_steps - 1)
                    values, vectors = eigh_tridiagonal(
                        diagonal, below, select="i", select_range=two
                    )
                    largest, residual = float(values[-1]), beside * abs(float(vectors[-1, -1]))
                    gap = max(largest - float(values[0]), residual)
                    if ends or residual**2 <= EIGEN_TOLERANCE * gap * largest:
                        return max(largest, 0.0)
                below.append(beside)
                before, vector = vector, product / beside

    def _factor(self, number: int, scale: bool) -> Vector:
        """Return what the features of a system are multiplied by, (n_features,)."""
        diagonal, _, constant = self._diagonals[number]
        factor = scale_factors(diagonal) if scale else np.ones(self._n_features)
        factor[constant] = 0.0  # what a product has there is rounding error
        return factor

    def _diagonal(self, number: int) -> tuple[Vector, Vector, Flags]:
        """Return the diagonal of ``XᵀLX``, sums of squares, and which features do not vary.

        Each has shape (n_features,). The diagonal is 0 for features that do not vary, and for
        others of which it has rounding error alone. The sums are those of values as they are, from
        which the diagonal loses digits.
        """
        data, settings = self._systems[number], self._settings
        data.require_pair_weight(settings, data.pair_weight(settings))
        diagonal, size, varying = self._rows.squares(number)
        if size.max(initial=0.0) < SMALLEST_SQUARES and varying.any():
            raise ValueError(
                "X or the weights too small: squared differences of its features vanish: multiply "
                "X, as StandardScaler does"
            )
        return np.where(diagonal > NOISE * size, diagonal, 0.0), size, ~varying


class Diagonal:
    """The preconditioner of a system that is the diagonal of its matrix."""

    def __init__(self, diagonal: Vector) -> None:
        self._diagonal = diagonal

    def at(self, alpha: float) -> Callable[[Vector], Vector]:
        """Return what multiplies a vector by about ``(G + alpha I)⁻¹``, for alpha > 0."""
        inverse = 1 / (self._diagonal + alpha)
        return lambda residual: inverse * residual


class Descent:
    """The ridges of one system ``(G + alpha I) w = b``, from the largest down.

    Whoever drives it multiplies `vector` by G and hands the product to `take`, until `is_done`.

    Parameters
    ----------
    b : ndarray of shape (n_features,), float64
    squares : ndarray of shape (2, n_features), float64
        The diagonal of G, and what it would be if no origin were taken off the features.
    precondition : Diagonal
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    tolerance : float
        The share of b below which true residuals are to fall.
    out : ndarray of shape (n_alphas, n_features), float64
        The solutions are written here.

    Attributes
    ----------
    vector : ndarray of shape (n_features,)
        A direction, or a solution whose true residual is to be found.
    is_done : bool
    unsolved : list of float
        The alphas whose true residuals are larger than they should be.

    Notes
    -----
    A residual is carried along from step to step. When it is small enough, it is computed anew from
    the product of the solution with G, for every ridge.
    """

    def __init__(
        self,
        b: Vector,
        squares: Vector,
        precondition: Diagonal,
        alphas: Vector,
        tolerance: float,
        out: Vector,
    ) -> None:
        self._b, self._squares, self._out = b, squares, out
        self._precondition = precondition
        self._alphas, self._n_added, self._n_solved = alphas, 0, 0
        self._sums = np.sqrt(self._squares.sum(axis=1))
        self._wanted = tolerance * float(np.linalg.norm(b))
        self._span = Span(b)
        self.unsolved: list[float] = []
        self.is_done = not len(alphas)
        if not self.is_done:
            self._begin()

    def take(self, product: Vector) -> None:
        """Go one step on, with G times `vector`, which may be overwritten."""
        if self._checks:
            self._check(product)
            return
        alpha = self._alphas[self._n_solved]
        ridged = float(self.vector @ self.vector)
        length = self._size / float(self.vector @ product + alpha * ridged)
        step, product = length * self.vector, length * product
        self._w += step
        self._residual -= product
        self._residual -= alpha * step
        self._steps += 1
        self._next_direction()

    def _begin(self) -> None:
        """Start with the next ridge."""
        alpha = self._alphas[self._n_solved]
        # For alpha 0 a preconditioner would change which norm is least.
        self._preconditioned: Callable[[Vector], Vector] = np.array
        if alpha > 0:
            self._preconditioned = self._precondition.at(alpha)
        self._w, image = self._span.solution(alpha)
        self._residual = self._b - image - alpha * self._w
        self._steps, self._before = 0, np.inf
        self._restart()

    def _restart(self) -> None:
        """Begin to descend along the residual."""
        self._size, self.vector, self._checks = 0.0, np.zeros(len(self._b)), False
        self._next_direction()

    def _next_direction(self) -> None:
        """Choose the next direction, or the solution to be checked, or go on to the next ridge."""
        tired = self._steps >= limits.now.gradient_steps
        if tired or np.linalg.norm(self._residual) <= self._wanted:
            self.vector, self._checks = self._w, True
        else:
            preconditioned = self._preconditioned(self._residual)
            size = float(self._residual @ preconditioned)
            share = size / self._size if self._size > 0 else 0.0
            self.vector *= share
            self.vector += preconditioned
            self._size = size

    def _check(self, product: Vector) -> None:
        """Accept the solution if its true residual is small, or go on from it."""
        alpha = self._alphas[self._n_solved]
        self._residual = self._b - product - alpha * self._w
        found = float(np.linalg.norm(self._residual))
        ends = self._steps >= limits.now.gradient_steps or found > PROGRESS * self._before
        if found > self._wanted and not ends:
            self._before = found
            self._restart()
        else:
            self._accept(found, product)

    def _accept(self, found: float, image: Vector) -> None:
        """Keep the solution of a residual and its product with G, and go on to the next ridge."""
        alpha, largest = self._alphas[self._n_solved], self._squares[0].max()
        unsure = not self._n_solved and found > LARGEST_ERROR * alpha * np.linalg.norm(self._w)
        if unsure and not self._n_added and 0 < alpha < largest / RIDGE_STEP:
            # Begin anew with larger ridges before the first.
            self._n_added = max(1, int(np.log(largest / alpha) / np.log(RIDGE_STEP)))
            added = alpha * RIDGE_STEP ** np.arange(self._n_added, 0.0, -1.0)
            self._alphas = np.concatenate((added, self._alphas))
            self._begin()
            return
        if self._n_solved >= self._n_added:
            if found > max(self._wanted, self._largest_rounding()):
                self.unsolved.append(alpha)
            self._out[self._n_solved - self._n_added] = self._w
        self._span.add(self._w, image)
        self._n_solved += 1
        self.is_done = self._n_solved == len(self._alphas)
        if not self.is_done:
            self._begin()

    def _largest_rounding(self) -> float:
        """Return what the rounding error of a true residual may be at most."""
        varied, whole = np.sqrt(self._squares) @ np.abs(self._w)
        return float(EPSILON * (self._sums[0] * whole + self._sums[1] * varied))


class Span:
    """The last solutions of a system, of unit length, and their products with G."""

    def __init__(self, b: Vector) -> None:
        self._b, self._n_added = b, 0
        self._vectors, self._images = np.empty((2, KEPT_SOLUTIONS, len(b)))
        self._along = np.empty(KEPT_SOLUTIONS)
        self._squares, self._products = np.empty((2, KEPT_SOLUTIONS, KEPT_SOLUTIONS))

    def add(self, w: Vector, image: Vector) -> None:
        """Keep a solution and its product with G."""
        if not (length := float(np.linalg.norm(w))):
            return
        number = self._n_added % KEPT_SOLUTIONS
        self._n_added += 1
        last = slice(min(self._n_added, KEPT_SOLUTIONS))
        np.divide(w, length, out=self._vectors[number])
        np.divide(image, length, out=self._images[number])
        self._along[number] = self._vectors[number] @ self._b
        vectors, images = self._vectors[last], self._images[last]
        self._squares[number, last] = self._squares[last, number] = vectors @ vectors[number]
        between = (vectors @ images[number] + images @ vectors[number]) / 2
        self._products[number, last] = self._products[last, number] = between

    def solution(self, alpha: float) -> tuple[Vector, Vector]:
        """Return the Galerkin solution in the span, and its product with G."""
        count = min(self._n_added, KEPT_SOLUTIONS)
        if not count:
            return np.zeros(len(self._b)), np.zeros(len(self._b))
        last = slice(count)
        values, vectors = np.linalg.eigh(self._squares[last, last])
        large = values > 1e-13 * values[-1]
        basis = vectors[:, large] / np.sqrt(values[large])
        reduced = basis.T @ self._products[last, last] @ basis + alpha * np.eye(basis.shape[1])
        found = np.linalg.lstsq(reduced, basis.T @ self._along[last], rcond=None)[0]
        weights = basis @ found
        return weights @ self._vectors[last], weights @ self._images[last]
