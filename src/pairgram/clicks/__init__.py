"""Clicks of users: position bias, interleaving of two rankers, and simulated clicks.

`Clicks` take the place of labels. `estimate_propensities` estimates the probability that users look
at each position. `interleave` mixes the lists of two rankers, and `credit` tells from the clicks
which of them is better. `simulate` draws clicks.
"""

from pairgram.clicks.clicked import Clicks
from pairgram.clicks.interleaving import Credit, Interleaved, credit, interleave
from pairgram.clicks.propensities import Propensities, estimate_propensities
from pairgram.clicks.simulation import ClickLog, simulate

__all__ = [
    "ClickLog",
    "Clicks",
    "Credit",
    "Interleaved",
    "Propensities",
    "credit",
    "estimate_propensities",
    "interleave",
    "simulate",
]
