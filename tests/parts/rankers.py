"""The parts of rankers that have tests of their own."""

from pairgram.rankers import auto, fit_many, preparation, scores
from pairgram.rankers.auto import Task, planned, trials

__all__ = ["Task", "auto", "fit_many", "planned", "preparation", "scores", "trials"]
