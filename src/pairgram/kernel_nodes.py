"""Kernels between rows and landmarks, as nodes that the kernels of this package know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._map_base import block_rows, native_nodes

__all__ = ["KERNELS", "Kernel", "dense_blocks"]

KERNELS = ("rbf", "laplacian", "polynomial", "linear")
Values = NDArray[np.float64]
KernelFunction = Callable[[Values, Values], Values]


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    Attributes
    ----------
    name : str of `KERNELS`, or callable
        "rbf" ``exp(−γ ‖x − z‖²)``, "laplacian" ``exp(−γ ‖x − z‖₁)``, "polynomial"
        ``(γ xᵀz + coef0)^degree``, "linear" ``xᵀz``; a callable maps (n, d) and (m, d) to (n, m).
    gamma, degree, coef0 : float, int, float
    """

    name: str | KernelFunction
    gamma: float
    degree: int
    coef0: float

    def node_map(self, landmarks: Values, dtype: Any, tail: Values | None = None) -> Any:
        """Return the kernels' map of rows x to ``k(x, landmarks) @ tail``, None for a callable.

        In float64 for rows of either dtype. Distances are those of rows and landmarks from the
        landmarks' mean: squares of a large common offset would leave no digits.
        """
        if callable(self.name):
            return None
        n_landmarks = len(landmarks)
        ones = np.ones(n_landmarks)
        origin = square = None
        options: dict[str, Any] = {}
        activation = "linear"
        if self.name == "linear":
            weights, bias = landmarks.T, 0 * ones
            if tail is not None:  # two linear steps are one
                weights, bias, tail = weights @ tail, np.zeros(tail.shape[1]), None
        elif self.name == "polynomial":
            weights, bias = self.gamma * landmarks.T, self.coef0 * ones
            options["degree"] = self.degree
        else:
            activation, square, origin = "gaussian", self.gamma * ones, landmarks.mean(axis=0)
            centres = (landmarks - origin).T
            if self.name == "rbf":
                weights, bias = -2 * self.gamma * centres, self.gamma * (centres**2).sum(axis=0)
            else:
                weights, bias = centres, 0 * ones
                options["manhattan"] = True
        segments = [(0, len(bias), activation)]
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

    def values(self, X: Any, landmarks: Values, n_threads: int) -> Values:
        """Return k(X, landmarks), (n_rows, n_landmarks), of dense or CSR rows, block by block.

        BLAS must be held to one thread.

        Raises
        ------
        ValueError
            If a callable returns another shape.
        """
        node_map = self.node_map(landmarks, np.float64)
        size = block_rows(max(X.shape[1], len(landmarks)))
        out = np.empty((X.shape[0], len(landmarks)) if X.shape[0] > size else 0)
        for rows, block in dense_blocks(X, size):
            values = (
                self._call(block, landmarks) if node_map is None else node_map.map(block, n_threads)
            )
            if X.shape[0] <= size:
                return values
            out[rows] = values
        return out

    def diagonal(self, X: Any) -> Values:
        """Return k(x, x) of every row of X, dense or CSR: (n_rows,)."""
        if self.name in ("rbf", "laplacian"):
            return np.ones(X.shape[0])
        out = np.empty(X.shape[0])
        for rows, block in dense_blocks(X, 64 if callable(self.name) else None):
            if callable(self.name):
                out[rows] = np.diag(self._call(block, block))
            else:
                squares = np.einsum("ij,ij->i", block, block)
                linear = self.name == "linear"
                out[rows] = (
                    squares if linear else (self.gamma * squares + self.coef0) ** self.degree
                )
        return out

    def _call(self, X: Values, landmarks: Values) -> Values:
        assert callable(self.name)
        values = np.asarray(self.name(X, landmarks), dtype=np.float64)
        if values.shape != (len(X), len(landmarks)):
            raise ValueError(
                f"kernel must map (n, d) and (m, d) arrays to an (n, m) array, but gave shape "
                f"{values.shape} for {X.shape} and {landmarks.shape}"
            )
        return values


def dense_blocks(X: Any, size: int | None = None) -> Any:
    """Yield (rows, float64 array of them) for blocks of dense or CSR rows."""
    size = block_rows(X.shape[1]) if size is None else size
    for begin in range(0, X.shape[0], size):
        rows = slice(begin, begin + size)
        block = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
        yield rows, np.require(block, np.float64, ["C", "A"])
