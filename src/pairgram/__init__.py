"""Learning to rank from one small matrix."""

from pairgram._core import __version__
from pairgram.datasets import dump_letor, load_letor, load_letor_folds, make_ranking
from pairgram.gram import Pairgram
from pairgram.least_squares import RankRLS, RankRLSCV, load_model
from pairgram.metrics import Metric, evaluate, get_metric, make_scorer, metric_names
from pairgram.model_selection import QueryKFold

__all__ = [
    "Metric",
    "Pairgram",
    "QueryKFold",
    "RankRLS",
    "RankRLSCV",
    "__version__",
    "dump_letor",
    "evaluate",
    "get_metric",
    "load_letor",
    "load_letor_folds",
    "load_model",
    "make_ranking",
    "make_scorer",
    "metric_names",
]
