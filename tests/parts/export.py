"""The parts of export that have tests of their own."""

from pairgram.export.form import (
    RanklibModel,
    SolrModel,
    SqlExpression,
    VespaProfile,
)
from pairgram.export.verify import _is_reordered, _scores
from pairgram.features.formulas import Atom

__all__ = [
    "Atom",
    "RanklibModel",
    "SolrModel",
    "SqlExpression",
    "VespaProfile",
    "_is_reordered",
    "_scores",
]
