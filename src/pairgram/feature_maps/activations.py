"""The activations of hidden nodes by name, and their shares of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from pairgram._support.words import ActivationName

__all__ = ["ACTIVATIONS", "NEED_POSITIVE", "Activation", "Activations", "segments"]

Activation = ActivationName | Callable[[NDArray[Any]], NDArray[Any]]
Activations = Activation | Sequence[Activation]
# The names of activations here, and their names in compiled code.
ACTIVATIONS = {
    "linear": "linear",
    "sigmoid": "sigmoid",
    "gaussian": "gaussian",
    "tanh": "tanh",
    "relu": "relu",
    "hardlim": "hardlim",
    "sine": "sin",
}
NEED_POSITIVE = "Gaussian nodes exp(-b ||x - a||^2) need b > 0"


def segments(activation: Any, n_nodes: int) -> list[tuple[int, int, Activation]]:
    """Return (first node, last node + 1, activation) for each activation, with equal shares."""
    kinds = [activation] if isinstance(activation, str) or callable(activation) else activation
    try:
        kinds = list(kinds)
    except TypeError:
        kinds = [kinds]
    for kind in kinds:
        if not (callable(kind) or (isinstance(kind, str) and kind in ACTIVATIONS)):
            names = ", ".join(map(repr, ACTIVATIONS))
            raise ValueError(f"activation must be of {names}, or a callable; got {kind!r}")
    if not 1 <= len(kinds) <= n_nodes:
        raise ValueError(f"activation must have 1 to n_nodes={n_nodes} entries, got {len(kinds)}")
    bounds = [0]
    for i in range(len(kinds)):
        bounds.append(bounds[-1] + n_nodes // len(kinds) + (i < n_nodes % len(kinds)))
    return [(bounds[i], bounds[i + 1], kind) for i, kind in enumerate(kinds)]
