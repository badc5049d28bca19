"""The parts of export that have tests of their own."""

from pairgram.export.check import _is_reordered

__all__ = ["_is_reordered"]
