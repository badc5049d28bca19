"""The choice of a ridge for each of many sets of rows, by scores of rows that are held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.checks import Rows, Vector
from pairgram._support.row_warnings import without_row_warnings
from pairgram.data.queries import Queries
from pairgram.metrics.metric import check_labels
from pairgram.model_selection.judge import Counted, metric_of, ordered
from pairgram.model_selection.splits import fold_numbers
from pairgram.solvers.group_fits import SOLVED, UNSOLVED, RowSets, Searched, one_array, ranges

if TYPE_CHECKING:
    from pairgram.data.dataset import RankingData
    from pairgram.metrics.evaluation import Scoring


class Chosen(NamedTuple):
    """The choice of every set: states, ridges or Cs, and mean scores, (n_sets,), and the models."""

    states: Any
    values: Vector
    scores: Vector
    models: Vector  # (n_sets, n_features)


def with_units(sets: RowSets, cv: object, exact: bool) -> RowSets:
    """Return the sets with what `cv` holds out together.

    None stands for every query or group if `exact`, and otherwise for folds of them.
    """
    queries, bounds, groups = sets.data.queries, sets.bounds, sets.data.group_of
    n_queries, starts = np.diff(bounds), queries.offsets[bounds]
    n_rows, held = np.diff(starts), groups
    if groups is None:
        held = np.arange(bounds[-1]) - np.repeat(bounds[:-1], n_queries)
    assert held is not None
    of_rows = np.repeat(held, queries.sizes)
    if cv is None and exact:
        return sets if groups is None else sets._replace(units=of_rows)
    n_held, single = n_queries.copy(), n_queries == 1
    if groups is not None:
        n_held[:], single[:] = 1, False
        np.maximum.at(n_held, np.repeat(np.arange(len(n_held)), n_queries), held + 1)
    by_rows = np.repeat(single, n_rows)
    of_rows[by_rows] = (np.arange(len(of_rows)) - np.repeat(starts[:-1], n_rows))[by_rows]
    sizes = np.stack([n_held, np.where(single, n_rows, 0)], axis=1)
    kinds, kind_of = np.unique(sizes, axis=0, return_inverse=True)
    found = [fold_numbers(cv, n, rows) for n, rows in kinds.tolist()]
    tables = [
        np.full(max(kind), -1) if folds is None else folds
        for kind, folds in zip(kinds.tolist(), found, strict=True)
    ]
    firsts = np.cumsum([0, *map(len, tables)])[kind_of]
    folds = np.concatenate(tables)[np.repeat(firsts, n_rows) + np.maximum(of_rows, 0)]
    return sets._replace(units=np.where(of_rows < 0, -1, folds))


def choose_for_sets(
    given: RowSets,
    search: Callable[[RowSets, tuple[int, int]], Searched | None],
    n_values: int,
    scoring: Scoring,
    in_folds: bool,
) -> Chosen | None:
    """Choose a value for every set; None if compiled code cannot take the rows.

    `search` takes sets and the numbers of the first and the last of those that it is to search, as
    many as memory for their scores suffices, with `n_values` each. Rows of one query in several
    units are several lists if these are folds.
    """
    parts = []
    for sets, first, last in _parts(given, n_values):
        found = search(sets, (first, last))
        if found is None:
            return None
        held = _held_rows(sets, first, last, in_folds)
        means, signs, states = _means(held, last - first, found.scores, scoring)
        states = np.where(found.states == SOLVED, states, found.states)
        best = np.argmax(means, axis=0)
        at = np.arange(last - first)
        states[np.isneginf(means[best, at])] = UNSOLVED
        models = found.models[at, best]
        models[states != SOLVED] = np.nan
        scores = means[best, at] * np.where(states == SOLVED, signs, np.nan)
        parts.append(Chosen(states, found.values[at, best], scores, models))
    return Chosen(*map(one_array, zip(*parts, strict=True)))


def _parts(given: RowSets, n_alphas: int) -> Iterator[tuple[RowSets, int, int]]:
    """Yield sets of dense rows, and ranges of them whose scores and models take little memory."""
    for sets in given.in_dense_parts():
        d = sets.blocks[0].shape[1] if sets.data.feature_map is None else sets.data.n_features
        rows = sets.data.queries.offsets[sets.bounds]
        ends = 8.0 * n_alphas * (rows + d * np.arange(len(rows)))
        for first, last in ranges(ends, limits.now.search_bytes):
            yield sets, first, last


class _Held(NamedTuple):
    """Held-out rows of some sets without X, set after set.

    Attributes
    ----------
    data : RankingData
        Queries without rows are left out.
    set_of : ndarray of shape (n_rows,), int64
    order : ndarray of shape (n_rows,), int64, or None
        Which rows of the sets they are, where folds stand one after the other.
    """

    data: RankingData
    set_of: Rows
    order: Rows | None


def _means(
    all_held: _Held, n_sets: int, scores: Vector, scoring: Scoring
) -> tuple[Vector, Vector, Any]:
    """Return the mean metric of every value and set, larger where better, −inf where it has none.

    The sign of each set gives the metric's own value back. The states of sets with labels that the
    metric cannot take are `UNSOLVED`.
    """
    part, set_of, order = all_held
    scores = scores if order is None else scores[:, order]
    means, signs = np.full((len(scores), n_sets), -np.inf), np.ones(n_sets)
    states = np.full(n_sets, UNSOLVED)
    lists = np.bincount(set_of[part.queries.offsets[:-1]], minlength=n_sets)
    bad_alphas, bad_rows = np.nonzero(~np.isfinite(scores))
    with np.errstate(invalid="ignore"):
        grades = (part.y >= 0) & (part.y == np.rint(part.y)) & (part.y < 64)
    graded = np.bincount(set_of[~grades], minlength=n_sets) == 0
    kinds = np.where((lists == 1) & (order is None), 2, 0) + (graded if scoring is None else 0)
    pending = [(kind, np.flatnonzero(kinds == kind)) for kind in np.unique(kinds).tolist()]
    while pending:
        kind, numbers = pending.pop()
        own = np.zeros(n_sets, dtype=bool)
        own[numbers] = True
        rows = np.flatnonzero(own[set_of])
        if not len(rows):
            continue
        held = part.take(rows) if len(rows) < len(part.y) else part
        metric = metric_of(scoring, held.y, kind >= 2)
        try:
            held = replace(held, y=metric.judged_labels(held.y, held.judgements))
            with without_row_warnings():
                check_labels((metric,), held.y, are_all=True)
        except ValueError:  # fits alone tell whose labels are wrong
            halves = np.array_split(numbers, 2) if len(numbers) > 1 else []
            pending += [(kind, half) for half in halves]
            continue
        counted = Counted.of(held)
        given = np.nan_to_num(scores[:, rows], nan=0.0)
        given = given if held.offset is None else given + held.offset
        values, queries = counted.values(metric, given), counted.data.queries
        assert queries.order is None
        of_query = set_of[rows[counted.rows]][queries.offsets[:-1]]
        group_of = np.searchsorted(numbers, of_query)
        found, _ = _core.summarize(
            np.ascontiguousarray(values), counted.weights, group_of, len(numbers)
        )
        means[:, own] = ordered(found, metric)
        signs[own] = 1 if metric.greater_is_better else -1
        states[own] = SOLVED
    means[bad_alphas, set_of[bad_rows]] = -np.inf
    return means, signs, states


def _held_rows(sets: RowSets, first: int, last: int, in_folds: bool) -> _Held:
    """Return the rows of some sets as they are judged."""
    data, _ = sets.some(first, last)
    ends = sets.data.queries.offsets[sets.bounds[first : last + 1]]
    set_of, order = np.repeat(np.arange(last - first), np.diff(ends)), None
    queries, weights = data.queries, data.query_weights
    kept = np.flatnonzero(queries.sizes)
    if in_folds:
        assert sets.units is not None
        folds, query = sets.units[ends[0] : ends[-1]], queries.index()
        order = np.lexsort((folds, set_of))
        folds, query = folds[order], query[order]
        begins = np.diff(query, prepend=-1).astype(bool) | np.diff(folds, prepend=-2).astype(bool)
        starts = np.flatnonzero(begins)
        kept = query[starts]
        queries = Queries.of_sizes(np.diff(starts, append=len(query)))
        data = data.take(order)
    else:
        queries = Queries.of_sizes(queries.sizes[kept])
    part = replace(
        data,
        queries=queries,
        query_weights=None if weights is None else weights[kept],
        feature_map=None,
        group_of=None,
    )
    return _Held(part, set_of, order)
