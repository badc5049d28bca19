"""The parts of data that have tests of their own."""

from pairgram.data.dataset import RankingData, apply_half_laplacian, read_labelled
from pairgram.data.hashed_ids import QueryIds, hash_ids, mix
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries, first_equal_rows

__all__ = [
    "Pairs",
    "Queries",
    "QueryIds",
    "RankingData",
    "apply_half_laplacian",
    "checked_data",
    "first_equal_rows",
    "hash_ids",
    "mix",
]


def checked_data(X, y, **named):
    """Return checked rows, by query."""
    return RankingData.delimit(*read_labelled(X, y), **named)
