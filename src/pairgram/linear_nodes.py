"""Linear random nodes, whose problem is one of the inputs: L nodes cost no more than d features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from pairgram._threads import single_threaded_blas
from pairgram.random_nodes import RandomNodes

__all__ = ["LinearNodes", "ReducedNodes", "linear_nodes", "reduce_nodes"]

Vector = NDArray[np.float64]

# The largest condition number of a linear map that is applied to the Gram matrix, not to the rows.
MAX_CONDITION = 1e3


@dataclass(frozen=True, eq=False)
class LinearNodes:
    """The map ``h = Aᵀx + b``.

    Attributes
    ----------
    weights : ndarray of shape (n_inputs, n_nodes)
        A.
    bias : ndarray of shape (n_nodes,)
    """

    weights: Vector
    bias: Vector

    def fold(self, coefs: Vector) -> tuple[Vector, Vector]:
        """Return (weights of the inputs, offsets) of models of the nodes.

        Shapes (..., n_nodes) to (..., n_inputs) and (...,).
        """
        with single_threaded_blas():
            return coefs @ self.weights.T, coefs @ self.bias

    def acts_on_sums(self) -> bool:
        """Tell whether ``AᵀGA`` is as good as the Gram matrix of mapped rows, and cheaper."""
        n_inputs, n_nodes = self.weights.shape
        if n_inputs**2 > n_nodes * (2 * n_inputs + n_nodes):  # flops per row
            return False
        values = _squared_singular_values(self.weights)
        largest = values.max(initial=0.0)
        kept = values[values > _NOISE * max(self.weights.shape) * largest]
        return bool(largest == 0 or kept.min() * MAX_CONDITION**2 >= largest)


@dataclass(frozen=True, eq=False)
class ReducedNodes:
    """At most ``n_inputs + 1`` linear nodes with the inner products of many.

    Attributes
    ----------
    nodes : RandomNodes
        ``Rᵀ [x, 1]`` with ``R Rᵀ = M Mᵀ``, M the weights of the many, and their bias.
    """

    nodes: RandomNodes
    _many: Vector  # M
    _back: Vector  # R's pseudo-inverse

    def expand(self, coefs: Vector) -> Vector:
        """Return models of the many nodes from those of the few, of the same norm and scores.

        Shapes (n_models, rank) to (n_models, n_nodes).
        """
        with single_threaded_blas():
            return np.asarray((coefs @ self._back) @ self._many)


_NOISE = np.finfo(np.float64).eps


def linear_nodes(feature_map: Any) -> LinearNodes | None:
    """Return the map of fitted nodes that are all linear, None for every other feature map."""
    if type(feature_map) is not RandomNodes:
        return None
    if any(kind != "linear" for _, _, kind in feature_map._segments):
        return None
    return LinearNodes(feature_map.weights_, feature_map.bias_)


def reduce_nodes(feature_map: Any, *, constant: bool) -> ReducedNodes | None:
    """Return fewer linear nodes with the same inner products, if there are more than inputs.

    With M = A, or [A; b] with the constant input, ``M Mᵀ = W S² Wᵀ`` gives R = WS without its
    zero columns, and a model u of the few is ``Mᵀ W S⁻¹ u`` of the many: the ridge problems of both
    are the same. n_inputs² · n_nodes flops.

    Parameters
    ----------
    feature_map : fitted transformer or None
    constant : bool
        Whether the offsets b count (pointwise). Differences within pairs do not have them.
    """
    nodes = linear_nodes(feature_map)
    if nodes is None or nodes.weights.shape[1] < nodes.weights.shape[0]:
        return None
    many = np.vstack([nodes.weights, nodes.bias]) if constant else nodes.weights
    with single_threaded_blas():
        squares, vectors = scipy.linalg.eigh(many @ many.T, driver="evd", check_finite=False)
    if (squares <= squares.max() / MAX_CONDITION**2).any():  # too small for their squares
        vectors, values, _ = scipy.linalg.svd(many, full_matrices=False, check_finite=False)
        kept = values > _NOISE * max(many.shape) * values.max()
    else:
        values, kept = np.sqrt(squares), np.ones(len(squares), dtype=bool)
    if not kept.any():
        return None
    vectors, values = vectors[:, kept], values[kept]
    root = vectors * values
    if not constant:
        root = np.vstack([root, np.zeros(len(values))])
    settings = {"n_nodes": len(values), "activation": "linear", "n_threads": feature_map.n_threads}
    arrays = {"map_weights": root[:-1], "map_bias": root[-1]}
    few = RandomNodes._restore(arrays, settings)
    return ReducedNodes(few, many, (vectors / values).T)


def _squared_singular_values(weights: Vector) -> Vector:
    rows, columns = weights.shape
    with single_threaded_blas():
        square = weights @ weights.T if rows <= columns else weights.T @ weights
        return np.asarray(scipy.linalg.eigvalsh(square, check_finite=False))
