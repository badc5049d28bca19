"""Ids of users and items, and their places among known ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from pairgram._support.checks import AnyArray, ArgumentError, Rows, verbatim
from pairgram.data.queries import as_ids, comparable, plain_ids


def id_array(ids: Any, name: str) -> AnyArray:
    """Return ids as an array, after a check that none is missing."""
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__len__"):
        raise ArgumentError(name, f"must be ids, one for each row, got {verbatim(repr(ids))}")
    return as_ids(ids, len(ids), name)


def distinct_ids(ids: Any, name: str) -> AnyArray:
    """Return ids as an array, after a check that none is missing, or there twice."""
    found = id_array(ids, name)
    counts = Counter(found.tolist())
    if len(counts) < len(found):
        twice = next(one for one, count in counts.items() if count > 1)
        raise ArgumentError(
            name, f"must be ids, each of them once, got {verbatim(repr(twice))} twice"
        )
    return found


def places_of(ids: AnyArray, known: AnyArray) -> Rows:
    """Return the places of ids among known ones, which all differ; −1 for others."""
    place = {one: number for number, one in enumerate(comparable(known))}
    return np.array([place.get(one, -1) for one in comparable(ids)], np.int64)


def places_among(ids: Any, known: AnyArray, name: str, of: str = "items") -> Rows:
    """Return the places of ids among the known ones, which are those of users or of items.

    Raises
    ------
    ValueError
        If one is unknown, or the ids are a mask. The message names it.
    """
    asked = id_array(ids, name)
    if asked.dtype.kind == "b" and known.dtype.kind != "b":
        raise ArgumentError(name, "must be ids of rows, got a mask: give the ids where it is True")
    found = places_of(asked, known)
    if (found < 0).any():
        unknown = plain_ids(asked)[int(np.argmin(found))]
        raise ArgumentError(
            name, f"must have ids of {of}, got {verbatim(repr(unknown))}, which none of them has"
        )
    return found


def distinct_ascending(pairs: Rows) -> Rows:
    """Return distinct numbers in ascending order; np.unique takes many times as long."""
    pairs = np.sort(pairs)
    return pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))] if len(pairs) else pairs
