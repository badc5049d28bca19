"""Relevant documents that were not retrieved, for metrics of a part of the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support.types import Vector
from pairgram.metrics.options import FAMILIES
from pairgram.queries_and_pairs.queries import Queries

__all__ = ["with_unretrieved"]


def with_unretrieved(
    metrics: Sequence[tuple[str, str, float | None]],
    y: Vector,
    scores: Vector,
    queries: Queries,
    n_relevant: Any,
) -> tuple[Vector, Vector, Queries]:
    """Return labels, scores and queries with a row for every relevant document that has none.

    Parameters
    ----------
    metrics : sequence of (name, family, relevant)
        What the metrics are called, and the label from which documents are relevant.
    y : ndarray of shape (n_rows,), float64
    scores : ndarray of shape (…, n_rows), float64
    queries : Queries
    n_relevant : array-like of shape (n_queries,) of int, or mapping from ids to int

    Returns
    -------
    y, scores, queries
        The rows, and behind them the others, with the lowest relevant label and the score NaN.

    Raises
    ------
    ValueError
        If a metric needs more than the number of relevant documents, if metrics differ in what is
        relevant, or if a number is missing, or less than the relevant rows of its query.
    """
    relevant = _one_threshold(metrics)
    counts = _counts(n_relevant, queries)
    numbers = queries.index()
    rows = np.bincount(numbers[y >= relevant], minlength=queries.n_queries)
    missing = counts - rows
    if (missing < 0).any():
        query = int(np.argmax(missing < 0))
        raise ValueError(
            f"n_relevant must count the relevant rows too: query {queries.name(query)} has "
            f"{rows[query]} rows of a label >= {relevant:g}, got {counts[query]}"
        )
    n_more = int(missing.sum())
    numbers = np.concatenate([numbers, np.repeat(np.arange(queries.n_queries), missing)])
    order = np.argsort(numbers, kind="stable").astype(np.int64, copy=False)
    offsets = queries.offsets + np.concatenate(([0], np.cumsum(missing)))
    unscored = np.full((*scores.shape[:-1], n_more), np.nan)
    return (
        np.concatenate([y, np.full(n_more, relevant)]),
        np.concatenate([scores, unscored], axis=-1),
        Queries(offsets, order, queries.ids),
    )


def _one_threshold(metrics: Sequence[tuple[str, str, float | None]]) -> float:
    """Return the label from which documents are relevant, the same for all metrics."""
    counting = [
        family
        for family, properties in FAMILIES.items()
        if properties.ranks and properties.of_lists and "relevant" in properties.options
    ]
    thresholds = set()
    for name, family, relevant in metrics:
        if family not in counting or relevant is None:
            raise ValueError(
                f"n_relevant is for {', '.join(counting)}; {name} needs the documents themselves: "
                "add their rows, with the score NaN"
            )
        thresholds.add(relevant)
    if len(thresholds) > 1:
        raise ValueError(
            f"n_relevant needs metrics with the same option relevant, got {sorted(thresholds)}"
        )
    return thresholds.pop()


def _counts(n_relevant: Any, queries: Queries) -> NDArray[np.int64]:
    """Return the number of relevant documents of every query."""
    if isinstance(n_relevant, Mapping):
        if queries.ids is None:
            raise ValueError("n_relevant with ids of queries needs qid")
        names = queries.ids.tolist()
        unknown = [name for name in names if name not in n_relevant]
        if unknown:
            raise ValueError(f"n_relevant must have every query, found none for {unknown[0]!r}")
        n_relevant = [n_relevant[name] for name in names]
    counts = np.asarray(n_relevant)
    if counts.shape != (queries.n_queries,):
        raise ValueError(
            f"n_relevant must have shape ({queries.n_queries},), one number per query in the order "
            f"of their first rows, got {counts.shape}"
        )
    if counts.dtype.kind not in "iu":
        raise TypeError(f"n_relevant must hold integers, got {counts.dtype}")
    return counts.astype(np.int64)
