"""The parts of export that have tests of their own."""

from pairgram.export.verify import _is_reordered

__all__ = ["_is_reordered"]
