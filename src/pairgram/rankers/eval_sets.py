"""The arguments of `fit` by which LightGBM, XGBoost and PyTerrier give a validation set."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from pairgram._support.checks import warn_caller
from pairgram.queries_and_pairs.queries import Queries

__all__ = ["with_validation"]

SPELLINGS = ("eval_set", "eval_group", "eval_qid")


def with_validation(model: Any, named: dict[str, Any]) -> dict[str, Any]:
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
        raise ValueError(f"validation and {' and '.join(given)} say the same: give one of them")
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


def _pair(sets: Any) -> tuple[Any, Any]:
    """Return the only (X, y)."""
    if isinstance(sets, list) and len(sets) == 1:
        (sets,) = sets
    if isinstance(sets, tuple) and len(sets) == 2:
        return sets
    found = f"a list of {len(sets)}" if isinstance(sets, list) else type(sets).__name__
    raise ValueError(f"eval_set must be [(X, y)], one set, got {found}")


def _only(name: str, values: Any) -> Any:
    """Return the only array of a list, or the array that was given itself."""
    if values is None or not isinstance(values, (list, tuple)) or np.ndim(values[0]) == 0:
        return values
    if len(values) != 1:
        raise ValueError(f"{name} must have one entry, as eval_set has, got {len(values)}")
    return values[0]
