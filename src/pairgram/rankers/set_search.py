"""The choice of a ridge for each of many sets of rows, by scores of rows that are held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.checks import Rows, Vector
from pairgram._support.row_warnings import without_row_warnings
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.metrics.metric import check_labels
from pairgram.model_selection.judge import Judge, metric_of, ordered
from pairgram.solvers.group_fits import SOLVED, UNSOLVED, RowSets, one_array, ranges, search_sets
from pairgram.solvers.ridge_path import DEFAULT_POWERS

if TYPE_CHECKING:
    from pairgram.data.dataset import RankingData
    from pairgram.metrics.evaluation import Scoring


class Chosen(NamedTuple):
    """The choice of every set: states, alphas and mean scores, (n_sets,), and the models."""

    states: Any
    alphas: Vector
    scores: Vector
    models: Vector  # (n_sets, n_features)


def choose_for_sets(
    given: RowSets,
    settings: PairSettings,
    alphas: Vector | None,
    scoring: Scoring,
    n_threads: int | None,
) -> Chosen | None:
    """Choose a ridge for every set; None if compiled code cannot take the rows.

    Every query of a set is held out in turn, or every row where it has one query. As many sets are
    searched at once as memory for their scores suffices.
    """
    parts = []
    n_alphas = len(DEFAULT_POWERS) if alphas is None else len(alphas)
    for sets, first, last in _parts(given, n_alphas):
        found = search_sets(sets, settings, alphas, n_threads, some=(first, last))
        if found is None:
            return None
        means, signs, states = _means(sets, first, last, found.scores, scoring, n_threads)
        states = np.where(found.states == SOLVED, states, found.states)
        best = np.argmax(means, axis=0)
        at = np.arange(last - first)
        states[np.isneginf(means[best, at])] = UNSOLVED
        models = found.models[at, best]
        models[states != SOLVED] = np.nan
        scores = means[best, at] * np.where(states == SOLVED, signs, np.nan)
        parts.append(Chosen(states, found.alphas[at, best], scores, models))
    return Chosen(*map(one_array, zip(*parts, strict=True)))


def _parts(given: RowSets, n_alphas: int) -> Iterator[tuple[RowSets, int, int]]:
    """Yield sets of dense rows, and ranges of them whose scores and models take little memory."""
    for sets in given.in_dense_parts():
        d = sets.blocks[0].shape[1] if sets.data.feature_map is None else sets.data.n_features
        rows = sets.data.queries.offsets[sets.bounds]
        ends = 8.0 * n_alphas * (rows + d * np.arange(len(rows)))
        for first, last in ranges(ends, limits.now.search_bytes):
            yield sets, first, last


def _means(
    sets: RowSets, first: int, last: int, scores: Vector, scoring: Scoring, n_threads: int | None
) -> tuple[Vector, Vector, Any]:
    """Return the mean metric of every ridge and set, larger where better, −inf where it has none.

    The sign of each set gives the metric's own value back. The states of sets with labels that the
    metric cannot take are `UNSOLVED`.
    """
    part, set_of = _held_rows(sets, first, last)
    n_sets = last - first
    means, signs = np.full((len(scores), n_sets), -np.inf), np.ones(n_sets)
    states = np.full(n_sets, UNSOLVED)
    lists = np.bincount(set_of[part.queries.offsets[:-1]], minlength=n_sets)
    bad_alphas, bad_rows = np.nonzero(~np.isfinite(scores))
    with np.errstate(invalid="ignore"):
        grades = (part.y >= 0) & (part.y == np.rint(part.y)) & (part.y < 64)
    graded = np.bincount(set_of[~grades], minlength=n_sets) == 0
    kinds = np.where(lists == 1, 2, 0) + (graded if scoring is None else 0)
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
            held = replace(held, y=metric.judged_labels(held.y, held.propensity))
            with without_row_warnings():
                check_labels((metric,), held.y, are_all=True)
        except ValueError:  # fits alone tell whose labels are wrong
            halves = np.array_split(numbers, 2) if len(numbers) > 1 else []
            pending += [(kind, half) for half in halves]
            continue
        judge = Judge(held, metric, None, None, n_threads, held, None)
        given = np.nan_to_num(scores[:, rows], nan=0.0)
        values, weights, _, queries, seen = judge.values(given)
        counted = rows if seen is None else rows[seen]
        of_query = set_of[counted][queries.offsets[:-1]] if queries.order is None else None
        assert of_query is not None
        group_of = np.searchsorted(numbers, of_query)
        found, _ = _core.summarize(np.ascontiguousarray(values), weights, group_of, len(numbers))
        means[:, own] = ordered(found, metric)
        signs[own] = 1 if metric.greater_is_better else -1
        states[own] = SOLVED
    means[bad_alphas, set_of[bad_rows]] = -np.inf
    return means, signs, states


def _held_rows(sets: RowSets, first: int, last: int) -> tuple[RankingData, Rows]:
    """Return the rows of some sets without X, set after set, and the number of the set of each.

    Queries without rows are left out.
    """
    data, _ = sets.some(first, last)
    sizes, weights = data.queries.sizes, data.query_weights
    part = replace(
        data,
        queries=Queries.of_sizes(sizes[sizes > 0]),
        query_weights=None if weights is None else weights[sizes > 0],
        feature_map=None,
    )
    of_sets = np.diff(sets.data.queries.offsets[sets.bounds[first : last + 1]])
    return part, np.repeat(np.arange(last - first), of_sets)
