"""Encoders of categories as formulas: a column for each category, their numbers, target means."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pairgram._support.checks import AnyArray
from pairgram.export.formulas import AnyColumn, Column, Value

# Given a fitted encoder and the number k of a column, the numbers that are made of each of its
# categories, (n_categories, n_made), and of any other value, (n_made,).
Codes = Callable[[Any, int], tuple[AnyArray, AnyArray]]


def encoded(
    codes: Codes, step: BaseEstimator, columns: list[AnyColumn], place: str
) -> list[AnyColumn]:
    """Return the columns that a fitted encoder makes of columns; `codes` returns its numbers."""
    made: list[AnyColumn] = []
    for k, column in enumerate(columns):
        categories = _plain_values(step.categories_[k])
        gaps = [j for j, value in enumerate(categories) if is_gap(value) or value == ""]
        accepted: frozenset[Any] | None = None
        if getattr(step, "handle_unknown", "") == "error":
            accepted = frozenset(None if is_gap(value) else value for value in categories)
        values, others = codes(step, k)
        for own, other in zip(values.T, others.tolist(), strict=True):
            # Most columns of a OneHotEncoder have one category of thousands.
            at = [*np.flatnonzero(own != other), *gaps]  # and where engines know no text
            found = {categories[j]: float(own[j]) for j in at}
            found_at = f"{place}: {type(step).__name__}"
            made.append(_looked_up(column, found, other, found_at, accepted))
    return made


def is_gap(value: object) -> bool:
    return value is None or value != value


def _looked_up(
    column: AnyColumn,
    found: dict[Any, float],
    other: float,
    place: str,
    accepted: frozenset[Any] | None,
) -> AnyColumn:
    """Return a number for every category of a column, and another one for other values."""
    gaps = [value for key, value in found.items() if is_gap(key)]
    if len(gaps) > 1:
        raise ValueError(
            f"{place} tells None from NaN, which engines do not: replace one by the other before"
        )
    keys_there = [key for key in found if not is_gap(key)]
    strange = next((key for key in keys_there if not isinstance(key, (str, Number))), None)
    if strange is not None:
        raise ValueError(
            f"{place} has the category {strange!r}, which is neither text nor a number"
        )
    lost = next((k for k in keys_there if not isinstance(k, str) and float(k) != k), None)
    if lost is not None:
        raise ValueError(
            f"{place} has the category {lost!r}, which float64 does not hold: make it text before "
            "fit"
        )
    known = {key if isinstance(key, str) else float(key): found[key] for key in keys_there}
    missing = gaps[0] if gaps else other

    def of(value: Value) -> float:
        return missing if value != value else known.get(value, other)

    if not (isinstance(column, Column) and column.is_plain):
        return column.mapped(of, place)
    keys, values = tuple(known), np.array([*known.values(), other])
    at_gap, is_filled = of(column.missing), not column.has_gaps  # by an imputer
    if accepted is not None and is_filled:
        accepted |= {None}
    return Column(column.source, "lookup", keys, values, at_gap, accepted, is_filled)


def _infrequent(step: BaseEstimator) -> list[Any]:
    """Return the numbers of the rare categories of every column, or None for none."""
    found = []
    for categories, rare in zip(step.categories_, step.infrequent_categories_, strict=True):
        known = set() if rare is None else {repr(value) for value in _plain_values(rare)}
        numbers = [k for k, c in enumerate(_plain_values(categories)) if repr(c) in known]
        found.append(None if rare is None else np.array(numbers))
    return found


def _groups_of(step: BaseEstimator, k: int) -> tuple[AnyArray, int | None]:
    """Return the group of each category of column k, and that of rare ones, the last, if any are.

    An OrdinalEncoder gives NaN no group: that of NaN is after all others.
    """
    groups = np.arange(len(step.categories_[k]))
    limits = (getattr(step, "min_frequency", None), getattr(step, "max_categories", None))
    rare = None if limits == (None, None) else _infrequent(step)[k]
    if rare is None:
        return groups, None
    frequent = np.setdiff1d(groups, rare)
    groups[frequent] = np.arange(len(frequent))
    groups[rare] = len(frequent)
    return groups, len(frequent)


def one_hot_codes(step: BaseEstimator, k: int) -> tuple[AnyArray, AnyArray]:
    groups, rare = _groups_of(step, k)
    n_groups = int(groups.max()) + 1
    made, other = np.eye(n_groups, dtype=bool)[groups], np.zeros(n_groups)
    if rare is not None and step.handle_unknown in ("infrequent_if_exist", "warn"):
        other[rare] = 1.0
    without = None if step.drop_idx_ is None else step.drop_idx_[k]
    kept = np.arange(n_groups) != (-1 if without is None else groups[without])
    return made[:, kept], other[kept]


def ordinal_codes(step: BaseEstimator, k: int) -> tuple[AnyArray, AnyArray]:
    groups, rare = _groups_of(step, k)
    codes = groups.astype(np.float64)
    if is_gap(step.categories_[k][-1]) and step.categories_[k][-1] is not None:
        if rare is not None:  # NaN is not counted among the frequent ones
            codes[groups == rare] = rare - 1
        codes[-1] = step.encoded_missing_value
    other = np.nan if step.unknown_value is None else float(step.unknown_value)
    return codes[:, None], np.array([other])


def target_codes(step: BaseEstimator, k: int) -> tuple[AnyArray, AnyArray]:
    n_made = np.size(step.target_mean_)
    encodings = step.encodings_[n_made * k : n_made * (k + 1)]
    return np.column_stack(encodings), np.atleast_1d(step.target_mean_)


def _plain_values(values: Iterable[object]) -> list[Any]:
    return [getattr(value, "item", lambda v=value: v)() for value in values]
