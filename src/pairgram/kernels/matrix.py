"""Kernel matrices of checked rows, tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.validation import check_array

from pairgram import _core
from pairgram._support import memory
from pairgram._support.arrays import naming_columns, readable
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.kernels.settings import Kernel, KernelSettings

__all__ = [
    "FLOATS",
    "alternatives",
    "called",
    "check_not_negative",
    "check_symmetric",
    "matrix_of",
    "sums_in_order",
]

FLOATS = (np.float64, np.float32)
TILE = 512  # rows and columns of K that are made at once, in float64
WIDEST_DENSE = 8192  # features of sparse rows that a tile holds as a dense array, of 32 MiB


def alternatives(kernel: Kernel | None) -> str:
    """Say what takes less memory than a matrix of a kernel, None for one of the features."""
    map_of = ", or approximate the kernel, by Nystroem as the feature_map of RankRLS or RankSVM"
    other = "" if kernel == "precomputed" else map_of
    return f"take fewer rows{other}"


def matrix_of(
    settings: KernelSettings, X: Any, Z: Any, n_threads: int | None, *, first: int = 0
) -> NDArray[Any]:
    """The kernel matrix of checked rows; Z None: those of X. An error counts rows from `first`.

    In float64, or as a callable returns it: a solution of small ridge cancels where K is rounded.
    Kernels with given Z have the same bits wherever their rows stand.
    """
    threads = resolve_n_threads(n_threads)
    symmetric, support = Z is None, X if Z is None else Z
    shape = (X.shape[0], support.shape[0])
    if callable(settings.kernel):
        return called(settings.kernel, X, support, symmetric)
    memory.require(
        f"a kernel matrix of {shape[0]} x {shape[1]}",
        8 * shape[0] * shape[1],
        alternatives(settings.kernel),
    )
    K = np.empty(shape)
    values = _Values(settings, X, support, steady=not symmetric)

    def fill(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        part = values(X[rows], support[columns], rows if symmetric and rows == columns else None)
        K[tile] = part
        if symmetric and rows != columns:
            K[columns, rows] = part.T
        if not np.isfinite(part).all():
            i, j = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(
                f"the {settings.kernel} kernel of rows {first + rows.start + i} and "
                f"{columns.start + j} is {part[i, j]}: X or the kernel's parameters are too large"
            )

    tiles = list(_tiles(shape, symmetric))
    with single_threaded_blas():
        if threads == 1 or len(tiles) == 1:
            for tile in tiles:
                fill(tile)
        else:
            with ThreadPoolExecutor(min(threads, len(tiles))) as pool:
                list(pool.map(fill, tiles))
    return K


def _tiles(shape: tuple[int, int], symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into tiles; of a symmetric one, those on and above the diagonal."""
    for i in range(0, shape[0], TILE):
        for j in range(i if symmetric else 0, shape[1], TILE):
            yield slice(i, min(i + TILE, shape[0])), slice(j, min(j + TILE, shape[1]))


class _Values:
    """The values of a named kernel for tiles of rows, in float64.

    `steady` ones have the same bits wherever the rows stand.
    """

    def __init__(self, settings: KernelSettings, X: Any, Z: Any, *, steady: bool) -> None:
        self.settings = settings
        self.steady = steady
        self.gamma = settings.with_gamma(Z.shape[1])
        self.shift: Any = 0.0
        dense = not (scipy.sparse.issparse(X) or scipy.sparse.issparse(Z))
        if dense and settings.kernel == "rbf":  # distances are the same from anywhere
            self.shift = Z.mean(axis=0, dtype=np.float64)

    def __call__(self, x: Any, z: Any, diagonal: slice | None) -> NDArray[np.float64]:
        """Return k(x, z); on the diagonal, where x is z, exactly symmetric."""
        x, z = (_float64(rows, self.shift) for rows in (x, z))
        name = self.settings.kernel
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks
            if name == "laplacian":
                return _exp_of(_manhattan(x, z), -self.gamma)
            if name == "minmax":
                return _minmax(x, z)
            K = _dots(x, z if diagonal is None else x, self.steady)
            if diagonal is not None:
                K = (K + K.T) / 2
            if name == "polynomial":
                K *= self.gamma
                K += self.settings.coef0
                return np.asarray(np.power(K, self.settings.degree, out=K))
            if name == "linear":
                return K
            sums = _squares(x)[:, None] + _squares(z)
            if name == "tanimoto":
                sums -= K
                return np.divide(K, sums, out=np.ones_like(K), where=sums != 0)
            sums -= 2 * K
            np.maximum(sums, 0.0, out=sums)
            if diagonal is not None:
                np.fill_diagonal(sums, 0.0)
            return _exp_of(sums, -self.gamma)


def _float64(rows: Any, shift: Any) -> Any:
    if scipy.sparse.issparse(rows):
        return rows.astype(np.float64)
    return np.subtract(rows, shift, dtype=np.float64)


