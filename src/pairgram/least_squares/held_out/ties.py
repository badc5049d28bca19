"""Ties of held-out scores: rows that a model without their query cannot tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairgram import _core
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram.least_squares.ridge_path import RidgePath
from pairgram.preferences.pairs import PairSettings
from pairgram.preferences.queries import Queries
from pairgram.problem.data import RankingData

__all__ = [
    "PathTies",
]

# Four times the largest error seen beside refits with 60 digits.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
# The statistics of float32 rows are summed in float32 within a block, and in float64 over blocks.
ROUNDING_OF_FLOAT32 = float(np.finfo(np.float32).eps) / 16
SMALLEST_SHARE = 1e-200  # of λ_max, that a ridge counts as
LARGEST_SHARE = 1e-4  # of the range, as in compiled code: scores further apart never tie


@dataclass(frozen=True, eq=False)
class PathTies:
    """Finds rows of a query that tie in the models of a ridge path, whatever the ridge.

    A row that no other query tells from another, such as one that differs from it in columns that
    only this query has, ties with it in every model without the query. The hold-out identities give
    such rows scores that differ by rounding errors, which depend on the labels that were held out.
    The errors are at most ``64 ε (λ_max / alpha · (s + r) + r + m)``, with s the largest range of
    the targets of a query, r the range and m the largest size of the scores of this query. Where
    alpha is λ_max or more they are so small that no two scores are that close by chance: there the
    ties are found, and by models of smaller ridges they are confirmed: there scores that are
    further apart than 1e-4 of ``s + r`` never tie.

    Attributes
    ----------
    alphas : ndarray of shape (n_models,), descending
        The ridges to hold out at. The first is at least λ_max, and is added where need be.
    n_added : int
        How many of them were added: 0 or 1.
    largest : float
        λ_max.
    spread : float
        s; of pointwise settings the largest size of the targets.
    rounding : float
        64 ε; for statistics of float32 rows ε / 16 of float32.
    """

    alphas: Vector
    n_added: int
    largest: float
    spread: float
    rounding: float

    @classmethod
    def of(
        cls, data: RankingData, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> PathTies:
        """Choose the ridges at which rows of `data` are to be held out, given those wanted."""
        largest = float(ridge.eigenvalues.max(initial=0.0))
        n_added = int(not alphas[0] >= largest)
        return cls(
            np.concatenate(([largest] * n_added, alphas)),
            n_added,
            largest,
            _spread(data, settings),
            _rounding(data, ridge),
        )

    @property
    def _ratios(self) -> Vector:
        """Return ``λ_max / alpha``, (n_models,), finite for a ridge of 0 too."""
        least = max(SMALLEST_SHARE * self.largest, float(np.finfo(np.float64).tiny))
        return self.largest / np.maximum(self.alphas, least)

    def of_pairs(self, model: int) -> float:
        """Return how large the rounding error of a difference of two held-out scores may be."""
        share = self.rounding * float(self._ratios[model])
        return 2 * min(share, LARGEST_SHARE) * self.spread

    def join(self, scores: Vector, queries: Queries, n_threads: int | None) -> Vector:
        """Return the scores of the ridges that were wanted, (n_alphas, n_rows), ties joined.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_rows), float64
            Changed in place.
        queries : Queries
            Of the rows that were held out.
        n_threads : int or None
        """
        scores = np.ascontiguousarray(scores)
        _core.join_ties(
            scores,
            queries.offsets,
            queries.order,
            self._ratios,
            self.spread,
            self.rounding,
            resolve_n_threads(n_threads),
        )
        return scores[self.n_added :]


def _rounding(data: RankingData, ridge: RidgePath) -> float:
    """Return the rounding errors of held-out scores, relative to what `PathTies` says."""
    single = data.dtype == np.float32 and not ridge.is_dual
    return ROUNDING_OF_FLOAT32 if single else ROUNDING


def _spread(data: RankingData, settings: PairSettings) -> float:
    targets = settings.targets(data.y)
    if settings.pairs is None:
        return float(np.abs(targets).max(initial=0.0))
    queries = data.as_scope(settings).queries
    filled = queries.sizes > 0
    starts = queries.offsets[:-1][filled]
    grouped = queries.grouped(targets)
    highest, lowest = np.maximum.reduceat(grouped, starts), np.minimum.reduceat(grouped, starts)
    return float((highest - lowest).max(initial=0.0))
