"""One ridge for each of many sets of rows, by one call of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.checks import Vector
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.base import linear_nodes, node_map_of
from pairgram.solvers.formulation import without_offsets
from pairgram.solvers.hold_out import LARGEST_HELD
from pairgram.solvers.path_judges import SMALLEST_SHARE
from pairgram.solvers.ridge_path import (
    DEFAULT_POWERS,
    ROUNDING,
    STARTING_MULTIPLES,
    ColumnSums,
)

# The last says that compiled code leaves the set to other code.
SOLVED, NO_PAIRS, UNSOLVED = 0, 1, 2
# A fit of more feature values is not one of compiled sets.
LARGEST_SET = 1 << 19


class RowSets(NamedTuple):
    """Sets of rows, each with models of its own.

    Attributes
    ----------
    data : RankingData
        The rows of all sets. The queries of a set stand together.
    bounds : ndarray of shape (n_sets + 1,), int64
        The first query of every set.
    blocks : list of C-contiguous ndarrays, all float64 or all float32
        The rows: those of the data, or a block for each set, where the data have none themselves.
    labels : ndarray of shape (n_values,), float64
        The labels of every set, set after set, (n_rows, n_targets) each. Sets with several targets
        have rows that stand together.
    n_targets : ndarray of shape (n_sets,), int64
    """

    data: RankingData
    bounds: NDArray[np.int64]
    blocks: Sequence[NDArray[Any]]
    labels: Vector
    n_targets: NDArray[np.int64]

    @classmethod
    def of(cls, data: RankingData) -> RowSets:
        """Return all rows as one set."""
        bounds = np.array([0, data.queries.n_queries])
        return cls(data, bounds, [data.X], data.y, np.ones(1, dtype=np.int64))


class Solved(NamedTuple):
    """The weights of all models, (n_models, n_features), NaN without; and the state of each set."""

    weights: Vector
    states: NDArray[np.int8]
    sums: tuple[Vector, Vector, Vector]

    def column_sums(self) -> ColumnSums:
        """Return the sums of the only model."""
        squares, products, weight = self.sums
        return ColumnSums(squares[0], products[0], float(weight[0]), self.weights[0])


class Searched(NamedTuple):
    """The ridge paths of some sets, and held-out scores.

    Attributes
    ----------
    states : ndarray of shape (n_sets,), int8
    alphas : ndarray of shape (n_sets, n_alphas), descending
    models : ndarray of shape (n_sets, n_alphas, n_features)
    scores : ndarray of shape (n_alphas, n_rows)
        Of every row of these sets by the models without its query, or without the row where a set
        is one query. They stand by set and query. NaN where a set is not solved.
    grams : ndarray of shape (n_sets or 0, n_features, n_features)
        Upper triangles of the statistics G, if asked for.
    weights : ndarray of shape (n_sets or 0,)
        The sums of pair weights, if asked for.
    """

    states: NDArray[np.int8]
    alphas: Vector
    models: Vector
    scores: Vector
    grams: Vector
    weights: Vector

    def column_sums(self, coef: Vector) -> ColumnSums:
        """Return the sums of the only set, for a model of it."""
        G = np.triu(self.grams[0]) + np.triu(self.grams[0], 1).T
        return ColumnSums(G.diagonal().copy(), G @ coef, float(self.weights[0]), coef.copy())


def search_sets(
    sets: RowSets,
    settings: PairSettings,
    alphas: Vector | None,
    n_threads: int | None,
    *,
    some: tuple[int, int],
    tells: bool = False,
) -> Searched | None:
    """Hold every query out of the paths of some sets; None if compiled code cannot take the rows.

    Each set has one target. `alphas` descend; for None there is a grid for each set. `tells` asks
    for statistics.
    """
    told = as_compiled(sets, settings)
    if told is None:
        return None
    started = sets.data.offset is not None
    problem, blocks, node_map = told
    with single_threaded_blas:
        return Searched(
            *_core.search_groups(
                problem,
                sets.bounds,
                _targets(sets, settings),
                blocks,
                range=some,
                alphas=alphas,
                multiples=STARTING_MULTIPLES if started else STARTING_MULTIPLES[:0],
                powers=np.exp2(DEFAULT_POWERS.astype(np.float64)),
                started=started,
                limits=(ROUNDING, LARGEST_HELD, SMALLEST_SHARE),
                map=node_map,
                tells=tells,
                n_threads=resolve_n_threads(n_threads),
            )
        )


def solve_sets(
    sets: RowSets,
    settings: PairSettings,
    alpha: float,
    n_threads: int | None,
    *,
    tells: bool = False,
) -> Solved | None:
    """Solve one ridge for every target of every set; None if compiled code cannot take the rows.

    The pairs must not depend on labels where a set has several targets. `tells` asks for sums.
    """
    told = as_compiled(sets, settings)
    if told is None:
        return None
    problem, blocks, node_map = told
    with single_threaded_blas:
        found = _core.fit_groups(
            problem,
            sets.bounds,
            sets.n_targets,
            _targets(sets, settings),
            blocks,
            map=node_map,
            alpha=float(alpha),
            tells=tells,
            n_threads=resolve_n_threads(n_threads),
        )
    return Solved(*found)


def as_compiled(
    sets: RowSets, settings: PairSettings
) -> tuple[_core.RankingProblem, list[NDArray[Any]], Any] | None:
    """Return the problem, rows and map for compiled code, or None if it takes no such."""
    data, blocks = sets.data, sets.blocks
    first = blocks[0]  # of a kind with the others
    if data.preferences is not None or scipy.sparse.issparse(first) or first.shape[1] == 0:
        return None
    node_map = None
    if data.feature_map is not None:
        node_map = node_map_of(data.feature_map, np.float64)
        if node_map is None:
            return None
        nodes = linear_nodes(data.feature_map)
        if settings.pairs is not None and nodes is not None and nodes.before is None:
            (X,) = blocks
            blocks = [without_offsets(X.astype(np.float64, copy=False), data.queries)]
    return data.problem(settings), list(blocks), node_map


def _targets(sets: RowSets, settings: PairSettings) -> Vector:
    """Return the targets of every set, less the offsets."""
    data, targets = sets.data, settings.targets(sets.labels)
    if settings.is_of_clicks:
        targets = data.label_targets(settings)
    if data.offset is None:
        return targets
    sizes = np.diff(data.queries.offsets[sets.bounds])
    return targets - np.repeat(data.offset, np.repeat(sets.n_targets, sizes))


def in_one_block(sets: RowSets) -> RowSets:
    """Return sets whose rows stand in one array, a copy if they do not yet."""
    X = sets.blocks[0] if len(sets.blocks) == 1 else np.concatenate(sets.blocks)
    return sets._replace(data=replace(sets.data, X=X), blocks=[X])
