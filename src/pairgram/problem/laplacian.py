"""Apply the half-Laplacian of preference pairs to vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import pairgram._core as _core
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram.problem.data import RankingData

__all__ = ["apply_half_laplacian", "without_features"]


def without_features(data: RankingData) -> RankingData:
    """Return the data without X: only labels, weights and queries."""
    return replace(data, X=np.empty((len(data.y), 0)), feature_map=None)


def apply_half_laplacian(
    problem: _core.RankingProblem,
    vectors: Vector,
    *,
    axis: int = 0,
    adjoint: bool = False,
    n_threads: int | None = None,
) -> Vector:
    """Apply R of ``L = RᵀR``, or Rᵀ, in place in O(n_rows) time per vector; return `vectors`.

    Parameters
    ----------
    problem : _core.RankingProblem
        The problem of the rows. With ``scope="global"``, it must have one query.
    vectors : ndarray of shape (n_rows,), or (n_rows, k) for axis 0, or (k, n_rows) for axis 1
    axis : {0, 1}
        With 0, R is applied to the columns of a matrix; with 1, to its rows.
    adjoint : bool
        Whether to apply Rᵀ in place of R.
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
