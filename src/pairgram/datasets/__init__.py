"""Read and write ranking data: LETOR (SVMlight) and TREC files, feature logs, LETOR's five folds.

`make_ranking` draws synthetic data.
"""

from pairgram.datasets.feature_log import read_feature_log
from pairgram.datasets.letor import Fold, LetorData, dump_letor, load_letor, load_letor_folds
from pairgram.datasets.synthetic import make_ranking
from pairgram.datasets.trec import read_qrels, read_run, write_run

__all__ = [
    "Fold",
    "LetorData",
    "dump_letor",
    "load_letor",
    "load_letor_folds",
    "make_ranking",
    "read_feature_log",
    "read_qrels",
    "read_run",
    "write_run",
]
