"""The parts of files that have tests of their own."""

from pairgram.files.kinds import MAPS, MODELS
from pairgram.files.read_write import read_file, write_file
from pairgram.files.transformers import TRANSFORMERS

__all__ = ["MAPS", "MODELS", "TRANSFORMERS", "read_file", "write_file"]
