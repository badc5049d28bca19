"""Ranking metrics: their options and conventions, their values in every query, and scorers.

`runs` measures TREC runs. `compare` holds systems against each other, query by query.
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
