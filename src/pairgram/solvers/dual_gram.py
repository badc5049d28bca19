"""DualGram holds the system of pairwise least squares on a kernel matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairgram._support import machine as memory
from pairgram._support.checks import Rows, Vector, require_finite
from pairgram._support.machine import cached_property, single_threaded_blas
from pairgram._support.parameters import check
from pairgram.data.dataset import (
    RankingData,
    apply_half_laplacian,
    without_features,
)
from pairgram.data.pairs import Pairs
from pairgram.features.kernel_map import kernel_between
from pairgram.features.kernels import alternatives
from pairgram.solvers.ridge_path import (
    BandForm,
    BandPath,
    EigenPath,
    RidgePath,
    has_band,
    smallest_eigenvalue,
    solve_definite,
)

if TYPE_CHECKING:
    from pairgram._support.types import Transformer

# The largest entry of a kernel matrix must be at least this.
SMALLEST_KERNEL = 1e-290
# Eigenvalues of a path are raised to this share of the largest.
FLOOR = float(np.finfo(np.float64).eps)


class DualGram:
    """The system ``R K Rᵀ``, ``R y`` of pairwise least squares on a kernel matrix K.

    This is the counterpart of `Pairgram` for the dual form. The features are the columns of K,
    there is one dual coefficient for every row of K, and the scores of rows are ``K @ coef``.

    Parameters
    ----------
    data : RankingData
        With a fitted `Kernel` of a named kernel, K is computed from the rows when it is needed,
        and is not kept. Without a feature map, X is K itself: dense, symmetric, float64 or float32,
        of shape (n_rows, n_rows).
    settings : Pairs
    rows : ndarray of int64, or None, default=None
        The rows of K that count; None for all.

    Notes
    -----
    The dual solution of ``(y − Ka)ᵀ L (y − Ka) + alpha aᵀKa`` is ``a = (LK + alpha I)⁻¹ L y``. This
    system is not symmetric. With the half-Laplacian R, where ``L = RᵀR``, the solution is
    ``a = Rᵀ (R K Rᵀ + alpha I)⁻¹ R y``. This system is symmetric, and has the same path and the
    same hold-out identities as the primal form. The decomposition ``R K Rᵀ = U S Uᵀ`` gives the
    eigen-features ``Z = K Rᵀ U S^-½``, for which ``(R Z)ᵀ (R Z) = S``.

    Memory: if K is computed here, R K Rᵀ is stored in its place. `solve` therefore takes ``8 n²``
    bytes. `decompose` takes up to about ``12 n²`` bytes: the band form of the system takes its
    place, and holding folds out turns that into a basis in place. When rows are scored, K is
    computed again, block by block. Further memory is needed in three cases: a K that was given;
    ``24 n²`` bytes in all in `decompose` for eigenvectors, and in `solve` if the system is
    numerically singular; and ``8 n`` bytes per row for the basis of a part of the rows.

    Time: `solve` takes ``n³ / 3`` flops and `decompose` ``4 n³ / 3``, as much again for held-out
    scores. Eigenvectors take about ``9 n³`` flops on one thread, a third of them bound by the speed
    of memory. Applying R takes a few passes over the matrix.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
    least-squares. SIGIR workshop on learning to rank, 2007. Eq. 8 and §2.4. The paper does not have
    the square root R.
    """

    def __init__(self, data: RankingData, settings: Pairs, rows: Rows | None = None) -> None:
        """Store the data; nothing is computed yet."""
        self.settings = settings
        self._data = data
        self._rows = rows
        self._n_coefs = len(data.y)

    def without(self, data: RankingData, train: Rows, test: Rows) -> DualGram:
        """Return the system of the training rows, as if the others had never been seen.

        There is still one coefficient for every row of K; it is 0 for rows that are left out.
        """
        return DualGram(self._data, self.settings, train)

    def path_at(self, factor: Vector | None) -> RidgePath:
        """Return the path of the system. The dual form has no scaling of features."""
        return self.decompose()

    @cached_property
    def labelled(self) -> RankingData:
        """The labels, weights and queries of the rows of the system."""
        labelled = without_features(self._data)
        part = labelled if self._rows is None else labelled.take(self._rows)
        return part.as_scope(self.settings)

    @property
    def pair_weight(self) -> float:
        """The sum of all pair weights."""
        return self.labelled.pair_weight(self.settings)

    def solve(self, alpha: float, *, scale: bool = False) -> Vector:
        """Return the dual coefficients for one ridge, shape (n_rows of K,).

        The system is solved by Cholesky. If ``R K Rᵀ + alpha I`` is numerically singular, as for
        alpha = 0, it is solved by eigendecomposition. The solution is then the one of minimum norm
        in feature space, and eigenvalues below ``n eps S_max`` count as 0.

        Parameters
        ----------
        alpha : float ≥ 0
            The ridge in ``(y − Ka)ᵀ L (y − Ka) + alpha aᵀKa``, where the first term is a sum.
        scale : False

        Raises
        ------
        ValueError
            If `alpha` is not finite and ≥ 0, if `scale` is True, if K holds NaN or infinity, or if
            K is found not to be positive semidefinite. This is checked by the trace of R K Rᵀ, and
            by its eigenvalues if the system needs an eigendecomposition. Negative eigenvalues that
            are smaller in size than alpha are not noticed.
        MemoryError
            If there is less free memory than the notes of the class say.
        """
        check("alpha", alpha)
        self._require(scale, path=False)
        matrix, target, largest = self.system()
        diagonal = matrix.diagonal().copy()
        matrix[np.diag_indices_from(matrix)] += alpha
        # One triangle is factorised in place; the other is kept for an eigendecomposition.
        solution = solve_definite(matrix, target)
        if solution is None:
            matrix[np.diag_indices_from(matrix)] = diagonal
            eigen = self._decomposed(matrix, target, largest)
            solution = eigen.coef([alpha], 0.0)[0]
        return self.coefs(solution[None])[0]

    def decompose(self, *, scale: bool = False, basis: bool = False) -> RidgePath:
        """Return the decomposition that gives the solutions for every alpha.

        `basis` says that its eigenvectors will be needed. They are then computed; otherwise, from
        order `Limits.band_order` on, a band form of the system serves. The eigenvalues are S. The
        basis is ``Rᵀ U S^-½`` of shape (n_rows of K, n_rows), so that ``K @ basis`` are the
        eigen-features.
        Coefficients are dual. Parameters and errors are those of `solve`.

        No direction is left out. A direction whose S is near 0 hardly changes scores within the
        queries, but its part of the solution, ``Rᵀ u uᵀ R y / alpha``, shifts the scores of other
        rows. Its S is raised to ``FLOOR · S_max``, so coefficients are exact to that precision
        relative to alpha. Held-out scores take the eigen-features Z from ``L Z = basis S``, which
        loses no digits.
        """
        self._require(scale, path=True, basis=basis)
        matrix, target, largest = self.system()
        if basis or not has_band(len(matrix)):
            return RidgePath(self._basis(matrix, target, largest), is_dual=self._rows is None)
        most = self._most_negative(float(matrix.trace())) / len(matrix)
        form = BandForm(matrix)
        # The sum of negative eigenvalues that is refused is larger than this many of the smallest.
        if not form.is_definite(most):
            del form, matrix
            return RidgePath(self._basis(*self.system()), is_dual=self._rows is None)
        band = BandPath(form, target, self.coefs, smallest_eigenvalue(len(target), form.largest))
        return RidgePath(lambda: self._basis(*self.system()), band, is_dual=self._rows is None)

    def _basis(self, matrix: Vector, target: Vector, largest: float) -> EigenPath:
        """Return the eigenpath of `decompose`; the arguments are those of `_decomposed`."""
        silent = target[matrix.diagonal() == 0]  # of rows that tell nothing
        ridge = self._decomposed(matrix, target, largest)
        most = ridge.eigenvalues.max(initial=0.0)
        values = np.maximum(ridge.eigenvalues, FLOOR * (most or largest or 1.0))
        with single_threaded_blas:
            projection = np.sqrt(values) * (ridge.basis.T @ target)
        # The eigenvectors, in rows, are turned into the basis in place.
        basis = self.coefs(ridge.basis.T)
        basis /= np.sqrt(values)[:, None]
        return EigenPath(values, basis.T, projection, unseen=float(silent @ silent))

    def _decomposed(self, matrix: Vector, target: Vector, largest: float) -> EigenPath:
        """Decompose R K Rᵀ, which is overwritten.

        `largest` is the size of the largest entry of K.
        """
        trace = float(matrix.trace())
        ridge = EigenPath.of(matrix, target)
        # Negative eigenvalues were set to 0. Their sum is what the trace lacks.
        positive = float(ridge.eigenvalues.sum())
        self._refuse_indefinite(positive, positive - trace, largest)
        return ridge

    def _most_negative(self, positive: float) -> float:
        """Return how large the sum of negative eigenvalues may be, given that of the others."""
        return float(np.sqrt(np.finfo(self._data.dtype).eps)) * positive

    def _refuse_indefinite(self, positive: float, negative: float, largest: float) -> None:
        """Raise a ValueError if the negative eigenvalues of R K Rᵀ are more than rounding."""
        eps = float(np.finfo(self._data.dtype).eps)
        if not negative > self._most_negative(max(positive, negative)):
            return
        # If all differences are 0, both sums are rounding error. Their size is bounded by the pair
        # weight, which is at least the trace of L.
        if negative > 16 * len(self.labelled.y) * eps * largest * self.pair_weight:
            raise ValueError(
                "the kernel matrix must be positive semidefinite, but for these pairs its positive "
                f"eigenvalues add up to {positive:.3g} and its negative ones to {-negative:.3g}, "
                "which is more than rounding; set negative eigenvalues of the matrix to 0, or add "
                "the size of the smallest to its diagonal"
            )

    def system(self) -> tuple[Vector, Vector, float]:
        """Return ``R K Rᵀ``, ``R y`` and the largest |K_ij|, in the order of the rows."""
        labelled = self.labelled
        matrix = self._matrix()
        require_finite(matrix, "X")
        largest = float(max(matrix.max(initial=0.0), -matrix.min(initial=0.0)))
        if 0 < largest < SMALLEST_KERNEL:
            raise ValueError(
                f"the kernel matrix is too small: its largest entry is {largest:.1g}, want "
                f"{SMALLEST_KERNEL:g} or more: multiply it, or X"
            )
        if labelled.may_vanish or self.settings.compiled == "omega":
            labelled.require_pair_weight(self.settings, self.pair_weight)
            if self.pair_weight == 0:  # R K Rᵀ and R y are 0, but for rounding
                return np.zeros_like(matrix), np.zeros(len(matrix)), largest
        problem = labelled.problem(self.settings)
        apply_half_laplacian(problem, matrix)
        apply_half_laplacian(problem, matrix, axis=1)
        target = apply_half_laplacian(problem, labelled.target(self.settings).copy())
        with np.errstate(over="ignore", invalid="ignore"):
            trace, norm = float(matrix.trace()), float(target @ target)
        for what, size in (("the kernel matrix", trace), (labelled.target_name, norm)):
            if not np.isfinite(size):
                weighted = labelled.row_weights is not None or labelled.query_weights is not None
                raise ValueError(
                    f"{'the weights or ' * weighted}{what} too large: the weighted sum of squared "
                    "differences overflows"
                )
        if trace < 0:
            self._refuse_indefinite(0.0, -trace, largest)
        return matrix, target, largest

    def _matrix(self) -> Vector:
        """Return K of the rows of the system, as an array that may be overwritten."""
        X, rows = self._data.X, self._rows
        if self._data.feature_map is None:
            part = X if rows is None else X[np.ix_(rows, rows)]
            copy = True if rows is None else None
            return np.array(part, np.float64, order="C", copy=copy)
        K = kernel_between(self._data.feature_map, X if rows is None else X[rows])
        return np.ascontiguousarray(K, np.float64)

    def coefs(self, solutions: Vector) -> Vector:
        """Return ``s R`` for solutions s in rows, which are overwritten: (n, n_rows of K).

        Rows that do not count get 0.
        """
        problem = self.labelled.problem(self.settings)
        apply_half_laplacian(problem, solutions, axis=1, adjoint=True)
        if self._rows is None:
            return solutions
        out = np.zeros((len(solutions), self._n_coefs))
        out[:, self._rows] = solutions
        return out

    def _require(self, scale: bool, *, path: bool, basis: bool = False) -> None:
        if scale:
            raise ValueError("scale must be False for a kernel: its features cannot be scaled")
        data, n_rows = self._data, len(self.labelled.y)
        require_memory(n_rows, path, data.feature_map, basis=basis)


def require_memory(
    n_rows: int,
    path: bool,
    feature_map: Transformer | None,
    *,
    feature_bytes: float = 0.0,
    basis: bool = False,
) -> None:
    """Raise a MemoryError if the dual form of `n_rows` rows does not fit into free memory.

    Parameters
    ----------
    n_rows : int
    path : bool
        Whether `DualGram.decompose` will be called, or only `DualGram.solve`.
    feature_map : Kernel or None
        The kernel, fitted or not. None means that the kernel matrix exists already.
    feature_bytes : float
        Bytes of the features that have yet to be copied.
    basis : bool
        Whether eigenvectors will be needed.
    """
    per_square = 8 if not path else 24 if basis or not has_band(n_rows) else 12
    kernel = "besides" if feature_map is None else "with"
    features = f", and {feature_bytes / 2**30:.3g} GiB of features" if feature_bytes else ""
    memory.require(
        f"the dual form of {n_rows} rows, {kernel} the kernel matrix ({per_square} n² bytes"
        f"{features}),",
        float(per_square) * n_rows**2 + feature_bytes,
        alternatives(getattr(feature_map, "kernel", "precomputed")),
    )
