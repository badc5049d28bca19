"""The band form of a symmetric matrix, which serves every shift of its diagonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pairgram._core as _core
from pairgram._support.cached import cached_property
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram._support.types import Rows, Vector

__all__ = ["BandForm"]

# Entries of this size or its inverse are brought near 1, so that their squares are numbers.
LARGEST_POWER = 200


class BandForm:
    """A positive semidefinite matrix as ``2^e Q B Qᵀ``, with a band B and orthogonal Q.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-contiguous
        Of a symmetric matrix the upper triangle is read and overwritten, with what makes Q. The
        entries below the diagonal stay, but for their scale.
    n_threads : int or None
        The results have the same bits for any number.

    Notes
    -----
    The reduction takes 4/3 n³ flops, all of them in products of matrices. A solution of a shifted
    system takes ``width² n`` flops for a banded Cholesky factor and 2 n² for the products with Q.
    """

    def __init__(self, matrix: Vector, n_threads: int | None) -> None:
        self._threads = resolve_n_threads(n_threads)
        self._diagonal = matrix.diagonal().copy()
        exponent = int(np.frexp(self._diagonal.max(initial=0.0))[1])
        self._exponent = exponent if abs(exponent) > LARGEST_POWER else 0
        if self._exponent:
            np.ldexp(matrix, -self._exponent, out=matrix)
        self._matrix = matrix
        self._is_formed = False
        with single_threaded_blas():
            self._band, self._factors = _core.reduce_to_band(
                matrix, band_width(len(matrix)), self._threads
            )

    @property
    def _scale(self) -> float:
        return float(np.ldexp(1.0, self._exponent))

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue, or 0 if there is none above."""
        return self._scale * max(0.0, _core.largest_of_band(self._band))

    def is_definite(self, shift: float) -> bool:
        """Tell whether the matrix with `shift` added to its diagonal is positive definite."""
        shifts = np.array([shift / self._scale])
        return bool(_core.solve_band(self._band, shifts, np.zeros(len(self._band)))[1][0])

    def solve(self, alphas: Vector, target: Vector) -> Vector | None:
        """Return the solutions of ``(A + alpha I) x = target``, (n_alphas, n).

        None if one of the matrices is not numerically positive definite.
        """
        shifts = np.ascontiguousarray(alphas, np.float64) / self._scale
        rotated = self.rotate((target / self._scale)[None].copy(), transposed=True)[0]
        solved, definite = _core.solve_band(self._band, shifts, rotated, self._threads)
        return self.rotate(solved) if definite.all() else None

    def rotate(self, rows: Vector, *, transposed: bool = False) -> Vector:
        """Return Q, or Qᵀ, times each of the rows, (n_rows, n), which may be overwritten."""
        with single_threaded_blas():
            if self._is_formed:
                return np.asarray(rows @ (self._matrix.T if transposed else self._matrix))
            _core.apply_band_basis(self._matrix, self._factors, rows, transposed, self._threads)
        return rows

    def hold_out(
        self,
        alphas: Vector,
        target: Vector,
        folds: Sequence[Rows],
        points: Vector,
        point_offsets: Rows,
    ) -> tuple[Vector, Vector] | None:
        """Solve the systems without the rows of each fold.

        The model of all rows is ``C t`` with ``C = (A + alpha I)⁻¹`` and the target t. That of the
        rows outside of fold q is ``C (t − E_q x)`` with ``x = C_qq⁻¹ (C t)_q``.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,), > 0
        target : ndarray of shape (n,)
        folds : sequence of ndarray of int64
            Row numbers; a row is in one fold at most.
        points : ndarray of shape (n_points, n), float64, C-contiguous
            Vectors k whose products ``kᵀ a`` with the model a of their fold are asked for.
        point_offsets : ndarray of shape (n_folds + 1,), int64
            Where the points of each fold begin and end.

        Returns
        -------
        tuple or None
            x, (n_alphas, n_rows of all folds), and the products, (n_alphas, n_points). NaN
            where they would be rounding error. None if a matrix is not numerically positive
            definite.

        Notes
        -----
        From the first call on, Q takes the place of the reflectors that make it. This takes 4/3 n³
        flops once, and then about ``3 width + 1`` times n flops, and n more for each row of the
        fold, for each row and alpha.
        """
        with single_threaded_blas():
            if not self._is_formed:
                _core.form_band_basis(self._matrix, self._factors, self._threads)
                self._is_formed = True
            residuals, levels, definite = _core.hold_out_band(
                self._band,
                self._matrix,
                self.rotate(target[None], transposed=True)[0],
                np.ascontiguousarray(alphas, np.float64) / self._scale,
                np.concatenate(folds),
                np.cumsum([0, *map(len, folds)], dtype=np.int64),
                points,
                point_offsets,
                self._threads,
            )
        return (residuals, levels / self._scale) if definite else None

    def restored(self) -> Vector:
        """Return the matrix with its lower triangle as it was; this object must not be used again.

        The triangle is lost once Q has been formed. It is then made from Q and B, with n² words.
        """
        matrix = self._matrix
        if self._is_formed:
            with single_threaded_blas():
                return self._scale * (matrix.T @ _times_band(self._band, matrix))
        matrix[np.diag_indices_from(matrix)] = np.ldexp(self._diagonal, -self._exponent)
        return np.ldexp(matrix, self._exponent, out=matrix) if self._exponent else matrix


def band_width(order: int) -> int:
    """Return the width of the band for a matrix of this order.

    A wide band makes the reduction faster, and factors of the band slower.
    """
    return 16 if order <= 256 else 32 if order <= 2048 else 64


def _times_band(band: Vector, rows: Vector) -> Vector:
    """Return B times `rows`, (n, n)."""
    out = band[:, :1] * rows
    for d in range(1, min(band.shape[1], len(rows))):
        beside = band[:-d, d, None]
        out[:-d] += beside * rows[d:]
        out[d:] += beside * rows[:-d]
    return out
