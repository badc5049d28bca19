"""Read and write ranking data: LETOR (SVMlight) files and LETOR's five folds, and result lists.

`make_ranking` draws synthetic data.
"""

from pairgram.datasets.letor import Fold, LetorData, dump_letor, load_letor, load_letor_folds
from pairgram.datasets.synthetic import make_ranking

__all__ = [
    "Fold",
    "LetorData",
    "dump_letor",
    "load_letor",
    "load_letor_folds",
    "make_ranking",
]
