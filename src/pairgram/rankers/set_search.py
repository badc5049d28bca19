"""The choice of a ridge for each of many sets of rows, by scores of rows that are held out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.row_warnings import without_row_warnings
from pairgram.data.queries import Queries
from pairgram.metrics.metric import check_labels
from pairgram.model_selection.judge import Counted, metric_of, ordered
from pairgram.model_selection.splits import fold_numbers
from pairgram.solvers.group_fits import SOLVED, UNSOLVED, RowSets, Searched

if TYPE_CHECKING:
    from pairgram.data.dataset import RankingData
    from pairgram.metrics.evaluation import Scoring


def with_units(sets: RowSets, cv: object, exact: bool) -> RowSets:
    """Return the sets with what `cv` holds out together.

    None stands for every query or group if `exact`, and otherwise for folds of them.
    """
    queries, bounds, groups = sets.data.queries, sets.bounds, sets.data.group_of
    n_queries, starts = np.diff(bounds), queries.offsets[bounds]
    set_of = np.repeat(np.arange(len(n_queries)), np.diff(starts))
    held = np.arange(bounds[-1]) - np.repeat(bounds[:-1], n_queries) if groups is None else groups
    of_rows = np.repeat(held, queries.sizes)
    if cv is None and exact:
        return sets if groups is None else sets._replace(units=of_rows)
    by_rows = (n_queries == 1) & (groups is None)
    of_rows = np.where(by_rows[set_of], np.arange(len(set_of)) - starts[set_of], of_rows)
    n_held = np.ones_like(n_queries)
    np.maximum.at(n_held, set_of, of_rows + 1)
    kinds, units = 2 * n_held + by_rows, np.full(len(set_of), -1)
    for kind in np.unique(kinds).tolist():
        n, of_one = divmod(kind, 2)
        folds = fold_numbers(cv, 1, n) if of_one else fold_numbers(cv, n, 0)
        if folds is not None:
            own = kinds[set_of] == kind
            units[own] = folds[of_rows[own]]
    return sets._replace(units=units)


def choose_for_sets(
    sets: RowSets, found: Searched, scoring: Scoring, in_folds: bool
) -> dict[str, Any]:
    """Choose a value for every set that was searched.

    Rows of one query in several units are several lists if these are folds. The result has the
    "state", "value", "best_score_" and "coef_" of every set.
    """
    means, signs, states = _means(sets, found.scores, scoring, in_folds)
    states = np.where(found.states == SOLVED, states, found.states)
    best, at = np.argmax(means, axis=0), np.arange(len(states))
    states[np.isneginf(means[best, at])] = UNSOLVED
    models = found.models[at, best]
    models[states != SOLVED] = np.nan
    scores = means[best, at] * np.where(states == SOLVED, signs, np.nan)
    values = found.values[at, best]
    return {"state": states, "value": values, "best_score_": scores, "coef_": models}


def _means(
    sets: RowSets, scores: Vector, scoring: Scoring, in_folds: bool
) -> tuple[Vector, Vector, Any]:
    """Return the mean metric of every value and set, larger where better, −inf where it has none.

    The sign of each set gives the metric's own value back. The states of sets with labels that the
    metric cannot take are `UNSOLVED`.
    """
    n_sets, (part, set_of, order) = len(sets.n_targets), _held_rows(sets, in_folds)
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
        if metric.reads_largest and len(numbers) > 1:  # that of each set
            pending += [(kind, one) for one in np.split(numbers, len(numbers))]
            continue
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


def _held_rows(sets: RowSets, in_folds: bool) -> tuple[RankingData, Rows, Rows | None]:
    """Return the rows of the sets as they are judged, set after set, without X.

    Queries without rows are left out. Beside the rows there are their sets, (n_rows,), and which
    rows of the sets they are where folds stand one after the other.
    """
    queries, weights = sets.data.queries, sets.data.query_weights
    sizes, rows = np.diff(queries.offsets[sets.bounds]), queries.grouped(np.arange(queries.n_rows))
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    data = replace(sets.data, X=np.empty((len(rows), 0)), feature_map=None, group_of=None)
    if not in_folds:
        return data.take(rows), set_of, None
    assert sets.units is not None
    order = np.lexsort((sets.units, set_of))
    folds, query = sets.units[order], np.repeat(np.arange(queries.n_queries), queries.sizes)[order]
    begins = np.diff(query, prepend=-1).astype(bool) | np.diff(folds, prepend=-2).astype(bool)
    starts = np.flatnonzero(begins)
    part = replace(
        data.take(rows[order]),
        queries=Queries.of_sizes(np.diff(starts, append=len(rows))),
        query_weights=None if weights is None else weights[query[starts]],
    )
    return part, set_of, order
