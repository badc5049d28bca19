"""A scheduler: fits are generators that yield requests, which are answered for many at once.

A fit requests models of all rows and scores of held-out rows. `run` answers the requests of one fit
from the statistics of its data. `run_all` answers the requests of many fits together, those of
small problems by one call of compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Vector
from pairgram.least_squares.formulation import Coordinates
from pairgram.least_squares.held_out import leave_out
from pairgram.least_squares.ridge_path import RidgePath, blas_guard
from pairgram.least_squares.small_problems import SmallProblem, decompose, hold_out
from pairgram.least_squares.statistics import ColumnSums, Statistics
from pairgram.model_selection.splits import Splits
from pairgram.problem.data import RankingData
from pairgram.queries_and_pairs.pair_weights import PairSettings

__all__ = ["Fitted", "Grid", "HoldOut", "Request", "Solve", "Steps", "Whole", "run", "run_all"]


@dataclass(frozen=True, eq=False)
class Grid:
    """Ridges and dampings, with one model for each.

    Attributes
    ----------
    alphas, damping : ndarray of shape (n_grid,), float64
        As in `RidgePath.coef`.
    relative : bool
        Whether both are in units of N / 2, half the sum of all pair weights. They then regularise
        the mean over pairs, as in `ELMRank`.
    scale : bool
        Whether features are scaled, as in `RidgePath`, when a model is fitted to some of the rows.
    """

    alphas: Vector
    damping: Vector
    relative: bool
    scale: bool = False

    def coef(self, ridge: RidgePath, pair_weight: Callable[[], float]) -> Vector:
        """Return the models, (n_grid, n_features), from decomposed statistics."""
        unit = pair_weight() / 2 if self.relative else 1.0
        with np.errstate(over="ignore"):  # an infinite ridge gives the model 0
            return ridge.coef(unit * self.alphas, unit * self.damping)

    def of(self, statistics: Statistics) -> Vector:
        """Return the models, (n_grid, n_features), from statistics."""
        weight = partial(getattr, statistics, "pair_weight")
        basis = bool(np.any(self.damping))
        return self.coef(statistics.decompose(scale=self.scale, basis=basis), weight)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The problem that a request is about.

    Attributes
    ----------
    coordinates : Coordinates
    settings : PairSettings
    labels : ndarray of shape (n_rows, n_targets), float64
        Labels that replace those of the data. There may be more than one target only if the pairs
        do not depend on labels.
    """

    coordinates: Coordinates
    settings: PairSettings
    labels: Vector

    def targets(self) -> list[Coordinates]:
        """Return, for every target, the rows with its labels."""
        targets = self.coordinates.data.of_targets(self.labels)
        return [self.coordinates.of_target(target.y) for target in targets]


@dataclass(frozen=True, eq=False)
class Whole(_Problem):
    """A request for the decomposition of the statistics of all rows.

    The answer is a list with the result of ``keep(target, ridge, pair_weight)`` for every target,
    where ``pair_weight()`` is the sum of all pair weights.

    Attributes
    ----------
    keep : callable
    scale : bool
    basis : bool
        Whether eigenvectors will be needed.
    """

    keep: Callable[[int, RidgePath, Callable[[], float]], Any]
    scale: bool = False
    basis: bool = False

    def answer(self, n_threads: int | None) -> list[Any]:
        """Answer from the statistics of each target."""
        answers = []
        for number, target in enumerate(self.targets()):
            total = target.statistics(self.settings, n_threads)
            weight = partial(getattr, total, "pair_weight")
            ridge = total.decompose(scale=self.scale, basis=self.basis)
            answers.append(self.keep(number, ridge, weight))
        return answers

    def answer_by(self, ridges: list[RidgePath], pair_weight: float) -> list[Any]:
        """Answer from the decompositions of all targets."""
        return [
            self.keep(number, ridge, lambda: pair_weight) for number, ridge in enumerate(ridges)
        ]


@dataclass(frozen=True, eq=False)
class Solve(_Problem):
    """A request for the models of one ridge.

    The answer is a list of (coefficients of shape (n_features,), `ColumnSums` or None) per target.

    Attributes
    ----------
    alpha : float
    scale : bool
    """

    alpha: float
    scale: bool

    def answer(self, n_threads: int | None) -> list[tuple[Vector, ColumnSums | None]]:
        """Answer from the system of each target."""
        return [
            target.solve(self.settings, self.alpha, scale=self.scale, n_threads=n_threads)
            for target in self.targets()
        ]

    def answer_by(self, ridges: list[RidgePath], pair_weight: float) -> list[tuple[Vector, None]]:
        """Answer from the decompositions of all targets."""
        coefs = self.coordinates.coefs
        return [(coefs(ridge.coef([self.alpha]))[0], None) for ridge in ridges]


