"""The parts of solvers that have tests of their own."""

from pairgram.solvers import constrained, leave_out, svm_features, svm_training
from pairgram.solvers.costs import Work
from pairgram.solvers.dual_gram import DualGram
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.leave_out import PathTies, leave_query_out, split_scores
from pairgram.solvers.leave_out_dual import RowRegression, fold_scores, is_from_decomposition
from pairgram.solvers.leave_pair_out import _HeldOut
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.passes import statistics_of
from pairgram.solvers.ridge_path import BandForm, RidgePath, band_width, solve_definite
from pairgram.solvers.svm_training import sample_queries

__all__ = [
    "BandForm",
    "Coordinates",
    "DualGram",
    "PairSums",
    "PathTies",
    "RidgePath",
    "RowRegression",
    "Work",
    "_HeldOut",
    "band_width",
    "constrained",
    "fold_scores",
    "is_from_decomposition",
    "leave_out",
    "leave_query_out",
    "sample_queries",
    "solve_definite",
    "split_scores",
    "statistics_of",
    "svm_features",
    "svm_training",
]
