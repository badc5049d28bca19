"""The interface that `Pairgram` (primal form) and `DualGram` (dual form) share."""

from __future__ import annotations

from typing import Protocol

from pairgram._support.types import Rows, Vector
from pairgram.least_squares.ridge_path import RidgePath
from pairgram.problem.data import RankingData
from pairgram.queries_and_pairs.pair_weights import PairSettings

__all__ = ["Statistics"]


class Statistics(Protocol):
    """A `Pairgram`, or the `DualGram` of a kernel.

    `Pairgram` is public: the methods whose names begin with an underscore are for this package.
    """

    @property
    def settings(self) -> PairSettings:
        """The settings of the pairs: which pairs count, their weights, and what is fitted."""

    def solve(self, alpha: float, *, scale: bool = False) -> Vector:
        """Return the coefficients of one ridge, (n_features,)."""

    def decompose(self, *, scale: bool = False, basis: bool = False) -> RidgePath:
        """Return the solutions of all ridges; `basis` says that eigenvectors will be needed."""

    def _without(
        self, data: RankingData, train: Rows, test: Rows, n_threads: int | None
    ) -> Statistics:
        """Return the statistics of the training rows of `data`; these are those of all its rows."""

    def _path_at(self, factor: Vector | None) -> RidgePath:
        """Return the path for a given scaling of the features."""
