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
from pairgram.solvers.ridge_path import ColumnSums

SOLVED, NO_PAIRS, UNSOLVED = (
    0,
    1,
    2,
)  # the last says that compiled code leaves the set to other code


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
    targets = settings.targets(sets.labels)
    if settings.is_of_clicks:
        targets = data.label_targets(settings)
    if data.offset is not None:
        sizes = np.diff(data.queries.offsets[sets.bounds])
        targets = targets - np.repeat(data.offset, np.repeat(sets.n_targets, sizes))
    told = data.problem(settings), sets.bounds, sets.n_targets, targets, list(blocks)
    with single_threaded_blas:
        found = _core.fit_groups(
            *told,
            map=node_map,
            alpha=float(alpha),
            tells=tells,
            n_threads=resolve_n_threads(n_threads),
        )
    return Solved(*found[:2], found[2:])


def in_one_block(sets: RowSets) -> RowSets:
    """Return sets whose rows stand in one array, a copy if they do not yet."""
    if len(sets.blocks) == 1:
        return sets
    X = np.concatenate(sets.blocks)
    return sets._replace(data=replace(sets.data, X=X), blocks=[X])
