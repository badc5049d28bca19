"""Hold comparisons out of least squares: one by one, or all of an item, a group or a split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairgram._support.arrays import blocks, blocks_of_parts
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import deadline, single_threaded_blas
from pairgram.data.comparisons import ComparedRows
from pairgram.data.pairs import PairSettings
from pairgram.model_selection.comparison_judge import BY_COMPARISON, BY_GROUP, ComparisonJudge
from pairgram.model_selection.judge import Judged
from pairgram.solvers.formulation import RidgeModels
from pairgram.solvers.leave_out import (
    LARGEST_HELD,
    HoldOut,
    PathTies,
    leave_query_out,
)
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath

# Comparisons are judged in blocks of this many scores.
BLOCK_SCORES = 1 << 20


@dataclass(frozen=True, eq=False)
class HeldOutComparisons(HoldOut):
    """Holds comparisons out as a `ComparisonJudge` says, by identities where they hold.

    Attributes
    ----------
    data : ComparedRows
        The comparisons as rows of a regression.
    judge : ComparisonJudge
    n_threads : int or None
    """

    judge: ComparisonJudge

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows."""
        settings, ridge, scores = models.settings, models.ridge, models.scores
        ties = PathTies.of(self.data, settings, ridge, models.alphas)
        if self.judge.validation is not None:
            scores = self.judge.validation_scores(models.coefs(ridge.coef(ties.alphas)))
        if scores is not None:
            return self.judge.judge(ties.join_differences(scores))
        way, rows = self.judge.way, self._compared
        if way == BY_GROUP:
            held = leave_query_out(
                rows, settings, ridge, ties.alphas, models.statistics, self.n_threads
            )
            parts = _in_blocks(held)
        else:
            parts = self._in_units(settings, ridge, ties.alphas, way == BY_COMPARISON)
        joined = ((part, ties.join_differences(of_ridges)) for part, of_ridges in parts)
        return self.judge.judge_parts(joined, len(models.alphas))

    @property
    def _compared(self) -> ComparedRows:
        assert isinstance(self.data, ComparedRows)
        return self.data

    def _in_units(
        self, settings: PairSettings, ridge: RidgePath, alphas: Vector, one_by_one: bool
    ) -> Iterator[tuple[Any, Vector]]:
        """Yield comparisons and their scores by models without them, or without an item of theirs.

        Every comparison stands in the unit of its winner and in that of its loser.
        """
        data, eigen = self._compared, ridge.eigen
        offsets, numbers = np.arange(len(data.y) + 1), np.arange(len(data.y))
        if not one_by_one:
            offsets, numbers = data.comparisons.offsets(), data.comparisons.pairs()
        rank, roots = len(eigen.eigenvalues), np.sqrt(data.v)
        pulls = roots * data.target(settings)
        with single_threaded_blas:
            in_basis = data.X.H @ eigen.basis
        most = max(1, BLOCK_SCORES // max(len(alphas), rank))
        for first, last in blocks_of_parts(offsets, most):
            deadline().require()
            rows, bounds = numbers[offsets[first] : offsets[last]], offsets[first : last + 1]
            bounds = bounds - bounds[0]
            z = in_basis[data.X.first[rows]] - in_basis[data.X.second[rows]]
            lost = np.empty((len(rows), rank + 1))
            np.multiply(roots[rows, None], z, out=lost[:, :rank])
            lost[:, rank] = pulls[rows]
            scores, held = eigen.hold_out(alphas, lost, z, bounds, None, self.n_threads)
            # A direction of one comparison is not refitted: there may be as many as directions.
            refitted = (held > LARGEST_HELD * alphas[-1]) & (not one_by_one)
            for unit in np.flatnonzero(refitted).tolist():
                own = slice(bounds[unit], bounds[unit + 1])
                self._refit(settings, ridge, alphas, rows[own], held[unit], scores[:, own])
            yield rows, scores

    def _refit(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        test: Rows,
        held: float,
        scores: Vector,
    ) -> None:
        """Write the scores of an item that holds a large direction, by models without it."""
        lost = alphas * LARGEST_HELD < held
        train = np.setdiff1d(np.arange(len(self.data.y)), test)
        rest = PairSums.of(self.data.take(train), settings, self.n_threads, may_vanish=True)
        coefs = rest.path_at(ridge.factor).coef(alphas[lost])
        scores[lost] = self.data.scores(test, coefs, self.n_threads)


def _in_blocks(scores: Vector) -> Iterator[tuple[Any, Vector]]:
    """Cut scores, (n_models, n_comparisons), into blocks that a cache holds."""
    for rows in blocks(scores.shape[1], max(1, BLOCK_SCORES // len(scores))):
        yield np.arange(rows.start, rows.stop), scores[:, rows]
