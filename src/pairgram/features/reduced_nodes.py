"""Replace many linear nodes by few, so that they cost no more than the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from pairgram._support.checks import Vector
from pairgram._support.threads import single_threaded_blas
from pairgram.features.base import MAX_CONDITION, NOISE, linear_nodes
from pairgram.features.input_map import after_inputs, parts_of
from pairgram.features.random_nodes import linear_nodes_of


@dataclass(frozen=True, eq=False)
class ReducedNodes:
    """At most ``n_inputs + 1`` linear nodes that have the inner products of many nodes.

    Attributes
    ----------
    nodes : RandomNodes, or InputMap with these
        The nodes ``Rᵀ [x, 1]`` with ``R Rᵀ = M Mᵀ``, where M are the weights and the bias of the
        many nodes.
    """

    nodes: Any
    _many: Vector  # M
    _back: Vector  # R's pseudo-inverse

    def expand(self, coefs: Vector) -> Vector:
        """Return models of the many nodes, (n_models, n_nodes), from those of the few.

        `coefs` has shape (n_models, rank). The models have the same norms and the same scores.
        """
        with single_threaded_blas():
            return np.asarray((coefs @ self._back) @ self._many)


def reduce_nodes(feature_map: Any, *, constant: bool) -> ReducedNodes | None:
    """Return fewer linear nodes with the same inner products, if there are more than inputs.

    Let M = A, or M = [A; b] with the constant input, and ``M Mᵀ = R Rᵀ``. A model u of the few
    nodes is the model ``Mᵀ R⁺ᵀ u`` of the many, and their ridge problems are the same. R is a
    Cholesky factor. If M is ill-conditioned or does not have full row rank, R comes from its
    singular value decomposition. This takes n_inputs² · n_nodes flops.

    Parameters
    ----------
    feature_map : fitted transformer or None
    constant : bool
        Whether the offsets b count, as they do for pointwise rows. They cancel in differences.
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
    if not constant:
        root = np.vstack([root, np.zeros(root.shape[1])])
    few = linear_nodes_of(root[:-1], root[-1], feature_map.n_threads, well_conditioned=good)
    return ReducedNodes(after_inputs(parts_of(feature_map)[0], few), many, back)


def _cholesky_factors(many: Vector) -> tuple[Vector, Vector, bool] | None:
    """Return (R, its inverse, True), or None if R may be ill-conditioned."""
    try:
        root = scipy.linalg.cholesky(many @ many.T, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    back = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False)
    bound = np.sqrt((root * root).sum() * (back * back).sum())  # a bound of the condition number
    return (root, back, True) if bound <= MAX_CONDITION else None


def _singular_factors(many: Vector) -> tuple[Vector, Vector, bool] | None:
    """Return (R, its pseudo-inverse, whether it is well-conditioned), or None if M is 0."""
    vectors, values, _ = scipy.linalg.svd(many, full_matrices=False, check_finite=False)
    kept = values > NOISE * max(many.shape) * values[0]
    if not kept.any():
        return None
    vectors, values = vectors[:, kept], values[kept]
    good = bool(values[-1] * MAX_CONDITION >= values[0])
    return vectors * values, (vectors / values).T, good
