"""Read, write and make ranking data: LETOR (SVMlight) and TREC files, LETOR's five folds.
`make_ranking` draws synthetic data.
"""

from pairgram.datasets.letor_dump import dump_letor
from pairgram.datasets.letor_folds import Fold, LetorData, load_letor_folds
from pairgram.datasets.letor_load import load_letor
from pairgram.datasets.synthetic import make_ranking
from pairgram.datasets.trec import read_qrels, read_run, write_run

__all__ = [
    "Fold",
    "LetorData",
    "dump_letor",
    "load_letor",
    "load_letor_folds",
    "make_ranking",
    "read_qrels",
    "read_run",
    "write_run",
]
