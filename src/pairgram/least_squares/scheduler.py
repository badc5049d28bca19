"""What fits ask of the solvers: models of all rows, and scores of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from pairgram._support.types import Rows, Vector
from pairgram.least_squares import small_problems
from pairgram.least_squares.gram import Pairgram
from pairgram.least_squares.held_out import leave_out
from pairgram.least_squares.ridge_path import RidgePath
from pairgram.preferences.pairs import PairSettings
from pairgram.problem.data import RankingData

__all__ = [
    "Fitted",
    "Grid",
    "HoldOut",
    "Request",
    "Steps",
    "Whole",
    "run",
    "run_all",
]


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
        with np.errstate(over="ignore"):  # an infinite ridge, of which the model is 0
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
    (fitted,) = run_all([steps], n_threads)
    if isinstance(fitted, Exception):
        raise fitted
    return fitted


def run_all(fits: Sequence[Steps], n_threads: int | None) -> list[Fitted | Exception]:
    """Run fits side by side: what they ask for at the same time is answered together.

    An exception in one of them is its result and does not stop the others.
    """
    results: list[Fitted | Exception] = [[] for _ in fits]
    asked: dict[int, Sequence[Request]] = {}

    def go_on(fit: int, answers: list[Any] | None) -> None:
        error = next((a for a in answers or () if isinstance(a, Exception)), None)
        asked.pop(fit, None)
        try:
            if error is not None:
                fits[fit].throw(error)
            asked[fit] = next(fits[fit]) if answers is None else fits[fit].send(answers)
        except StopIteration as stop:
            results[fit] = stop.value
        except Exception as exception:
            results[fit] = exception

    for fit in range(len(fits)):
        go_on(fit, None)
    while asked:
        turn = list(asked.items())
        answers = iter(_answer_all([r for _, requests in turn for r in requests], n_threads))
        for fit, requests in turn:
            go_on(fit, list(islice(answers, len(requests))))
    return results


def _answer_all(requests: Sequence[Request], n_threads: int | None) -> list[Any]:
    """Answer small problems together, and others one by one; an answer may be an exception."""
    answers: list[Any] = [None] * len(requests)
    wholes: dict[int, small_problems.SmallProblem] = {}
    held_outs: dict[int, Any] = {}
    for i, request in enumerate(requests):
        if not small_problems.SmallProblem.fits(request.data):
            continue
        try:
            problem = small_problems.SmallProblem(request.data, request.settings, request.labels)
        except ValueError as error:
            answers[i] = error
            continue
        if isinstance(request, Whole):
            wholes[i] = problem
        else:
            grid = request.grid
            held_outs[i] = (problem, request.splits, grid.alphas, grid.damping, grid.relative)
    for i, found in zip(
        wholes, small_problems.decompose(list(wholes.values()), n_threads), strict=True
    ):
        request = requests[i]
        if found is not None and isinstance(request, Whole):
            ridges, weight = found
            answers[i] = [request.keep(t, ridge, weight) for t, ridge in enumerate(ridges)]
    for i, scores in zip(
        held_outs, small_problems.hold_out(list(held_outs.values()), n_threads), strict=True
    ):
        answers[i] = scores
    for i, request in enumerate(requests):
        if answers[i] is None:  # which also tells what is wrong with a small problem
            answers[i] = _answer(request, n_threads)
    return answers


def _answer(request: Request, n_threads: int | None) -> Any:
    """Answer by the statistics of each target, whose kernels have threads of their own."""
    answers = []
    try:
        for target, labels in enumerate(np.ascontiguousarray(request.labels.T)):
            data = replace(request.data, y=labels)
            data.require_pairs(request.settings)
            total = Pairgram.from_data(data, request.settings, n_threads)
            if isinstance(request, Whole):
                answers.append(request.keep(target, total.decompose(), total.pair_weight))
            else:
                models = request.grid.of
                scores = leave_out.split_scores(data, total, request.splits, models, n_threads)
                answers.append(np.hstack(scores))
    except Exception as error:
        return error
    return answers if isinstance(request, Whole) else np.stack(answers)
