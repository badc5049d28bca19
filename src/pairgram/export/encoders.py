"""Encoders of categories as formulas: a column for each category, their numbers, target means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

import numpy as np
from sklearn.base import BaseEstimator

from pairgram._support.checks import AnyArray
from pairgram.export.formulas import Column, Value

# Given a fitted encoder and the number k of a column, the numbers that are made of each of its
# categories, (n_categories, n_made), and of any other value, (n_made,).
Codes = Callable[[Any, int], tuple[AnyArray, AnyArray]]


def encoded(codes: Codes, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return the columns that a fitted encoder makes of columns; `codes` returns its numbers."""
    made: list[Column] = []
    place = f"{place}: {type(step).__name__}"
    for k, column in enumerate(columns):
        categories = [_key_of(value, place) for value in step.categories_[k]]
        if categories.count(None) > 1:
            raise ValueError(
                f"{place} tells None from NaN, which engines do not: replace one by the other "
                "before"
            )
        gaps = [j for j, key in enumerate(categories) if not key and key != 0]
        is_strict = getattr(step, "handle_unknown", "") == "error"
        values, others = codes(step, k)
        for own, other in zip(values.T, others.tolist(), strict=True):
            # Most columns of a OneHotEncoder have one category of thousands.
            at = [*np.flatnonzero(own != other), *gaps]  # and where engines know no text
            found = {categories[j]: float(own[j]) for j in at}

            def of(value: Value, found: Any = found, other: float = other) -> float:
                return found.get(None if value != value else value, other)

            if not column.is_plain:
                made.append(column.mapped(of, place))
                continue
            keys = [key for key in found if key is not None]
            numbers, missing = np.array([*map(of, keys), other]), of(column.missing)
            is_filled = not column.has_gaps  # by an imputer
            accepted = frozenset([*categories, *[None] * is_filled]) if is_strict else None
            made.append(
                Column(column.source, "lookup", tuple(keys), numbers, missing, accepted, is_filled)
            )
    return made


def is_gap(value: object) -> bool:
    return value is None or value != value


def _key_of(value: Any, place: str) -> Value | None:
    """Return a category as text or a number of float64; None for one that is missing."""
    key: Any = getattr(value, "item", lambda: value)()
    if is_gap(key):
        return None
    if isinstance(key, str):
        return str(key)
    if not isinstance(key, SupportsFloat):
        raise ValueError(f"{place} has the category {key!r}, which is neither text nor a number")
    number = float(key)
    if number != key:
        raise ValueError(
            f"{place} has the category {key!r}, which float64 does not hold: make it text before "
            "fit"
        )
    return number


def _groups_of(step: BaseEstimator, k: int) -> tuple[AnyArray, int | None]:
    """Return the group of each category of column k, and that of rare ones, the last, if any are.

    Where some are rare, an OrdinalEncoder gives NaN, the last category, no group.
    """
    groups = step._default_to_infrequent_mappings[k] if step._infrequent_enabled else None
    if groups is None:
        return np.arange(len(step.categories_[k])), None
    return groups, int(groups.max())


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
    codes = _groups_of(step, k)[0].astype(np.float64)
    if k in step._missing_indices:  # NaN, the last category
        codes = np.append(codes[: len(step.categories_[k]) - 1], step.encoded_missing_value)
    other = np.nan if step.unknown_value is None else float(step.unknown_value)
    return codes[:, None], np.array([other])


def target_codes(step: BaseEstimator, k: int) -> tuple[AnyArray, AnyArray]:
    n_made = np.size(step.target_mean_)
    encodings = step.encodings_[n_made * k : n_made * (k + 1)]
    return np.column_stack(encodings), np.atleast_1d(step.target_mean_)
