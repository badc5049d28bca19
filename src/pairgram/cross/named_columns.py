"""Columns of rows that parameters name: their numbers, and what files hold of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.arrays import entries_of, require_columns
from pairgram._support.checks import ArgumentError, verbatim
from pairgram._support.parameters import is_integer

if TYPE_CHECKING:
    from pairgram._support.checks import Rows

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
        if all(-n_features <= end <= n_features for end in ends):
            columns = range(*columns.indices(n_features))
    listed = [columns] if isinstance(columns, str) or not np.iterable(columns) else columns
    known = [] if names is None else list(names)
    places = {name: place for place, name in enumerate(known)}
    found = []
    for column in listed:
        if is_integer(column) and -n_features <= column < n_features:
            found.append(int(column) % n_features)
        elif names is None or not isinstance(column, str):
            raise ArgumentError(
                parameter,
                verbatim(f"must name columns of X, of n_features={n_features}, got {column!r}"),
            )
        elif f"{column}[0]" in places and column not in places:  # lists, of which X has the entries
            width = next(n for n in count(1) if f"{column}[{n}]" not in places)
            found += [places[entry] for entry in entries_of(column, width)]
        else:
            require_columns([column], known, parameter)
            found.append(places[column])
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
    by_name = np.iterable(columns) and all(isinstance(column, str) for column in columns)
    return list(columns) if by_name else numbers.tolist() or None
