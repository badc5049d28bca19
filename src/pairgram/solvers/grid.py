"""`Grid`: ridges and dampings, and their models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairgram._support.checks import Vector
from pairgram.solvers.formulation import Statistics


@dataclass(frozen=True, eq=False)
class Grid:
    """Ridges and dampings, with one model for each.

    Attributes
    ----------
    alphas, damping : ndarray of shape (n_grid,), float64
        As in `RidgePath.coef`, in units of N / 2, half the sum of all pair weights: they regularise
        the mean over pairs, as in `ELMRank`.
    """

    alphas: Vector
    damping: Vector

    def of(self, statistics: Statistics) -> Vector:
        """Return the models, (n_grid, n_features), from statistics."""
        path = statistics.decompose(basis=bool(np.any(self.damping)))
        unit = statistics.pair_weight / 2
        with np.errstate(over="ignore"):  # an infinite ridge gives the model 0
            return path.coef(unit * self.alphas, unit * self.damping)
