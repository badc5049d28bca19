"""The ridge path: every regularisation value from one eigendecomposition."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from pairgram import _core
from pairgram._arrays import real_array
from pairgram._threads import resolve_n_threads, single_threaded_blas

__all__ = [
    "DEFAULT_POWERS",
    "RidgePath",
    "blas_guard",
    "check_alpha",
    "check_alphas",
    "scale_factors",
    "solve_definite",
    "solve_ridge",
]

Vector = NDArray[np.float64]

# Up to this order one BLAS thread factorises as fast as two, and waking the others only disturbs.
SINGLE_THREADED_ORDER = 256
DEFAULT_POWERS = np.arange(15, -19, -1)  # of 2, in alphas


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Solutions of ``(G + alpha I) w = g`` for any alpha, in the basis of G's eigenvectors.

    With feature scaling T = diag(1 / sqrt(G_jj)) the system is that of ``T G T`` and ``T g``, and
    the coefficients are scaled back: ``w = T w'``.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_features,)
        Λ, ascending, ≥ 0.
    basis : ndarray of shape (n_features, n_features)
        T V: ``w = basis @ ((Λ + alpha)^-1 projection)``.
    projection : ndarray of shape (n_features,)
        ``Vᵀ T g``.
    factor : ndarray of shape (n_features,) or None
        The diagonal of T.
    is_dual : bool
        Whether the features are the kernels with the rows (dual form): then ``basis Λ`` is the
        Laplacian of the rows in the basis, ``L K basis``.
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

        O(n_features³), by divide and conquer: 2 n_features² words of workspace.
        """
        if factor is not None:
            G, g = factor[:, None] * G * factor, factor * g
        with blas_guard(len(g), n_threads):
            # the transpose is the same matrix, in the order of LAPACK
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
        """Take the eigendecomposition of G, eigenvectors in columns, which are not copied."""
        # g lies in the range of G: what the projection has elsewhere is rounding error, which a
        # tiny alpha would blow up.
        null = eigenvalues <= np.finfo(np.float64).eps * len(g) * eigenvalues.max(initial=0.0)
        with single_threaded_blas():
            projection = np.where(null, 0.0, vectors.T @ g)
        return cls(np.maximum(eigenvalues, 0.0), vectors, projection)

    def rows_of_laplacian(self, rows: Any) -> Vector:
        """Return ``basis Λ`` of rows, C-contiguous (n_rows, n_features); see `is_dual`."""
        numbers = np.arange(len(self.basis))[rows]
        out = np.empty((len(numbers), len(self.eigenvalues)))
        for begin in range(0, len(numbers), 64):  # a transposition, in pieces that the cache holds
            part = slice(begin, begin + 64)
            np.multiply(self.basis[numbers[part]], self.eigenvalues, out=out[part])
        return out

    def coef(self, alphas: ArrayLike, damping: ArrayLike = 0.0) -> Vector:
        """Return the solutions, shape (n_alphas, n_features).

        The minimum-norm solution for alpha = 0 and a singular G. With a damping δ ≥ 0, one or one
        for every alpha, the solution of ``(A² + δ² I) w = A g``, ``A = G + alpha I``: eigenvalue a
        of A weighs ``a / (a² + δ²) = 1 / (a + δ² / a)`` instead of 1 / a.
        """
        shifted = self.eigenvalues + np.asarray(alphas, dtype=np.float64)[:, None]
        solvable = (self.projection != 0) & (shifted > 0)
        a = np.where(solvable, shifted, 1.0)
        with np.errstate(over="ignore"):  # infinity, of which the weight is 0
            a += np.square(damping).reshape(-1, 1) / a
        weights = np.where(solvable, self.projection / a, 0.0)
        with single_threaded_blas():  # waking NumPy's threads takes longer than the product
            return np.asarray(weights @ self.basis.T)

    def default_alphas(self) -> Vector:
        """Return ``λ_max(G) / 1e4 · 2^k`` for k = 15 … −18, descending."""
        largest = float(self.eigenvalues.max(initial=0.0)) or 1.0
        return np.asarray(largest / 1e4 * 2.0**DEFAULT_POWERS)


def scale_factors(diagonal: Vector) -> Vector:
    """Return ``1 / sqrt(G_jj)``, 1 for a feature that does not vary within queries."""
    return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)


def solve_ridge(
    G: Vector,
    g: Vector,
    alpha: float,
    factor: Vector | None = None,
    n_threads: int | None = None,
) -> Vector:
    """Solve ``(G + alpha I) w = g``, scaled by `factor`, by Cholesky: shape (n_features,).

    The minimum-norm solution by eigendecomposition where G + alpha I is numerically singular.
    """
    scaled_g = g if factor is None else factor * g
    shifted = np.array(G if factor is None else factor[:, None] * G * factor, order="C")
    shifted[np.diag_indices_from(shifted)] += alpha
    solution = solve_definite(shifted, scaled_g, n_threads)
    if solution is None:
        return np.asarray(RidgePath.of(G, g, factor, n_threads).coef([alpha])[0])
    return solution if factor is None else factor * solution


def solve_definite(matrix: Vector, target: Vector, n_threads: int | None) -> Vector | None:
    """Solve ``matrix x = target`` by Cholesky, ``matrix = L Lᵀ``: shape (n,), or None.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-contiguous
        Symmetric. L takes the place of its lower triangle; what is above the diagonal is neither
        read nor written.
    target : ndarray of shape (n,), float64
    n_threads : int or None
        The same bits for any number.

    Returns
    -------
    ndarray of shape (n,) or None
        None where the matrix is numerically singular or indefinite: where a pivot is not positive,
        or L's diagonal spans more than a factor of 1e7 (a condition number above 1e14). n³ / 3
        flops.
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
        # the transpose is Lᵀ in the order of BLAS, whose one column is twice as fast as LAPACK's
        (solve_triangular,) = scipy.linalg.get_blas_funcs(("trsv",), (matrix,))
        half = solve_triangular(matrix.T, target, trans=1)
        return np.asarray(solve_triangular(matrix.T, half, overwrite_x=True))


def blas_guard(order: int, n_threads: int | None = None) -> AbstractContextManager[None]:
    """Return the context in which to decompose a matrix: one BLAS thread for a small one.

    And where `n_threads` is 1; else as many as BLAS has.
    """
    alone = order <= SINGLE_THREADED_ORDER or resolve_n_threads(n_threads) == 1
    return single_threaded_blas() if alone else nullcontext()


def check_alpha(alpha: Any) -> None:
    """Raise a ValueError unless `alpha` is a finite number ≥ 0."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise ValueError(f"alpha must be a number >= 0, got {alpha!r}")
    if not (np.isfinite(float(alpha)) and float(alpha) >= 0):
        raise ValueError(f"alpha must be finite and >= 0, got {alpha!r}")


def check_alphas(alphas: ArrayLike, name: str = "alphas", *, zero: bool = False) -> Vector:
    """Return `alphas` as a float64 vector, descending, each finite and > 0.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
    name : str, default="alphas"
        What the error message calls them.
    zero : bool, default=False
        Whether 0 is taken too.

    Raises
    ------
    ValueError
        If it is empty, not one-dimensional, or holds a value that is not as described.
    """
    values: Vector = real_array(alphas, name)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty 1-d array, got shape {values.shape}")
    bad = ~(np.isfinite(values) & ((values >= 0) if zero else (values > 0)))
    if bad.any():
        least = ">= 0" if zero else "> 0"
        raise ValueError(f"{name} must be finite and {least}, got {values[np.argmax(bad)]}")
    return np.ascontiguousarray(np.sort(values)[::-1])