def _dots(x: Any, z: Any, steady: bool) -> NDArray[np.float64]:
    if steady and not (scipy.sparse.issparse(x) or scipy.sparse.issparse(z)):
        return _core.score_rows(np.ascontiguousarray(z), np.ascontiguousarray(x))
    K = x @ z.T
    return np.asarray(K.toarray() if scipy.sparse.issparse(K) else K)


def _manhattan(x: Any, z: Any) -> NDArray[np.float64]:
    """Return ``‖x − z‖₁``; a merge of entries takes some 20 times as long as a subtraction."""
    if scipy.sparse.issparse(x) and scipy.sparse.issparse(z):
        entries = (x.shape[0] + z.shape[0]) * x.shape[1]
        if 20 * (x.nnz + z.nnz) < entries:
            return np.asarray(manhattan_distances(_narrow(x), _narrow(z)))
    x, z = (rows.toarray() if scipy.sparse.issparse(rows) else rows for rows in (x, z))
    return np.asarray(cdist(x, z, "cityblock"))


def _minmax(x: Any, z: Any) -> NDArray[np.float64]:
    """Return ``Σ min(x, z) / Σ max(x, z)`` of entries ≥ 0, 1 for rows of zeros.

    Of wide sparse rows from their distances: ``Σ max ± Σ min`` are ``Σ x + Σ z`` and ``‖x − z‖₁``.
    """
    both = scipy.sparse.issparse(x) and scipy.sparse.issparse(z)
    if both and x.shape[1] > WIDEST_DENSE:
        sizes = np.asarray(x.sum(axis=1)).reshape(-1, 1) + np.asarray(z.sum(axis=1)).ravel()
        distances = manhattan_distances(_narrow(x), _narrow(z))
        K, unions = np.maximum(sizes - distances, 0.0), sizes + distances
        return np.asarray(np.divide(K, unions, out=np.ones_like(K), where=unions != 0))
    x, z = (rows.toarray() if scipy.sparse.issparse(rows) else rows for rows in (x, z))
    weights, size = np.ascontiguousarray(z.T), len(z)
    nodes = _core.NodeMap64(weights, sums_in_order(z), None, [(0, size, "linear")], minmax=True)
    return nodes.map(np.ascontiguousarray(x), 1)


