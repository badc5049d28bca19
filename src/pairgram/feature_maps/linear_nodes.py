"""Linear random nodes, whose problem is one of the inputs: L nodes cost no more than d features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from pairgram import _core
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Vector
from pairgram.feature_maps.random_nodes import RandomNodes

__all__ = ["LinearNodes", "ReducedNodes", "linear_nodes", "reduce_nodes"]


# The largest condition number of a linear map that is applied to the Gram matrix, not to the rows.
MAX_CONDITION = 1e3


_NOISE = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class LinearNodes:
    """The map ``h = Aᵀx + b`` of fitted nodes.

    Attributes
    ----------
    weights : ndarray of shape (n_inputs, n_nodes)
        A.
    bias : ndarray of shape (n_nodes,)
    """

    weights: Vector
    bias: Vector
    _well_conditioned: bool | None = None  # None: not known yet

    def fold(self, coefs: Vector) -> tuple[Vector, Vector]:
        """Return (weights of the inputs, offsets) of models of the nodes.

        Shapes (n_nodes,) to (n_inputs,) and (), or (n_models, n_nodes) to (n_models, n_inputs) and
        (n_models,).
        """
        weights, bias, coefs = (
            np.ascontiguousarray(a, np.float64) for a in (self.weights, self.bias[None], coefs)
        )
        return _core.score_rows(weights, coefs), _core.score_rows(bias, coefs)[..., 0]

    def acts_on_sums(self) -> bool:
        """Tell whether ``AᵀGA`` is as good as the Gram matrix of mapped rows, and cheaper."""
        n_inputs, n_nodes = self.weights.shape
        if n_inputs**2 > n_nodes * (2 * n_inputs + n_nodes):  # flops per row
            return False
        if self._well_conditioned is not None:
            return self._well_conditioned
        with single_threaded_blas():
            A = self.weights if n_inputs <= n_nodes else self.weights.T
            squares = scipy.linalg.eigvalsh(A @ A.T, check_finite=False)
        largest = squares.max(initial=0.0)
        kept = squares[squares > _NOISE * max(A.shape) * largest]
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


def linear_nodes(feature_map: Any) -> LinearNodes | None:
    """Return the map of fitted nodes that are all linear, None for every other feature map."""
    if type(feature_map) is not RandomNodes:
        return None
    if any(kind != "linear" for _, _, kind in feature_map._segments):
        return None
    known = getattr(feature_map, "_well_conditioned", None)
    return LinearNodes(feature_map.weights_, feature_map.bias_, known)


def reduce_nodes(feature_map: Any, *, constant: bool) -> ReducedNodes | None:
    """Return fewer linear nodes with the same inner products, if there are more than inputs.

    With M = A, or [A; b] with the constant input, ``M Mᵀ = R Rᵀ``, and a model u of the few is
    ``Mᵀ R⁺ᵀ u`` of the many: the ridge problems of both are the same. R comes by Cholesky, or,
    where M is ill-conditioned or has less rank than rows, from its singular value decomposition.
    n_inputs² · n_nodes flops.

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
        factors = _cholesky_factors(many) or _singular_factors(many)
    if factors is None:
        return None
    root, back, good = factors
    n_few = root.shape[1]
    if not constant:
        root = np.vstack([root, np.zeros(n_few)])
    settings = {"n_nodes": n_few, "activation": "linear", "n_threads": feature_map.n_threads}
    few = RandomNodes._restore({"map_weights": root[:-1], "map_bias": root[-1]}, settings)
    few._well_conditioned = good
    return ReducedNodes(few, many, back)


def _cholesky_factors(many: Vector) -> tuple[Vector, Vector, bool] | None:
    """Return (R, its inverse, True), or None unless it is well-conditioned for sure."""
    try:
        root = scipy.linalg.cholesky(many @ many.T, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    back = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False)
    bound = np.sqrt((root * root).sum() * (back * back).sum())  # of the condition number
    return (root, back, True) if bound <= MAX_CONDITION else None


def _singular_factors(many: Vector) -> tuple[Vector, Vector, bool] | None:
    """Return (R, its pseudo-inverse, whether it is well-conditioned), None where all is 0."""
    vectors, values, _ = scipy.linalg.svd(many, full_matrices=False, check_finite=False)
    kept = values > _NOISE * max(many.shape) * values[0]
    if not kept.any():
        return None
    vectors, values = vectors[:, kept], values[kept]
    good = bool(values[-1] * MAX_CONDITION >= values[0])
    return vectors * values, (vectors / values).T, good
