"""One ridge for each of many sets of rows, by one call of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.feature_map import linear_nodes, node_map_of
from pairgram.solvers.formulation import without_offsets
from pairgram.solvers.hold_out import LARGEST_HELD
from pairgram.solvers.path_judges import SMALLEST_SHARE
from pairgram.solvers.ridge_path import (
    DEFAULT_POWERS,
    ROUNDING,
    STARTING_MULTIPLES,
    ColumnSums,
)

# Compiled code leaves unsolved sets to other code.
SOLVED, NO_PAIRS, UNSOLVED = range(3)


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
    units : ndarray of shape (n_rows,), int64, or None
        What is held out together, by position: rows of a set with equal numbers, which are whole
        queries or rows of one query. A number below 0 leaves its set to other code. None holds
        every query out, or every row where a set is one query.
    """

    data: RankingData
    bounds: NDArray[np.int64]
    blocks: Sequence[NDArray[Any]]
    labels: Vector
    n_targets: NDArray[np.int64]
    units: Rows | None = None

    @classmethod
    def of(cls, data: RankingData) -> RowSets:
        """Return all rows as one set."""
        bounds = np.array([0, data.queries.n_queries])
        X = _dense_if_small(data.X) if scipy.sparse.issparse(data.X) else data.X
        return cls(data, bounds, [X], data.y, np.ones(1, dtype=np.int64))

    @property
    def copies_rows(self) -> bool:
        """Whether dense rows are made only when compiled code takes them."""
        return not isinstance(self.blocks, list) or scipy.sparse.issparse(self.blocks[0])

    def by_parts(
        self, n_values: int, fit: Callable[[RowSets], dict[str, Any] | None]
    ) -> dict[str, Any] | None:
        """Return the arrays by name that a function returns for parts of the sets, with dense rows.

        The rows, and so many models and scores of each row, take little memory for a part. The
        result is None if that for a part is.
        """
        X, ends = self.blocks[0], self.data.queries.offsets[self.bounds]
        is_sparse, n_sets = scipy.sparse.issparse(X), len(self.n_targets)
        d = X.shape[1] if self.data.feature_map is None else self.data.n_features
        size = 8.0 * n_values * (ends + d * np.arange(n_sets + 1))
        size += 8.0 * X.shape[1] * self.copies_rows * ends
        first, found = 0, []
        while first < n_sets:
            most = size[first] + limits.now.dense_block_bytes
            last = max(first + 1, int(np.searchsorted(size, most, side="right")) - 1)
            whole = last - first == n_sets and not is_sparse
            one = fit(self if whole else self._some(first, last))
            if one is None:
                return None
            found.append(one)
            first = last
        return {name: one_array([one[name] for one in found]) for name in found[0]}

    def _some(self, first: int, last: int) -> RowSets:
        """Return some sets with dense rows."""
        queries, bounds = self.data.queries, self.bounds[first : last + 1]
        ends, blocks, n_targets = queries.offsets[bounds], self.blocks, self.n_targets[first:last]
        rows: Any = slice(ends[0], ends[-1])
        before = np.diff(queries.offsets[self.bounds[: first + 1]]) @ self.n_targets[:first]
        labels = self.labels[before : before + np.diff(ends) @ n_targets]
        if len(blocks) == 1 and queries.order is not None:  # of one target for each
            rows = queries.order[rows]
            labels = self.labels[rows]
        data = self.data.take(rows)
        if len(blocks) == 1:
            X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
            data, blocks = replace(data, X=X), [X]
        else:
            blocks = blocks[first:last]
        bounds = np.searchsorted(data.queries.offsets, ends - ends[0])
        return RowSets(data, bounds, blocks, labels, n_targets)


def _dense_if_small(X: Any) -> Any:
    n_values = X.shape[0] * X.shape[1]
    small = n_values <= limits.now.largest_set and memory.fits(8 * n_values)
    return X.toarray() if small else X


