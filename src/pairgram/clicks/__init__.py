"""Measure rankers by the clicks of users.

Two rankers share one list, and the clicks tell which of them is better.
"""

from pairgram.clicks.interleaving import Credit, Interleaved, credit, interleave

__all__ = ["Credit", "Interleaved", "credit", "interleave"]
