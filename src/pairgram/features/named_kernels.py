"""The kernels that have names: their values in tiles of rows, and as nodes of compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.checks import Vector
from pairgram.features.formulas import native_nodes

if TYPE_CHECKING:
    from pairgram._support.types import Matrix

# Kernels with k(x, x) = 1, and so with no larger value.
AT_MOST_ONE = ("rbf", "laplacian", "tanimoto", "minmax")


@dataclass(frozen=True)
class NamedKernel:
    """A kernel of all columns of rows, with numbers for its parameters; see `kernel_matrix`."""

    name: str
    gamma: float
    degree: int
    coef0: float

    def tiles(self, Z: Matrix, *, steady: bool) -> Tiles:
        """Return the function of tiles of rows, for columns that are rows of Z."""
        return Tiles(self, Z, steady=steady)

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
                weights = -2 * self.gamma * weights
                bias = self.gamma * ((landmarks - origin).T ** 2).sum(axis=0)
            else:
                options["manhattan"] = True
        segments = [(0, len(bias), activation)]
        return native_nodes(
            np.float64, weights, bias, square, segments, origin=origin, tail=tail, **options
        )

    def diagonal(self, block: Vector) -> Vector:
        """Return k(x, x) for every row x of a dense block."""
        if self.name in AT_MOST_ONE:
            return np.ones(len(block))
        squares: Vector = np.einsum("ij,ij->i", block, block)
        if self.name == "linear":
            return squares
        return (self.gamma * squares + self.coef0) ** self.degree

    def change(self, sizes: Vector) -> Vector:
        """Return how much a kernel value changes, about, if columns change by these sizes."""
        if self.name == "rbf":
            steepest = (2 * self.gamma / math.e) ** 0.5 * np.linalg.norm(sizes, axis=1)
        elif self.name == "laplacian":
            steepest = self.gamma * sizes.sum(axis=1)
        else:  # both kinds of shares are at most 1, and powers are scored by their own size
            steepest = np.ones(len(sizes))
        return np.asarray(steepest)


class Tiles:
    """The values of a named kernel for tiles of rows, in float64.

    If `steady` is True, values have the same bits wherever the rows stand.
    """

    def __init__(self, kernel: NamedKernel, Z: Matrix, *, steady: bool) -> None:
        self.kernel = kernel
        self.steady = steady
        # A shift changes no distances.
        self.shift = mean_without_gaps(Z) if kernel.name == "rbf" else None

    def __call__(self, x: Matrix, z: Matrix, diagonal: slice | None) -> NDArray[np.float64]:
        """Return k(x, z). On the diagonal, where x is z, the tile is exactly symmetric."""
        x, z = (less(rows, self.shift) for rows in (x, z))
        name = self.kernel.name
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
            if name == "laplacian":
                return _exp_of(_manhattan(x, z), -self.kernel.gamma)
            if name == "minmax":
                return _minmax(x, z)
            K = _dots(x, z if diagonal is None else x, self.steady)
            if diagonal is not None:
                K = (K + K.T) / 2
            if name == "polynomial":
                K *= self.kernel.gamma
                K += self.kernel.coef0
                return np.asarray(np.power(K, self.kernel.degree, out=K))
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
            return _exp_of(sums, -self.kernel.gamma)


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
