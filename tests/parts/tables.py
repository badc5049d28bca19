"""The parts of tables that have tests of their own."""

from pairgram.data.blocks import Arrays
from pairgram.tables import table_scores
from pairgram.tables.columns import Place, TableRows, runs_of
from pairgram.tables.fits import GivenTable
from pairgram.tables.passes import Part, fold as results_of, in_tree, join_by_id
from pairgram.tables.scan import read_labels


def fold(batches, task):
    """Return the part of the rows of a partition."""
    *_, (part, _) = results_of(task, batches)
    return part


__all__ = [
    "Arrays",
    "GivenTable",
    "Part",
    "Place",
    "TableRows",
    "fold",
    "in_tree",
    "join_by_id",
    "read_labels",
    "runs_of",
    "table_scores",
]
