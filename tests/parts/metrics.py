"""The parts of metrics that have tests of their own."""

from pairgram.metrics.compare import bootstrap_intervals, holm, randomization_test, t_test
from pairgram.metrics.metric import FAMILIES

__all__ = ["FAMILIES", "bootstrap_intervals", "holm", "randomization_test", "t_test"]
