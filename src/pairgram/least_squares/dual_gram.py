"""DualGram: pairwise least squares on a kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from pairgram import _core
from pairgram._support import memory
from pairgram._support.checks import check_alpha, require_finite
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Rows, Vector
from pairgram.feature_maps.base import FeatureMap
from pairgram.kernels.matrix import alternatives
from pairgram.least_squares.ridge_path import RidgePath, blas_guard, solve_definite
from pairgram.preferences.pairs import PairSettings
from pairgram.problem.data import RankingData
from pairgram.problem.laplacian import apply_half_laplacian, without_features

__all__ = ["DualGram", "bytes_per_square", "is_made", "require_memory"]

# LAPACK's divide and conquer needs 2 n² words of workspace, its relatively robust representations
# n² for the eigenvectors, which are orthogonal to 1e-11 rather than to 1e-14 and take a third
# longer. Up to this order the workspace is below 0.3 GB.
DIVIDE_AND_CONQUER_ORDER = 4096
SMALLEST_KERNEL = 1e-290  # of the largest entry
FLOOR = float(np.finfo(np.float64).eps)  # of eigenvalues, relative to the largest


class DualGram:
    """The system ``R K Rᵀ``, ``R y`` of pairwise least squares on a kernel matrix K.

    The counterpart of `Pairgram` for the dual form, with the rows of K as features: coefficients
    are dual, one for every row of K, and the scores of rows are ``K @ coef``.

    Parameters
    ----------
    data : RankingData
        With a fitted `KernelMap` of a named kernel, K is made of its rows when it is needed, and
        not kept. Without a feature map its X is K: dense, symmetric, float64 or float32, of shape
        (n_rows, n_rows).
    settings : PairSettings
    n_threads : int or None, default=None
        The same bits for any number, but for an eigendecomposition above order 256, which takes
        one BLAS thread for 1 and else as many as BLAS has.

    Notes
    -----
    The dual solution of ``(y − Ka)ᵀ L (y − Ka) + alpha aᵀKa`` is ``a = (LK + alpha I)⁻¹ L y``, of a
    system that is not symmetric. With the half-Laplacian, ``L = RᵀR``, it is
    ``a = Rᵀ (R K Rᵀ + alpha I)⁻¹ R y``: symmetric, and of the same path and hold-out identities as
    the primal form. Of ``R K Rᵀ = U S Uᵀ`` come the eigen-features ``Z = K Rᵀ U S^-½``, for which
    ``(R Z)ᵀ (R Z) = S``.

    Memory: R K Rᵀ takes the place of K where K is made here, and its eigenvectors take one matrix
    more, so `solve` takes ``8 n²`` bytes and `decompose` ``16 n²``, of which ``8 n²`` stay: the
    basis, into which the eigenvectors are turned in place. Where rows are scored, K is made again,
    block by block. Besides: a K that was given; ``8 n²`` in `decompose` for LAPACK's workspace up
    to n = 4096, and above where many eigenvalues other than 0 are equal; in `solve` as much as in
    `decompose` where the system is numerically singular. The basis of a part of the rows takes
    ``8 n`` bytes a row more.

    Time: ``n³ / 3`` flops for `solve`, about ``9 n³`` for `decompose`, of which a third of the time
    goes by at the speed of the memory (the reduction to a tridiagonal matrix); applying R takes a
    few passes over the matrix.

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
        if not is_made(data.feature_map) and (
            scipy.sparse.issparse(K) or data.feature_map is not None or K.shape != (n_rows, n_rows)
        ):
            raise ValueError(
                f"X must be a dense kernel matrix of shape {(n_rows, n_rows)} without a feature "
                f"map, got {type(K).__name__} of shape {K.shape}"
            )
        self.settings = settings
        self.n_threads = n_threads
        self._data = data
        self._rows: Rows | None = None  # None: all
        self._labelled = without_features(data)

    def of(self, rows: Rows) -> DualGram:
        """Return the system of some rows of K, as if the others had never been seen.

        Its coefficients are still one for every row of K, 0 for those that are left out.
        """
        part = DualGram.__new__(DualGram)
        part.__dict__.update(self.__dict__)
        part._rows = rows
        return part

    def _without(
        self, data: RankingData, train: Rows, test: Rows, n_threads: int | None
    ) -> DualGram:
        """Return the system of the training rows."""
        return self.of(train)

    def _path_at(self, factor: Vector | None) -> RidgePath:
        """Return the path of the system, whose features have no scaling."""
        return self.decompose()

    @property
    def n_rows(self) -> int:
        """Number of rows that count, those of weight 0 included."""
        return len(self._labelled.y if self._rows is None else self._rows)

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
            If `alpha` is not finite and ≥ 0, `scale` is True, K holds NaN or infinity, or it is
            seen not to be positive semidefinite: by the trace of R K Rᵀ, and where the system needs
            an eigendecomposition. Negative eigenvalues below alpha in size are not seen.
        MemoryError
            If there is too little memory, by the formula of the class.
        """
        check_alpha(alpha)
        _refuse_scale(scale)
        self._require_memory(path=False)
        labelled = self._labels()
        matrix, target, largest = self._system(labelled)
        diagonal = matrix.diagonal().copy()
        matrix[np.diag_indices_from(matrix)] += alpha
        # One triangle is factorised in place, the other is left for an eigendecomposition.
        solution = solve_definite(matrix, target, self.n_threads)
        if solution is None:
            matrix[np.diag_indices_from(matrix)] = diagonal
            solution = self._decomposed(labelled, matrix, target, largest).coef([alpha])[0]
        return self._embedded(self._root(labelled, solution, adjoint=True)[:, None])[:, 0]

    def decompose(self, *, scale: bool = False) -> RidgePath:
        """Return the eigendecomposition from which solutions for every alpha come.

        Its eigenvalues are S, its basis ``Rᵀ U S^-½`` of shape (n_rows of K, n_rows), so that
        ``K @ basis`` are eigen-features, and its coefficients are dual. Parameters and errors are
        those of `solve`.

        No direction is left out: one of S near 0 is barely seen within the queries, but its part of
        the solution, ``Rᵀ u uᵀ R y / alpha``, shifts the scores of other rows. Its S is raised to
        ``FLOOR · S_max``, to which coefficients are exact relative to alpha. Held-out scores take
        the eigen-features Z from ``L Z = basis S``, which has all their digits.
        """
        _refuse_scale(scale)
        self._require_memory(path=True)
        labelled = self._labels()
        matrix, target, largest = self._system(labelled)
        ridge = self._decomposed(labelled, matrix, target, largest)
        most = ridge.eigenvalues.max(initial=0.0)
        values = np.maximum(ridge.eigenvalues, FLOOR * most or 1.0)
        with single_threaded_blas():
            projection = np.sqrt(values) * (ridge.basis.T @ target)
        vectors = ridge.basis.T  # in rows, which turn into the basis in place
        self._root(labelled, vectors, axis=1, adjoint=True)
        vectors /= np.sqrt(values)[:, None]
        return RidgePath(values, self._embedded(vectors.T), projection, is_dual=self._rows is None)

    def _decomposed(
        self, labelled: RankingData, matrix: Vector, target: Vector, largest: float
    ) -> RidgePath:
        """Decompose R K Rᵀ, of which the upper triangle is read; it is overwritten.

        `largest` is the size of the largest entry of K.
        """
        trace = float(matrix.trace())
        if len(matrix) <= DIVIDE_AND_CONQUER_ORDER:
            ridge = RidgePath.of(matrix, target, n_threads=self.n_threads)
        else:
            with blas_guard(len(matrix), self.n_threads):
                decomposed = _lean_eigen(matrix, labelled, self.settings)
            ridge = RidgePath.of_eigen(*decomposed, target)
        # Negative eigenvalues were set to 0: what they add up to is what the trace lacks.
        positive = float(ridge.eigenvalues.sum())
        self._refuse_indefinite(labelled, positive, positive - trace, largest)
        return ridge

    def _refuse_indefinite(
        self, labelled: RankingData, positive: float, negative: float, largest: float
    ) -> None:
        """Refuse eigenvalues of R K Rᵀ that add up to more below 0 than rounding leaves there."""
        eps = float(np.finfo(self._data.dtype).eps)
        limit = np.sqrt(eps) * max(positive, negative)
        if not negative > limit:
            return
        pair_weight = labelled.pair_weight(self.settings)
        # where all differences are 0: pair_weight is at least the trace of L
        if negative > 16 * len(labelled.y) * eps * largest * pair_weight:
            raise ValueError(
                "the kernel matrix must be positive semidefinite, but for these pairs its positive "
                f"eigenvalues add up to {positive:.3g} and its negative ones to {-negative:.3g}, "
                "which is more than rounding; set negative eigenvalues of the matrix to 0, or add "
                "the size of the smallest to its diagonal"
            )

    def _labels(self) -> RankingData:
        """The labels, weights and queries of the rows that count."""
        part = self._labelled if self._rows is None else self._labelled.take(self._rows)
        return part.as_scope(self.settings)

    def _system(self, labelled: RankingData) -> tuple[Vector, Vector, float]:
        """Return ``R K Rᵀ`` and ``R y``, in the order of the rows, and the largest |K_ij|."""
        matrix = self._matrix()
        require_finite(matrix, "X")
        largest = float(max(matrix.max(initial=0.0), -matrix.min(initial=0.0)))
        if 0 < largest < SMALLEST_KERNEL:
            raise ValueError(
                f"the kernel matrix is too small: its largest entry is {largest:.1g}, want "
                f"{SMALLEST_KERNEL:g} or more: multiply it, or X"
            )
        if labelled.may_vanish or self.settings.kind == "omega":
            labelled.require_pair_weight(self.settings, labelled.pair_weight(self.settings))
        self._root(labelled, matrix)
        self._root(labelled, matrix, axis=1)
        target = self._targets(labelled)
        with np.errstate(over="ignore", invalid="ignore"):
            trace, norm = float(matrix.trace()), float(target @ target)
        for what, size in (("the kernel matrix", trace), ("y", norm)):
            if not np.isfinite(size):
                weighted = labelled.row_weights is not None or labelled.query_weights is not None
                raise ValueError(
                    f"{'the weights or ' * weighted}{what} too large: the weighted sum of squared "
                    "differences overflows"
                )
        if trace < 0:
            self._refuse_indefinite(labelled, 0.0, -trace, largest)
        return matrix, target, largest

    def _matrix(self) -> Vector:
        """Return K of the rows that count, as an array that may be overwritten."""
        X, rows = self._data.X, self._rows
        if self._data.feature_map is None:
            part = X if rows is None else X[np.ix_(rows, rows)]
            copy = True if rows is None else None
            return np.array(part, np.float64, order="C", copy=copy)
        K = self._data.feature_map.between(X if rows is None else X[rows])
        return np.ascontiguousarray(K, np.float64)

    def _require_memory(self, *, path: bool) -> None:
        require_memory(self.n_rows, path, self._data.feature_map, self._data.X.dtype)

    def _targets(self, labelled: RankingData) -> Vector:
        return self._root(labelled, self.settings.targets(labelled.y).copy())

    def _root(
        self, labelled: RankingData, vectors: Vector, *, axis: int = 0, adjoint: bool = False
    ) -> Vector:
        """Apply R, or Rᵀ, to the columns (axis 0) or rows of a matrix, or to a vector, in place."""
        problem = labelled.problem(self.settings)
        return apply_half_laplacian(
            problem, vectors, axis=axis, adjoint=adjoint, n_threads=self.n_threads
        )

    def _embedded(self, columns: Vector) -> Vector:
        """Return columns with an entry per row that counts as columns with one per row of K."""
        if self._rows is None:
            return columns
        out = np.zeros((len(self._labelled.y), columns.shape[1]))
        out[self._rows] = columns
        return out


def is_made(feature_map: Any) -> bool:
    """Tell whether a feature map is a kernel that is made of rows whenever it is needed.

    A precomputed one is not, nor a callable, which may take long.
    """
    return isinstance(feature_map, FeatureMap) and feature_map.makes_kernel


def bytes_per_square(
    n_rows: int, path: bool, feature_map: Any, dtype: Any, held_out: int = 0
) -> int:
    """Return the bytes that the dual form of `n_rows` rows takes, over n_rows².

    See `DualGram`; parameters as those of `require_memory`.
    """
    words = 1 if not path else 3 if n_rows <= DIVIDE_AND_CONQUER_ORDER else 2
    words = max(words, 1 + held_out)
    itemsize: int = np.dtype(dtype).itemsize
    returned = callable(getattr(feature_map, "kernel", None))  # a matrix that stays
    return 8 * words + (itemsize if returned else 0)


def require_memory(
    n_rows: int,
    path: bool,
    feature_map: Any,
    dtype: Any,
    *,
    feature_bytes: float = 0.0,
    held_out: int = 0,
) -> None:
    """Raise a MemoryError where the dual form of `n_rows` rows does not fit what is free.

    Parameters
    ----------
    n_rows : int
    path : bool
        For `DualGram.decompose`, else for `DualGram.solve`; see there.
    feature_map : fitted KernelMap or None
        None: the kernel matrix is there.
    dtype : dtype
        Of the kernel matrix where a callable returns it; else it is made in float64.
    feature_bytes : float
        Of the features that have yet to be copied.
    held_out : int
        Matrices of the rows' size that holding rows out takes besides the path.
    """
    per_square = bytes_per_square(n_rows, path, feature_map, dtype, held_out)
    kernel = "besides" if feature_map is None else "with"
    features = f", and {feature_bytes / 2**30:.3g} GiB of features" if feature_bytes else ""
    memory.require(
        f"the dual form of {n_rows} rows, {kernel} the kernel matrix ({per_square} n² bytes"
        f"{features}),",
        float(per_square) * n_rows**2 + feature_bytes,
        alternatives(getattr(feature_map, "kernel", "precomputed")),
    )


def _lean_eigen(
    matrix: Vector, labelled: RankingData, settings: PairSettings
) -> tuple[Vector, Vector]:
    """Return eigenvalues, ascending, and eigenvectors, in columns, of R K Rᵀ; it is overwritten.

    Rᵀ has a null vector for each query, so 0 would be an eigenvalue so many times that LAPACK's
    relatively robust representations fail. They are moved below all others, apart from each other.
    """
    _, vectors, entries = _core.null_space(labelled.problem(settings))
    n_null = int(vectors.max(initial=-1)) + 1
    # no eigenvalue of a positive semidefinite matrix is above its trace, of none above its rows'
    # sums; the lower triangle may hold a Cholesky factor
    sums = np.zeros(len(matrix))
    for i, row in enumerate(matrix):
        sizes = np.abs(row[i:])
        sums[i] += sizes.sum()
        sums[i + 1 :] += sizes[1:]
    bound = min(float(sums.max(initial=0.0)), float(matrix.trace()))
    shifts = -bound * np.linspace(1.1, 2.2, n_null)
    order = np.argsort(vectors, kind="stable")
    begins = np.searchsorted(vectors[order], np.arange(n_null + 1))
    for vector, shift in enumerate(shifts.tolist()):
        rows = order[begins[vector] : begins[vector + 1]]
        for row in rows.tolist():
            matrix[row, rows] += shift * entries[row] * entries[rows]
    eigenvalues, in_rows = _core.lean_eigen(matrix)
    eigenvalues[:n_null] = 0.0
    return eigenvalues, in_rows.T


def _refuse_scale(scale: bool) -> None:
    if scale:
        raise ValueError("scale must be False for a kernel: its features cannot be scaled")
