"""The parts of data that have tests of their own."""

from pairgram.data.dataset import RankingData, apply_half_laplacian
from pairgram.data.hashed_ids import IdSet, hash_ids, mix
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries, first_equal_rows

__all__ = [
    "IdSet",
    "Pairs",
    "Queries",
    "RankingData",
    "apply_half_laplacian",
    "first_equal_rows",
    "hash_ids",
    "mix",
]
