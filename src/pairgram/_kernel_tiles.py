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
from pairgram._arrays import readable
from pairgram._kernel_settings import Kernel, KernelSettings
from pairgram._memory import available_memory
from pairgram._threads import resolve_n_threads, single_threaded_blas

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


def matrix_of(settings: KernelSettings, X: Any, Z: Any, n_threads: int | None) -> NDArray[Any]:
    """The kernel matrix of checked rows; Z None: those of X.

    In float64, or as a callable returns it: a solution of small ridge cancels where K is rounded.
    """
    threads = resolve_n_threads(n_threads)
    symmetric, support = Z is None, X if Z is None else Z
    shape = (X.shape[0], support.shape[0])
    if callable(settings.kernel):
        return called(settings.kernel, X, support, symmetric)
    if (needed := 8 * shape[0] * shape[1]) > (free := available_memory()):
        raise MemoryError(
            f"a kernel matrix of {shape[0]} x {shape[1]} takes {needed / 2**30:.1f} GiB, but "
            f"{free / 2**30:.1f} GiB are free: {alternatives(settings.kernel)}"
        )
    K = np.empty(shape)
    values = _Values(settings, X, support)

    def fill(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        part = values(X[rows], support[columns], rows if symmetric and rows == columns else None)
        K[tile] = part
        if symmetric and rows != columns:
            K[columns, rows] = part.T
        if not np.isfinite(part).all():
            i, j = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(
                f"the {settings.kernel} kernel of rows {rows.start + i} and {columns.start + j} is "
                f"{part[i, j]}: X or the kernel's parameters are too large"
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
    """The values of a named kernel for tiles of rows, in float64."""

    def __init__(self, settings: KernelSettings, X: Any, Z: Any) -> None:
        self.settings = settings
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
            K = _dots(x, z if diagonal is None else x)
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


def _dots(x: Any, z: Any) -> NDArray[np.float64]:
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
