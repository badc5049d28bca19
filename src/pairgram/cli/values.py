"""Texts of the command line that stand for several values."""

from __future__ import annotations

import math
import re

# A number, or a power, or a range of powers and the step of their exponents.
_ITEM = re.compile(
    r"\s*([^\s^:]+?)(?:\^([+-]?\d{1,6})(?::([^\s^:]+)\^([+-]?\d{1,6})(?::([1-9]\d{0,5}))?)?)?\s*"
)


def parse_grid(text: str, option: str) -> list[float]:
    """Return the grid of a text such as ``2^-15:2^24`` or ``0.1,1,10``.

    ``b^i:b^j`` stands for b to all whole powers from i to j, and ``b^i:b^j:s`` for every s-th of
    them. Repeated values count once. Errors name the option. Of ridges, 0 may be one.

    Raises
    ------
    ValueError
        If the text is none of these, or a value is not finite and > 0.
    """
    values: list[float] = []
    for item in text.split(","):
        found = _ITEM.fullmatch(item)
        try:
            base, low, other, high, step = found.groups() if found else [""] * 5
            base, powers = (
                float(base),
                range(int(low or 1), int(high or low or 1) + 1, int(step or 1)),
            )
            if not powers or float(other or base) != base:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{option} takes numbers and ranges such as 0.1,1,10, 2^-15:2^24 or 2^-30:2^20:2; "
                f"got {item!r}"
            ) from None
        for power in powers:
            try:
                value = base**power
            except (OverflowError, ZeroDivisionError):
                value = math.inf
            if not (0 < value < math.inf or (value == base == 0 and option == "--alphas")):
                raise ValueError(f"{option}: each must be finite and > 0, got {item.strip()!r}")
            values.append(value)
    return list(dict.fromkeys(values))


def parse_names(text: str, option: str) -> list[str]:
    """Return the names in a text such as ``a,b``."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"{option} takes different names such as a,b,c; got {text!r}")
    return names
