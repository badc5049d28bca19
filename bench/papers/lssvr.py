"""Least squares support vector regression, the comparator of Chen et al. 2014, Figure 2.

Suykens, Van Gestel, De Brabanter, De Moor, Vandewalle. Least squares support vector machines.
World Scientific, 2002.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

__all__ = ["LSSVR", "choose_lssvr", "fit_lssvr"]

GAMMAS = 2.0 ** np.arange(-8, 3, 2)
CS = 2.0 ** np.arange(-3, 16, 2)


class LSSVR(NamedTuple):
    """Models of one kernel, a column for every C."""

    X: np.ndarray
    gamma: float
    dual: np.ndarray  # (n_rows, n_Cs)
    bias: np.ndarray  # (n_Cs,)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions of every model, (n_rows, n_Cs)."""
        return rbf(X, self.X, self.gamma) @ self.dual + self.bias


def rbf(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """Return ``exp(−gamma ‖x − z‖²)``, (n_X, n_Z)."""
    squares = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2 * X @ Z.T
    return np.exp(-gamma * np.maximum(squares, 0.0))


def fit_lssvr(X: np.ndarray, y: np.ndarray, gamma: float, Cs: np.ndarray) -> LSSVR:
    """Fit a model for every C from one eigendecomposition.

    Minimises ``½ ‖w‖² + ½ C Σ_i (y_i − wᵀφ(x_i) − b)²``: with ``M = K + I/C``,
    ``b = 1ᵀM⁻¹y / 1ᵀM⁻¹1`` and the dual coefficients are ``M⁻¹(y − b 1)``.
    """
    values, vectors = np.linalg.eigh(rbf(X, X, gamma))
    inverse = 1 / (np.maximum(values, 0.0)[:, None] + 1 / Cs)  # (n_rows, n_Cs)
    ones, labels = vectors.sum(axis=0)[:, None], (vectors.T @ y)[:, None]
    bias = (ones * inverse * labels).sum(axis=0) / (ones**2 * inverse).sum(axis=0)
    return LSSVR(X, gamma, vectors @ (inverse * (labels - ones * bias)), bias)


def choose_lssvr(
    X: np.ndarray, y: np.ndarray, splits: Iterable[tuple[np.ndarray, np.ndarray]]
) -> LSSVR:
    """Fit the one model whose gamma and C have the least squared error on held-out rows."""
    splits, errors = list(splits), np.zeros((len(GAMMAS), len(CS)))
    for i, gamma in enumerate(GAMMAS):
        for train, test in splits:
            held_out = fit_lssvr(X[train], y[train], gamma, CS).predict(X[test])
            errors[i] += ((held_out - y[test, None]) ** 2).sum(axis=0)
    best, at = np.unravel_index(int(errors.argmin()), errors.shape)
    return fit_lssvr(X, y, GAMMAS[best], CS[at : at + 1])
