"""The parts of rankers that have tests of their own."""

from pairgram.rankers import fit_many, preparation, scores

__all__ = [
    "fit_many",
    "preparation",
    "scores",
]
