"""A scheduler: fits are generators that yield requests, which are answered for many at once.

A fit requests models of all rows and scores of held-out rows. `run` answers the requests of one fit
from the statistics of its data. `run_all` answers the requests of many fits together, those of
small problems by one call of compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.features.base import is_compiled, linear_nodes, node_map_of
from pairgram.model_selection.splits import Splits
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.held_out import leave_out
from pairgram.solvers.interface import ColumnSums, Statistics
from pairgram.solvers.ridge_path import SINGLE_THREADED_ORDER, EigenPath, RidgePath, blas_guard

# A small problem has at most this many feature values. They are stored, in at most 4 MiB.
MOST_VALUES = 1 << 19
# The largest feature value of a small problem must be at least this.
SMALLEST_FEATURE = 1e-140
# The features and results of one call take at most this many bytes.
BATCH_BYTES = 128 << 20


class SmallProblem:
    """Rows of one data set, with the labels of one or more targets, for compiled code.

    Parameters
    ----------
    data : RankingData
        Must satisfy ``SmallProblem.fits(data)``.
    settings : PairSettings
    labels : ndarray of shape (n_rows, n_targets), float64
        Labels that replace ``data.y``. There may be more than one target only if the pairs do not
        depend on labels.
    """

    def __init__(self, data: RankingData, settings: PairSettings, labels: Vector) -> None:
        data = data.as_scope(settings)
        if data.X.dtype != np.float64:  # a copy is cheap here, and compiled code has one type
            data = replace(data, X=data.X.astype(np.float64))
        if data.may_vanish:
            data.require_pair_weight(settings, data.pair_weight(settings))
        targets, X = np.ascontiguousarray(settings.targets(labels)), data.X
        if data.offset is not None:
            targets = targets - data.offset[:, None]
        nodes = linear_nodes(data.feature_map)
        if settings.pairs is not None and nodes is not None and nodes.before is None:
            X = _without_offsets(X, data.queries)
        node_map = node_map_of(data.feature_map, data.X.dtype)
        self.problem = _core.BatchProblem(data.problem(settings), X, targets, map=node_map)
        self.n_rows, self.n_targets = targets.shape
        self.n_features = data.n_features

    @staticmethod
    def fits(data: RankingData) -> bool:
        """Tell whether compiled code can take the data, and one thread is enough for them."""
        X, feature_map = data.X, data.feature_map
        if scipy.sparse.issparse(X) or X.dtype not in (np.float64, np.float32) or 0 in X.shape:
            return False
        if feature_map is not None and not is_compiled(feature_map):
            return False
        if feature_map is None and 0 < abs(X).max() < SMALLEST_FEATURE:
            return False  # other code refuses such data with an error
        n_rows, n_features = len(X), data.n_features
        order = min(n_rows, n_features)
        return n_rows * n_features <= MOST_VALUES and order <= SINGLE_THREADED_ORDER


def _without_offsets(X: Vector, queries: Queries) -> Vector:
    """Return the differences of rows from the first row of their query.

    Linear nodes map differences exactly. What all rows of a query have in common changes no
    difference within a pair and adds the same to all scores of the query. Mapping it would cost
    digits.
    """
    first = queries.offsets[queries.index()]
    with np.errstate(over="ignore", invalid="ignore"):  # compiled code finds infinities
        return np.asarray(X - X[first if queries.order is None else queries.order[first]])


def decompose(
    problems: Sequence[SmallProblem], n_threads: int | None
) -> Iterator[tuple[list[RidgePath], float] | None]:
    """Yield, for every problem, the ridge paths of its targets and its pair weight.

    None stands for a problem that has no pairs, or that compiled code could not solve.
    """
    threads = resolve_n_threads(n_threads)
    sizes = [p.n_features * (p.n_rows + min(p.n_rows, p.n_features)) for p in problems]
    for batch in _batches(problems, sizes):
        with single_threaded_blas():
            found = _core.decompose_batch([p.problem for p in batch], threads)
        for one in found:
            if one is None:
                yield None
                continue
            eigenvalues, vectors, projections, pair_weight = one
            paths = [RidgePath(EigenPath(eigenvalues, vectors.T, p)) for p in projections]
            yield paths, pair_weight


def hold_out(
    tasks: Sequence[tuple[SmallProblem, Sequence[tuple[Rows, Rows]], Vector, Vector, bool]],
    n_threads: int | None,
) -> Iterator[NDArray[np.float64] | None]:
    """Yield the scores of the test rows of all splits by models of their training rows.

    Parameters
    ----------
    tasks : sequence of (problem, splits, alphas, damping, relative)
        A split is (training rows, test rows). The others are as in `scheduler.Grid`.
    n_threads : int or None

    Yields
    ------
    ndarray of shape (n_targets, n_grid, n_test_rows), float64, or None
        None if a split has no pairs to train on, or if compiled code could not solve the problem.
    """
    threads = resolve_n_threads(n_threads)
    lists: dict[int, Any] = {}  # problems often share their splits
    calls, sizes = [], []
    for problem, splits, alphas, damping, relative in tasks:
        if id(splits) not in lists:
            lists[id(splits)] = [_joined([split[part] for split in splits]) for part in (0, 1)]
        train, test = lists[id(splits)]
        calls.append((problem.problem, train, test, alphas, damping, relative))
        n_scores = problem.n_targets * len(alphas) * len(test[0])
        sizes.append(problem.n_features * problem.n_rows + n_scores)
    for batch in _batches(calls, sizes):
        with single_threaded_blas():
            found = _core.hold_out_batch(batch, threads)
        yield from found


def _joined(lists: list[Rows]) -> tuple[Rows, Rows]:
    """Return the row numbers of all lists in one array, and the bounds of the lists in it."""
    bounds = np.fromiter(accumulate((len(rows) for rows in lists), initial=0), np.int64)
    return np.concatenate(lists), bounds


def _batches(items: Sequence[Any], n_values: Sequence[int]) -> Iterator[list[Any]]:
    """Cut a sequence where its float64 values would take more than BATCH_BYTES."""
    batch: list[Any] = []
    total = 0
    for item, n in zip(items, n_values, strict=True):
        if batch and 8 * (total + n) > BATCH_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += n
    if batch:
        yield batch


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
        return self.coef(statistics._decompose(scale=self.scale, basis=basis), weight)


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
            ridge = total._decompose(scale=self.scale, basis=self.basis)
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
