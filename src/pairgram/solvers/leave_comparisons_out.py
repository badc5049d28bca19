"""Hold comparisons out of least squares: one by one, or all of an item, a group or a split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.arrays import blocks
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import deadline, resolve_n_threads, single_threaded_blas
from pairgram.data.comparisons import ComparedRows
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.model_selection.comparison_judge import BY_COMPARISON, BY_GROUP, ComparisonJudge
from pairgram.model_selection.judge import Judged
from pairgram.solvers.formulation import RidgeModels
from pairgram.solvers.leave_out import (
    LARGEST_HELD,
    HoldOut,
    PathTies,
    leave_query_out,
    scores_in_primal,
)
from pairgram.solvers.leave_out_dual import SMALLEST_PIVOT
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath

if TYPE_CHECKING:
    pass

# Holding rows out takes so many times the flops of their product with the basis, for each alpha.
FLOPS_OF_ROWS = 20.0
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
        if way == BY_COMPARISON:
            parts = _one_by_one(rows, ridge, ties.alphas)
        elif way == BY_GROUP:
            parts = _in_blocks(
                leave_query_out(
                    rows, settings, ridge, ties.alphas, models.statistics, self.n_threads
                )
            )
        else:
            parts = self._by_item(settings, ridge, ties.alphas)
        joined = ((part, ties.join_differences(of_ridges)) for part, of_ridges in parts)
        return self.judge.judge_parts(joined, len(models.alphas))

    @property
    def _compared(self) -> ComparedRows:
        assert isinstance(self.data, ComparedRows)
        return self.data

    def _by_item(
        self, settings: PairSettings, ridge: RidgePath, alphas: Vector
    ) -> Iterator[tuple[Any, Vector]]:
        """Yield comparisons and their scores by models without the winner, and without the loser.

        The comparisons of an item are subtracted from the statistics. Every comparison stands in a
        list of those of its winner and in one of those of its loser.
        """
        data = self._compared
        pairs, threads = data.comparisons, resolve_n_threads(self.n_threads)
        offsets, numbers = pairs.offsets(), pairs.pairs()
        eigen, most = ridge.eigen, max(1, BLOCK_SCORES // len(alphas))
        rank, n_items = len(eigen.eigenvalues), len(offsets) - 1
        of_items = n_items * rank * (2 * rank + 4 * len(alphas))
        downdates = of_items < FLOPS_OF_ROWS * len(numbers) * len(alphas)
        with single_threaded_blas:
            in_basis = np.ascontiguousarray(data.X.H @ eigen.basis)
        rotated = replace(data, X=replace(data.X, H=in_basis), is_cut=False)
        own_basis = RidgePath(replace(eigen, basis=np.eye(rank)))
        first = 0
        while first < n_items:
            last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
            last = max(last, first + 1)
            bounds = offsets[first : last + 1] - offsets[first]
            rows = numbers[offsets[first] : offsets[last]]
            if downdates:
                with single_threaded_blas:
                    scores, held = pairs.leave_items_out(
                        in_basis,
                        data.target(settings),
                        eigenvalues=eigen.eigenvalues,
                        projection=eigen.projection,
                        alphas=alphas,
                        first=first,
                        last=last,
                        n_threads=threads,
                    )
            else:
                part = replace(rotated.take(rows), queries=Queries(bounds))
                of_rows = np.zeros(len(rows))
                scores = scores_in_primal(part, settings, own_basis, alphas, threads, of_rows)
                held = np.zeros(last - first)
                filled = bounds[:-1] < bounds[1:]
                held[filled] = of_rows[bounds[:-1][filled]]
            for item in np.flatnonzero(held > LARGEST_HELD * alphas[-1]).tolist():
                own = slice(bounds[item], bounds[item + 1])
                self._refit(settings, ridge, alphas, rows[own], held[item], scores[:, own])
            yield rows, scores
            first = last

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


def _one_by_one(
    data: ComparedRows, ridge: RidgePath, alphas: Vector
) -> Iterator[tuple[Any, Vector]]:
    """Yield comparisons and their scores by the models without them.

    The score is ``(f − h m) / (1 − h)`` with the fit f of all, the margin m, and the leverage
    ``h = w zᵀ (Λ + alpha)⁻¹ z`` of the difference z in the eigenbasis. It is NaN where it would be
    rounding error.
    """
    eigen = ridge.eigen
    inverse = 1 / (eigen.eigenvalues[:, None] + alphas)
    weights, targets = data.v, data.target(PairSettings(None))
    with single_threaded_blas:
        in_basis = data.X.H @ eigen.basis
        fits = in_basis @ (eigen.projection[:, None] * inverse)
        first, second = data.X.first, data.X.second
        for rows in blocks(len(targets), max(1, BLOCK_SCORES // (8 * len(alphas)))):
            deadline().require()
            z = in_basis[first[rows]] - in_basis[second[rows]]
            fit = fits[first[rows]] - fits[second[rows]]
            own = weights[rows, None] * (np.square(z, out=z) @ inverse)
            fit -= own * targets[rows, None]
            np.subtract(1.0, own, out=own)
            own[own < SMALLEST_PIVOT] = np.nan
            fit /= own
            yield np.arange(rows.start, rows.stop), np.ascontiguousarray(fit.T)
