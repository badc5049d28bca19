"""Ranking metrics: their options and conventions, their values in every query, and scorers.

`metric` has the table of all families, and `evaluation` judges scores by them.
"""

from pairgram.metrics.evaluation import evaluate, get_metric, make_scorer
from pairgram.metrics.metric import CONVENTIONS, Metric, metric_names

__all__ = [
    "CONVENTIONS",
    "Metric",
    "evaluate",
    "get_metric",
    "make_scorer",
    "metric_names",
]
