"""The Nyström map: features whose inner products approximate a kernel by means of landmarks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.checks import Vector
from pairgram._support.machine import TOO_LARGE_FOR_EVD, single_threaded_blas, thread_count
from pairgram._support.parameters import (
    NAMED_KERNEL,
    Landmarks,
    check_parameters,
)
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.schema import FLOAT64, INT64, Array, Arrays, Kind, Sizes, require
from pairgram.features.feature_map import (
    FeatureMap,
    Formula,
    RowScorer,
    ValueMap,
    dense,
    finite_rows,
    generator,
    scores_in_blocks,
)
from pairgram.features.kernel_values import (
    LANDMARKS_OF_MEAN,
    kernel_nodes,
    kernel_values,
)
from pairgram.features.kernels import OfKernel, fitted_kernel

if TYPE_CHECKING:
    from pairgram._support.types import Draws, Matrix, RandomState, RowsLike


def _centres(X: Matrix, n_clusters: int, rng: Draws) -> Vector:
    """Return the centres of k-means, (n_clusters, n_features)."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # these are slow to import

    whole = X.shape[0] <= limits.now.lloyd_rows
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    seed = int(draw(2**31 - 1))
    if whole:
        model = KMeans(n_clusters, n_init=1, random_state=seed)
    else:
        model = MiniBatchKMeans(n_clusters, n_init=1, random_state=seed)
    # One thread: scikit-learn's threads add their sums in the order in which they finish.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # there may be too few distinct rows
        return np.ascontiguousarray(model.fit(X).cluster_centers_, dtype=np.float64)


