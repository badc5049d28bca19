"""Texts of the command line that stand for several values."""

from __future__ import annotations

import math
import re

# A number, or a power, or a range of powers of one base.
_ITEM = re.compile(r"([^\s^:]+)(?:\^([+-]?\d{1,6})(?::\1\^([+-]?\d{1,6}))?)?")


def parse_grid(text: str, option: str) -> list[float]:
    """Return the grid of a text such as ``2^-15:2^24`` or ``0.1,1,10``.

    ``b^i:b^j`` stands for b to all whole powers from i to j. Repeated values count once. Errors
    name the option. Of ridges, 0 may be one.

    Raises
    ------
    ValueError
        If the text is none of these, or a value is not finite and > 0.
    """
    values: list[float] = []
    for item in map(str.strip, text.split(",")):
        found = _ITEM.fullmatch(item)
        base, low, high = found.groups() if found else ("", "1", None)
        try:
            powers = range(int(low or 1), int(high or low or 1) + 1)
            own = [float(base) ** power for power in powers]
        except ArithmeticError:
            own = [math.inf]
        except ValueError:
            own = []
        if not own:
            raise ValueError(
                f"{option} takes numbers and ranges such as 0.1,1,10 or 2^-15:2^24; got {item!r}"
            )
        least = 0.0 if option == "--alphas" and float(base) == 0 else math.ulp(0.0)
        if not all(least <= value < math.inf for value in own):
            raise ValueError(f"{option}: each must be finite and > 0, got {item!r}")
        values += own
    return list(dict.fromkeys(values))


def parse_names(text: str, option: str) -> list[str]:
    """Return the names in a text such as ``a,b``."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"{option} takes different names such as a,b,c; got {text!r}")
    return names
