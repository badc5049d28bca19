"""`HeldOutComparisons`: judges ridge paths by comparisons that are held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pairgram._support import limits
from pairgram._support.arrays import blocks, blocks_of_parts
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.comparisons.compared_rows import ComparedRows
from pairgram.comparisons.comparison_judge import BY_COMPARISON, BY_GROUP, ComparisonJudge
from pairgram.data.pairs import Pairs
from pairgram.model_selection.judge import Judged
from pairgram.solvers.formulation import RidgeModels
from pairgram.solvers.hold_out import LARGEST_HELD, Units, hold_out, leave_query_out, refit
from pairgram.solvers.path_judges import HoldOut, PathTies
from pairgram.solvers.ridge_path import EigenPath

# Comparisons are judged in blocks of this many scores.
BLOCK_SCORES = 1 << 20


def units_of_items(
    data: ComparedRows, settings: Pairs, eigen: EigenPath, one_by_one: bool
) -> Iterator[Units]:
    """List the comparisons, or the items, each with all comparisons that it wins or loses."""
    offsets, numbers = np.arange(len(data.y) + 1), np.arange(len(data.y))
    if not one_by_one:
        items = np.stack([data.X.first, data.X.second], axis=1).ravel()
        numbers = np.argsort(items, kind="stable") // 2
        offsets = np.append(0, np.cumsum(np.bincount(items, minlength=data.X.H.shape[0])))
    roots, targets = np.sqrt(data.v), data.target(settings)
    with single_threaded_blas:
        in_basis = data.X.H @ eigen.basis
    for first, last in blocks_of_parts(offsets, limits.now.held_rows):
        bounds = offsets[first : last + 1]
        rows = numbers[bounds[0] : bounds[-1]]
        z = in_basis[data.X.first[rows]] - in_basis[data.X.second[rows]]
        lost = roots[rows, None] * np.column_stack([z, targets[rows]])
        yield Units(rows, bounds - bounds[0], lost, z)


@dataclass(frozen=True, eq=False)
class HeldOutComparisons(HoldOut):
    """Holds comparisons out as a `ComparisonJudge` says; `data` are the comparisons as rows."""

    judge: ComparisonJudge

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows."""
        settings, ridge, scores = models.settings, models.ridge, None
        ties = PathTies.of(self.data, settings, ridge, models.alphas)
        if self.judge.validation is not None:
            scores = self.judge.validation_scores(models.coefs(ridge.coef(ties.alphas)))
        elif self.judge.splits is not None:
            scores = self.refitted(models, ties.alphas)
        if scores is not None:
            return self.judge.judge(ties.join_differences(scores))
        parts = self._parts(models, ties.alphas)
        joined = ((part, ties.join_differences(of_ridges)) for part, of_ridges in parts)
        return self.judge.judge_parts(joined, len(models.alphas))

    def _parts(self, models: RidgeModels, alphas: Vector) -> Iterator[tuple[Rows, Vector]]:
        """Yield comparisons and their scores by models without their units.

        Every comparison stands in the unit of its winner and in that of its loser.
        """
        data, settings, ridge = self.data, models.settings, models.ridge
        assert isinstance(data, ComparedRows)
        if self.judge.way == BY_GROUP:
            scores = leave_query_out(data, settings, ridge, alphas, models.statistics)
            for some in blocks(len(data.y), max(1, BLOCK_SCORES // len(scores))):
                yield np.arange(some.start, some.stop), scores[:, some]
            return
        one_by_one = self.judge.way == BY_COMPARISON
        for own in units_of_items(data, settings, ridge.eigen, one_by_one):
            rows = np.asarray(own.rows)
            here = [own._replace(rows=slice(None))]
            scores, held = hold_out(ridge.eigen, alphas, here, len(rows))
            # A direction of one comparison is not refitted: there may be as many as directions.
            if not one_by_one:
                places = np.split(np.arange(len(rows)), own.offsets[1:-1])
                limit = LARGEST_HELD * alphas[-1]
                items = [(rows[at], at) for at in places if len(at) and held[at[0]] > limit]
                refit(data, settings, ridge.factor, alphas, items, held, scores)
            yield rows, scores
