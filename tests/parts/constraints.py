"""The parts of constraints that have tests of their own."""

from pairgram.constraints import positive

__all__ = ["positive"]
