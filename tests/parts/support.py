"""The parts of _support that have tests of their own."""

from pairgram._support import limits, machine
from pairgram._support.arrays import real_array
from pairgram._support.checks import require_finite
from pairgram._support.files import replacing, shown
from pairgram._support.machine import (
    cached_property,
    deadline,
    single_threaded_blas,
    thread_count,
    threads,
    until,
)

__all__ = [
    "cached_property",
    "deadline",
    "limits",
    "machine",
    "on_threads",
    "real_array",
    "replacing",
    "require_finite",
    "shown",
    "single_threaded_blas",
    "thread_count",
    "threads",
    "until",
]


def on_threads(counts, work):
    """Return what work gives with each of some numbers of threads."""
    found = []
    for n in counts:
        with threads(n):
            found.append(work())
    return found
