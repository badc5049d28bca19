"""The parts of datasets that have tests of their own."""

from pairgram.datasets import letor

__all__ = ["letor"]
