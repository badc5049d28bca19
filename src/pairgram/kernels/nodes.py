"""Kernel values k(x, landmark), expressed as hidden nodes for the compiled `NodeMap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

import pairgram._core as _core
from pairgram._support.blocks import block_rows, blocks
from pairgram._support.node_map import native_nodes
from pairgram._support.types import Vector
from pairgram.kernels.matrix import called, sizes_in_order
from pairgram.kernels.settings import KernelSettings

__all__ = [
    "AT_MOST_ONE",
    "LANDMARKS_OF_MEAN",
    "dense_blocks",
    "diagonal",
    "kernel_nodes",
    "kernel_values",
]


# Kernels with k(x, x) = 1, and so with no larger value.
AT_MOST_ONE = ("rbf", "laplacian", "tanimoto", "minmax")
# Of so many landmarks the mean kernel values are taken, to lose less when values are rounded.
LANDMARKS_OF_MEAN = 32


def kernel_nodes(
    settings: KernelSettings, landmarks: Vector, dtype: Any, tail: Vector | None = None
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


def kernel_values(settings: KernelSettings, X: Any, landmarks: Vector, n_threads: int) -> Vector:
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


def diagonal(settings: KernelSettings, X: Any) -> Vector:
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


def dense_blocks(X: Any, size: int | None = None) -> Any:
    """Yield (row numbers, float64 array of these rows) for blocks of dense or CSR rows."""
    size = block_rows(X.shape[1]) if size is None else size
    for rows in blocks(X.shape[0], size):
        block = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
        yield rows, np.require(block, np.float64, ["C", "A"])
