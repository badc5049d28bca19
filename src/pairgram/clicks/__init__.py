"""Clicks of users: what they say of positions and of rankers, and users that are drawn.

`estimate_propensities` finds how likely users look at each position, which rankers take as the
``propensity`` of `fit`. Two rankers share one list by `interleave`, and the clicks tell which of
them is better. `simulate` draws clicks.
"""

from pairgram.clicks.interleaving import Credit, Interleaved, credit, interleave
from pairgram.clicks.propensities import Propensities, estimate_propensities
from pairgram.clicks.simulation import ClickLog, simulate

__all__ = [
    "ClickLog",
    "Credit",
    "Interleaved",
    "Propensities",
    "credit",
    "estimate_propensities",
    "interleave",
    "simulate",
]