def _require_whitening(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    """Raise a ValueError unless the settings and arrays of a map agree with each other."""
    require(
        sizes["outputs"] <= sizes["landmarks"], "map_whitening must have no more columns than rows"
    )
    if (rows := arrays.get("map_component_indices")) is not None:
        require(rows.min() >= 0, "map_component_indices must be row numbers >= 0")


@dataclass(eq=False, repr=False)
class Nystroem(OfKernel, FeatureMap):
    """Nyström features ``z(x) = (U S^-½ Q)ᵀ k(Z, x)``, where ``USUᵀ`` is the kernel of landmarks Z.

    Their inner products approximate the kernel, ``z(x)ᵀz(y) ≈ k(x, y)``. They are exact if x or y
    is a landmark. Q is the rotation that makes ``U S^-½ Q`` lower triangular; it changes no inner
    product and saves half of the work. If the map is the `feature_map` of a ranker, rows are mapped
    block by block while the Gram matrix is summed. The features of all rows are never stored.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "polynomial", "linear", "tanimoto", "minmax"}, default="rbf"
        As in `kernel_matrix`. For a function of rows, scikit-learn's own ``Nystroem`` can be the
        `feature_map`, which is slower.
    gamma, degree, coef0 : float or None, int, float, default=None, 3, 1.0
        As in `kernel_matrix`.
    n_components : int ≥ 1 or None, default=100
        Number of landmarks, or all rows if there are fewer. None takes all rows, whatever
        `landmarks` says, and so gives the kernel itself.
    landmarks : {"uniform", "kmeans"}, default="uniform"
        How landmarks are chosen:

        - "uniform": rows are drawn without replacement;
        - "kmeans": the centres of scikit-learn's ``KMeans``, or of ``MiniBatchKMeans`` for more
          than 20,000 rows.
    tol : float ≥ 0, default=1e-6
        Eigenvalues of the landmarks' kernel matrix up to `tol`, or up to rounding error, are
        dropped.
    random_state : int, RandomState, Generator or None, default=None
        Seed or source of the landmarks. Equal seeds give the uniform landmarks of scikit-learn's
        ``Nystroem``.

    Attributes
    ----------
    components_ : ndarray of shape (n_landmarks, n_features), float64
        The landmarks Z.
    component_indices_ : ndarray of shape (n_landmarks,), int64
        The row numbers of the landmarks in X. It does not exist with "kmeans".
    whitening_ : ndarray of shape (n_landmarks, n_features_out), float64
        ``U S^-½ Q``, which is lower triangular with a positive diagonal. The features are
        ``k(X, Z) @ whitening_``.
    gamma_ : float
        The gamma that is used.
    kernel_parameters_ : dict
        The name and the parameters of the kernel of the fit.
    n_features_in_ : int

    Notes
    -----
    Let m be the number of landmarks and r ≤ m the number of features. `fit` takes O(m³) time and 48
    m² bytes. If all eigenvalues are kept, Cholesky factors take the place of eigenvectors, which is
    several times faster. `transform` takes n · m · (2 n_features + r) flops and about 1 ns per
    kernel value. Kernel values are computed in float64 for rows of either dtype, because whitening
    multiplies rounding errors by up to ``1 / sqrt(tol)``. For float32 rows and a kernel with k(x,
    x) = 1, they are centred, and then whitened in float32: inner products of features are off by
    1e-7 to 1e-6. To predict, rankers multiply their coefficients by `whitening_`, which leaves 2
    n_features + 2 flops per kernel value. CSR rows are made dense block by block.

    `fit` gives the ``UserWarning`` of `kernel_matrix` for columns that hardly change the kernel.

    Chen et al. take ``U S^-½`` in place of ``U S^-½ Q``, and scikit-learn takes ``U S^-½ Uᵀ``, with
    m features whatever the rank. These features are rotations of the ones here and have the same
    inner products.

    References
    ----------
    Williams, Seeger. Using the Nyström method to speed up kernel machines. NIPS 2000. Chen, Li,
    Dou, Liang, Lv. Ranking support vector machine with kernel approximation. Computational
    Intelligence and Neuroscience, 2017. §3.2.1, Algorithm 1. Zhang, Tsang, Kwok. Improved Nyström
    low-rank approximation and error analysis. ICML 2008 (k-means).

    Examples
    --------
    >>> from pairgram import Nystroem, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> Nystroem(n_components=50, random_state=0).fit_transform(X).shape
    (2000, 50)
    >>> model = RankRLS(feature_map=Nystroem(n_components=50, random_state=0)).fit(X, y, qid=qid)
    >>> model.coef_.shape
    (50,)
    """

    _: KW_ONLY
    n_components: int | None = 100
    landmarks: Landmarks = "uniform"
    tol: float = 1e-6
    random_state: RandomState = None

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Choose landmarks among the rows of X, shape (n_rows, n_features), and whiten them.

        Raises
        ------
        ValueError
            If a parameter is not as described (the message names it), if X holds NaN or infinity,
            or if no eigenvalue of the landmarks' kernel matrix is above `tol`.
        MemoryError
            If the kernel matrix of the landmarks and its eigenvectors do not fit into free memory.
        """
        own = "Nystroem.kernel", "Nystroem.n_components", "landmarks", "Nystroem.tol"
        check_parameters(self, *own)
        kernel = self._function()
        X = finite_rows(self, X, reset=True)
        self._fit_kernel(kernel, self.n_features_in_)
        warn_of_rows(self.kernel, X, getattr(self, "feature_names_in_", None))
        n_landmarks = min(self.n_components or X.shape[0], X.shape[0])
        memory.require(  # `_whitening` needs room for K and five more matrices of its size
            f"n_components: the kernel of {n_landmarks} landmarks, with its eigenvectors,",
            6 * 8.0 * n_landmarks**2,
            "take fewer landmarks",
        )
        with single_threaded_blas:
            self.__dict__.pop("component_indices_", None)
            rng = generator(self.random_state)
            if self.n_components is not None and self.landmarks == "kmeans":
                self.components_ = _centres(X, n_landmarks, rng)
            else:
                rows = np.arange(n_landmarks, dtype=np.int64)
                if self.n_components is not None:
                    rows = np.asarray(rng.permutation(X.shape[0])[:n_landmarks], np.int64)
                self.component_indices_ = rows
                self.components_ = np.ascontiguousarray(dense(X[rows]), np.float64)
            K = kernel_values(self._kernel, self.components_, self.components_)
            self.whitening_ = _whitening(K, float(self.tol))
        return self

    def _node_map(self, dtype: DTypeLike) -> Any:
        """Return the compiled map for rows of a dtype."""
        return kernel_nodes(self._kernel, self.components_, dtype, self.whitening_)

    def _unwhitened(self) -> tuple[ValueMap, Vector]:
        """Return the map to centred kernel values with the landmarks, and `whitening_`.

        Smaller values lose less if they are rounded to single precision.
        """
        mean = self._kernel_values(self.components_[:LANDMARKS_OF_MEAN]).mean(axis=0)
        return ValueMap(self, lambda X: self._kernel_values(X) - mean), self.whitening_

    def _kernel_values(self, X: Matrix) -> Vector:
        """Return the kernel values of rows that have been checked with the landmarks."""
        with single_threaded_blas:
            return kernel_values(self._kernel, X, self.components_)

    def _scorer(self, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
        """Return a scorer that multiplies kernel values by the whitened coefficients.

        This takes 2 · n_landmarks flops for a row in place of n_landmarks · n_features.
        """
        nodes = kernel_nodes(self._kernel, self.components_, dtype)
        return RowScorer([(nodes, self._model_of_values(coef))])

    def _scores(self, X: Matrix, coefs: Vector) -> Vector:
        """Return the scores of checked rows from their kernel values; see `FeatureMap._scores`."""
        return scores_in_blocks(self._kernel_values, X, self._model_of_values(coefs))

    def _model_of_values(self, coefs: Vector) -> Vector:
        """Return models of the kernel values with the same scores as models of the features."""
        whitening = np.ascontiguousarray(self.whitening_, np.float64)
        return _core.score_rows(whitening, np.ascontiguousarray(coefs))

    def _rounding(self, X: Matrix) -> Vector:
        K = self._kernel_values(X)
        size = np.abs(self.whitening_)
        terms = 8 * np.finfo(np.float64).eps * np.sqrt((K**2).mean(axis=0)) @ size
        if X.dtype == np.float32 and self._kernel.at_most_one:
            terms += np.finfo(np.float32).eps * K.std(axis=0) @ size
        return super()._rounding(X) + terms

    def _formula(self, x: Formula, coef: Vector) -> Formula:
        return x.of_kernel(self._kernel, self.components_, self.whitening_ @ coef)

    _in_file = Kind(
        {"fitted": fitted_kernel(NAMED_KERNEL)},
        {
            "map_components": Array(FLOAT64, ("landmarks", "features")),
            "map_whitening": Array(FLOAT64, ("landmarks", "outputs")),
            "map_component_indices?": Array(INT64, ("landmarks",)),
        },
        _require_whitening,
    )

    @property
    def _n_features_out(self) -> int:
        return self.whitening_.shape[1]


def _whitening(K: Vector, tol: float) -> Vector:
    """Return ``U S^-½ Q`` of K, (m, m), for the eigenvalues above `tol` and rounding error.

    If all eigenvalues are, two Cholesky factors take the place of the eigenvectors.
    """
    if not np.isfinite(K).all():
        raise ValueError("the kernel of the landmarks is not finite: kernel values too large")
    K = (K + K.T) / 2
    rounding = len(K) * np.finfo(np.float64).eps
    # If no eigenvalue is below 0, none is above the trace.
    if _is_definite(K, max(tol, rounding * float(np.trace(K)))):
        return _whitening_of_all(K)
    driver = "evd" if len(K) < TOO_LARGE_FOR_EVD else "evr"
    eigenvalues, vectors = scipy.linalg.eigh(K, driver=driver, check_finite=False)
    largest = eigenvalues.max(initial=0.0)
    kept = np.flatnonzero(eigenvalues > max(tol, rounding * largest))
    if not len(kept):
        raise ValueError(
            f"no eigenvalue of the landmarks' kernel is above tol={tol}, the largest is {largest}"
        )
    whitening = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    root = scipy.linalg.qr(whitening.T, mode="r", check_finite=False)[0]
    root *= np.where(np.diag(root) < 0, -1.0, 1.0)[:, None]
    return np.ascontiguousarray(root.T)


def _is_definite(K: Vector, shift: float) -> bool:
    """Tell whether all eigenvalues of K are above `shift`.

    They are if K − shift · I has a Cholesky factor.
    """
    if not (np.diag(K) > shift).all():
        return False
    shifted = K.copy()
    shifted[np.diag_indices(len(K))] -= shift
    return _core.cholesky(shifted, thread_count()) == len(K)


def _whitening_of_all(K: Vector) -> Vector:
    """Return the lower triangular W with positive diagonal and ``W Wᵀ = K⁻¹``.

    Let ``L Lᵀ`` be the Cholesky factorisation of K with rows and columns in reverse order. Then W
    is L⁻ᵀ in reverse order.
    """
    root = np.ascontiguousarray(K[::-1, ::-1])
    _core.cholesky(root, thread_count())  # K minus a shift has a factor, so K has one
    return np.ascontiguousarray(_core.invert_transposed(root, thread_count())[::-1, ::-1])
