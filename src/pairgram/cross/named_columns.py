"""Columns of rows that parameters name: their numbers, and what files hold of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.checks import ArgumentError, verbatim
from pairgram._support.parameters import is_integer

if TYPE_CHECKING:
    from pairgram._support.checks import Rows

N_SHOWN = 20  # so many names does a message list
Columns = str | int | slice | Sequence[str | int]


def column_numbers(
    columns: Columns | None, parameter: str, n_features: int, names: Sequence[Hashable] | None
) -> Rows:
    """Return the numbers of columns that are given by names or numbers.

    Raises
    ------
    ValueError
        If a column is unknown, or is there twice, or if a slice goes beyond the columns.
    """
    if columns is None:
        return np.empty(0, np.int64)
    if isinstance(columns, slice):
        ends = [end for end in (columns.start, columns.stop) if end is not None]
        if any(not -n_features <= end <= n_features for end in ends):
            raise ArgumentError(
                parameter, f"must name columns of X, of n_features={n_features}, got {columns}"
            )
        return np.arange(n_features, dtype=np.int64)[columns].copy()  # contiguous
    listed = [columns] if isinstance(columns, str) or not np.iterable(columns) else columns
    places = {} if names is None else {name: place for place, name in enumerate(names)}
    found = []
    for column in listed:
        if is_integer(column):
            if not -n_features <= column < n_features:
                raise ArgumentError(
                    parameter, f"must name columns of X, of n_features={n_features}, got {column}"
                )
            found.append(int(column) % n_features)
        elif isinstance(column, Hashable) and column in places:
            found.append(places[column])
        elif f"{column}[0]" in places:  # a column of lists, whose entries are features
            entries = map(f"{column}[{{}}]".format, count())
            found += takewhile(lambda place: place >= 0, (places.get(e, -1) for e in entries))
        else:
            known = "X has no names: give numbers"
            if names is not None:
                first = ", ".join(map(repr, names[:N_SHOWN]))
                known = f"X has {first}" + ", …" * (len(names) > N_SHOWN)
            raise ArgumentError(
                parameter,
                verbatim(f"must name columns of X, got {column!r}; {known}"),
            )
    numbers = np.array(found, np.int64)
    values, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        twice = int(values[counts > 1][0])
        shown = twice if names is None else names[twice]
        raise ArgumentError(parameter, verbatim(f"must name a column once, got {shown!r} twice"))
    return numbers


def columns_in_file(columns: Any, numbers: Rows) -> Any:
    """Return columns as JSON has them: text stays, and numbers become those that were found."""
    if columns is None or isinstance(columns, str):
        return columns
    by_name = not isinstance(columns, (slice, int, np.integer)) and all(
        isinstance(column, str) for column in columns
    )
    if by_name:
        return list(columns)
    return numbers.tolist() or None
