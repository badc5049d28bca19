"""The command line, ``pairgram``: `table_of_commands` has its options, and `app` runs what is read.

A module that holds the functions of some commands is imported when one of them runs.
"""

from pairgram.cli.app import main

__all__ = ["main"]
