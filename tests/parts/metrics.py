"""The parts of metrics that have tests of their own."""

from pairgram.metrics.metric import FAMILIES

__all__ = ["FAMILIES"]
