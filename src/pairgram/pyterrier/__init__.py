"""`Ranker`, an estimator of PyTerrier that fits a ranker to results with features.

This folder may import the package's public names alone, and PyTerrier.
"""

from pairgram.pyterrier.ranker import Ranker

__all__ = ["Ranker"]
