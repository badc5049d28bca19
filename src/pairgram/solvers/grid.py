"""`Grid`: ridges and dampings, and their models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pairgram._support.checks import Vector
from pairgram.solvers.formulation import Statistics
from pairgram.solvers.ridge_path import RidgePath


@dataclass(frozen=True, eq=False)
class Grid:
    """Ridges and dampings, with one model for each.

    Attributes
    ----------
    alphas, damping : ndarray of shape (n_grid,), float64
        As in `RidgePath.coef`.
    relative : bool
        Whether both are in units of N / 2, half the sum of all pair weights. They then regularise
        the mean over pairs, as in `ELMRank`.
    """

    alphas: Vector
    damping: Vector
    relative: bool

    def coef(self, ridge: RidgePath, pair_weight: Callable[[], float]) -> Vector:
        """Return the models, (n_grid, n_features), from decomposed statistics."""
        unit = pair_weight() / 2 if self.relative else 1.0
        with np.errstate(over="ignore"):  # an infinite ridge gives the model 0
            return ridge.coef(unit * self.alphas, unit * self.damping)

    def of(self, statistics: Statistics) -> Vector:
        """Return the models, (n_grid, n_features), from statistics."""
        weight = partial(getattr, statistics, "pair_weight")
        basis = bool(np.any(self.damping))
        return self.coef(statistics.decompose(basis=basis), weight)
