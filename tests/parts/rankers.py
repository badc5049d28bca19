"""The parts of rankers that have tests of their own."""

from pairgram.rankers import auto, fit_many, preparation, scores
from pairgram.rankers.trials import Rates, Task, trials

__all__ = [
    "Rates",
    "Task",
    "auto",
    "fit_many",
    "preparation",
    "scores",
    "trials",
]
