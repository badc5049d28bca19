"""The parts of comparing that have tests of their own."""

from pairgram.comparing.comparison import (
    bootstrap_means,
    holm,
    percentile_intervals,
    randomization_test,
)
from pairgram.comparing.tabled import text_of

__all__ = [
    "bootstrap_means",
    "holm",
    "percentile_intervals",
    "randomization_test",
    "text_of",
]
