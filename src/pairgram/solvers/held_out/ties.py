"""Find ties of held-out scores: rows that a model without their query cannot tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Vector
from pairgram._support.threads import resolve_n_threads
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.solvers.ridge_path import RidgePath

# This is four times the largest error that was seen in comparison with refits of 60 digits.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
# The statistics of float32 rows are summed in float32 within a block, and in float64 over blocks.
ROUNDING_OF_FLOAT32 = float(np.finfo(np.float32).eps) / 16
# A smaller ridge counts as this share of λ_max.
SMALLEST_SHARE = 1e-200
# Scores that are further apart than this share of the range never tie. Compiled code has the same
# constant.
LARGEST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class PathTies:
    """Finds rows of a query that tie in all models of a ridge path.

    Two rows tie in every model without their query if no other query tells them apart. Rows that
    differ only in columns that vary in no other query are an example. The hold-out identities give
    such rows scores that differ by rounding errors, which depend on the held-out labels. The errors
    are at most ``64 ε (λ_max / alpha · (s + r) + r + m)``. Here s is the largest range of the
    targets of a query, r is the range of the scores of this query, and m is the largest size of its
    scores. Scores from a band form err by as much as that for λ_max if alpha is larger.

    If alpha is at least λ_max, this bound is so small that no two scores are that close by chance.
    Ties are found at such an alpha. The models of smaller ridges confirm them; there, scores that
    are further apart than ``1e-4 (s + r)`` never tie.

    Attributes
    ----------
    alphas : ndarray of shape (n_models,), descending
        The ridges at which to hold out. The first is at least λ_max; it is added if necessary.
    n_added : int
        The number of ridges that were added: 0 or 1.
    largest : float
        λ_max.
    spread : float
        s. For pointwise settings it is the largest size of the targets.
    rounding : float
        64 ε. For statistics of float32 rows it is ε / 16 of float32.
    least_ratio : float
        What takes the place of a smaller ``λ_max / alpha``.
    """

    alphas: Vector
    n_added: int
    largest: float
    spread: float
    rounding: float
    least_ratio: float = 0.0

    @classmethod
    def of(
        cls, data: RankingData, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> PathTies:
        """Choose the ridges at which rows of `data` are held out, given the requested ones."""
        return cls.at(ridge, alphas, spread_of(data, settings), rounding_of(data, ridge))

    @classmethod
    def at(cls, ridge: RidgePath, alphas: Vector, spread: float, rounding: float) -> PathTies:
        """Choose the ridges, given `spread` and `rounding` of the data; see the attributes."""
        largest = ridge.largest
        n_added = int(not alphas[0] >= largest)
        return cls(
            np.concatenate(([largest] * n_added, alphas)),
            n_added,
            largest,
            spread,
            rounding,
            0.0 if ridge.band is None else 1.0,
        )

    @property
    def _ratios(self) -> Vector:
        """Return ``λ_max / alpha``, (n_models,); it is finite for a ridge of 0 too."""
        least = max(SMALLEST_SHARE * self.largest, float(np.finfo(np.float64).tiny))
        return np.maximum(self.largest / np.maximum(self.alphas, least), self.least_ratio)

    def of_pairs(self, model: int) -> float:
        """Return the largest rounding error of a difference of two held-out scores."""
        share = self.rounding * float(self._ratios[model])
        return 2 * min(share, LARGEST_SHARE) * self.spread

    def join(self, scores: Vector, queries: Queries, n_threads: int | None) -> Vector:
        """Return the scores at the requested ridges, (n_alphas, n_rows); ties get equal scores.

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_rows), float64
            The scores at all ridges. They are changed in place.
        queries : Queries
            The queries of the held-out rows.
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


def rounding_of(data: RankingData, ridge: RidgePath) -> float:
    """Return the value of `PathTies.rounding`."""
    single = data.dtype == np.float32 and not ridge.is_dual
    return ROUNDING_OF_FLOAT32 if single else ROUNDING


def spread_of(data: RankingData, settings: PairSettings) -> float:
    """Return the value of `PathTies.spread`."""
    targets = data.target(settings)
    if settings.pairs is None:
        return float(np.abs(targets).max(initial=0.0))
    queries = data.as_scope(settings).queries
    filled = queries.sizes > 0
    starts = queries.offsets[:-1][filled]
    grouped = queries.grouped(targets)
    highest, lowest = np.maximum.reduceat(grouped, starts), np.minimum.reduceat(grouped, starts)
    return float((highest - lowest).max(initial=0.0))
