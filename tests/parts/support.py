"""The parts of _support that have tests of their own."""

from pairgram._support import limits, machine
from pairgram._support.arrays import real_array
from pairgram._support.checks import require_finite
from pairgram._support.files import replacing, shown
from pairgram._support.machine import (
    cached_property,
    deadline,
    resolve_n_threads,
    single_threaded_blas,
    until,
)
from pairgram._support.tabled import text_of

__all__ = [
    "cached_property",
    "deadline",
    "limits",
    "machine",
    "real_array",
    "replacing",
    "require_finite",
    "resolve_n_threads",
    "shown",
    "single_threaded_blas",
    "text_of",
    "until",
]
