"""Validation sets, whose rows searches hold out, and their other spellings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.checks import ArgumentError, Vector, require_finite, verbatim, warn_caller
from pairgram.data.dataset import RankingData, RowInfo, read_labelled
from pairgram.data.queries import Queries
from pairgram.features.base import is_known
from pairgram.features.gaps import filled
from pairgram.features.inputs import prepared_as
from pairgram.tables.table import Table

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike

    Validation = (
        tuple[RowsLike, ArrayLike]
        | tuple[RowsLike, ArrayLike, ArrayLike | None]
        | tuple[RowsLike, ArrayLike, ArrayLike | None, ArrayLike | Mapping[str, ArrayLike] | None]
        | Table
        | None
    )

SPELLINGS = ("eval_set", "eval_group", "eval_qid")
# What errors of a validation set call it.
_VALIDATION = ("validation", "X of validation", "y of validation")


def with_validation(model: BaseEstimator, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `fit` with `validation` in place of its other spellings.

    Parameters
    ----------
    model : ranker
    named : dict
        The arguments by keyword. ``eval_set=[(X, y)]`` with ``eval_group=[sizes]`` or
        ``eval_qid=[ids]``, lists of one entry each or the entry itself, stand for ``validation=(X,
        y, qid)``. A ranker without settings to choose ignores them with a warning.

    Raises
    ------
    ValueError
        If `validation` is given as well, if there are several sets, or sizes or ids without rows.
    """
    given = {name: named[name] for name in SPELLINGS if named.get(name) is not None}
    named = {name: value for name, value in named.items() if name not in SPELLINGS}
    if not given:
        return named
    if "validation" not in inspect.signature(type(model).fit).parameters:
        warn_caller(
            f"{type(model).__name__} has no settings to choose, so fit ignores "
            f"{' and '.join(given)}: take the class whose name ends with CV",
            UserWarning,
        )
        return named
    if named.get("validation") is not None:
        raise ArgumentError(
            "validation", f"and {' and '.join(given)} say the same: give one of them"
        )
    if "eval_set" not in given:
        raise ValueError(f"{' and '.join(given)} came without eval_set, the rows (X, y)")
    if "eval_group" in given and "eval_qid" in given:
        raise ValueError("eval_group and eval_qid say the same in two ways: give one of them")
    X, y = _pair(given["eval_set"])
    qid, sizes = (_only(name, given.get(name)) for name in ("eval_qid", "eval_group"))
    if sizes is not None:
        try:
            offsets = Queries.make(len(y), group=sizes).offsets
        except (TypeError, ValueError) as error:
            raise type(error)(f"eval_{error}") from None  # which begins with "group"
        qid = np.repeat(np.arange(len(sizes)), np.diff(offsets))
    return named | {"validation": (X, y) if qid is None else (X, y, qid)}


def _pair(sets: object) -> tuple[Any, Any]:
    """Return the only (X, y)."""
    if isinstance(sets, list) and len(sets) == 1:
        (sets,) = sets
    if isinstance(sets, tuple) and len(sets) == 2:
        return sets
    found = f"a list of {len(sets)}" if isinstance(sets, list) else type(sets).__name__
    raise ValueError(f"eval_set must be [(X, y)], one set, got {found}")


def _only(name: str, values: object) -> Any:
    """Return the only array of a list, or the array that was given itself."""
    if values is None or not isinstance(values, (list, tuple)) or np.ndim(values[0]) == 0:
        return values
    if len(values) != 1:
        raise ArgumentError(name, f"must have one entry, as eval_set has, got {len(values)}")
    return values[0]


def held_rows(
    model: BaseEstimator,
    validation: Validation,
    pattern: RankingData,
    started: Callable[[RowsLike, RankingData], Vector] | None,
    info: RowInfo,
    fill: Vector | None = None,
) -> RankingData:
    """Return the rows of a validation set, with the scores of the prior.

    `pattern` has the inputs and the map of the rows of `fit`. `started` returns the scores of the
    prior, if there is one. `fill` takes the place of missing values, also before the prior.

    Raises
    ------
    ValueError
        If `validation` is not as described.
    """
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3, 4):
        raise ArgumentError(
            "validation",
            "must be (X, y), (X, y, qid) or (X, y, qid, offset or {'propensity': ...}), got "
            f"{type(validation).__name__}",
        )
    try:
        return _read(model, pattern, started, info, fill, *validation)
    except ValueError as error:
        if getattr(error, "parameter", None) in _VALIDATION:
            raise
        raise ArgumentError(
            "validation", f": {verbatim(error)}"
        ) from error  # not X, y and qid of fit


def _read(
    model: BaseEstimator,
    pattern: RankingData,
    started: Callable[[RowsLike, RankingData], Vector] | None,
    info: RowInfo,
    fill: Vector | None,
    X: RowsLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    others: Any = None,
) -> RankingData:
    named = others if isinstance(others, Mapping) else {"offset": others}
    unknown = [name for name in named if name not in ("offset", "propensity")]
    if unknown:
        raise ArgumentError(
            "validation", f"may tell 'offset' and 'propensity' of its rows, got {unknown[0]!r}"
        )
    offset, propensity = named.get("offset"), named.get("propensity")
    if (propensity is None) != (info.propensity is None):
        wanted = "clicks and propensities: give (X, y, qid, {'propensity': ...})"
        wanted = wanted if propensity is None else "no propensities"
        raise ArgumentError("validation", f"must be as the rows of fit, which have {wanted}")
    if qid is None and info.has_queries:
        raise ArgumentError(
            "validation",
            "is (X, y), but fit has query ids: give (X, y, qid), or eval_qid or "
            "eval_group beside eval_set",
        )
    if (offset is None) != (info.offset is None):
        wanted = "an offset: give (X, y, qid, offset)"
        wanted = wanted if offset is None else "no offset: give (X, y) or (X, y, qid)"
        raise ArgumentError("validation", f"must be as the rows of fit, which have {wanted}")
    rows, y = read_labelled(X, y, " of validation", estimator=model)
    rows = filled(rows, fill)
    takes_gaps = pattern.applied is not None and pattern.applied.takes_gaps
    if not takes_gaps and (pattern.feature_map is None or is_known(pattern.feature_map)):
        require_finite(rows, "X of validation")  # maps of other packages may take NaN
    data = RankingData.delimit(rows, y, qid, offset=offset, propensity=propensity)
    if (data.preferences is None) != (pattern.preferences is None):
        wanted = "labels" if pattern.preferences is None else "Preferences"
        raise ArgumentError("validation", f"must be as the rows of fit, whose y are {wanted}")
    if started is None:
        return data
    return data.plus_offset(started(X if fill is None else rows, prepared_as(data, pattern)))