def one_array(parts: Sequence[Any]) -> Any:
    """Return arrays one after the other; a single one as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


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
    values : ndarray of shape (n_sets, n_alphas)
        The ridges, descending, or the values of C, ascending.
    models : ndarray of shape (n_sets, n_alphas, n_features)
    scores : ndarray of shape (n_alphas, n_rows)
        Of every row of these sets by the models without its unit. They stand by set and query. NaN
        where a set is not solved.
    grams : ndarray of shape (n_sets or 0, n_features, n_features)
        Upper triangles of the statistics G, if asked for.
    weights : ndarray of shape (n_sets or 0,)
        The sums of pair weights, if asked for.
    """

    states: NDArray[np.int8]
    values: Vector
    models: Vector
    scores: Vector
    grams: Vector
    weights: Vector

    def column_sums(self, coef: Vector) -> ColumnSums:
        """Return the sums of the only set, for a model of it."""
        (G,) = self.grams
        products = scipy.linalg.blas.dsymv(1.0, G.T, coef, lower=1)  # LAPACK's order of memory
        return ColumnSums(G.diagonal().copy(), products, float(self.weights[0]), coef.copy())


def search_sets(
    sets: RowSets, settings: Pairs, alphas: Vector | None, *, tells: bool = False
) -> Searched | None:
    """Hold every unit out of the paths of sets; None if compiled code cannot take the rows.

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
                range=(0, len(sets.n_targets)),
                alphas=alphas,
                multiples=STARTING_MULTIPLES if started else STARTING_MULTIPLES[:0],
                powers=np.exp2(DEFAULT_POWERS.astype(np.float64)),
                started=started,
                limits=(ROUNDING, LARGEST_HELD, SMALLEST_SHARE),
                units=sets.units,
                map=node_map,
                tells=tells,
                n_threads=thread_count(),
            )
        )


def solve_sets(
    sets: RowSets, settings: Pairs, alpha: float, *, tells: bool = False
) -> Solved | None:
    """Solve one ridge for every target of every set; None if compiled code cannot take the rows.

    The pairs must not depend on labels where a set has several targets. `tells` asks for sums.
    """
    told = as_compiled(sets, settings)
    if told is None:
        return None
    problem, blocks, node_map = told
    n_rows, width = len(sets.data.y), sets.data.n_features
    calls_blas = len(sets.n_targets) > 1 or width > min(n_rows, _core.LARGEST_OWN)
    blas = single_threaded_blas if calls_blas else nullcontext()
    with blas:
        found = _core.fit_groups(
            problem,
            sets.bounds,
            sets.n_targets,
            _targets(sets, settings),
            blocks,
            map=node_map,
            alpha=float(alpha),
            tells=tells,
            n_threads=thread_count(n_rows * blocks[0].shape[1]),
        )
    return Solved(*found)


def as_compiled(
    sets: RowSets, settings: Pairs
) -> tuple[_core.RankingProblem, list[NDArray[Any]], Any] | None:
    """Return the problem, rows and map for compiled code; None if it takes no such."""
    data, blocks = sets.data, [*sets.blocks]
    first = blocks[0]  # of a kind with the others
    if data.preferences is not None or scipy.sparse.issparse(first) or first.shape[1] == 0:
        return None
    if data.feature_map is None:
        return data.problem(settings), blocks, None
    node_map = node_map_of(data.feature_map, np.float64)
    if node_map is None:
        return None
    return data.problem(settings), [_mapped_rows(data, first, settings)], node_map


def _mapped_rows(data: RankingData, X: NDArray[Any], settings: Pairs) -> NDArray[Any]:
    """Return what a map takes: for pairs of linear nodes, rows less what their queries share."""
    nodes = linear_nodes(data.feature_map)
    if settings.kind is None or nodes is None or nodes.before is not None:
        return X
    return without_offsets(X.astype(np.float64, copy=False), data.queries)


def _targets(sets: RowSets, settings: Pairs) -> Vector:
    """Return the targets of every set, less the offsets."""
    data, targets = sets.data, sets.labels
    if settings.is_of_clicks:
        targets = data.label_targets(settings)
    if settings.target == "gain":
        targets = _gains(targets)
    return targets if data.offset is None else targets - _of_labels(sets, data.offset)


def _gains(labels: Vector) -> Vector:
    """Return the gains of labels, NaN where these are no numbers: the gain of −inf would be one."""
    with np.errstate(over="ignore"):
        return np.where(np.isfinite(labels), np.exp2(labels) - 1, np.nan)


def _of_labels(sets: RowSets, offset: Vector) -> Vector:
    """Return the offset of every label."""
    sizes = np.diff(sets.data.queries.offsets[sets.bounds])
    return np.repeat(offset, np.repeat(sets.n_targets, sizes))
