"""Ranking metrics: their options and conventions, their values in every query, and scorers.

This folder may import `tables`, `datasets`, `queries_and_pairs` and `_support`.
"""

from pairgram.metrics.evaluation import evaluate, get_metric, make_scorer
from pairgram.metrics.metric import Metric
from pairgram.metrics.options import CONVENTIONS, metric_names

__all__ = [
    "CONVENTIONS",
    "Metric",
    "evaluate",
    "get_metric",
    "make_scorer",
    "metric_names",
]
