"""Exported models in the engines that they are for. `python -m tests.engines --help` tells more."""
