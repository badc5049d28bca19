"""Hold rows whose labels may be censored out of least squares, list by list or in folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairgram._support.checks import Vector
from pairgram.data.pairs import PairSettings
from pairgram.model_selection.interval_judge import IntervalJudge
from pairgram.model_selection.judge import Judged
from pairgram.solvers.leave_out import HoldOut, PathTies, leave_query_out
from pairgram.solvers.ridge_path import RidgePath

if TYPE_CHECKING:
    from pairgram.solvers.formulation import Statistics


@dataclass(frozen=True, eq=False)
class HeldOutIntervals(HoldOut):
    """Holds rows with censored labels out as an `IntervalJudge` says.

    Attributes
    ----------
    data : CensoredRows
    judge : IntervalJudge
    n_threads : int or None
    """

    judge: IntervalJudge

    def needs_basis(self, settings: PairSettings, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors: to hold every list out."""
        return self.judge.splits is None and self.judge.validation is None

    def judge_path(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        statistics: Callable[[], Statistics],
        coefs: Callable[[Vector], Vector],
        scores: Vector | None = None,
    ) -> Judged:
        """Judge the models of all ridges; see `HoldOut.judge_path`."""
        data, ties = self.data, PathTies.of(self.data, settings, ridge, alphas)
        if self.judge.validation is not None:
            scores = self.judge.validation_scores(coefs(ridge.coef(ties.alphas)))
        elif scores is None:
            told = data, settings, ridge, ties.alphas, statistics, self.n_threads
            scores = leave_query_out(*told)
        return self.judge.judge(ties.join(scores, self.judge.held_queries, self.n_threads))
