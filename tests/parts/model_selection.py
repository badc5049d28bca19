"""The parts of model_selection that have tests of their own."""

from pairgram.model_selection.splits import Folds, make_splits

__all__ = ["Folds", "make_splits"]
