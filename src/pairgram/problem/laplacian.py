"""The half-Laplacian of preference pairs, applied to vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pairgram import _core
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram.problem.data import RankingData

__all__ = ["apply_half_laplacian", "without_features"]


def without_features(data: RankingData) -> RankingData:
    """Return the labels, weights and queries of rows."""
    return replace(data, X=np.empty((len(data.y), 0)), feature_map=None)


def apply_half_laplacian(
    problem: _core.RankingProblem,
    vectors: Vector,
    *,
    axis: int = 0,
    adjoint: bool = False,
    n_threads: int | None = None,
) -> Vector:
    """Apply R of ``L = RᵀR``, or Rᵀ, in place, and return its argument: O(n_rows) a vector.

    Parameters
    ----------
    problem : _core.RankingProblem
        In the scope of its settings.
    vectors : ndarray of shape (n_rows,), or (n_rows, k) for axis 0, or (k, n_rows) for axis 1
    axis : {0, 1}
        0: to the columns, 1: to the rows of a matrix.
    adjoint : bool
        Rᵀ.
    n_threads : int or None
    """
    _core.apply_half_laplacian(
        problem,
        vectors if vectors.ndim == 2 else vectors[:, None],
        axis=axis,
        adjoint=adjoint,
        n_threads=resolve_n_threads(n_threads),
    )
    return vectors
