"""The parts of export that have tests of their own."""

from pairgram.export.form import RanklibModel, SolrModel
from pairgram.export.verify import _is_reordered, _scores

__all__ = ["RanklibModel", "SolrModel", "_is_reordered", "_scores"]
