"""The ridge path: solutions for every alpha from one decomposition, or from a band form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import (
    TOO_LARGE_FOR_EVD,
    cached_property,
    deadline,
    single_threaded_blas,
    thread_count,
)
from pairgram._support.rates import seconds_of
from pairgram._support.row_warnings import loses_narrow, warn_of_narrow_columns

EPS = float(np.finfo(np.float64).eps)
# This is four times the largest error that was seen in comparison with refits of 60 digits.
ROUNDING = 64 * EPS
# The statistics of float32 rows are summed in float32 within a block, and in float64 over blocks.
ROUNDING_OF_FLOAT32 = float(np.finfo(np.float32).eps) / 16
# Entries of this size or its inverse are brought near 1, so that their squares are numbers.
LARGEST_POWER = 200


class BandForm:
    """A positive semidefinite matrix as ``2^e Q B Qᵀ``, with a band B and orthogonal Q.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-contiguous
        A symmetric matrix, which is overwritten with what makes Q.

    Notes
    -----
    The reduction takes 4/3 n³ flops, all of them in products of matrices. A solution of a shifted
    system takes ``width² n`` flops for a banded Cholesky factor and 2 n² for the products with Q.
    """

    def __init__(self, matrix: Vector) -> None:
        exponent = int(np.frexp(matrix.diagonal().max(initial=0.0))[1])
        if abs(exponent) <= LARGEST_POWER:
            exponent = 0
        else:
            np.ldexp(matrix, -exponent, out=matrix)
        self.scale = float(np.ldexp(1.0, exponent))
        self._matrix = matrix
        self._is_formed = False
        with single_threaded_blas:
            self._band, self._factors = _core.reduce_to_band(
                matrix, band_width(len(matrix)), thread_count()
            )

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue, or 0 if there is none above."""
        return self.scale * max(0.0, _core.largest_of_band(self._band))

    def is_definite(self, shift: float) -> bool:
        """Tell whether the matrix with `shift` added to its diagonal is positive definite."""
        shifts = np.array([shift / self.scale])
        _, logs = _core.solve_band(self._band, shifts, np.zeros(len(self._band)))
        return not np.isnan(logs[0])

    def solve(self, alphas: Vector, target: Vector) -> Vector | None:
        """Return the solutions of ``(A + alpha I) x = target``, (n_alphas, n).

        None if one of the matrices is not numerically positive definite.
        """
        solved, _, logs = self.solved(alphas, target)
        return None if np.isnan(logs).any() else self.rotate(solved)

    def solved(self, alphas: Vector, target: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the solutions and the target in the basis, and the logarithms of determinants."""
        shifts = np.ascontiguousarray(alphas, np.float64) / self.scale
        rotated = self.rotate((target / self.scale)[None].copy(), transposed=True)[0]
        solved, logs = _core.solve_band(self._band, shifts, rotated, thread_count())
        return solved, rotated, logs

    def rotate(self, rows: Vector, *, transposed: bool = False) -> Vector:
        """Return Q, or Qᵀ, times each of the rows, (n_rows, n), which may be overwritten."""
        with single_threaded_blas:
            if self._is_formed:
                return np.asarray(rows @ (self._matrix.T if transposed else self._matrix))
            _core.apply_band_basis(self._matrix, self._factors, rows, transposed, thread_count())
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
        with single_threaded_blas:
            if not self._is_formed:
                _core.form_band_basis(self._matrix, self._factors, thread_count())
                self._is_formed = True
            residuals, levels, definite = _core.hold_out_band(
                self._band,
                self._matrix,
                self.rotate(target[None], transposed=True)[0],
                np.ascontiguousarray(alphas, np.float64) / self.scale,
                np.concatenate(folds),
                np.cumsum([0, *map(len, folds)], dtype=np.int64),
                points,
                point_offsets,
                thread_count(),
            )
        return (residuals, levels / self.scale) if definite else None


def band_width(order: int) -> int:
    """Return the width of the band for a matrix of this order.

    A wide band makes the reduction faster, and factors of the band slower.
    """
    return 16 if order <= 256 else 32 if order <= 2048 else 64


# Up to this order one BLAS thread is as fast as two, and waking other threads costs time.
SINGLE_THREADED_ORDER = 256
# Up to this many features, narrow ones beside wide ones keep their digits in a path.
LARGEST_GRADED = 512
# The powers of 2 in the default alphas, which are multiples of λ_max / 1e4.
DEFAULT_POWERS = np.arange(15, -19, -1)
# The multiples of λ_max that come first if a fit starts from scores that are there already. The
# largest leaves these as they are.
STARTING_MULTIPLES = np.array([1e6, 1e3, 1e2, 1e1])


@dataclass(frozen=True, eq=False)
class EigenPath:
    """Solutions of ``(G + alpha I) w = g`` for any alpha, in the basis of G's eigenvectors.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_features,)
        The eigenvalues Λ ≥ 0, ascending.
    basis : ndarray of shape (n_features, n_features)
        T V, where V are the eigenvectors, so that ``w = basis @ ((Λ + alpha)^-1 projection)``. T
        is that of `RidgePath`. Rows of features that do not vary, whose row of G is 0, are 0.
    projection : ndarray of shape (n_features,)
        ``Vᵀ T g``.
    unseen : float
        In the dual form, the squares of what `projection` lacks: R y of rows whose row of G is 0,
        which no weight explains.
    narrowest : float
        The least diagonal entry of G that is not 0, where such a narrow feature would lose its
        digits beside wide ones, but for the Jacobi method; else 0.
    """

    eigenvalues: Vector
    basis: Vector
    projection: Vector
    unseen: float = 0.0
    narrowest: float = 0.0

    @classmethod
    def of(cls, G: Vector, g: Vector) -> EigenPath:
        """Decompose `G`, which is overwritten.

        Divide and conquer takes O(n_features³) time and 2 n_features² words of workspace. It runs
        on one thread, so the result has the same bits for any number.
        """
        # LAPACK cannot be interrupted, so it must end in time on a machine of half the speed too.
        deadline().require(2 * seconds_of({"eigenvectors": float(len(G)) ** 3}))
        if loses_narrow(G.diagonal()) and (graded := cls._graded(G, g)) is not None:
            return graded
        constant = G.diagonal() == 0
        with single_threaded_blas:
            # The transpose is the same matrix, in the memory order of LAPACK.
            eigenvalues, vectors = scipy.linalg.eigh(
                G.T,
                driver="evd" if len(G) < TOO_LARGE_FOR_EVD else "evr",
                lower=True,
                check_finite=False,
                overwrite_a=True,
            )
            # g lies in the range of G. Anything that the projection has outside of it is rounding
            # error, which a tiny alpha would enlarge.
            null = eigenvalues <= smallest_eigenvalue(len(g), eigenvalues.max(initial=0.0))
            projection = np.where(null, 0.0, vectors.T @ g)
        vectors[constant] = 0.0  # rounding errors, which huge values of such a feature enlarge
        return cls(np.maximum(eigenvalues, 0.0), vectors, projection)

    @classmethod
    def _graded(cls, G: Vector, g: Vector) -> EigenPath | None:
        """Decompose `G` with features of very different sizes; None if it is singular or large.

        ``G = L Lᵀ`` by Cholesky, and the singular values and vectors of L by the one-sided Jacobi
        method have the digits that L has in units in which all features are alike (Demmel and
        Veselić 1992). It takes some 40 n_features³ flops.
        """
        varying = np.flatnonzero(G.diagonal() > 0)
        if len(varying) > LARGEST_GRADED:
            return None
        own = G[np.ix_(varying, varying)]
        size = np.exp2(np.rint(np.log2(own.diagonal()) / 2))
        like = np.ascontiguousarray(own / size / size[:, None])
        y = g[varying] / size
        with single_threaded_blas:
            diagonal = like.diagonal().copy()
            L, info = scipy.linalg.lapack.dpotrf(like, lower=1, clean=1)
            least = max(1e-14, 8 * EPS * len(size)) * diagonal
            if info or not (np.square(L.diagonal()) > least).all():
                return None
            half = scipy.linalg.solve_triangular(L, y, lower=True)
            # The columns of Lᵀ have the sizes of the features, which joba=0 says.
            found = scipy.linalg.lapack.dgejsv((size[:, None] * L).T, joba=0, jobu=0, jobv=0)
        values, left, vectors, scale, _, info = found
        if info:
            return None
        values = (values * (scale[0] / scale[1]))[::-1]
        basis, rest = np.zeros((len(g), len(g)), order="F"), len(g) - len(varying)
        basis[np.ix_(varying, np.arange(rest, len(g)))] = vectors[:, ::-1]
        zeros = np.zeros(rest)
        projection = np.append(zeros, values * (left.T @ half)[::-1])
        eigenvalues = np.append(zeros, np.square(values))
        return cls(eigenvalues, basis, projection, narrowest=float(own.diagonal().min()))

    def coef(self, alphas: ArrayLike, damping: ArrayLike | None = None) -> Vector:
        """Return the solutions; see `RidgePath.coef`."""
        shifted = self.eigenvalues + np.asarray(alphas, dtype=np.float64)[:, None]
        solvable = (self.projection != 0) & (shifted > 0)
        a = np.where(solvable, shifted, 1.0)
        if damping is not None and np.any(damping):
            with np.errstate(over="ignore"):  # the weight of infinity is 0
                a += np.square(damping).reshape(-1, 1) / a
        weights = np.where(solvable, self.projection / a, 0.0)
        with single_threaded_blas:  # waking NumPy's threads takes longer than the product
            return np.asarray(weights @ self.basis.T)


@dataclass(frozen=True, eq=False)
class BandPath:
    """Solutions of ``(G + alpha I) w = g`` for any alpha, from the band form of G.

    Attributes
    ----------
    form : BandForm
    target : ndarray of shape (n_unknowns,)
        T g, or the target of the dual form.
    expand : callable
        Maps solutions, (n_alphas, n_unknowns), to coefficients; it may overwrite them.
    least : float
        The least alpha for which solutions are accurate.
    """

    form: BandForm
    target: Vector
    expand: Callable[[Vector], Vector]
    least: float

    def serves(self, alphas: Vector) -> bool:
        """Tell whether solutions are accurate; NaN or infinity are not told here."""
        return bool((alphas >= self.least).all())


class RidgePath:
    """Solutions of ``(G + alpha I) w = g`` for any alpha.

    With feature scaling T = diag(1 / sqrt(G_jj)), the system that is solved has ``T G T`` and
    ``T g`` in place of G and g, and its solution w' is scaled back to ``w = T w'``.

    Parameters
    ----------
    eigen : EigenPath, or callable that makes it
        A callable is called once, when eigenvectors are needed.
    band : BandPath or None
        What serves as long as they are not.
    factor : ndarray of shape (n_features,) or None
        The diagonal of T.
    is_dual : bool
        Whether this is the dual form, where the features are the columns of K. ``basis Λ`` is then
        the Laplacian times the rows in the basis, ``L K basis``.

    Notes
    -----
    A path takes a band form for systems of `Limits.band_order` unknowns and more. It needs 4/3 n³
    flops, where eigenvectors need about 9 n³, a third of them at the speed of memory. They are
    computed where `eigen` is used, for a damping, and where the
    Cholesky factors of the band have no accurate digits: for a singular G in the primal form, and
    below ``n ε λ_max`` in the dual form.
    """

    def __init__(
        self,
        eigen: EigenPath | Callable[[], EigenPath],
        band: BandPath | None = None,
        *,
        factor: Vector | None = None,
        is_dual: bool = False,
    ) -> None:
        if isinstance(eigen, EigenPath):
            self.eigen = eigen
        else:
            self._make = eigen
        self.band = band
        self.factor = factor
        self.is_dual = is_dual

    @classmethod
    def of(
        cls, G: Vector, g: Vector, factor: Vector | None = None, *, basis: bool = False
    ) -> RidgePath:
        """Decompose `G`, shape (n_features, n_features), scaled by `factor`; G is overwritten.

        `basis` says that eigenvectors will be needed. Features of which the diagonal entry is 0 do
        not vary, and get weights of exactly 0.
        """
        if factor is not None:
            G, g = factor[:, None] * G * factor, factor * g

        def eigen() -> EigenPath:
            found = EigenPath.of(G, g)
            return found if factor is None else replace(found, basis=factor[:, None] * found.basis)

        varying = np.flatnonzero(G.diagonal() > 0)
        form = None
        if has_band(len(varying)) and not (basis or loses_narrow(G.diagonal())):
            form = BandForm(G[np.ix_(varying, varying)])
        if form is None or not form.is_definite(-smallest_eigenvalue(len(varying), form.largest)):
            return cls(eigen(), factor=factor)

        def expand(solved: Vector) -> Vector:
            coefs = np.zeros((len(solved), len(g)))
            coefs[:, varying] = solved
            return coefs if factor is None else factor * coefs

        return cls(eigen, BandPath(form, g[varying], expand, 0.0), factor=factor)

    @cached_property
    def eigen(self) -> EigenPath:
        """The decomposition into eigenvectors, which takes the place of the band form."""
        self.band = None  # which keeps a matrix, as what makes eigenvectors does
        made = self._make()
        del self._make
        return made

    @property
    def largest(self) -> float:
        """λ_max, the largest eigenvalue."""
        if self.band is not None:
            return self.band.form.largest
        return float(self.eigen.eigenvalues.max(initial=0.0))

    def rounding(self, dtype: Any) -> float:
        """Return the rounding error of what is found from rows of a type, relative to it."""
        return ROUNDING_OF_FLOAT32 if dtype == np.float32 and not self.is_dual else ROUNDING

    def rows_of_laplacian(self, rows: Rows | slice) -> Vector:
        """Return the given rows of ``basis Λ``, C-contiguous (n_rows, n_features)."""
        return np.ascontiguousarray(self.eigen.basis[rows] * self.eigen.eigenvalues)

    def coef(self, alphas: ArrayLike, damping: ArrayLike | None = None) -> Vector:
        """Return the solutions, shape (n_alphas, n_features).

        For alpha = 0 and a singular G, the solution has the minimum norm. `damping` is a number
        δ ≥ 0, or one for every alpha. With it the solution is that of ``(A² + δ² I) w = A g``,
        where ``A = G + alpha I``: an eigenvalue a of A then has the weight
        ``a / (a² + δ²) = 1 / (a + δ² / a)`` in place of 1 / a.
        """
        alphas, band = np.asarray(alphas, dtype=np.float64), self.band
        if band is not None and band.serves(alphas) and not np.any(damping):
            solved = band.form.solve(alphas, band.target)
            if solved is not None:
                return band.expand(solved)
        return self.eigen.coef(alphas, damping)

    def default_alphas(self, started: bool = False, reach: bool = False) -> Vector:
        """Return the default alphas for λ_max(G); those of narrow features too, if they `reach`."""
        alphas = default_alphas(self.largest or 1.0, started)
        narrowest = 0.0 if self.band is not None or not reach else self.eigen.narrowest
        while narrowest and alphas[-1] > narrowest / 1e4 * np.exp2(DEFAULT_POWERS[-1]):
            alphas = np.append(alphas, alphas[-1] / 4)
        return alphas


def has_band(order: int) -> bool:
    """Tell whether a path of this many unknowns takes a band form where it can."""
    return order >= limits.now.band_order


def smallest_eigenvalue(order: int, largest: float) -> float:
    """Return what counts as 0 among the eigenvalues of a matrix, ``n ε λ_max``."""
    return EPS * order * largest


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


def solve_ridge(G: Vector, g: Vector, alpha: float, factor: Vector | None = None) -> Vector:
    """Solve ``(G + alpha I) w = g`` by Cholesky, with features scaled by `factor`.

    Returns w of shape (n_features,). If G + alpha I is numerically singular, this is the solution
    of minimum norm, found by eigendecomposition, which loses narrow columns beside wide ones.
    """
    scaled_g = g if factor is None else factor * g
    shifted = np.array(G if factor is None else factor[:, None] * G * factor, order="C")
    shifted[np.diag_indices_from(shifted)] += alpha
    solution = solve_definite(shifted, scaled_g)
    if solution is None:
        if factor is None:
            warn_of_narrow_columns(G.diagonal(), None)
        return np.asarray(RidgePath.of(G, g, factor).coef([alpha])[0])
    return solution if factor is None else factor * solution


def solve_definite(matrix: Vector, target: Vector) -> Vector | None:
    """Solve ``matrix x = target`` by Cholesky, ``matrix = L Lᵀ``, in n³ / 3 flops.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-contiguous
        A symmetric matrix. Its lower triangle is overwritten by L. The entries above the diagonal
        are neither read nor written.
    target : ndarray of shape (n,), float64

    Returns
    -------
    ndarray of shape (n,) or None
        None if the matrix is numerically singular or indefinite: if a pivot is not positive, or
        is rounding error of its own diagonal entry. Unknowns in other units, which are those of
        D A D for a diagonal D, change no digit of this.
    """
    diagonal = matrix.diagonal().copy()
    with single_threaded_blas:
        if _core.cholesky(matrix, thread_count()) < len(matrix):
            return None
        if (np.square(matrix.diagonal()) <= max(1e-14, 8 * EPS * len(matrix)) * diagonal).any():
            return None
        if not len(target):
            return target
        # The transpose is Lᵀ in the memory order of BLAS. For one column BLAS is twice as fast as
        # LAPACK.
        (solve_triangular,) = scipy.linalg.get_blas_funcs(("trsv",), (matrix,))
        half = solve_triangular(matrix.T, target, trans=1)
        return np.asarray(solve_triangular(matrix.T, half, overwrite_x=True))


def blas_guard(order: int) -> AbstractContextManager[None]:
    """Return the context for products with matrices of this order.

    BLAS gets one thread for small matrices. Otherwise it keeps its own number of threads.
    """
    return single_threaded_blas if order <= SINGLE_THREADED_ORDER else nullcontext()


class ColumnSums(NamedTuple):
    """What a fit found about its columns. Spreads and shares are computed only when asked for.

    Attributes
    ----------
    squares : ndarray of shape (n_features,), float64
        The diagonal of ``G = Xᵀ L X``, where L is the Laplacian of the pairs.
    products : ndarray of shape (n_features,), float64
        ``G @ coef_``, the covariances of the columns with the score but for a factor.
    weight : float
        The sum of the weights of the pairs, in both orders.
    coef : ndarray of shape (n_features,), float64
        The weights that they belong to.
    """

    squares: Vector
    products: Vector
    weight: float
    coef: Vector

    @property
    def spread(self) -> Vector:
        """The standard deviation of every column over the pairs, (n_features,)."""
        return np.sqrt(self.squares / self.weight)

    def share(self, coef: Vector) -> Vector:
        """Return the share of every column in the variance of the score, (n_features,)."""
        parts = coef * self.products
        total = parts.sum()
        return np.asarray(parts / total if total > 0 else np.zeros_like(parts))
