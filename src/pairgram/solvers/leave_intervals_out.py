"""Hold rows whose labels may be censored out of least squares, list by list or in folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairgram.data.pairs import PairSettings
from pairgram.model_selection.interval_judge import IntervalJudge
from pairgram.model_selection.judge import Judged
from pairgram.solvers.formulation import RidgeModels
from pairgram.solvers.leave_out import HoldOut, PathTies, leave_query_out

if TYPE_CHECKING:
    pass


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

    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows."""
        told = self.data, models.settings, models.ridge
        ties, scores = PathTies.of(*told, models.alphas), models.scores
        if self.judge.validation is not None:
            scores = self.judge.validation_scores(models.coefs(models.ridge.coef(ties.alphas)))
        elif scores is None:
            scores = leave_query_out(*told, ties.alphas, models.statistics, self.n_threads)
        return self.judge.judge(ties.join(scores, self.judge.held_queries, self.n_threads))
