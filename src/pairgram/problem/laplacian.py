"""The half-Laplacian of preference pairs, applied to vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram import _core
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram.preferences.pairs import PairSettings
from pairgram.problem.data import RankingData

__all__ = ["apply_half_laplacian", "kernel_arguments", "without_features"]


def without_features(data: RankingData) -> RankingData:
    """Return the labels, weights and queries of rows."""
    return replace(data, X=np.empty((len(data.y), 0)), feature_map=None)


def kernel_arguments(
    labelled: RankingData, settings: PairSettings
) -> tuple[tuple[NDArray[Any], ...], dict[str, Any]]:
    """Return (targets, labels, offsets) and what the kernels take by name, of data that has labels.

    Without features; in the scope of the settings.
    """
    ((_, ((_, *arrays), named)),) = labelled.kernel_blocks(settings)
    del named["map"]
    return tuple(arrays), named


def apply_half_laplacian(
    labelled: RankingData,
    settings: PairSettings,
    vectors: Vector,
    *,
    axis: int = 0,
    adjoint: bool = False,
    n_threads: int | None = None,
) -> Vector:
    """Apply R of ``L = RᵀR``, or Rᵀ, in place, and return its argument: O(n_rows) a vector.

    Parameters
    ----------
    labelled : RankingData
        Of `without_features`, in the scope of the settings.
    settings : PairSettings
    vectors : ndarray of shape (n_rows,), or (n_rows, k) for axis 0, or (k, n_rows) for axis 1
    axis : {0, 1}
        0: to the columns, 1: to the rows of a matrix.
    adjoint : bool
        Rᵀ.
    n_threads : int or None
    """
    (_, y, offsets), named = kernel_arguments(labelled, settings)
    _core.apply_half_laplacian(
        vectors if vectors.ndim == 2 else vectors[:, None],
        y,
        offsets,
        **named,
        axis=axis,
        adjoint=adjoint,
        n_threads=resolve_n_threads(n_threads),
    )
    return vectors
