"""The parts of export that have tests of their own."""

from pairgram.export.form import (
    RanklibModel,
    SolrModel,
    SqlExpression,
    VespaProfile,
)
from pairgram.export.formulas import ACTIVATIONS, Atom, Column, constant, product, sum_of, through
from pairgram.export.verify import _is_reordered, _scores

__all__ = [
    "ACTIVATIONS",
    "Atom",
    "Column",
    "RanklibModel",
    "SolrModel",
    "SqlExpression",
    "VespaProfile",
    "_is_reordered",
    "_scores",
    "constant",
    "product",
    "sum_of",
    "through",
]
