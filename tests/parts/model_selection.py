"""The parts of model_selection that have tests of their own."""

from pairgram.model_selection.splits import ListedSplits, make_splits
from pairgram.tables.table_judge import Folds

__all__ = ["Folds", "ListedSplits", "make_splits"]
