"""Kernels, and their values: matrices, and nodes of compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.metrics.pairwise import manhattan_distances

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import block_rows, blocks
from pairgram._support.checks import AnyArray, Vector, not_finite
from pairgram._support.machine import deadline, single_threaded_blas, thread_count
from pairgram.features.feature_map import dense

if TYPE_CHECKING:
    from pairgram._support.types import Matrix

# Kernels with k(x, x) = 1, and so with no larger value.
AT_MOST_ONE = ("rbf", "laplacian", "tanimoto", "minmax")
# Kernels of sums of absolute differences.
OF_ABSOLUTE = ("laplacian", "minmax")
# What takes less memory than a kernel matrix.
NYSTROEM = ", or approximate the kernel, by Nystroem as the feature_map of RankRLS or RankSVM"


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with its parameters; see `kernel_matrix`.

    Attributes
    ----------
    name : str
    gamma : float or None
        None stands for 1 / columns, until the kernel is `complete`. Only then has it values.
    degree : int
    coef0 : float
    """

    name: str
    gamma: Any = None
    degree: int = 3
    coef0: float = 1.0

    @property
    def at_most_one(self) -> bool:
        """Whether k(x, x) = 1 for every row, so that no value is larger."""
        return self.name in AT_MOST_ONE

    def complete(self, n_features: int) -> KernelFunction:
        """Return the kernel with a number for gamma."""
        return replace(self, gamma=1.0 / n_features if self.gamma is None else float(self.gamma))

    def nodes(self, landmarks: Vector, tail: Vector | None) -> Any:
        """Return the compiled map of rows x of float64 to ``k(x, landmarks) @ tail``.

        Rows and landmarks are measured from the mean of the landmarks before distances are
        computed, because the squares of a large common offset would leave no digits.
        """
        weights, bias = landmarks.T, np.zeros(len(landmarks))
        origin = square = None
        options: dict[str, Any] = {}
        activation = "linear"
        if self.name == "linear":
            if tail is not None:  # two linear steps are joined into one
                weights, bias, tail = weights @ tail, np.zeros(tail.shape[1]), None
        elif self.name == "polynomial":
            weights, bias = self.gamma * weights, bias + self.coef0
            options["degree"] = int(self.degree)
        elif self.name == "tanimoto":
            bias, options["tanimoto"] = np.einsum("ij,ij->i", landmarks, landmarks), True
        elif self.name == "minmax":
            bias, options["minmax"] = sizes_in_order(landmarks), True
        else:
            activation, square, origin = "gaussian", bias + self.gamma, landmarks.mean(axis=0)
            weights = (landmarks - origin).T
            if self.name == "rbf":
                bias = self.gamma * (weights**2).sum(axis=0)
                weights *= -2 * self.gamma
            else:
                options["manhattan"] = True
        if tail is not None:
            options["tail"] = np.ascontiguousarray(tail, np.float64)
        weights, segments = np.ascontiguousarray(weights), [(0, len(bias), activation)]
        return _core.NodeMap64(weights, bias, square, segments, origin=origin, **options)


def _tile(kernel: KernelFunction, x: Matrix, z: Matrix) -> Vector:
    """Return k(x, z) of some rows."""
    if scipy.sparse.issparse(x) and scipy.sparse.issparse(z):
        # Sparse distances take longer than sparse products. X has no say: it may be of any rows.
        share = limits.now.dense_share / (5 if kernel.name in OF_ABSOLUTE else 1)
        if z.shape[1] > limits.now.widest_dense or z.nnz < share * z.shape[0] * z.shape[1]:
            rows = (scipy.sparse.csr_array(part, dtype=np.float64) for part in (x, z))
            return _tile_of_sparse(kernel, *rows)
    x, z = (np.require(dense(rows), np.float64, ["C", "A"]) for rows in (x, z))
    return kernel.nodes(z, None).map(x, 1)


def _tile_of_sparse(kernel: KernelFunction, x: Any, z: Any) -> Vector:
    """Return k(x, z) of sparse rows, where dense ones would take too much memory or time."""
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        if kernel.name in OF_ABSOLUTE:
            distances = manhattan_distances(_narrow(x), _narrow(z))
            if kernel.name == "laplacian":
                return _exp_of(distances, -kernel.gamma)
            # Σ max + Σ min = ‖x‖₁ + ‖z‖₁, and Σ max − Σ min = ‖x − z‖₁.
            sizes = abs(x).sum(axis=1)[:, None] + abs(z).sum(axis=1)
            return _share(np.maximum(sizes - distances, 0.0), sizes + distances)
        K = (x @ z.T).toarray()
        if kernel.name == "linear":
            return K
        if kernel.name == "polynomial":
            return np.power(kernel.gamma * K + kernel.coef0, kernel.degree)
        sums = x.power(2).sum(axis=1)[:, None] + z.power(2).sum(axis=1)
        if kernel.name == "tanimoto":
            return _share(K, sums - K)
        return _exp_of(np.maximum(sums - 2 * K, 0.0), -kernel.gamma)


