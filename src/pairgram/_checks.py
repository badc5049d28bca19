"""Checks of parameters: a ValueError names the parameter, what was found and what is wanted."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["check_at_least_zero", "check_flag", "check_positive", "check_size", "check_text"]


def check_flag(name: str, value: Any) -> None:
    """Raise a ValueError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_size(name: str, value: Any) -> int:
    """Return `value` as an int; a ValueError unless it is an integer ≥ 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """Return `value` as a float; a ValueError unless it is a finite number > 0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0 < float(value) < np.inf):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return float(value)


def check_text(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value`; a ValueError unless it is one of `choices`."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")
    return str(value)


def check_at_least_zero(name: str, value: Any) -> float:
    """Return `value` as a float; a ValueError unless it is a finite number ≥ 0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0 <= float(value) < np.inf):
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return float(value)
