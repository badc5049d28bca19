"""Linear maps of rows, by which a problem of many nodes is one of the inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from pairgram import _core
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Vector

__all__ = ["MAX_CONDITION", "NOISE", "LinearNodes"]


# The largest condition number of a linear map that is applied to the Gram matrix, not to the rows.
MAX_CONDITION = 1e3
NOISE = np.finfo(np.float64).eps


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
    well_conditioned: bool | None = None  # None: not known yet

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
        if self.well_conditioned is not None:
            return self.well_conditioned
        with single_threaded_blas():
            A = self.weights if n_inputs <= n_nodes else self.weights.T
            squares = scipy.linalg.eigvalsh(A @ A.T, check_finite=False)
        largest = squares.max(initial=0.0)
        kept = squares[squares > NOISE * max(A.shape) * largest]
        return bool(largest == 0 or kept.min() * MAX_CONDITION**2 >= largest)
