"""DualGram: pairwise least squares on a kernel matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite

from pairgram import _core
from pairgram._memory import available_memory
from pairgram._threads import resolve_n_threads, single_threaded_blas
from pairgram.data import RankingData
from pairgram.gram import Pairgram
from pairgram.pairs import PairSettings
from pairgram.ridge import RidgePath, Vector, blas_guard, check_alpha

__all__ = ["DualGram", "Statistics", "require_memory"]

Rows = NDArray[np.int64]
SOLVE_WORDS = 1  # float64 words besides K, times n²
DECOMPOSE_WORDS = 3  # of which two are LAPACK's workspace
FLOOR = float(np.finfo(np.float64).eps)  # of eigenvalues, relative to the largest


class DualGram:
    """The system ``R K Rᵀ``, ``R y`` of pairwise least squares on a kernel matrix K.

    The counterpart of `Pairgram` for the dual form, with the rows of K as features: coefficients
    are dual, one for every row of K, and the scores of rows are ``K @ coef``.

    Parameters
    ----------
    data : RankingData
        Its X is K: dense, symmetric, float64 or float32, shape (n_rows, n_rows).
    settings : PairSettings
    n_threads : int or None, default=None
        The same bits for any number, but for those of LAPACK's factorisations.

    Notes
    -----
    The dual solution of ``(y − Ka)ᵀ L (y − Ka) + alpha aᵀKa`` is ``a = (LK + alpha I)⁻¹ L y``, of a
    system that is not symmetric. With the half-Laplacian, ``L = RᵀR``, it is
    ``a = Rᵀ (R K Rᵀ + alpha I)⁻¹ R y``: symmetric, and of the same path and hold-out identities as
    the primal form. Of ``R K Rᵀ = U S Uᵀ`` come the eigen-features ``Z = K Rᵀ U S^-½``, for which
    ``(R Z)ᵀ (R Z) = S``.

    Memory besides K, in bytes: ``8 n²`` for `solve`; for `decompose` ``24 n²`` (the matrix that
    becomes its eigenvectors, and LAPACK's workspace), of which ``16 n²`` stay (the basis, and
    U for held-out scores). A subset
    of float32 rows takes ``4 n²`` more for a moment. Time:
    ``n³ / 3`` flops for `solve`, about ``9 n³`` for `decompose`; applying R takes a few passes over
    the matrix.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
    least-squares. SIGIR workshop on learning to rank, 2007. Eq. 8 and §2.4; the square root is
    ours.
    """

    def __init__(
        self, data: RankingData, settings: PairSettings, n_threads: int | None = None
    ) -> None:
        """Take the kernel matrix; nothing is computed yet.

        Raises
        ------
        ValueError
            If X is not a dense square matrix, or has a feature map.
        """
        K, n_rows = data.X, len(data.y)
        if scipy.sparse.issparse(K) or data.feature_map is not None or K.shape != (n_rows, n_rows):
            raise ValueError(
                f"X must be a dense kernel matrix of shape {(n_rows, n_rows)} without a feature "
                f"map, got {type(K).__name__} of shape {K.shape}"
            )
        self.settings = settings
        self.n_threads = n_threads
        self._kernel: NDArray[Any] = K
        self._rows: Rows | None = None  # None: all
        self._labelled = replace(data, X=np.empty((n_rows, 0)))  # rows without their kernels

    def of(self, rows: Rows) -> DualGram:
        """Return the system of some rows of K, as if the others had never been seen.

        Its coefficients are still one for every row of K, 0 for those that are left out.
        """
        part = DualGram.__new__(DualGram)
        part.__dict__.update(self.__dict__)
        part._rows = rows
        return part

    @property
    def n_rows(self) -> int:
        """Number of rows that count, those of weight 0 included."""
        return len(self._kernel if self._rows is None else self._rows)

    def targets(self) -> Vector:
        """Return ``R y`` of the rows that count, (n_rows,)."""
        return self._targets(self._labels())

    def solve(self, alpha: float, *, scale: bool = False) -> Vector:
        """Return the dual coefficients for one ridge, shape (n_rows of K,).

        By Cholesky; where ``R K Rᵀ + alpha I`` is numerically singular, as for alpha = 0, by
        eigendecomposition those of minimum norm in feature space, eigenvalues below
        ``n eps S_max`` taken as 0.

        Parameters
        ----------
        alpha : float ≥ 0
            Ridge on the summed objective ``(y − Ka)ᵀ L (y − Ka) + alpha aᵀKa``.
        scale : False

        Raises
        ------
        ValueError
            If `alpha` is not finite and ≥ 0, `scale` is True, K holds NaN or infinity, or it is so
            far from positive semidefinite that the system cannot be solved.
        MemoryError
            If there is too little memory, by the formula of the class.
        """
        check_alpha(alpha)
        _refuse_scale(scale)
        require_memory(self.n_rows, SOLVE_WORDS)
        labelled = self._labels()
        matrix, target = self._system(labelled)
        diagonal = matrix.diagonal().copy()
        matrix[np.diag_indices_from(matrix)] += alpha
        with blas_guard(len(target)):
            # The transpose is the same matrix in LAPACK's order. One triangle is factorised in
            # place, the other is left for an eigendecomposition.
            root, failed = scipy.linalg.lapack.dpotrf(
                matrix.T, lower=False, clean=False, overwrite_a=True
            )
            pivots = root.diagonal()
            if not failed and pivots.min() >= 1e-7 * pivots.max():  # condition up to 1e14
                solution = scipy.linalg.cho_solve((root, False), target, check_finite=False)
            else:
                matrix[np.diag_indices_from(matrix)] = diagonal
                solution = self._decomposed(labelled, matrix, target).coef([alpha])[0]
        return self._embedded(self._root(labelled, solution, adjoint=True)[:, None])[:, 0]

    def decompose(self, *, scale: bool = False) -> RidgePath:
        """Return the eigendecomposition from which solutions for every alpha come.

        Its eigenvalues are S, its basis ``Rᵀ U S^-½`` of shape (n_rows of K, n_rows), so that
        ``K @ basis`` are eigen-features, and its coefficients are dual. Parameters and errors are
        those of `solve`.

        No direction is left out: one of S near 0 is barely seen within the queries, but its part of
        the solution, ``Rᵀ u uᵀ R y / alpha``, shifts the scores of other rows. Its S is raised to
        ``FLOOR · S_max``, to which coefficients are exact relative to alpha. Held-out scores take
        the half-Laplacian of the eigen-features from U, as `left`.
        """
        _refuse_scale(scale)
        require_memory(self.n_rows, DECOMPOSE_WORDS)
        labelled = self._labels()
        matrix, target = self._system(labelled)
        ridge = self._decomposed(labelled, matrix, target)
        largest = ridge.eigenvalues.max(initial=0.0)
        values = np.maximum(ridge.eigenvalues, FLOOR * largest if largest > 0 else 1.0)
        with single_threaded_blas():
            projection = np.sqrt(values) * (ridge.basis.T @ target)
        basis = np.array(ridge.basis, order="C")
        self._root(labelled, basis, adjoint=True)
        basis /= np.sqrt(values)
        left = ridge.basis.T if self._rows is None else None
        return RidgePath(values, self._embedded(basis), projection, left=left)

    def _decomposed(self, labelled: RankingData, matrix: Vector, target: Vector) -> RidgePath:
        """Decompose R K Rᵀ, of which the upper triangle is read; it is overwritten."""
        trace = float(matrix.trace())
        ridge = RidgePath.of(matrix, target)
        # Negative eigenvalues were set to 0: what they add up to is what the trace lacks.
        total, eps = ridge.eigenvalues.sum(), np.finfo(self._kernel.dtype).eps
        if total - trace > np.sqrt(eps) * total and total > self._rounding(labelled):
            raise ValueError(
                "the kernel matrix must be positive semidefinite, but for these pairs its positive "
                f"eigenvalues add up to {total:.3g} and its negative ones to {trace - total:.3g}"
            )
        return ridge

    def _rounding(self, labelled: RankingData) -> float:
        """Return what rounding may leave of the trace of R K Rᵀ where all differences are 0."""
        drawn = np.random.default_rng(0).normal(size=len(labelled.y))
        L = self._root(labelled, drawn)  # its squared length is about the trace of RᵀR
        largest = float(np.abs(self._kernel.diagonal()).max(initial=0.0))
        eps = np.finfo(self._kernel.dtype).eps
        return float(16 * len(drawn) * eps * largest * (L @ L))

    def _labels(self) -> RankingData:
        """The labels, weights and queries of the rows that count."""
        part = self._labelled if self._rows is None else self._labelled.take(self._rows)
        return part.as_scope(self.settings)

    def _system(self, labelled: RankingData) -> tuple[Vector, Vector]:
        """Return ``R K Rᵀ`` and ``R y``, in the order of the rows."""
        if self._rows is None:
            matrix = np.array(self._kernel, np.float64, order="C")
        else:
            part = self._kernel[np.ix_(self._rows, self._rows)]
            matrix = np.ascontiguousarray(part, np.float64)
        assert_all_finite(matrix, input_name="X")
        self._root(labelled, matrix)
        self._root(labelled, matrix, axis=1)
        return matrix, self._targets(labelled)

    def _targets(self, labelled: RankingData) -> Vector:
        return self._root(labelled, self.settings.targets(labelled.y).copy())

    def _root(
        self, labelled: RankingData, vectors: Vector, *, axis: int = 0, adjoint: bool = False
    ) -> Vector:
        """Apply R, or Rᵀ, to the columns (axis 0) or rows of a matrix, or to a vector, in place."""
        ((_, ((_, _, y, offsets), named)),) = labelled.kernel_blocks(self.settings)
        del named["map"]
        _core.apply_half_laplacian(
            vectors if vectors.ndim == 2 else vectors[:, None],
            y,
            offsets,
            **named,
            axis=axis,
            adjoint=adjoint,
            n_threads=resolve_n_threads(self.n_threads),
        )
        return vectors

    def _embedded(self, columns: Vector) -> Vector:
        """Return columns with an entry per row that counts as columns with one per row of K."""
        if self._rows is None:
            return columns
        out = np.zeros((len(self._kernel), columns.shape[1]))
        out[self._rows] = columns
        return out


Statistics = Pairgram | DualGram


def require_memory(
    n_rows: int, words: int, *, kernel_bytes: int = 0, feature_bytes: float = 0.0
) -> None:
    """Raise a MemoryError where the dual form of `n_rows` rows does not fit what is free.

    Parameters
    ----------
    n_rows : int
    words : int
        `SOLVE_WORDS` or `DECOMPOSE_WORDS`.
    kernel_bytes : int
        Of an entry of the kernel matrix that has yet to be made; 0 where it is there.
    feature_bytes : float
        Of the features that have yet to be copied.
    """
    per_square = 8 * words + kernel_bytes
    needed, free = float(per_square) * n_rows**2 + feature_bytes, available_memory()
    if needed > free:
        kernel = "with" if kernel_bytes else "besides"
        features = f", and {feature_bytes / 2**30:.3g} GiB of features" if feature_bytes else ""
        raise MemoryError(
            f"the dual form of {n_rows} rows takes {needed / 2**30:.3g} GiB {kernel} the kernel "
            f"matrix ({per_square} n² bytes{features}), but {free / 2**30:.3g} GiB are free: take "
            "a feature map of fewer features (a Nyström map), or fewer rows"
        )


def _refuse_scale(scale: bool) -> None:
    if scale:
        raise ValueError("scale must be False for a kernel: its features cannot be scaled")
