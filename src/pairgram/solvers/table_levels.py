"""Statistics of the pairs of all rows of a table, whose weights depend on two labels.

Let V_l be the weight of the rows of label l, and ``D_l = Σ_k ω(l, k) V_k``. The sums over the pairs
are ``Σ_l D_l S_l + Mᵀ B M``. S_l is the scatter of the rows of label l around their mean, M holds
the means, and B is the Laplacian of the weights ``V_l V_k ω(l, k)``. A first pass finds V, so that
the scatters and the means of any rows can be joined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from pairgram._support.arrays import BLOCK_ROWS, blocks
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.threads import single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.features.base import node_map_of
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.statistics import clear_noise, sums_of
from pairgram.tables.survey import MOST_LEVELS, Survey


class LevelSums(NamedTuple):
    """The statistics of some rows, before the means of the labels are compared.

    Attributes
    ----------
    degrees : ndarray of shape (n_levels,)
        ``D_l``.
    weights : ndarray of shape (n_levels,)
    origin : ndarray of shape (n_features + 1,)
        One of the rows of [H, y], so that a large common offset costs no digits.
    means : ndarray of shape (n_levels, n_features + 1)
        The means of [H, y] over the rows of every label, less the origin.
    sums : ndarray of shape (n_features + 1, n_features + 1)
        ``Σ_l D_l S_l``.
    rounding : ndarray of shape (n_features,)
        The size of the rounding errors of H, if compiled code makes it, otherwise 0.
    n_rows : int
    spread : float
        The largest range of the targets of a block; see `PathTies`.
    """

    degrees: Vector
    weights: Vector
    origin: Vector
    means: Vector
    sums: Vector
    rounding: Vector
    n_rows: int
    spread: float

    def join(self, other: LevelSums) -> LevelSums:
        """Return the statistics of the rows of both, by Chan's formula for every label."""
        weights = self.weights + other.weights
        share = np.divide(other.weights, weights, out=np.zeros_like(weights), where=weights > 0)
        difference = (other.origin - self.origin) + other.means - self.means
        between = self.degrees * self.weights * share
        with single_threaded_blas():
            sums = self.sums + other.sums + difference.T @ (between[:, None] * difference)
        means = self.means + share[:, None] * difference
        return self._replace(
            weights=weights,
            means=means,
            sums=sums,
            rounding=np.maximum(self.rounding, other.rounding),
            n_rows=self.n_rows + other.n_rows,
            spread=max(self.spread, other.spread),
        )


@dataclass(frozen=True, eq=False)
class LevelPairs:
    """The pairs of all rows of a table, and how their statistics are summed.

    Attributes
    ----------
    settings : PairSettings
    within : PairSettings
        The settings by which rows of one label are compared with their mean.
    levels : ndarray of shape (n_levels,), ascending
    degrees : ndarray of shape (n_levels,)
        ``D_l``.
    pair_weights : ndarray of shape (n_levels, n_levels)
        ``V_l V_k ω(l, k)``.
    factor : float
        What the weighting multiplies sums by.
    """

    settings: PairSettings
    within: PairSettings
    levels: Vector
    degrees: Vector
    pair_weights: Vector
    factor: float

    @classmethod
    def of(cls, settings: PairSettings, survey: Survey) -> LevelPairs | None:
        """Return the pairs of a table, or None if their statistics need no weights of labels.

        Raises
        ------
        ValueError
            If the table has too many labels, or if ω is not as it must be.
        """
        if not settings.joins_all_rows or settings.kind == "kept":
            return None
        levels, weights = survey.levels, survey.level_weights
        if levels is None or weights is None:
            raise ArgumentError(
                None,
                f"{{pairs={settings.pairs!r}}} with {{scope='global'}} takes at most "
                f"{MOST_LEVELS:,} distinct labels in a table, got more: the weight of every label "
                "is needed first. Give {pairs='kept'}, which takes any labels",
            )
        found = settings.levels(levels)
        omega = 1.0 - np.eye(len(levels)) if found is None else found[1]
        with np.errstate(over="ignore", invalid="ignore"):  # the weight of all pairs is checked
            degrees, pair_weights = omega @ weights, weights[:, None] * omega * weights
            total, both = np.asarray(weights.sum()), np.asarray(pair_weights.sum())
        factor = float(settings.factor(total, both))
        within = PairSettings("kept", "query", "documents", settings.target)
        return cls(settings, within, levels, degrees, pair_weights, factor)

    @property
    def pair_weight(self) -> float:
        """``Σ_ij W_ij`` over both orders of every pair and the diagonal."""
        return float(self.factor * self.pair_weights.sum())

    @property
    def n_with_pairs(self) -> int:
        """The number of labels whose rows form pairs; 0 unless rows of two labels count."""
        n_levels = int(np.count_nonzero(self.pair_weights.any(axis=1)))
        return n_levels if n_levels > 1 else 0

    def sums(self, data: RankingData, n_threads: int | None) -> LevelSums:
        """Return the statistics of some rows."""
        numbers = self._numbers(data.y)
        queries = Queries.make(len(numbers), qid=numbers)
        assert queries.ids is not None
        labelled = replace(data, queries=queries, query_weights=self.degrees[queries.ids])
        sums, _ = sums_of(labelled, self.within, n_threads)
        n_levels = len(self.levels)
        targets = data.target(self.within)
        origin = np.append(data.features(slice(0, 1))[0], targets[0]).astype(np.float64)
        weights = np.bincount(numbers, data.v, minlength=n_levels).astype(np.float64)
        means = np.zeros((n_levels, len(origin)))
        share = data.v / np.where(weights > 0, weights, 1.0)[numbers]
        with single_threaded_blas():
            for rows in blocks(len(numbers), BLOCK_ROWS):
                values = np.column_stack([data.features(rows), targets[rows]]) - origin
                places = (numbers[rows], np.arange(len(values)))
                shape = (n_levels, len(values))
                means += scipy.sparse.csr_array((share[rows], places), shape) @ values
        rounding = np.zeros(len(origin) - 1)
        if node_map_of(data.feature_map, data.X.dtype) is not None:
            rounding = data.feature_map._rounding(data.X[:256])
        return LevelSums(
            self.degrees,
            weights,
            origin,
            means,
            sums,
            rounding,
            len(numbers),
            float(np.ptp(targets)),
        )

    def _numbers(self, y: Vector) -> Rows:
        numbers = np.searchsorted(self.levels, y)
        known = self.levels[np.minimum(numbers, len(self.levels) - 1)] == y
        if not known.all():
            raise ValueError(
                "the table changed while it was read: it has a new label "
                f"{y[int(np.argmin(known))]}"
            )
        return numbers

    def gram(self, found: LevelSums, counts: bool) -> PairSums:
        """Return the statistics of all pairs."""
        known = self.pair_weights.any(axis=1)
        means = found.means - found.means[known].mean(axis=0) if known.any() else found.means
        off = self.pair_weights - np.diag(np.diag(self.pair_weights))
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            laplacian = np.diag(off.sum(axis=1)) - off
            sums = self.factor * (found.sums + means.T @ laplacian @ means)
        sums = np.asarray((sums + sums.T) / 2)
        if found.rounding.any():  # outputs that differ only by rounding do not differ
            clear_noise(sums, np.append(self.pair_weight * found.rounding**2, 0.0), 1.0)
        return PairSums.of_all_rows(
            sums, self.pair_weight, found.n_rows, self.settings, counts=counts
        )
