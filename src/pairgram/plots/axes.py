"""What the pictures share: the axes, and colours that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's palette, in an order in which neighbours differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
BLUE, ORANGE, GREY = COLOURS[0], "#D55E00", "#767676"
LONGEST_LABEL = 36


class Plot(NamedTuple):
    """What a function of this folder returns; ``ax, data = ...`` takes it apart.

    Attributes
    ----------
    ax : matplotlib.axes.Axes
        ``ax.figure.savefig("file.png")`` writes it.
    data : dict of str to ndarray
        The numbers that are drawn.
    """

    ax: Any
    data: Mapping[str, NDArray[Any]]


def axes_of(ax: Any, width: float = 6.4, height: float = 4.0) -> Any:
    """Return the axes to draw in: a new one of so many inches if there is none."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        message = "pairgram.plots needs matplotlib: pip install 'pairgram[plots]'"
        raise ImportError(message) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def require(model: Any, attribute: str, wanted: str) -> Any:
    """Return an attribute of a model, or raise a ValueError that says which models have it."""
    found = getattr(model, attribute, None)
    if found is None:
        raise ValueError(f"want {wanted}, got {type(model).__name__} without {attribute}")
    return found


def check_count(name: str, value: Any, smallest: int, largest: float = inf) -> int:
    """Return an argument that says how many; raise a ValueError if it is not such a number."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not smallest <= value <= largest:
        wanted = f"from {smallest} to {largest}" if largest < inf else f">= {smallest}"
        raise ValueError(f"{name} must be an integer {wanted}, got {value!r}")
    return int(value)


def shortened(label: Any) -> str:
    """Return a label that leaves room for the picture."""
    text = str(label)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
