"""The parts of auto that have tests of their own."""

from pairgram.auto import ranker
from pairgram.auto.trials import Task, trials

__all__ = [
    "Task",
    "ranker",
    "trials",
]
