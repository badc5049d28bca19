"""The parts of solvers that have tests of their own."""

from pairgram.solvers import hold_out, svm_features, svm_training
from pairgram.solvers.costs import Work
from pairgram.solvers.dual_gram import DualGram
from pairgram.solvers.formulation import Coordinates, RidgeModels
from pairgram.solvers.hold_out import (
    fold_scores,
    is_from_decomposition,
    leave_query_out,
    leave_row_out,
    lists_out,
    split_scores,
)
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.path_judges import LeavePairOut, PathTies
from pairgram.solvers.ridge_path import BandForm, EigenPath, RidgePath, band_width, solve_definite
from pairgram.solvers.svm_training import sample_queries
from pairgram.tables.fits import statistics_of

__all__ = [
    "BandForm",
    "Coordinates",
    "DualGram",
    "EigenPath",
    "LeavePairOut",
    "PairSums",
    "PathTies",
    "RidgeModels",
    "RidgePath",
    "Work",
    "band_width",
    "fold_scores",
    "hold_out",
    "is_from_decomposition",
    "leave_query_out",
    "leave_row_out",
    "lists_out",
    "sample_queries",
    "solve_definite",
    "split_scores",
    "statistics_of",
    "svm_features",
    "svm_training",
]
