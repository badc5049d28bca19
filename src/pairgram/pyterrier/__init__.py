"""An estimator of PyTerrier that fits a ranker to results with features. It stands at the end of a
pipeline.
"""

from pairgram.pyterrier.reranker import Ranker

__all__ = ["Ranker"]
