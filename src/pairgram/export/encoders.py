"""Encoders of categories as formulas: a column for each category, their numbers, target means."""

from __future__ import annotations

import math
import warnings
from typing import Any, SupportsFloat

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OneHotEncoder

from pairgram.export.formulas import Column, Value


def encoded(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return the columns that a fitted encoder makes of columns, as its own transform tells."""
    place, made = f"{place}: {type(step).__name__}", []
    is_strict = getattr(step, "handle_unknown", "") == "error"
    for k, column in enumerate(columns):
        categories = [_key_of(value, place) for value in step.categories_[k]]
        if categories.count(None) > 1:
            raise ValueError(
                f"{place} tells None from NaN, which engines do not: replace one by the other "
                "before"
            )
        gaps = [j for j, key in enumerate(categories) if not key and key != 0]
        is_filled = not column.has_gaps  # by an imputer
        accepted = frozenset([*categories, *[None] * is_filled]) if is_strict else None
        codes = _codes(step, k, is_strict)
        for j in range(codes.shape[1]):
            *own, other = codes[:, [j]].toarray()[:, 0].tolist()
            if is_strict:  # there are no others, or they have no code
                other = 0.0 if isinstance(step, OneHotEncoder) else math.nan
            # Most columns of a OneHotEncoder have one category of thousands.
            at = [*np.flatnonzero(np.array(own) != other), *gaps]  # and where text is none
            found = {categories[row]: own[row] for row in at}

            def of(value: Value, found: Any = found, other: float = other) -> float:
                return found.get(None if value != value else value, other)

            if not column.is_plain:
                made.append(column.mapped(of, place))
                continue
            keys = [key for key in found if key is not None]
            numbers, missing = np.array([*map(of, keys), other]), of(column.missing)
            made.append(
                Column(column.source, "lookup", tuple(keys), numbers, missing, accepted, is_filled)
            )
    return made


def _codes(step: BaseEstimator, k: int, is_strict: bool) -> Any:
    """Return what an encoder makes of the categories of column k, and of another value below.

    A strict one refuses other values: the last row is of any category.
    """
    listed = step.categories_
    rows = np.array([[own[0] for own in listed]] * (len(listed[k]) + 1), object)
    rows[:-1, k] = listed[k]
    if not is_strict:
        rows[-1, k] = math.inf  # which is no category
    with warnings.catch_warnings():  # of such a value, and of names of columns
        warnings.simplefilter("ignore")
        found = scipy.sparse.csr_array(step.transform(rows), dtype=np.float64)
    widths = getattr(step, "_n_features_outs", [found.shape[1] // len(listed)] * len(listed))
    return found[:, sum(widths[:k]) : sum(widths[: k + 1])]


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