@dataclass(frozen=True, eq=False)
class HoldOut(_Problem):
    """A request for the scores of test rows by models of the training rows of their split.

    The answer is an array of shape (n_targets, n_grid, n_test_rows of all splits).

    Attributes
    ----------
    splits : tuple of (training rows, test rows)
    grid : Grid
    """

    splits: Splits
    grid: Grid

    def answer(self, n_threads: int | None) -> Vector:
        """Answer from the statistics of each target, from which test rows are subtracted."""
        answers = []
        for target in self.targets():
            total = target.statistics(self.settings, n_threads)
            scores = leave_out.split_scores(
                target.data, total, self.splits, self.grid.of, n_threads
            )
            answers.append(np.hstack(scores))
        return np.stack(answers)


Request = Whole | Solve | HoldOut
# The attributes that a fit sets: a dictionary for every target.
Fitted = list[dict[str, Any]]
# A fit yields lists of requests, is sent the list of their answers, and returns the attributes.
Steps = Generator[Sequence[Request], list[Any], Fitted]


def run(steps: Steps, data: RankingData, n_threads: int | None) -> Fitted:
    """Run a fit to `data` to its end."""
    try:
        with blas_guard(min(len(data.y), data.n_features)):  # enter it only once
            requests = next(steps)
            while True:  # answers are not kept here: a decomposition may fill most of the memory
                requests = steps.send(_raised(_answer_all(requests, n_threads)))
    except StopIteration as stop:
        fitted: Fitted = stop.value
        return fitted


def _raised(answers: list[Any]) -> list[Any]:
    """Return the answers, or raise the first that is an exception."""
    error = next((answer for answer in answers if isinstance(answer, Exception)), None)
    if error is not None:
        raise error
    return answers


def run_all(fits: Sequence[Steps], n_threads: int | None) -> list[Fitted | Exception]:
    """Run fits side by side; requests that they make at the same time are answered together.

    If a fit raises an exception, the exception is its result, and the other fits go on.
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
        with single_threaded_blas():  # fits go on with small matrices; enter it once for all
            for fit, requests in turn:
                go_on(fit, list(islice(answers, len(requests))))
    return results


def _answer_all(requests: Sequence[Request], n_threads: int | None) -> list[Any]:
    """Answer small problems together and others one by one. An answer may be an exception."""
    answers: list[Any] = [None] * len(requests)
    if any(request.coordinates.small for request in requests):
        _answer_small(requests, answers, n_threads)
    for i, request in enumerate(requests):
        if answers[i] is None:  # this also raises the error of a small problem that was not solved
            try:
                answers[i] = request.answer(n_threads)
            except Exception as error:
                answers[i] = error
    return answers


def _answer_small(requests: Sequence[Request], answers: list[Any], n_threads: int | None) -> None:
    """Fill in the answers to those small problems that compiled code can solve."""
    wholes: dict[int, tuple[Whole | Solve, SmallProblem]] = {}
    held_outs: dict[int, tuple[HoldOut, SmallProblem]] = {}
    for i, request in enumerate(requests):
        if not (request.coordinates.small and SmallProblem.fits(request.coordinates.data)):
            continue
        try:
            problem = SmallProblem(request.coordinates.data, request.settings, request.labels)
        except Exception as error:  # of this problem alone, whatever a caller's function raises
            answers[i] = error
            continue
        if isinstance(request, HoldOut):
            held_outs[i] = (request, problem)
        else:
            wholes[i] = (request, problem)
    decomposed = decompose([problem for _, problem in wholes.values()], n_threads)
    with single_threaded_blas() if wholes else nullcontext():  # once for all of them
        for (i, (whole, _)), found in zip(wholes.items(), decomposed, strict=True):
            if found is not None:
                try:
                    answers[i] = whole.answer_by(*found)
                except Exception as error:
                    answers[i] = error
    tasks = [
        (problem, held.splits, held.grid.alphas, held.grid.damping, held.grid.relative)
        for held, problem in held_outs.values()
    ]
    for i, scores in zip(held_outs, hold_out(tasks, n_threads), strict=True):
        answers[i] = scores
