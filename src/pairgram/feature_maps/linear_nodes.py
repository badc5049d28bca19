"""Linear maps of rows, which turn a problem of many nodes into one of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import pairgram._core as _core
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Vector

__all__ = ["MAX_CONDITION", "NOISE", "LinearNodes"]


# A linear map is applied to the Gram matrix instead of the rows if its condition number is at most
# this.
MAX_CONDITION = 1e3
# Singular values and eigenvalues below this share of the largest, times the order, are noise.
NOISE = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class LinearNodes:
    """The map ``h = Aᵀx + b`` of fitted nodes.

    Attributes
    ----------
    weights : ndarray of shape (n_inputs, n_nodes)
        The matrix A.
    bias : ndarray of shape (n_nodes,)
        The offsets b.
    well_conditioned : bool or None
        Whether A is, as far as its effect on Gram matrices goes; None if that is not known yet.
    before : feature map or None
        The map that makes x of a row, if x is not the row itself.
    """

    weights: Vector
    bias: Vector
    well_conditioned: bool | None = None
    before: Any = None

    def fold(self, coefs: Vector) -> tuple[Vector, Vector]:
        """Return the (weights of the inputs, offsets) that are equal to models of the nodes.

        For coefs of shape (n_nodes,) the shapes are (n_inputs,) and (). For (n_models, n_nodes)
        they are (n_models, n_inputs) and (n_models,).
        """
        weights, bias, coefs = (
            np.ascontiguousarray(a, np.float64) for a in (self.weights, self.bias[None], coefs)
        )
        return _core.score_rows(weights, coefs), _core.score_rows(bias, coefs)[..., 0]

    def acts_on_sums(self) -> bool:
        """Tell whether ``AᵀGA`` is as exact as the Gram matrix of mapped rows, and cheaper."""
        n_inputs, n_nodes = self.weights.shape
        if n_inputs**2 > n_nodes * (2 * n_inputs + n_nodes):  # flops per row
            return False
        if self.well_conditioned is not None:
            return self.well_conditioned
        with single_threaded_blas():
            A = self.weights if n_inputs <= n_nodes else self.weights.T
            squares = scipy.linalg.eigvalsh(A @ A.T, check_finite=False)
        largest = squares.max(initial=0.0)
        kept = squares[squares > NOISE * max(A.shape) * largest]
        return bool(largest == 0 or kept.min() * MAX_CONDITION**2 >= largest)
