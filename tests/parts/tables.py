"""The parts of tables that have tests of their own."""

from pairgram.data.blocks import Arrays
from pairgram.tables import scores
from pairgram.tables.columns import Place, TableRows, runs_of
from pairgram.tables.fits import GivenTable
from pairgram.tables.passes import Part, Partition, fold, in_tree, join_by_id
from pairgram.tables.scan import read_labels

__all__ = [
    "Arrays",
    "GivenTable",
    "Part",
    "Partition",
    "Place",
    "TableRows",
    "fold",
    "in_tree",
    "join_by_id",
    "read_labels",
    "runs_of",
    "scores",
]
