"""The parts of files that have tests of their own."""

from pairgram.features.feature_map import MAPS as KNOWN, kind_of_map
from pairgram.files.kinds import MODELS
from pairgram.files.read_write import read_file, write_file

MAPS = {name: kind_of_map(name) for name in KNOWN}

__all__ = ["MAPS", "MODELS", "read_file", "write_file"]
