"""Ranking data: LETOR (SVMlight) files, LETOR's five folds, and synthetic data.

This folder may import `queries_and_pairs` and `_support`.
"""

from pairgram.datasets.letor_dump import dump_letor
from pairgram.datasets.letor_folds import Fold, LetorData, load_letor_folds
from pairgram.datasets.letor_load import load_letor
from pairgram.datasets.synthetic import make_ranking

__all__ = ["Fold", "LetorData", "dump_letor", "load_letor", "load_letor_folds", "make_ranking"]
