"""What fits ask of the solvers: models of all rows, and scores of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram import held_out
from pairgram.data import RankingData
from pairgram.gram import Pairgram
from pairgram.pairs import PairSettings
from pairgram.ridge import RidgePath, Vector

__all__ = ["Fitted", "Grid", "HoldOut", "Request", "Steps", "Whole", "run", "statistics_of"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Grid:
    """Ridges and dampings, one model each.

    Attributes
    ----------
    alphas, damping : ndarray of shape (n_grid,), float64
        As those of `RidgePath.coef`.
    relative : bool
        In units of N / 2, half the sum of all pair weights: they then regularise the mean over
        pairs, as in ELMRank.
    """

    alphas: Vector
    damping: Vector
    relative: bool

    def coef(self, ridge: RidgePath, pair_weight: float) -> Vector:
        """Return the models, (n_grid, n_features), of statistics that were decomposed."""
        unit = pair_weight / 2 if self.relative else 1.0
        return ridge.coef(unit * self.alphas, unit * self.damping)

    def of(self, statistics: Pairgram) -> Vector:
        """Return the models, (n_grid, n_features), of statistics."""
        return self.coef(statistics.decompose(), statistics.pair_weight)


@dataclass(frozen=True, eq=False)
class Whole:
    """Asks for the decomposition of the statistics of all rows.

    The answer is the list of ``keep(target, ridge, pair_weight)`` for every target.

    Attributes
    ----------
    data : RankingData
    settings : PairSettings
    labels : ndarray of shape (n_rows, n_targets), float64
        In place of ``data.y``; more than one target only for pairs that do not depend on labels.
    keep : callable
    """

    data: RankingData
    settings: PairSettings
    labels: Vector
    keep: Callable[[int, RidgePath, float], Any]


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Asks for the scores of test rows by the models of their split's training rows.

    The answer is an array of shape (n_targets, n_grid, n_test_rows of all splits).

    Attributes
    ----------
    data, settings, labels :
        As in `Whole`.
    splits : list of (training rows, test rows)
    grid : Grid
    """

    data: RankingData
    settings: PairSettings
    labels: Vector
    splits: Sequence[tuple[Rows, Rows]]
    grid: Grid


Request = Whole | HoldOut
# The attributes that a fit sets, for every target.
Fitted = list[dict[str, Any]]
# A fit: yields lists of requests, is sent the list of their answers, and returns what it found.
Steps = Generator[Sequence[Request], list[Any], Fitted]


def run(steps: Steps, n_threads: int | None) -> Fitted:
    """Run one fit to its end."""
    try:
        requests = next(steps)
        while True:
            requests = steps.send([_answer(request, n_threads) for request in requests])
    except StopIteration as stop:
        fitted: Fitted = stop.value
        return fitted


def statistics_of(
    data: RankingData, settings: PairSettings, n_threads: int | None = None
) -> Pairgram:
    """Return the statistics of training data; a ValueError where no pair counts."""
    if not data.as_scope(settings).has_pairs(settings).any():
        raise ValueError(
            f"no pair of rows counts, with pairs={settings.pairs!r} and n_samples="
            f"{len(data.y)}: every query has a single row, or weight 0, or, where tied pairs "
            "do not count, rows of one label"
        )
    return Pairgram.from_data(data, settings, n_threads)


def _answer(request: Request, n_threads: int | None) -> Any:
    """Answer by the statistics of each target, whose kernels have threads of their own."""
    answers = []
    for target, labels in enumerate(np.ascontiguousarray(request.labels.T)):
        data = replace(request.data, y=labels)
        total = statistics_of(data, request.settings, n_threads)
        if isinstance(request, Whole):
            answers.append(request.keep(target, total.decompose(), total.pair_weight))
        else:
            models = request.grid.of
            scores = held_out.split_scores(data, total, request.splits, models, n_threads)
            answers.append(np.hstack(scores))
    return answers if isinstance(request, Whole) else np.stack(answers)
