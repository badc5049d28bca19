"""Ridges of wide rows without a matrix, for several sets of weights at once."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from math import inf

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from pairgram._support import limits, machine as memory
from pairgram._support.checks import Flags, Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.feature_map import unmade
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
# The largest eigenvalue is found to this share, and mostly to far more.
EIGEN_TOLERANCE = 1e-8
EPSILON = float(np.finfo(np.float64).eps)

# The last solutions of a system, of unit length, and their products with G.
Kept = deque[tuple[Vector, Vector]]


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
        unsolved: list[float] = []
        descents = []
        for number, (factor, side) in enumerate(zip(factors, self._right_sides, strict=True)):
            diagonal, size, _ = self._diagonals[number]
            squares = factor**2 * np.array([diagonal, size])
            at = self._rows.preconditioner(number, scale) or Diagonal(squares[0])
            told = factor * side, squares, at, alphas, tolerance
            descents.append(descent(*told, found[number], unsolved))
        with single_threaded_blas:
            wanted = {number: next(one) for number, one in enumerate(descents)}
            while wanted:
                if self.n_products >= self._most_products:
                    return None
                live = list(wanted)
                directions = np.array([factors[number] * wanted[number] for number in live])
                for number, product in zip(live, self.products(directions, live), strict=True):
                    try:
                        wanted[number] = descents[number].send(factors[number] * product)
                    except StopIteration:
                        del wanted[number]
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
        """Return λ_max of the first system, by Lanczos steps."""
        factor, n = self._factor(0, scale), self._n_features
        diagonal = factor**2 * self._diagonals[0][0]
        if n == 1 or not diagonal.any():
            return float(diagonal.max(initial=0.0))
        start = factor * self._right_sides[0]

        def product(vector: Vector) -> Vector:
            return factor * self.products((factor * vector.ravel())[None], [0])[0]

        with single_threaded_blas:
            (largest,) = eigsh(
                LinearOperator((n, n), matvec=product, dtype=np.float64),
                k=1,
                v0=start if start.any() else diagonal,
                tol=EIGEN_TOLERANCE,
                return_eigenvectors=False,
            )
        return max(float(largest), 0.0)

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


def descent(
    b: Vector,
    squares: Vector,
    precondition: Diagonal,
    alphas: Vector,
    tolerance: float,
    out: Vector,
    unsolved: list[float],
) -> Generator[Vector, Vector, None]:
    """Solve the ridges of one system ``(G + alpha I) w = b``, from the largest down.

    It yields vectors, which its driver multiplies by G and sends back.

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
    unsolved : list of float
        The alphas whose true residuals are larger than they should be are added.
    """
    wanted = tolerance * float(np.linalg.norm(b))
    largest, sums = squares[0].max(), np.sqrt(squares.sum(axis=1))
    kept: Kept = deque(maxlen=KEPT_SOLUTIONS)
    for number, alpha in enumerate(alphas):
        w, left = yield from _solve(b, precondition, alpha, wanted, kept)
        unsure = not number and left > LARGEST_ERROR * alpha * np.linalg.norm(w)
        if unsure and 0 < alpha < largest / RIDGE_STEP:
            kept.clear()
            n_larger = max(1, int(np.log(largest / alpha) / np.log(RIDGE_STEP)))
            for power in range(n_larger, -1, -1):
                larger = alpha * RIDGE_STEP**power
                w, left = yield from _solve(b, precondition, larger, wanted, kept)
        # The rounding error of a true residual is this at most.
        varied, whole = np.sqrt(squares) @ np.abs(w)
        if left > max(wanted, EPSILON * (sums[0] * whole + sums[1] * varied)):
            unsolved.append(alpha)
        out[number] = w


def _solve(
    b: Vector, precondition: Diagonal, alpha: float, wanted: float, kept: Kept
) -> Generator[Vector, Vector, tuple[Vector, float]]:
    """Solve one ridge; return the solution and the size of its true residual.

    A residual is carried along from step to step. When it is small enough, it is computed anew from
    the product of the solution with G. The solution is added to those that are kept.
    """
    # For alpha 0 a preconditioner would change which norm is least.
    preconditioned = precondition.at(alpha) if alpha > 0 else np.array
    w, image = _combined(b, alpha, kept)
    residual = b - image - alpha * w
    n_steps, found = 0, inf
    while True:
        direction, size = np.zeros(len(b)), 0.0
        while n_steps < limits.now.gradient_steps and np.linalg.norm(residual) > wanted:
            ahead = preconditioned(residual)
            before, size = size, float(residual @ ahead)
            direction *= size / before if before > 0 else 0.0
            direction += ahead
            product = yield direction
            ridged = float(direction @ direction)
            length = size / float(direction @ product + alpha * ridged)
            step = length * direction
            w += step
            residual -= length * product
            residual -= alpha * step
            n_steps += 1
        image = yield w
        residual = b - image - alpha * w
        before, found = found, float(np.linalg.norm(residual))
        if found <= wanted or n_steps >= limits.now.gradient_steps or found > PROGRESS * before:
            break
    if length := float(np.linalg.norm(w)):
        kept.append((w / length, image / length))
    return w, found


def _combined(b: Vector, alpha: float, kept: Kept) -> tuple[Vector, Vector]:
    """Return the Galerkin solution in the span of those that are kept, and its product with G."""
    if not kept:
        return np.zeros(len(b)), np.zeros(len(b))
    vectors, images = map(np.array, zip(*kept, strict=True))
    values, turn = np.linalg.eigh(vectors @ vectors.T)
    large = values > 1e-13 * values[-1]
    basis = turn[:, large] / np.sqrt(values[large])
    products = vectors @ images.T
    reduced = basis.T @ (products + products.T) @ basis / 2 + alpha * np.eye(basis.shape[1])
    weights = basis @ np.linalg.lstsq(reduced, basis.T @ (vectors @ b), rcond=None)[0]
    return weights @ vectors, weights @ images
