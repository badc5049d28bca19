"""The parts of metrics that have tests of their own."""

from pairgram.metrics.compare import (
    bootstrap_means,
    holm,
    percentile_intervals,
    randomization_test,
    t_test,
    two_sample_test,
)
from pairgram.metrics.metric import FAMILIES

__all__ = [
    "FAMILIES",
    "bootstrap_means",
    "holm",
    "percentile_intervals",
    "randomization_test",
    "t_test",
    "two_sample_test",
]