def _share(part: Vector, whole: Vector) -> Vector:
    return np.divide(part, whole, out=np.ones_like(part), where=whole != 0)


def sizes_in_order(rows: Vector) -> Vector:
    """Return ``‖x‖₁`` of every row, added from left to right as in compiled code."""
    return np.array([np.cumsum(np.abs(row))[-1] for row in rows])


def _narrow(rows: Any) -> Any:
    """Return rows of a tile with 32-bit indices, which scikit-learn needs."""
    parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return scipy.sparse.csr_array(parts, shape=rows.shape)


def _exp_of(values: Vector, factor: float) -> Vector:
    values = np.ascontiguousarray(values)
    values *= factor
    _core.apply_activation("exp", values)
    return values


def matrix_of(
    kernel: KernelFunction, X: Matrix, Z: Matrix | None, *, alone: bool = False
) -> AnyArray:
    """Return the kernel matrix of checked rows X and Z, where None stands for Z = X.

    It is in float64, because a solution with a small ridge loses its digits if K is rounded. With a
    given Z, the values of a row have the same bits wherever the row stands. The thread that calls
    it works `alone`, or with others.
    """
    symmetric, support = Z is None, X if Z is None else Z
    shape = (X.shape[0], support.shape[0])
    memory.require(
        f"a kernel matrix of {shape[0]} x {shape[1]}",
        8 * shape[0] * shape[1],
        f"take fewer rows{NYSTROEM}",
    )
    K = np.empty(shape)
    clock = deadline()  # which other threads have not

    def fill(tile: tuple[slice, slice]) -> None:
        clock.require()
        rows, columns = tile
        part = _tile(kernel, X[rows], support[columns])
        if symmetric and rows == columns:
            part = (part + part.T) / 2
            if kernel.at_most_one:
                np.fill_diagonal(part, 1.0)
        K[tile] = part
        if symmetric and rows != columns:
            K[columns, rows] = part.T
        if (at := not_finite(part)) is not None:
            i, j = divmod(at, part.shape[1])
            raise ValueError(
                f"the {kernel.name} kernel of rows {rows.start + i} and "
                f"{columns.start + j} is {part[i, j]}: X or the kernel's parameters are too large"
            )

    tiles = list(_tiles(shape, symmetric))
    n_threads = 1 if alone else min(thread_count(), len(tiles))
    with single_threaded_blas:
        if n_threads == 1:
            for tile in tiles:
                fill(tile)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(fill, tiles))
    return K


def _tiles(shape: tuple[int, int], symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into tiles; for a symmetric matrix, only those on and above the diagonal."""
    size = limits.now.tile
    for i in range(0, shape[0], size):
        for j in range(i if symmetric else 0, shape[1], size):
            yield slice(i, min(i + size, shape[0])), slice(j, min(j + size, shape[1]))


def check_symmetric(K: AnyArray, what: str) -> None:
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


# Mean kernel values are those of this many landmarks; centring loses less when values are rounded.
LANDMARKS_OF_MEAN = 32


def kernel_nodes(
    kernel: KernelFunction, landmarks: Vector, dtype: DTypeLike, tail: Vector | None = None
) -> Any:
    """Return the compiled map of rows x to ``k(x, landmarks) @ tail``.

    It computes kernel values in float64 for rows of either dtype. For rows of float32 and a kernel
    with k(x, x) = 1, values less their approximate mean are then multiplied by `tail` in float32,
    because the product takes half of the time.
    """
    if np.dtype(dtype) != np.float32:
        return kernel.nodes(landmarks, tail)
    if tail is None or not kernel.at_most_one:
        return _core.NodeMap32.in_double(kernel.nodes(landmarks, tail))
    wide = kernel.nodes(landmarks, None)
    some = np.ascontiguousarray(landmarks[:LANDMARKS_OF_MEAN], np.float64)
    centre = wide.map(some, 1).mean(axis=0)
    narrow = np.ascontiguousarray(tail, np.float32)
    return _core.NodeMap32.in_double(wide, centre, narrow, (centre @ tail).astype(np.float32))


def kernel_values(kernel: KernelFunction, X: Matrix, landmarks: Vector) -> Vector:
    """Return k(X, landmarks), (n_rows, n_landmarks), for dense or CSR rows, block by block."""
    nodes = kernel_nodes(kernel, landmarks, np.float64)
    size = block_rows(max(X.shape[1], len(landmarks)))
    out = np.empty((X.shape[0], len(landmarks)) if X.shape[0] > size else 0)
    for rows in blocks(X.shape[0], size):
        block = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
        values = nodes.map(np.require(block, np.float64, ["C", "A"]), thread_count())
        if X.shape[0] <= size:
            return np.asarray(values, np.float64)
        out[rows] = values
    return out
