"""The parts of model_selection that have tests of their own."""

from pairgram.model_selection.splits import ListedSplits, make_splits
from pairgram.tables.table_blocks import TableFolds

__all__ = ["ListedSplits", "TableFolds", "make_splits"]
