"""Choose landmarks: rows, or centres of rows, that represent all rows in a kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from pairgram._support import memory
from pairgram._support.types import Vector
from pairgram.kernels.nodes import diagonal, kernel_values
from pairgram.kernels.settings import KernelSettings

__all__ = ["choose_landmarks"]

# With more rows than this, k-means works on small batches.
MAX_LLOYD_ROWS = 20_000


def choose_landmarks(
    how: str, kernel: KernelSettings, X: Any, n_landmarks: int, rng: Any, n_threads: int
) -> tuple[Vector, NDArray[np.int64] | None]:
    """Return (landmarks (m, n_features), their row numbers in X or None).

    Parameters
    ----------
    how : Landmarks, or "all"
    kernel : KernelSettings
    X : ndarray or csr_array of shape (n_rows, n_features)
    n_landmarks : int ≤ n_rows
        The number m. "rpcholesky" chooses fewer if the kernel matrix of the rows has lower rank.
    rng : RandomState or Generator
    n_threads : int
    """
    if how == "kmeans":
        return _centres(X, n_landmarks, rng), None
    if how == "all":
        rows = np.arange(n_landmarks)
    elif how == "uniform":
        rows = np.asarray(rng.permutation(X.shape[0])[:n_landmarks])
    else:
        rows = _pivots(kernel, X, n_landmarks, rng, n_threads)
    landmarks = X[rows]
    dense = landmarks.toarray() if hasattr(landmarks, "toarray") else landmarks
    return np.ascontiguousarray(dense, dtype=np.float64), rows.astype(np.int64)


def _centres(X: Any, n_clusters: int, rng: Any) -> Vector:
    """Return the centres of k-means, (n_clusters, n_features)."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # these are slow to import

    whole = X.shape[0] <= MAX_LLOYD_ROWS
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


def _pivots(
    kernel: KernelSettings, X: Any, n_pivots: int, rng: Any, n_threads: int
) -> NDArray[np.int64]:
    """Choose rows by randomly pivoted Cholesky.

    A row is drawn with a probability proportional to its residual, which is what the landmarks so
    far do not explain. The factor F of K ≈ F Fᵀ grows by a column for every accepted row. Rows are
    drawn in groups, and row i of a group is accepted with probability ``residual now / residual
    when drawn``. The distribution is therefore that of rows drawn one at a time. This takes
    O(n m (m + n_features)) time and O(n m) memory. Besides the small matrices of the groups, only
    m columns of K are computed.
    """
    n_rows = X.shape[0]
    memory.require(
        f"landmarks='rpcholesky', for {n_rows} rows and {n_pivots} landmarks,",
        1.5 * 8 * n_rows * n_pivots,
        "take fewer landmarks, or landmarks='uniform'",
    )
    residual = diagonal(kernel, X)
    if not (np.isfinite(residual).all() and (residual >= 0).all()):
        raise ValueError("kernel must give finite values k(x, x) >= 0")
    enough = 1e-14 * residual.sum()
    factor = np.empty((n_rows, n_pivots))
    chosen: list[int] = []
    while (k := len(chosen)) < n_pivots and residual.sum() > enough:
        drawn = rng.choice(n_rows, size=max(16, n_pivots // 8), p=residual / residual.sum())
        block = _rows_of(X, drawn)
        schur = (
            kernel_values(kernel, block, block, n_threads) - factor[drawn, :k] @ factor[drawn, :k].T
        )
        residual[drawn] = np.maximum(np.diag(schur), 0.0)  # more exact than the updated values
        accepted, root = _accept(schur, residual[drawn], n_pivots - k, rng)
        rows = drawn[accepted]
        columns = kernel_values(kernel, X, block[accepted], n_threads)
        columns -= factor[:, :k] @ factor[rows, :k].T
        new = scipy.linalg.solve_triangular(root, columns.T, lower=True, check_finite=False).T
        factor[:, k : k + len(rows)] = new
        residual = np.maximum(residual - np.einsum("ij,ij->i", new, new), 0.0)
        residual[rows] = 0.0
        chosen += rows.tolist()
    return np.array(chosen, dtype=np.int64)


def _accept(
    schur: Vector, residual: Vector, at_most: int, rng: Any
) -> tuple[NDArray[np.int64], Vector]:
    """Accept rows by rejection sampling; return (positions, their Cholesky factor).

    `schur` is overwritten.
    """
    limits = rng.uniform(size=len(schur)) * residual
    accepted: list[int] = []
    columns: list[Vector] = []
    for i in range(len(schur)):
        if len(accepted) == at_most or not schur[i, i] > limits[i]:
            continue
        column = schur[:, i] / np.sqrt(schur[i, i])
        schur -= np.outer(column, column)
        accepted.append(i)
        columns.append(column)
    positions = np.array(accepted, dtype=np.int64)
    root = np.array(columns).T[positions] if accepted else np.empty((0, 0))
    return positions, np.tril(root)


def _rows_of(X: Any, rows: NDArray[Any]) -> Vector:
    block = X[rows]
    dense = block.toarray() if hasattr(block, "toarray") else block
    return np.ascontiguousarray(dense, dtype=np.float64)
