"""What solvers share: the interface of `PairSums` and `DualGram`, and sums over columns."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from pairgram._support.checks import Rows, Vector
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.solvers.ridge_path import RidgePath


class ColumnSums(NamedTuple):
    """What a fit found about its columns. Spreads and shares are computed only when asked for.

    Attributes
    ----------
    squares : ndarray of shape (n_features,), float64
        The diagonal of ``G = Xᵀ L X``, where L is the Laplacian of the pairs.
    products : ndarray of shape (n_features,), float64
        ``G @ coef_``, the covariances of the columns with the score but for a factor.
    weight : float
        The sum of the weights of the pairs, in both orders.
    """

    squares: Vector
    products: Vector
    weight: float

    @property
    def spread(self) -> Vector:
        """The standard deviation of every column over the pairs, (n_features,)."""
        return np.sqrt(self.squares / self.weight)

    def share(self, coef: Vector) -> Vector:
        """Return the share of every column in the variance of the score, (n_features,)."""
        parts = coef * self.products
        total = parts.sum()
        return np.asarray(parts / total if total > 0 else np.zeros_like(parts))


class Statistics(Protocol):
    """The `PairSums` of features, or the `DualGram` of a kernel."""

    @property
    def settings(self) -> PairSettings:
        """The settings of the pairs: which pairs count, their weights, and what is fitted."""

    def solve(self, alpha: float, *, scale: bool = False) -> Vector:
        """Return the coefficients of one ridge, (n_features,)."""

    def decompose(self, *, scale: bool = False, basis: bool = False) -> RidgePath:
        """Return the solutions of all ridges; `basis` says that eigenvectors will be needed."""

    def without(
        self, data: RankingData, train: Rows, test: Rows, n_threads: int | None
    ) -> Statistics:
        """Return the statistics of the training rows of `data`; these are those of all its rows."""

    def path_at(self, factor: Vector | None) -> RidgePath:
        """Return the path for a given scaling of the features."""
