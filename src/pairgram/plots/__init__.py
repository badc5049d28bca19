"""Pictures of searches, models and comparisons, drawn by matplotlib.

Every function takes an axes, or makes one, and returns a `Plot`: the axes, and the numbers that are
drawn in it. This package uses models by their public names only.
"""

from pairgram.plots.drawing import (
    Plot,
    differences,
    ranks,
    scores,
    weights,
)

__all__ = [
    "Plot",
    "differences",
    "ranks",
    "scores",
    "weights",
]
