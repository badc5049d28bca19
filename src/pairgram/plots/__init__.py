"""Pictures of searches, models and comparisons, drawn by matplotlib.

Every function takes an axes, or makes one, and returns it. This package uses models by their public
names only.
"""

from pairgram.plots.drawing import differences, ranks, scores

__all__ = ["differences", "ranks", "scores"]
