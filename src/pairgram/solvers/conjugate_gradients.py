"""Solve pairwise least squares on wide sparse rows by conjugate gradients."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from pairgram._support import limits
from pairgram._support.checks import Vector, require_finite
from pairgram._support.parameters import check
from pairgram.data.dataset import RankingData, apply_half_laplacian
from pairgram.data.pairs import PairSettings
from pairgram.solvers.ridge_path import scale_factors
from pairgram.solvers.statistics import NOISE, SMALLEST_SQUARES, SparseGram, count_varying

# The steps end when the residual falls below this share of the right-hand side.
TOLERANCE = 1e-10


def worth_iterating(data: RankingData) -> bool:
    """Tell whether the rows are sparse and both systems are too large to be factorised."""
    sparse = data.feature_map is None and scipy.sparse.issparse(data.X)
    return sparse and min(data.X.shape) > limits.now.direct_order


class SparseSystem:
    """The system ``(XᵀLX + alpha I) w = XᵀLy`` of CSR rows, solved without forming its matrix.

    Parameters
    ----------
    data : RankingData
        Data with CSR rows and without a feature map.
    settings : PairSettings
    n_threads : int or None, default=None

    Notes
    -----
    A step of conjugate gradients multiplies by X and by Xᵀ and applies the half-Laplacian twice,
    in O(nnz + n_rows) time. The number of steps grows with the square root of ``λ_max / alpha``.
    The preconditioner is the diagonal of ``XᵀLX + alpha I``. The memory is
    O(nnz + n_rows + n_features).
    """

    def __init__(
        self, data: RankingData, settings: PairSettings, n_threads: int | None = None
    ) -> None:
        require_finite(data.X, "X")
        self._X = data.X.astype(np.float64, copy=False)
        self._data, self._settings, self._n_threads = data, settings, n_threads
        self._problem = data.as_scope(settings).problem(settings)

    def solve(self, alpha: float, *, scale: bool = False) -> Vector:
        """Return the coefficients for one ridge, shape (n_features,).

        Parameters
        ----------
        alpha : float ≥ 0
            The ridge. For 0 the solution has the minimum norm.
        scale : bool, default=False
            Whether to scale features as in `Pairgram.solve`.

        Raises
        ------
        ValueError
            If `alpha` is not finite and ≥ 0.

        Warns
        -----
        ConvergenceWarning
            If 10,000 steps do not bring the residual below 1e-10 of the right-hand side.
        """
        check("alpha", alpha)
        n_features = self._X.shape[1]
        diagonal, constant = self._diagonal()
        factor = scale_factors(diagonal) if scale else np.ones(n_features)
        factor[constant] = 0.0  # what a product has there is rounding error

        def product(w: Vector) -> Vector:
            return factor * self._pull(self._X @ (factor * w)) + alpha * w

        shifted = factor**2 * diagonal + alpha
        if alpha == 0 or not (shifted > 0).all():
            shifted = np.ones(n_features)  # a preconditioner would change which norm is least
        shape = (n_features, n_features)
        w, failed = cg(
            LinearOperator(shape, matvec=product, dtype=np.float64),
            factor * self._pull(self._data.target(self._settings).copy()),
            rtol=TOLERANCE,
            maxiter=limits.now.gradient_steps,
            M=LinearOperator(shape, matvec=lambda w: w / shifted, dtype=np.float64),
        )
        if failed:
            warnings.warn(
                f"{limits.now.gradient_steps} steps of conjugate gradients do not solve "
                f"for alpha={alpha:g}: scale the features to like size, or take a larger alpha",
                ConvergenceWarning,
                stacklevel=3,
            )
        return np.asarray(factor * w)

    def _pull(self, z: Vector) -> Vector:
        """Return ``XᵀL z``, (n_features,), and overwrite z."""
        for adjoint in (False, True):
            apply_half_laplacian(self._problem, z, adjoint=adjoint, n_threads=self._n_threads)
        return np.asarray(self._X.T @ z)

    def _diagonal(self) -> tuple[Vector, NDArray[np.bool_]]:
        """Return the diagonal of ``XᵀLX`` and which features do not vary, each (n_features,).

        The diagonal is 0 for these, and for others of which it has rounding error alone.
        """
        scoped = self._data.as_scope(self._settings)
        with np.errstate(over="ignore", invalid="ignore"):
            factors = SparseGram.of(scoped, self._settings)
        scoped.require_pair_weight(self._settings, factors.pair_weight)
        diagonal, size = factors.diagonal()
        if diagonal.max(initial=0.0) < SMALLEST_SQUARES and scoped.X.max() != scoped.X.min():
            raise ValueError(
                "X or the weights too small: squared differences of its features vanish: multiply "
                "X, as StandardScaler does"
            )
        varying = np.zeros(len(diagonal) + 1, dtype=np.int64)
        count_varying(scoped, self._settings.pairs is None, factors.has_weight, varying)
        return np.where(diagonal > NOISE * size, diagonal, 0.0), varying[:-1] == 0