def sums_in_order(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of rows, added from left to right as compiled code does."""
    return np.array([np.cumsum(row)[-1] for row in rows])


def check_not_negative(X: Any, name: str) -> None:
    """Raise a ValueError that names the row and column of an entry below 0, dense or CSR."""
    values = X.data if scipy.sparse.issparse(X) else X
    if not (values.size and values.min() < 0):
        return
    entries = X.tocoo() if scipy.sparse.issparse(X) else None
    if entries is None:
        row, column = np.argwhere(X < 0)[0]
    else:
        at = int(np.argmax(entries.data < 0))
        row, column = entries.row[at], entries.col[at]
    raise ValueError(
        f"Negative values in data: {name} must hold entries >= 0 for kernel='minmax', got "
        f"{X[row, column]} in row {row}, column {column}"
    )


def _narrow(rows: Any) -> Any:
    """Return rows of a tile with the indices of 32 bits that scikit-learn wants."""
    parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return scipy.sparse.csr_array(parts, shape=rows.shape)


def _squares(rows: Any) -> NDArray[np.float64]:
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.power(2).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _exp_of(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    values = np.ascontiguousarray(values)
    values *= factor
    _core.apply_activation("exp", values)
    return values


def called(
    kernel: Callable[[Any, Any], Any], X: Any, Z: Any, symmetric: bool = False
) -> NDArray[Any]:
    """Return the matrix that a Python callable makes of rows, float64 or float32, checked."""
    shape = (X.shape[0], Z.shape[0])
    K = readable(kernel(X, Z), f"the matrix of kernel {kernel!r}")
    K = np.asarray(K.toarray() if scipy.sparse.issparse(K) else K)
    if K.shape != shape:
        raise ValueError(
            f"kernel {kernel!r} must return a matrix of shape {shape}, a row for each of X and a "
            f"column for each of Z, got {K.shape}"
        )
    K = check_array(K, dtype=FLOATS, order="C", input_name=f"the matrix of kernel {kernel!r}")
    if symmetric:
        check_symmetric(K, f"the matrix of kernel {kernel!r}")
    return np.asarray(K)


def check_symmetric(K: NDArray[Any], what: str) -> None:
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{what} must be square, a row and a column for each row, got {K.shape}")
    tolerance = np.sqrt(np.finfo(K.dtype).eps) * max(abs(K.max()), abs(K.min()))
    for rows, columns in _tiles(K.shape, symmetric=True):
        wrong = np.abs(K[rows, columns] - K[columns, rows].T) > tolerance
        if wrong.any():
            i, j = np.argwhere(wrong)[0] + (rows.start, columns.start)
            raise ValueError(
                f"{what} must be symmetric, but entry ({i}, {j}) is {K[i, j]} and ({j}, {i}) is "
                f"{K[j, i]}"
            )


def kernel_matrix(
    X: Any,
    Z: Any = None,
    kernel: Kernel = "rbf",
    *,
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the kernel ``k(x, z)`` of every row x of X with every row z of Z.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
    Z : array-like or CSR matrix of shape (n_columns, n_features), or None
        None: the rows of X.
    kernel : str or callable, default="rbf"
        - "linear": ``xᵀz``;
        - "rbf": ``exp(−gamma ‖x − z‖²)``;
        - "polynomial": ``(gamma xᵀz + coef0)^degree``;
        - "laplacian": ``exp(−gamma ‖x − z‖₁)``;
        - "tanimoto": ``xᵀz / (‖x‖² + ‖z‖² − xᵀz)``, for binary rows such as fingerprints the
          Jaccard coefficient. 1 for two rows of zeros, or of entries whose squares underflow;
        - "minmax": ``Σ_k min(x_k, z_k) / Σ_k max(x_k, z_k)``, for rows of counts such as count
          fingerprints their Tanimoto similarity as RDKit has it. Entries must be ≥ 0; 1 for two
          rows of zeros. For binary rows it is "tanimoto";
        - "precomputed": X is the matrix itself, and Z None;
        - a callable: ``kernel(X, Z)`` returns the matrix of all rows of X with all of Z, as they
          are given: arrays or csr_array, of float64 or float32. Objects that are not rows of
          numbers, such as strings or graphs, come as the numbers by which the callable looks them
          up, ``X = np.arange(n)[:, None]``, or as the matrix of their kernel, "precomputed".
    gamma : float > 0 or None, default=None
        None: ``1 / n_features``.
    degree : int of 1 to 1,000, default=3
    coef0 : float ≥ 0, default=1.0
    n_threads : int or None, default=None
        The result has the same bits for any number; for Z given, those of a row are the same
        whatever rows stand beside it.

    All named kernels are positive semidefinite; of a callable or a precomputed matrix a model's
    `fit` finds out, as far as it sees. (1 / (a + b − c) is the integral of
    exp(−ta) exp(−tb) exp(tc) over t > 0, which is why "tanimoto" takes entries of either sign.)

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        float64 for rows of either type, exactly symmetric for Z None and a named kernel. A
        precomputed matrix is not copied, and it and that of a callable may be float32.

    Raises
    ------
    ValueError
        If a parameter or array is not as described; if the matrix is not finite or, for Z None, not
        symmetric to half of its digits: names the entry.
    MemoryError
        If the matrix does not fit the available memory.

    Warns
    -----
    UserWarning
        With "rbf", "laplacian" and "polynomial" where a third or more of the columns of X that vary
        have a standard deviation below a hundredth of the largest, which such a kernel hardly sees;
        with "tanimoto" and "minmax" where X looks like packed bits (`numpy.packbits`), whose bytes
        are no features: whole numbers up to 255, more than a quarter of those above 0 being 16 or
        more. Looked for in up to 1,024 rows, evenly spaced.

    Notes
    -----
    n_rows · n_columns · n_features flops (twice that for Z given), and a few MiB of memory
    besides the result. Rounded to float32, a kernel matrix would leave scores few digits: they
    err by about ``6e-8 λ_max / alpha``. Distances of dense rows are taken from the
    mean of Z, so that a large common offset does no harm.

    Examples
    --------
    >>> from pairgram import kernel_matrix
    >>> kernel_matrix([[0, 1, 1], [1, 1, 0]], kernel="tanimoto").round(2)
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """
    settings = KernelSettings(kernel, gamma, degree, coef0)
    if settings.kernel == "precomputed":
        if Z is not None:
            raise ValueError("Z must be None with kernel='precomputed': X is the matrix itself")
        K = check_array(readable(X, "X"), dtype=FLOATS, order="C", input_name="X")
        check_symmetric(K, "X, with kernel='precomputed',")
        return np.asarray(K)
    X = _rows(X, "X")
    if Z is not None:
        Z = _rows(Z, "Z")
        if Z.shape[1] != X.shape[1]:
            raise ValueError(f"Z must have the {X.shape[1]} features of X, got {Z.shape[1]}")
    for rows, name in ((X, "X"), (Z, "Z")):
        if settings.kernel == "minmax" and rows is not None:
            check_not_negative(rows, name)
    warn_of_rows(settings, X)
    return matrix_of(settings, X, Z, n_threads)


def _rows(X: Any, name: str) -> Any:
    X = readable(X, name)
    with naming_columns(X, name):
        X = check_array(X, accept_sparse="csr", dtype=FLOATS, order="C", input_name=name)
    return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X
