"""Score rows by linear models of their features, with compiled maps or stored features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.blocks import block_rows, blocks
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector

__all__ = ["RowScorer", "score_features"]


@dataclass(frozen=True, eq=False)
class RowScorer:
    """Compiled maps of rows and linear models of their outputs. The score is the sum of all parts.

    Attributes
    ----------
    parts : iterable of (node map or None, coefficients)
        With None, the coefficients multiply the inputs.
    offset : float
        A number that is added to all scores.
    """

    parts: Iterable[tuple[Any, Vector]]
    offset: float = 0.0

    def scores(self, X: Any, n_threads: int | None) -> Vector:
        """Return the scores of checked rows. A row with NaN or infinity gets NaN or infinity."""
        threads = resolve_n_threads(n_threads)
        total: Any = None
        for node_map, coef in self.parts:
            scores = _part_of_scores(node_map, coef, X, threads)
            total = scores if total is None else total + scores
        return np.asarray(total + self.offset if self.offset else total)


def _part_of_scores(node_map: Any, coef: Vector, X: Any, n_threads: int) -> Vector:
    sparse = scipy.sparse.issparse(X)
    if sparse and node_map is None:
        if X.dtype == np.float32 and np.abs(coef).max(initial=0.0) < 1e30:  # avoids a copy of X
            coef = coef.astype(np.float32)
        return np.asarray(X @ coef, np.float64)
    if not sparse and X.flags.c_contiguous and X.flags.aligned:
        return _score(node_map, coef, X, n_threads)
    scores = [
        _score(node_map, coef, np.require(_dense(X[rows]), None, ["C", "A"]), n_threads)
        for rows in blocks(X.shape[0], block_rows(X.shape[1], X.dtype))
    ]
    return np.concatenate(scores)


def _score(node_map: Any, coef: Vector, X: NDArray[Any], n_threads: int) -> Vector:
    if node_map is None:
        return _core.score_rows(X, coef, None, n_threads)
    return np.asarray(node_map.score(X, coef, n_threads))


def _dense(X: Any) -> NDArray[Any]:
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X)


def score_features(H: Any, coefs: Vector, n_threads: int | None = None) -> Vector:
    """Return the scores of dense or CSR features by one model, or by every model of a path.

    The scores of a dense row have the same bits whatever other rows H has.

    Parameters
    ----------
    H : ndarray or CSR matrix of shape (n_rows, n_features)
    coefs : ndarray of shape (n_features,) or (n_models, n_features), float64
    n_threads : int or None

    Returns
    -------
    ndarray of shape (n_rows,) or (n_models, n_rows), float64
    """
    if scipy.sparse.issparse(H):
        return np.ascontiguousarray((H @ coefs.T).T, dtype=np.float64)
    dtype = np.float32 if H.dtype == np.float32 else np.float64
    rows = np.require(H, dtype, ["C", "A"])
    return _core.score_rows(rows, np.ascontiguousarray(coefs), None, resolve_n_threads(n_threads))
