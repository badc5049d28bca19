"""The ridge path: solutions for every alpha from one eigendecomposition."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from pairgram import _core
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram._support.types import Vector

__all__ = [
    "DEFAULT_POWERS",
    "RidgePath",
    "blas_guard",
    "default_alphas",
    "scale_factors",
    "solve_definite",
    "solve_ridge",
]


# Up to this order one BLAS thread is as fast as two, and waking other threads costs time.
SINGLE_THREADED_ORDER = 256
# The powers of 2 in the default alphas, which are multiples of λ_max / 1e4.
DEFAULT_POWERS = np.arange(15, -19, -1)
# The multiples of λ_max that come first if a fit starts from scores that are there already. The
# largest leaves these as they are.
STARTING_MULTIPLES = np.array([1e6, 1e3, 1e2, 1e1])


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Solutions of ``(G + alpha I) w = g`` for any alpha, in the basis of G's eigenvectors.

    With feature scaling T = diag(1 / sqrt(G_jj)), the system that is solved has ``T G T`` and
    ``T g`` in place of G and g, and its solution w' is scaled back to ``w = T w'``.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_features,)
        The eigenvalues Λ ≥ 0, ascending.
    basis : ndarray of shape (n_features, n_features)
        T V, where V are the eigenvectors, so that ``w = basis @ ((Λ + alpha)^-1 projection)``.
    projection : ndarray of shape (n_features,)
        ``Vᵀ T g``.
    factor : ndarray of shape (n_features,) or None
        The diagonal of T.
    is_dual : bool
        Whether this is the dual form, where the features are the columns of K. ``basis Λ`` is then
        the Laplacian times the rows in the basis, ``L K basis``.
    """

    eigenvalues: Vector
    basis: Vector
    projection: Vector
    factor: Vector | None = None
    is_dual: bool = False

    @classmethod
    def of(
        cls, G: Vector, g: Vector, factor: Vector | None = None, n_threads: int | None = None
    ) -> RidgePath:
        """Decompose `G`, shape (n_features, n_features), scaled by `factor`; G is overwritten.

        Divide and conquer takes O(n_features³) time and 2 n_features² words of workspace.
        """
        if factor is not None:
            G, g = factor[:, None] * G * factor, factor * g
        with blas_guard(len(g), n_threads):
            # The transpose is the same matrix, in the memory order of LAPACK.
            eigenvalues, vectors = scipy.linalg.eigh(
                G.T, driver="evd", check_finite=False, overwrite_a=True
            )
        path = cls.of_eigen(eigenvalues, vectors, g)
        return (
            path
            if factor is None
            else replace(path, basis=factor[:, None] * vectors, factor=factor)
        )

    @classmethod
    def of_eigen(cls, eigenvalues: Vector, vectors: Vector, g: Vector) -> RidgePath:
        """Make a path from the eigendecomposition of G, with eigenvectors in columns.

        The eigenvectors are not copied.
        """
        # g lies in the range of G. Anything that the projection has outside of it is rounding
        # error, which a tiny alpha would enlarge.
        null = eigenvalues <= np.finfo(np.float64).eps * len(g) * eigenvalues.max(initial=0.0)
        with single_threaded_blas():
            projection = np.where(null, 0.0, vectors.T @ g)
        return cls(np.maximum(eigenvalues, 0.0), vectors, projection)

    def rows_of_laplacian(self, rows: Any) -> Vector:
        """Return the given rows of ``basis Λ``, C-contiguous (n_rows, n_features)."""
        numbers = np.arange(len(self.basis))[rows]
        out = np.empty((len(numbers), len(self.eigenvalues)))
        for begin in range(0, len(numbers), 64):  # a transposition, in pieces that the cache holds
            part = slice(begin, begin + 64)
            np.multiply(self.basis[numbers[part]], self.eigenvalues, out=out[part])
        return out

    def coef(self, alphas: ArrayLike, damping: ArrayLike = 0.0) -> Vector:
        """Return the solutions, shape (n_alphas, n_features).

        For alpha = 0 and a singular G, the solution has the minimum norm. `damping` is a number
        δ ≥ 0, or one for every alpha. With it the solution is that of ``(A² + δ² I) w = A g``,
        where ``A = G + alpha I``: an eigenvalue a of A then has the weight
        ``a / (a² + δ²) = 1 / (a + δ² / a)`` in place of 1 / a.
        """
        shifted = self.eigenvalues + np.asarray(alphas, dtype=np.float64)[:, None]
        solvable = (self.projection != 0) & (shifted > 0)
        a = np.where(solvable, shifted, 1.0)
        if np.any(damping):
            with np.errstate(over="ignore"):  # the weight of infinity is 0
                a += np.square(damping).reshape(-1, 1) / a
        weights = np.where(solvable, self.projection / a, 0.0)
        with single_threaded_blas():  # waking NumPy's threads takes longer than the product
            return np.asarray(weights @ self.basis.T)

    def default_alphas(self, started: bool = False) -> Vector:
        """Return the default alphas for λ_max(G)."""
        return default_alphas(float(self.eigenvalues.max(initial=0.0)) or 1.0, started)


