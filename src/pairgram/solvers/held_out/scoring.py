"""Judge the models of a ridge path by held-out queries, rows, splits or a validation set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from pairgram._support.checks import Vector
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.metrics import Metric
from pairgram.model_selection.judge import Judge, Judged
from pairgram.model_selection.splits import Splits
from pairgram.solvers.held_out.dual_folds import (
    fold_scores,
    is_from_decomposition,
    is_one_regression,
    leave_out_of_all_rows,
)
from pairgram.solvers.held_out.dual_rows import are_small
from pairgram.solvers.held_out.leave_out import (
    MAX_REFIT_FLOPS,
    flops_of_refits,
    leave_query_out,
    leave_row_out,
    require_leave_query_out,
)
from pairgram.solvers.held_out.ties import PathTies
from pairgram.solvers.interface import Statistics
from pairgram.solvers.ridge_path import RidgePath


class HeldOut(Protocol):
    """The interface of objects that hold rows out of a ridge problem and judge their scores."""

    @property
    def data(self) -> RankingData:
        """The rows in the coordinates in which their problem is solved."""

    @property
    def n_threads(self) -> int | None:
        """The number of threads, None for all."""

    @property
    def metric(self) -> Metric:
        """The metric that judges."""

    def of(self, data: RankingData) -> Self:
        """Return the same with another feature map, which the validation set shares."""

    def within(self, data: RankingData) -> Self:
        """Return the same for the same rows in other coordinates."""

    def require(self, settings: PairSettings, n_alphas: int, form: str) -> None:
        """Raise the ValueErrors of `judge_path`, from the labels and the sizes alone."""

    def n_matrices(self, settings: PairSettings) -> int:
        """Return the largest number of n_rows × n_rows matrices of `judge_path` in dual form."""

    def needs_basis(self, settings: PairSettings, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""

    def refits(self, settings: PairSettings, ridge: RidgePath) -> Splits | None:
        """Return the splits that need one fit each; None if there are none."""

    def judge_path(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        statistics: Callable[[], Statistics],
        coefs: Callable[[Vector], Vector],
        scores: Vector | None = None,
    ) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows.

        If `refits` gave splits, `scores` are those of their test rows, (n_models, n_rows), by the
        models at the ridges ``PathTies.of(...).alphas``.
        """


@dataclass(frozen=True)
class HeldOutRows:
    """Holds out the rows that a `Judge` says, by the identities of least squares where they hold.

    Attributes
    ----------
    data : RankingData
        The rows in the coordinates in which their problem is solved.
    judge : Judge
    n_threads : int or None
    """

    data: RankingData
    judge: Judge
    n_threads: int | None

    @property
    def metric(self) -> Metric:
        """The metric that judges."""
        return self.judge.metric

    def of(self, data: RankingData) -> Self:
        """Return the same with another feature map, which the validation set shares."""
        return replace(self, data=data, judge=self.judge.of(data))

    def within(self, data: RankingData) -> Self:
        """Return the same for the same rows in other coordinates."""
        return replace(self, data=data)

    def require(self, settings: PairSettings, n_alphas: int, form: str) -> None:
        """Raise the ValueErrors of `judge_path`, from the labels and the sizes alone."""
        if self.judge.splits is not None:
            for number, (train, _) in enumerate(self.judge.splits):
                self.data.require_training_pairs(settings, number, train)
        elif self.judge.validation is None and self.data.queries.n_filled > 1:
            require_leave_query_out(self.data, settings)

    def n_matrices(self, settings: PairSettings) -> int:
        """Return the largest number of n_rows × n_rows matrices of `judge_path` in dual form."""
        if settings.kind not in ("none", "kept") or self.judge.validation is not None:
            return 0
        rows_of_one = self.judge.splits is not None and self.data.queries.n_filled == 1
        return int(_of_all_rows(settings) or rows_of_one)

    def needs_basis(self, settings: PairSettings, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        if self.judge.validation is not None:
            return False
        data, splits = self.data, self.judge.splits
        if splits is not None:
            if not is_from_decomposition(data, settings, is_dual, splits):
                return False
            sizes = [len(test) for _, test in splits]
            return is_one_regression(data, settings) or not are_small(sizes, len(data.y))
        if data.queries.n_filled == 1:
            return settings.kind in ("none", "kept")
        if settings.joins_all_rows:
            return is_dual and _of_all_rows(settings)
        return not (is_dual and are_small(data.queries.sizes.tolist(), len(data.y)))

    def refits(self, settings: PairSettings, ridge: RidgePath) -> Splits | None:
        """Return the splits that need one fit each; None if there are none."""
        splits = self.judge.splits
        if splits is None or is_from_decomposition(self.data, settings, ridge.is_dual, splits):
            return None
        return splits

    def judge_path(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        statistics: Callable[[], Statistics],
        coefs: Callable[[Vector], Vector],
        scores: Vector | None = None,
    ) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows.

        Parameters
        ----------
        settings : PairSettings
        ridge : RidgePath
            The decomposition of the statistics of all rows.
        alphas : ndarray of shape (n_alphas,), descending
        statistics : callable
            Returns the statistics of all rows. Only refits need them.
        coefs : callable
            Maps solutions of `ridge` to coefficients for the features of the validation set.
        scores : ndarray of shape (n_models, n_held_out_rows), float64, or None
            If `refits` gave splits, the scores of their test rows by the models at the ridges
            ``PathTies.of(...).alphas``.
        """
        ties = PathTies.of(self.data, settings, ridge, alphas)
        if scores is None:
            scores = self._scores(settings, ridge, ties.alphas, statistics, coefs)
        queries = self.judge.scored.queries
        return self.judge.judge(ties.join(self.judge.shared(scores), queries, self.n_threads))

    def _scores(
        self,
        settings: PairSettings,
        ridge: RidgePath,
        alphas: Vector,
        statistics: Callable[[], Statistics],
        coefs: Callable[[Vector], Vector],
    ) -> Vector:
        """Return the scores of the held-out rows, (n_alphas, n_held_out_rows)."""
        data, threads = self.data, self.n_threads
        if self.judge.validation is not None:
            models = coefs(ridge.coef(alphas))
            return self.judge.validation.scores(slice(None), models, threads)
        if self.judge.splits is not None:
            parts = fold_scores(data, settings, ridge, self.judge.splits, alphas, threads)
            return np.hstack(parts)
        if data.queries.n_filled == 1:
            return leave_row_out(data, settings, ridge, alphas, statistics, threads)
        if ridge.is_dual and _of_all_rows(settings):
            return leave_out_of_all_rows(data, settings, ridge, alphas, threads)
        return leave_query_out(data, settings, ridge, alphas, statistics, threads)


def is_cheap(data: RankingData, settings: PairSettings, n_dimensions: int, form: str) -> bool:
    """Tell whether leaving out every query, or every row of one query, is exact and cheap.

    It is if the identities of least squares hold, or if all refits together take at most
    `MAX_REFIT_FLOPS`. `n_dimensions` is the order of the system that is solved.
    """
    n_rows = len(data.y)
    if data.queries.n_filled == 1:
        exact, n_refits = settings.kind in ("none", "kept"), n_rows
    else:
        exact = not settings.joins_all_rows or (form == "dual" and _of_all_rows(settings))
        n_refits = data.queries.n_queries
    if exact:
        return True
    flops = flops_of_refits(n_rows, n_dimensions, settings, n_refits)
    return flops <= MAX_REFIT_FLOPS


def _of_all_rows(settings: PairSettings) -> bool:
    """Tell whether the kept pairs of all rows are one regression on rows."""
    return settings.joins_all_rows and settings.kind == "kept"
