"""The parts of features that have tests of their own."""

from sklearn.base import clone

from pairgram.features import feature_map, kernels, nystroem
from pairgram.features.feature_map import describe_map, node_map_of, same_map
from pairgram.features.gaps import fill_values, filled, known_medians
from pairgram.features.kernel_map import Kernel
from pairgram.features.kernel_values import kernel_nodes
from pairgram.features.kernels import kernel_of
from pairgram.features.row_values import WORDS

__all__ = [
    "Kernel",
    "describe_map",
    "feature_map",
    "fill_values",
    "filled",
    "fit_inputs",
    "kernel_nodes",
    "kernel_of",
    "kernels",
    "known_medians",
    "node_map_of",
    "nystroem",
    "same_map",
]


def fit_inputs(kind, X, weights=None):
    """Return the scale of a word, fitted to rows."""
    return clone(WORDS[kind]).fit(X, sample_weight=weights)
