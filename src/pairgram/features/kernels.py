"""Kernels k(x, z) of two rows: their settings, their matrices, and kernel values as nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import block_rows, blocks, read_rows, readable
from pairgram._support.checks import Vector, not_finite, require_finite
from pairgram._support.machine import deadline, resolve_n_threads, single_threaded_blas
from pairgram._support.parameters import KernelName, check_parameters, words
from pairgram._support.row_warnings import warn_of_rows
from pairgram.features.formulas import Terms, native_nodes

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike

Kernel = KernelName | Callable[[Any, Any], Any]


@dataclass(frozen=True)
class KernelSettings:
    """A kernel and its parameters, as described in `kernel_matrix`.

    Raises
    ------
    ValueError
        If a parameter is not as described. The message names it.
    """

    kernel: Kernel = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        known = words(KernelName)
        if not (callable(self.kernel) or (isinstance(self.kernel, str) and self.kernel in known)):
            names = ", ".join(map(repr, known))
            size = isinstance(self.kernel, Integral)
            hint = f"; give a number of landmarks as n_components={self.kernel}" if size else ""
            raise ValueError(
                f"kernel must be one of {names}, or a callable; got {self.kernel!r}{hint}"
            )
        check_parameters(self, "gamma", "degree", "coef0")

    def with_gamma(self, n_features: int) -> float:
        """Return gamma, or ``1 / n_features`` if it is None."""
        return 1.0 / n_features if self.gamma is None else float(self.gamma)


@lru_cache(maxsize=64, typed=True)
def _checked_kernel(kernel: Kernel, gamma: float | None, degree: int, coef0: float) -> None:
    KernelSettings(kernel, gamma, degree, coef0)


def check_kernel(kernel: Kernel, gamma: float | None, degree: int, coef0: float) -> None:
    """Raise the errors of `KernelSettings`. What was right once is not checked again.

    That is remembered of names alone: a callable, and what it holds, would stay in memory.
    """
    check = KernelSettings if callable(kernel) else _checked_kernel
    try:
        check(kernel, gamma, degree, coef0)
    except TypeError:  # a list or an array has no hash
        KernelSettings(kernel, gamma, degree, coef0)


def alternatives(kernel: Kernel | None) -> str:
    """Return advice on what takes less memory than the matrix of this kernel."""
    map_of = ", or approximate the kernel, by Nystroem as the feature_map of RankRLS or RankSVM"
    other = "" if kernel == "precomputed" else map_of
    return f"take fewer rows{other}"


def matrix_of(
    settings: KernelSettings, X: Matrix, Z: Matrix | None, n_threads: int | None, *, first: int = 0
) -> NDArray[Any]:
    """Return the kernel matrix of checked rows X and Z, where None stands for Z = X.

    It is in float64, because a solution with a small ridge loses its digits if K is rounded. (A
    callable may return float32.) With a given Z, the values of a row have the same bits wherever
    the row stands. Error messages count rows from `first`.
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

    clock = deadline()  # which other threads have not

    def fill(tile: tuple[slice, slice]) -> None:
        clock.require()
        rows, columns = tile
        part = values(X[rows], support[columns], rows if symmetric and rows == columns else None)
        K[tile] = part
        if symmetric and rows != columns:
            K[columns, rows] = part.T
        if (at := not_finite(part)) is not None:
            i, j = divmod(at, part.shape[1])
            raise ValueError(
                f"the {settings.kernel} kernel of rows {first + rows.start + i} and "
                f"{columns.start + j} is {part[i, j]}: X or the kernel's parameters are too large"
            )

    tiles = list(_tiles(shape, symmetric))
    with single_threaded_blas:
        if threads == 1 or len(tiles) == 1:
            for tile in tiles:
                fill(tile)
        else:
            with ThreadPoolExecutor(min(threads, len(tiles))) as pool:
                list(pool.map(fill, tiles))
    return K


