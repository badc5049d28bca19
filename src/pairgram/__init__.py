"""Learning to rank from one small matrix."""

from pairgram._core import __version__

__all__ = ["__version__"]