def default_alphas(largest: float, started: bool) -> Vector:
    """Return ``λ_max / 1e4 · 2^k`` for k = 15 … −18, descending; `largest` is λ_max.

    If a fit is `started` from a prior or an offset, which may be better than anything that little
    data can teach, λ_max times 1e6, 1e3, 100 and 10 come first.
    """
    grid = largest / 1e4 * 2.0**DEFAULT_POWERS
    return np.append(largest * STARTING_MULTIPLES, grid) if started else np.asarray(grid)


def scale_factors(diagonal: Vector) -> Vector:
    """Return ``1 / sqrt(G_jj)``, or 1 for a feature that does not vary within queries."""
    return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)


def solve_ridge(
    G: Vector,
    g: Vector,
    alpha: float,
    factor: Vector | None = None,
    n_threads: int | None = None,
) -> Vector:
    """Solve ``(G + alpha I) w = g`` by Cholesky, with features scaled by `factor`.

    Returns w of shape (n_features,). If G + alpha I is numerically singular, this is the solution
    of minimum norm, found by eigendecomposition.
    """
    scaled_g = g if factor is None else factor * g
    shifted = np.array(G if factor is None else factor[:, None] * G * factor, order="C")
    shifted[np.diag_indices_from(shifted)] += alpha
    solution = solve_definite(shifted, scaled_g, n_threads)
    if solution is None:
        return np.asarray(RidgePath.of(G, g, factor, n_threads).coef([alpha])[0])
    return solution if factor is None else factor * solution


def solve_definite(matrix: Vector, target: Vector, n_threads: int | None) -> Vector | None:
    """Solve ``matrix x = target`` by Cholesky, ``matrix = L Lᵀ``, in n³ / 3 flops.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-contiguous
        A symmetric matrix. Its lower triangle is overwritten by L. The entries above the diagonal
        are neither read nor written.
    target : ndarray of shape (n,), float64
    n_threads : int or None
        The result has the same bits for any number.

    Returns
    -------
    ndarray of shape (n,) or None
        None if the matrix is numerically singular or indefinite: if a pivot is not positive, or
        if the diagonal of L spans more than a factor of 1e7 (a condition number above 1e14).
    """
    threads = resolve_n_threads(n_threads)
    with single_threaded_blas():
        if _core.cholesky(matrix, threads) < len(matrix):
            return None
        pivots = matrix.diagonal()
        if pivots.min(initial=np.inf) < 1e-7 * pivots.max(initial=0.0):
            return None
        if not len(target):
            return target
        # The transpose is Lᵀ in the memory order of BLAS. For one column BLAS is twice as fast as
        # LAPACK.
        (solve_triangular,) = scipy.linalg.get_blas_funcs(("trsv",), (matrix,))
        half = solve_triangular(matrix.T, target, trans=1)
        return np.asarray(solve_triangular(matrix.T, half, overwrite_x=True))


def blas_guard(order: int, n_threads: int | None = None) -> AbstractContextManager[None]:
    """Return the context in which to decompose a matrix of this order.

    BLAS gets one thread for a small matrix, or if `n_threads` is 1. Otherwise it keeps its own
    number of threads.
    """
    alone = order <= SINGLE_THREADED_ORDER or resolve_n_threads(n_threads) == 1
    return single_threaded_blas() if alone else nullcontext()
