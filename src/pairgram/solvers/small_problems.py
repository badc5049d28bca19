"""Decompose problems and hold rows out of them; compiled code takes small ones side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.base import is_compiled, linear_nodes, node_map_of
from pairgram.model_selection.splits import Splits
from pairgram.solvers.formulation import Coordinates, Statistics, without_offsets
from pairgram.solvers.leave_out import split_scores
from pairgram.solvers.leave_out_dual import batches, fold_offsets
from pairgram.solvers.ridge_path import SINGLE_THREADED_ORDER, EigenPath, RidgePath

T = TypeVar("T")

# A small problem has at most this many feature values. They are stored, in at most 4 MiB.
MOST_VALUES = 1 << 19
# The largest feature value of a small problem must be at least this.
SMALLEST_FEATURE = 1e-140


class SmallProblem:
    """Rows of one data set, with the labels of one or more targets, for compiled code.

    Parameters
    ----------
    data : RankingData
        Must satisfy ``SmallProblem.fits(data)``.
    settings : PairSettings
    labels : ndarray of shape (n_rows, n_targets), float64, or None
        Labels that replace ``data.y``. There may be more than one target only if the pairs do not
        depend on labels.
    """

    def __init__(self, data: RankingData, settings: PairSettings, labels: Vector | None) -> None:
        data = data.as_scope(settings)
        if data.X.dtype != np.float64:  # a copy is cheap here, and compiled code has one type
            data = replace(data, X=data.X.astype(np.float64))
        if data.may_vanish:
            data.require_pair_weight(settings, data.pair_weight(settings))
        labels = data.y[:, None] if labels is None else labels
        targets, X = np.ascontiguousarray(data.label_targets(settings, labels)), data.X
        if data.offset is not None:
            targets = targets - data.offset[:, None]
        nodes = linear_nodes(data.feature_map)
        if settings.pairs is not None and nodes is not None and nodes.before is None:
            X = without_offsets(X, data.queries)
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


# The paths of the targets of one problem, each with a function that returns the pair weight.
Paths = list[tuple[RidgePath, Callable[[], float]]]


def _decompose(n_threads: int | None, problems: Sequence[SmallProblem]) -> Iterator[Paths | None]:
    """Yield, for every problem, the ridge paths of its targets.

    None stands for a problem that has no pairs, or that compiled code could not solve.
    """
    threads = resolve_n_threads(n_threads)
    sizes = [8 * p.n_features * (p.n_rows + min(p.n_rows, p.n_features)) for p in problems]
    for batch in batches(problems, sizes, limits.now.batch_bytes):
        with single_threaded_blas:
            found = _core.decompose_batch([p.problem for p in batch], threads)
        for one in found:
            if one is None:
                yield None
                continue
            eigenvalues, vectors, projections, pair_weight = one
            weight = partial(float, pair_weight)
            yield [(RidgePath(EigenPath(eigenvalues, vectors.T, p)), weight) for p in projections]


def _hold_out(
    splits: Splits, grid: Grid, n_threads: int | None, problems: Sequence[SmallProblem]
) -> Iterator[NDArray[np.float64] | None]:
    """Yield, for every problem, the scores of the test rows of all splits.

    They have shape (n_targets, n_grid, n_test_rows), and are those of models of the training rows.
    None stands for a problem with a split that has no pairs to train on, or that compiled code
    could not solve.
    """
    threads = resolve_n_threads(n_threads)
    train, test = (_joined([split[part] for split in splits]) for part in (0, 1))
    numbers = train, test, grid.alphas, grid.damping, grid.relative
    calls = [(one.problem, *numbers) for one in problems]
    n_scores = len(grid.alphas) * len(test[0])
    sizes = [8 * (one.n_features * one.n_rows + one.n_targets * n_scores) for one in problems]
    for batch in batches(calls, sizes, limits.now.batch_bytes):
        with single_threaded_blas:
            found = _core.hold_out_batch(batch, threads)
        yield from found


def _joined(lists: list[Rows]) -> tuple[Rows, Rows]:
    """Return the row numbers of all lists in one array, and the bounds of the lists in it."""
    return np.concatenate(lists), fold_offsets(lists)


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


def decompose_each(
    problems: Sequence[Coordinates],
    settings: PairSettings,
    labels: Vector | None,
    n_threads: int | None,
    *,
    scale: bool = False,
    basis: bool = False,
) -> Iterator[Paths]:
    """Yield, for every problem, the decomposed statistics of all rows for every target.

    Problems that compiled code cannot take, or cannot solve, are decomposed one by one when they
    are asked for. Their errors are those of `Coordinates.statistics`.

    Parameters
    ----------
    problems : sequence of Coordinates
    settings : PairSettings
    labels : ndarray of shape (n_rows, n_targets), float64, or None
        Labels that replace those of the data. There may be more than one target only if the pairs
        do not depend on labels.
    n_threads : int or None
    scale, basis : bool
        As in `Statistics.decompose`.
    """
    compiled = _compiled(problems, settings, labels, partial(_decompose, n_threads))
    for one, paths in zip(problems, compiled, strict=True):
        yield _paths(one, settings, labels, n_threads, scale, basis) if paths is None else paths


def _compiled(
    problems: Sequence[Coordinates],
    settings: PairSettings,
    labels: Vector | None,
    solve: Callable[[Sequence[SmallProblem]], Iterator[T]],
) -> Iterator[T | None]:
    """Return what compiled code makes of every problem; None for those that it does not take."""
    if not any(map(attrgetter("small"), problems)):
        return iter([None] * len(problems))
    small = [SmallProblem(one.data, settings, labels) if one.small else None for one in problems]
    found = solve([one for one in small if one is not None])
    return (None if one is None else next(found) for one in small)


def _paths(
    problem: Coordinates,
    settings: PairSettings,
    labels: Vector | None,
    n_threads: int | None,
    scale: bool,
    basis: bool,
) -> Paths:
    paths: Paths = []
    for target in problem.of_targets(labels):
        total = target.statistics(settings, n_threads)
        weight = partial(getattr, total, "pair_weight")
        paths.append((total.decompose(scale=scale, basis=basis), weight))
    return paths


def hold_out_each(
    problems: Sequence[Coordinates],
    settings: PairSettings,
    labels: Vector | None,
    splits: Splits,
    grid: Grid,
    n_threads: int | None,
) -> Iterator[Vector]:
    """Yield, for every problem, the scores of test rows by models of the training rows.

    They have shape (n_targets, n_grid, n_test_rows of all splits). Test rows are subtracted from
    the statistics of problems that compiled code cannot take. Other arguments are as in
    `decompose_each`.
    """
    hold_out = partial(_hold_out, splits, grid, n_threads)
    for one, scores in zip(problems, _compiled(problems, settings, labels, hold_out), strict=True):
        if scores is None:
            parts = [
                split_scores(
                    target.data,
                    target.statistics(settings, n_threads),
                    splits,
                    grid.of,
                    n_threads,
                )
                for target in one.of_targets(labels)
            ]
            scores = np.stack([np.hstack(of_target) for of_target in parts])
        yield scores
