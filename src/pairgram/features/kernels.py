"""Kernels k(x, z) of two rows, their matrices, and kernel values as nodes of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import block_rows, blocks, read_rows, readable
from pairgram._support.checks import Vector, not_finite, require_finite
from pairgram._support.machine import deadline, resolve_n_threads, single_threaded_blas
from pairgram._support.parameters import (
    KERNEL_PARAMETERS,
    KernelName,
    check_parameters,
    words,
)
from pairgram._support.row_warnings import warn_of_rows
from pairgram.features.formulas import Terms
from pairgram.features.named_kernels import AT_MOST_ONE, NamedKernel

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike

KernelLike = KernelName | Callable[[Any, Any], Any]
# The values of a tile: of some rows, of some columns, and of the rows again on the diagonal.
TileValues = Callable[[Any, Any, slice | None], Vector]


@dataclass(eq=True)
class Kernel:
    """A kernel and its parameters, as described in `kernel_matrix`."""

    name: KernelLike
    gamma: float | None = None
    degree: int | None = None
    coef0: float | None = None

    @property
    def is_callable(self) -> bool:
        """Whether only Python can compute the kernel."""
        return callable(self.name)

    @property
    def is_precomputed(self) -> bool:
        """Whether rows are given as their kernel values."""
        return isinstance(self.name, str) and self.name == "precomputed"

    @property
    def takes_rows_as_given(self) -> bool:
        """Whether rows need not be numbers of columns."""
        return self.is_callable or self.is_precomputed

    @property
    def is_linear(self) -> bool:
        """Whether it is the kernel of the rows themselves."""
        return isinstance(self.name, str) and self.name == "linear"

    @property
    def takes_gamma(self) -> bool:
        """Whether a gamma that is given beside the kernel counts."""
        return isinstance(self.name, str) and "gamma" in KERNEL_PARAMETERS.get(self.name, ())

    @property
    def called(self) -> str:
        """What messages call it."""
        return f"{self.name} kernel"

    @property
    def at_most_one(self) -> bool:
        """Whether k(x, x) = 1 for every row, so that no value is larger."""
        return self.name in AT_MOST_ONE

    def filled(self, gamma: float | None, degree: int, coef0: float) -> Self:
        """Return the kernel with parameters that it does not have; they are checked.

        Raises
        ------
        ValueError
            If a parameter is not as described. The message names it.
        """
        known = words(KernelName)
        if not (callable(self.name) or (isinstance(self.name, str) and self.name in known)):
            names = ", ".join(map(repr, known))
            size = isinstance(self.name, Integral)
            hint = f"; give a number of landmarks as n_components={self.name}" if size else ""
            raise ValueError(
                f"kernel must be one of {names}, or a callable; got {self.name!r}{hint}"
            )
        found = replace(
            self,
            gamma=gamma if self.gamma is None else self.gamma,
            degree=degree if self.degree is None else self.degree,
            coef0=coef0 if self.coef0 is None else self.coef0,
        )
        check_parameters(found, "gamma", "degree", "coef0")
        return found

    def complete(self, n_features: int) -> Self:
        """Return the filled kernel with a number for gamma: ``1 / n_features`` if it has none."""
        return replace(self, gamma=1.0 / n_features if self.gamma is None else float(self.gamma))

    def named(self, n_features: int) -> NamedKernel:
        own = self.complete(n_features)
        assert isinstance(own.name, str)
        assert own.gamma is not None and own.degree is not None and own.coef0 is not None
        return NamedKernel(own.name, own.gamma, own.degree, own.coef0)

    def tiles(self, Z: Matrix, *, steady: bool) -> TileValues:
        """Return what computes the values of tiles, for columns that are rows of Z.

        If `steady` is True, values have the same bits wherever the rows stand.
        """
        return self.named(Z.shape[1]).tiles(Z, steady=steady)

    def wide_nodes(self, landmarks: Vector, tail: Vector | None) -> Any:
        """Return the compiled map of rows x of float64 to ``k(x, landmarks) @ tail``."""
        return self.named(landmarks.shape[1]).nodes(landmarks, tail)

    def diagonal(self, block: Vector) -> Vector:
        """Return k(x, x) for every row x of a dense block."""
        return self.named(block.shape[1]).diagonal(block)

    def terms(self, rows: Vector, weights: Vector) -> Terms:
        """Return a model of the kernel values with rows as terms of a formula."""
        if self.is_linear:
            return Terms(rows.T @ weights)
        return Terms(kernels=(KernelTerm(self.complete(rows.shape[1]), rows, weights),))

    def change(self, sizes: Vector) -> Vector:
        """Return how much a kernel value changes, about, if columns change by these sizes."""
        return self.named(sizes.shape[1]).change(sizes)


def as_kernel(kernel: KernelLike) -> Kernel:
    """Return a kernel that may be given by its name or as a callable; nothing is checked."""
    return Kernel(kernel)


@lru_cache(maxsize=64, typed=True)
def _named(kernel: KernelName, gamma: float | None, degree: int, coef0: float) -> Kernel:
    return Kernel(kernel).filled(gamma, degree, coef0)


def kernel_of(
    kernel: KernelLike, gamma: float | None = None, degree: int = 3, coef0: float = 1.0
) -> Kernel:
    """Return a kernel with the parameters that are given beside it; they are checked.

    What was right once is not checked again. That is remembered of names alone: a callable, and
    what it holds, would stay in memory.
    """
    if isinstance(kernel, str):
        try:
            return _named(kernel, gamma, degree, coef0)
        except TypeError:  # a list or an array has no hash
            pass
    return as_kernel(kernel).filled(gamma, degree, coef0)


def alternatives(kernel: KernelLike | None) -> str:
    """Return advice on what takes less memory than the matrix of this kernel."""
    map_of = ", or approximate the kernel, by Nystroem as the feature_map of RankRLS or RankSVM"
    other = "" if kernel is not None and as_kernel(kernel).is_precomputed else map_of
    return f"take fewer rows{other}"


def matrix_of(
    kernel: Kernel, X: Matrix, Z: Matrix | None, n_threads: int | None, *, first: int = 0
) -> NDArray[Any]:
    """Return the kernel matrix of checked rows X and Z, where None stands for Z = X.

    It is in float64, because a solution with a small ridge loses its digits if K is rounded. (A
    callable may return float32.) With a given Z, the values of a row have the same bits wherever
    the row stands. Error messages count rows from `first`.
    """
    threads = resolve_n_threads(n_threads)
    symmetric, support = Z is None, X if Z is None else Z
    shape = (X.shape[0], support.shape[0])
    if callable(kernel.name):
        return called(kernel.name, X, support, symmetric)
    memory.require(
        f"a kernel matrix of {shape[0]} x {shape[1]}",
        8 * shape[0] * shape[1],
        alternatives(kernel.name),
    )
    K = np.empty(shape)
    values = kernel.tiles(support, steady=not symmetric)

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
                f"the {kernel.called} of rows {first + rows.start + i} and "
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
    kernel: KernelLike = "rbf",
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
    own = kernel_of(kernel, gamma, degree, coef0)
    if own.is_precomputed:
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
    warn_of_rows(own, X)
    return matrix_of(own, X, Z, n_threads)


def _rows(X: RowsLike, name: str) -> Matrix:
    X = read_rows(X, name)
    require_finite(X, name)
    return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X


# Of so many landmarks the mean kernel values are taken, to lose less when values are rounded.
LANDMARKS_OF_MEAN = 32


def kernel_nodes(
    kernel: Kernel, landmarks: Vector, dtype: DTypeLike, tail: Vector | None = None
) -> Any:
    """Return the compiled map of rows x to ``k(x, landmarks) @ tail``, or None for a callable.

    It computes kernel values in float64 for rows of either dtype. For rows of float32 and a kernel
    with k(x, x) = 1, values less their approximate mean are then multiplied by `tail` in float32,
    because the product takes half of the time.
    """
    if kernel.is_callable:
        return None
    if np.dtype(dtype) != np.float32:
        return kernel.wide_nodes(landmarks, tail)
    if tail is None or not kernel.at_most_one:
        return _core.NodeMap32.in_double(kernel.wide_nodes(landmarks, tail))
    wide = kernel.wide_nodes(landmarks, None)
    some = np.ascontiguousarray(landmarks[:LANDMARKS_OF_MEAN], np.float64)
    centre = wide.map(some, 1).mean(axis=0)
    narrow = np.ascontiguousarray(tail, np.float32)
    return _core.NodeMap32.in_double(wide, centre, narrow, (centre @ tail).astype(np.float32))


def kernel_values(kernel: Kernel, X: Matrix, landmarks: Vector, n_threads: int) -> Vector:
    """Return k(X, landmarks), (n_rows, n_landmarks), for dense or CSR rows, block by block.

    Raises
    ------
    ValueError
        If a callable returns another shape, or NaN or infinity.
    """
    nodes = kernel_nodes(kernel, landmarks, np.float64)
    size = block_rows(max(X.shape[1], len(landmarks)))
    out = np.empty((X.shape[0], len(landmarks)) if X.shape[0] > size else 0)
    for rows, block in dense_blocks(X, size):
        values: Any
        if callable(kernel.name):
            values = called(kernel.name, block, landmarks)
        else:
            values = nodes.map(block, n_threads)
        if X.shape[0] <= size:
            return np.asarray(values, np.float64)
        out[rows] = values
    return out


def diagonal(kernel: Kernel, X: Matrix) -> Vector:
    """Return k(x, x) for every row x of X, dense or CSR: (n_rows,)."""
    if kernel.at_most_one:
        return np.ones(X.shape[0])
    out = np.empty(X.shape[0])
    for rows, block in dense_blocks(X, 64 if kernel.is_callable else None):
        if callable(kernel.name):
            out[rows] = np.diag(called(kernel.name, block, block))
        else:
            out[rows] = kernel.diagonal(block)
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
    kernel : Kernel
        With a number for gamma.
    rows : ndarray of shape (n_kernel_rows, n_columns)
    weights : ndarray of shape (n_kernel_rows,)
    """

    kernel: Kernel
    rows: Vector
    weights: Vector

    def values(self, C: Vector) -> Vector:
        """Return the kernel values of columns (n_rows, n_columns) with the rows."""
        return matrix_of(self.kernel, C, self.rows, None)

    def change(self, sizes: Vector) -> Vector:
        """Return how much the kernel values change, about, if columns change by these sizes."""
        return np.repeat(self.kernel.change(sizes)[:, None], len(self.rows), axis=1)


def kernel_terms(kernel: Kernel, rows: Vector, weights: Vector) -> Terms:
    """Return a kernel model with these rows as terms of a formula."""
    if kernel.is_callable:
        raise ValueError("kernel is a Python callable, which cannot be exported")
    return kernel.terms(rows, weights)