def _tiles(shape: tuple[int, int], symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into tiles; for a symmetric matrix, only those on and above the diagonal."""
    size = limits.now.tile
    for i in range(0, shape[0], size):
        for j in range(i if symmetric else 0, shape[1], size):
            yield slice(i, min(i + size, shape[0])), slice(j, min(j + size, shape[1]))


class _Values:
    """The values of a named kernel for tiles of rows, in float64.

    If `steady` is True, values have the same bits wherever the rows stand.
    """

    def __init__(self, settings: KernelSettings, X: Matrix, Z: Matrix, *, steady: bool) -> None:
        self.settings = settings
        self.steady = steady
        self.gamma = settings.with_gamma(Z.shape[1])
        # A shift changes no distances.
        self.shift = mean_without_gaps(Z) if settings.kernel == "rbf" else None

    def __call__(self, x: Matrix, z: Matrix, diagonal: slice | None) -> NDArray[np.float64]:
        """Return k(x, z). On the diagonal, where x is z, the tile is exactly symmetric."""
        x, z = (less(rows, self.shift) for rows in (x, z))
        name = self.settings.kernel
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
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


def mean_without_gaps(rows: Matrix) -> NDArray[np.float64]:
    """Return the mean of the rows, but 0 in columns of which sparse rows leave out entries."""
    mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    if not scipy.sparse.issparse(rows):
        return mean
    entries = np.bincount(rows.indices, minlength=rows.shape[1])
    return np.where(entries == rows.shape[0], mean, 0.0)


def less(rows: Matrix, shift: NDArray[np.float64] | None) -> Any:
    """Return the rows in float64, less a shift."""
    rows = rows.astype(np.float64, copy=False)
    if shift is None or not shift.any():
        return rows
    if scipy.sparse.issparse(rows):
        ones = scipy.sparse.csr_array(np.ones((rows.shape[0], 1)))
        return rows - ones @ scipy.sparse.csr_array(shift[None])
    return rows - shift


def _dots(x: Matrix, z: Matrix, steady: bool) -> NDArray[np.float64]:
    if steady and not (scipy.sparse.issparse(x) or scipy.sparse.issparse(z)):
        return _core.score_rows(np.ascontiguousarray(z), np.ascontiguousarray(x))
    K = x @ z.T
    return np.asarray(K.toarray() if scipy.sparse.issparse(K) else K)


def _manhattan(x: Matrix, z: Matrix) -> NDArray[np.float64]:
    """Return ``‖x − z‖₁``.

    Merging sparse entries takes about 20 times as long per entry as subtracting dense ones.
    """
    if scipy.sparse.issparse(x) and scipy.sparse.issparse(z):
        entries = (x.shape[0] + z.shape[0]) * x.shape[1]
        if 20 * (x.nnz + z.nnz) < entries:
            return np.asarray(manhattan_distances(_narrow(x), _narrow(z)))
    x, z = (rows.toarray() if scipy.sparse.issparse(rows) else rows for rows in (x, z))
    return np.asarray(cdist(x, z, "cityblock"))


def _minmax(x: Matrix, z: Matrix) -> NDArray[np.float64]:
    """Return ``Σ min / Σ max`` of the positive and the negative parts, or 1 for two rows of zeros.

    For wide sparse rows the sums follow from distances: ``Σ max + Σ min = ‖x‖₁ + ‖z‖₁``, and
    ``Σ max − Σ min = ‖x − z‖₁``.
    """
    both = scipy.sparse.issparse(x) and scipy.sparse.issparse(z)
    if both and x.shape[1] > limits.now.widest_dense:
        of_x, of_z = (np.asarray(abs(rows).sum(axis=1)).ravel() for rows in (x, z))
        sizes = of_x[:, None] + of_z
        distances = manhattan_distances(_narrow(x), _narrow(z))
        K, unions = np.maximum(sizes - distances, 0.0), sizes + distances
        return np.asarray(np.divide(K, unions, out=np.ones_like(K), where=unions != 0))
    x, z = (rows.toarray() if scipy.sparse.issparse(rows) else rows for rows in (x, z))
    weights, size = np.ascontiguousarray(z.T), len(z)
    nodes = _core.NodeMap64(weights, sizes_in_order(z), None, [(0, size, "linear")], minmax=True)
    return nodes.map(np.ascontiguousarray(x), 1)


def sizes_in_order(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``‖x‖₁`` of every row, added from left to right as in compiled code."""
    return np.array([np.cumsum(np.abs(row))[-1] for row in rows])


def _narrow(rows: Any) -> Any:
    """Return rows of a tile with 32-bit indices, which scikit-learn needs."""
    parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return scipy.sparse.csr_array(parts, shape=rows.shape)


def _squares(rows: Matrix) -> NDArray[np.float64]:
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.power(2).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _exp_of(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    values = np.ascontiguousarray(values)
    values *= factor
    _core.apply_activation("exp", values)
    return values


def called(
    kernel: Callable[[Any, Any], Any], X: Matrix, Z: Matrix, symmetric: bool = False
) -> NDArray[Any]:
    """Return the kernel matrix of a Python callable, float64 or float32, after checking it."""
    shape = (X.shape[0], Z.shape[0])
    K = readable(kernel(X, Z), f"the matrix of kernel {kernel!r}")
    K = np.asarray(K.toarray() if scipy.sparse.issparse(K) else K)
    if K.shape != shape:
        raise ValueError(
            f"kernel {kernel!r} must return a matrix of shape {shape}, a row for each of X and a "
            f"column for each of Z, got {K.shape}"
        )
    K = read_rows(K, f"the matrix of kernel {kernel!r}", sparse=False)
    require_finite(K, f"the matrix of kernel {kernel!r}")
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
    X: RowsLike,
    Z: RowsLike | None = None,
    kernel: Kernel = "rbf",
    *,
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the kernel values ``k(x, z)`` for every row x of X and every row z of Z.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
    Z : array-like or CSR matrix of shape (n_columns, n_features), or None
        None stands for the rows of X.
    kernel : str or callable, default="rbf"
        - "linear": ``xᵀz``;
        - "rbf": ``exp(−gamma ‖x − z‖²)``;
        - "polynomial": ``(gamma xᵀz + coef0)^degree``;
        - "laplacian": ``exp(−gamma ‖x − z‖₁)``;
        - "tanimoto": ``xᵀz / (‖x‖² + ‖z‖² − xᵀz)``. For binary rows, such as fingerprints, this is
          the Jaccard coefficient. It is 1 for two rows of zeros, or of entries whose squares
          underflow;
        - "minmax": ``Σ_k min(x_k, z_k) / Σ_k max(x_k, z_k)`` for entries ≥ 0. For count
          fingerprints, this is the Tanimoto similarity of RDKit; for binary rows it equals
          "tanimoto". A column with entries below 0 counts as two, its positive part ``max(x, 0)``
          and its negative part ``max(−x, 0)``: this is Li's generalised min-max kernel. It is 1 for
          two rows of zeros;
        - "precomputed": X is the kernel matrix itself, and Z must be None;
        - a callable: ``kernel(X, Z)`` returns the matrix for all rows of X and all rows of Z. It
          gets them as they are given: arrays or csr_array, of float64 or float32. For objects that
          are not rows of numbers, such as strings or graphs, give ``X = np.arange(n)[:, None]``
          and let the callable look the objects up by number; or give their kernel matrix as
          "precomputed".
    gamma : float > 0 or None, default=None
        None stands for ``1 / n_features``.
    degree : int from 1 to 1,000, default=3
    coef0 : float ≥ 0, default=1.0
    n_threads : int or None, default=None
        Number of threads. The result has the same bits for any number. If Z is given, the values
        of a row also have the same bits whatever other rows X has.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        float64 for rows of either type. It is exactly symmetric if Z is None and the kernel has a
        name. A precomputed matrix is not copied; it and the matrix of a callable may be float32.

    Raises
    ------
    ValueError
        If a parameter or an array is not as described; if the matrix is not finite; or if Z is None
        and the matrix is not symmetric to half of its digits. The message names the entry.
    MemoryError
        If the matrix does not fit into free memory.

    Warns
    -----
    UserWarning
        With "rbf", "laplacian" and "polynomial", if at least a third of the columns of X that vary
        have a standard deviation below a hundredth of the largest: such columns hardly change the
        kernel. With "tanimoto" and "minmax", if X looks like packed bits (`numpy.packbits`), since
        the bytes are not features: all entries are whole numbers up to 255, and more than a
        quarter of those above 0 are 16 or more. Both are checked in up to 1,024 evenly spaced rows.

    Notes
    -----
    The cost is n_rows · n_columns · n_features flops (twice that if Z is given), and a few MiB of
    memory besides the result. If a kernel matrix is rounded to float32, scores err by about
    ``6e-8 λ_max / alpha``, which leaves them few digits. Dense rows are measured from the mean of Z
    before distances are computed, so a large common offset does no harm. So are the columns of CSR
    rows in which every row of Z has an entry. By other columns, squared distances of CSR rows err
    by about 1e-16 times the squares of the rows: make rows dense that have large values there.

    All named kernels are positive semidefinite. For "tanimoto" this holds for entries of either
    sign, because 1 / (a + b − c) is the integral of exp(−ta) exp(−tb) exp(tc) over t > 0. For a
    callable or a precomputed matrix, the `fit` of a model checks this, as far as it can see it.

    References
    ----------
    Li. Linearized GMM kernels and normalized random Fourier features. KDD 2017 ("minmax").

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
        K = read_rows(X, sparse=False)
        require_finite(K, "X")
        check_symmetric(K, "X, with kernel='precomputed',")
        return np.asarray(K)
    X = _rows(X, "X")
    if Z is not None:
        Z = _rows(Z, "Z")
        if Z.shape[1] != X.shape[1]:
            raise ValueError(f"Z must have the {X.shape[1]} features of X, got {Z.shape[1]}")
    warn_of_rows(settings, X)
    return matrix_of(settings, X, Z, n_threads)


def _rows(X: RowsLike, name: str) -> Matrix:
    X = read_rows(X, name)
    require_finite(X, name)
    return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X


# Kernels with k(x, x) = 1, and so with no larger value.
AT_MOST_ONE = ("rbf", "laplacian", "tanimoto", "minmax")
# Of so many landmarks the mean kernel values are taken, to lose less when values are rounded.
LANDMARKS_OF_MEAN = 32


def kernel_nodes(
    settings: KernelSettings, landmarks: Vector, dtype: DTypeLike, tail: Vector | None = None
) -> Any:
    """Return the compiled map of rows x to ``k(x, landmarks) @ tail``, or None for a callable.

    It computes kernel values in float64 for rows of either dtype. For rows of float32 and a kernel
    with k(x, x) = 1, values less their approximate mean are then multiplied by `tail` in float32,
    because the product takes half of the time. Rows and landmarks are measured from the mean
    of the landmarks before distances are computed, because the squares of a large common offset
    would leave no digits.
    """
    if callable(settings.kernel):
        return None
    gamma = settings.with_gamma(landmarks.shape[1])
    weights, bias = landmarks.T, np.zeros(len(landmarks))
    origin = square = None
    options: dict[str, Any] = {}
    activation = "linear"
    if settings.kernel == "linear":
        if tail is not None:  # two linear steps are joined into one
            weights, bias, tail = weights @ tail, np.zeros(tail.shape[1]), None
    elif settings.kernel == "polynomial":
        weights, bias = gamma * weights, bias + settings.coef0
        options["degree"] = int(settings.degree)
    elif settings.kernel == "tanimoto":
        bias, options["tanimoto"] = np.einsum("ij,ij->i", landmarks, landmarks), True
    elif settings.kernel == "minmax":
        bias, options["minmax"] = sizes_in_order(landmarks), True
    else:
        activation, square, origin = "gaussian", bias + gamma, landmarks.mean(axis=0)
        weights = (landmarks - origin).T
        if settings.kernel == "rbf":
            weights, bias = -2 * gamma * weights, gamma * (weights**2).sum(axis=0)
        else:
            options["manhattan"] = True
    segments = [(0, len(bias), activation)]
    if tail is not None and np.dtype(dtype) == np.float32 and settings.kernel in AT_MOST_ONE:
        wide = native_nodes(np.float64, weights, bias, square, segments, origin=origin, **options)
        some = np.ascontiguousarray(landmarks[:LANDMARKS_OF_MEAN], np.float64)
        centre = wide.map(some, 1).mean(axis=0)
        narrow = np.ascontiguousarray(tail, np.float32)
        return _core.NodeMap32.in_double(wide, centre, narrow, (centre @ tail).astype(np.float32))
    return native_nodes(
        dtype,
        weights,
        bias,
        square,
        segments,
        origin=origin,
        tail=tail,
        in_double=True,
        **options,
    )


def kernel_values(settings: KernelSettings, X: Matrix, landmarks: Vector, n_threads: int) -> Vector:
    """Return k(X, landmarks), (n_rows, n_landmarks), for dense or CSR rows, block by block.

    Raises
    ------
    ValueError
        If a callable returns another shape, or NaN or infinity.
    """
    nodes = kernel_nodes(settings, landmarks, np.float64)
    size = block_rows(max(X.shape[1], len(landmarks)))
    out = np.empty((X.shape[0], len(landmarks)) if X.shape[0] > size else 0)
    for rows, block in dense_blocks(X, size):
        values: Any
        if callable(settings.kernel):
            values = called(settings.kernel, block, landmarks)
        else:
            values = nodes.map(block, n_threads)
        if X.shape[0] <= size:
            return np.asarray(values, np.float64)
        out[rows] = values
    return out


def diagonal(settings: KernelSettings, X: Matrix) -> Vector:
    """Return k(x, x) for every row x of X, dense or CSR: (n_rows,)."""
    kernel = settings.kernel
    if kernel in AT_MOST_ONE:
        return np.ones(X.shape[0])
    out = np.empty(X.shape[0])
    for rows, block in dense_blocks(X, 64 if callable(kernel) else None):
        if callable(kernel):
            out[rows] = np.diag(called(kernel, block, block))
        else:
            out[rows] = np.einsum("ij,ij->i", block, block)
    if kernel == "polynomial":
        out = (settings.with_gamma(X.shape[1]) * out + settings.coef0) ** settings.degree
    return out


def dense_blocks(X: Matrix, size: int | None = None) -> Any:
    """Yield (row numbers, float64 array of these rows) for blocks of dense or CSR rows."""
    size = block_rows(X.shape[1]) if size is None else size
    for rows in blocks(X.shape[0], size):
        block = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
        yield rows, np.require(block, np.float64, ["C", "A"])


@dataclass(frozen=True, eq=False)
class KernelTerm:
    """Kernel values with rows, times weights, as a term of a formula.

    Attributes
    ----------
    settings : KernelSettings
        With a number for gamma.
    rows : ndarray of shape (n_kernel_rows, n_columns)
    weights : ndarray of shape (n_kernel_rows,)
    """

    settings: KernelSettings
    rows: Vector
    weights: Vector

    def values(self, C: Vector) -> Vector:
        """Return the kernel values of columns (n_rows, n_columns) with the rows."""
        return kernel_matrix(C, self.rows, **asdict(self.settings))

    def change(self, sizes: Vector) -> Vector:
        """Return how much the kernel values change, about, if columns change by these sizes."""
        gamma = self.settings.with_gamma(sizes.shape[1])
        if self.settings.kernel == "rbf":
            steepest = (2 * gamma / math.e) ** 0.5 * np.linalg.norm(sizes, axis=1)
        elif self.settings.kernel == "laplacian":
            steepest = gamma * sizes.sum(axis=1)
        else:  # both kinds of shares are at most 1, and powers are scored by their own size
            steepest = np.ones(len(sizes))
        return np.repeat(steepest[:, None], len(self.rows), axis=1)


def kernel_terms(settings: KernelSettings, rows: Vector, weights: Vector) -> Terms:
    """Return a kernel model with these rows as terms of a formula."""
    if callable(settings.kernel):
        raise ValueError("kernel is a Python callable, which cannot be exported")
    if settings.kernel == "linear":
        return Terms(rows.T @ weights)
    settings = replace(settings, gamma=settings.with_gamma(rows.shape[1]))
    return Terms(kernels=(KernelTerm(settings, rows, weights),))
