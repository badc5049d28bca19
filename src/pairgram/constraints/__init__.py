"""Constraints of weights: values of the parameter `constraint` of `RankRLS` and its search.

Each value checks its columns, and solves the constrained problem from the Gram matrix alone.
"""

from pairgram.constraints.positive import Positive
from pairgram.constraints.zeros import ElasticNet, MaxNonzero

__all__ = ["ElasticNet", "MaxNonzero", "Positive"]
