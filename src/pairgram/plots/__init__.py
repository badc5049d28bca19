"""Pictures of searches, models and comparisons, drawn by matplotlib.

Models are taken by the package's public names. Every function takes an
axes, or makes one, and returns a `Plot`: the axes, and the numbers that are drawn in it.
"""

from pairgram.plots.axes import Plot
from pairgram.plots.models import coefficients, convergence, importances
from pairgram.plots.queries import differences, learning_curve
from pairgram.plots.searches import scores, settings

__all__ = [
    "Plot",
    "coefficients",
    "convergence",
    "differences",
    "importances",
    "learning_curve",
    "scores",
    "settings",
]
