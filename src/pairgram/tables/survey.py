"""A first pass over labels, query ids and weights, which later passes rely on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support.types import Rows, Vector
from pairgram.queries_and_pairs.id_hashes import IdSet, hash_ids
from pairgram.tables.rows import TableRows

__all__ = ["MOST_LEVELS", "NameOf", "Survey", "SurveyTask", "hash_of_runs"]

# Weights of labels are remembered for at most so many different labels.
MOST_LEVELS = 1024
# What messages call query ids, by the kind of NumPy's type, or by the type of an object.
KINDS = {"M": "times", "m": "durations"} | dict.fromkeys("biuf", "numbers")
KINDS |= dict.fromkeys("UT", "text")
KINDS_OF_OBJECTS = (
    (str, "text"),
    (date, "times"),
    (np.datetime64, "times"),
    (np.timedelta64, "durations"),
    (Real, "numbers"),
)


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of a table without its features.

    Attributes
    ----------
    n_rows : int
    n_queries : int
    lowest, highest : float
        The range of the labels.
    fraction : float or None
        A label that is no whole number; None if there is none.
    levels, level_weights : ndarray of shape (n_levels,), or None
        The different labels, ascending, and the sum of the weights of their rows. None if there
        are more than `MOST_LEVELS`.
    hashes : IdSet
        The hashes of all query ids.
    kinds : dict of str to int
        What the query ids are, and the number of a partition that has such ids.
    scattered : int or None
        The hash of a query whose rows do not stand together.
    """

    n_rows: int
    n_queries: int
    lowest: float
    highest: float
    fraction: float | None
    levels: Vector | None
    level_weights: Vector | None
    hashes: IdSet
    kinds: dict[str, int]
    scattered: int | None = None

    @property
    def labels(self) -> Vector:
        """A few labels that a metric accepts only if it accepts all of the table."""
        ends = [self.lowest, self.highest]
        return np.array(ends if self.fraction is None else [*ends, self.fraction])


@dataclass(frozen=True)
class SurveyTask:
    """Makes a `Survey`."""

    reads_features: bool = False
    needs_queries: bool = True

    def of_rows(self, rows: TableRows) -> Survey:
        """Return the survey of some rows of whole queries."""
        n_rows = rows.n_rows
        y = np.zeros(n_rows) if rows.y is None else rows.y
        weights = np.ones(n_rows) if rows.weights is None else rows.weights
        levels, numbers = np.unique(y, return_inverse=True)
        few = len(levels) <= MOST_LEVELS
        hashes, scattered = IdSet(), None
        if rows.ids is not None:
            found = hash_of_runs(rows)
            distinct, counts = np.unique(found, return_counts=True)
            hashes = IdSet.of(distinct)
            if (counts > 1).any():
                scattered = int(distinct[np.argmax(counts > 1)])
        fractions = levels[levels != np.rint(levels)]
        return Survey(
            n_rows,
            len(rows.sizes),
            float(y.min()),
            float(y.max()),
            float(fractions[0]) if len(fractions) else None,
            levels if few else None,
            _sums(numbers, weights, len(levels)) if few else None,
            hashes,
            dict.fromkeys(kinds_of_ids(rows.ids), rows.partition),
            scattered,
        )

    def join(self, first: Survey, second: Survey) -> Survey:
        """Return the survey of the rows of both."""
        shared = second.hashes.array()
        shared = shared[first.hashes.contains(shared)]
        scattered = first.scattered if first.scattered is not None else second.scattered
        rest = second.hashes
        if len(shared):
            scattered = int(shared[0]) if scattered is None else scattered
            rest = rest.without(IdSet.of(shared))
        return replace(
            _with_levels(first, second),
            n_rows=first.n_rows + second.n_rows,
            n_queries=first.n_queries + second.n_queries,
            lowest=min(first.lowest, second.lowest),
            highest=max(first.highest, second.highest),
            fraction=second.fraction if first.fraction is None else first.fraction,
            hashes=first.hashes.union(rest),
            kinds=second.kinds | first.kinds,
            scattered=scattered,
        )


def _with_levels(first: Survey, second: Survey) -> Survey:
    if first.levels is None or second.levels is None:
        return replace(first, levels=None, level_weights=None)
    assert first.level_weights is not None and second.level_weights is not None
    together = np.concatenate([first.levels, second.levels])
    levels, numbers = np.unique(together, return_inverse=True)
    if len(levels) > MOST_LEVELS:
        return replace(first, levels=None, level_weights=None)
    both = np.concatenate([first.level_weights, second.level_weights])
    weights = _sums(numbers, both, len(levels))
    return replace(first, levels=levels, level_weights=weights)


def _sums(numbers: Rows, weights: Vector, n_levels: int) -> Vector:
    return np.bincount(numbers, weights, minlength=n_levels).astype(np.float64)


def kinds_of_ids(ids: NDArray[Any] | None) -> set[str]:
    """Return what query ids are. Ids of different kinds are never equal."""
    if ids is None:
        return {"absent"}
    if ids.dtype.kind != "O":
        return {KINDS.get(ids.dtype.kind, ids.dtype.name)}
    return {
        next((name for types, name in KINDS_OF_OBJECTS if issubclass(one, types)), one.__name__)
        for one in set(map(type, ids))
    }


def hash_of_runs(rows: TableRows) -> Any:
    """Return the hash of the query id of every run, (n_runs,), uint64."""
    assert rows.ids is not None
    hashes, known = hash_ids(rows.ids)
    if not known.all():
        found = rows.ids[int(np.argmin(known))]
        raise ValueError(
            f"query ids of a table must be numbers, text or times, got {type(found).__name__}"
        )
    return hashes


@dataclass(frozen=True)
class NameOf:
    """Finds the query id that has a hash."""

    hash: int
    reads_features: bool = False
    needs_queries: bool = False

    def of_rows(self, rows: TableRows) -> Any:
        """Return the id in an array, or an empty one."""
        assert rows.ids is not None
        return rows.ids[hash_of_runs(rows) == np.uint64(self.hash)][:1]

    def join(self, first: Any, second: Any) -> Any:
        """Return the first that was found."""
        return first if len(first) else second
